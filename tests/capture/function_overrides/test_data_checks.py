"""Where torch.nn looks at the data of its inputs, both captures record what holds for all data."""

from __future__ import annotations

import contextlib
import importlib

import pytest
import torch
from torch import nn

import sardonyx
from tests.lower.ops.harness import check


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_mask_stays_an_input_where_the_example_is_causal(capture):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 5, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    other = torch.zeros(5, 5)
    check(model.eval(), x, causal, others=[(x, other)], captures=(capture,))


def test_variances_are_not_looked_at():
    x, y, variance = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)
    check(nn.GaussianNLLLoss(full=True), x, y, variance, others=[(y, x, variance * 0)])


def asserted(x):
    assert (x > -100).all(), f"too small: {x}"
    return x + 1


def finite(x):
    if not torch.isfinite(x).all():
        raise ValueError(f"not finite: {x}")
    return x + 1


def in_range(x):
    if (x.sum() > 1e6) or x.max() > 1e5:
        message = "too large"
        raise ValueError(message)
    return x * 2


def not_too_many(x):
    kept = x[x != 0]
    if not (kept.shape[0] > 0 and kept.shape[0] < 1000):
        raise ValueError("none, or too many")
    return kept * kept.shape[0]


def least_item(x):
    if x.min().item() < -1e9:
        raise ValueError
    else:
        x = x - 1
    return x


def in_support(x):
    return torch.distributions.Normal(x, 2.0, validate_args=True).log_prob(x + 1)


CHECKS = [asserted, finite, in_range, not_too_many, least_item, in_support]


@pytest.mark.parametrize("capture", ["export", "trace", "auto"])
@pytest.mark.parametrize("model", CHECKS)
def test_a_check_that_only_raises_is_a_note(model, capture):
    x = torch.arange(-3.0, 3.0).reshape(2, 3)
    program = sardonyx.export(model, (x,), capture=capture)
    for other in (x, x + 0.5, -x):
        torch.testing.assert_close(program(other), model(other))
    (note,) = program.notes
    assert note.startswith("the file does not raise what the model raises for some data at ")


def caught(x):
    try:
        if x.sum() > 0:
            raise ValueError
        return x
    except ValueError:
        return x * 2


def caught_assertion(x):
    try:
        assert x.sum() > 0
        return x
    except AssertionError:
        return x * 4


def caught_outside(x):
    try:
        return finite(x)
    except ValueError:
        return x


def more_than_raised(x):
    if x.sum() > 0:
        x = x + 1
    elif x.sum() < -100:
        raise ValueError
    return x


def suppressed(x):
    y = x
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError
        y = x * 2
    return y


def left_in_finally(x):
    y = x
    try:
        if x.sum() > 0:
            raise ValueError
        y = x * 2
    finally:
        return y  # noqa: B012


def may_return(x, early=True):
    if x.sum() > 0:
        if early:
            return x * 2
        raise ValueError
    return x


class Positive:
    def __init__(self, x):
        self.left = x[x > 0].shape[0]

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return 1


def iterated(x):
    return x + sum(Positive(x))


def second_part_computes(x):
    y = x
    if not (x.sum() > 0 or ((y := x * 7) is not None)):
        raise ValueError
    return y


@pytest.mark.parametrize(
    "model",
    [
        *(caught, caught_assertion, caught_outside, more_than_raised, suppressed, left_in_finally),
        *(may_return, iterated, second_part_computes),
    ],
)
def test_errors_that_may_be_caught_are_branches(model):
    with pytest.raises(sardonyx.CaptureError, match="looks at a value that data decides"):
        sardonyx.export(model, (torch.ones(2, 2),), capture="export")


@pytest.mark.parametrize("capture", ["export", "trace", "auto"])
def test_an_example_that_does_not_pass_a_check_is_refused(capture):
    with pytest.raises(sardonyx.CaptureError, match=r"AssertionError|value that data decides"):
        sardonyx.export(asserted, (torch.full((2, 2), -200.0),), capture=capture)


def test_a_check_is_that_of_the_file_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "edited_checks.py"
    source.write_text(
        "def model(x):\n    if x.sum() > 0:\n        raise ValueError\n    return x\n"
    )
    module = importlib.import_module("edited_checks")
    assert sardonyx.export(module.model, (-torch.ones(2),), capture="export").notes
    source.write_text("def model(x):\n    if x.sum() > 0:\n        x = x * 2\n    return x - 1\n")
    module = importlib.reload(module)
    with pytest.raises(sardonyx.CaptureError, match="looks at a value that data decides"):
        sardonyx.export(module.model, (-torch.ones(2),), capture="export")
