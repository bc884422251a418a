"""TorchScript's names and numbers for dtypes."""

from __future__ import annotations

import torch

from sardonyx.aten.schema import SCALAR_TYPES as SCALAR_TYPES

_NAMES: dict[torch.dtype, str] = {
    torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int",
    torch.int64: "Long", torch.float16: "Half", torch.float32: "Float", torch.float64: "Double",
    torch.complex32: "ComplexHalf", torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble", torch.bool: "Bool", torch.qint8: "QInt8",
    torch.quint8: "QUInt8", torch.qint32: "QInt32", torch.bfloat16: "BFloat16",
    torch.float8_e5m2: "Float8_e5m2", torch.float8_e4m3fn: "Float8_e4m3fn",
    torch.float8_e5m2fnuz: "Float8_e5m2fnuz", torch.float8_e4m3fnuz: "Float8_e4m3fnuz",
    torch.uint16: "UInt16", torch.uint32: "UInt32", torch.uint64: "UInt64",
    torch.float8_e8m0fnu: "Float8_e8m0fnu",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def scalar_type_name(dtype: torch.dtype) -> str:
    """`Float` for torch.float32, as in `type().scalarType()`."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def dtype_of_name(name: str) -> torch.dtype | None:
    return _DTYPES.get(name)


def scalar_type_number(dtype: torch.dtype) -> int:
    """The number in which TorchScript's graphs write a dtype."""
    return SCALAR_TYPES.index(dtype)
