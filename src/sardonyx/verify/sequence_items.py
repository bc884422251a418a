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
    """Takes sequences apart, by models of one operator each."""

    def __init__(self, runtime: ModuleType) -> None:
        self._runtime = runtime
        self._sessions: dict[tuple[str, str], Any] = {}

    def of(self, sequence: Any) -> list[Any]:
        """An OrtValue for each item."""
        length = int(self._result("SequenceLength", sequence).numpy())
        return [self._result("SequenceAt", sequence, index) for index in range(length)]

    def _result(self, op_type: str, sequence: Any, *indices: int) -> Any:
        key = op_type, sequence.data_type()
        if key not in self._sessions:
            options = self._runtime.SessionOptions()
            options.log_severity_level = 3
            self._sessions[key] = self._runtime.InferenceSession(
                _model(*key), options, providers=["CPUExecutionProvider"]
            )
        feeds = {"sequence": sequence}
        for index in indices:
            place = np.array(index, dtype=np.int64)
            feeds["place"] = self._runtime.OrtValue.ortvalue_from_numpy(place)
        return self._sessions[key].run_with_ort_values(["result"], feeds)[0]


def _model(op_type: str, kind: str) -> bytes:
    element = kind.removeprefix("seq(tensor(").removesuffix("))")
    if element not in _ELEMENTS:
        raise VerificationError(f"PyTorch has no lists of {kind}")
    inputs = [helper.make_tensor_sequence_value_info("sequence", _ELEMENTS[element], None)]
    result = helper.make_tensor_value_info("result", onnx.TensorProto.INT64, [])
    if op_type == "SequenceAt":
        inputs.append(helper.make_tensor_value_info("place", onnx.TensorProto.INT64, []))
        result = helper.make_tensor_value_info("result", _ELEMENTS[element], None)
    node = helper.make_node(op_type, [value.name for value in inputs], ["result"])
    model = helper.make_model(
        helper.make_graph([node], "items", inputs, [result]),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=8,
    )
    return bytes(model.SerializeToString())
