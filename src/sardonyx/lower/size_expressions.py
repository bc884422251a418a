"""Size expressions computed in the graph: `h // 2 + 1` becomes Shape, Div, Add."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import SymbolSource, Value
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import Dim, Tensor

if TYPE_CHECKING:
    from sardonyx.lower.builder import Builder


class SizeArithmetic:
    """Materializes each expression once, as an int64 (or float64) tensor of shape [1]."""

    def __init__(
        self,
        builder: Builder,
        symbols: dict[sympy.Symbol, SymbolSource],
        symbol_names: dict[sympy.Symbol, str],
        value_of: Callable[[Value], Tensor],
    ) -> None:
        self._b = builder
        self._symbols = symbols
        self._names = symbol_names
        self._value_of = value_of
        self.computed: dict[sympy.Basic, Tensor] = {}
        self._texts: dict[sympy.Basic, str] = {}
        # Two sizes never share a text, whatever the caller calls them: equal text is equal size.
        names = set(symbol_names.values())
        self._meant: dict[str, sympy.Basic] = {name: sympy.Symbol(name) for name in names}

    def dim_name(self, dim: Dim | None) -> int | str | None:
        """A dim as the file writes it: a number, a name, or an expression of names."""
        if dim is None or isinstance(dim, int):
            return dim
        if isinstance(dim, sympy.Integer):
            return int(dim)
        if dim not in self._texts:
            renamed = dim.xreplace({s: self._as_written(s) for s in dim.free_symbols})
            text = str(renamed)
            while self._meant.setdefault(text, renamed) != renamed:
                text = f"({text})"
            self._texts[dim] = text
        return self._texts[dim]

    def in_callers_names(self, text: str) -> str:
        """A message, its sizes under the names that the caller gave them."""
        return in_callers_names(text, self._names, of_data=None)

    def _as_written(self, symbol: sympy.Symbol) -> sympy.Symbol:
        if symbol in self._names:
            return sympy.Symbol(self._names[symbol])
        name = symbol.name
        while name in self._names.values():
            name += "_"
        return sympy.Symbol(name)

    def materialize(self, expression: Dim) -> Tensor:
        key = sympy.sympify(expression)
        if key not in self.computed:
            self.computed[key] = self._compute(key)
        return self.computed[key]

    def _compute(self, e: Any) -> Tensor:
        b = self._b
        if isinstance(e, sympy.Integer):
            return b.const(torch.tensor([int(e)], dtype=torch.int64))
        if isinstance(e, (sympy.Float, sympy.Rational)):
            return b.const(torch.tensor([float(e)], dtype=torch.float64))
        if isinstance(e, sympy.Symbol):
            return self._symbol(e)
        if isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Integer) and e.exp > 0:
            base = self.materialize(e.base)
            return reduce(b.Mul, [base] * int(e.exp))
        if isinstance(e, sympy.Piecewise) and e.args[-1][1] == sympy.true:
            chosen = self.materialize(e.args[-1][0])
            for then, condition in reversed(e.args[:-1]):
                chosen = _where(b, e, [self.materialize(condition), self.materialize(then), chosen])
            return chosen
        handler = _HANDLERS.get(type(e).__name__)
        if handler is None:
            raise Refusal(f"the size {e} cannot be computed in the graph ({type(e).__name__})")
        return handler(b, e, [self.materialize(a) for a in e.args])

    def _symbol(self, symbol: sympy.Symbol) -> Tensor:
        source = self._symbols.get(symbol)
        if source is None:
            raise Refusal(f"the size {symbol} has no source in the graph")
        tensor = self._value_of(source.value)
        if source.axis is None:
            if tensor.is_floating_point:  # x.item() of floats: a number, not a size
                return self._b.reshape(self._b.cast(tensor, torch.float64), [1])
            return self._b.size(tensor)
        return self._b.Shape(tensor, start=source.axis, end=source.axis + 1)


def _common(b: Builder, operands: list[Tensor]) -> list[Tensor]:
    if any(o.dtype == torch.float64 for o in operands):
        return [b.cast(o, torch.float64) for o in operands]
    return operands


def _fold(op: str, b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    return reduce(partial(b.op, op), _common(b, operands))


def _floor_divide(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    left, right = operands
    if e.args[0].is_nonnegative and e.args[1].is_positive:
        result = b.Div(left, right)
    else:  # ONNX Div truncates; Mod takes the divisor's sign, as Python's does.
        result = b.Div(b.Sub(left, b.Mod(left, right)), right)
    return result


def _modulo(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    left, right = _common(b, operands)
    if left.dtype != torch.float64:
        return b.Mod(left, right)
    # ONNX has C's fmod for floats, with the sign of the dividend.
    rest = b.Mod(left, right, fmod=1)
    is_other_sign = b.Less(b.Mul(rest, b.Sign(right)), 0.0)
    return b.Where(is_other_sign, b.Add(rest, right), rest)


def _divide(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    left, right = (b.cast(o, torch.float64) for o in operands)
    return b.Div(left, right)


def _power(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    base, exponent = _common(b, operands)
    return b.Pow(base, exponent)


def _unary(op: str, dtype: torch.dtype, b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    return b.cast(b.op(op, b.cast(operands[0], torch.float64)), dtype)


def _where(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    condition, then, otherwise = operands
    then, otherwise = _common(b, [then, otherwise])
    return b.Where(condition, then, otherwise)


def _unequal(b: Builder, e: Any, operands: list[Tensor]) -> Tensor:
    return b.Not(b.Equal(*_common(b, operands)))


_FUNCTIONS = (
    "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
)  # fmt: skip
_HANDLERS: dict[str, Callable[[Builder, Any, list[Tensor]], Tensor]] = {
    "Add": partial(_fold, "Add"),
    "Mul": partial(_fold, "Mul"),
    "Max": partial(_fold, "Max"),
    "Min": partial(_fold, "Min"),
    "FloorDiv": _floor_divide,
    "CleanDiv": _floor_divide,
    "Mod": _modulo,
    "PythonMod": _modulo,
    "BitwiseFn_bitwise_and": partial(_fold, "BitwiseAnd"),
    "BitwiseFn_bitwise_or": partial(_fold, "BitwiseOr"),
    "BitwiseFn_bitwise_xor": partial(_fold, "BitwiseXor"),
    "IntTrueDiv": _divide,
    "FloatTrueDiv": _divide,
    "FloatPow": _power,
    "PowByNatural": _power,
    "ToFloat": lambda b, e, operands: b.cast(operands[0], torch.float64),
    "TruncToInt": lambda b, e, operands: b.cast(operands[0], torch.int64),
    "FloorToInt": partial(_unary, "Floor", torch.int64),
    "CeilToInt": partial(_unary, "Ceil", torch.int64),
    "RoundToInt": partial(_unary, "Round", torch.int64),
    "floor": partial(_unary, "Floor", torch.int64),
    "ceiling": partial(_unary, "Ceil", torch.int64),
    **{f"OpaqueUnaryFn_{op.lower()}": partial(_unary, op, torch.float64) for op in _FUNCTIONS},
    "OpaqueUnaryFn_log2": lambda b, e, operands: b.Div(
        b.Log(b.cast(operands[0], torch.float64)), math.log(2)
    ),
    "Abs": lambda b, e, operands: b.Abs(operands[0]),
    "Identity": lambda b, e, operands: operands[0],
    "Where": _where,
    "ITE": _where,
    "Equality": partial(_fold, "Equal"),
    "Unequality": _unequal,
    "StrictLessThan": partial(_fold, "Less"),
    "LessThan": partial(_fold, "LessOrEqual"),
    "StrictGreaterThan": partial(_fold, "Greater"),
    "GreaterThan": partial(_fold, "GreaterOrEqual"),
    "Not": lambda b, e, operands: b.Not(operands[0]),
    "And": partial(_fold, "And"),
    "Or": partial(_fold, "Or"),
}
