"""Writing to places that tensors name."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(3, 5)
PLACES = torch.tensor([[0, 2, 1, 0, 0], [2, 1, 0, 1, 2]])
SRC = torch.randn(2, 5)
LARGE = torch.randn(4, 6)

SCATTERS = {
    "src_rows": lambda x, i, s: x.scatter(0, i[:1], s),
    "src_columns": lambda x, i, s: x.scatter(1, torch.argsort(i, 1)[:, :3], s),
    "src_negative_dim": lambda x, i, s: x.scatter(-1, torch.argsort(i, 1), s),
    "value": lambda x, i, s: (x.scatter(0, i, 2.5), x.scatter(1, i, 3)),
    "reduce_add": lambda x, i, s: x.scatter(0, i, s, reduce="add"),
    "reduce_multiply": lambda x, i, s: x.scatter(1, i, s, reduce="multiply"),
    "value_reduce": lambda x, i, s: (
        x.scatter(0, i, 2.0, reduce="add"),
        x.scatter(1, i, 2.0, reduce="multiply"),
    ),
    "add": lambda x, i, s: (x.scatter_add(0, i, s), x.scatter_add(1, i, s)),
    "empty": lambda x, i, s: (x.scatter(0, i[:0], s), x.scatter_add(1, i[:, :0], s)),
}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("name", SCATTERS)
def test_scatter(name: str) -> None:
    check(SCATTERS[name], X, PLACES, SRC)
    check(SCATTERS[name], X, PLACES, LARGE)


def test_scatter_dynamic() -> None:
    more = torch.cat([PLACES, PLACES.flip(0)])
    check(
        lambda x, i, s: (x.scatter_add(0, i, s), x.scatter_reduce(0, i, s, "mean")),
        X,
        PLACES,
        SRC,
        dynamic={0: [0], 1: [0], 2: [0]},
        others=[(torch.randn(4, 5), more, torch.randn(4, 5))],
    )


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.float64])
def test_scatter_reduce(reduce: str, include_self: bool, dtype: torch.dtype) -> None:
    x, src = (X * 9).to(dtype), (SRC * 9).to(dtype)
    check(
        lambda x, i, s: (
            x.scatter_reduce(0, i, s, reduce, include_self=include_self),
            x.scatter_reduce(-1, i, s, reduce, include_self=include_self),
        ),
        x,
        PLACES,
        src,
        others=[(x, PLACES.flip(0), src)],
    )


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_index_reduce(reduce: str, include_self: bool) -> None:
    rows, columns = torch.tensor([0, 2, 0, 0]), torch.tensor([4, 1])
    check(
        lambda x, r, c, s: (
            x.index_reduce(0, r, s[:, :5], reduce, include_self=include_self),
            x.index_reduce(1, c, s[:3, :2], reduce, include_self=include_self),
        ),
        X,
        rows,
        columns,
        LARGE,
    )


CUBE, SLICES = torch.randn(2, 4, 3), torch.randn(2, 3, 3)
ALONG = torch.tensor([3, 0, 1])
SLICED = {
    "index_add": lambda x, i, s: x.index_add(1, i, s),
    "index_add_repeated": lambda x, i, s: x.index_add(1, i * 0, s, alpha=2),
    "index_add_first_dim": lambda x, i, s: x.index_add(0, i.clamp(0, 1)[:2], x, alpha=-0.5),
    "index_copy": lambda x, i, s: x.index_copy(1, i, s),
    "index_copy_last_dim": lambda x, i, s: x.index_copy(-1, i[1:], x[:, :, :2] * 2),
    "index_copy_first_dim": lambda x, i, s: x.index_copy(0, i[1:], x * 3),
    "put": lambda x, i, s: x.put(i, s[0, 0]),
    "put_accumulate": lambda x, i, s: x.put(-(i * 0) - 1, s[0, 0], accumulate=True),
}


@pytest.mark.parametrize("name", SLICED)
def test_slices(name: str) -> None:
    check(SLICED[name], CUBE, ALONG, SLICES)
    other = torch.randn(2, 7, 3)
    if name != "index_add_first_dim":
        check(SLICED[name], CUBE, ALONG, SLICES, dynamic={0: [1]}, others=[(other, ALONG, SLICES)])


def test_one_slice() -> None:
    check(lambda x, i, s: x.index_copy(0, i, s), X[0], torch.tensor(2), torch.tensor(4.0))
    check(lambda x, i, s: x.index_add(0, i, s), X[0, 0], torch.tensor(0), torch.tensor(4.0))
    check(lambda x, i, s: x.index_copy(0, i, s), X[0, 0], torch.tensor(0), torch.tensor(4.0))
    check(
        lambda x, i, s: (x.scatter(0, i, s), x.scatter(0, i, 2.0), x.scatter_add(0, i, s)),
        torch.tensor(1.0),
        torch.tensor(0),
        torch.tensor(4.0),
    )


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.float64, torch.int32, torch.uint8, torch.bool]
)
def test_dtypes(dtype: torch.dtype) -> None:
    check(
        lambda x, i, s: (x.scatter(1, i[:, :1], s), x.index_copy(0, i[:, 0], s[:2])),
        (X * 3).to(dtype),
        PLACES,
        (SRC * 3).to(dtype),
    )
    if dtype != torch.bool:
        check(
            lambda x, i, s: (x.scatter_add(1, i, s), x.index_add(0, i[:, 0], s[:2])),
            (X * 3).to(dtype),
            PLACES,
            (SRC * 3).to(dtype),
        )


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.uint8])
@pytest.mark.parametrize("include_self", [True, False])
def test_mean_of_integers_that_wraps(dtype: torch.dtype, include_self: bool) -> None:
    low = torch.iinfo(dtype).min
    check(
        lambda x: x[:2].scatter_reduce(
            0, torch.arange(6) % 2, x, "mean", include_self=include_self
        ),
        torch.tensor([low, 100, 0, 90, 0, 50], dtype=dtype),
    )
