"""What a variable may hold after a branch, or in any iteration of a loop.

A pattern says which parts of a value are tensors of the graph (its leaves) and which are always
the same. Patterns of the branches, or of one iteration and the next, are joined: a dim that differs
becomes unknown, a list whose length differs one of dynamic length, None and a value an optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy
import torch

from sardonyx.aten.graph import (
    Argument,
    Dim,
    SequenceType,
    TensorType,
    UnrankedType,
    Value,
)
from sardonyx.capture.torchscript.types.values import (
    ABSENT,
    UNINITIALIZED,
    AnyRank,
    ChosenConstant,
    CodedText,
    ComputedNumber,
    Dynamic,
    DynamicItems,
    DynamicRows,
    MaybeEntry,
    MaybeNone,
    RowForm,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    Uninitialized,
    is_computed_text,
    is_number,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

OpenDims: TypeAlias = tuple[Dim | None, ...]
"""Dims of which None is unknown."""


class CannotJoin(Exception):
    """The values have no type in common that ONNX has."""


@dataclass(frozen=True, slots=True)
class Same:
    argument: Argument


@dataclass(frozen=True, slots=True)
class Nothing:
    """Never read."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    dtype: torch.dtype
    dims: OpenDims | None
    """None where the rank is unknown."""


@dataclass(frozen=True, slots=True)
class AnyRankOf:
    dtype: torch.dtype
    since: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class TextLeaf:
    """A string that is known at run time."""


@dataclass(frozen=True, slots=True)
class NumberLeaf:
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Maybe:
    content: Pattern


@dataclass(frozen=True, slots=True)
class NoEntry:
    """Of a key that a dict does not have."""


@dataclass(frozen=True, slots=True)
class MaybeEntryOf:
    content: Pattern


@dataclass(frozen=True, slots=True)
class TupleOf:
    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Pattern, ...]
    number: torch.dtype | None = None
    """Of what it would hold, of an empty list of numbers."""


@dataclass(frozen=True, slots=True)
class DynamicListOf:
    dtype: torch.dtype
    dims: OpenDims
    """Of one item."""
    of_numbers: bool
    is_sequence: bool
    length: Dim | None = None


@dataclass(frozen=True, slots=True)
class DynamicRowsOf:
    columns: tuple[DynamicListOf | DynamicRowsOf, ...]
    form: RowForm


@dataclass(frozen=True, slots=True)
class DictOf:
    keys: tuple[Any, ...]
    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class EntriesOf:
    """A dict whose keys are known at run time."""

    pairs: DynamicRowsOf


@dataclass(frozen=True, slots=True)
class ChoiceOf:
    """One of several constants."""

    options: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class InstanceOf:
    class_name: str
    keys: tuple[str, ...]
    items: tuple[Pattern, ...]


Pattern: TypeAlias = (
    Same
    | Nothing
    | TensorLeaf
    | AnyRankOf
    | TextLeaf
    | NumberLeaf
    | Maybe
    | NoEntry
    | MaybeEntryOf
    | TupleOf
    | ListOf
    | DynamicListOf
    | DynamicRowsOf
    | DictOf
    | EntriesOf
    | ChoiceOf
    | InstanceOf
)
IsKnown = Callable[[sympy.Basic], bool]
"""Whether a size is known outside the block."""


