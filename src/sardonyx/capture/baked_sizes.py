"""Finds sizes that a trace turned into constants, by tracing at other sizes and comparing."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import torch

from sardonyx.capture.dynamic import DynamicAxes, DynamicDim

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first node of a trace that is another one at other sizes."""

    index: int
    nodes: Sequence[Any]
    """It and what runs before it, the nearest first."""
    text: str
    holds_where: str = ""
    """The relation of sizes, as in the example, under which nothing differs; "" if none is."""
    is_beyond: bool = False
    """Whether the size lies beyond a number that the model compares a size with, and all sizes
    near to the example's do the same."""


def differing_constants(
    trace: Callable[[Tensors], Any],
    graph: Any,
    tensors: Tensors,
    dynamic: Sequence[DynamicAxes],
    *,
    everywhere: bool,
    compared: Collection[float] = (),
) -> Difference | None:
    """The first place where `graph` depends on the dynamic sizes; None where it does not, or
    where the model runs at no other size. Tried are all other sizes, or the first that the model
    takes; then those that make a size as large as what it is `compared` with, given by how many
    times its own size that is.

    What also changes with the values at the same sizes is baked data, not a baked size.
    """
    for sizes in _other_sizes(tensors, dynamic):
        try:
            other = trace(_resized(tensors, dynamic, sizes))
        except Exception:
            continue  # the model does not take these sizes
        difference = _first_difference(graph, other, sizes)
        if difference is not None:
            if not _is_of_sizes(difference, trace, graph, tensors):
                return None
            return replace(difference, holds_where=_relation(trace, graph, tensors, dynamic))
        if not everywhere:
            break
    for sizes in _sizes_beyond(tensors, dynamic, compared):
        try:
            other = trace(_resized(tensors, dynamic, sizes))
        except Exception:
            continue
        difference = _first_difference(graph, other, sizes)
        if difference is not None and _is_of_sizes(difference, trace, graph, tensors):
            return replace(difference, is_beyond=True)
    return None


def _is_of_sizes(
    difference: Difference, trace: Callable[[Tensors], Any], graph: Any, tensors: Tensors
) -> bool:
    try:
        same_sizes = _first_difference(graph, trace(_shuffled(tensors)), {})
    except Exception:
        return True
    return same_sizes is None or same_sizes.index > difference.index


def _relation(
    trace: Callable[[Tensors], Any], graph: Any, tensors: Tensors, dynamic: Sequence[DynamicAxes]
) -> str:
    """A dim that is the sum of two others (a mask over what is cached and what is new), if the
    graph is the same one at all other sizes with that sum."""
    known = {
        dim.name: tensor.shape[axis]
        for tensor, axes in zip(tensors, dynamic, strict=True)
        if tensor.dim()
        for axis, dim in axes.items()
    }
    for total, left, right in permutations(known, 3):
        if left > right or known[total] != known[left] + known[right]:
            continue
        tried = []
        for sizes in _other_sizes(tensors, dynamic):
            summed = {**sizes, total: sizes[left] + sizes[right]}
            try:
                other = trace(_resized(tensors, dynamic, summed))
            except Exception:
                continue
            tried.append(_first_difference(graph, other, summed) is None)
        if tried and all(tried):
            return f"{total} == {left} + {right}"
    return ""


def depends_on_number(
    trace: Callable[[Tensors], Any], graph: Any, tensors: Tensors, index: int
) -> bool:
    """Whether the trace is another one where the number at `index` is."""
    other = list(tensors)
    other[index] = tensors[index] + 1
    try:
        return _first_difference(graph, trace(tuple(other)), {}) is not None
    except Exception:
        return True


_MOST_TRIED = 4
_MOST_ELEMENTS = 1 << 22


