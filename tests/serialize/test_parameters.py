"""Parameters as graph inputs, with their data and without."""

from __future__ import annotations

import io

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from sardonyx.errors import InternalError
from sardonyx.serialize.parameters import parameters_as_inputs
from sardonyx.serialize.writer import write_model
from tests.serialize.models import linear


def written(model) -> onnx.ModelProto:
    stream = io.BytesIO()
    write_model(model, stream)
    proto = onnx.load_from_string(stream.getvalue())
    onnx.checker.check_model(proto, full_check=True)
    return proto


def test_without_data_the_caller_feeds_the_parameters():
    layer = torch.nn.Linear(3, 4)
    model = linear(layer.weight, layer.bias)
    parameters_as_inputs(model, keep_data=False)
    proto = written(model)
    assert [value.name for value in proto.graph.input] == ["x", "fc.weight", "fc.bias"]
    assert not proto.graph.initializer
    x = torch.randn(2, 3)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feeds = {"x": x, "fc.weight": layer.weight.detach(), "fc.bias": layer.bias.detach()}
    [y] = session.run(None, {name: tensor.numpy() for name, tensor in feeds.items()})
    np.testing.assert_allclose(y, layer(x).detach().numpy(), rtol=1e-6, atol=1e-7)


def test_with_data_they_are_inputs_with_a_default():
    layer = torch.nn.Linear(3, 4)
    model = linear(layer.weight, layer.bias)
    parameters_as_inputs(model, keep_data=True)
    proto = written(model)
    assert [value.name for value in proto.graph.input] == ["x", "fc.weight", "fc.bias"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["fc.weight", "fc.bias"]
    x = torch.randn(2, 3)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    [y] = session.run(None, {"x": x.numpy()})
    np.testing.assert_allclose(y, layer(x).detach().numpy(), rtol=1e-6, atol=1e-7)
    zero = np.zeros((4, 3), np.float32)
    [y] = session.run(None, {"x": x.numpy(), "fc.weight": zero})
    np.testing.assert_allclose(y, layer.bias.detach().expand(2, 4).numpy(), rtol=1e-6)


def test_only_those_named_in_the_order_named():
    model = linear(torch.empty(4, 3, device="meta"), torch.zeros(4))
    parameters_as_inputs(model, keep_data=False, names=["fc.weight"])
    proto = written(model)
    assert [value.name for value in proto.graph.input] == ["x", "fc.weight"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["fc.bias"]
    model = linear(torch.ones(4, 3), torch.zeros(4))
    parameters_as_inputs(model, keep_data=True, names=["fc.bias", "fc.weight"])
    assert [value.name for value in model.graph.inputs] == ["x", "fc.bias", "fc.weight"]
    with pytest.raises(InternalError, match="nothing"):
        parameters_as_inputs(model, keep_data=True, names=["nothing"])