def pattern_of(argument: Argument, is_known: IsKnown) -> Pattern:
    if isinstance(argument, Uninitialized):
        return Nothing()
    if isinstance(argument, Value):
        dims = _dims(argument.shape, is_known) if argument.has_shape else None
        return TensorLeaf(argument.dtype, dims)
    if isinstance(argument, AnyRank):
        return AnyRankOf(argument.dtype, argument.since)
    if is_number(argument):
        return NumberLeaf(number_dtype(argument))
    if is_computed_text(argument):
        return TextLeaf()
    if isinstance(argument, MaybeEntry):
        return MaybeEntryOf(pattern_of(argument.content, is_known))
    if isinstance(argument, MaybeNone):
        return Maybe(pattern_of(argument.content, is_known))
    if isinstance(argument, tuple):
        return TupleOf(tuple(pattern_of(a, is_known) for a in argument))
    if isinstance(argument, ScriptList):
        return state_pattern(argument.state, is_known, argument.number)
    if isinstance(argument, ChosenConstant):
        return ChoiceOf(argument.options)
    if isinstance(argument, ScriptDict):
        if isinstance(argument.state, DynamicRows):
            pairs = dynamic_pattern(argument.state, is_known)
            assert isinstance(pairs, DynamicRowsOf)
            return EntriesOf(pairs)
        return _entries_pattern(argument.state, is_known)
    if isinstance(argument, ScriptInstance):
        entries = _entries_pattern(argument.state, is_known)
        return InstanceOf(argument.class_name, entries.keys, entries.items)
    return Same(argument)


def state_pattern(state: Any, is_known: IsKnown, number: torch.dtype | None = None) -> Pattern:
    """Of what a list, a dict or an object holds."""
    if isinstance(state, (DynamicItems, DynamicRows)):
        return dynamic_pattern(state, is_known)
    if isinstance(state, dict):
        return _entries_pattern(state, is_known)
    return ListOf(tuple(pattern_of(a, is_known) for a in state), None if state else number)


def dynamic_pattern(state: Dynamic, is_known: IsKnown) -> DynamicListOf | DynamicRowsOf:
    if isinstance(state, DynamicRows):
        return DynamicRowsOf(tuple(dynamic_pattern(c, is_known) for c in state.columns), state.form)
    content = state.content
    dims = _dims(content.shape, is_known)
    if state.is_sequence:
        return DynamicListOf(content.dtype, dims, of_numbers=False, is_sequence=True)
    return DynamicListOf(content.dtype, dims[1:], state.of_numbers, False, dims[0])


def _entries_pattern(entries: dict[Any, Argument], is_known: IsKnown) -> DictOf:
    return DictOf(tuple(entries), tuple(pattern_of(a, is_known) for a in entries.values()))


def _dims(shape: Sequence[Dim | None], is_known: IsKnown) -> OpenDims:
    return tuple(
        d if isinstance(d, int) or (d is not None and is_known(d)) else None for d in shape
    )


def join(left: Pattern, right: Pattern) -> Pattern:
    if left == right or isinstance(right, Nothing):
        return left
    if isinstance(left, Nothing):
        return right
    if isinstance(left, (NoEntry, MaybeEntryOf)) or isinstance(right, (NoEntry, MaybeEntryOf)):
        return _join_entries(left, right)
    if TextLeaf() in (left, right) and _is_text(left) and _is_text(right):
        return TextLeaf()
    if isinstance(left, Same) or isinstance(right, Same):
        return _join_with_constant(left, right)
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        return Maybe(join(_content(left), _content(right)))
    if isinstance(left, TensorLeaf) and isinstance(right, TensorLeaf):
        return TensorLeaf(left.dtype, _join_tensors(left.dtype, right.dtype, left.dims, right.dims))
    if isinstance(left, AnyRankOf) or isinstance(right, AnyRankOf):
        return _join_any_rank(left, right)
    if isinstance(left, _LISTS) and isinstance(right, _LISTS):
        return _join_lists(left, right)
    if isinstance(left, EntriesOf) or isinstance(right, EntriesOf):
        pairs = _join_pairs(left, right)
        assert isinstance(pairs, DynamicRowsOf)
        return EntriesOf(pairs)
    if isinstance(left, DynamicRowsOf) or isinstance(right, DynamicRowsOf):
        return _join_pairs(left, right)  # what dicts hold
    if isinstance(left, NumberLeaf) and isinstance(right, NumberLeaf):
        raise CannotJoin(f"a number is {_name(left.dtype)} here and {_name(right.dtype)} there")
    if (
        isinstance(left, (TupleOf, DictOf, InstanceOf))
        and isinstance(right, type(left))
        and len(left.items) == len(right.items)
        and getattr(left, "keys", None) == getattr(right, "keys", None)
    ):
        return replace(left, items=_join_each(left.items, right.items))
    raise CannotJoin(f"{_describe(left)} here and {_describe(right)} there")


