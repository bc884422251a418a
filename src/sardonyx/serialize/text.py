"""A model as text, in the form PyTorch users know: `%17 : Float(10, 64) = onnx::Relu(%16)`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from sardonyx.aten.scalar_types import scalar_type_name
from sardonyx.errors import SerializeError
from sardonyx.lower.provenance import SCOPE_KEY, SOURCE_KEY
from sardonyx.lower.values import TORCH_TO_ONNX
from sardonyx.lower.weights import TorchTensor

_TYPE_NAMES = {
    **{onnx_type: scalar_type_name(dtype) for dtype, onnx_type in TORCH_TO_ONNX.items()},
    ir.DataType.STRING: "String",
    ir.DataType.FLOAT4E2M1: "Float4_e2m1fn",
    ir.DataType.INT4: "Int4",
    ir.DataType.UINT4: "UInt4",
}
_SHOWN_ELEMENTS = 8
_INDENT = "  "


def to_text(model: ir.Model) -> str:
    """The main graph, then the model's own functions."""
    graph = model.graph
    parameters = [value for value in graph.initializers.values() if not value.is_graph_input()]
    lines = list(_graph_lines("graph", [*graph.inputs, *parameters], graph, graph.outputs))
    for function in model.functions.values():
        name = _operator(function.domain, function.name, function.overload)
        attributes = f"[{', '.join(function.attributes)}]" if function.attributes else ""
        lines += [
            "",
            *_graph_lines(
                f"function {name}{attributes}", function.inputs, function, function.outputs
            ),
        ]
    return "\n".join(lines) + "\n"


def to_text_from_file(path: str | os.PathLike[str]) -> str:
    """The text of an ONNX file; its external data is not read."""
    try:
        proto = onnx.load(os.fspath(path), load_external_data=False)
    except (OSError, DecodeError) as error:
        raise SerializeError(f"cannot read {os.fspath(path)} as an ONNX model: {error}") from error
    return to_text(ir.from_proto(proto))


def _graph_lines(
    head: str, inputs: Iterable[ir.Value], nodes: Iterable[ir.Node], outputs: Iterable[ir.Value]
) -> Iterator[str]:
    # One input under the other, with no comma between them, as the reference prints a graph.
    start = f"{head}("
    declared = [_declaration(value) for value in inputs] or [""]
    for index, declaration in enumerate(declared):
        margin = start if index == 0 else " " * len(start)
        yield margin + declaration + (") {" if index == len(declared) - 1 else "")
    for node in nodes:
        yield from (_INDENT + line for line in _node_lines(node))
    yield f"{_INDENT}return ({', '.join(_reference(value) for value in outputs)});"
    yield "}"


def _node_lines(node: ir.Node) -> Iterator[str]:
    attributes: list[str] = []
    subgraphs: list[tuple[str, ir.Graph]] = []
    for name, attribute in sorted(node.attributes.items()):
        if attribute.is_ref():
            attributes.append(f"{name}=@{attribute.ref_attr_name}")
        elif attribute.type == ir.AttributeType.GRAPH:
            subgraphs.append((name, attribute.as_graph()))
        elif attribute.type == ir.AttributeType.GRAPHS:
            graphs = enumerate(attribute.as_graphs())
            subgraphs += [(f"{name}[{index}]", graph) for index, graph in graphs]
        else:
            attributes.append(f"{name}={_attribute_value(attribute)}")

    results = ", ".join(_declaration(value) for value in node.outputs if value.name != "")
    listed = f"[{', '.join(attributes)}]" if attributes else ""
    arguments = ", ".join(_reference(value) for value in node.inputs)
    line = f"{results} = {_operator(node.domain, node.op_type, node.overload)}{listed}({arguments})"
    if scope := node.metadata_props.get(SCOPE_KEY):
        line += f", scope: {scope}"
    if source := node.metadata_props.get(SOURCE_KEY):
        line += f" # {source}"
    yield line
    for name, graph in subgraphs:
        inputs = [*graph.inputs, *graph.initializers.values()]
        for text in _graph_lines(f"{name} = graph", inputs, graph, graph.outputs):
            yield _INDENT + text


def _operator(domain: str, name: str, overload: str) -> str:
    return f"{domain or 'onnx'}::{name}" + (f".{overload}" if overload else "")


def _reference(value: ir.Value | None) -> str:
    return "None" if value is None else f"%{value.name}"


def _declaration(value: ir.Value) -> str:
    return f"{_reference(value)} : {_type_text(value.type, value.shape)}"


def _type_text(type_: ir.TypeProtocol | None, shape: ir.Shape | None) -> str:
    if isinstance(type_, ir.SequenceType):
        return f"{_type_text(type_.elem_type, shape)}[]"
    if isinstance(type_, ir.OptionalType):
        return f"Optional[{_type_text(type_.elem_type, shape)}]"
    if type_ is None or shape is None:
        return "Dynamic"
    dims = ", ".join(_dim_text(dim) for dim in shape)
    return f"{_TYPE_NAMES.get(type_.dtype, type_.dtype.name)}({dims})"


def _dim_text(dim: int | ir.SymbolicDim) -> str:
    if isinstance(dim, int):
        return str(dim)
    return "*" if dim.value is None else str(dim.value)


def _attribute_value(attribute: ir.Attr) -> str:
    match attribute.type:
        case ir.AttributeType.TENSOR:
            return _tensor_text(attribute.as_tensor())
        case ir.AttributeType.TENSORS:
            return _list_text([_tensor_text(tensor) for tensor in attribute.as_tensors()])
        case ir.AttributeType.FLOAT:
            return _float_text(attribute.as_float())
        case ir.AttributeType.FLOATS:
            return _list_text([_float_text(number) for number in attribute.as_floats()])
        case ir.AttributeType.STRING:
            return _string_text(attribute.value)
        case ir.AttributeType.STRINGS:
            return _list_text([_string_text(text) for text in attribute.value])
        case ir.AttributeType.INTS:
            return _list_text([str(number) for number in attribute.as_ints()])
        case ir.AttributeType.TYPE_PROTO:
            return _type_text(attribute.value.type, attribute.value.shape)
        case ir.AttributeType.TYPE_PROTOS:
            return _list_text([_type_text(each.type, each.shape) for each in attribute.value])
        case _:
            return str(attribute.value)


def _tensor_text(tensor: ir.TensorProtocol) -> str:
    elsewhere = isinstance(tensor, ir.ExternalTensor) or (
        isinstance(tensor, TorchTensor) and not tensor.has_data
    )
    if elsewhere or tensor.size > _SHOWN_ELEMENTS:
        return "<Tensor>"
    elements = tensor.numpy().reshape(-1).tolist()
    return "{" + ", ".join(_element_text(element) for element in elements) + "}"


def _element_text(element: object) -> str:
    if isinstance(element, float):
        return _float_text(element)
    return _string_text(element) if isinstance(element, bytes) else str(element)


def _float_text(number: float) -> str:
    # Attributes are float32 read into a double: 0.1 comes back as 0.10000000149.
    short = f"{number:g}"
    with np.errstate(over="ignore"):
        return short if np.float32(short) == np.float32(number) else f"{number:.9g}"


def _string_text(text: str | bytes) -> str:
    decoded = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    escaped = decoded.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _list_text(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"
