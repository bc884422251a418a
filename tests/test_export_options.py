"""What `export` offers beyond the model itself."""

from __future__ import annotations

import importlib.metadata
import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import sardonyx


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


X = torch.randn(2, 3, 8, 8)


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_export_params_false_leaves_the_weights_to_the_caller(net: Net, capture: str) -> None:
    stream = io.BytesIO()
    sardonyx.export(net, (X,), stream, export_params=False, capture=capture)
    model = onnx.load_from_string(stream.getvalue())
    names = [i.name for i in model.graph.input]
    state = {k: v for k, v in net.state_dict().items() if "num_batches" not in k}
    assert names == ["x", *state]
    assert not model.graph.initializer
    weights = {k: v.numpy() for k, v in state.items()}
    torch.testing.assert_close(
        torch.from_numpy(run(model, x=X.numpy(), **weights)), net(X).detach()
    )


def test_keep_initializers_as_inputs_lets_the_caller_override_them(net: Net) -> None:
    stream = io.BytesIO()
    sardonyx.export(net, (X,), stream, keep_initializers_as_inputs=True)
    model = onnx.load_from_string(stream.getvalue())
    assert "fc.weight" in [i.name for i in model.graph.input]
    assert "fc.weight" in [i.name for i in model.graph.initializer]
    expected = net(X).detach()
    torch.testing.assert_close(torch.from_numpy(run(model, x=X.numpy())), expected)
    bias = np.array([10.0, 20.0], dtype=np.float32)
    moved = run(model, **{"x": X.numpy(), "fc.bias": bias})
    torch.testing.assert_close(
        torch.from_numpy(moved), expected - net.fc.bias.detach() + torch.from_numpy(bias)
    )


def test_export_to_pretty_string_is_what_verbose_prints(
    net: Net, capsys: pytest.CaptureFixture[str]
) -> None:
    sardonyx.export(net, (X,), verbose=True)
    printed = capsys.readouterr().out
    assert printed.strip() == sardonyx.export_to_pretty_string(net, (X,)).strip()
    assert printed.startswith("graph(%x : Float(2, 3, 8, 8)")
    assert "scope: Net/Conv2d[conv]" in printed


def test_optimize_false_leaves_the_graph_as_lowered(net: Net) -> None:
    plain = sardonyx.export(net, (X,), optimize=False, verify=True)
    optimized = sardonyx.export(net, (X,), verify=True)
    assert "BatchNormalization" in {n.op_type for n in plain.model.graph}
    assert "BatchNormalization" not in {n.op_type for n in optimized.model.graph}


@pytest.mark.parametrize("opset", [17, 18, 19, 20, 21, 22, 23, 24, 25, 26])
def test_the_file_says_the_opset_that_was_asked_for(net: Net, opset: int) -> None:
    program = sardonyx.export(net, (X,), opset_version=opset, verify=True)
    assert {o.domain: o.version for o in program.model_proto.opset_import} == {"": opset}
    assert program.verification is not None


def test_the_default_opset_is_20(net: Net) -> None:
    assert sardonyx.export(net, (X,)).model.opset_imports == {"": 20}


def test_the_same_export_twice_gives_the_same_bytes(net: Net) -> None:
    for capture in ("trace", "export"):
        first, second = io.BytesIO(), io.BytesIO()
        sardonyx.export(net, (X,), first, capture=capture, dynamic_axes={"x": {0: "batch"}})
        sardonyx.export(net, (X,), second, capture=capture, dynamic_axes={"x": {0: "batch"}})
        assert first.getvalue() == second.getvalue()


def test_a_failed_verification_leaves_no_file(tmp_path: Path) -> None:
    numbers = itertools.count(1)

    def another_factor(x: torch.Tensor) -> torch.Tensor:
        return x * next(numbers)

    with pytest.raises(sardonyx.VerificationError):
        sardonyx.export(another_factor, (X,), tmp_path / "net.onnx", verify=True)
    assert not list(tmp_path.iterdir())


def test_training_mode_keeps_batch_norm_in_its_training_form(net: Net) -> None:
    program = sardonyx.export(net, (X,), training=sardonyx.TrainingMode.TRAINING)
    import copy

    eager = copy.deepcopy(net).train()
    torch.testing.assert_close(program(X), eager(X).detach(), rtol=1e-4, atol=1e-5)
    assert not net.training


def test_training_may_be_given_as_torch_onnx_gives_it(net: Net) -> None:
    program = sardonyx.export(net, (X,), training=torch.onnx.TrainingMode.TRAINING)
    assert program.options.training is sardonyx.TrainingMode.TRAINING


def test_saving_again_keeps_the_weights_outside(net: Net, tmp_path: Path) -> None:
    asked = sardonyx.ExternalData(size_threshold=0, location="weights.bin")
    program = sardonyx.export(net, (X,), tmp_path / "first.onnx", external_data=asked)
    program.save(tmp_path / "second.onnx")
    program.save(tmp_path / "third.onnx", external_data=False)
    program.save(io.BytesIO())  # has no folder for a second file
    assert {path.name for path in tmp_path.iterdir()} == {
        *("first.onnx", "weights.bin", "second.onnx", "second.onnx.data", "third.onnx")
    }


def test_the_version_is_the_package_s() -> None:
    assert sardonyx.__version__ == importlib.metadata.version("sardonyx")


def test_tolerances_of_the_export_are_those_of_its_verification() -> None:
    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("Add", x, torch.tensor(0.5))

    class Rounded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Shifted.apply(x)

    options = {"capture": "export", "verify": True}
    with pytest.raises(sardonyx.VerificationError, match="larger rtol or atol"):
        sardonyx.export(Rounded(), (X,), **options)
    program = sardonyx.export(Rounded(), (X,), atol=0.6, **options)
    assert program.verify().largest_absolute == pytest.approx(0.5, abs=1e-3)


def test_stage_times_and_progress() -> None:
    stages: list[str] = []
    program = sardonyx.export(
        torch.nn.Linear(2, 2),
        (torch.randn(1, 2),),
        io.BytesIO(),
        verify=True,
        progress=stages.append,
    )
    assert stages == ["capture", "lower", "legalize", "optimize", "serialize", "verify"]
    assert set(program.stage_seconds) == set(stages)


class Stretched(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.tensor([2, 3]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + (self.steps * 2).sum()) * self.weight


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("option", ["keep_initializers_as_inputs", "input_names"])
@pytest.mark.parametrize("capture", ["trace", "export"])
def test_integer_parameters_that_may_be_replaced_are_not_baked(
    option: str, again: bool, capture: str
) -> None:
    asked = True if option == "keep_initializers_as_inputs" else ["x", "weight", "steps"]
    program = sardonyx.export(Stretched(), (torch.ones(2),), capture=capture, **{option: asked})
    if again:
        program.optimize()
    steps = program.model.graph.initializers["steps"]
    assert steps.uses()
    assert steps.const_value is not None
    np.testing.assert_array_equal(steps.const_value.numpy(), [2, 3])


@pytest.mark.parametrize("wrap", [torch.compile, torch.nn.DataParallel])
def test_a_wrapped_model_has_the_names_of_the_model(wrap):
    model = wrap(torch.nn.Linear(3, 2))
    x = torch.randn(4, 3, device=next(model.parameters()).device)  # where DataParallel put it
    program = sardonyx.export(model, (x,), dynamic_axes={"input": {0: "batch"}})
    graph = program.model_proto.graph
    assert [i.name for i in graph.input] == ["input"]
    assert {i.name for i in graph.initializer} == {"weight", "bias"}
