"""Calls that treat the entries of a batch, which the first dim of a tensor counts, one by one, and
whose results are new tensors that lie in memory one entry after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.nn import functional as F

Arguments: TypeAlias = tuple[Any, ...]
Options: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BatchedCall:
    batches: Callable[[Arguments, Options], Collection[int]]
    """The positions of the batches among the arguments; none where a call is not of this kind."""
    work: Callable[[Arguments], int]
    """About how many multiplications it takes."""


def _lies_in_order(tensor: torch.Tensor) -> bool:
    """Whether it has the strides of a new tensor, also along dims of size 1: by all of them the
    results of convolutions and the like are laid out."""
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if stride != expected:
            return False
        expected *= max(size, 1)
    return True


def _linear(args: Arguments, options: Options) -> Collection[int]:
    return (0,) if len(args) >= 2 and args[0].dim() >= 2 and args[1].dim() == 2 else ()


def _product(args: Arguments, options: Options) -> Collection[int]:
    if len(args) != 2 or options or not all(isinstance(a, torch.Tensor) for a in args):
        return ()
    left, right = (tensor.dim() for tensor in args)
    if left >= 2 and right == 2:
        return (0,)
    # Of others the batches may be repeated, or the product be turned over.
    return (0, 1) if left == right >= 3 and args[0].shape[0] == args[1].shape[0] else ()


def _added_product(args: Arguments, options: Options) -> Collection[int]:
    return (1,) if len(args) == 3 and args[0].dim() == 1 and "out" not in options else ()


def _convolution(dims: int) -> Callable[[Arguments, Options], Collection[int]]:
    def batches(args: Arguments, options: Options) -> Collection[int]:
        is_batched = len(args) >= 2 and args[0].dim() == dims + 2
        return (0,) if is_batched and all(map(_lies_in_order, args[:2])) else ()

    return batches


def _transposed(dims: int) -> Callable[[Arguments, Options], Collection[int]]:
    """Without what is added to one side, which is not checked where a batch is empty."""

    def batches(args: Arguments, options: Options) -> Collection[int]:
        added = options.get("output_padding", args[5] if len(args) > 5 else 0)
        return _convolution(dims)(args, options) if added in (0, (0,) * dims) else ()

    return batches


def _pooling(dims: int) -> Callable[[Arguments, Options], Collection[int]]:
    def batches(args: Arguments, options: Options) -> Collection[int]:
        return (0,) if args[0].dim() == dims + 2 and _lies_in_order(args[0]) else ()

    return batches


def _elementwise(args: Arguments, options: Options) -> Collection[int]:
    return (0,) if args[0].dim() >= 1 and _lies_in_order(args[0]) and "out" not in options else ()


def _along_a_dim(args: Arguments, options: Options) -> Collection[int]:
    dim = options.get("dim", args[1] if len(args) > 1 else None)
    is_along_others = type(dim) is int and dim % max(args[0].dim(), 1) != 0
    dtypes = [value for value in (*args, *options.values()) if isinstance(value, torch.dtype)]
    is_along_others &= all(dtype.is_floating_point for dtype in dtypes)
    return _elementwise(args, options) if is_along_others else ()


def _layer_norm(args: Arguments, options: Options) -> Collection[int]:
    sizes = options.get("normalized_shape", args[1] if len(args) > 1 else None)
    if not isinstance(sizes, (list, tuple)) or args[0].dim() <= len(sizes):
        return ()
    return _elementwise(args, options)


def _batch_norm(args: Arguments, options: Options) -> Collection[int]:
    """With the statistics that it was given."""
    training = options.get("training", args[5] if len(args) > 5 else False)
    has_statistics = len(args) >= 3 and args[1] is not None and args[2] is not None
    if training is not False or not has_statistics or args[0].dim() < 2:
        return ()
    others = [a for a in (*args[1:5], *options.values()) if isinstance(a, torch.Tensor)]
    # Which is not checked where a batch is empty.
    if any(tensor.shape != args[0].shape[1:2] for tensor in others):
        return ()
    return _elementwise(args, options)


def _work_of_linear(args: Arguments) -> int:
    return args[0].numel() * args[1].shape[0]  # type: ignore[no-any-return]


def _work_of_product(args: Arguments) -> int:
    return args[-2].numel() * args[-1].shape[-1]  # type: ignore[no-any-return]


def _work_of_convolution(args: Arguments) -> int:
    return args[0].numel() * math.prod(args[1].shape[2:]) * args[1].shape[0]  # type: ignore[no-any-return]


def _work_of_transposed(args: Arguments) -> int:
    return args[0].numel() * math.prod(args[1].shape[1:])  # type: ignore[no-any-return]


def _work_of_elements(args: Arguments) -> int:
    return args[0].numel() * 8  # type: ignore[no-any-return]


_PRODUCTS = (
    torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__,
    torch.mm, torch.Tensor.mm, torch.bmm, torch.Tensor.bmm,
)  # fmt: skip
_CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_TRANSPOSED = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}
_POOLINGS = {
    1: (F.avg_pool1d, F.max_pool1d, F.adaptive_avg_pool1d),
    2: (F.avg_pool2d, F.max_pool2d, F.adaptive_avg_pool2d),
    3: (F.avg_pool3d, F.max_pool3d, F.adaptive_avg_pool3d),
}
_ELEMENTWISE = (
    F.relu, torch.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_,
    F.gelu, F.silu, F.sigmoid, torch.sigmoid, torch.Tensor.sigmoid,
    F.tanh, torch.tanh, torch.Tensor.tanh, F.relu6, F.hardtanh, F.hardswish, F.hardsigmoid,
    F.leaky_relu, F.elu, F.mish, F.softplus,
)  # fmt: skip
_ALONG_A_DIM = (
    F.softmax, torch.softmax, torch.Tensor.softmax,
    F.log_softmax, torch.log_softmax, torch.Tensor.log_softmax,
)  # fmt: skip

BATCHED_CALLS: dict[Any, BatchedCall] = {
    F.linear: BatchedCall(_linear, _work_of_linear),
    **dict.fromkeys(_PRODUCTS, BatchedCall(_product, _work_of_product)),
    torch.addmm: BatchedCall(_added_product, _work_of_product),
    **{
        func: BatchedCall(_convolution(dims), _work_of_convolution)
        for dims, func in _CONVOLUTIONS.items()
    },
    **{
        func: BatchedCall(_transposed(dims), _work_of_transposed)
        for dims, func in _TRANSPOSED.items()
    },
    **{
        func: BatchedCall(_pooling(dims), _work_of_elements)
        for dims, functions in _POOLINGS.items()
        for func in functions
    },
    **dict.fromkeys(_ELEMENTWISE, BatchedCall(_elementwise, _work_of_elements)),
    **dict.fromkeys(_ALONG_A_DIM, BatchedCall(_along_a_dim, _work_of_elements)),
    F.layer_norm: BatchedCall(_layer_norm, _work_of_elements),
    F.batch_norm: BatchedCall(_batch_norm, _work_of_elements),
}