def _is_text(pattern: Pattern) -> bool:
    options = _options(pattern)
    is_constant = bool(options) and all(isinstance(option, str) for option in options)
    return is_constant or isinstance(pattern, TextLeaf)


def _with_texts(left: Pattern, right: Pattern) -> tuple[Pattern, Pattern]:
    """The patterns, strings that are others in the other one any string in both."""
    if left != right and _is_text(left) and _is_text(right):
        return TextLeaf(), TextLeaf()
    return _each_changed(_with_texts, left, right)


def _each_changed(
    change: Callable[[Pattern, Pattern], tuple[Pattern, Pattern]], left: Pattern, right: Pattern
) -> tuple[Pattern, Pattern]:
    """What both hold, changed in pairs, where they hold as many things."""
    if (
        isinstance(left, (TupleOf, ListOf, DictOf, InstanceOf))
        and isinstance(right, type(left))
        and len(left.items) == len(right.items)
    ):
        pairs = [change(*p) for p in zip(left.items, right.items, strict=True)]
        return (
            replace(left, items=tuple(one for one, _ in pairs)),
            replace(right, items=tuple(other for _, other in pairs)),
        )
    return left, right


def _join_pairs(left: Pattern, right: Pattern) -> Pattern:
    """Of dicts, of which one has keys that are known at run time."""
    lists = [_pairs_pattern(p.pairs if isinstance(p, EntriesOf) else p) for p in (left, right)]
    return _join_lists(*lists)


def _pairs_pattern(pattern: Pattern) -> ListOf | DynamicListOf | DynamicRowsOf:
    if isinstance(pattern, DynamicRowsOf):
        return pattern
    are_texts = isinstance(pattern, DictOf) and all(isinstance(k, str) for k in pattern.keys)
    if not isinstance(pattern, DictOf) or not (are_texts or all(map(is_number, pattern.keys))):
        raise CannotJoin(f"a dict with computed keys here and {_describe(pattern)} there")
    pairs = zip(pattern.keys, pattern.items, strict=True)
    return ListOf(
        tuple(
            TupleOf((TextLeaf() if are_texts else NumberLeaf(number_dtype(key)), item))
            for key, item in pairs
        )
    )


def _join_entries(left: Pattern, right: Pattern) -> Pattern:
    contents = [
        p.content if isinstance(p, MaybeEntryOf) else p
        for p in (left, right)
        if not isinstance(p, NoEntry)
    ]
    return MaybeEntryOf(contents[0] if len(contents) == 1 else join(*contents))


def join_in_loop(left: Pattern, right: Pattern) -> Pattern:
    """As `join`; a dict may gain keys from one iteration to the next."""
    if isinstance(left, DictOf) and isinstance(right, DictOf) and left.keys != right.keys:
        keys = tuple(dict.fromkeys(left.keys + right.keys))
        left, right = (_with_keys(pattern, keys) for pattern in (left, right))
    return join_carried(left, right)


def join_carried(left: Pattern, right: Pattern) -> Pattern:
    """As `join`; a string or a member of an enum may be another one in the next iteration."""
    return join(*with_choices(left, right))


def with_choices(left: Pattern, right: Pattern) -> tuple[Pattern, Pattern]:
    """The patterns, constants that are others in the other one a choice of them in both."""
    options = [_options(pattern) for pattern in (left, right)]
    if all(options):
        kinds = {type(option) for each in options for option in each}
        if len(kinds) == 1 and options[0] != options[1]:
            choice = ChoiceOf(tuple(dict.fromkeys(options[0] + options[1])))
            return choice, choice
    return _each_changed(with_choices, left, right)


