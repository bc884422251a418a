"""What a lowering function handles: tensors of the ONNX graph, dims and scalars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir
import sympy
import torch

from sardonyx.aten.graph import Dim as Dim

TORCH_TO_ONNX: dict[torch.dtype, ir.DataType] = {
    torch.float16: ir.DataType.FLOAT16,
    torch.bfloat16: ir.DataType.BFLOAT16,
    torch.float32: ir.DataType.FLOAT,
    torch.float64: ir.DataType.DOUBLE,
    torch.float8_e4m3fn: ir.DataType.FLOAT8E4M3FN,
    torch.float8_e4m3fnuz: ir.DataType.FLOAT8E4M3FNUZ,
    torch.float8_e5m2: ir.DataType.FLOAT8E5M2,
    torch.float8_e5m2fnuz: ir.DataType.FLOAT8E5M2FNUZ,
    torch.float8_e8m0fnu: ir.DataType.FLOAT8E8M0,
    torch.float4_e2m1fn_x2: ir.DataType.FLOAT4E2M1,
    torch.bool: ir.DataType.BOOL,
    torch.uint8: ir.DataType.UINT8,
    torch.int8: ir.DataType.INT8,
    torch.int16: ir.DataType.INT16,
    torch.int32: ir.DataType.INT32,
    torch.int64: ir.DataType.INT64,
    torch.uint16: ir.DataType.UINT16,
    torch.uint32: ir.DataType.UINT32,
    torch.uint64: ir.DataType.UINT64,
    torch.complex64: ir.DataType.COMPLEX64,
    torch.complex128: ir.DataType.COMPLEX128,
    torch.int4: ir.DataType.INT4,  # type: ignore[attr-defined]
    torch.uint4: ir.DataType.UINT4,  # type: ignore[attr-defined]
}
ONNX_TO_TORCH: dict[ir.DataType, torch.dtype] = {v: k for k, v in TORCH_TO_ONNX.items()}


@dataclass(eq=False, repr=False, slots=True)
class Tensor:
    """A tensor in the ONNX graph under construction; or a sequence of tensors, of `dtype` each.

    `shape` is None while the rank is unknown; a dim is None while its size is unknown.
    `const` holds the value when it is known at export time (a weight or a small constant).
    `fake` is the fake tensor of the PyTorch value it stands for; it knows how that lay in memory.
    """

    value: ir.Value
    dtype: torch.dtype
    shape: tuple[Dim | None, ...] | None
    const: torch.Tensor | None = None
    fake: torch.Tensor | None = None
    is_sequence: bool = field(default=False, kw_only=True)

    @property
    def rank(self) -> int:
        if self.shape is None:
            raise ValueError(f"the rank of {self.value.name} is not known")
        return len(self.shape)

    @property
    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_complex(self) -> bool:
        return self.dtype.is_complex

    @property
    def is_integral(self) -> bool:
        """An integer type; bool is not one."""
        return not (
            self.dtype.is_floating_point or self.dtype.is_complex or self.dtype == torch.bool
        )

    def dim(self, axis: int) -> Dim:
        if self.shape is None or self.shape[axis] is None:
            raise ValueError(f"dim {axis} of {self.value.name} is not known")
        size = self.shape[axis]
        assert size is not None
        return size

    def static_dim(self, axis: int) -> int | None:
        """The size along `axis` where it is a known number."""
        size = None if self.shape is None else self.shape[axis]
        return size if isinstance(size, int) else None

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        if self.shape is None or not all(isinstance(d, int) for d in self.shape):
            return None
        return tuple(d for d in self.shape if isinstance(d, int))

    def __repr__(self) -> str:
        dims = (
            "?"
            if self.shape is None
            else ", ".join("?" if d is None else str(d) for d in self.shape)
        )
        return f"{self.value.name}: {str(self.dtype).removeprefix('torch.')}[{dims}]"


Dims: TypeAlias = list[Dim]
"""A list of sizes, symbolic ones among them."""
Ints: TypeAlias = list[int]
"""A list of numbers that must be known at export time."""
Number: TypeAlias = bool | int | float | complex
Scalar: TypeAlias = Number | sympy.Expr
"""A Python scalar of the model; symbolic where it was computed from a size."""


def plain(size: Dim) -> Dim:
    return int(size) if isinstance(size, sympy.Integer) else size


def product_of(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = total * d
    return plain(total)
