"""JitScalarType: one scalar type under the names that TorchScript, PyTorch and ONNX have for it."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import onnx_ir as ir
import torch

from sardonyx.errors import InvalidOptionError


class _Names(NamedTuple):
    scalar_name: str
    """In TorchScript's graphs: `Float`."""
    torch_name: str
    """In C++: `int64_t`."""
    dtype: torch.dtype | None
    onnx_type: ir.DataType | None


class JitScalarType(enum.IntEnum):
    """A scalar type, numbered as PyTorch numbers its scalar types."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT = 3
    INT64 = 4
    HALF = 5
    FLOAT = 6
    DOUBLE = 7
    COMPLEX32 = 8
    COMPLEX64 = 9
    COMPLEX128 = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    FLOAT8E5M2 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E5M2FNUZ = 18
    FLOAT8E4M3FNUZ = 19
    UNDEFINED = 20

    @classmethod
    def from_name(cls, name: str | None) -> JitScalarType:
        """By TorchScript's or C++'s name: "Float", "int64_t"."""
        for scalar_type, names in _NAMES.items():
            if name is not None and name in (names.scalar_name, names.torch_name):
                return scalar_type
        raise InvalidOptionError(f"{name!r} is no name of a scalar type")

    @classmethod
    def from_dtype(cls, dtype: torch.dtype | None) -> JitScalarType:
        for scalar_type, names in _NAMES.items():
            if dtype is not None and names.dtype == dtype:
                return scalar_type
        raise InvalidOptionError(f"{dtype} is no dtype of a scalar type")

    @classmethod
    def from_onnx_type(cls, onnx_type: int | ir.DataType | None) -> JitScalarType:
        """By a data type of ONNX, as `onnx.TensorProto.FLOAT`."""
        number = _number(onnx_type)
        for scalar_type, names in _NAMES.items():
            if number is not None and names.onnx_type == number:
                return scalar_type  # integers stand before the quantized types that ONNX lacks
        raise InvalidOptionError(f"{onnx_type!r} is no data type of ONNX that PyTorch has")

    @classmethod
    def from_value(cls, value: Any, default: JitScalarType | None = None) -> JitScalarType:
        """Of a tensor, a Python number or a value of a graph; `default` where it is not known."""
        scalar_type = _type_of(value)
        if scalar_type is not None:
            return scalar_type
        if default is None:
            raise InvalidOptionError(f"the scalar type of {value!r} is not known")
        return default

    def scalar_name(self) -> str:
        return _NAMES[self].scalar_name

    def torch_name(self) -> str:
        return _NAMES[self].torch_name

    def dtype(self) -> torch.dtype:
        dtype = _NAMES[self].dtype
        if dtype is None:
            raise InvalidOptionError(f"{self.name} has no torch.dtype")
        return dtype

    def onnx_type(self) -> ir.DataType:
        """The data type of ONNX; compares equal to onnx.TensorProto's number."""
        onnx_type = _NAMES[self].onnx_type
        if onnx_type is None:
            raise InvalidOptionError(f"{self.name} has no data type in ONNX")
        return onnx_type

    def onnx_compatible(self) -> bool:
        """Whether ONNX has the type."""
        return self is not JitScalarType.UNDEFINED and _NAMES[self].onnx_type is not None


def _row(
    scalar_name: str, torch_name: str, dtype: torch.dtype | None, onnx_type: ir.DataType | None
) -> _Names:
    return _Names(scalar_name, torch_name, dtype, onnx_type)


_NAMES = {
    JitScalarType.UINT8: _row("Byte", "uint8_t", torch.uint8, ir.DataType.UINT8),
    JitScalarType.INT8: _row("Char", "int8_t", torch.int8, ir.DataType.INT8),
    JitScalarType.INT16: _row("Short", "int16_t", torch.int16, ir.DataType.INT16),
    JitScalarType.INT: _row("Int", "int", torch.int32, ir.DataType.INT32),
    JitScalarType.INT64: _row("Long", "int64_t", torch.int64, ir.DataType.INT64),
    JitScalarType.HALF: _row("Half", "half", torch.float16, ir.DataType.FLOAT16),
    JitScalarType.FLOAT: _row("Float", "float", torch.float32, ir.DataType.FLOAT),
    JitScalarType.DOUBLE: _row("Double", "double", torch.float64, ir.DataType.DOUBLE),
    JitScalarType.COMPLEX32: _row("ComplexHalf", "complex32", torch.complex32, None),
    JitScalarType.COMPLEX64: _row(
        "ComplexFloat", "complex64", torch.complex64, ir.DataType.COMPLEX64
    ),
    JitScalarType.COMPLEX128: _row(
        "ComplexDouble", "complex128", torch.complex128, ir.DataType.COMPLEX128
    ),
    JitScalarType.BOOL: _row("Bool", "bool", torch.bool, ir.DataType.BOOL),
    JitScalarType.QINT8: _row("QInt8", "qint8", torch.qint8, ir.DataType.INT8),
    JitScalarType.QUINT8: _row("QUInt8", "quint8", torch.quint8, ir.DataType.UINT8),
    JitScalarType.QINT32: _row("QInt32", "qint32", torch.qint32, ir.DataType.INT32),
    JitScalarType.BFLOAT16: _row("BFloat16", "bfloat16", torch.bfloat16, ir.DataType.BFLOAT16),
    JitScalarType.FLOAT8E5M2: _row(
        "Float8_e5m2", "float8_e5m2", torch.float8_e5m2, ir.DataType.FLOAT8E5M2
    ),
    JitScalarType.FLOAT8E4M3FN: _row(
        "Float8_e4m3fn", "float8_e4m3fn", torch.float8_e4m3fn, ir.DataType.FLOAT8E4M3FN
    ),
    JitScalarType.FLOAT8E5M2FNUZ: _row(
        "Float8_e5m2fnuz", "float8_e5m2fnuz", torch.float8_e5m2fnuz, ir.DataType.FLOAT8E5M2FNUZ
    ),
    JitScalarType.FLOAT8E4M3FNUZ: _row(
        "Float8_e4m3fnuz", "float8_e4m3fnuz", torch.float8_e4m3fnuz, ir.DataType.FLOAT8E4M3FNUZ
    ),
    JitScalarType.UNDEFINED: _row("Undefined", "undefined", None, ir.DataType.UNDEFINED),
}


def _number(onnx_type: Any) -> int | None:
    """PyTorch's own enum of data types has the number as its value."""
    given = getattr(onnx_type, "value", onnx_type)
    return given if isinstance(given, int) else None


def _type_of(value: Any) -> JitScalarType | None:
    if isinstance(value, torch.Tensor):
        return JitScalarType.from_dtype(value.dtype)
    for kind, scalar_type in _PYTHON_TYPES.items():
        if type(value) is kind:
            return scalar_type
    describe = getattr(value, "type", None)  # a value that a symbolic function gets
    scalar_name = getattr(describe() if callable(describe) else None, "scalarType", None)
    name = scalar_name() if callable(scalar_name) else None
    return None if name is None else JitScalarType.from_name(name)


_PYTHON_TYPES = {
    bool: JitScalarType.BOOL,
    int: JitScalarType.INT64,
    float: JitScalarType.FLOAT,
    complex: JitScalarType.COMPLEX64,
}
