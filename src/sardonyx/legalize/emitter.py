"""Emits the nodes that replace one node, in its graph and with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.errors import InternalError
from sardonyx.lower.onnx_types.legality import parameters_given, signature_of
from sardonyx.lower.onnx_types.schemas import OpSchema
from sardonyx.lower.onnx_types.shapes import MOST_SHAPE_DATA, inferred_types
from sardonyx.lower.onnx_types.subgraphs import graphs_of, subgraphs_of, with_bodies
from sardonyx.lower.onnx_types.verifier import INPUT_OF_SIZES

# node.meta key of the operator that a replacement node descends from, for error messages.
ORIGIN = "sardonyx.legalized_from"

HALF_DTYPES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


class UniqueNames:
    """Hands out names that are not taken, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    @classmethod
    def beside(cls, model: ir.Model) -> UniqueNames:
        """Names that no value and no node of the model has, in bodies and functions either."""
        taken: set[str | None] = set()
        for graph in graphs_of(model):
            taken.update(value.name for value in graph.inputs)
            taken.update(graph.initializers)
            for node in graph:
                taken.update((node.name, *(value.name for value in node.outputs)))
        return cls(name for name in taken if name)

    def derived_from(self, base: str) -> str:
        number = 0
        while (name := f"{base}_{number}" if number else base) in self._taken:
            number += 1
        self._taken.add(name)
        return name


def rank_of(value: ir.Value) -> int | None:
    return None if value.shape is None else value.shape.rank()


def static_dim(value: ir.Value, axis: int) -> int | None:
    """The size of an axis if it is known."""
    if value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    dim = value.shape[axis]
    return dim if isinstance(dim, int) else None


def known_dims(value: ir.Value) -> list[int | None]:
    """The sizes of all axes, None for those that are not known. The rank has to be."""
    if value.shape is None:
        raise InternalError(f"the rank of {value.name} is not known")
    return [dim if isinstance(dim, int) else None for dim in value.shape]


def same_dim(a: ir.Value, a_axis: int, b: ir.Value, b_axis: int) -> bool:
    """True if two axes are known to be equally long, by number or by symbol."""
    if a.shape is None or b.shape is None:
        return False
    first, second = a.shape[a_axis], b.shape[b_axis]
    if isinstance(first, int) or isinstance(second, int):
        return bool(first == second)
    return first.value is not None and first.value == second.value