def _options(pattern: Pattern) -> tuple[Any, ...]:
    if isinstance(pattern, ChoiceOf):
        return pattern.options
    if isinstance(pattern, Same) and isinstance(pattern.argument, (str, Enum)):
        return (pattern.argument,)
    return ()


def _with_keys(pattern: DictOf, keys: tuple[Any, ...]) -> DictOf:
    items = dict(zip(pattern.keys, pattern.items, strict=True))
    return DictOf(keys, tuple(items.get(key, NoEntry()) for key in keys))


def _join_each(left: Sequence[Pattern], right: Sequence[Pattern]) -> tuple[Pattern, ...]:
    return tuple(join(a, b) for a, b in zip(left, right, strict=True))


def _content(pattern: Pattern) -> Pattern:
    return pattern.content if isinstance(pattern, Maybe) else pattern


def _join_with_constant(left: Pattern, right: Pattern) -> Pattern:
    if isinstance(left, Same) and isinstance(right, Same):
        if type(left.argument) is type(right.argument) and left.argument == right.argument:
            return left
    elif Same(None) in (left, right):
        other = right if left == Same(None) else left
        return other if isinstance(other, Maybe) else Maybe(other)
    raise CannotJoin(f"{_describe(left)} here and {_describe(right)} there")


_LISTS = (ListOf, DynamicListOf, DynamicRowsOf)


def _join_lists(
    left: ListOf | DynamicListOf | DynamicRowsOf, right: ListOf | DynamicListOf | DynamicRowsOf
) -> Pattern:
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        if len(left.items) == len(right.items):
            return ListOf(_join_each(left.items, right.items))
        if not left.items or not right.items:
            return without_length(as_dynamic(left if left.items else right))
        return join_dynamic(as_dynamic(left), as_dynamic(right))
    if isinstance(left, ListOf):
        return _join_with_known(left, right)
    if isinstance(right, ListOf):
        return _join_with_known(right, left)
    return join_dynamic(left, right)


def _join_with_known(known: ListOf, dynamic: Pattern) -> Pattern:
    assert isinstance(dynamic, (DynamicListOf, DynamicRowsOf))
    if known.items:
        return join_dynamic(as_dynamic(known, like=dynamic), dynamic)
    return without_length(dynamic)


def without_length(pattern: DynamicListOf | DynamicRowsOf) -> DynamicListOf | DynamicRowsOf:
    if isinstance(pattern, DynamicRowsOf):
        return replace(pattern, columns=tuple(map(without_length, pattern.columns)))
    return replace(pattern, length=None)


def join_dynamic(
    first: DynamicListOf | DynamicRowsOf, second: DynamicListOf | DynamicRowsOf
) -> DynamicListOf | DynamicRowsOf:
    if isinstance(first, DynamicRowsOf) and isinstance(second, DynamicRowsOf):
        if first.form != second.form:
            first, second = (as_arrays(rows) for rows in (first, second))
        if first.form == second.form:
            pairs = zip(first.columns, second.columns, strict=True)
            return replace(first, columns=tuple(join_dynamic(a, b) for a, b in pairs))
        raise CannotJoin(f"{_rows_name(first.form)} here and {_rows_name(second.form)} there")
    if isinstance(first, DynamicRowsOf) or isinstance(second, DynamicRowsOf):
        rows = first if isinstance(first, DynamicRowsOf) else second
        assert isinstance(rows, DynamicRowsOf)
        raise CannotJoin(f"{_rows_name(rows.form)} here and one of other things there")
    if first.of_numbers != second.of_numbers:
        raise CannotJoin("a list of numbers here and one of tensors there")
    dims = _join_tensors(first.dtype, second.dtype, first.dims, second.dims)
    # Only items of one shape can be stacked.
    if first.is_sequence or second.is_sequence or None in dims:
        return DynamicListOf(first.dtype, dims, of_numbers=False, is_sequence=True)
    length = first.length if first.length == second.length else None
    return DynamicListOf(first.dtype, dims, first.of_numbers, False, length)


