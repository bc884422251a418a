"""Values that record the arithmetic of Python functions on them as nodes."""

from __future__ import annotations

from typing import Any

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.graph_context import GraphContext
from sardonyx.extend.symbolic_values import SymbolicValue


class RecordedValue:
    """A tensor as functions of onnxscript's operators know it."""

    def __init__(self, g: GraphContext, value: SymbolicValue) -> None:
        self._g = g
        self.value = value

    @property
    def shape(self) -> tuple[Any, ...] | None:
        return self.value.shape

    @property
    def rank(self) -> int | None:
        return self.value.type().dim()

    @property
    def dtype(self) -> Any:
        from sardonyx.lower.schemas import onnx_dtype

        return None if self.value.dtype is None else onnx_dtype(self.value.dtype)

    def _op(self, name: str, *operands: Any) -> RecordedValue:
        given = [o.value if isinstance(o, RecordedValue) else o for o in operands]
        return RecordedValue(self._g, self._g.op(name, *given))

    def __add__(self, other: Any) -> RecordedValue:
        return self._op("Add", self, other)

    def __radd__(self, other: Any) -> RecordedValue:
        return self._op("Add", other, self)

    def __sub__(self, other: Any) -> RecordedValue:
        return self._op("Sub", self, other)

    def __rsub__(self, other: Any) -> RecordedValue:
        return self._op("Sub", other, self)

    def __mul__(self, other: Any) -> RecordedValue:
        return self._op("Mul", self, other)

    def __rmul__(self, other: Any) -> RecordedValue:
        return self._op("Mul", other, self)

    def __truediv__(self, other: Any) -> RecordedValue:
        return self._op("Div", self, other)

    def __rtruediv__(self, other: Any) -> RecordedValue:
        return self._op("Div", other, self)

    def __matmul__(self, other: Any) -> RecordedValue:
        return self._op("MatMul", self, other)

    def __pow__(self, other: Any) -> RecordedValue:
        return self._op("Pow", self, other)

    def __neg__(self) -> RecordedValue:
        return self._op("Neg", self)

    def __lt__(self, other: Any) -> RecordedValue:
        return self._op("Less", self, other)

    def __le__(self, other: Any) -> RecordedValue:
        return self._op("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> RecordedValue:
        return self._op("Greater", self, other)

    def __ge__(self, other: Any) -> RecordedValue:
        return self._op("GreaterOrEqual", self, other)

    def __and__(self, other: Any) -> RecordedValue:
        return self._op("And", self, other)

    def __or__(self, other: Any) -> RecordedValue:
        return self._op("Or", self, other)

    def __bool__(self) -> bool:
        raise SymbolicFunctionError(
            f"{self.value!r} is known when the file runs: a Python `if` cannot ask for it now"
        )
