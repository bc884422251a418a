"""Which elements of a piece of memory a view shows: their numbers in it, computed.

Views that lie where only a block knows are told outside by these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from sardonyx.aten.graph import Argument, Dim, Value
from sardonyx.functionalization.storage_model import Chain
from sardonyx.functionalization.views import VIEWS, Emit, Link, Positions, ViewLink, apply


def can_be_located(chain: Chain) -> bool:
    """Whether the view shows elements of its base, and each of them once."""
    return all(map(_shows_elements, chain)) and not has_several_items(chain)


def has_several_items(chain: Chain) -> bool:
    """Whether it is a list of views, or a part of one that need not be a single item."""
    if not chain or not isinstance(chain[0], Positions) or not chain[0].may_repeat:
        return False
    for link in chain[1:]:
        if not isinstance(link, ViewLink) or link.arguments.get("dim") != 0:
            break
        if link.name in ("aten::select", "aten::unbind"):
            return False
        if link.name != "aten::slice":
            break
    return True


def _shows_elements(link: Link) -> bool:
    if isinstance(link, ViewLink):
        is_other = link.name in _COMPUTE_ELEMENTS or "dtype" in link.arguments
        return link.name in VIEWS and not is_other and not link.shows_elements_again
    return isinstance(link, Positions)


def positions(emit: Emit, shape: Sequence[Dim], chain: Chain) -> Value:
    """The numbers of the elements that a view shows, of memory of a shape."""
    if chain and isinstance(chain[0], Positions):
        found, rest = chain[0].numbers, chain[1:]
    else:
        axes = _Axes(emit, shape)
        taken = 0
        while taken < len(chain) and axes.take(chain[taken]):
            taken += 1
        found, rest = axes.sums(), chain[taken:]
    for link in rest:
        found = apply(emit, link, found)
    return found


class _Axes:
    """What each place along an axis of a view adds to the number of an element: of a row in a
    large table, what is computed is as large as the axes of the table, not as the table."""

    def __init__(self, emit: Emit, shape: Sequence[Dim]) -> None:
        self._emit = emit
        self._start: list[Value] = []
        """Numbers that all elements have in common."""
        self._axes = [
            self._steps(size, math.prod(shape[axis + 1 :])) for axis, size in enumerate(shape)
        ]

    def _steps(self, count: Dim, step: Dim) -> Value:
        along = self._emit(torch.ops.aten.arange.default, count, dtype=torch.int64)
        return along if step == 1 else self._emit(torch.ops.aten.mul.Scalar, along, step)

    def take(self, link: Link) -> bool:
        """Whether the view is one of each axis for itself, and was taken."""
        if not isinstance(link, ViewLink):
            return False
        rank, given = len(self._axes), link.arguments
        match link.name.removeprefix("aten::"):
            case "alias" | "detach" | "lift_fresh":
                pass
            case "select":
                self._select(given["dim"], given["index"])
            case "unbind":
                self._select(given["dim"], link.index)
            case (
                "slice" | "split" | "split_with_sizes" | "unsafe_split" | "unsafe_split_with_sizes"
            ):
                axis = given["dim"] % rank
                others = {**link.others(), "dim": 0}
                self._axes[axis] = self._emit(
                    link.op, self._axes[axis], result_index=link.index, **others
                )
            case "unsqueeze":
                self._axes.insert(given["dim"] % (rank + 1), self._steps(1, 1))
            case "permute":
                self._axes = [self._axes[axis % rank] for axis in given["dims"]]
            case "transpose" if rank and "dim0" in given:
                left, right = given["dim0"] % rank, given["dim1"] % rank
                self._axes[left], self._axes[right] = self._axes[right], self._axes[left]
            case "t":
                self._axes.reverse()
            case _:
                return False
        return True

    def _select(self, dim: int, index: Argument) -> None:
        axis = self._axes.pop(dim % len(self._axes))
        self._start.append(self._emit(torch.ops.aten.select.int, axis, 0, index))

    def sums(self) -> Value:
        rank, parts = len(self._axes), list(self._start)
        for place, axis in enumerate(self._axes):
            shape = [axis.shape[0] if place == other else 1 for other in range(rank)]
            is_line = rank == 1
            parts.append(
                axis if is_line else self._emit(torch.ops.aten.reshape.default, axis, shape)
            )
        if not parts:
            return self._emit(torch.ops.aten.full.default, [], 0, dtype=torch.int64)
        total = parts[0]
        for part in parts[1:]:
            total = self._emit(torch.ops.aten.add.Tensor, total, part)
        return total


_COMPUTE_ELEMENTS = frozenset(
    f"aten::{name}" for name in ("view_as_real", "view_as_complex", "_neg_view", "_conj")
)
"""Views whose elements are others than those of their source."""
