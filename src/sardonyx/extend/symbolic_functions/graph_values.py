"""The values of a call of a symbolic function, and the bodies that it fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import sympy
import torch

from sardonyx.capture.quantized.opaque_calls import QuantizedArgument
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.values import (
    SymbolicNode,
    SymbolicValue,
    ValueType,
    node_of_onnx,
    onnx_type,
)
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import Tensor

UNKNOWN = ValueType.of_tensor(None, None)


class Values:
    """The values of one call of a symbolic function."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._known: dict[ir.Value, SymbolicValue] = {}

    def of_tensor(self, tensor: Tensor) -> SymbolicValue:
        if isinstance(tensor, ComplexTensor):
            raise Refusal("symbolic functions are not given complex tensors")
        known = self._known.get(tensor.value)
        if known is None:
            known = self._known[tensor.value] = SymbolicValue.of_tensor(self, tensor)
        return known

    def of_onnx(self, value: ir.Value) -> SymbolicValue:
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = SymbolicValue(self, value, onnx_type(value))
        return known

    def of_argument(self, argument: Any) -> SymbolicValue:
        """An argument of the call, as lowerings get it."""
        if isinstance(argument, SymbolicValue):
            return argument
        if isinstance(argument, Tensor):
            return self.of_tensor(argument)
        if isinstance(argument, (list, tuple)):
            return SymbolicValue.of_python(self, [self.of_argument(item) for item in argument])
        if isinstance(argument, QuantizedArgument):
            return self.of_tuple([self.of_argument(part) for part in argument.parts])
        if isinstance(argument, sympy.Integer):
            argument = int(argument)
        return SymbolicValue.of_python(self, argument)

    def of_tuple(self, items: Sequence[SymbolicValue]) -> SymbolicValue:
        return SymbolicValue(self, list(items), ValueType("TupleType"))

    def new(
        self, value: ir.Value, type_: ValueType, const: torch.Tensor | None = None
    ) -> SymbolicValue:
        made = self._known[value] = SymbolicValue(self, value, type_, const)
        self.declare(made)
        return made

    def declare(self, value: SymbolicValue) -> None:
        """Record what is known of a value in the graph."""
        type_ = value.type()
        is_sequence = type_.kind() == "ListType"
        type_ = type_.getElementType() if is_sequence else type_
        if type_.tensor_dtype is not None:
            self.b.declare(
                Tensor(value.content, type_.tensor_dtype, type_.shape, is_sequence=is_sequence)
            )


@dataclass(slots=True)
class Block:
    """The body of an operator that a symbolic function fills; `None` for the graph itself."""

    values: Values
    onnx_graph: ir.Graph
    input_types: Sequence[ValueType] = ()
    """What is known of its inputs before they are made."""
    written: list[ir.Node] = field(default_factory=list)

    def addInputToBlock(self, name: str = "") -> SymbolicValue:
        place = len(self.onnx_graph.inputs)
        value = ir.Value(name=name or f"{self.onnx_graph.name}_in{place}")
        self.onnx_graph.inputs.append(value)
        known = self.input_types[place] if place < len(self.input_types) else UNKNOWN
        return self.values.new(value, known)

    def registerOutput(self, value: SymbolicValue) -> int:
        if not value.is_tensor:
            raise SymbolicFunctionError(f"a block gives tensors, not {value!r}")
        self.onnx_graph.outputs.append(value.content)
        return len(self.onnx_graph.outputs) - 1

    def inputs(self) -> Iterator[SymbolicValue]:
        return map(self.values.of_onnx, self.onnx_graph.inputs)

    def outputs(self) -> Iterator[SymbolicValue]:
        return map(self.values.of_onnx, self.onnx_graph.outputs)

    def nodes(self) -> Iterator[SymbolicNode]:
        return (node_of_onnx(self.values, node) for node in self.written)

    def finish(self) -> None:
        self.onnx_graph.extend(self.written)
        self.written = []
