"""Histograms against eager PyTorch."""

import pytest
import torch

from tests.lower.ops.harness import check

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


X = torch.tensor([[0.1, 0.5, 2.0], [-1.0, 1.0, 0.75], [3.0, 0.25, 0.3]])
WEIGHT = torch.tensor([[1.0, 2.0, 0.5], [0.25, 1.0, 3.0], [2.0, 1.5, 1.0]])
EDGES = torch.tensor([-1.0, 0.1, 0.5, 2.0])
HISTOGRAMS = {
    "bins": lambda x, w: torch.histogram(x, 4),
    "range": lambda x, w: torch.histogram(x, 4, range=(0.0, 1.0)),
    "range_of_one_point": lambda x, w: torch.histogram(x, 3, range=(0.5, 0.5)),
    "weight": lambda x, w: torch.histogram(x, 5, weight=w),
    "density": lambda x, w: torch.histogram(x, 5, range=(-1.0, 2.0), weight=w, density=True),
    "edges": lambda x, w: torch.histogram(x, EDGES),
    "edges_density": lambda x, w: torch.histogram(x, EDGES, weight=w, density=True),
    "points": lambda x, w: torch.histogramdd(x, [2, 3, 4]),
    "points_one_number": lambda x, w: torch.histogramdd(x, 2, weight=w[:, 0], density=True),
    "points_range": lambda x, w: torch.histogramdd(
        x[:, :2], [2, 3], range=[0.0, 1.0, -1.0, 2.0], weight=w[:, 0]
    ),
    "points_edges": lambda x, w: torch.histogramdd(x[:, :2], [EDGES, EDGES * 2]),
}


@pytest.mark.parametrize("case", HISTOGRAMS)
def test_histogram(case: str) -> None:
    others = [(X.repeat(2, 1) * 1.5, WEIGHT.repeat(2, 1)), (X * 0 + 1, WEIGHT)]
    check(HISTOGRAMS[case], X, WEIGHT, dynamic={0: [0], 1: [0]}, others=others)


def test_bincount() -> None:
    x, weights = torch.tensor([1, 0, 3, 1]), torch.tensor([0.5, 1.0, 2.0, 0.25])
    nothing = torch.zeros(0, dtype=torch.int64)
    check(
        lambda x: (torch.bincount(x), torch.bincount(x, minlength=5)),
        x,
        dynamic={0: [0]},
        others=[(torch.tensor([6, 6]),), (nothing,)],
    )
    check(
        lambda x, w: (
            torch.bincount(x, w),
            torch.bincount(x, w.double(), minlength=2),
            torch.bincount(x, x),
        ),
        x,
        weights,
        dynamic={0: [0], 1: [0]},
        others=[(torch.tensor([6, 6]), weights[:2])],
    )
