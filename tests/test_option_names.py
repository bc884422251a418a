"""Options that do not exist are told with the one that is meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import sardonyx

X = torch.ones(2)
MEANT: dict[str, tuple[dict[str, Any], str]] = {
    "a part of the name": ({"opset": 17}, r"no option opset: did you mean opset_version=17\?"),
    "another plural": ({"dynamic_axis": {}}, r"did you mean dynamic_axes=\{\}\?"),
    "a slip": ({"inputs_names": ["x"]}, r"did you mean input_names=\['x'\]\?"),
    "another order": ({"fold_constants": False}, r"did you mean do_constant_folding=False\?"),
    "of another exporter": ({"dynamo": True}, r"no option dynamo: .* capture= chooses one"),
    "no more needed": ({"example_outputs": X}, "outputs are inferred"),
    "nothing alike": ({"zzz": 1}, "no option zzz: it has args, f, export_params"),
    "the inputs": ({"inputs": X}, r"no option inputs: did you mean args\?"),
    "the file": ({"path": "m.onnx"}, r"no option path: did you mean f\?"),
    "a question": ({"dynamic": True}, r"no option dynamic: did you mean dynamic_axes\?"),
    "a long value": ({"dynamic_shape": ["batch"] * 50}, r"did you mean dynamic_shapes\?"),
}


@pytest.mark.parametrize("name", MEANT)
def test_options_of_export(name: str) -> None:
    options, message = MEANT[name]
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        sardonyx.export(torch.nn.ReLU(), X, **options)


def test_options_of_a_text() -> None:
    message = r"export_to_pretty_string\(\) has no option opset: did you mean opset_version=17\?"
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        sardonyx.export_to_pretty_string(torch.nn.ReLU(), X, opset=17)


def test_the_signature_stays_to_be_asked_for() -> None:
    parameters = inspect.signature(sardonyx.export).parameters
    assert "opset_version" in parameters and "capture" in parameters
    assert "dynamic_shapes" in inspect.signature(sardonyx.ExportOptions).parameters


def test_behind_the_names_of_pytorch() -> None:
    with sardonyx.installed(), pytest.raises(sardonyx.InvalidOptionError, match="opset_version=17"):
        torch.onnx.export(torch.nn.ReLU(), X, opset=17)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sardonyx.ExportOptions(dynamic_shape=True), "did you mean dynamic_shapes=True"),
        (lambda: sardonyx.DiagnosticOptions(verbosity=10), "did you mean verbosity_level=10"),
        (lambda: sardonyx.ExternalData(threshold=10), "did you mean size_threshold=10"),
    ],
)
def test_fields_of_options(make: Any, message: str) -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dynamic_shapes": True}, r"ExportOptions\(dynamic_shapes=...\)"),
        ({"opset_version": 17}, r"OnnxRegistry\(...\)"),
        ({"export_option": None}, r"did you mean export_options\?"),
        ({"export_options": {"dynamic_shapes": True}}, "must be an ExportOptions"),
    ],
)
def test_options_of_dynamo_export(given: dict[str, Any], message: str) -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        sardonyx.dynamo_export(torch.nn.ReLU(), X, **given)


def test_a_model_may_have_arguments_of_these_names() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, dynamic_shapes: torch.Tensor) -> torch.Tensor:
            return x + dynamic_shapes

    output = sardonyx.dynamo_export(Model(), X, dynamic_shapes=X)
    torch.testing.assert_close(output(X, dynamic_shapes=X), X + X)