def as_dynamic(pattern: Pattern, like: Pattern | None = None) -> DynamicListOf | DynamicRowsOf:
    """The pattern of a list with any number of items like these; stacked, if the items of `like`
    are."""
    if isinstance(pattern, (DynamicListOf, DynamicRowsOf)):
        return pattern
    assert isinstance(pattern, ListOf)
    if not pattern.items and pattern.number is not None:
        return DynamicListOf(pattern.number, (), True, False, 0)
    if not pattern.items:
        raise CannotJoin("an empty list, of which nothing says what it would hold")
    item = TextLeaf() if all(map(_is_text, pattern.items)) else pattern.items[0]
    for other in pattern.items[1:]:
        item = join(*_with_texts(item, other))
    length = len(pattern.items)
    if isinstance(item, TensorLeaf) and item.dims is not None:
        stacked = isinstance(like, DynamicListOf) and not like.is_sequence
        if stacked and None not in item.dims:
            return DynamicListOf(item.dtype, item.dims, False, False, length)
        return DynamicListOf(item.dtype, item.dims, of_numbers=False, is_sequence=True)
    if isinstance(item, NumberLeaf):
        return DynamicListOf(item.dtype, (), True, False, length)
    form = _row_form(item)
    if form is not None:
        columns: Sequence[Pattern | None] = [None] * form.count
        if isinstance(like, DynamicRowsOf) and like.form == form:
            columns = like.columns
        rows = [_row_parts(row, form) for row in pattern.items]
        return DynamicRowsOf(
            tuple(
                as_dynamic(ListOf(tuple(row[place] for row in rows)), column)
                for place, column in enumerate(columns)
            ),
            form,
        )
    raise CannotJoin(
        f"a list of {_describe(item)}, and its length differs: ONNX has lists of tensors"
    )


def _row_form(item: Pattern) -> RowForm | None:
    """How the items of a list are taken apart; None where they cannot be."""
    if isinstance(item, Maybe):
        return RowForm("optional", 2)
    if isinstance(item, TextLeaf):
        return RowForm("text", 1)
    if isinstance(item, ListOf) and item.number is not None:
        return _array_form(item.number, (), True)
    if isinstance(item, DynamicListOf) and None not in item.dims:
        return _array_form(item.dtype, item.dims, item.of_numbers)
    if not isinstance(item, (TupleOf, ListOf, DictOf, InstanceOf)) or not item.items:
        return None
    count = len(item.items)
    if isinstance(item, InstanceOf):
        return RowForm("object", count, item.keys, item.class_name)
    if isinstance(item, DictOf):
        certain = not any(isinstance(i, (NoEntry, MaybeEntryOf)) for i in item.items)
        return RowForm("dict", count, item.keys) if certain else None
    return RowForm("list" if isinstance(item, ListOf) else "tuple", count)


def _array_form(dtype: torch.dtype, dims: OpenDims, of_numbers: bool) -> RowForm:
    return RowForm("array", 1, (dtype, dims, of_numbers))


def as_arrays(rows: DynamicRowsOf) -> DynamicRowsOf:
    """A list of lists of one length, as one of lists of any length."""
    if rows.form.kind != "list":
        return rows
    first, *others = rows.columns
    if not isinstance(first, DynamicListOf) or None in first.dims:
        return rows
    kinds = {
        (c.dtype, c.dims, c.of_numbers) for c in (first, *others) if isinstance(c, DynamicListOf)
    }
    if len(kinds) > 1 or any(isinstance(c, DynamicRowsOf) or c.is_sequence for c in rows.columns):
        return rows
    column = DynamicListOf(first.dtype, (rows.form.count, *first.dims), False, True)
    return DynamicRowsOf((column,), _array_form(first.dtype, first.dims, first.of_numbers))


