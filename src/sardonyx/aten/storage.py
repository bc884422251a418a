"""Which tensors share memory: tied weights become one initializer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import torch

from sardonyx import _torch_private


def storage_key(tensor: torch.Tensor) -> Hashable:
    """Equal for tensors that are the same view of the same memory: tied weights."""
    return (
        tensor.device,
        tensor.data_ptr() if holds_memory(tensor) else _torch_private.storage_of(tensor),
        tensor.dtype,
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.is_conj(),
        tensor.is_neg(),
    )


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The memory of a tensor on the host as an array.

    `Tensor.numpy()` would make that memory, which may be the user's, non-resizable.
    """
    return np.from_dlpack(tensor.detach())


def holds_memory(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0:
        return True
    storage = tensor.untyped_storage()
    # The storage of a fake tensor is on the meta device, whatever its `device` is.
    # A tensor subclass that only wraps others has an address of zero.
    return (
        storage.device.type != "meta"
        and storage.nbytes() > 0
        and (storage.device.type != "cpu" or tensor.data_ptr() != 0)
    )


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """The bytes in row-major order, read where they lie if the tensor is contiguous."""
    if not tensor.numel():
        return memoryview(b"")
    # A single element counts as contiguous whatever its stride is, but is not viewed as bytes then.
    line = tensor.contiguous().as_strided((tensor.numel(),), (1,))
    return array_of(line.view(torch.uint8)).data
