"""Weights as ONNX tensors that refer to torch memory; bytes move only when they are written."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir
import torch

from sardonyx.aten.storage import array_of, bytes_of, holds_memory
from sardonyx.errors import SerializeError, UnsupportedDtypeError
from sardonyx.lower.values import TORCH_TO_ONNX

COPY_LIMIT = 16 * 2**20
"""The most bytes copied at a time when a tensor cannot be read where it lies."""

# numpy lacks these dtypes and torch copies few of them: their bits travel as integers.
_CARRIERS = {
    ir.DataType.BFLOAT16: torch.int16,
    ir.DataType.FLOAT8E4M3FN: torch.uint8,
    ir.DataType.FLOAT8E4M3FNUZ: torch.uint8,
    ir.DataType.FLOAT8E5M2: torch.uint8,
    ir.DataType.FLOAT8E5M2FNUZ: torch.uint8,
    ir.DataType.FLOAT8E8M0: torch.uint8,
    ir.DataType.FLOAT4E2M1: torch.uint8,
    ir.DataType.INT4: torch.uint8,
    ir.DataType.UINT4: torch.uint8,
}
# torch.int4 spends a byte on each element, ONNX half a byte; float4_e2m1fn_x2 is packed as ONNX is.
_UNPACKED_NIBBLES = {ir.DataType.INT4, ir.DataType.UINT4}


class _Writable(Protocol):
    def write(self, data: memoryview, /) -> object: ...


class TorchTensor(ir.Tensor[torch.Tensor]):
    """A torch tensor (parameter, buffer or constant) as a lazy ONNX tensor."""

    def __init__(
        self, tensor: torch.Tensor, name: str | None = None, doc_string: str | None = None
    ) -> None:
        super().__init__(
            tensor,
            dtype=_onnx_dtype(tensor, name),
            shape=ir.Shape(_onnx_shape(tensor)),
            name=name,
            doc_string=doc_string,
        )

    @property
    def has_data(self) -> bool:
        """False for a meta or fake tensor, and for one whose memory was given back."""
        return holds_memory(self.raw)

    def numpy(self) -> np.ndarray[Any, Any]:
        self._require_data()
        tensor = self.raw.detach().cpu().resolve_conj().resolve_neg()
        if self.dtype not in _CARRIERS:
            return array_of(tensor)
        bits = array_of(tensor.view(_CARRIERS[self.dtype]))
        if self.dtype == ir.DataType.FLOAT4E2M1:
            bits = np.stack([bits & 0xF, bits >> 4], axis=-1).reshape(_onnx_shape(tensor))
        return bits.view(self.dtype.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def blocks(self) -> Iterator[memoryview]:
        """The bytes in row-major order, read where they lie wherever that is possible.

        A block is valid until the next one is read: all copies share one buffer.
        """
        self._require_data()
        if self.dtype in _UNPACKED_NIBBLES:
            yield memoryview(ir.Tensor(self.numpy(), dtype=self.dtype).tobytes())
            return
        carrier = _CARRIERS.get(self.dtype)
        tensor = self.raw.detach()
        for block in _host_blocks(tensor if carrier is None else tensor.view(carrier)):
            if block.numel():
                yield bytes_of(block)

    def tobytes(self) -> bytes:
        buffer = io.BytesIO()
        self.tofile(buffer)
        return buffer.getvalue()

    def tofile(self, file: _Writable) -> None:
        for block in self.blocks():
            file.write(block)

    def __repr__(self) -> str:
        return f"TorchTensor<{self.dtype},{self.shape}>(name={self.name!r})"

    def _require_data(self) -> None:
        if not self.has_data:
            raise SerializeError(
                f"the weights are missing: {self.name or 'a tensor'} is a meta or fake tensor "
                f"of shape {tuple(self.raw.shape)}, which has a shape and no values"
            )


class JoinedTensor(ir.LazyTensor):
    """The concatenation of tensors, which is only computed when its values are read."""

    def __init__(self, parts: Sequence[torch.Tensor], shape: Sequence[int], name: str) -> None:
        super().__init__(
            lambda: TorchTensor(torch.cat(list(parts)).view(*shape), name),
            dtype=_onnx_dtype(parts[0], name),
            shape=ir.Shape(shape),
            name=name,
        )
        self._parts = parts

    def tofile(self, file: _Writable) -> None:
        for part in self._parts:
            TorchTensor(part).tofile(file)


def _onnx_dtype(tensor: torch.Tensor, name: str | None) -> ir.DataType:
    of = f" of {name}" if name else ""
    if tensor.layout is not torch.strided:
        raise UnsupportedDtypeError(
            f"the layout {tensor.layout}{of} has no ONNX form; make it dense with .to_dense()"
        )
    dtype = TORCH_TO_ONNX.get(tensor.dtype)
    if dtype is None:
        raise UnsupportedDtypeError(f"the dtype {tensor.dtype}{of} has no ONNX form")
    if tensor.dtype is torch.float4_e2m1fn_x2 and tensor.dim() == 0:
        raise UnsupportedDtypeError(f"a scalar {tensor.dtype}{of} holds two values: no ONNX shape")
    return dtype


def _onnx_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    if tensor.dtype is torch.float4_e2m1fn_x2:
        return (*tensor.shape[:-1], 2 * tensor.shape[-1])
    return tuple(tensor.shape)


def _host_blocks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Contiguous host tensors that hold, one after the other, the elements of `tensor`."""
    lazy_sign = tensor.is_conj() or tensor.is_neg()
    if tensor.device.type == "cpu" and tensor.is_contiguous() and not lazy_sign:
        yield tensor
        return
    most = max(1, COPY_LIMIT // tensor.element_size())
    staging = torch.empty(min(most, tensor.numel()), dtype=tensor.dtype)
    for piece in pieces(tensor, most):
        yield staging[: piece.numel()].view(piece.shape).copy_(piece)


def pieces(tensor: torch.Tensor, most: int) -> Iterator[torch.Tensor]:
    """Views of at most `most` elements each, in row-major order."""
    if tensor.numel() <= most:
        yield tensor
        return
    length = tensor.shape[0]
    step = max(1, most * length // tensor.numel())
    for start in range(0, length, step):
        part = tensor.narrow(0, start, min(step, length - start))
        yield from pieces(part if len(part) > 1 else part.select(0, 0), most)
