"""Calls that stay whole although no recording can hold them as they are.

Each becomes an operator of the graph that takes the tensors and sizes among its arguments, one by
one, and has the rest fixed. A `KeptCall` knows how they belong together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any

import sympy
import torch

from sardonyx._torch_private import OpOverload, TemporaryOperators
from sardonyx.aten.graph import (
    KEPT_NAMESPACE,
    Argument,
    SourceLocation,
    Value,
    operator_name,
)

_numbers = count()


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of the operator in the graph, by its name."""

    name: str


class KeptCall:
    """One form of calls of an operator, as an operator of the graph."""

    def __init__(self, op: OpOverload, arguments: Mapping[str, Argument]) -> None:
        self.op = op
        """The operator that the model calls."""
        self.operands: list[Argument] = []
        """What the operator of the graph is called with."""
        self._parameters: dict[str, str] = {}
        """Its parameters and their types."""
        self._arguments = self._all_apart(arguments)
        self.kept_op: Any = None

    @property
    def key(self) -> str:
        """The same for calls that one operator serves."""
        return f"{operator_name(self.op)}{self._arguments}{self._parameters}"

    def define(self, operators: TemporaryOperators) -> None:
        told = self.op._schema.name.replace("::", "__")
        name = f"{told}__form_{next(_numbers)}"
        taken = ", ".join(f"{type_} {name}" for name, type_ in self._parameters.items())
        gives = "Tensor[]" if "List" in str(self.op._schema.returns[0].type) else "Tensor"
        signature = f"({taken}) -> {gives}"
        self.kept_op = operators.define(name, signature, self.run, self.run_on_fakes)

    def run(self, *operands: Any) -> Any:
        """Its kernel."""
        return self._call(self.arguments(self._by_name(operands)))

    def run_on_fakes(self, *operands: Any) -> Any:
        """What the results are like."""
        return self.run(*operands)

    def _by_name(self, operands: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._parameters, operands, strict=True))

    def _call(self, given: Mapping[str, Any]) -> Any:
        schema = self.op._schema.arguments
        return self.op(
            *(given[a.name] for a in schema if not a.kwarg_only),
            **{a.name: given[a.name] for a in schema if a.kwarg_only},
        )

    def arguments(self, operands: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the call, of those that the operator of the graph has."""
        return {name: self._together(a, operands) for name, a in self._arguments.items()}

    def _all_apart(self, arguments: Mapping[str, Argument]) -> dict[str, Any]:
        return {name: self._apart(argument, name) for name, argument in arguments.items()}

    def _apart(self, argument: Argument, name: str) -> Any:
        """`name` is what the argument is called in messages."""
        if isinstance(argument, (list, tuple)):
            return [self._apart(item, f"{name}_{place}") for place, item in enumerate(argument)]
        if isinstance(argument, (torch.Tensor, Value)):
            return self._operand(argument, "Tensor", name)
        if isinstance(argument, sympy.Basic):
            return self._operand(argument, "SymInt" if argument.is_integer else "Scalar", name)
        return argument

    def _together(self, argument: Any, operands: Mapping[str, Any]) -> Any:
        if isinstance(argument, list):
            return [self._together(item, operands) for item in argument]
        return operands[argument.name] if isinstance(argument, Operand) else argument

    def _operand(self, argument: Argument, type_: str, name: str) -> Operand:
        for parameter, known in zip(self._parameters, self.operands, strict=True):
            if known is argument:
                return Operand(parameter)
        while name in self._parameters:
            name += "_"
        made = Operand(name)
        self.operands.append(argument)
        self._parameters[made.name] = type_
        return made


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

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        token = _recording.set(self)
        try:
            yield
        finally:
            _recording.reset(token)

    def keeps(self, op: OpOverload) -> bool:
        return self._is_kept(operator_name(op))

    def of_operator(self, op: OpOverload) -> KeptCall:
        """The call that an operator of the graph stands for."""
        return next(call for call in self if call.kept_op == op)

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
