"""Writes a model as protobuf without ever holding its weights: their bytes are streamed.

The graph without its initializers is encoded by protobuf. A message is the concatenation of its
fields in any order, so the initializers follow as hand-made fields whose `raw_data` comes straight
from the tensors' memory. All lengths are known beforehand.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from sardonyx.errors import InternalError, SerializeError
from sardonyx.lower.weights import TorchTensor
from sardonyx.options import ExternalData
from sardonyx.serialize.destination import (
    Destination,
    Sink,
    check_destination,
    is_device,
    open_device,
    path_of,
    staged_files,
    stream_label,
)
from sardonyx.serialize.external_data_layout import (
    PROTOBUF_LIMIT,
    Placement,
    place,
    resolve_external_data,
)

_LENGTH_DELIMITED = 2
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9


@dataclass(frozen=True)
class WriteResult:
    """What was written, and where; the paths are None for a stream."""

    model_bytes: int
    data_bytes: int
    path: str | None
    data_path: str | None


@dataclass(frozen=True)
class _Field:
    """An initializer as a field of the graph: encoded up to the data, then the data."""

    prefix: bytes
    data: ir.TensorProtocol | None

    @property
    def size(self) -> int:
        return len(self.prefix) + (self.data.nbytes if self.data is not None else 0)


@dataclass(frozen=True)
class _Encoded:
    """A model file, in the order in which it is written."""

    prefix: bytes
    fields: list[_Field]

    @property
    def size(self) -> int:
        return len(self.prefix) + sum(field.size for field in self.fields)

    def write_to(self, sink: Sink) -> None:
        sink.write(self.prefix)
        for field in self.fields:
            sink.write(field.prefix)
            if field.data is not None:
                _stream(field.data, sink)


def write_model(
    model: ir.Model,
    destination: Destination,
    *,
    external_data: bool | ExternalData | None = None,
    given: Mapping[str, ir.TensorProtocol] | None = None,
) -> WriteResult:
    """Writes `model` to a path or into a binary stream, with the tensors `given` for initializers
    that have none.

    A path holds the whole model or what it held before. `external_data`: None puts the weights into
    a second file when the model is too large for one; True, or an `ExternalData`, always does;
    False refuses it.
    """
    check_destination(destination)
    weights = _weights(model, given or {})
    skeleton, graph = _encode_without_weights(model)
    inline = [_inline_field(name, tensor) for name, tensor in weights.items()]
    whole = _assemble(skeleton, graph, inline)
    if not isinstance(destination, str | os.PathLike):
        resolve_external_data(external_data, whole.size, has_path=False)
        sink = Sink(destination, stream_label(destination))
        whole.write_to(sink)
        return WriteResult(sink.written, 0, None, None)

    path = path_of(destination)
    if is_device(path):
        resolve_external_data(external_data, whole.size, has_path=False)
        with open_device(path) as sink:
            whole.write_to(sink)
        return WriteResult(sink.written, 0, path, None)

    external = resolve_external_data(external_data, whole.size, has_path=True)
    least = None if external is None else max(external.size_threshold, 1)
    moved = {
        name: tensor
        for name, tensor in weights.items()
        if least is not None and tensor.dtype != ir.DataType.STRING and tensor.nbytes >= least
    }
    if external is not None and moved:
        data_name = external.file_name(path)
        places = dict(zip(moved, place(moved.values()), strict=True))
        fields = [
            _reference_field(name, tensor, data_name, places[name])
            if name in moved
            else _inline_field(name, tensor)
            for name, tensor in weights.items()
        ]
        encoded = _assemble(skeleton, graph, fields)
        return _write_two_files(encoded, path, data_name, moved.values(), list(places.values()))
    _require_readable_size(whole)
    with staged_files(path) as [sink]:
        sink.reserve(whole.size)
        whole.write_to(sink)
    return WriteResult(sink.written, 0, path, None)


def _write_two_files(
    encoded: _Encoded,
    path: str,
    data_name: str,
    data: Collection[ir.TensorProtocol],
    places: Sequence[Placement],
) -> WriteResult:
    """The model, and beside it a file with the data that it refers to."""
    data_path = os.path.join(os.path.dirname(path), data_name)
    check_destination(data_path)
    _require_readable_size(encoded)
    with staged_files(data_path, path) as [data_sink, sink]:
        data_sink.reserve(max(place.offset + place.length for place in places))
        for tensor, placement in zip(data, places, strict=True):
            if placement.offset >= data_sink.written:
                data_sink.write(bytes(placement.offset - data_sink.written))
                _stream(tensor, data_sink)
        encoded.write_to(sink)
    return WriteResult(sink.written, data_sink.written, path, data_path)


def _weights(
    model: ir.Model, given: Mapping[str, ir.TensorProtocol]
) -> dict[str, ir.TensorProtocol]:
    weights: dict[str, ir.TensorProtocol] = {}
    missing: list[str] = []
    for name, value in model.graph.initializers.items():
        tensor = given.get(name, value.const_value)
        if tensor is None and value.is_graph_input():
            continue
        if tensor is None or (isinstance(tensor, TorchTensor) and not tensor.has_data):
            missing.append(f"{name}: {value.dtype} {value.shape}")
        else:
            weights[name] = tensor
    if missing:
        raise SerializeError(
            f"the weights are missing of {len(missing)} parameters (meta or fake tensors)",
            [
                ("first", missing[:5]),
                (
                    "try",
                    [
                        "save(..., model_state=...), which takes a state_dict or a checkpoint",
                        "or give the model real weights, or export with export_params=False",
                    ],
                ),
            ],
        )
    return weights


def _encode_without_weights(model: ir.Model) -> tuple[bytes, bytes]:
    """The model's fields but the graph, and the graph's fields but the initializers."""
    graph = model.graph
    view = ir.GraphView(
        graph.inputs,
        graph.outputs,
        nodes=graph,
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    without_weights = ir.Model(
        cast(ir.Graph, view),  # onnx-ir documents a model made of a view; its annotation does not
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=list(model.functions.values()),
        metadata_props=model.metadata_props,
        device_configurations=model.device_configurations,
    )
    try:
        proto = ir.to_proto(without_weights)
        graph_bytes = proto.graph.SerializeToString(deterministic=True)
        proto.ClearField("graph")
        return proto.SerializeToString(deterministic=True), graph_bytes
    except (ir.serde.SerdeError, EncodeError) as error:
        raise SerializeError(f"the graph cannot be encoded: {_root_cause(error)}") from error


def _root_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _root_cause(error.__cause__)


def _assemble(skeleton: bytes, graph: bytes, fields: list[_Field]) -> _Encoded:
    graph_size = len(graph) + sum(field.size for field in fields)
    return _Encoded(skeleton + _field_start(_MODEL_GRAPH, graph_size) + graph, fields)


def _inline_field(name: str, tensor: ir.TensorProtocol) -> _Field:
    if tensor.dtype == ir.DataType.STRING:
        proto = ir.to_proto(tensor)
        proto.name = name
        return _whole_field(proto)
    header = _header(name, tensor).SerializeToString(deterministic=True)
    header += _field_start(_TENSOR_RAW_DATA, tensor.nbytes)
    start = _field_start(_GRAPH_INITIALIZER, len(header) + tensor.nbytes)
    return _Field(start + header, tensor)


def _reference_field(
    name: str, tensor: ir.TensorProtocol, location: str, placement: Placement
) -> _Field:
    proto = _header(name, tensor)
    proto.data_location = onnx.TensorProto.EXTERNAL
    proto.external_data.add(key="location", value=location)
    proto.external_data.add(key="offset", value=str(placement.offset))
    proto.external_data.add(key="length", value=str(placement.length))
    return _whole_field(proto)


def _whole_field(proto: onnx.TensorProto) -> _Field:
    encoded = proto.SerializeToString(deterministic=True)
    return _Field(_field_start(_GRAPH_INITIALIZER, len(encoded)) + encoded, None)


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


def _require_readable_size(encoded: _Encoded) -> None:
    if encoded.size >= PROTOBUF_LIMIT:
        raise SerializeError(
            f"the model file would take {encoded.size / 2**30:.2f} GiB with what stays in it, "
            "and readers take less than 2 GiB: lower external_data's size_threshold"
        )


def _stream(tensor: ir.TensorProtocol, sink: Sink) -> None:
    start = sink.written
    tofile = getattr(tensor, "tofile", None)
    if tofile is not None:
        tofile(sink)
    else:
        sink.write(tensor.tobytes())
    if sink.written - start != tensor.nbytes:
        raise InternalError(
            f"{tensor.name} said it has {tensor.nbytes} bytes and gave {sink.written - start}"
        )
