"""Python numbers that a trace carries as 0-d tensors: sizes, and arithmetic on sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.bind import bind, parameters_of
from sardonyx.capture.graph import (
    Argument,
    AtenGraph,
    Node,
    SourceLocation,
    TensorType,
    Value,
    values_in,
)
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.torchscript.values import CodedText, UnknownText
from sardonyx.errors import CaptureError

_sym_float: Callable[[Any], Any] = torch.sym_float
_sym_max: Callable[[Any, Any], Any] = torch.sym_max
_sym_min: Callable[[Any, Any], Any] = torch.sym_min
_sym_int: Callable[[Any], Any] = torch.sym_int


class Read(NamedTuple):
    """The Python value an operator reads; a tuple so that the value may be None."""

    value: Argument


class ScalarTracker:
    """Knows which 0-d tensors hold a size expression, and follows arithmetic on them."""

    def __init__(self, inference: TypeInference, graph: AtenGraph) -> None:
        self._inference = inference
        self._graph = graph
        self._numbers: dict[Value, Any] = {}
        self._roots: dict[Value, Value] = {}
        """The value that another one may be a view of."""
        self._written: set[Value] = set()
        self._in_block = False
        self._count = 0

    def read(self, op: Any, arguments: dict[str, Argument]) -> Read | None:
        """The number (or list) an operator gives that is no tensor: sizes and conversions."""
        name = op._schema.name
        if name == "aten::size":
            shape = list(arguments["self"].shape)
            return Read(shape[arguments["dim"]] if "dim" in arguments else shape)
        if name == "aten::numel":
            return Read(math.prod(arguments["self"].shape))
        if name == "aten::dim":
            return Read(len(arguments["self"].shape))
        convert = _CONVERSIONS.get(name)
        return None if convert is None else self._converted(next(iter(arguments.values())), convert)

    @contextmanager
    def inside_a_block(self) -> Iterator[None]:
        """What a tensor held before a block it may no longer hold in a later iteration."""
        outer, self._in_block = self._in_block, True
        try:
            yield
        finally:
            self._in_block = outer

    def tensor_of(
        self, number: Argument, location: SourceLocation, dtype: torch.dtype | None = None
    ) -> Node:
        """`aten::scalar_tensor` of a number, which stays known."""
        if dtype is None:
            dtype = torch.int64 if _is_integer(number) else torch.get_default_dtype()
            if isinstance(number, bool):
                dtype = torch.bool
        arguments = bind(torch.ops.aten.scalar_tensor.default, [number], {"dtype": dtype})
        self._count += 1
        value = Value(f"number_{self._count}", TensorType(dtype, ()))
        if dtype != torch.bool:
            self._note(value, self._symbolic(number))
        return Node(torch.ops.aten.scalar_tensor.default, arguments, [value], location)

    def follow(self, node: Node) -> None:
        """Computes the node in Python as well where its operands are known numbers."""
        written = [
            value
            for parameter in parameters_of(node.op)
            if parameter.is_written
            for value in values_in(node.arguments[parameter.name])
        ]
        number = self._computed(node)
        for value in written:
            self._forget(value)
        if not written and _may_alias(node):
            for value in node.inputs():
                for output in node.outputs:
                    self._roots[output] = self._root(value)
                break
        if number is not None:
            for value in (*node.outputs, *written):
                self._note(value, number)
                self._roots[value] = self._root(written[0] if written else value)

    def _root(self, value: Value) -> Value:
        return self._roots.get(value, value)

    def _forget(self, written: Value) -> None:
        """What shares memory with `written` no longer holds the number it did."""
        root = self._root(written)
        self._written.add(root)
        for value in [v for v in self._numbers if self._root(v) is root]:
            del self._numbers[value]

    def _known(self, value: Value) -> Any:
        if self._in_block:
            return None
        if value in self._numbers:
            return self._numbers[value]
        if self._root(value) in self._written:
            return None
        if value.dtype not in (torch.int64, torch.float64):
            return None
        return _constant_number(value)

    def _computed(self, node: Node) -> Any:
        compute = _ARITHMETIC.get(node.name) or _ARITHMETIC.get(node.name.replace("_.", ".", 1))
        if compute is None or len(node.outputs) != 1 or node.outputs[0].shape != ():
            return None
        operands: dict[str, Any] = {}
        for name, argument in node.arguments.items():
            if isinstance(argument, Value):
                operands[name] = self._known(argument)
                if operands[name] is None:
                    return None
            else:
                operands[name] = self._symbolic(argument)
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

    def _note(self, value: Value, number: Any) -> None:
        if value.dtype in (torch.int64, torch.float64):
            self._numbers[value] = number

    def _symbolic(self, argument: Argument) -> Any:
        return self._inference.argument(argument) if isinstance(argument, sympy.Expr) else argument

    def _converted(self, argument: Argument, convert: Callable[[Any], Any]) -> Read | None:
        """None where the number is one of the data."""
        if isinstance(argument, (UnknownText, CodedText)):
            raise CaptureError(
                "a number is read from a string that is known at run time: take the number that the"
                " string is made of"
            )
        number = self._known(argument) if isinstance(argument, Value) else self._symbolic(argument)
        return None if number is None else Read(_torch_private.dim_of(convert(number)))


def _may_alias(node: Node) -> bool:
    returns = node.op._schema.returns
    return any(r.alias_info is not None for r in returns) or _torch_private.is_composite(node.op)


def _is_integer(number: Argument) -> bool:
    if isinstance(number, sympy.Expr):
        return bool(number.is_integer)
    return isinstance(number, int)


def _constant_number(value: Value) -> Any:
    constant = value.constant
    if constant is None or constant.numel() != 1 or _torch_private.is_fake(constant):
        return None
    # A Python float that tracing made a float32 tensor: eager computes with the Python float.
    is_single = constant.dtype == torch.float32
    return float(str(constant.cpu().numpy().reshape(()))) if is_single else constant.item()


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


def _cast(o: dict[str, Any]) -> Any:
    return o["self"]


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
    "clamp": _clamped,
    "clamp_min": _clamped,
    "clamp_max": _clamped,
    "to": _cast,
    "_to_copy": _cast,
    "detach": _cast,
    "clone": _cast,
    "alias": _cast,
}
_ARITHMETIC: dict[str, Callable[[dict[str, Any]], Any]] = {
    f"aten::{name}{'.' + overload if overload != 'default' else ''}": compute
    for name, compute in _BY_NAME.items()
    for overload in getattr(torch.ops.aten, name).overloads()
}
