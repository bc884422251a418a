"""Arithmetic of Python numbers in a TorchScript program.

Numbers that are known are computed by PyTorch itself, expressions of sizes by its symbolic
numbers, everything else by tensor operators: 0-d tensors of int64, float64 and bool hold what
Python does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, AtenGraph, SymbolSource, Value
from sardonyx.aten.type_inference import TypeInference, type_of
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    is_condition,
    is_number,
    number_dtype,
)

_LONGEST_EXPRESSION = 40
"""Operations in an expression of sizes; longer ones are computed as tensors from there on."""
_aten = torch.ops.aten


class ScriptNumbers:
    def __init__(
        self, call: Callable[..., Value], graph: AtenGraph, inference: TypeInference
    ) -> None:
        self.call = call
        self._graph = graph
        self._inference = inference
        self._symbols: dict[Value, sympy.Symbol] = {}

    def compute(self, name: str, operands: Sequence[Argument], result: torch.dtype) -> Argument:
        """The result of an operator on numbers."""
        simple = _SIMPLE.get(name)
        if simple is not None:
            found = simple(*operands)
            if found is not None:
                return found
        symbolic = _SYMBOLIC.get(name)
        if symbolic is not None and not any(
            isinstance(o, ComputedNumber) or is_condition(o) for o in operands
        ):
            expression = self._expression(symbolic, operands)
            if expression is not None and (
                not isinstance(expression, sympy.Basic)
                or sympy.count_ops(expression) <= _LONGEST_EXPRESSION
            ):
                return expression
        tensors = [self.as_tensor(o) for o in operands]
        return ComputedNumber(self._cast(_AS_TENSORS[name](self, tensors, result), result))

    def _expression(self, symbolic: Callable[..., Any], operands: Sequence[Argument]) -> Argument:
        """Computed by PyTorch's symbolic numbers; None where they cannot."""
        try:
            made = symbolic(*(self._symbolic(o) for o in operands))
        except (TypeError, ValueError, ZeroDivisionError, RuntimeError, AttributeError):
            return None
        return None if made is None else _torch_private.dim_of(made)

    def as_tensor(self, number: Argument, dtype: torch.dtype | None = None) -> Value:
        """The 0-d tensor of a number."""
        if isinstance(number, ComputedNumber):
            return self._cast(number.value, dtype or number.value.dtype)
        dtype = dtype or number_dtype(number)
        if not isinstance(number, sympy.Basic):
            tensor = torch.tensor(number, dtype=dtype)
            return Value("number", type_of(tensor), constant=tensor)
        return self.call(_aten.scalar_tensor.default, number, dtype=dtype)

    def as_scalar(self, number: Argument) -> Argument:
        """As an argument of an operator: a number, or an expression of symbols."""
        if not isinstance(number, ComputedNumber):
            return number
        value = number.value
        if value not in self._symbols:
            kind = torch.float64 if value.dtype == torch.float64 else torch.int64
            made = _torch_private.new_number(self._inference.mode, kind)
            self._symbols[value] = _torch_private.dim_of(made)
        symbol = self._symbols[value]
        self._graph.symbols[symbol] = SymbolSource(value, None)
        return symbol

    def read(self, tensor: Value, dtype: torch.dtype) -> ComputedNumber:
        """`int(x)`, `x.item()`: the element of a tensor that has one."""
        made = self.call(_aten._to_copy.default, tensor, dtype=dtype)
        if all(isinstance(d, int) for d in tensor.shape):
            return ComputedNumber(self.call(_aten.reshape.default, made, []))
        for _ in tensor.shape:  # PyTorch does not accept a symbolic size that must be 1
            made = self.call(_aten.select.int, made, 0, 0)
        return ComputedNumber(made)

    def divided_up(self, number: Argument, divisor: Argument) -> Argument:
        """The quotient of integers, rounded up."""
        less = self.compute("aten::sub", [divisor, 1], torch.int64)
        above = self.compute("aten::add", [number, less], torch.int64)
        return self.compute("aten::floordiv", [above, divisor], torch.int64)

    def all_equal(self, left: Sequence[Argument], right: Sequence[Argument]) -> Argument:
        """Whether two lists of numbers are the same."""
        if len(left) != len(right):
            return False
        result: Argument = True
        for one, other in zip(left, right, strict=True):
            same = self.compute("aten::eq", [one, other], torch.bool)
            result = self.compute("aten::__and__", [result, same], torch.bool)
        return result

    def same_elements(self, left: Value, right: Value) -> ComputedNumber:
        """Whether tensors, of which it is known at run time that their sizes are equal, are."""
        if left.shape != right.shape:
            # Their sizes are other expressions: the elements of one at the places of the other.
            left, right = (self.call(_aten.reshape.default, t, [-1]) for t in (left, right))
            places = self.call(_aten.arange.default, left.shape[0], dtype=torch.int64)
            right = self.call(_aten.index_select.default, right, 0, places)
        equal = self.call(_aten.eq.Tensor, left, right)
        return ComputedNumber(self.call(_aten.all.default, equal))

    def _cast(self, value: Value, dtype: torch.dtype) -> Value:
        return (
            value if value.dtype == dtype else self.call(_aten._to_copy.default, value, dtype=dtype)
        )

    def _symbolic(self, number: Argument) -> Any:
        return self._inference.argument(number) if isinstance(number, sympy.Basic) else number

    def common(self, tensors: Sequence[Value]) -> list[Value]:
        """In float64 if one of them is, else in int64."""
        is_float = any(t.dtype == torch.float64 for t in tensors)
        return [self._cast(t, torch.float64 if is_float else torch.int64) for t in tensors]

    def floats(self, tensors: Sequence[Value]) -> list[Value]:
        return [self._cast(t, torch.float64) for t in tensors]

    def bools(self, tensors: Sequence[Value]) -> list[Value]:
        return [self._cast(t, torch.bool) for t in tensors]


