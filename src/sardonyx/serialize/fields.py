"""The fields of a model file, as bytes. Protobuf encodes all but the data of weights, whose fields
are made by hand: encoded up to `raw_data`, which then comes straight from the tensors' memory."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx_ir as ir

from sardonyx.serialize.external_data import Placement

_LENGTH_DELIMITED = 2
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9
_BEFORE_THE_GRAPH = (
    "ir_version",
    "producer_name",
    "producer_version",
    "domain",
    "model_version",
    "doc_string",
)
"""The fields of a model with smaller numbers."""


@dataclass(frozen=True)
class Field:
    """An initializer as a field of the graph: encoded up to the data, then the data."""

    prefix: bytes
    data: ir.TensorProtocol | None

    @property
    def size(self) -> int:
        return len(self.prefix) + (self.data.nbytes if self.data is not None else 0)


def inline_field(name: str, tensor: ir.TensorProtocol) -> Field:
    if tensor.dtype == ir.DataType.STRING:
        proto = ir.to_proto(tensor)
        proto.name = name
        return _whole_field(proto)
    header = _header(name, tensor).SerializeToString(deterministic=True)
    header += _field_start(_TENSOR_RAW_DATA, tensor.nbytes)
    start = _field_start(_GRAPH_INITIALIZER, len(header) + tensor.nbytes)
    return Field(start + header, tensor)


def reference_field(
    name: str, tensor: ir.TensorProtocol, location: str, placement: Placement
) -> Field:
    proto = _header(name, tensor)
    proto.data_location = onnx.TensorProto.EXTERNAL
    proto.external_data.add(key="location", value=location)
    proto.external_data.add(key="offset", value=str(placement.offset))
    proto.external_data.add(key="length", value=str(placement.length))
    return _whole_field(proto)


def split_at_graph(model: onnx.ModelProto) -> tuple[bytes, bytes, bytes]:
    """What comes before the graph, the graph's own fields, and what comes behind."""
    graph = model.graph.SerializeToString(deterministic=True)
    model.ClearField("graph")
    before = onnx.ModelProto()
    for name in _BEFORE_THE_GRAPH:
        if model.HasField(name):
            setattr(before, name, getattr(model, name))
            model.ClearField(name)
    behind: bytes = model.SerializeToString(deterministic=True)
    return before.SerializeToString(deterministic=True), graph, behind


def graph_start(size: int) -> bytes:
    return _field_start(_MODEL_GRAPH, size)


def _whole_field(proto: onnx.TensorProto) -> Field:
    encoded = proto.SerializeToString(deterministic=True)
    return Field(_field_start(_GRAPH_INITIALIZER, len(encoded)) + encoded, None)


def _header(name: str, tensor: ir.TensorProtocol) -> onnx.TensorProto:
    proto = onnx.TensorProto(name=name, data_type=tensor.dtype.value, dims=tensor.shape.numpy())
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    for key in sorted(tensor.metadata_props):
        proto.metadata_props.add(key=key, value=tensor.metadata_props[key])
    return proto


def _field_start(number: int, length: int) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(length)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
