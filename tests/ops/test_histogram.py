"""Histograms against eager PyTorch."""

import pytest
import torch

from tests.ops.harness import check

CASES = {
    "range": lambda x: torch.histc(x, bins=4, min=-1, max=2),
    "range_of_data": lambda x: torch.histc(x, bins=7),
    "default_bins": lambda x: torch.histc(x),
    "range_of_data_given_as_equal": lambda x: torch.histc(x, bins=5, min=3, max=3),
    "one_bin": lambda x: torch.histc(x, bins=1, min=0, max=1),
}


@pytest.mark.parametrize("case", CASES)
def test_histc(case: str) -> None:
    torch.manual_seed(0)
    others = [(torch.randn(5, 7) * 3,), (torch.full((2, 3), 2.0),)]
    check(CASES[case], torch.randn(3, 4), dynamic={0: [0, 1]}, others=others)


def test_edges_belong_to_the_bin_on_their_right_and_the_last_to_the_last() -> None:
    x = torch.tensor([0.0, 1.0, 2.0, 3.0, 3.0, 4.0, -1.0, float("nan")])
    check(lambda x: torch.histc(x, bins=4, min=0, max=3), x)
    check(lambda x: torch.histc(x, bins=3, min=0, max=3), x)
