"""Calls that do the same whatever values the tensors hold: they read none into Python, and none
decides how large a result is. A call that is not known as one of these counts as one that does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from sardonyx.capture.watched_calls import Call


def is_value_free(call: Call) -> bool:
    func = call.func
    if func in _MAKE_TENSORS:
        return all(map(_is_python_value, (*call.args, *call.kwargs.values())))
    if func in _INDEXED:
        return _is_plain_index(call.args[1])
    if func in _WHERE:
        return len(call.args) + len(call.kwargs) > 1
    return func in _VALUE_FREE and not _draws(call)


def _draws(call: Call) -> bool:
    """Whether it may draw random numbers."""
    if call.func in _DROPOUTS:
        return _argument(call, 2, "training", True) is not False
    if call.func in _ATTENTIONS:
        return bool(_argument(call, 4, "dropout_p", 0.0) != 0)
    if call.func in _RECURRENT:  # more than one layer, in training
        return any(type(a) is float and a > 0 for a in call.args)
    return False


def _argument(call: Call, position: int, name: str, default: Any) -> Any:
    return call.args[position] if len(call.args) > position else call.kwargs.get(name, default)


def tells_how_made(call: Call) -> bool:
    """Whether it asks what a tensor was made of, and not what it holds."""
    return call.func in _TELL_HOW_MADE


def takes_sizes(call: Call) -> bool:
    """Whether tensors of integers, where it is given some, may be sizes or counts."""
    return call.func not in _TAKE_INTEGERS


def takes_indices(call: Call) -> bool:
    """Whether it fails where an index is too large."""
    return call.func in _TAKE_INDICES


def writes_nothing(call: Call) -> bool:
    """Whether it only gives new tensors, whatever its switches say."""
    return call.func in _WRITE_NOTHING and "out" not in call.kwargs


def _is_python_value(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return type(value) in _LISTS and all(map(_is_python_value, value))
    return type(value) in _PYTHON_TYPES or isinstance(value, np.generic)


def _is_plain_index(index: Any) -> bool:
    if isinstance(index, (tuple, list)):
        return all(map(_is_plain_index, index))
    if isinstance(index, slice):
        return all(map(_is_number_or_none, (index.start, index.stop, index.step)))
    if isinstance(index, torch.Tensor):
        return index.dim() > 0 and index.dtype in (torch.int32, torch.int64)
    return index is Ellipsis or _is_number_or_none(index)


def _is_number_or_none(value: Any) -> bool:
    return value is None or (type(value) is int)


_OWNERS = (torch, torch.Tensor, F, torch.special, torch.fft, torch.linalg)


def _named(names: str) -> frozenset[Any]:
    """The functions of PyTorch that have these names."""
    return frozenset(
        getattr(owner, name) for name in names.split() for owner in _OWNERS if hasattr(owner, name)
    )


_INDEXED = _named("__getitem__ __setitem__")
_WHERE = _named("where")
_MAKE_TENSORS = _named(
    """
    arange as_tensor asarray empty eye from_numpy full linspace logspace ones
    scalar_tensor tensor tril_indices triu_indices zeros
    """
)
_LISTS = (list, tuple, torch.Size)
_PYTHON_TYPES = (
    bool, int, float, complex, str, type(None), np.ndarray,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator,
)  # fmt: skip
_PROPERTIES = frozenset(
    getattr(torch.Tensor, name).__get__
    for name in (
        "H", "T", "device", "dtype", "imag", "is_cpu", "is_cuda", "is_leaf", "is_meta", "is_mkldnn",
        "is_mps", "is_nested", "is_quantized", "is_sparse", "itemsize", "layout", "mH", "mT",
        "nbytes", "ndim", "real", "requires_grad", "shape",
    )
)  # fmt: skip
_TELL_HOW_MADE = frozenset(
    (torch.Tensor._is_view, *(getattr(torch.Tensor, n).__get__ for n in ("_base", "_version")))
)
_ABOUT_TENSORS = _PROPERTIES | _named(
    """
    __len__ dim element_size get_device is_complex is_floating_point is_inference is_signed
    is_tensor ndimension nelement numel result_type size
    """
)
_ARITHMETIC = _named(
    """
    __abs__ __add__ __and__ __div__ __floordiv__ __iadd__ __iand__ __idiv__ __ifloordiv__ __imod__
    __imul__ __invert__ __ior__ __isub__ __itruediv__ __ixor__ __mod__ __mul__ __neg__ __or__
    __pos__ __pow__ __radd__ __rand__ __rdiv__ __rfloordiv__ __rmod__ __rmul__ __ror__ __rpow__
    __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__
    __eq__ __ge__ __gt__ __le__ __lt__ __ne__
    abs abs_ absolute acos acosh add add_ addcdiv addcmul angle asin asinh atan atan2 atanh
    bitwise_and bitwise_not bitwise_or bitwise_xor ceil ceil_ clamp clamp_ clamp_max clamp_max_
    clamp_min clamp_min_ clip clip_ conj copysign cos cos_ cosh deg2rad div div_ divide eq erf erfc
    erfinv exp exp2 exp_ expm1 floor floor_ floor_divide fmod frac ge greater greater_equal gt
    hypot isfinite isinf isnan le lerp less less_equal lgamma log log10 log1p log2 log_ logaddexp
    logical_and logical_not logical_or logical_xor logit lt maximum minimum mul mul_ multiply
    nan_to_num ne neg neg_ negative not_equal pow pow_ rad2deg reciprocal reciprocal_ remainder
    round round_ rsqrt rsqrt_ rsub sigmoid sigmoid_ sign sin sin_ sinc sinh softsign sqrt sqrt_
    square square_ sub sub_ subtract tan tanh tanh_ true_divide trunc xlogy
    """
)
_ACTIVATIONS = _named(
    """
    celu elu elu_ gelu glu hardshrink hardsigmoid hardswish hardtanh hardtanh_
    leaky_relu leaky_relu_ log_softmax logsigmoid mish prelu relu relu6 relu_ selu silu
    softmax softmin softplus softshrink tanhshrink threshold
    """
)
_DROPOUTS = _named(
    "alpha_dropout dropout dropout1d dropout2d dropout3d dropout_ feature_alpha_dropout"
)
_ATTENTIONS = _named("scaled_dot_product_attention")
_RECURRENT = _named("gru lstm rnn_relu rnn_tanh")
_PRODUCTS = _named(
    """
    __matmul__ __rmatmul__ addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity cross dot einsum
    embedding gru gru_cell inner linear lstm lstm_cell matmul mm multi_head_attention_forward mv
    outer pairwise_distance rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    scaled_dot_product_attention tensordot vdot
    """
)
_NORMS = _named(
    """
    batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm
    """
)
_WINDOWS = _named(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d
    channel_shuffle fold grid_sample interpolate lp_pool1d lp_pool2d max_pool1d max_pool2d
    max_pool2d_with_indices max_pool3d pad pixel_shuffle pixel_unshuffle unfold upsample
    upsample_bilinear upsample_nearest
    """
)
_REDUCTIONS = _named(
    """
    all amax amin any argmax argmin argsort count_nonzero cummax cummin cumprod cumsum diff
    logcumsumexp logsumexp max mean median min nanmean nansum norm prod quantile sort std std_mean
    sum topk var var_mean vector_norm
    """
)
_LAYOUTS = _named(
    """
    __iter__ atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_tensors broadcast_to
    cat chunk clone concat concatenate contiguous copy_ cpu detach diag_embed diagonal double
    dstack expand expand_as fill_ flatten flip fliplr flipud float gather half hsplit hstack
    index_add index_copy index_fill index_select int long masked_fill masked_fill_ meshgrid
    moveaxis movedim narrow permute ravel repeat reshape reshape_as roll rot90 scatter scatter_
    scatter_add scatter_add_ select select_scatter slice_scatter split squeeze stack swapaxes
    swapdims t take_along_dim tile to transpose tril triu type_as unbind unflatten unsqueeze view
    view_as view_as_complex view_as_real vsplit vstack zero_
    empty_like full_like new_empty new_full new_ones new_zeros ones_like
    zeros_like
    """
)
_TRANSFORMS = _named(
    """
    fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
    rfftn
    """
)
_TAKE_INDICES = _INDEXED | _named(
    """
    embedding gather index_add index_copy index_fill index_select scatter scatter_ scatter_add
    scatter_add_ take_along_dim
    """
)
_TAKE_INTEGERS = (
    _ARITHMETIC
    | _WHERE
    | _ABOUT_TENSORS
    | _named(
        """
        broadcast_tensors cat concat concatenate copy_ dstack expand_as gru hstack lstm masked_fill
        masked_fill_ meshgrid multi_head_attention_forward reshape_as rnn_relu rnn_tanh
        scaled_dot_product_attention stack type_as view_as vstack
        """
    )
    | _TAKE_INDICES
)
_WRITE_NOTHING = (
    (_PRODUCTS - _named("embedding"))
    | _WINDOWS
    | _REDUCTIONS
    | _TRANSFORMS
    | _named("softmax log_softmax layer_norm group_norm rms_norm gelu")
)
_VALUE_FREE = (
    _ABOUT_TENSORS
    | _ARITHMETIC
    | _ACTIVATIONS
    | _DROPOUTS
    | _PRODUCTS
    | _NORMS
    | _WINDOWS
    | _REDUCTIONS
    | _LAYOUTS
    | _TRANSFORMS
)
