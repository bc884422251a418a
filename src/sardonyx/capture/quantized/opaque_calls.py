"""Calls on quantized tensors that stay whole, for functions of the caller's to write.

Neither fake tensors nor ONNX have quantized types: the operator that stands for a call in the graph
takes integers, scales, zero points and sizes one by one, and has the rest fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload, TemporaryOperators
from sardonyx.aten.graph import (
    KEPT_NAMESPACE,
    Argument,
    Dim,
    SourceLocation,
    Value,
    operator_name,
)
from sardonyx.aten.schema import call_by_name
from sardonyx.capture.quantized.tensor import PackedParameters

_numbers = count()


@dataclass(frozen=True, slots=True)
class QuantizedArgument:
    """A quantized tensor of a call, each part a tensor: (integers - zero_point) * scale."""

    integers: Any
    scale: Any
    zero_point: Any
    dtype: torch.dtype
    """Of the integers."""
    axis: int | None = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tuple that stands for it, the axis last where it is quantized per channel."""
        axis = () if self.axis is None else (self.axis,)
        return (self.integers, self.scale, self.zero_point, *axis)

    def __str__(self) -> str:
        told = self.integers.type if isinstance(self.integers, Value) else self.integers
        return f"quantized {told}"

    def mapped(self, of_part: Callable[[Any], Any]) -> QuantizedArgument:
        integers, scale, zero_point = map(of_part, self.parts[:3])
        return replace(self, integers=integers, scale=scale, zero_point=zero_point)


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of the operator in the graph, by its name."""

    name: str


class KeptCall:
    """One form of calls of an operator, as an operator of the graph."""

    def __init__(
        self,
        op: OpOverload,
        packed: Mapping[str, Argument],
        arguments: Mapping[str, Argument],
        size: Sequence[Dim],
        dtype: torch.dtype,
        grid: QuantizedArgument | None = None,
    ) -> None:
        """`packed` are the arguments that the model gives, `arguments` those with what packed
        parameters hold in their place. `size` and `dtype` are those of what the graph holds of the
        result: of its integers, if it is quantized; then `grid` has its scale and zero point."""
        self.op = op
        """The operator that the model calls."""
        self.operands: list[Argument] = []
        """What the operator of the graph is called with."""
        self._parameters: dict[str, str] = {}
        """Its parameters and their types."""
        self._arguments = {name: self._apart(a, name) for name, a in arguments.items()}
        self._packed = {name: self._apart(a, name) for name, a in packed.items()}
        self._dtype = dtype
        self._grid = self._apart(grid, "result")
        self._operand(list(size), "SymInt[]", "result_size")
        self.kept_op: Any = None

    @property
    def key(self) -> str:
        """The same for calls that one operator serves."""
        form = (self._arguments, self._parameters, self._packed, self._dtype, self._grid)
        return f"{operator_name(self.op)}{form}"

    def define(self, operators: TemporaryOperators) -> None:
        name = f"{self.op._schema.name.replace('::', '__')}__form_{next(_numbers)}"
        taken = ", ".join(f"{type_} {name}" for name, type_ in self._parameters.items())
        self.kept_op = operators.define(name, f"({taken}) -> Tensor", self._run, self._run_on_fakes)

    def arguments(self, operands: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the call, of those that the operator of the graph has."""
        return {name: self._together(a, operands) for name, a in self._arguments.items()}

    def grid(self, operands: Mapping[str, Any]) -> QuantizedArgument | None:
        """The scale and zero point of the result; None where it is a real number."""
        found: QuantizedArgument | None = self._together(self._grid, operands)
        return found

    def _run(self, *operands: Any) -> Any:
        by_name = dict(zip(self._parameters, operands, strict=True))
        given = {name: self._together(a, by_name) for name, a in self._packed.items()}
        result = call_by_name(self.op, {n: _as_pytorch_has_it(a) for n, a in given.items()})
        return result.int_repr() if result.is_quantized else result

    def _run_on_fakes(self, *operands: Any) -> Any:
        return torch.empty(operands[-1], dtype=self._dtype)

    def _apart(self, argument: Argument, name: str) -> Any:
        """`name` is what the argument is called in messages."""
        if isinstance(argument, QuantizedArgument):
            names = iter((name, f"{name}_scale", f"{name}_zero_point"))
            return argument.mapped(lambda part: self._apart(part, next(names)))
        if isinstance(argument, (list, tuple)):
            return [self._apart(item, f"{name}_{place}") for place, item in enumerate(argument)]
        if isinstance(argument, (torch.Tensor, Value)):
            return self._operand(argument, "Tensor", name)
        if isinstance(argument, sympy.Basic):
            return self._operand(argument, "SymInt" if argument.is_integer else "Scalar", name)
        return argument

    def _together(self, argument: Any, operands: Mapping[str, Any]) -> Any:
        if isinstance(argument, QuantizedArgument):
            return argument.mapped(lambda part: self._together(part, operands))
        if isinstance(argument, list):
            return [self._together(item, operands) for item in argument]
        return operands[argument.name] if isinstance(argument, Operand) else argument

    def _operand(self, argument: Argument, type_: str, name: str) -> Operand:
        for parameter, known in zip(self._parameters, self.operands, strict=True):
            if known is argument:
                return Operand(parameter)
        while name in self._parameters:
            name += "_"
        self.operands.append(argument)
        self._parameters[name] = type_
        return Operand(name)


def _as_pytorch_has_it(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_as_pytorch_has_it(item) for item in argument]
    if isinstance(argument, QuantizedArgument):
        return _torch_private.quantized_tensor(*argument.parts)
    return argument.content if isinstance(argument, PackedParameters) else argument


class KeptCalls:
    """The calls that stay whole in the recordings of one export; their operators are gone when it
    is closed."""

    def __init__(self, is_kept: Callable[[str], bool]) -> None:
        self._is_kept = is_kept
        self._operators = TemporaryOperators(KEPT_NAMESPACE)
        self._calls: dict[str, KeptCall] = {}
        self.not_kept: dict[str, SourceLocation] = {}
        """Operators that were to stay whole and cannot, with the first call of each."""

    def __iter__(self) -> Iterator[KeptCall]:
        return iter(self._calls.values())

    def recorded(self) -> AbstractContextManager[None]:
        return _torch_private.variable_set(_recording, self)

    def keeps(self, op: OpOverload) -> bool:
        return self._is_kept(operator_name(op))

    def defined(self, call: KeptCall) -> OpOverload:
        """The operator of the graph for a call."""
        known = self._calls.setdefault(call.key, call)
        if known.kept_op is None:
            known.define(self._operators)
        op: OpOverload = known.kept_op
        return op

    def close(self) -> None:
        """When the graph is lowered."""
        self._operators.close()


_recording: ContextVar[KeptCalls | None] = ContextVar("recording", default=None)


def calls_kept() -> KeptCalls | None:
    """Those of the export at hand."""
    return _recording.get()
