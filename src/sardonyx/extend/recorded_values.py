"""Values that record the arithmetic of Python functions on them as nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.onnx_types.schemas import onnx_dtype


def _recording(
    operator: str, *, is_reflected: bool = False
) -> Callable[[RecordedValue, Any], RecordedValue]:
    """A method for two operands, the other one first where it is reflected."""

    def method(self: RecordedValue, other: Any) -> RecordedValue:
        operands = (other, self) if is_reflected else (self, other)
        return self._op(operator, *operands)

    return method


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
        return None if self.value.dtype is None else onnx_dtype(self.value.dtype)

    def _op(self, name: str, *operands: Any) -> RecordedValue:
        given = [o.value if isinstance(o, RecordedValue) else o for o in operands]
        return RecordedValue(self._g, self._g.op(name, *given))

    __add__, __radd__ = _recording("Add"), _recording("Add", is_reflected=True)
    __sub__, __rsub__ = _recording("Sub"), _recording("Sub", is_reflected=True)
    __mul__, __rmul__ = _recording("Mul"), _recording("Mul", is_reflected=True)
    __truediv__, __rtruediv__ = _recording("Div"), _recording("Div", is_reflected=True)
    __matmul__, __pow__ = _recording("MatMul"), _recording("Pow")
    __lt__, __le__ = _recording("Less"), _recording("LessOrEqual")
    __gt__, __ge__ = _recording("Greater"), _recording("GreaterOrEqual")
    __and__, __or__ = _recording("And"), _recording("Or")

    def __neg__(self) -> RecordedValue:
        return self._op("Neg", self)

    def __bool__(self) -> bool:
        raise SymbolicFunctionError(
            f"{self.value!r} is known when the file runs: a Python `if` cannot ask for it now"
        )
