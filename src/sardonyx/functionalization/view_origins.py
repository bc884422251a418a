"""What the results of a call are views of, found by running the call on fake tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, Value
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import bind
from sardonyx.functionalization.layout import same_view
from sardonyx.functionalization.views import AS_STRIDED, VIEWS, AliasError, ViewLink


class Origin(NamedTuple):
    """The value that a result is a view of, and the views in between."""

    source: Value
    links: tuple[ViewLink, ...]


def origins(
    op: Any, arguments: dict[str, Argument], fakes: dict[str, Any], result: Any, mode: Any
) -> list[Origin | None]:
    """For each result of a call: what it is a view of; None for new memory."""
    given = list(_pairs(list(arguments.values()), [fakes[name] for name in arguments]))
    found: list[Origin | None] = []
    for index, item in enumerate(tensors_in(result)):
        sharing = [(v, f) for v, f in given if _torch_private.shares_memory(item, f)]
        if not sharing:
            found.append(None)
            continue
        same = next((v for v, f in sharing if same_view(item, f)), None)
        if op._schema.name in VIEWS or op._schema.name == AS_STRIDED:
            found.append(Origin(arguments["self"], (_link(op, arguments, index, item),)))
        elif same is not None:
            found.append(Origin(same, ()))
        else:
            found.append(_composite_origin(op, fakes, index, sharing, mode))
    return found


def _pairs(argument: Argument, fake: Any) -> Iterator[tuple[Value, torch.Tensor]]:
    if isinstance(argument, Value):
        yield argument, fake
    elif isinstance(argument, list):
        for item, item_fake in zip(argument, fake, strict=True):
            yield from _pairs(item, item_fake)


def _link(op: Any, arguments: dict[str, Argument], index: int, result: torch.Tensor) -> ViewLink:
    if op._schema.name == AS_STRIDED:
        offset = _torch_private.dim_of(result.storage_offset())
        arguments = {**arguments, "storage_offset": offset}
    return ViewLink(op, arguments, index)


def _composite_origin(
    op: Any,
    fakes: dict[str, Any],
    index: int,
    sharing: list[tuple[Value, torch.Tensor]],
    mode: Any,
) -> Origin:
    """The primitive views that a composite operator is made of."""
    recorded = _torch_private.record_decomposition(op, fakes, mode)
    known = {id(fake): Origin(value, ()) for value, fake in sharing}
    calls, result = recorded if recorded is not None else ([], None)
    for called, args, kwargs, given in calls:
        name = called._schema.name
        if (name not in VIEWS and name != AS_STRIDED) or not args or id(args[0]) not in known:
            continue
        arguments = bind(called, _plain(args), _plain(kwargs))
        of = known[id(args[0])]
        for position, output in enumerate(tensors_in(given)):
            link = _link(called, arguments, position, output)
            known[id(output)] = Origin(of.source, (*of.links, link))
    tensors = tensors_in(result)
    found = known.get(id(tensors[index])) if index < len(tensors) else None
    if found is None:
        raise AliasError(f"{op._schema.name} returns a view that cannot be followed")
    return found


def _plain(argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_plain(a) for a in argument]
    if isinstance(argument, dict):
        return {k: _plain(v) for k, v in argument.items()}
    return _torch_private.dim_of(argument)
