"""The AlexNet script of the reference, line for line with `sardonyx` in place of `torch.onnx`."""

from __future__ import annotations

import contextlib
import io
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
    assert "scope: AlexNet/Sequential[classifier]/Linear[6]" in text
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
