"""An example of size 2 or 3 whose derived sizes are 1: the dim stays dynamic all the same."""

import pytest
import torch
import torch.nn.functional as F

import sardonyx

MODELS = {
    "x[1:]": lambda x: x[1:].mean(0),
    "x[::2]": lambda x: x[::2] * 2,
    "differences": lambda x: x[:-1] + x[1:],
    "diff": lambda x: torch.diff(x, dim=0),
    "x[2:] of three": lambda x: F.pad(x, (0, 0, 1, 0))[2:] + 1,
}


@pytest.mark.parametrize("capture", ["auto", "export"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_small_dim_stays_dynamic(model, capture):
    program = sardonyx.export(
        model, (torch.randn(2, 3),), dynamic_axes={"x": {0: "n"}}, capture=capture
    )
    for size in (2, 3, 7):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x), model(x))


def test_a_half_of_two():
    program = sardonyx.export(
        lambda x: F.glu(x, 0), (torch.randn(2, 3),), dynamic_axes={"x": {0: "n"}}
    )
    for size in (2, 4, 10):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x), F.glu(x, 0))


def test_a_size_that_is_really_fixed_is_refused_at_the_example():
    with pytest.raises(sardonyx.DynamicDimError, match="2"):
        sardonyx.export(
            lambda x: x + torch.ones(2, 3), (torch.randn(2, 3),), dynamic_axes={"x": {0: "n"}}
        )
