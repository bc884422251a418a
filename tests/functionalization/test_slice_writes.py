"""Writes of slices that some sizes make as long as their dim, by both captures, against eager."""

from __future__ import annotations

import pytest
import torch

import sardonyx

TABLE = torch.arange(20.0).reshape(5, 4)


def write(made, at, value=3.0):
    def model(x):
        tensor = made(x)
        tensor[at(x.shape[0])] = value(x) if callable(value) else value
        return tensor

    return model


def added(x):
    tensor = TABLE[::3].clone()
    tensor[: x.shape[0]] += 3
    return tensor


MODELS = {
    "two_rows": write(lambda x: TABLE[:2].clone(), lambda n: slice(n)),
    "one_row": write(lambda x: TABLE[:1].clone(), lambda n: slice(n)),
    "twice": write(lambda x: TABLE[:3].clone(), lambda n: slice(2 * n)),
    "longer_by_the_size": write(lambda x: torch.zeros(x.shape[0] + 2, 4), lambda n: slice(2 * n)),
    "mask_of_a_decoder": write(
        lambda x: torch.full((1, 5), -1e9), lambda n: (slice(None), slice(3 + n)), 0.0
    ),
    "rows_of_a_column": write(lambda x: torch.zeros(2, x.shape[0]), lambda n: (slice(n), 0)),
    "with_a_new_dim": write(
        lambda x: torch.zeros(2, 4), lambda n: (None, slice(n)), lambda x: x[None, :2]
    ),
    "with_an_ellipsis": write(lambda x: torch.zeros(3, 2, 4), lambda n: (..., slice(n), 1)),
    "with_a_tensor": write(lambda x: torch.zeros(2, 4), lambda n: (slice(n), torch.tensor([0, 2]))),
    "with_steps": write(lambda x: torch.zeros(5, 4), lambda n: slice(0, 2 * n, 2)),
    "a_tensor_of_one": write(lambda x: torch.zeros(2, 4), lambda n: slice(n), torch.tensor(7.0)),
    "behind": write(lambda x: torch.zeros(2, 4), lambda n: slice(n, None)),
    "added": added,
}


@pytest.mark.parametrize("example", [1, 4])
@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_equal_to_eager(model, capture, example):
    program = sardonyx.export(
        model, (torch.randn(example, 4),), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    for n in (0, 1, 2, 3, 7):
        x = torch.randn(n, 4)
        try:
            expected = model(x)
        except (RuntimeError, IndexError):
            continue
        torch.testing.assert_close(program(x), expected)
