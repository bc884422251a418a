"""The items of a sequence that ONNX Runtime gives: its Python API shows those of tensors alone."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnx
from onnx import helper

from sardonyx.errors import VerificationError

_OPSET = 17
_ELEMENTS = {
    "float": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "double": onnx.TensorProto.DOUBLE,
    "bool": onnx.TensorProto.BOOL,
    **{
        f"{sign}int{bits}": getattr(onnx.TensorProto, f"{sign}int{bits}".upper())
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}


class SequenceItems:
    """Takes sequences apart by models of two operators."""

    def __init__(self, runtime: ModuleType) -> None:
        self._runtime = runtime
        self._sessions: dict[str, Any] = {}

    def of(self, sequence: Any) -> list[Any]:
        """An OrtValue for each item."""
        kind = sequence.data_type()
        if kind not in self._sessions:
            options = self._runtime.SessionOptions()
            options.log_severity_level = 3
            self._sessions[kind] = self._runtime.InferenceSession(
                _model(kind), options, providers=["CPUExecutionProvider"]
            )
        session = self._sessions[kind]
        (length,) = session.run_with_ort_values(["length"], {"sequence": sequence})
        items = []
        for index in range(int(length.numpy())):
            position = self._runtime.OrtValue.ortvalue_from_numpy(np.array(index, dtype=np.int64))
            feeds = {"sequence": sequence, "position": position}
            items += session.run_with_ort_values(["item"], feeds)
        return items


def _model(kind: str) -> bytes:
    element = kind.removeprefix("seq(tensor(").removesuffix("))")
    if element not in _ELEMENTS:
        raise VerificationError(f"PyTorch has no lists of {kind}")
    dtype = _ELEMENTS[element]
    graph = helper.make_graph(
        [
            helper.make_node("SequenceLength", ["sequence"], ["length"]),
            helper.make_node("SequenceAt", ["sequence", "position"], ["item"]),
        ],
        "items",
        [
            helper.make_tensor_sequence_value_info("sequence", dtype, None),
            helper.make_tensor_value_info("position", onnx.TensorProto.INT64, []),
        ],
        [
            helper.make_tensor_value_info("length", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("item", dtype, None),
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8
    )
    return bytes(model.SerializeToString())