def _row_parts(row: Pattern, form: RowForm) -> tuple[Pattern, ...]:
    if isinstance(row, Nothing):
        return (row,) * form.count
    if form.kind == "text":
        return (NumberLeaf(torch.int64),)
    if form.kind == "array":
        dtype, dims, _ = form.keys
        length = row.length if isinstance(row, DynamicListOf) else None
        length = len(row.items) if isinstance(row, ListOf) else length
        return (TensorLeaf(dtype, (length, *dims)),)
    if form.kind == "optional":
        content = Nothing() if row == Same(None) else _content(row)
        return NumberLeaf(torch.bool), content
    assert isinstance(row, (TupleOf, ListOf, DictOf, InstanceOf))
    return row.items


def _rows_name(form: RowForm) -> str:
    if form.kind == "dict":
        return f"a list of dicts with the keys {list(form.keys)}"
    if form.kind == "array":
        return "a list of lists of different lengths"
    if form.kind == "text":
        return "a list of strings"
    if form.kind in ("tuple", "list"):
        return f"a list of {form.kind}s of {form.count}"
    return f"a list of {form.kind}s"


def _join_tensors(
    left: torch.dtype, right: torch.dtype, left_dims: OpenDims | None, right_dims: OpenDims | None
) -> OpenDims:
    if left != right:
        raise CannotJoin(f"a tensor is {_name(left)} here and {_name(right)} there")
    if left_dims is None or right_dims is None or len(left_dims) != len(right_dims):
        counts = ["any number of" if d is None else len(d) for d in (left_dims, right_dims)]
        raise CannotJoin(f"a tensor has {counts[0]} dims here and {counts[1]} there")
    return tuple(a if a == b else None for a, b in zip(left_dims, right_dims, strict=True))


def _join_any_rank(left: Pattern, right: Pattern) -> AnyRankOf:
    tensors = [p for p in (left, right) if isinstance(p, (TensorLeaf, AnyRankOf))]
    if len(tensors) < 2:
        raise CannotJoin(f"{_describe(left)} here and {_describe(right)} there")
    here, there = (_name(p.dtype) for p in tensors)
    if here != there:
        raise CannotJoin(f"a tensor is {here} here and {there} there")
    return next(p for p in tensors if isinstance(p, AnyRankOf))


def with_open_ranks(
    left: Pattern, right: Pattern, since: str | None = None
) -> tuple[Pattern, Pattern]:
    """The patterns, tensors that have another rank in the other one of unknown rank in both.
    `since`: what decides the rank, where they are not only returned but read."""
    if isinstance(left, (TensorLeaf, AnyRankOf)) and isinstance(right, (TensorLeaf, AnyRankOf)):
        if _rank(left) == _rank(right) is not None:
            return left, right
        if since is None:
            return TensorLeaf(left.dtype, None), TensorLeaf(right.dtype, None)
        return AnyRankOf(left.dtype, since), AnyRankOf(right.dtype, since)
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        one, other = with_open_ranks(_content(left), _content(right), since)
        return (
            Maybe(one) if isinstance(left, Maybe) else one,
            Maybe(other) if isinstance(right, Maybe) else other,
        )
    return _each_changed(partial(with_open_ranks, since=since), left, right)


def _rank(pattern: TensorLeaf | AnyRankOf) -> int | None:
    dims = pattern.dims if isinstance(pattern, TensorLeaf) else None
    return None if dims is None else len(dims)


