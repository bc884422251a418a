"""When two constants are the same without comparing their contents, or cheaply by contents."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import onnx_ir as ir
import torch

from sardonyx.aten.storage import storage_key
from sardonyx.lower.weights import TorchTensor

MAX_COMPARED_BYTES = 1024


def has_data(tensor: ir.TensorProtocol) -> bool:
    """False for a meta or fake tensor."""
    return not isinstance(tensor.raw, torch.Tensor) or TorchTensor(tensor.raw).has_data


def memory_key(tensor: ir.TensorProtocol) -> Hashable:
    """Equal for tensors that read the same memory in the same way."""
    raw = tensor.raw
    kind = (tensor.dtype, tensor.shape.numpy())
    if isinstance(raw, torch.Tensor):
        return (*kind, storage_key(raw))
    if isinstance(raw, np.ndarray):
        return (*kind, raw.__array_interface__["data"][0], raw.dtype.str, raw.strides)
    return (*kind, id(tensor))


def content_key(tensor: ir.TensorProtocol) -> Hashable | None:
    """Equal for tensors of equal bits; None for strings and what is too large to compare."""
    if tensor.dtype == ir.DataType.STRING or tensor.nbytes > MAX_COMPARED_BYTES:
        return None
    if isinstance(tensor, ir.LazyTensor) or not has_data(tensor):
        return None
    return (tensor.dtype, tensor.shape.numpy(), tensor.tobytes())
