"""Matrix products and what is built on them."""

from __future__ import annotations

import struct
from functools import cache, partial, reduce

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.contraction import Labelled, contract, diagonal, matmul
from sardonyx.lower.kernels.elementwise import rounded_once
from sardonyx.lower.kernels.reductions import accumulate
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Ints, Scalar, Tensor

# -- products --------------------------------------------------------------------------------------


@lowering("aten::linear")
def linear(b: Builder, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.rank == 2 and _fits_gemm(input):
        return b.Gemm(input, weight, bias, transB=1)
    # The transpose of a weight is a node: runtimes fold it when they load the model.
    result = matmul(b, input, b.transpose(weight, [1, 0] if weight.rank == 2 else [0]))
    return result if bias is None else b.Add(result, bias)


@lowering("aten::matmul", "aten::linalg_matmul")
@lowering("aten::mv", renamed={"vec": "other"})
@lowering("aten::dot", renamed={"tensor": "other"})
def matmul_(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return matmul(b, self, other)


@lowering("aten::mm", "aten::bmm", "aten::mm.dtype", "aten::bmm.dtype")
def mm(b: Builder, self: Tensor, mat2: Tensor, out_dtype: torch.dtype | None = None) -> Tensor:
    return matmul(b, b.cast(self, out_dtype), b.cast(mat2, out_dtype))


@lowering("aten::linalg_multi_dot")
def linalg_multi_dot(b: Builder, tensors: list[Tensor]) -> Tensor:
    first, last = tensors[0], tensors[-1]
    ends = [first if first.rank == 2 else b.unsqueeze(first, [0])]
    ends.append(last if last.rank == 2 else b.unsqueeze(last, [1]))
    product = _chain(b, [ends[0], *tensors[1:-1], ends[1]])
    return b.squeeze(product, [axis for axis, end in enumerate((first, last)) if end.rank == 1])


def _chain(b: Builder, matrices: list[Tensor]) -> Tensor:
    """The product of matrices, in the order that takes the fewest multiplications. Where that
    depends on dynamic sizes: from the right to the left if the last has one column."""
    sizes = [m.static_dim(0) for m in matrices] + [matrices[-1].static_dim(1)]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        if sizes[-1] == 1:
            return reduce(lambda right, left: matmul(b, left, right), reversed(matrices))
        return reduce(partial(matmul, b), matrices)

    @cache
    def best(start: int, end: int) -> tuple[int, int]:
        """The cost of matrices `start` to `end`, and before which of them to cut."""
        if end - start == 1:
            return 0, start
        return min(
            (best(start, k)[0] + best(k, end)[0] + known[start] * known[k] * known[end], k)
            for k in range(start + 1, end)
        )

    def product(start: int, end: int) -> Tensor:
        if end - start == 1:
            return matrices[start]
        cut = best(start, end)[1]
        return matmul(b, product(start, cut), product(cut, end))

    return product(0, len(matrices))


@lowering("aten::_int_mm")
def int_mm(b: Builder, self: Tensor, mat2: Tensor) -> Tensor:
    return b.MatMulInteger(self, mat2)


# -- beta * input + alpha * product ----------------------------------------------------------------


@lowering("aten::addmm", "aten::addmm.dtype")
def addmm(
    b: Builder,
    self: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: torch.dtype | None = None,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> Tensor:
    self, mat1, mat2 = (b.cast(x, out_dtype) for x in (self, mat1, mat2))
    keeps_beta = beta in (0, 1) or mat1.static_dim(1) is not None
    is_exact = all(_is_exact_attribute(f, mat1.dtype) for f in (alpha, beta))
    if _fits_gemm(mat1) and keeps_beta and is_exact:
        added = None if beta == 0 else self  # at beta = 0 even NaN is not added
        return b.Gemm(mat1, mat2, added, alpha=alpha, beta=beta)
    dtype = self.dtype
    self, mat1, mat2 = rounded_once(b, (self, mat1, mat2))
    return b.cast(_combined(b, self, matmul(b, mat1, mat2), beta, alpha), dtype)


@lowering("aten::addbmm")
def addbmm(
    b: Builder, self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    dtype = self.dtype
    self, batch1, batch2 = rounded_once(b, (self, batch1, batch2))
    total = accumulate(b, "ReduceSum", matmul(b, batch1, batch2), 0)
    return b.cast(_combined(b, self, total, beta, alpha), dtype)


@lowering("aten::addmv")
def addmv(
    b: Builder, self: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    dtype = self.dtype
    if beta not in (0, 1):  # a separate product, which is rounded
        self, beta = b.Mul(self, b.scalar(beta, dtype)), 1
    self, mat, vec = rounded_once(b, (self, mat, vec))
    factor: Tensor | Scalar = alpha if alpha == 1 else b.scalar(alpha, dtype)
    return b.cast(_combined(b, self, matmul(b, mat, vec), beta, factor), dtype)


def _combined(
    b: Builder, added: Tensor, product: Tensor, beta: Scalar, alpha: Tensor | Scalar
) -> Tensor:
    if isinstance(alpha, Tensor) or alpha != 1:
        product = b.Mul(product, b.scalar(alpha, product.dtype))
    if beta == 0:
        return product
    if beta != 1:
        added = b.Mul(added, b.scalar(beta, added.dtype))
    return b.Add(added, product)


def _fits_gemm(matrix: Tensor) -> bool:
    """ONNX Runtime has no Gemm of integers, and forgets beta where there is nothing to sum."""
    return matrix.rank == 2 and matrix.is_floating_point and matrix.static_dim(1) != 0


def _is_exact_attribute(factor: Scalar, dtype: torch.dtype) -> bool:
    """Whether an ONNX attribute, a float32, holds the factor as well as the computation would."""
    if not isinstance(factor, (int, float)):
        return False
    return dtype != torch.float64 or struct.unpack("f", struct.pack("f", factor))[0] == factor


# -- sums of products ------------------------------------------------------------------------------


@lowering("aten::einsum")
def einsum(b: Builder, equation: str, tensors: list[Tensor], *, path: Ints | None = None) -> Tensor:
    # `path` is the order of the products: it changes the time they take, not what they are.
    subscripts, _, given = equation.replace(" ", "").partition("->")
    terms = subscripts.split(",")
    ellipses = [x.rank - len(t.replace("...", "")) for t, x in zip(terms, tensors, strict=True)]
    longest = max((e for t, e in zip(terms, ellipses, strict=True) if "..." in t), default=0)
    labels = [_labels(t, e) for t, e in zip(terms, ellipses, strict=True)]
    if "->" in equation:
        output = _labels(given, longest)
    else:
        letters = [label for term in labels for label in term if label >= 0]
        once = sorted(label for label in set(letters) if letters.count(label) == 1)
        output = [*range(-longest, 0), *once]
    everywhere = [label for term in labels for label in {*term}]
    if any(everywhere.count(label) == 1 and label not in output for label in everywhere):
        # What only one operand has is summed before any product, and integers as in any sum.
        tensors = [b.cast(x, type_promotion.sum_dtype(x.dtype)) for x in tensors]
    operands = [_on_diagonals(b, x, term) for x, term in zip(tensors, labels, strict=True)]
    return contract(b, operands, output)


def _labels(term: str, ellipsis: int) -> list[int]:
    """A letter is labelled by its code point, the axes of `...` by -1, -2, ... from the right."""
    before, dots, after = term.partition("...")
    middle = range(-ellipsis, 0) if dots else ()
    return [*map(ord, before), *middle, *map(ord, after)]


def _on_diagonals(b: Builder, x: Tensor, labels: list[int]) -> Labelled:
    labels = list(labels)
    while len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        first = labels.index(repeated)
        second = labels.index(repeated, first + 1)
        x = diagonal(b, x, first, second)
        del labels[second], labels[first]
        labels.append(repeated)
    return Labelled(x, tuple(labels))


@lowering("aten::bilinear")
def bilinear(
    b: Builder, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    batch = tuple(range(input1.rank - 1))
    out, in1, in2 = 100, 101, 102
    result = contract(
        b,
        [
            Labelled(input1, (*batch, in1)),
            Labelled(weight, (out, in1, in2)),
            Labelled(input2, (*batch, in2)),
        ],
        [*batch, out],
    )
    return result if bias is None else b.Add(result, bias)
