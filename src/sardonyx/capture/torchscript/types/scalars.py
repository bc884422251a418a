"""Numbers that a program, as traces do, carries as 0-d tensors: sizes, and arithmetic on sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, Node, Value, values_in
from sardonyx.aten.schema import parameters_of
from sardonyx.aten.type_inference import TypeInference

_sym_float: Callable[[Any], Any] = torch.sym_float
_sym_max: Callable[[Any, Any], Any] = torch.sym_max
_sym_min: Callable[[Any, Any], Any] = torch.sym_min
_sym_int: Callable[[Any], Any] = torch.sym_int


class ScalarTracker:
    """Knows which 0-d tensors hold a size expression, and follows arithmetic on them."""

    def __init__(self, inference: TypeInference) -> None:
        self._inference = inference
        self._numbers: dict[Value, Any] = {}
        self._written: set[Value] = set()
        """Tensors that were written, before any view was taken of them."""
        self._in_block = False

    def read(self, kind: str, tensor: Value) -> Argument | None:
        """The number that an operator reads off a tensor; None where it is one of the data."""
        convert, number = _CONVERSIONS.get(kind), self._known(tensor)
        if convert is None or number is None:
            return None
        return _torch_private.dim_of(convert(number))

    def inside_a_block(self) -> AbstractContextManager[None]:
        """Numbers known before a block may have changed in a later iteration."""
        return _torch_private.attributes_set(self, _in_block=True)

    def follow(self, node: Node) -> None:
        """Computes the node in Python as well where its operands are known numbers."""
        written = [
            value
            for parameter in parameters_of(node.op)
            if parameter.is_written
            for value in values_in(node.arguments[parameter.name])
        ]
        number = self._computed(node)
        if written:
            roots = set(map(_root, written))
            self._written |= roots
            self._numbers = {v: n for v, n in self._numbers.items() if _root(v) not in roots}
        if number is not None:
            for value in (*node.outputs, *written):
                if value.dtype in _DTYPES:
                    self._numbers[value] = number

    def _known(self, value: Value) -> Any:
        if self._in_block:
            return None
        if value in self._numbers:
            return self._numbers[value]
        if _root(value) in self._written:
            return None
        constant = value.constant
        if constant is None or constant.dtype not in _DTYPES or constant.numel() != 1:
            return None
        return None if _torch_private.is_fake(constant) else constant.item()

    def _computed(self, node: Node) -> Any:
        compute = _ARITHMETIC.get(node.name) or _ARITHMETIC.get(node.name.replace("_.", ".", 1))
        if compute is None or len(node.outputs) != 1 or node.outputs[0].shape != ():
            return None
        operands: dict[str, Any] = {}
        for name, argument in node.arguments.items():
            operands[name] = argument
            if isinstance(argument, Value):
                operands[name] = self._known(argument)
                if operands[name] is None:
                    return None
            elif isinstance(argument, sympy.Expr):
                operands[name] = self._inference.argument(argument)
        in_order = not all(map(_has_few_digits, operands.values()))
        try:
            if in_order:  # each sum and product is rounded, as Python rounds it
                operands = {k: _torch_private.as_model_number(v) for k, v in operands.items()}
            number = compute(operands)
        except (ZeroDivisionError, TypeError, NotImplementedError):
            return None
        output = node.outputs[0]
        if output.dtype == torch.int64 and isinstance(number, (float, torch.SymFloat)):
            return _truncated(number)
        if output.dtype.is_floating_point and isinstance(number, (int, torch.SymInt)):
            return _sym_float(number)
        return number


def _root(value: Value) -> Value:
    """The tensor that a value is, or may be a view of."""
    while (node := value.producer) is not None:
        aliases = any(r.alias_info is not None for r in node.op._schema.returns)
        source = next(node.inputs(), None)
        if source is None or not (aliases or _torch_private.is_composite(node.op)):
            break
        value = source
    return value


def _has_few_digits(number: Any) -> bool:
    """Whether sums and products with it lose none, so that they may be taken in any order."""
    if isinstance(number, torch.SymFloat):
        floats = number.node.expr.atoms(sympy.Float)
        return all(_has_few_digits(float(constant)) for constant in floats)
    if not isinstance(number, float) or not math.isfinite(number):
        return True
    return max(map(abs, number.as_integer_ratio())) < 1 << 10


def _truncated(number: Any) -> Any:
    # int() of a symbolic number would fix it to the example's.
    symbolic = isinstance(number, (torch.SymInt, torch.SymFloat))
    return _sym_int(number) if symbolic else int(number)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "aten::Int": _truncated,
    "aten::IntImplicit": _truncated,
    "aten::Float": _sym_float,
    "aten::FloatImplicit": _sym_float,
    "aten::ScalarImplicit": lambda number: number,
    "aten::Bool": lambda number: number != 0,
}


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda o: function(o["self"], o["other"])


def _divide(o: dict[str, Any]) -> Any:
    mode = o.get("rounding_mode")
    if mode == "floor":
        return o["self"] // o["other"]
    quotient = _sym_float(o["self"]) / o["other"]
    return quotient if mode is None else _truncated(quotient)


def _clamped(o: dict[str, Any]) -> Any:
    number = o["self"]
    if o.get("min") is not None:
        number = _sym_max(number, o["min"])
    return number if o.get("max") is None else _sym_min(number, o["max"])


_DTYPES = (torch.int64, torch.float64)
_BY_NAME: dict[str, Callable[[dict[str, Any]], Any]] = {
    "add": lambda o: o["self"] + o["other"] * o["alpha"],
    "sub": lambda o: o["self"] - o["other"] * o["alpha"],
    "rsub": lambda o: o["other"] - o["self"] * o["alpha"],
    "mul": _binary(operator.mul),
    "div": _divide,
    "true_divide": _divide,
    "floor_divide": _binary(operator.floordiv),
    "remainder": _binary(operator.mod),
    "neg": lambda o: -o["self"],
    "floor": lambda o: _sym_float(math.floor(o["self"])),
    "ceil": lambda o: _sym_float(math.ceil(o["self"])),
    "maximum": _binary(_sym_max),
    "minimum": _binary(_sym_min),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamped),
    "scalar_tensor": lambda o: o["s"],
    **dict.fromkeys(("to", "_to_copy", "detach", "clone", "alias"), lambda o: o["self"]),
}
_ARITHMETIC: dict[str, Callable[[dict[str, Any]], Any]] = {
    f"aten::{name}{'.' + overload if overload != 'default' else ''}": compute
    for name, compute in _BY_NAME.items()
    for overload in getattr(torch.ops.aten, name).overloads()
}
