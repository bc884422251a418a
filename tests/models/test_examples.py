"""Every example model, by both captures, with static and dynamic batch, against eager PyTorch."""

import gc
import shutil
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
import torch
from torch import nn

import sardonyx
from examples.models import MODELS, Example, flat_tensors

EXAMPLE_BATCH = 2
OTHER_BATCHES = (1, 3)


@dataclass
class Exported:
    example: Example
    model: nn.Module
    path: Path
    dynamic: bool


@pytest.fixture(scope="module", params=MODELS)
def built(request):
    """One model at a time: pytest groups the tests by this parameter and drops it after them."""
    example = MODELS[request.param]
    yield example, example.make()
    gc.collect()


@pytest.fixture(scope="module", params=["trace-static", "export-dynamic"])
def exported(built, request, tmp_path_factory):
    """Models without decisions by values: the captures record them by the same code."""
    example, model = built
    capture, _, batch_kind = request.param.partition("-")
    folder = tmp_path_factory.mktemp(f"{capture}-{batch_kind}")
    path = folder / "model.onnx"
    dynamic = batch_kind == "dynamic"
    sardonyx.export(
        model,
        example.example_inputs(EXAMPLE_BATCH),
        path,
        input_names=example.input_names,
        dynamic_axes=example.dynamic_batch() if dynamic else None,
        capture=capture,
    )
    yield Exported(example, model, path, dynamic)
    shutil.rmtree(folder)


def assert_matches_eager(session, model, inputs):
    tensors = [tensor.numpy() for tensor in flat_tensors(inputs)]
    names = [value.name for value in session.get_inputs()]
    actual = session.run(None, dict(zip(names, tensors, strict=True)))
    with torch.no_grad():
        expected = list(flat_tensors(model(*inputs)))
    assert len(actual) == len(expected)
    for ours, eager in zip(actual, expected, strict=True):
        ours = torch.from_numpy(ours)
        assert ours.shape == eager.shape
        assert ours.dtype == eager.dtype
        difference = (ours - eager).abs().max().item()
        assert difference <= 1e-4 * eager.abs().max().item()


def test_runs_as_eager_does(exported):
    session = ort.InferenceSession(exported.path, providers=["CPUExecutionProvider"])
    batches = (EXAMPLE_BATCH, *OTHER_BATCHES) if exported.dynamic else (EXAMPLE_BATCH,)
    for batch in batches:
        assert_matches_eager(session, exported.model, exported.example.example_inputs(batch))


def test_inputs_are_declared_as_asked(exported):
    graph = onnx.load(exported.path, load_external_data=False).graph
    tensors = list(flat_tensors(exported.example.example_inputs(EXAMPLE_BATCH)))
    assert [value.name for value in graph.input] == exported.example.input_names
    for value, tensor in zip(graph.input, tensors, strict=True):
        expected = dict(enumerate(tensor.shape))
        if exported.dynamic:
            expected |= exported.example.dynamic_batch()[value.name]
        declared = value.type.tensor_type.shape.dim
        assert {
            axis: dim.dim_param or dim.dim_value for axis, dim in enumerate(declared)
        } == expected
