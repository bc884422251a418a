"""How a call with complex arguments or results is lowered.

Few operators need a form of their own (`@complex_lowering`); for the others a table says how the
form they have for real tensors serves the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sardonyx.capture.bind import default_arguments
from sardonyx.capture.graph import Node
from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor
from sardonyx.lower.registry import COMPLEX_LIBRARY, Refusal, Registry, select_arguments
from sardonyx.lower.values import Tensor

CallReal = Callable[[dict[str, Any]], Any]
"""The lowering for real tensors, called with these arguments."""


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in text.split())


PARTWISE = _names(
    # the same values, moved or repeated
    "view view_copy view_as _unsafe_view _reshape_alias _reshape_alias_copy _reshape_copy reshape"
    " reshape_as flatten.using_ints unflatten.int ravel squeeze squeeze.dim squeeze.dims"
    " squeeze_copy squeeze_copy.dim squeeze_copy.dims unsqueeze unsqueeze_copy"
    " permute permute_copy transpose.int transpose_copy.int t t_copy numpy_T numpy_T.a mT mT.a"
    " swapaxes swapdims movedim.int movedim.intlist moveaxis.int moveaxis.intlist"
    " expand expand_as expand_copy broadcast_to broadcast_tensors repeat tile"
    " repeat_interleave.self_Tensor repeat_interleave.self_int roll rot90 flip fliplr flipud"
    " as_strided as_strided_copy as_strided_scatter unfold unfold_copy im2col"
    " atleast_1d atleast_2d atleast_3d atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence"
    " pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle"
    # selection and joining
    " select.int select_copy.int slice.Tensor slice_copy.Tensor narrow narrow.Tensor narrow_copy"
    " split split.Tensor split.sizes split_copy.Tensor split_with_sizes split_with_sizes_copy"
    " unsafe_split.Tensor unsafe_split_with_sizes chunk unsafe_chunk tensor_split.sections"
    " tensor_split.indices tensor_split.tensor_indices_or_sections hsplit.int hsplit.array"
    " vsplit.int vsplit.array dsplit.int dsplit.array unbind.int unbind_copy.int"
    " index.Tensor index.Tensor_hacked_twin _unsafe_index.Tensor _unsafe_index.Tensor_hacked_twin"
    " index_select gather take take_along_dim masked_select"
    " cat concat concatenate stack _stack hstack vstack dstack row_stack column_stack block_diag"
    " meshgrid meshgrid.indexing cartesian_prod combinations"
    " where.self where.ScalarOther where.ScalarSelf where.Scalar"
    " diag diag_embed diagflat diagonal diagonal_copy linalg_diagonal tril triu"
    # writes
    " masked_fill.Scalar masked_fill.Tensor masked_scatter fill.Scalar fill.Tensor zero"
    " index_put index_put.hacked_twin _index_put_impl _unsafe_index_put"
    " _unsafe_index_put.hacked_twin index_copy index_fill.int_Scalar index_fill.int_Tensor"
    " scatter.src scatter.value scatter_add index_add put"
    " select_scatter slice_scatter diagonal_scatter"
    # padding
    " constant_pad_nd pad _pad_enum _pad_circular reflection_pad1d reflection_pad2d"
    " reflection_pad3d replication_pad1d replication_pad2d replication_pad3d col2im"
    # sums
    " neg negative _neg_view _neg_view_copy sum sum.dim_IntList mean mean.dim cumsum trace"
    " deg2rad rad2deg"
    # made from sizes and numbers
    " zeros zeros_like new_zeros empty.memory_format empty_like new_empty empty_strided"
    " empty_permuted new_empty_strided full full_like new_full scalar_tensor"
    " rand rand.generator rand_like rand_like.generator uniform"
    " linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor"
)
"""Each part goes its own way, as if the other were not there."""

_CONTENT = frozenset(
    {"self", "other", "tensors", "src", "source", "values", "value", "fill_value", "s", "tensor"}
)
_LINE = _names("linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
_MOVES = _names("movedim.int movedim.intlist moveaxis.int moveaxis.intlist")  # `source` is a dim
_CONTENT_OF = {
    **dict.fromkeys(_LINE, frozenset({"start", "end"})),
    **dict.fromkeys(_MOVES, frozenset({"self"})),
}
"""Arguments of those that hold values of the result; a real one has an imaginary part of zeros."""

OF_THE_REAL_PART = _names("ones ones_like new_ones eye eye.m")
"""Numbers that are real, in a complex dtype."""

NORMAL = _names("randn randn.generator randn_like randn_like.generator")
"""A variance of 1, half of it in each part."""

OF_THE_MAGNITUDE = _names(
    "linalg_vector_norm norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype"
    " norm.ScalarOpt_dtype frobenius_norm.dim"
)

OF_THE_TRUTH = _names(
    "logical_not logical_and logical_or logical_xor any any.dim any.dims all all.dim all.dims"
    " nonzero nonzero_numpy nonzero_static argwhere count_nonzero count_nonzero.dim_IntList"
)
"""They ask only whether an element is zero."""

BILINEAR = {
    **{
        f"aten::{name}": ("self", "other")
        for name in ("matmul", "linalg_matmul", "inner", "tensordot", "cross", "linalg_cross")
    },
    **{f"aten::{name}": ("self", "mat2") for name in ("mm", "bmm")},
    **{f"aten::{name}": ("self", "vec2") for name in ("outer", "ger")},
    "aten::mv": ("self", "vec"),
    "aten::dot": ("self", "tensor"),
}
"""Sums of products of two arguments."""


def is_complex_call(node: Node) -> bool:
    values = (*node.outputs, *node.inputs())
    return any(v.dtype.is_complex for v in values) or complex in map(type, node.arguments.values())


def has_complex_form(name: str, library: Registry) -> bool:
    if name in COMPLEX_LIBRARY:
        return True
    tables = (PARTWISE, OF_THE_REAL_PART, NORMAL, OF_THE_MAGNITUDE, OF_THE_TRUTH, BILINEAR)
    return name in library and any(name in table for table in tables)


def lower_complex_call(
    b: Builder, node: Node, arguments: dict[str, Any], call_real: CallReal
) -> Any:
    """The results of a call that `has_complex_form`."""
    if any(v.dtype == torch.complex32 for v in (*node.inputs(), *node.outputs)):
        raise Refusal("complex numbers of half precision have no ONNX form")
    own = COMPLEX_LIBRARY.get(node.name)
    if own is not None:
        selected = select_arguments(own, arguments, default_arguments(node.op))
        return own.function(b, **selected)
    if node.name in OF_THE_MAGNITUDE:
        return call_real(_each(arguments, lambda z: arithmetic.magnitude(b, z)))
    if node.name in OF_THE_TRUTH:
        return call_real(_each(arguments, lambda z: arithmetic.is_nonzero(b, z)))
    if node.name in BILINEAR:
        return _bilinear(b, BILINEAR[node.name], arguments, call_real)
    content = _CONTENT_OF.get(node.name, _CONTENT)
    real = call_real(_parts(b, arguments, content, "real"))
    if not any(v.dtype.is_complex for v in node.outputs):
        return real
    if node.name in OF_THE_REAL_PART:
        return ComplexTensor(real, b.zeros_like(real))
    joined = _joined(node, real, call_real(_parts(b, arguments, content, "imag")))
    return arithmetic.scale(b, joined, 0.5**0.5) if node.name in NORMAL else joined


def _joined(node: Node, real: Any, imag: Any) -> Any:
    if not isinstance(real, (list, tuple)):
        return ComplexTensor(real, imag)
    return [
        ComplexTensor(*parts) if value.dtype.is_complex else parts[0]
        for value, *parts in zip(node.outputs, real, imag, strict=True)
    ]


def _parts(
    b: Builder, arguments: dict[str, Any], content: frozenset[str], part: str
) -> dict[str, Any]:
    return {
        name: _part(b, name, argument, part, content=name in content)
        for name, argument in arguments.items()
    }


def _part(b: Builder, name: str, argument: Any, part: str, *, content: bool) -> Any:
    if isinstance(argument, ComplexTensor):
        return argument.real if part == "real" else argument.imag
    if isinstance(argument, list):
        return [
            _part(b, name, item, part, content=content and isinstance(item, Tensor))
            for item in argument
        ]
    if isinstance(argument, torch.dtype):
        return argument.to_real() if argument.is_complex else argument
    if not content:
        if isinstance(argument, complex):
            raise Refusal(f"{name}={argument} is complex, which has no ONNX form here")
        return argument
    if isinstance(argument, complex):
        return argument.real if part == "real" else argument.imag
    if part == "real" or argument is None:
        return argument
    return b.zeros_like(argument) if isinstance(argument, Tensor) else 0


def _each(arguments: dict[str, Any], function: Callable[[ComplexTensor], Tensor]) -> dict[str, Any]:
    def mapped(name: str, argument: Any) -> Any:
        if isinstance(argument, ComplexTensor):
            return function(argument)
        if isinstance(argument, torch.dtype) and argument.is_complex:
            return argument.to_real()
        if isinstance(argument, complex):
            raise Refusal(f"{name}={argument} is complex, which has no ONNX form here")
        return argument

    return {name: mapped(name, argument) for name, argument in arguments.items()}


def _bilinear(
    b: Builder, names: tuple[str, str], arguments: dict[str, Any], call_real: CallReal
) -> ComplexTensor:
    def product(x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = call_real({**arguments, names[0]: x, names[1]: y})
        return result

    left, right = arithmetic.promoted(b, *(arguments[name] for name in names))
    return arithmetic.bilinear(b, product, left, right)
