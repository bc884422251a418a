"""The memory of tensors."""

from __future__ import annotations

import contextlib

import torch

from sardonyx._torch_private.autograd import is_transformed
from sardonyx._torch_private.tensors.fake_tensors import is_fake
from sardonyx._torch_private.tensors.wrapper_subclasses import is_wrapper_class


def memory_address(tensor: torch.Tensor) -> int:
    """Equal for tensors that share memory; 0 for those without any."""
    with torch._C.DisableTorchFunction():
        if is_transformed(tensor) or tensor.layout != torch.strided:
            return 0
        if is_fake(tensor) or is_wrapper_class(type(tensor)) or tensor.device.type == "meta":
            return 0
        with contextlib.suppress(RuntimeError):  # of a tensor subclass that only wraps others
            return tensor.untyped_storage().data_ptr()
        return 0


def lacks_memory(tensor: torch.Tensor) -> bool:
    """Whether it has elements and no memory, and does not say so: a DLPack capsule of a fake tensor
    gives such a one, and reading it ends the process."""
    is_plain = tensor.device.type != "meta" and not is_fake(tensor)
    return is_plain and tensor.numel() > 0 and memory_address(tensor) == 0


def has_foreign_memory(tensor: torch.Tensor) -> bool:
    """Whether PyTorch did not allocate where a tensor lies, as for one made of a NumPy array."""
    with torch._C.DisableTorchFunction():
        return not tensor.untyped_storage().resizable()


def whole_memory(tensor: torch.Tensor) -> torch.Tensor:
    """All the bytes a tensor is a view of."""
    with torch._C.DisableTorchFunction():
        empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return empty.set_(tensor.untyped_storage())


def storage_of(tensor: torch.Tensor) -> int:
    """Which storage a tensor is a view of, whether or not that has memory."""
    with torch._C.DisableTorchFunction():
        return int(tensor.untyped_storage()._cdata)


def shares_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    return storage_of(left) == storage_of(right)
