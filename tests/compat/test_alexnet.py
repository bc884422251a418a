"""The AlexNet script of torch-onnx-1.x.rst and 2.1.rst, line for line with `sardonyx` in place of
`torch.onnx`.

The model is that of examples/, with weights of its own: torchvision's are a download. The device is
a GPU only where there is one.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import sardonyx
from examples.models import MODELS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, torch.nn.Module]:
    folder = tmp_path_factory.mktemp("alexnet")
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        dummy_input = torch.randn(10, 3, 224, 224, device=DEVICE)
        model = MODELS["alexnet"].make().to(DEVICE)

        input_names = ["actual_input_1"] + ["learned_%d" % i for i in range(16)]  # noqa: UP031
        output_names = ["output1"]

        sardonyx.export(
            model,
            dummy_input,
            "alexnet.onnx",
            verbose=True,
            input_names=input_names,
            output_names=output_names,
        )
    return folder / "alexnet.onnx", printed.getvalue(), model


def test_the_file_holds_structure_and_parameters(
    script: tuple[Path, str, torch.nn.Module],
) -> None:
    """'a binary protobuf file which contains both the network structure and parameters'."""
    graph = onnx.load(script[0]).graph
    assert [n.op_type for n in graph.node].count("Conv") == 5
    for held, parameter in zip(graph.initializer, script[2].parameters(), strict=True):
        assert np.array_equal(onnx.numpy_helper.to_array(held), parameter.detach().cpu().numpy())


def test_the_file_is_well_formed(script: tuple[Path, str, torch.nn.Module]) -> None:
    model = onnx.load(script[0])
    onnx.checker.check_model(model)
    with pytest.warns(DeprecationWarning):  # onnx's own word on the reference's last line
        assert "actual_input_1" in onnx.helper.printable_graph(model.graph)


def test_inputs_and_parameters_have_the_names(script: tuple[Path, str, torch.nn.Module]) -> None:
    graph = onnx.load(script[0]).graph
    assert [i.name for i in graph.input] == ["actual_input_1"]
    assert [i.name for i in graph.initializer] == [f"learned_{i}" for i in range(16)]
    assert [o.name for o in graph.output] == ["output1"]


def test_verbose_prints_the_readable_form(script: tuple[Path, str, torch.nn.Module]) -> None:
    text = script[1]
    assert text.startswith("graph(%actual_input_1 : Float(10, 3, 224, 224)")
    assert "%learned_0 : Float(64, 3, 11, 11)" in text
    assert (
        "onnx::Conv[dilations=[1, 1], group=1, kernel_shape=[11, 11], pads=[2, 2, 2, 2],"
        " strides=[4, 4]](%actual_input_1, %learned_0, %learned_1),"
        " scope: AlexNet/Sequential[features]/Conv2d[0]" in text
    )
    # The lines are the document's but for the numbers of the values: these have names.
    assert re.search(
        r"%\S+ : Float\(10, 64, 55, 55\) = onnx::Relu\(%\S+\),"
        r" scope: AlexNet/Sequential\[features\]/ReLU\[1\]",
        text,
    )
    assert re.search(
        r"%\S+ : Float\(10, 64, 27, 27\) = onnx::MaxPool\[.*kernel_shape=\[3, 3\],"
        r" pads=\[0, 0, 0, 0\],.* strides=\[2, 2\]\]\(%\S+\),"
        r" scope: AlexNet/Sequential\[features\]/MaxPool2d\[2\]",
        text,
    )
    assert "scope: AlexNet/Sequential[classifier]/Linear[6]" in text
    # 'Dynamic means that the shape is not known. This may be because of a limitation': of none.
    assert "Dynamic" not in text
    assert "%output1 : Float(10, 1000) = onnx::Gemm" in text
    assert "return (%output1);" in text


def test_onnx_runtime_runs_it(script: tuple[Path, str, torch.nn.Module]) -> None:
    import onnxruntime as ort

    ort_session = ort.InferenceSession(str(script[0]))
    images = np.random.default_rng(0).standard_normal((10, 3, 224, 224)).astype(np.float32)
    outputs = ort_session.run(None, {"actual_input_1": images})
    # The file computes in float32, as a GPU does only when asked to.
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
        expected = script[2](torch.from_numpy(images).to(DEVICE)).cpu().numpy()
    assert np.abs(outputs[0] - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.filterwarnings("ignore:onnx.version is deprecated:DeprecationWarning")
def test_the_backend_of_a_framework(script: tuple[Path, str, torch.nn.Module]) -> None:
    """'Once these are installed, you can use the backend': ONNX Runtime's, for Caffe2's is gone."""
    import onnxruntime.backend as backend

    model = onnx.load(script[0])
    rep = backend.prepare(model, device="CPU")  # or "CUDA:0"
    outputs = rep.run(np.random.randn(10, 3, 224, 224).astype(np.float32))
    assert outputs[0].shape == (10, 1000)
    images = np.random.default_rng(1).standard_normal((10, 3, 224, 224)).astype(np.float32)
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
        expected = script[2](torch.from_numpy(images).to(DEVICE)).cpu().numpy()
    assert np.abs(rep.run(images)[0] - expected).max() <= 1e-4 * np.abs(expected).max()


class TwoInputs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + y


@pytest.mark.filterwarnings("ignore:onnx.version is deprecated:DeprecationWarning")
def test_several_inputs_are_a_tuple() -> None:
    """'To run networks with more than one input, pass a tuple'."""
    import onnxruntime.backend as backend

    program = sardonyx.export(TwoInputs(), (torch.randn(1, 3), torch.randn(1, 2)))
    rep = backend.prepare(program.model_proto, device="CPU")
    inputs = (np.ones((1, 3), np.float32), np.ones((1, 2), np.float32))
    outputs = rep.run(list(inputs))  # ONNX Runtime wants a list
    assert outputs[0].shape == (1, 2)


def test_names_may_be_fewer_than_the_inputs() -> None:
    """'a list here shorter than the number of inputs to the model, and we will only set that subset
    of names, starting from the beginning'."""
    args = (torch.randn(1, 3), torch.randn(1, 2))
    graph = sardonyx.export(TwoInputs(), args, input_names=["first"]).model.graph
    assert [i.name for i in graph.inputs] == ["first", "y"]
    names = ["first", "second", "learned_0"]
    graph = sardonyx.export(TwoInputs(), args, input_names=names).model.graph
    assert [i.name for i in graph.inputs] == ["first", "second"]
    assert list(graph.initializers) == ["learned_0", "linear.bias"]


def test_names_do_not_change_the_semantics() -> None:
    """'Setting these does not change the semantics of the graph; it is only for readability.'"""
    args, model = (torch.randn(1, 3), torch.randn(1, 2)), TwoInputs()
    plain = sardonyx.export(model, args)
    named = sardonyx.export(model, args, input_names=["a", "b", "c", "d"], output_names=["e"])
    assert [n.op_type for n in plain.model.graph] == [n.op_type for n in named.model.graph]
    assert torch.equal(plain(*args), named(*args))
