"""Sizes to record dynamic dims with: 0 and 1, which PyTorch treats as special, stand for no others.

Dims may follow from each other, as the length of a mask does from those of the past and the new
tokens: then all of them have to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import torch

from sardonyx.aten.signature import DynamicAxes, DynamicDim

SMALLEST_OF_ALL = 4
Follows = Mapping[str, tuple[str, ...]]
"""By the name of a dim, those of which it is the sum, but for a number."""


def with_generic_sizes(
    leaves: Sequence[Any],
    dynamic: Sequence[DynamicAxes],
    smallest: int = 2,
    times: int = 1,
    follows: Follows | None = None,
) -> tuple[Any, ...]:
    follows = follows or {}
    wanted = _generic_sizes(leaves, dynamic, smallest, times, follows)
    return tuple(map(_generic_number, with_sizes(leaves, dynamic, wanted, follows)))


def with_sizes(
    leaves: Sequence[Any],
    dynamic: Sequence[DynamicAxes],
    wanted: Mapping[str, int],
    follows: Follows,
) -> tuple[Any, ...]:
    """With these sizes of dims, by name, and those that follow from them."""
    dims = named_dims(leaves, dynamic)
    sizes = {n: dims[n][0].within(size) if n in dims else size for n, size in wanted.items()}
    for name, parts in follows.items():
        dim, size = dims[name]
        more = sum(sizes.get(part, dims[part][1]) - dims[part][1] for part in parts)
        sizes[name] = dim.within(size + more)
    known = {**{name: size for name, (_, size) in dims.items()}, **sizes}
    for name, (dim, _) in dims.items():
        if any(root in sizes for root in dim.roots):
            known[name] = dim.size(known)
    return tuple(
        _resized(leaf, axes, known) if isinstance(leaf, torch.Tensor) else leaf
        for leaf, axes in zip(leaves, dynamic, strict=True)
    )


def _generic_number(leaf: Any) -> Any:
    """PyTorch fixes the integers 0 and 1, too."""
    return 3 if type(leaf) is int and leaf in (0, 1) else leaf


def named_dims(
    leaves: Sequence[Any], dynamic: Sequence[DynamicAxes]
) -> dict[str, tuple[DynamicDim, int]]:
    """With their sizes in the example."""
    dims: dict[str, tuple[DynamicDim, int]] = {}
    for leaf, axes in zip(leaves, dynamic, strict=True):
        if isinstance(leaf, torch.Tensor):
            dims.update({dim.name: (dim, leaf.shape[axis]) for axis, dim in axes.items()})
    return dims


def _generic_sizes(
    leaves: Sequence[Any],
    dynamic: Sequence[DynamicAxes],
    smallest: int,
    times: int,
    follows: Follows,
) -> dict[str, int]:
    """By name, the sizes to record dims with whose example size is less than `smallest`, and
    those of the others where they are to be some times as large."""
    dims = named_dims(leaves, dynamic)
    free = [item for dim, size in dims.values() for item in dim.free_dims(size).items()]
    special = {name for name, size in free if size < smallest}
    taken = {d for leaf in leaves if isinstance(leaf, torch.Tensor) for d in leaf.shape}
    # Models that halve a dim or take it by threes go on doing so at the larger sizes.
    candidates = (3, 5, 7, 11, 13, 17, 19, 23) if smallest == 2 else (6, 12, 18, 24, 30, 36)
    generic = next((n for n in candidates if n not in taken), candidates[-1])
    enlarged = {
        name: dims[name][0].within(generic) if name in dims else generic
        for name in special
        if name not in follows
    }
    if times > 1:
        for name, (dim, size) in dims.items():
            if name not in enlarged and name not in follows and dim.derive is None:
                enlarged[name] = dim.within(size * times)
    return enlarged


def _resized(leaf: torch.Tensor, axes: DynamicAxes, sizes: dict[str, int]) -> torch.Tensor:
    resized = leaf
    for axis, dim in axes.items():
        size = sizes.get(dim.name, leaf.shape[axis])
        if size != leaf.shape[axis]:
            shape = [size if a == axis else d for a, d in enumerate(resized.shape)]
            repeats = torch.arange(size, device=leaf.device) % max(leaf.shape[axis], 1)
            resized = (
                resized.index_select(axis, repeats)
                if leaf.shape[axis]
                else resized.new_zeros(shape)
            )
    return resized


_MOST_PARTS = 3


def possible_sums(leaves: Sequence[Any], dynamic: Sequence[DynamicAxes]) -> Iterator[Follows]:
    """Dims that may be sums of others, the likeliest first. Dims of one size are recorded with one
    size, so that one of them stands for each as a part, and those larger than 1 are tried at
    once."""
    sizes = {
        name: size for name, (d, size) in named_dims(leaves, dynamic).items() if d.derive is None
    }
    special = {size: name for name, size in sizes.items() if size < 2}
    sums = [[name for name, size in sizes.items() if size == total] for total in sizes.values()]
    groups = [group for group in sums if sizes[group[0]] > 1]
    groups += [[name] for name in sizes]
    unique = list(dict.fromkeys(map(tuple, groups)))
    for count in range(1, _MOST_PARTS + 1):
        for parts in combinations_with_replacement(sorted(special, reverse=True), count):
            for group in unique:
                others = {n: s for n, s in sizes.items() if n not in group}
                names = tuple(_one_of_size(part, others) for part in parts)
                if None not in names:
                    # The rest of the sum, if it is a dim of the example: it may be doubled, too.
                    rest = sizes[group[0]] - sum(parts)
                    more = _one_of_size(rest, others) if rest > 1 else None
                    known = tuple(n for n in (*names, more) if n is not None)
                    yield dict.fromkeys(group, known)


def _one_of_size(size: int, sizes: Mapping[str, int]) -> str | None:
    return next((name for name, other in sizes.items() if other == size), None)
