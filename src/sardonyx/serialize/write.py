"""Writes a model as protobuf without ever holding its weights: their bytes are streamed.

The graph without its initializers is encoded by protobuf. A message is the concatenation of its
fields in any order, so the initializers are fields of their own beside it, the large ones first:
these may have been written while the graph was made. All lengths are known beforehand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import onnx_ir as ir
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from sardonyx.errors import InternalError, SerializeError, format_message
from sardonyx.lower.weights import TorchTensor
from sardonyx.options import ExternalData
from sardonyx.serialize.ahead import WeightsAhead, is_large
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
from sardonyx.serialize.external_data import (
    PROTOBUF_LIMIT,
    Placement,
    place,
    resolve_external_data,
)
from sardonyx.serialize.fields import (
    Field,
    graph_start,
    inline_field,
    reference_field,
    split_at_graph,
)


@dataclass(frozen=True)
class WriteResult:
    """What was written, and where; the paths are None for a stream."""

    model_bytes: int
    data_bytes: int
    path: str | None
    data_path: str | None


@dataclass(frozen=True)
class _Encoded:
    """A model file, in the order in which it is written."""

    start: bytes
    large: list[Field]
    graph: bytes
    others: list[Field]
    end: bytes

    @property
    def size(self) -> int:
        fields = sum(field.size for field in (*self.large, *self.others))
        return len(self.start) + len(self.graph) + len(self.end) + fields

    def write_to(self, sink: Sink) -> None:
        sink.write(self.start)
        _write_fields(self.large, sink)
        self.write_behind_large(sink)

    def write_behind_large(self, sink: Sink) -> None:
        sink.write(self.graph)
        _write_fields(self.others, sink)
        sink.write(self.end)


def write_model(
    model: ir.Model,
    destination: Destination,
    *,
    external_data: bool | ExternalData | None = None,
    given: Mapping[str, ir.TensorProtocol] | None = None,
    ahead: WeightsAhead | None = None,
) -> WriteResult:
    """Writes `model` to a path or into a binary stream, with the tensors `given` for initializers
    that have none. Weights that went `ahead` are on their way to the same path.

    A path holds the whole model or what it held before. `external_data`: None puts the weights into
    a second file when the model is too large for one; True, or an `ExternalData`, asks for it;
    False refuses it.
    """
    check_destination(destination)
    weights = _weights(model, given or {})
    without_weights = _encode_without_weights(model)
    large = [inline_field(name, t) for name, t in weights.items() if is_large(t)]
    others = [inline_field(name, t) for name, t in weights.items() if not is_large(t)]
    whole = _assemble(without_weights, large, others)
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
    moved = (
        {}
        if external is None
        else {
            name: tensor
            for name, tensor in weights.items()
            if tensor.dtype != ir.DataType.STRING
            and tensor.nbytes >= max(external.size_threshold, 1)
        }
    )
    if external is None or not moved:
        _require_readable_size(whole)
        if ahead is not None and ahead.matches(whole.start, whole.large):
            with ahead.continued(whole.start) as sink:
                sink.reserve(whole.size)
                whole.write_behind_large(sink)
        else:
            with staged_files(path) as [sink]:
                sink.reserve(whole.size)
                whole.write_to(sink)
        return WriteResult(sink.written, 0, path, None)

    data_name = external.file_name(path)
    data_path = os.path.join(os.path.dirname(path), data_name)
    check_destination(data_path)
    placements = dict(zip(moved, place(moved.values()), strict=True))
    fields = [
        reference_field(name, tensor, data_name, placements[name])
        if name in moved
        else inline_field(name, tensor)
        for name, tensor in weights.items()
    ]
    encoded = _assemble(without_weights, [], fields)
    _require_readable_size(encoded)
    with staged_files(data_path, path) as [data_sink, sink]:
        data_sink.reserve(max(place.offset + place.length for place in placements.values()))
        _write_data(moved.values(), placements.values(), data_sink)
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
            format_message(
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
        )
    return weights


def _encode_without_weights(model: ir.Model) -> tuple[bytes, bytes, bytes]:
    """What comes before the graph, the graph's fields but the initializers, what comes behind."""
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
        return split_at_graph(ir.to_proto(without_weights))
    except (ir.serde.SerdeError, EncodeError) as error:
        raise SerializeError(f"the graph cannot be encoded: {_root_cause(error)}") from error


def _root_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _root_cause(error.__cause__)


def _assemble(
    without_weights: tuple[bytes, bytes, bytes], large: list[Field], others: list[Field]
) -> _Encoded:
    before, graph, end = without_weights
    size = len(graph) + sum(field.size for field in (*large, *others))
    return _Encoded(before + graph_start(size), large, graph, others, end)


def _require_readable_size(encoded: _Encoded) -> None:
    if encoded.size >= PROTOBUF_LIMIT:
        raise SerializeError(
            f"the model file would take {encoded.size / 2**30:.2f} GiB with what stays in it, "
            "and readers take less than 2 GiB: lower external_data's size_threshold"
        )


def _write_data(
    tensors: Iterable[ir.TensorProtocol], placements: Iterable[Placement], sink: Sink
) -> None:
    for tensor, placement in zip(tensors, placements, strict=True):
        if placement.offset >= sink.written:
            sink.write(bytes(placement.offset - sink.written))
            _stream(tensor, sink)


def _write_fields(fields: Iterable[Field], sink: Sink) -> None:
    for field in fields:
        sink.write(field.prefix)
        if field.data is not None:
            _stream(field.data, sink)


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
