"""JitScalarType: from every name to every other."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from sardonyx import JitScalarType


def test_conversions_of_a_float() -> None:
    for made in (
        JitScalarType.from_name("Float"),
        JitScalarType.from_name("float"),
        JitScalarType.from_dtype(torch.float32),
        JitScalarType.from_onnx_type(onnx.TensorProto.FLOAT),
        JitScalarType.from_value(torch.ones(2)),
        JitScalarType.from_value(1.5),
    ):
        assert made is JitScalarType.FLOAT
    assert JitScalarType.FLOAT.scalar_name() == "Float"
    assert JitScalarType.FLOAT.torch_name() == "float"
    assert JitScalarType.FLOAT.dtype() is torch.float32
    assert JitScalarType.FLOAT.onnx_type() == onnx.TensorProto.FLOAT
    assert JitScalarType.FLOAT.onnx_compatible()


@pytest.mark.parametrize("scalar_type", [t for t in JitScalarType if t.name != "UNDEFINED"])
def test_there_and_back(scalar_type: JitScalarType) -> None:
    assert JitScalarType.from_name(scalar_type.scalar_name()) is scalar_type
    assert JitScalarType.from_name(scalar_type.torch_name()) is scalar_type
    assert JitScalarType.from_dtype(scalar_type.dtype()) is scalar_type
    if scalar_type.onnx_compatible() and not scalar_type.name.startswith("Q"):
        assert JitScalarType.from_onnx_type(scalar_type.onnx_type()) is scalar_type


def test_they_are_numbered_as_pytorch_numbers_them() -> None:
    for name, number in {"UINT8": 0, "INT64": 4, "FLOAT": 6, "BOOL": 11, "BFLOAT16": 15}.items():
        assert JitScalarType[name] == number == int(torch.onnx.JitScalarType[name])
        assert JitScalarType[name].scalar_name() == torch.onnx.JitScalarType[name].scalar_name()
        assert JitScalarType[name].torch_name() == torch.onnx.JitScalarType[name].torch_name()


def test_what_has_no_type() -> None:
    for made in (
        lambda: JitScalarType.from_name("Nothing"),
        lambda: JitScalarType.from_name(None),
        lambda: JitScalarType.from_dtype(None),
        lambda: JitScalarType.from_onnx_type(None),
        lambda: JitScalarType.from_value(None),
        JitScalarType.UNDEFINED.dtype,
        JitScalarType.COMPLEX32.onnx_type,
    ):
        with pytest.raises(sardonyx.OnnxExporterError):
            made()
    assert not JitScalarType.COMPLEX32.onnx_compatible()
    assert not JitScalarType.UNDEFINED.onnx_compatible()
    assert JitScalarType.from_value(None, JitScalarType.INT64) is JitScalarType.INT64
