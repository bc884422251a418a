"""Order: sort, topk, median, unique and search."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(3, 5, 4)
OTHER = torch.randn(3, 7, 4)
TIES = torch.tensor([[2, 1, 2, 1, 3, 1, 2], [0, 0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, 0, 9]])
NAN = float("nan")

ORDERS = {
    "sort": lambda x: torch.sort(x),
    "sort_dim": lambda x: torch.sort(x, 1),
    "sort_descending": lambda x: torch.sort(x, -2, descending=True),
    "sort_stable": lambda x: torch.sort(x, dim=0, stable=True, descending=True),
    "argsort": lambda x: (x.argsort(1), x.argsort(-1, True), x.argsort(dim=1, stable=True)),
    "msort": torch.msort,
    "topk": lambda x: torch.topk(x, 3, 1),
    "topk_smallest": lambda x: torch.topk(x, 2, -1, largest=False),
    "topk_unsorted": lambda x: torch.topk(x, 4, 1, sorted=False)[0].sort(1)[0],
    "topk_all": lambda x: torch.topk(x, x.shape[1], 1),
    "topk_half": lambda x: torch.topk(x, x.shape[1] // 2, 1),
    "kthvalue": lambda x: (*torch.kthvalue(x, 2, 1), *torch.kthvalue(x, 3, -1, keepdim=True)),
    "median": lambda x: torch.median(x),
    "median_dim": lambda x: (*torch.median(x, 1), *torch.median(x, -1, keepdim=True)),
    "nanmedian": lambda x: (torch.nanmedian(x), *torch.nanmedian(x, 1)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order(name: str) -> None:
    check(ORDERS[name], X, dynamic={0: [1]}, others=[(OTHER,)])


def test_equal_elements_keep_their_order() -> None:
    check(
        lambda x: (
            *torch.sort(x, stable=True),
            *torch.sort(x, stable=True, descending=True),
            *torch.sort(x, dim=0, stable=True),
        ),
        TIES,
    )
    many = torch.randint(0, 5, (3, 200))
    check(lambda x: (*x.sort(stable=True), x.sort(stable=True, descending=True)[1]), many)
    check(lambda x: x.float().sort(stable=True), many)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float16,
        torch.int32,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.bfloat16,
    ],
)
def test_dtypes(dtype: torch.dtype) -> None:
    x = TIES.to(dtype)
    check(lambda x: torch.sort(x, stable=True), x)
    check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)
    if dtype != torch.bool:
        check(lambda x: (torch.bucketize(x, x[2].sort()[0]), torch.topk(x, 2)[0]), x)


def test_scalars() -> None:
    check(
        lambda x: (*x.sort(), x.argsort(), *x.topk(1), *x.kthvalue(1), *x.median(0), x.median()),
        torch.tensor(2.0),
    )


def test_median_of_nan() -> None:
    holes = torch.tensor([[1.0, NAN, 3.0, 2.0], [4.0, 1.0, 7.0, 9.0], [NAN, NAN, NAN, NAN]])
    check(
        lambda x: (*x.median(1), x.median(), x.nanmedian(), x.nanmedian(1)[0], *x[:2].nanmedian(1)),
        holes,
        others=[(torch.tensor([[NAN, 5.0, NAN, NAN], [4.0, 1.0, 7.0, 9.0], [0, 0, 0, 1.0]]),)],
    )
    check(lambda x: (x.median(), *x.median(1)), TIES[2:])


def test_mode() -> None:
    # Which of several equal elements the index names is PyTorch's choice of the day.
    check(
        lambda x: (
            x.mode(1)[0],
            x.mode(0, keepdim=True)[0],
            torch.take_along_dim(x, x.mode(1, keepdim=True)[1], 1),
        ),
        TIES,
        others=[(TIES.flip(0) * 2,)],
    )
    check(lambda x: x[1].mode(1, keepdim=True)[0], X, dynamic={0: [1]}, others=[(OTHER,)])


UNIQUES = {
    "values": lambda x: torch.unique(x),
    "all": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
    "counts": lambda x: torch.unique(x, return_counts=True),
    "unsorted": lambda x: torch.unique(x, sorted=False).sort()[0],
    "dim": lambda x: torch.unique(x, dim=1, return_inverse=True, return_counts=True),
    "dim_0": lambda x: torch.unique(x, dim=0, return_inverse=True),
    "consecutive": lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
    "consecutive_values": lambda x: torch.unique_consecutive(x),
    "consecutive_dim": lambda x: torch.unique_consecutive(
        x, return_inverse=True, return_counts=True, dim=1
    ),
}


@pytest.mark.parametrize("name", UNIQUES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_unique(name: str, dtype: torch.dtype) -> None:
    other = torch.tensor([[1, 1, 1, 0, 0, 2, 2], [1, 1, 1, 0, 0, 2, 1], [1, 1, 1, 0, 0, 2, 2]])
    check(UNIQUES[name], TIES.to(dtype), others=[(other.to(dtype),)])


EDGES = torch.tensor([1.0, 3.0, 3.0, 5.0])
VALUES = torch.tensor([[0.0, 1.0, 3.0], [4.0, 9.0, NAN]])
SEARCHES = {
    "left": lambda e, v: torch.searchsorted(e, v),
    "right": lambda e, v: torch.searchsorted(e, v, right=True),
    "side": lambda e, v: torch.searchsorted(e, v, side="right"),
    "int32": lambda e, v: torch.searchsorted(e, v, out_int32=True),
    "scalar": lambda e, v: torch.searchsorted(e, 3),
    "bucketize": lambda e, v: (torch.bucketize(v, e), torch.bucketize(v, e, right=True)),
    "bucketize_int32": lambda e, v: torch.bucketize(v, e, out_int32=True),
    "bucketize_scalar": lambda e, v: torch.bucketize(2, e),
    "batched": lambda e, v: torch.searchsorted(torch.stack([e, e + 1]), v),
    "sorter": lambda e, v: torch.searchsorted(e.flip(0), v, sorter=e.flip(0).argsort()),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search(name: str) -> None:
    check(SEARCHES[name], EDGES, VALUES, dynamic={0: [0]}, others=[(torch.arange(9.0), VALUES)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32], ids=str)
def test_median_where_there_may_be_no_element(dtype: torch.dtype) -> None:
    others = [(torch.arange(n * 2.0).reshape(n, 2).to(dtype),) for n in (0, 1, 2, 7)]
    check(
        lambda x: (x.median(), x.nanmedian()),
        torch.randn(3, 2).mul(9).to(dtype),
        dynamic={0: [0]},
        others=others,
    )