def _sizes_beyond(
    tensors: Tensors, dynamic: Sequence[DynamicAxes], compared: Collection[float]
) -> list[dict[str, int]]:
    """One dim at a time, where a comparison may turn; not those that would take much memory."""
    dims = _dims(tensors, dynamic)
    found = []
    for name, (size, dim) in dims.items():
        turns = {
            dim.within(turn + step)
            for turn in (round(size * times) for times in sorted(compared))
            for step in ((0, 1) if turn > size else (0, -1))
        }
        for turn in sorted(turns - {size}):
            free = {n: turn if n == name else s for n, (s, _) in dims.items()}
            sizes = {n: d.size(free) for n, (_, d) in dims.items()}
            growth = math.prod(max(s / dims[n][0], 1) for n, s in sizes.items())
            if turn >= 1 and sum(t.numel() for t in tensors) * growth <= _MOST_ELEMENTS:
                found.append(sizes)
    return found[:_MOST_TRIED]


def _dims(tensors: Tensors, dynamic: Sequence[DynamicAxes]) -> dict[str, tuple[int, DynamicDim]]:
    dims: dict[str, tuple[int, DynamicDim]] = {}
    for tensor, axes in zip(tensors, dynamic, strict=True):
        if tensor.dim():
            dims.update({d.name: (tensor.shape[axis], d) for axis, d in axes.items()})
    return dims


def _other_sizes(tensors: Tensors, dynamic: Sequence[DynamicAxes]) -> Iterator[dict[str, int]]:
    dims = _dims(tensors, dynamic)
    changes: list[Callable[[int, int], int]] = [
        lambda size, index: size + 1 + index,
        lambda size, index: size + 1,
        lambda size, index: size * 2,
        lambda size, index: max(size - 1, 2),
        lambda size, index: size * 4,
    ]
    for change in changes:
        free = {
            name: dim.within(change(size, index))
            for index, (name, (size, dim)) in enumerate(dims.items())
        }
        sizes = {name: dim.size(free) for name, (_, dim) in dims.items()}
        if any(sizes[name] != size for name, (size, _) in dims.items()):
            yield sizes


def _resized(tensors: Tensors, dynamic: Sequence[DynamicAxes], sizes: dict[str, int]) -> Tensors:
    return tuple(
        _repeated(
            tensor, {axis: sizes[dim.name] for axis, dim in axes.items()} if tensor.dim() else {}
        )
        for tensor, axes in zip(tensors, dynamic, strict=True)
    )


def _repeated(tensor: torch.Tensor, sizes: dict[int, int]) -> torch.Tensor:
    for axis, size in sizes.items():
        rows = torch.arange(size, device=tensor.device) % tensor.shape[axis]
        tensor = tensor.index_select(axis, rows)
    return tensor.clone()


def _shuffled(tensors: Tensors) -> Tensors:
    """Other values of the same kind: in another order and, where they are no indices, smaller."""
    return tuple(_other_values(t) for t in tensors)


def _other_values(tensor: torch.Tensor) -> torch.Tensor:
    moved = tensor.flatten().roll(1).view(tensor.shape) if tensor.dim() else tensor.clone()
    return moved * 0.75 if tensor.is_floating_point() else moved


def _first_difference(graph: Any, other: Any, sizes: dict[str, int]) -> Difference | None:
    left, right = list(_nodes(graph)), list(_nodes(other))
    where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    for index, (node, counterpart) in enumerate(zip(left, right, strict=False)):
        if node.kind() != counterpart.kind():
            return Difference(
                index, left[index::-1], f"the model runs other operators where {where}"
            )
        if node.kind() == "prim::Constant":
            value, changed = node.output().toIValue(), counterpart.output().toIValue()
            if not _equal(value, changed):
                text = f"{_short(value)} would be {_short(changed)} where {where}"
                return Difference(index, left[index::-1], text)
    if len(left) != len(right):
        return Difference(len(left), left[::-1], f"the model runs other operators where {where}")
    return None


def _nodes(graph: Any) -> Iterator[Any]:
    """Those inside a torch.autograd.Function too."""
    for node in graph.nodes():
        yield node
        if node.hasAttribute("Subgraph"):
            yield from _nodes(node.g("Subgraph"))


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return type(left) is type(right) and bool(left == right)


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor) and value.numel() > 4:
        return f"a constant of shape {list(value.shape)}"
    return str(value.tolist() if isinstance(value, torch.Tensor) else value)