def is_better_known(pattern: Pattern) -> bool:
    """Whether less can be done with such a value than with the known ones of an unrolled loop."""
    if isinstance(pattern, (ChoiceOf, EntriesOf, TextLeaf)):
        return True
    if isinstance(pattern, DynamicRowsOf):
        is_object = pattern.form.kind in ("list", "dict", "object", "array", "text")
        return is_object or any(map(is_better_known, pattern.columns))
    if isinstance(pattern, (Maybe, MaybeEntryOf)):
        return is_better_known(pattern.content)
    items = getattr(pattern, "items", ())
    return any(map(is_better_known, items))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _describe(pattern: Pattern) -> str:
    if isinstance(pattern, Same):
        return repr(pattern.argument)
    if isinstance(pattern, DictOf):
        return f"a dict with the keys {list(pattern.keys)}"
    if isinstance(pattern, ChoiceOf):
        return f"one of {list(pattern.options)}"
    names: dict[type, str] = {
        TensorLeaf: "a tensor", AnyRankOf: "a tensor", NumberLeaf: "a number",
        TextLeaf: "a string", Maybe: "an optional", TupleOf: "a tuple", ListOf: "a list",
        DynamicListOf: "lists of different lengths",
        DynamicRowsOf: "lists of different lengths", InstanceOf: "an object",
        EntriesOf: "a dict with computed keys",
    }  # fmt: skip
    return names.get(type(pattern), "nothing")


# -- from patterns to values ----------------------------------------------------------------------

NewLeaf = Callable[[torch.dtype, OpenDims | None, bool], Value]
"""Makes the tensor, or the sequence (if the last argument says so), of a leaf."""


