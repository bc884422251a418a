"""Strided views of memory. ONNX tensors have no memory, so its layout is PyTorch's at export."""

from __future__ import annotations

from typing import NamedTuple

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.advanced_indexing import scatter_along
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Ints, Tensor


class _Memory(NamedTuple):
    """The elements of a tensor in the order they lie in memory."""

    line: Tensor
    perm: list[int]
    dims: list[int]
    offset: int

    def as_tensor(self, b: Builder, line: Tensor) -> Tensor:
        """Back from memory to the tensor's own shape."""
        lying = b.reshape(line, [self.dims[axis] for axis in self.perm])
        return b.transpose(lying, [self.perm.index(axis) for axis in range(len(self.perm))])


def _memory_of(b: Builder, x: Tensor) -> _Memory:
    if x.fake is None:
        raise b.refuse("this capture does not know how its input lies in memory")
    if x.static_shape is None:
        raise b.refuse("how its input lies in memory is not known: its sizes are dynamic")
    dims, strides = list(x.static_shape), [int(s) for s in x.fake.stride()]
    perm = sorted(range(len(dims)), key=lambda axis: (-strides[axis], axis))
    dense = 1
    for axis in reversed(perm):
        if dims[axis] != 1 and strides[axis] != dense:
            raise b.refuse("its input is a view that leaves out or repeats parts of its memory")
        dense *= dims[axis]
    line = b.reshape(b.transpose(x, perm), [dense])
    return _Memory(line, perm, dims, int(x.fake.storage_offset()))


def _places(
    b: Builder, memory: _Memory, size: Ints, stride: Ints, storage_offset: int | None
) -> torch.Tensor:
    """Where in that memory each element of the strided view lies."""
    places = torch.zeros(size, dtype=torch.int64)
    if storage_offset is not None:
        places += storage_offset - memory.offset
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        along = torch.arange(length) * step
        places += along.reshape([-1 if a == axis else 1 for a in range(len(size))])
    count = memory.line.static_dim(0)
    if places.numel() and (int(places.min()) < 0 or int(places.max()) >= (count or 0)):
        raise b.refuse("it reads memory outside of its input")
    return places


@lowering("aten::as_strided", "aten::as_strided_copy")
def as_strided(
    b: Builder, self: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    memory = _memory_of(b, self)
    places = _places(b, memory, size, stride, storage_offset)
    return b.Gather(memory.line, b.const(places), axis=0)


@lowering("aten::as_strided_scatter")
def as_strided_scatter(
    b: Builder,
    self: Tensor,
    src: Tensor,
    size: Ints,
    stride: Ints,
    storage_offset: int | None = None,
) -> Tensor:
    memory = _memory_of(b, self)
    places = _places(b, memory, size, stride, storage_offset).reshape(-1)
    if len(set(places.tolist())) < places.numel():
        raise b.refuse("it writes some elements twice")
    values = b.reshape(b.cast(src, self.dtype), [places.numel()])
    return memory.as_tensor(b, scatter_along(b, memory.line, 0, b.const(places), values))
