import math

import pytest
import torch

from sardonyx.verify.compare import compare_output, typical_magnitude


def problem(expected, actual, **tolerances):
    return compare_output("y", "0", expected, actual, **tolerances).problem


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "complex64",
        "int64",
        "uint8",
        "uint64",
        "bool",
    ],
)
def test_equal_tensors_agree_in_every_dtype(dtype):
    dtype = getattr(torch, dtype)
    x = torch.tensor([0.0, 1.0, 3.0]).to(dtype)
    result = compare_output("y", "0", x, x.clone())
    assert (result.problem, result.max_abs, result.max_rel) == (None, 0.0, 0.0)
    assert (result.dtype, result.shape) == (dtype, (3,))


def test_dtype_and_shape_are_compared():
    x = torch.ones(2, 3)
    assert problem(x, x.double()) == "dtype float64, PyTorch gives float32"
    assert problem(x, x.reshape(3, 2)) == "shape [3, 2], PyTorch gives [2, 3]"
    assert problem(torch.ones(1), torch.tensor(1.0)) == "shape [], PyTorch gives [1]"
    assert problem(torch.ones(0, 3), torch.ones(0, 3)) is None


def test_not_a_number_must_stand_at_the_same_places():
    nan = math.nan
    assert problem(torch.tensor([nan, 1.0]), torch.tensor([nan, 1.0])) is None
    assert "NaN" in problem(torch.tensor([nan, 1.0]), torch.tensor([1.0, nan]))
    assert "1 NaN, PyTorch gives 0" in problem(torch.tensor([1.0]), torch.tensor([nan]))


def test_infinities_must_agree_in_place_and_sign():
    inf = math.inf
    assert problem(torch.tensor([inf, 1.0]), torch.tensor([inf, 1.0])) is None
    assert "infinities" in problem(torch.tensor([inf]), torch.tensor([-inf]))
    assert "infinities" in problem(torch.tensor([3e38]), torch.tensor([inf]))


def test_errors_are_reported_as_numbers():
    result = compare_output("y", "0", torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.5, 4.0]))
    assert result.problem == "1 of 3 elements differ"
    assert result.max_abs == 0.5
    assert result.max_rel == 0.25


def test_rounding_of_another_summation_order_passes_and_a_wrong_value_does_not():
    torch.manual_seed(0)
    x, w = torch.randn(64, 512), torch.randn(512, 256)
    exact = x @ w
    reordered = (x[:, 256:] @ w[256:]) + (x[:, :256] @ w[:256])
    assert problem(exact, reordered) is None
    wrong = exact.clone()
    wrong[3, 7] += 0.01 * exact.std()
    assert problem(exact, wrong) == f"1 of {exact.numel()} elements differ"


def test_a_mask_of_huge_values_does_not_hide_errors():
    scores = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    masked = scores.masked_fill(torch.ones(8, 8).triu(1).bool(), torch.finfo(torch.float32).min)
    assert typical_magnitude(masked.double()) < 10
    assert problem(masked, masked.where(masked < -1e9, masked + 0.1)) is not None


def test_outputs_that_are_tiny_everywhere_are_still_compared():
    tiny = torch.tensor([1e-9, 2e-9, 3e-9])
    assert problem(tiny, torch.zeros(3)) is not None
    assert problem(torch.zeros(3), torch.full((3,), 1e-8)) is None


def test_integers_are_exact_beyond_the_precision_of_float64():
    x = torch.tensor([2**60, 1])
    assert problem(x, x + torch.tensor([1, 0])) == "1 of 2 elements differ"
    assert problem(x, x + 1, rtol=1.0, atol=1.0) == "2 of 2 elements differ"


def test_tolerances_can_be_given():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.05, 2.0])
    assert problem(x, y) is not None
    assert problem(x, y, rtol=0.1) is None
    assert problem(x, y, rtol=0.0, atol=0.06) is None
