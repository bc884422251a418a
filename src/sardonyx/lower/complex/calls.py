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
from sardonyx.lower.registry import Refusal, Registry

CallLowering = Callable[[dict[str, Any]], Any]
"""The lowering, called with these arguments."""


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in text.split())


_THEMES = (
    "complex_functions conversion correlation fold fourier indexing concat linalg"
    " linalg_factorizations linalg_solves linalg_spectra padding repeat scatter slicing strided"
    " view view_scatter"
)
MODULES = frozenset(f"sardonyx.lower.ops.{theme}" for theme in _THEMES.split())
"""Files of the library whose lowerings take complex numbers."""
REAL_ONLY = _names(
    "view.dtype view_copy.dtype linalg_ldl_factor_ex linalg_ldl_solve linalg_cond linalg_cond.p_str"
    " index_reduce scatter.reduce scatter.value_reduce scatter_reduce.two _cast_Byte _cast_Char"
    " _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short"
)
"""Those of them that do not."""
TAKE_COMPLEX = _names(
    # arithmetic
    "add.Tensor add.Scalar sub.Tensor sub.Scalar subtract.Tensor subtract.Scalar"
    " rsub.Tensor rsub.Scalar mul.Tensor mul.Scalar multiply.Tensor multiply.Scalar"
    " div.Tensor div.Scalar divide.Tensor divide.Scalar true_divide.Tensor true_divide.Scalar"
    " pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar square reciprocal"
    " neg negative _neg_view _neg_view_copy abs absolute sgn angle deg2rad rad2deg"
    " where.self where.ScalarOther where.ScalarSelf where.Scalar"
    # functions of one number
    " exp exp2 special_exp2 expm1 special_expm1 log log2 log10 log1p special_log1p sqrt rsqrt"
    " sigmoid special_expit sin cos tan asin arcsin"
    " acos arccos atan arctan sinh cosh tanh asinh arcsinh acosh arccosh atanh arctanh"
    # sums and products
    " sum sum.dim_IntList mean mean.dim cumsum prod prod.dim_int cumprod"
    " var var.dim var.correction std std.dim std.correction var_mean var_mean.dim"
    " var_mean.correction std_mean std_mean.dim std_mean.correction"
    " linalg_vector_norm norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype"
    " norm.ScalarOpt_dtype"
    " matmul linalg_matmul mm bmm mv dot linear addbmm"
    # tests
    " eq.Tensor eq.Scalar ne.Tensor ne.Scalar not_equal.Tensor not_equal.Scalar"
    " isnan isinf isfinite logical_not logical_and logical_or logical_xor any any.dim any.dims"
    " all all.dim all.dims"
    # made from sizes and numbers
    " zeros zeros_like new_zeros empty.memory_format empty_like new_empty empty_strided"
    " empty_permuted new_empty_strided full full_like new_full scalar_tensor"
    " ones ones_like new_ones eye eye.m tril triu"
)
"""Those of other files."""

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
    lowering = library.get(name)
    if lowering is None or name in REAL_ONLY:
        return False
    return name in TAKE_COMPLEX or name in PART_AFTER_PART or lowering.source in MODULES


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
