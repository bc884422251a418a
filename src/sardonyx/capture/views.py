"""Primitive view operators: how each is applied again, and how a write through it is undone.

`VIEWS` maps an ATen view to the pure update of its source: given the source and the new content
of the view, the new source. Composite views (movedim, chunk, flatten ...) are chains of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from sardonyx.capture.graph import Argument, Value
from sardonyx.errors import CaptureError


class Emit(Protocol):
    """Writes one pure call into the graph and gives one of its results, else the first."""

    def __call__(
        self, op: Any, *args: Argument, result_index: int = 0, **kwargs: Argument
    ) -> Value: ...


@dataclass(frozen=True, slots=True)
class ViewLink:
    """One primitive view: `op(source, ...)[index]`."""

    op: Any
    arguments: dict[str, Argument]
    index: int

    @property
    def name(self) -> str:
        return str(self.op._schema.name)

    def others(self) -> dict[str, Argument]:
        return {k: a for k, a in self.arguments.items() if k != "self"}


Update = Callable[[Emit, ViewLink, Value, Value], Value]


def write_back(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    """The source after `content` was written through the view `link` of it."""
    update = VIEWS.get(link.name)
    if update is None:
        raise CaptureError(f"a write through {link.name} cannot be expressed")
    return update(emit, link, source, content)


def _same(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return content


def _reshape(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return emit(torch.ops.aten.reshape.default, content, list(source.shape))


def _permute(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dims = [d % source.type.rank for d in link.arguments["dims"]]
    return emit(torch.ops.aten.permute.default, content, [dims.index(i) for i in range(len(dims))])


def _transpose(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    if "dim0" in link.arguments:
        dims = (link.arguments["dim0"], link.arguments["dim1"])
        return emit(torch.ops.aten.transpose.int, content, *dims)
    return content if source.type.rank < 2 else emit(torch.ops.aten.transpose.int, content, 0, 1)


def _expand(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    if content.shape[content.type.rank - source.type.rank :] != source.shape:
        raise CaptureError("a write through expand() reaches one element several times")
    return _reshape(emit, link, source, content)


def _scatter(op: Any) -> Update:
    def update(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
        return emit(op, source, content, **link.others())

    return update


def _unbind(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return emit(
        torch.ops.aten.select_scatter.default, source, content, link.arguments["dim"], link.index
    )


def _split(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dim = link.arguments["dim"]
    sizes = link.arguments.get("split_sizes", link.arguments.get("split_size"))
    if isinstance(sizes, list):
        start: Any = sum(sizes[: link.index])
    else:
        start = sizes * link.index
    end = start + content.shape[dim]
    return emit(torch.ops.aten.slice_scatter.default, source, content, dim, start, end)


def _unfold(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dim = link.arguments["dimension"] % max(source.type.rank, 1)
    size, step = link.arguments["size"], link.arguments["step"]
    count = content.shape[dim]
    if not (isinstance(size, int) and isinstance(step, int) and isinstance(count, int)):
        raise CaptureError("a write through unfold() needs fixed sizes")
    if step < size:
        raise CaptureError("a write through unfold() with overlapping windows is ambiguous")
    positions = (torch.arange(count)[:, None] * step + torch.arange(size)).reshape(-1)
    index = Value("unfold_index", _type_of(positions), constant=positions)
    last = emit(torch.ops.aten.movedim.int, content, -1, dim + 1)
    flat = emit(torch.ops.aten.flatten.using_ints, last, dim, dim + 1)
    return emit(torch.ops.aten.index_copy.default, source, dim, index, flat)


def _type_of(tensor: torch.Tensor) -> Any:
    from sardonyx.capture.infer import type_of

    return type_of(tensor)


def _inverse(op: Any) -> Update:
    return lambda emit, link, source, content: emit(op, content)


def _view_dtype(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return emit(torch.ops.aten.view.dtype, content, source.dtype)


def _view(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return (_view_dtype if "dtype" in link.arguments else _reshape)(emit, link, source, content)


VIEWS: dict[str, Update] = {
    "aten::alias": _same,
    "aten::detach": _same,
    "aten::lift_fresh": _same,
    "aten::view": _view,
    "aten::_unsafe_view": _reshape,
    "aten::_reshape_alias": _reshape,
    "aten::unsqueeze": _reshape,
    "aten::squeeze": _reshape,
    "aten::permute": _permute,
    "aten::transpose": _transpose,
    "aten::t": _transpose,
    "aten::expand": _expand,
    "aten::select": _scatter(torch.ops.aten.select_scatter.default),
    "aten::slice": _scatter(torch.ops.aten.slice_scatter.default),
    "aten::diagonal": _scatter(torch.ops.aten.diagonal_scatter.default),
    "aten::as_strided": _scatter(torch.ops.aten.as_strided_scatter.default),
    "aten::unbind": _unbind,
    "aten::split": _split,
    "aten::split_with_sizes": _split,
    "aten::unfold": _unfold,
    "aten::view_as_real": _inverse(torch.ops.aten.view_as_complex.default),
    "aten::view_as_complex": _inverse(torch.ops.aten.view_as_real.default),
    "aten::_conj": _inverse(torch.ops.aten._conj.default),
}
