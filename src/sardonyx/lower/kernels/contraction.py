"""Sums of products over labelled axes: the calculus behind einsum and tensordot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from sardonyx.aten.graph import Dim
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.arithmetic import bilinear
from sardonyx.lower.kernels.matrices import zeros_of_product
from sardonyx.lower.kernels.reductions import accumulate, may_be_empty
from sardonyx.lower.onnx_types.shapes import broadcast_shapes
from sardonyx.lower.values import Tensor, product_of

_SMALL_INTEGERS = (torch.int8, torch.uint8, torch.int16)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A tensor and a label for each of its axes; no label twice."""

    tensor: Tensor
    labels: tuple[int, ...]


def matmul(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    """numpy's matmul; integers that runtimes cannot multiply go through int32 and wrap alike."""
    if left.is_complex or right.is_complex:
        # ONNX Runtime fuses a sum of two empty products of vectors, and then does not run.
        return bilinear(b, partial(matmul, b), left, right)
    if right.rank == 1 and may_be_empty(left, None):
        # ONNX Runtime leaves the product with a vector unset, or does not run, where there is
        # nothing to sum or no row; that with a column it computes.
        return b.squeeze(matmul(b, left, b.unsqueeze(right, [1])), [-1])
    if left.rank == 1 and right.rank > 2 and may_be_empty(right, None):
        # The same goes for a batch of matrices: their columns as those of one matrix.
        batch = tuple(range(right.rank - 2))
        row, column = right.rank - 2, right.rank - 1
        operands = [Labelled(left, (row,)), Labelled(right, (*batch, row, column))]
        return contract(b, operands, [*batch, column])
    if left.rank > 1 and right.rank > 2 and left.static_dim(-1) is None:
        stack = broadcast_shapes((left.shape or ())[:-2], (right.shape or ())[:-2]) or ()
        product = _product(b, _repeated_if_empty(b, left, right), right)
        return b.with_shape(product, [*stack, left.dim(-2), right.dim(-1)])
    if left.rank > 1 and right.rank > 1 and left.static_dim(-1) == 0:
        # ONNX Runtime leaves all but the first of a batch of such products unset.
        return zeros_of_product(b, left, right)
    return _product(b, left, right)


def _product(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    if left.dtype in _SMALL_INTEGERS:
        product = b.MatMul(b.cast(left, torch.int32), b.cast(right, torch.int32))
        return b.cast(product, left.dtype)
    return b.MatMul(left, right)


def _repeated_if_empty(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    """The left matrices once for each of the right's where that repeats no element: for nothing to
    sum ONNX Runtime forgets to do so, and for no matrices on the right it does not run."""
    if left.rank > right.rank:
        return left
    axes = range(-right.rank, -2)
    own = [1 if axis < -left.rank else left.dim(axis) for axis in axes]
    batch = [right.dim(axis) if size == 1 else size for axis, size in zip(axes, own, strict=True)]
    if batch == own:
        return left
    matrix = b.dims(left)[-2:]
    kept = (
        b.shape(own)
        if all(isinstance(d, int) and d for d in batch)
        else b.Min(b.shape(batch), b.shape(own))
    )
    repeats = b.Where(b.Equal(b.size(matrix[1]), 0), b.shape(batch), kept)
    repeated = b.Expand(left, b.Concat(repeats, [1, 1], axis=0))
    unknown = [size if size == repeat else None for size, repeat in zip(own, batch, strict=True)]
    return b.with_shape(repeated, [*unknown, *matrix])


def contract(b: Builder, operands: Sequence[Labelled], output: Sequence[int]) -> Tensor:
    """Multiply the operands, sum over every label that `output` lacks, order axes as `output`."""
    operands = [_without_lone_ones(b, o, operands) for o in operands]
    product = operands[0]
    for position, operand in enumerate(operands[1:], start=1):
        later = {label for o in operands[position + 1 :] for label in o.labels}
        product = _multiplied(b, product, operand, later | set(output))
    product = _summed(b, product, keep=set(output))
    return _ordered(b, product, output)


def diagonal(b: Builder, x: Tensor, first: int, second: int) -> Tensor:
    """The main diagonal of two axes of equal size, as a new last axis."""
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    x = b.transpose(x, [*rest, first, second])
    size = x.dim(-1)
    flat = b.reshape(x, [*(x.dim(a) for a in range(len(rest))), product_of([size, size])])
    end: Dim = 2**63 - 1
    result = b.Slice(flat, [0], [end], [len(rest)], [size + 1])
    return b.with_shape(result, [*(x.dim(a) for a in range(len(rest))), size])


def _without_lone_ones(b: Builder, operand: Labelled, everyone: Sequence[Labelled]) -> Labelled:
    """Drops axes of size 1 whose label is longer elsewhere: they broadcast."""
    lone = [
        axis
        for axis, label in enumerate(operand.labels)
        if operand.tensor.dim(axis) == 1
        and any(
            label in other.labels and other.tensor.dim(other.labels.index(label)) != 1
            for other in everyone
        )
    ]
    if not lone:
        return operand
    labels = tuple(label for axis, label in enumerate(operand.labels) if axis not in lone)
    return Labelled(b.squeeze(operand.tensor, lone), labels)


def _summed(b: Builder, operand: Labelled, keep: set[int]) -> Labelled:
    axes = [axis for axis, label in enumerate(operand.labels) if label not in keep]
    if not axes:
        return operand
    total = accumulate(b, "ReduceSum", operand.tensor, axes)
    return Labelled(total, tuple(label for label in operand.labels if label in keep))


def _ordered(b: Builder, operand: Labelled, labels: Sequence[int]) -> Tensor:
    return b.transpose(operand.tensor, [operand.labels.index(label) for label in labels])


def _multiplied(b: Builder, left: Labelled, right: Labelled, wanted: set[int]) -> Labelled:
    """left * right, summed over the labels that nobody wants."""
    left = _summed(b, left, keep=wanted | set(right.labels))
    right = _summed(b, right, keep=wanted | set(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    summed = [label for label in shared if label not in wanted]
    batch = [label for label in shared if label in wanted]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    if not summed:
        return _broadcastproduct_of(b, left, right, batch + rows + columns)
    sizes = _sizes(left) | _sizes(right)
    matrices = matmul(
        b,
        _grouped(b, left, batch, rows, summed, sizes),
        _grouped(b, right, batch, summed, columns, sizes),
    )
    labels = (*batch, *rows, *columns)
    return Labelled(b.reshape(matrices, [sizes[label] for label in labels]), labels)


def _broadcastproduct_of(
    b: Builder, left: Labelled, right: Labelled, labels: Sequence[int]
) -> Labelled:
    factors = []
    for operand in (left, right):
        held = [label for label in labels if label in operand.labels]
        missing = [axis for axis, label in enumerate(labels) if label not in operand.labels]
        factors.append(b.unsqueeze(_ordered(b, operand, held), missing))
    return Labelled(b.Mul(*factors), tuple(labels))


def _grouped(
    b: Builder,
    operand: Labelled,
    batch: Sequence[int],
    rows: Sequence[int],
    columns: Sequence[int],
    sizes: dict[int, Dim],
) -> Tensor:
    """The operand as a batch of matrices (*batch, rows, columns)."""
    ordered = _ordered(b, operand, [*batch, *rows, *columns])
    dims = [sizes[label] for label in batch]
    return b.reshape(
        ordered, [*dims, *(product_of([sizes[i] for i in group]) for group in (rows, columns))]
    )


def _sizes(operand: Labelled) -> dict[int, Dim]:
    return {label: operand.tensor.dim(axis) for axis, label in enumerate(operand.labels)}
