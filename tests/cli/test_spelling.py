"""Messages of the command speak of its options."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sardonyx.cli import app
from sardonyx.cli.messages import as_options

MODEL = """
import torch

class Fixed(torch.nn.Module):
    def forward(self, x):
        return x.reshape(2, 12)

class Decides(torch.nn.Module):
    def forward(self, x):
        return x * 2 if int(x.max()) > 2 else x
"""


def _failure(folder: Path, name: str, *options: str) -> str:
    (folder / "model.py").write_text(MODEL)
    arguments = ["export", f"{folder}/model.py:{name}", "-o", f"{folder}/model.onnx"]
    result = CliRunner().invoke(app, [*arguments, "--input", "x=3x4", *options])
    assert result.exit_code != 0
    return result.output + (result.stderr or "")


def test_the_ways_of_recording(tmp_path: Path) -> None:
    message = _failure(tmp_path, "Decides", "--capture", "export")
    assert "--capture trace" in message
    assert 'capture="' not in message


def test_dynamic_dims(tmp_path: Path) -> None:
    message = _failure(tmp_path, "Decides", "--dynamic", "y:0=batch", "--capture", "trace")
    assert "--dynamic names 'y'" in message and "dynamic_axes" not in message


@pytest.mark.parametrize(
    ("told", "as_option"),
    [
        ('or capture="script" where it loops', "or --capture script where it loops"),
        ("verify=False, if you accept it", "--no-verify, if you accept it"),
        ("state_outputs=True returns them", "--state-outputs returns them"),
        ("dynamic_axes['x'] has dim 0 twice", "--dynamic of 'x' has dim 0 twice"),
        ("dynamic_shapes allows 2..6", "--dynamic allows 2..6"),
        ("opset_version=99 is not supported", "--opset 99 is not supported"),
        ("input_names has 'x' twice", "--input-names has 'x' twice"),
        ("at model.py:3   dynamic_axes = 3", "at model.py:3   dynamic_axes = 3"),
        ("export_params=False leaves them out", "export_params=False leaves them out"),
        ("model.input_names is no option", "model.input_names is no option"),
    ],
)
def test_spellings(told: str, as_option: str) -> None:
    assert as_options(told) == as_option
