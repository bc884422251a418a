"""The hint on lengths is for lines that read lengths."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.capture.function_overrides.packed_sequences import hint_for_lengths


@pytest.mark.parametrize(
    "line",
    [
        "m.py:3   given = [int(length) for length in lengths]",
        "m.py:3   packed = pack_padded_sequence(x, n)",
        "m.py:3   lens.tolist()",
        "m.py:3   seq_len.cpu().numpy()",
    ],
)
def test_lines_that_read_lengths(line: str) -> None:
    assert "pack_padded_sequence" in hint_for_lengths([line])


@pytest.mark.parametrize(
    "line",
    [
        "m.py:3   if int(x.max()) > 2:",
        "m.py:3   print(x.max())",
        "m.py:3   n = int(len(x) / 2)",
        "lengths.py:3   boxes = x.tolist()",
    ],
)
def test_other_lines(line: str) -> None:
    assert hint_for_lengths([line]) == ""


def test_a_model_that_decides_by_a_number() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if int(x.max()) > 2 else x

    with pytest.raises(sardonyx.CaptureError) as refusal:
        sardonyx.export(model, torch.ones(3))
    message = str(refusal.value)
    assert "pack_padded_sequence" not in message and "zuf" not in message


def test_names_that_are_given_twice() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(sardonyx.InvalidOptionError, match="the inputs input1, input2 need a name"):
        sardonyx.export(torch.nn.Bilinear(3, 3, 2), (x, x.clone()), input_names=["x", "x"])
