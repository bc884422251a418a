"""`operator_export_type`: operators as they are in PyTorch, for runtimes that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import sympy
import torch

from sardonyx.extend.symbolic_functions.call_arguments import torchscript_argument
from sardonyx.extend.symbolic_functions.graph_context import ATEN_DOMAIN
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.custom_lowerings import Call, Fallback
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import TORCH_TO_ONNX, Tensor
from sardonyx.options import OperatorExportTypes


def fallback_for(kind: OperatorExportTypes) -> Fallback | None:
    """What becomes of operators that ONNX lacks, or of all of them; None where they are refused."""
    if kind is OperatorExportTypes.ONNX:
        return None
    if kind in (OperatorExportTypes.ONNX_ATEN, OperatorExportTypes.ONNX_ATEN_FALLBACK):
        replaces_all = kind is OperatorExportTypes.ONNX_ATEN
        return Fallback(_aten_node, lambda name: name.startswith("aten::"), replaces_all)
    return Fallback(_own_node, lambda name: True, replaces_all=kind is OperatorExportTypes.RAW)


def _aten_node(call: Call) -> list[Tensor]:
    """`org.pytorch.aten::ATen`, which names the operator in its attributes."""
    schema = call.node.op._schema
    attributes = [
        ir.AttrString("operator", schema.name.partition("::")[2]),
        ir.AttrString("overload_name", schema.overload_name),
    ]
    return _written(call, ATEN_DOMAIN, "ATen", attributes)


def _own_node(call: Call) -> list[Tensor]:
    """The operator under its own name, its namespace as the domain."""
    schema = call.node.op._schema
    domain, _, name = schema.name.partition("::")
    overload = schema.overload_name
    attributes = [ir.AttrString("overload_name", overload)] if overload else []
    return _written(call, domain, name, attributes)


def _written(call: Call, domain: str, name: str, attributes: Sequence[ir.Attr]) -> list[Tensor]:
    """A node with all arguments as inputs, in the order of the operator's schema."""
    if any(
        value.dtype not in TORCH_TO_ONNX or value.dtype.is_complex for value in call.node.outputs
    ):
        raise Refusal("it gives complex numbers, or a dtype that ONNX does not have")
    b = call.b
    inputs = [_input(b, name, argument) for name, argument in call.arguments.items()]
    while inputs and inputs[-1] is None:
        inputs.pop()
    node = b.node(domain, name, inputs, attributes, len(call.node.outputs))
    results = []
    for made, value in zip(node.outputs, call.node.outputs, strict=True):
        shape = value.shape if value.has_shape else None
        results.append(Tensor(made, value.dtype, shape, is_sequence=value.is_sequence))
        b.declare(results[-1])
    return results


def _input(b: Builder, name: str, argument: Any) -> ir.Value | None:
    if argument is None:
        return None
    if isinstance(argument, str | torch.device):
        text = [ir.AttrString("value_string", str(argument))]
        constant = b.node("", "Constant", [], text, 1).outputs[0]
        constant.type, constant.shape = ir.TensorType(ir.DataType.STRING), ir.Shape([])
        return constant
    return _tensor(b, name, argument).value


def _tensor(b: Builder, name: str, argument: Any) -> Tensor:
    if isinstance(argument, ComplexTensor):
        raise Refusal(f"its argument {name} is complex")
    if isinstance(argument, Tensor):
        return argument
    if isinstance(argument, list | tuple):
        return _list(b, name, list(argument))
    if isinstance(argument, bool):
        return b.const(torch.tensor(argument))
    if isinstance(argument, int | sympy.Basic):
        return b.scalar(argument)
    if isinstance(argument, float):
        return b.const(torch.tensor(argument, dtype=torch.float64))
    if isinstance(argument, torch.dtype | torch.memory_format) or argument is torch.strided:
        return b.const(torch.tensor(torchscript_argument(argument)))
    raise Refusal(f"its argument {name}={argument!r} cannot be an input of a node")


def _list(b: Builder, name: str, items: list[Any]) -> Tensor:
    if any(item is None or isinstance(item, ComplexTensor | str) for item in items):
        raise Refusal(f"its argument {name} is a list that ONNX cannot hold")
    if items and all(isinstance(item, Tensor) for item in items):
        made: Tensor = b.SequenceConstruct(*items)
        return made
    if items and all(isinstance(item, bool) for item in items):
        return b.const(torch.tensor(items))
    if any(isinstance(item, float) for item in items):
        return b.const(torch.tensor([float(item) for item in items], dtype=torch.float64))
    return b.shape(items)
