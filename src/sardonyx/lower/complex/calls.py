"""Which operators take or give complex tensors, and how such a call is lowered.

The lowerings serve them as they serve real tensors, since the builder writes each operator on
complex tensors as operators on the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sardonyx.aten.graph import Node
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex import arithmetic
from sardonyx.lower.complex import operators as operators  # registers the operators
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.ops.conversion import SAME_VALUES
from sardonyx.lower.registry import Refusal, Registry

CallLowering = Callable[[dict[str, Any]], Any]
"""The lowering, called with these arguments."""


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in text.split())


TAKE_COMPLEX = _names(
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
    # arithmetic
    " add.Tensor add.Scalar sub.Tensor sub.Scalar subtract.Tensor subtract.Scalar"
    " rsub.Tensor rsub.Scalar mul.Tensor mul.Scalar multiply.Tensor multiply.Scalar"
    " div.Tensor div.Scalar divide.Tensor divide.Scalar true_divide.Tensor true_divide.Scalar"
    " pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar square reciprocal"
    " neg negative _neg_view _neg_view_copy abs absolute sgn angle deg2rad rad2deg"
    " real imag conj _conj _conj_copy conj_physical _conj_physical"
    " complex polar view_as_real view_as_real_copy view_as_complex view_as_complex_copy"
    # functions of one number
    " exp exp2 special_exp2 expm1 special_expm1 log log2 log10 log1p special_log1p sqrt rsqrt"
    " sigmoid special_expit sin cos tan asin arcsin"
    " acos arccos atan arctan sinh cosh tanh asinh arcsinh acosh arccosh atanh arctanh"
    # sums and products
    " sum sum.dim_IntList mean mean.dim cumsum prod prod.dim_int cumprod trace"
    " var var.dim var.correction std std.dim std.correction var_mean var_mean.dim"
    " var_mean.correction std_mean std_mean.dim std_mean.correction cov corrcoef"
    " linalg_vector_norm norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype"
    " norm.ScalarOpt_dtype frobenius_norm.dim"
    " matmul linalg_matmul inner tensordot cross linalg_cross mm bmm mv dot vdot outer ger linear"
    " addbmm mH mH.a matrix_H matrix_H.a adjoint"
    # linear algebra
    " linalg_lu_factor_ex linalg_lu lu_unpack _linalg_det _linalg_slogdet linalg_lu_solve"
    " linalg_inv_ex _linalg_solve_ex linalg_solve_triangular triangular_solve linalg_cholesky_ex"
    " cholesky cholesky_solve cholesky_inverse geqrf linalg_qr linalg_householder_product ormqr"
    " linalg_matrix_exp _linalg_svd _linalg_eigh linalg_pinv.atol_rtol_tensor linalg_lstsq"
    # Fourier transforms
    " _fft_c2c _fft_r2c _fft_c2r stft stft.center istft"
    " fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2"
    " fft_irfft2 fft_hfft2 fft_ihfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn"
    # tests
    " isreal eq.Tensor eq.Scalar ne.Tensor ne.Scalar not_equal.Tensor not_equal.Scalar isclose"
    " isnan isinf isfinite logical_not logical_and logical_or logical_xor any any.dim any.dims"
    " all all.dim all.dims nonzero nonzero_numpy nonzero_static argwhere count_nonzero"
    " count_nonzero.dim_IntList"
    # conversions
    " to.dtype to.dtype_layout to.device _to_copy to.other type_as copy"
    # made from sizes and numbers
    " zeros zeros_like new_zeros empty.memory_format empty_like new_empty empty_strided"
    " empty_permuted new_empty_strided full full_like new_full scalar_tensor"
    " ones ones_like new_ones eye eye.m"
) | _names(" ".join(SAME_VALUES))

UNIFORM = _names("rand rand.generator rand_like rand_like.generator uniform")
NORMAL = _names("randn randn.generator randn_like randn_like.generator")
"""A variance of 1, half of it in each part, as in any normal distribution."""
LINSPACE = _names("linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
PART_AFTER_PART = UNIFORM | NORMAL | LINSPACE | _names("normal_functional")
"""Lowered once for each part, with the part of each argument."""


def is_complex_call(node: Node) -> bool:
    values = (*node.outputs, *node.inputs())
    return any(v.dtype.is_complex for v in values) or complex in map(type, node.arguments.values())


def has_complex_form(name: str, library: Registry) -> bool:
    return name in library and (name in TAKE_COMPLEX or name in PART_AFTER_PART)


def lower_complex_call(
    b: Builder, node: Node, arguments: dict[str, Any], call: CallLowering
) -> Any:
    """The results of a call that `has_complex_form`."""
    if any(v.dtype == torch.complex32 for v in (*node.inputs(), *node.outputs)):
        raise Refusal("complex numbers of half precision have no ONNX form")
    if node.name not in PART_AFTER_PART:
        return call(arguments)
    if not node.outputs[0].dtype.is_complex:
        return call(_parts(arguments, "real"))
    joined = ComplexTensor(*(call(_parts(arguments, part)) for part in ("real", "imag")))
    return arithmetic.scale(b, joined, 0.5**0.5) if node.name in NORMAL else joined


def _parts(arguments: dict[str, Any], part: str) -> dict[str, Any]:
    def taken(name: str, argument: Any) -> Any:
        if isinstance(argument, torch.dtype):
            return argument.to_real()
        if isinstance(argument, (ComplexTensor, complex)):
            return getattr(argument, part)
        if name == "std":
            return argument * 0.5**0.5
        return 0 if part == "imag" and name in ("start", "end") else argument

    return {name: taken(name, argument) for name, argument in arguments.items()}
