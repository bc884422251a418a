"""Size symbols that may be zero, where those of PyTorch are positive."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from sardonyx._torch_private.flags import variable_set

_IN_FULL = contextvars.ContextVar("_IN_FULL", default=False)


def full_maximum(maximum: Callable[..., Any]) -> Callable[..., Any]:
    """A maximum that the program computes keeps the 1 that `stride_maximum` drops."""

    def larger(left: Any, right: Any) -> Any:
        with variable_set(_IN_FULL, True):
            return maximum(left, right)

    return larger


def stride_maximum(maximum: Callable[..., Any]) -> Callable[..., Any]:
    """Max(size, 1) in a stride: the size, which PyTorch assumes to be positive."""

    def larger(left: Any, right: Any) -> Any:
        if not _IN_FULL.get() and getattr(right, "expr", right) == 1 and not isinstance(left, int):
            size = (left.node if isinstance(left, torch.SymInt) else left).expr
            if size.is_nonnegative and not size.is_number:
                return left
        return maximum(left, right)

    return larger


def common_shape_with_open_sizes(infer_size: Callable[..., Any]) -> Callable[..., Any]:
    def common(*shapes: Any) -> tuple[Any, ...]:
        known = _plain_common_shape(shapes)
        return tuple(with_open_sizes(infer_size(*shapes), shapes) if known is None else known)

    return common


def broadcast_to_open_sizes(maybe_broadcast: Callable[..., Any]) -> Callable[..., Any]:
    def broadcast(*args: Any, **kwargs: Any) -> Any:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        shapes = [tensor.shape for tensor in tensors]
        known = _plain_common_shape(shapes)
        if known is not None and all(len(shape) == len(known) for shape in shapes):
            return tuple(
                a.expand(known) if isinstance(a, torch.Tensor) and not _is(a.shape, known) else a
                for a in args
            )
        made = maybe_broadcast(*args, **kwargs)
        common = max((m.shape for m in made if isinstance(m, torch.Tensor)), key=len, default=())
        sizes = with_open_sizes(common, shapes)
        if not any(isinstance(size, torch.SymInt) for size in sizes):
            return made
        return [
            m.expand(sizes) if isinstance(m, torch.Tensor) and m.dim() == len(sizes) else m
            for m in made
        ]

    return broadcast


def _plain_common_shape(shapes: Sequence[Sequence[Any]]) -> list[Any] | None:
    """The common shape where no size has to be compared with 1: each axis has one size, apart from
    the number 1."""
    sizes: list[Any] = []
    for axis in range(-max(map(len, shapes), default=0), 0):
        met = {_expression(shape[axis]): shape[axis] for shape in shapes if len(shape) >= -axis}
        if len(met) > 1:
            met.pop(1, None)
        if len(met) > 1:
            return None
        sizes.extend(met.values())
    return sizes


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _is(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(
        _expression(size) == _expression(wanted) for size, wanted in zip(shape, other, strict=True)
    )


def with_open_sizes(common: Sequence[Any], shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """The common shape, with sizes that PyTorch takes for 1 but that are 0 where x is empty: the
    rows of x[:1], Min(1, n). Of sizes that it takes for equal, the simpler one is kept: table[:n]
    that is broadcast with n rows has n rows, or PyTorch raises."""
    sizes = list(common)
    for axis in range(-len(sizes), 0):
        met = [shape[axis] for shape in shapes if len(shape) >= -axis]
        open_sizes = {m.node.expr: m for m in met if isinstance(m, torch.SymInt)}
        if isinstance(sizes[axis], torch.SymInt):
            fixed = (m for m in met if isinstance(m, int) and m > 1)
            asked = open_sizes.get(if_it_fits(sizes[axis].node.expr), sizes[axis])
            sizes[axis] = next(fixed, asked)
        elif sizes[axis] == 1:
            for size in open_sizes.values():
                sizes[axis] *= size
    return sizes


@functools.cache
def if_it_fits(length: Any) -> Any:
    """The length of a slice of a dim that is long enough for it: n for Min(16, n)."""
    from torch.utils._sympy.functions import Min

    cuts = {}
    for cut in length.atoms(Min):
        limits = [a for a in cut.args if a.is_Integer and a > 1]
        asked = [a for a in cut.args if not a.is_number]
        if len(limits) == len(asked) == 1 and len(cut.args) == 2:
            cuts[cut] = asked[0]
    return length.xreplace(cuts) if cuts else length


def with_requested_sizes(made: Any, shape: Sequence[Any]) -> Any:
    """A reshaped tensor with the numbers among the requested sizes."""
    from torch import _prims_common

    known = {
        size.node.expr: sympy.Integer(asked)
        for size, asked in zip(made.shape, shape, strict=True)
        if isinstance(size, torch.SymInt) and isinstance(asked, int) and asked >= 0
    }
    if not known:
        return made
    sizes = [_with_known(size, known) for size in made.shape]
    # The layout of the result adds no guards.
    with made.fake_mode.shape_env.suppress_guards():
        strides = (
            _prims_common.make_contiguous_strides_for(sizes)
            if made.is_contiguous()
            else [_with_known(stride, known) for stride in made.stride()]
        )
        return made.as_strided(sizes, strides)


def _with_known(number: Any, known: dict[Any, sympy.Integer]) -> Any:
    if not isinstance(number, torch.SymInt):
        return number
    node = number.node
    expression = node.expr.xreplace(known)
    if expression.is_number:
        return int(expression)
    return node.shape_env.create_symintnode(expression, hint=node.hint)
