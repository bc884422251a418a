"""TrainingMode: EVAL, PRESERVE, and TRAINING with Dropout and BatchNormalization in that form."""

from __future__ import annotations

import copy

import onnx_ir as ir
import pytest
import torch

import sardonyx
from sardonyx import TrainingMode


def small_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))


def with_dropout() -> torch.nn.Module:
    return torch.nn.Sequential(small_model(), torch.nn.Dropout(0.5))


def operators(program: sardonyx.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph]


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_training_has_dropout_and_batch_normalization_in_training_form(capture: str) -> None:
    model, x = with_dropout().eval(), torch.randn(2, 3, 8, 8)
    program = sardonyx.export(model, x, training=TrainingMode.TRAINING, capture=capture)
    nodes = {node.op_type: node for node in program.model.graph}
    assert nodes["BatchNormalization"].attributes["training_mode"].as_int() == 1
    assert nodes["BatchNormalization"].attributes["momentum"].as_float() == pytest.approx(0.9)
    mode = ir.convenience.get_const_tensor(nodes["Dropout"].inputs[2])
    assert mode is not None and bool(mode.numpy())
    kept = program(x) != 0
    assert 0.2 < kept.float().mean() < 0.8
    assert not torch.equal(kept, program(x) != 0), "another draw at every run"
    assert not model.training, "the model is as before"


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_running_statistics_are_pytorchs(capture: str) -> None:
    model, x = small_model(), torch.randn(2, 3, 8, 8)
    program = sardonyx.export(
        model,
        x,
        training=TrainingMode.TRAINING,
        capture=capture,
        state_outputs=True,
        dynamic_axes={"input": {0: "n"}},
    )
    x = torch.randn(5, 3, 8, 8)
    trained = copy.deepcopy(model).train()
    expected = trained(x)
    for _ in range(2):  # ONNX Runtime is known to write over the old statistics
        outputs = program._run([x])
        torch.testing.assert_close(outputs["output"], expected.detach())
        torch.testing.assert_close(outputs["1.running_mean.out"], trained[1].running_mean)
        torch.testing.assert_close(outputs["1.running_var.out"], trained[1].running_var)


def test_eval_and_preserve() -> None:
    model, x = with_dropout(), torch.randn(2, 3, 8, 8)
    assert "Dropout" not in operators(sardonyx.export(model, x))
    assert model.training
    assert "Dropout" in operators(sardonyx.export(model, x, training=TrainingMode.PRESERVE))
    model.eval()
    assert "Dropout" not in operators(sardonyx.export(model, x, training=TrainingMode.PRESERVE))


def test_select_model_mode_for_export() -> None:
    model = with_dropout()
    model[1].eval()
    with sardonyx.select_model_mode_for_export(model, TrainingMode.TRAINING):
        assert model[1].training
    assert not model[1].training and model.training
    with sardonyx.select_model_mode_for_export(model, TrainingMode.EVAL):
        assert not model.training
    with sardonyx.set_training(model, False):
        assert not model.training
    with sardonyx.set_training(model, None):
        assert model.training


def test_model_code_can_tell_that_it_is_exported() -> None:
    seen = []

    class Asks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((sardonyx.is_in_onnx_export(), torch.onnx.is_in_onnx_export()))
            return x + 1

    sardonyx.export(Asks(), torch.ones(2))
    assert (True, True) in seen
    assert not sardonyx.is_in_onnx_export()