AsTensors = Callable[[ScriptNumbers, list[Value], torch.dtype], Value]


def _of(op: Any, operands: str = "common", **kwargs: Argument) -> AsTensors:
    def compute(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
        return numbers.call(op, *getattr(numbers, operands)(tensors), **kwargs)

    return compute


def _bitwise(op: Any, logical: Any) -> AsTensors:
    def compute(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
        if result == torch.bool:
            return numbers.call(logical, *numbers.bools(tensors))
        return numbers.call(op, *numbers.common(tensors))

    return compute


def _converted(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
    return tensors[0]


def _floor_divided(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
    operands = numbers.common(tensors)
    if operands[0].dtype == torch.int64:
        return numbers.call(_aten.div.Tensor_mode, *operands, rounding_mode="floor")
    # TorchScript rounds the quotient down: 1.0 // 0.1 is 10, where it is 9 in Python.
    return numbers.call(_aten.floor.default, numbers.call(_aten.div.Tensor, *operands))


def _remainder(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
    left, right = numbers.common(tensors)
    if left.dtype == torch.int64:
        return numbers.call(_aten.remainder.Tensor, left, right)
    rest = numbers.call(_aten.fmod.Tensor, left, right)
    return numbers.call(_aten.fmod.Tensor, numbers.call(_aten.add.Tensor, right, rest), right)


def _logarithm(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
    logs = [numbers.call(_aten.log.default, t) for t in numbers.floats(tensors)]
    return logs[0] if len(logs) == 1 else numbers.call(_aten.div.Tensor, *logs)


def _power(numbers: ScriptNumbers, tensors: list[Value], result: torch.dtype) -> Value:
    operands = numbers.floats(tensors) if result == torch.float64 else numbers.common(tensors)
    return numbers.call(_aten.pow.Tensor_Tensor, *operands)


def _of_integers(compute: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*operands: Any) -> Any:
        if any(isinstance(o, (float, torch.SymFloat)) for o in operands):
            raise TypeError
        return compute(*operands)

    return checked


_OF_FLOATS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erf",
    "erfc", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "lgamma", "log10", "log1p",
    "log2", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_OF_TWO_NUMBERS = ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")
_CONVERSIONS = ("Int", "Float", "Bool", "ScalarImplicit")
_AS_TENSORS: dict[str, AsTensors] = {
    **{f"aten::{name}": _of(getattr(_aten, name).default, "floats") for name in _OF_FLOATS},
    **{f"aten::{name}": _of(getattr(_aten, name).Tensor) for name in _OF_TWO_NUMBERS},
    **{f"aten::{name}": _converted for name in _CONVERSIONS},
    "aten::div": _of(_aten.div.Tensor, "floats"),
    "aten::floordiv": _floor_divided,
    "aten::__round_to_zero_floordiv": _of(_aten.div.Tensor_mode, rounding_mode="trunc"),
    "aten::remainder": _remainder,
    "aten::fmod": _of(_aten.fmod.Tensor, "floats"),
    "aten::pow": _power,
    "aten::log": _logarithm,
    "aten::copysign": _of(_aten.copysign.Tensor, "floats"),
    "aten::gcd": _of(_aten.gcd.default),
    "aten::neg": _of(_aten.neg.default),
    "aten::abs": _of(_aten.abs.default),
    "aten::fabs": _of(_aten.abs.default, "floats"),
    "aten::degrees": _of(_aten.rad2deg.default, "floats"),
    "aten::radians": _of(_aten.deg2rad.default, "floats"),
    "aten::__not__": _of(_aten.logical_not.default, "bools"),
    "aten::__and__": _bitwise(_aten.bitwise_and.Tensor, _aten.logical_and.default),
    "aten::__or__": _bitwise(_aten.bitwise_or.Tensor, _aten.logical_or.default),
    "aten::__xor__": _bitwise(_aten.bitwise_xor.Tensor, _aten.logical_xor.default),
    "aten::__lshift__": _of(_aten.bitwise_left_shift.Tensor),
    "aten::__rshift__": _of(_aten.bitwise_right_shift.Tensor),
    "prim::abs": _of(_aten.abs.default),
    "prim::min": _of(_aten.minimum.default),
    "prim::max": _of(_aten.maximum.default),
}
_sym_int: Callable[[Any], Any] = torch.sym_int
_sym_float: Callable[[Any], Any] = torch.sym_float
_SYMBOLIC: dict[str, Callable[..., Any]] = {
    **{f"aten::{name}": getattr(operator, name) for name in _OF_TWO_NUMBERS},
    "aten::div": operator.truediv,
    "aten::floordiv": _of_integers(operator.floordiv),
    "aten::remainder": _of_integers(operator.mod),
    "aten::neg": operator.neg,
    "aten::Int": _sym_int,
    "aten::Float": _sym_float,
    "aten::floor": math.floor,
    "aten::ceil": math.ceil,
    "prim::min": torch.sym_min,
    "prim::max": torch.sym_max,
}
"""Operators on expressions of sizes."""


def _and(left: Argument, right: Argument) -> Argument | None:
    if left is False or right is False:
        return False
    return right if left is True else left if right is True else None


def _or(left: Argument, right: Argument) -> Argument | None:
    if left is True or right is True:
        return True
    return right if left is False else left if right is False else None


def _not(condition: Argument) -> Argument | None:
    return sympy.Not(condition) if isinstance(condition, (sympy.Eq, sympy.Ne)) else None


_SIMPLE: dict[str, Callable[..., Argument | None]] = {
    "aten::__and__": _and,
    "aten::__or__": _or,
    "aten::__not__": _not,
}
"""Results that are known although an operand is not."""


def is_arithmetic(name: str, operands: Sequence[Argument]) -> bool:
    return name in _AS_TENSORS and all(map(is_number, operands))
