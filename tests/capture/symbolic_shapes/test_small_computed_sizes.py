"""A size that is computed from a dynamic one is 1 in the example: the recording is for any."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import sardonyx


def _pooled(x):
    return F.avg_pool1d(x.t(), 3, 3)


def _written(x):
    y = _pooled(x).clone()
    y[:, :1] = 5.0
    return y


def _sliced_late(x):
    y = _pooled(x)
    return (y + y * 2)[:, :1]


def _tail(x):
    y = x[4:]
    return y + y[:1]


MODELS = {
    "slice": lambda x: _pooled(x)[:, :1],
    "sum": lambda x: _pooled(x) + _pooled(x)[:, :1],
    "write": _written,
    "cat": lambda x: torch.cat([_pooled(x), _pooled(x)[:, :1]], 1),
    "slice of a sum": _sliced_late,
    "norm": lambda x: F.layer_norm(_pooled(x).t(), [3])[:1],
    "convolution": lambda x: F.conv1d(x.t()[None], torch.ones(2, 3, 3), stride=2)[..., :1],
    "tail": _tail,
    "a wide pool": lambda x: F.avg_pool1d(F.pad(x.t(), (0, 97)), 100, 100)[:, :1] * 2,
}


@pytest.mark.parametrize("example", [3, 4, 5])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_recording_holds_for_larger_sizes(model, example) -> None:
    program = sardonyx.export(
        model,
        (torch.randn(example, 3),),
        capture="export",
        dynamic_axes={"x": {0: "n"}},
        input_names=["x"],
    )
    for size in (0, 1, 2, 3, 5, 6, 7, 210):
        x = torch.randn(size, 3)
        try:
            expected = model(x)
        except RuntimeError:
            continue  # too small for the model
        torch.testing.assert_close(program(x), expected)


def test_a_size_that_has_to_be_one_is_refused() -> None:
    def model(x):
        return _pooled(x) @ torch.ones(1, 2)

    with pytest.raises(sardonyx.DynamicDimError, match="n"):
        sardonyx.export(
            model,
            (torch.randn(5, 3),),
            capture="export",
            dynamic_axes={"x": {0: "n"}},
            input_names=["x"],
        )
