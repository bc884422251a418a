"""Advice in refusals: what helps where a size or a value is needed as a Python number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import sardonyx


def test_a_model_that_decides_by_a_number() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if int(x.max()) > 2 else x

    with pytest.raises(sardonyx.CaptureError) as refusal:
        sardonyx.export(model, torch.ones(3), capture="export")
    message = str(refusal.value)
    assert "pack_padded_sequence" not in message and "zuf" not in message


def test_names_that_are_given_twice() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(sardonyx.InvalidOptionError, match="the inputs input1, input2 need a name"):
        sardonyx.export(torch.nn.Bilinear(3, 3, 2), (x, x.clone()), input_names=["x", "x"])


def _refused(model: Callable[[torch.Tensor], torch.Tensor], **options: Any) -> str:
    with pytest.raises(sardonyx.CaptureError) as refusal:
        sardonyx.export(model, torch.randn(4, 3), dynamic_axes={"x": {0: "n"}}, **options)
    return str(refusal.value)


@pytest.mark.parametrize("capture", ["auto", "trace"])
@pytest.mark.parametrize(
    "model",
    [
        lambda x: x * numpy.sqrt(x.shape[0]),
        lambda x: x * float(x.shape[0]) ** 0.5,
        lambda x: x * int(numpy.prod(x.shape)),
        lambda x: x * {4: 1.0, 5: 2.0}[x.shape[0]],
    ],
    ids=["numpy", "float", "prod", "dict"],
)
def test_sizes_that_become_numbers(
    model: Callable[[torch.Tensor], torch.Tensor], capture: str
) -> None:
    message = _refused(model, capture=capture)
    assert "math.sqrt(n), n ** 0.5, math.prod(x.shape)" in message
    assert "take sizes from the tensor" not in message and "test_refusals.py" in message


def test_what_the_advice_says_works() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * math.sqrt(x.shape[0]) * x.shape[0] ** 0.5 * math.prod(x.shape)

    sardonyx.export(model, torch.randn(4, 3), dynamic_axes={"x": {0: "n"}}, verify=True)


def test_a_branch_that_a_trace_bakes() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(sardonyx.VerificationError) as refusal:
        sardonyx.export(model, torch.randn(4, 3), capture="trace", verify=True)
    assert "try     torch.where or torch.cond where the line makes" in str(refusal.value)


def test_an_error_has_its_line_apart() -> None:
    with pytest.raises(sardonyx.CaptureError) as refusal:
        sardonyx.export(lambda x: x * x.data_ptr(), torch.randn(3), capture="export")
    error = refusal.value
    assert error.place is not None and error.place[0].endswith("test_refusals.py")
    assert error.headline == str(error).split("\n", maxsplit=1)[0]