def instantiate(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Argument:
    """A value that fits the pattern, its leaves made by `new`; `keep` registers mutable objects."""
    if isinstance(pattern, Same):
        return pattern.argument
    if isinstance(pattern, Nothing):
        return Uninitialized()
    if isinstance(pattern, TensorLeaf):
        return new(pattern.dtype, pattern.dims, False)
    if isinstance(pattern, AnyRankOf):
        flat, sizes = (new(dtype, (None,), False) for dtype in (pattern.dtype, torch.int64))
        return AnyRank(flat, sizes, pattern.since)
    if isinstance(pattern, NumberLeaf):
        return ComputedNumber(new(pattern.dtype, (), False))
    if isinstance(pattern, TextLeaf):
        return CodedText(ComputedNumber(new(torch.int64, (), False)))
    if isinstance(pattern, ChoiceOf):
        return ChosenConstant(ComputedNumber(new(torch.int64, (), False)), pattern.options)
    if isinstance(pattern, EntriesOf):
        return keep(ScriptDict(instantiate_state(pattern.pairs, new, keep)))
    if isinstance(pattern, (Maybe, MaybeEntryOf)):
        present = ComputedNumber(new(torch.bool, (), False))
        made_of = MaybeNone if isinstance(pattern, Maybe) else MaybeEntry
        return made_of(present, instantiate(pattern.content, new, keep))
    if isinstance(pattern, TupleOf):
        return tuple(instantiate(p, new, keep) for p in pattern.items)
    if isinstance(pattern, InstanceOf):
        made = ScriptInstance(pattern.class_name)
        made.state = instantiate_state(DictOf(pattern.keys, pattern.items), new, keep)
        return keep(made)
    state = instantiate_state(pattern, new, keep)
    return keep(ScriptDict(state) if isinstance(pattern, DictOf) else ScriptList(state))


def instantiate_state(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Any:
    if isinstance(pattern, DynamicRowsOf):
        return DynamicRows(
            tuple(instantiate_state(c, new, keep) for c in pattern.columns), pattern.form
        )
    if isinstance(pattern, DynamicListOf):
        dims = pattern.dims if pattern.is_sequence else (pattern.length, *pattern.dims)
        return DynamicItems(new(pattern.dtype, dims, pattern.is_sequence), pattern.of_numbers)
    if isinstance(pattern, DictOf):
        items = (instantiate(p, new, keep) for p in pattern.items)
        return dict(zip(pattern.keys, items, strict=True))
    assert isinstance(pattern, ListOf)
    return tuple(instantiate(p, new, keep) for p in pattern.items)


class Conform:
    """Takes a value apart into the leaves of a pattern that it fits."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader

    def leaves(self, argument: Argument, pattern: Pattern) -> Iterator[Value]:
        """Of what is not there, ones that nothing reads."""
        reader, is_missing = self._reader, isinstance(argument, Uninitialized)
        if isinstance(pattern, (Same, Nothing)):
            return
        if isinstance(pattern, TensorLeaf):
            if is_missing:
                argument = reader.filler(pattern)
            yield reader.any_rank.whole(argument) if isinstance(argument, AnyRank) else argument
        elif isinstance(pattern, AnyRankOf) and is_missing:
            for dtype in (pattern.dtype, torch.int64):
                yield reader.filler(TensorLeaf(dtype, (None,)))
        elif isinstance(pattern, AnyRankOf):
            yield from reader.any_rank.parts(argument)
        elif isinstance(pattern, NumberLeaf):
            yield reader.numbers.as_tensor(0 if is_missing else argument, pattern.dtype)
        elif isinstance(pattern, TextLeaf):
            code = 0 if is_missing else reader.texts.code(argument)
            yield reader.numbers.as_tensor(code, torch.int64)
        elif isinstance(pattern, ChoiceOf):
            code = 0 if is_missing else reader.code_among(argument, pattern.options)
            yield reader.numbers.as_tensor(code, torch.int64)
        elif isinstance(pattern, (Maybe, MaybeEntryOf)):
            nothing = None if isinstance(pattern, Maybe) else ABSENT
            present: Argument = argument is not nothing and not is_missing
            if isinstance(argument, MaybeNone if isinstance(pattern, Maybe) else MaybeEntry):
                present, argument = argument.present, argument.content
            yield reader.numbers.as_tensor(present, torch.bool)
            yield from self.leaves(
                UNINITIALIZED if argument is nothing else argument, pattern.content
            )
        elif isinstance(pattern, TupleOf):
            yield from self._each(argument, pattern.items)
        else:
            state = argument if is_missing else argument.state
            pattern = pattern.pairs if isinstance(pattern, EntriesOf) else pattern
            yield from self.state_leaves(state, pattern)

    def state_leaves(self, state: Any, pattern: Pattern) -> Iterator[Value]:
        is_missing = isinstance(state, Uninitialized)
        if isinstance(pattern, DynamicListOf) and is_missing and not pattern.is_sequence:
            yield self._reader.filler(TensorLeaf(pattern.dtype, (pattern.length, *pattern.dims)))
        elif isinstance(pattern, DynamicListOf):
            yield self._reader.lists.dynamic_content(() if is_missing else state, pattern)
        elif isinstance(pattern, DynamicRowsOf):
            if isinstance(state, dict):
                state = tuple(state.items())
            columns = (state,) * len(pattern.columns)
            if not is_missing:
                columns = tuple(self._reader.lists.columns(state, pattern))
            for part, column in zip(columns, pattern.columns, strict=True):
                yield from self.state_leaves(part, column)
        elif isinstance(pattern, (DictOf, InstanceOf)):
            if not is_missing:
                state = tuple(state.get(key, ABSENT) for key in pattern.keys)
            yield from self._each(state, pattern.items)
        elif isinstance(pattern, ListOf):
            yield from self._each(state, pattern.items)

    def _each(self, items: Any, patterns: Sequence[Pattern]) -> Iterator[Value]:
        if isinstance(items, Uninitialized):
            items = (items,) * len(patterns)
        for item, pattern in zip(items, patterns, strict=True):
            yield from self.leaves(item, pattern)


def leaf_type(dtype: torch.dtype, dims: tuple[Any, ...] | None, is_sequence: bool) -> TensorType:
    if dims is None:
        return UnrankedType(dtype, ())
    return SequenceType(dtype, dims) if is_sequence else TensorType(dtype, dims)
