"""Messages have the caller's names for dynamic dims, not PyTorch's symbols."""

from __future__ import annotations

import re

import pytest
import torch

import sardonyx


def positive(x, y):
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    return x[rows] if rows.shape[0] > y.shape[1] - 2 else x


def halved(x, y):
    return x.view(x.shape[0] // 2, 7, -1) + y.sum()


def multiplied(x, y):
    return x @ y


REFUSED = [
    (positive, "export", "data > width - 2"),
    (halved, "script", r"\[\(n//2\), 7, -1\].* size 3\*n"),
    (multiplied, "script", r"\[n, 3\] X \[2, width\]"),
]


@pytest.mark.parametrize("model, capture, named", REFUSED)
def test_sizes_go_by_the_names_of_dims(model, capture, named):
    with pytest.raises(sardonyx.CaptureError, match=named) as error:
        sardonyx.export(
            torch.jit.script(model) if capture == "script" else model,
            (torch.randn(8, 3), torch.randn(2, 5)),
            capture=capture,
            dynamic_axes={"x": {0: "n"}, "y": {1: "width"}},
            input_names=["x", "y"],
        )
    assert not re.search(r"\b[su]\d+\b", str(error.value))