def constant_of(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    """The constant that a value holds. An initializer that callers can override is none."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def constant_int(value: ir.Value) -> int | None:
    """The number that a value of one element holds, if it is a constant."""
    constant = constant_of(value)
    return None if constant is None else int(constant.reshape(()))


def input_of(node: ir.Node, index: int) -> ir.Value | None:
    """An optional input of a node."""
    return node.inputs[index] if index < len(node.inputs) else None


def required_input(node: ir.Node, index: int) -> ir.Value:
    value = input_of(node, index)
    if value is None:
        raise InternalError(f"input {index} of {node.op_type} ({node.name}) is missing")
    return value


def is_omitted(output: ir.Value) -> bool:
    """True for an optional output that a node leaves out: ONNX gives it an empty name."""
    return output.name == ""


class Emitter:
    """`b.Mul(x, y)` makes an ONNX node of opset `opset`; lowercase methods are ours.

    Nodes are collected, and placed in the graph only when the rule has succeeded.
    """

    def __init__(self, replaced: ir.Node, opset: int, names: UniqueNames) -> None:
        self.opset = opset
        self.nodes: list[ir.Node] = []
        self._replaced = replaced
        self._names = names
        first_output = next((v.name for v in replaced.outputs if v.name), None)
        self._base = first_output or replaced.name or replaced.op_type

    def __getattr__(self, op_type: str) -> Callable[..., ir.Value]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def emit(*inputs: ir.Value | None, **attributes: Any) -> ir.Value:
            return self.node(op_type, inputs, attributes)[0]

        return emit

    def node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: dict[str, Any] | None = None,
        outputs: int = 1,
    ) -> Sequence[ir.Value]:
        """A node with any number of outputs. Attributes that are None are left out."""
        name = self._names.derived_from(f"{self._base}.{op_type}")
        values = [
            ir.Value(name=name if index == 0 else self._names.derived_from(f"{name}.{index}"))
            for index in range(outputs)
        ]
        given = {key: value for key, value in (attributes or {}).items() if value is not None}
        node = ir.node(op_type, inputs, given, outputs=values, name=name)
        infer_output_types(node, self.opset)
        self._place(node)
        return values

    def adopt(self, nodes: Sequence[ir.Node]) -> None:
        """Nodes that were made elsewhere, with all that is in their bodies, under new names."""
        for node in with_bodies(nodes):
            inner = [value for body in subgraphs_of(node) for value in body.inputs]
            for value in (*node.outputs, *inner):
                value.name = value.name and self._names.derived_from(f"{self._base}.{value.name}")
            node.name = self._names.derived_from(f"{self._base}.{node.op_type}")
            self._note_origin(node)
        self.nodes += nodes

    def _place(self, node: ir.Node) -> None:
        self._note_origin(node)
        self.nodes.append(node)

    def _note_origin(self, node: ir.Node) -> None:
        node.metadata_props.update(self._replaced.metadata_props)
        node.meta[ORIGIN] = self._replaced.meta.get(ORIGIN, self._replaced.op_type)

    def again(
        self,
        inputs: Sequence[ir.Value | None] | None = None,
        **changes: Any,
    ) -> Sequence[ir.Value]:
        """The replaced node once more, with other inputs or attributes (None removes one)."""
        attributes: dict[str, Any] = dict(self._replaced.attributes) | changes
        given = list(self._replaced.inputs if inputs is None else inputs)
        while given and given[-1] is None:
            given.pop()
        old_outputs = self._replaced.outputs
        outputs = self.node(self._replaced.op_type, given, attributes, outputs=len(old_outputs))
        for old, new in zip(old_outputs, outputs, strict=True):
            if is_omitted(old):
                new.name = ""
        return outputs

    def const(self, data: Any, dtype: ir.DataType) -> ir.Value:
        return self.constant(ir.Tensor(np.asarray(data, dtype.numpy()), dtype=dtype))

    def constant(self, tensor: ir.TensorProtocol) -> ir.Value:
        name = self._names.derived_from(f"{self._base}.Constant")
        value = ir.Value(
            name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy())
        )
        attributes = [ir.AttrTensor("value", tensor)]
        self._place(ir.Node("", "Constant", [], attributes, outputs=[value], name=name))
        return value

    def ints(self, *data: int) -> ir.Value:
        """A 1-D int64 constant."""
        return self.const(np.array(data, dtype=np.int64), ir.DataType.INT64)

    def const_like(self, data: Any, like: ir.Value) -> ir.Value:
        """A constant of the element type of `like`, be that known or not."""
        if like.dtype is None:
            return self.CastLike(self.const(data, ir.DataType.FLOAT), like)
        return self.const(data, like.dtype)

    def cast(self, value: ir.Value, dtype: ir.DataType | None) -> ir.Value:
        """Cast, unless the value is of that type or the type is unknown."""
        if dtype is None or value.dtype == dtype:
            return value
        return self.Cast(value, to=int(dtype))

    def at_least_float32(self, value: ir.Value) -> ir.Value:
        """float16 and bfloat16 as float32, anything else as it is."""
        return self.cast(value, ir.DataType.FLOAT) if value.dtype in HALF_DTYPES else value

    def dim(self, value: ir.Value, axis: int) -> ir.Value:
        """The size of one axis as a 1-D int64 tensor of one element."""
        size = static_dim(value, axis)
        if size is not None:
            return self.ints(size)
        if self.opset >= 15:
            end = axis + 1 if axis != -1 else None
            return self.Shape(value, start=axis, end=end)
        rank = rank_of(value)
        return self.Gather(self.Shape(value), self.ints(axis % rank if rank else axis), axis=0)

    def subgraph(
        self,
        inputs: Sequence[ir.Value],
        body: Callable[[Emitter], Sequence[ir.Value]],
        name: str,
    ) -> ir.Graph:
        """A graph for a Scan or Loop attribute, written by `body`."""
        inner = Emitter(self._replaced, self.opset, self._names)
        outputs = body(inner)
        return ir.Graph(inputs, outputs, nodes=inner.nodes, name=name)

    def graph_input(self, suffix: str, dtype: ir.DataType, dims: Sequence[int | None]) -> ir.Value:
        return ir.Value(
            name=self._names.derived_from(f"{self._base}.{suffix}"),
            type=ir.TensorType(dtype),
            shape=ir.Shape(dims),
        )


def infer_output_types(node: ir.Node, opset: int) -> None:
    """Set the dtype and shape of a node's outputs as far as ONNX's own inference knows them."""
    signature = signature_of(node.op_type, opset)
    given = [value for value in node.inputs if value is not None]
    if node.op_type in ("Scan", "Loop"):
        _take_types_of_body(node)
        return
    if signature is None or any(value.type is None for value in given) or subgraphs_of(node):
        return
    types = [
        None if value is None else ir.serde.serialize_value(value).type for value in node.inputs
    ]
    data = [_shape_data(value) for value in node.inputs]
    inferred = inferred_types(signature, node, types, data, opset)
    if inferred is None:
        _bind_output_types(node, signature)  # legality will have its say about the node
        return
    for output, proto_type in zip(node.outputs, inferred, strict=True):
        if proto_type is not None:
            output.type = ir.serde.deserialize_type_proto_for_type(proto_type)
            output.shape = ir.serde.deserialize_type_proto_for_shape(proto_type)
    if node.outputs[0].shape is None and node.op_type in INPUT_OF_SIZES:
        _rank_by_sizes(node)


def _rank_by_sizes(node: ir.Node) -> None:
    """ONNX infers no rank from sizes that are computed, though their number says it."""
    rank = rank_of(required_input(node, 0))
    count = static_dim(required_input(node, INPUT_OF_SIZES[node.op_type]), 0)
    if count is None or (node.op_type == "Expand" and rank is None):
        return
    result = max(count, rank or 0) if node.op_type == "Expand" else count
    node.outputs[0].shape = ir.Shape([None] * result)


def _take_types_of_body(node: ir.Node) -> None:
    """What a Scan or a Loop carries leaves it with the types that it has in the body, and what it
    collects with one more axis."""
    results = list(node.attributes["body"].as_graph().outputs)
    if node.op_type == "Loop":
        results, carried = results[1:], len(node.inputs) - 2
    else:
        carried = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    axes = node.attributes.get_ints("scan_output_axes") or [0] * len(results)
    for position, (output, result) in enumerate(zip(node.outputs, results, strict=True)):
        output.type = result.type
        if result.shape is None:
            continue
        dims: list[int | ir.SymbolicDim | None] = list(result.shape)
        if position >= carried:
            dims.insert(axes[position - carried], None)
        output.shape = ir.Shape(dims)


def _shape_data(value: ir.Value | None) -> onnx.TensorProto | None:
    producer = None if value is None else value.producer()
    if value is None or (producer is not None and producer.op_type != "Constant"):
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size > MOST_SHAPE_DATA:
        return None
    return ir.serde.serialize_tensor(tensor)


def _bind_output_types(node: ir.Node, signature: OpSchema) -> None:
    """Give each output the type of the first input that shares its type variable."""
    bound = {
        parameter.type_name: value.type
        for value, parameter in reversed(list(parameters_given(node.inputs, signature.inputs)))
    }
    for output, parameter in parameters_given(node.outputs, signature.outputs):
        output.type = bound.get(parameter.type_name)
