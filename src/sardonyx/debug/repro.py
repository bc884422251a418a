"""A model with its inputs and outputs in a folder, laid out as the tests of ONNX backends are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from sardonyx.errors import SerializeError
from sardonyx.lower.weights import TorchTensor
from sardonyx.serialize.writer import write_model
from sardonyx.verify.onnxruntime_session import as_in_file


def write_repro(
    folder: Path, model: ir.Model, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
) -> None:
    data = folder / "test_data_set_0"
    try:
        data.mkdir(parents=True, exist_ok=True)
        for before in (*data.glob("input_*.pb"), *data.glob("output_*.pb")):
            before.unlink()
        for kind, values in (("input", inputs), ("output", outputs)):
            for index, (name, value) in enumerate(values.items()):
                encoded = _proto(name, value).SerializeToString()
                (data / f"{kind}_{index}.pb").write_bytes(encoded)
    except OSError as error:
        raise SerializeError(f"{folder} cannot be written: {error}") from error
    write_model(model, folder / "model.onnx", external_data=None)


def _proto(name: str, value: Any) -> onnx.TensorProto | onnx.SequenceProto:
    if isinstance(value, list):
        items = [_tensor_proto("", item) for item in value]
        kind = onnx.SequenceProto.TENSOR
        return onnx.SequenceProto(name=name, elem_type=kind, tensor_values=items)
    return _tensor_proto(name, value)


def _tensor_proto(name: str, tensor: torch.Tensor) -> onnx.TensorProto:
    return ir.to_proto(TorchTensor(as_in_file(tensor), name))
