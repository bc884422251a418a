"""JitScalarType: one scalar type under the names that TorchScript, PyTorch and ONNX have for it."""

from __future__ import annotations

import enum
from typing import Any

import onnx_ir as ir
import torch

from sardonyx.aten.scalar_types import scalar_type_name
from sardonyx.errors import InvalidOptionError
from sardonyx.lower.values import TORCH_TO_ONNX


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
        for scalar_type in cls:
            if name in (scalar_type.scalar_name(), scalar_type.torch_name()):
                return scalar_type
        raise InvalidOptionError(f"{name!r} is no name of a scalar type")

    @classmethod
    def from_dtype(cls, dtype: torch.dtype | None) -> JitScalarType:
        if dtype not in _DTYPES:
            raise InvalidOptionError(f"{dtype} is no dtype of a scalar type")
        return cls(_DTYPES.index(dtype))

    @classmethod
    def from_onnx_type(cls, onnx_type: int | ir.DataType | None) -> JitScalarType:
        """By a data type of ONNX, as `onnx.TensorProto.FLOAT`."""
        number = getattr(onnx_type, "value", onnx_type)  # as PyTorch's own enum of them has it
        for scalar_type in cls:  # integers stand before the quantized types that ONNX lacks
            if number is not None and scalar_type._onnx_type() == number:
                return scalar_type
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
        """In TorchScript's graphs: `Float`."""
        return "Undefined" if self is self.UNDEFINED else scalar_type_name(self.dtype())

    def torch_name(self) -> str:
        """In C++: `int64_t`."""
        if self is self.UNDEFINED:
            return "undefined"
        return _CPP_NAMES.get(self.dtype(), str(self.dtype()).removeprefix("torch."))

    def dtype(self) -> torch.dtype:
        if self is self.UNDEFINED:
            raise InvalidOptionError(f"{self.name} has no torch.dtype")
        return _DTYPES[self]

    def onnx_type(self) -> ir.DataType:
        """The data type of ONNX; compares equal to onnx.TensorProto's number."""
        onnx_type = self._onnx_type()
        if onnx_type is None:
            raise InvalidOptionError(f"{self.name} has no data type in ONNX")
        return onnx_type

    def onnx_compatible(self) -> bool:
        """Whether ONNX has the type."""
        return self is not self.UNDEFINED and self._onnx_type() is not None

    def _onnx_type(self) -> ir.DataType | None:
        if self is self.UNDEFINED:
            return ir.DataType.UNDEFINED
        return TORCH_TO_ONNX.get(_INTEGERS.get(self.dtype(), self.dtype()))


_DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
    torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8,
    torch.quint8, torch.qint32, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn,
    torch.float8_e5m2fnuz, torch.float8_e4m3fnuz,
)  # fmt: skip
"""By the numbers of their scalar types."""

_CPP_NAMES = {
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int",
    torch.int64: "int64_t",
    torch.float16: "half",
    torch.float32: "float",
    torch.float64: "double",
}
"""Where C++ has another name than Python."""

_INTEGERS = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
"""What quantized types are in ONNX."""


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
