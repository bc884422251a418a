"""Lists of tuples, dicts, lists, objects or optionals, whose length is known at run time.

ONNX has lists of tensors only: such a list is one list for each place of its items. An item that
is read from it is a copy: a change of it is one of the list, too, as long as the list is as it was
when the item was read. What was put into it is another: its later changes are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.aten.graph import Argument
from sardonyx.capture.torchscript.types.values import (
    UNINITIALIZED,
    CodedText,
    DynamicItems,
    DynamicRows,
    ListItems,
    MaybeNone,
    Mutable,
    Origin,
    RowForm,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    Uninitialized,
)


def parts_of(item: Argument, form: RowForm) -> tuple[Argument, ...]:
    """What an item holds at each of its places."""
    if isinstance(item, Uninitialized):
        return (UNINITIALIZED,) * form.count
    if form.kind == "text":
        return (item,)
    if form.kind == "optional":
        if isinstance(item, MaybeNone):
            return item.present, item.content
        return (False, UNINITIALIZED) if item is None else (True, item)
    if isinstance(item, (ScriptDict, ScriptInstance)):
        return tuple(item.state[key] for key in form.keys)
    parts: tuple[Argument, ...] = item.state if isinstance(item, ScriptList) else item
    assert isinstance(parts, tuple)
    return parts


def row_of(
    parts: tuple[Argument, ...],
    form: RowForm,
    keep: Callable[[Any], Any],
    origin: Origin | None = None,
) -> Argument:
    """An item that was read from `origin`; `keep` registers mutable objects."""
    if form.kind == "tuple":
        return parts
    if form.kind == "text":
        return CodedText(parts[0])
    if form.kind == "optional":
        present, content = parts
        if isinstance(content, Mutable) and origin is not None:
            _show(content, origin)
        return MaybeNone(present, content)
    made: Mutable
    if form.kind == "list":
        made = ScriptList(parts)
    elif form.kind == "array":
        made = ScriptList(DynamicItems(parts[0], of_numbers=form.keys[2]))
    elif form.kind == "dict":
        made = ScriptDict(dict(zip(form.keys, parts, strict=True)))
    else:
        made = ScriptInstance(form.class_name)
        made.held = dict(zip(form.keys, parts, strict=True))
    made.entangled, made.is_copied = ITEM_CHANGED, True
    if origin is not None:
        _show(made, origin)
    return keep(made)


def _show(made: Mutable, origin: Origin) -> None:
    made.origin = origin
    origin.holder.shown = (*origin.holder.shown, made)


def holds_objects(items: ListItems) -> bool:
    """Whether a list holds copies of objects, which a program may change."""
    if not isinstance(items, DynamicRows):
        return False
    is_object = items.form.kind in ("list", "array", "dict", "object")
    return is_object or any(map(holds_objects, items.columns))


ITEM_CHANGED = (
    "an item of a list whose length is known at run time is changed, and the list would have to"
    " see it: build a new list of the changed items"
)
HELD_CHANGED = (
    "a list, dict or object is changed after it was put into a list whose length is known at run"
    " time, and that list would have to see it: put it there when it is complete"
)
