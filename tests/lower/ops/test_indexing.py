"""Reading and writing by index tensors and masks: every form PyTorch has."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import CAPTURES, check

torch.manual_seed(0)
X = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
OTHER = torch.randn(4, 3, 4, 7)
I = torch.tensor([1, 0, -1])  # noqa: E741
J = torch.tensor([2, -2, 0])
DYNAMIC = {0: [0, 3]}

READS = {
    "one_index": lambda x, i, j: x[i],
    "one_index_inside": lambda x, i, j: x[:, j],
    "one_index_last": lambda x, i, j: x[..., i],
    "index_of_rank_2": lambda x, i, j: x[:, i.reshape(3, 1)],
    "zero_d_index": lambda x, i, j: x[:, i[1]],
    "zero_d_indices": lambda x, i, j: (x[i[0], j[0]], x[:, i[0], :, j[0]]),
    "two_leading": lambda x, i, j: x[i, j],
    "two_inside": lambda x, i, j: x[:, i, j],
    "two_last": lambda x, i, j: x[..., i, j],
    "three": lambda x, i, j: x[i, j, j],
    "all_dims": lambda x, i, j: x[i, j, i, j],
    "broadcast": lambda x, i, j: x[:, i[:, None], j],
    "broadcast_leading": lambda x, i, j: x[i[:2, None], j[None]],
    "grid": lambda x, i, j: (x[i[:, None], j], x[:, i[:, None, None], j[:2, None], i]),
    "apart": lambda x, i, j: x[i, :, j],
    "apart_inside": lambda x, i, j: x[:, i, :, j],
    "apart_broadcast": lambda x, i, j: x[i[:, None], :, j],
    "with_number": lambda x, i, j: (x[1, i], x[i, 1], x[i, :, 2]),
    "with_slice": lambda x, i, j: (x[:1, i], x[i, 1:], x[i, ::2, j]),
    "with_new_dim": lambda x, i, j: (x[None, i], x[i, None, j], x[:, None, i]),
    "int32": lambda x, i, j: (x[i.int()], x[:, i.int(), j.int()]),
}


@pytest.mark.parametrize("name", READS)
def test_read(name: str) -> None:
    check(READS[name], X, I, J, others=[(X, J.clamp(-2, 1), I)])


@pytest.mark.parametrize("name", READS)
def test_read_dynamic(name: str) -> None:
    check(READS[name], X, I, J, dynamic=DYNAMIC, others=[(OTHER, I, J)])


MASKED = {
    "whole": lambda x, m: x[m],
    "leading": lambda x, m: x[m[:, :, 0, 0]],
    "leading_1d": lambda x, m: x[m[:, 0, 0, 0]],
    "inside": lambda x, m: x[:, m[0, :, :, 0]],
    "inside_1d": lambda x, m: x[:, :, m[0, 0, :, 0]],
    "last": lambda x, m: x[..., m[0, 0]],
    "with_index": lambda x, m: x[:, m[0, :, 0, 0], 1],
    "byte_mask": lambda x, m: x[m[:, 0, 0, 0].to(torch.bool)],
    "masked_select": lambda x, m: torch.masked_select(x, m),
    "masked_select_broadcast": lambda x, m: (
        torch.masked_select(x, m[:, :1]),
        torch.masked_select(x[:1], m[:, :, :1]),
    ),
    "nonzero": lambda x, m: (torch.nonzero(m), torch.argwhere(x > 20), x.nonzero()),
    "nonzero_tuple": lambda x, m: torch.nonzero(m[0, 0], as_tuple=True),
    "where_condition": lambda x, m: torch.where(m[0, 0]),
}
MASK, OTHER_MASK = torch.rand(X.shape) > 0.5, torch.rand(X.shape) > 0.3


@pytest.mark.parametrize("name", MASKED)
def test_masked_read(name: str) -> None:
    check(MASKED[name], X, MASK, others=[(X, OTHER_MASK), (X, torch.zeros_like(MASK))])


def test_mask_and_index_together() -> None:
    mask, one = torch.tensor([True, False]), torch.tensor([2])
    check(lambda x, m, i: x[m, i], X, mask, one, others=[(X, torch.tensor([True, True]), one)])


def test_mask_of_bfloat16() -> None:
    check(lambda x, m: x[m].float(), X.bfloat16(), MASK)


def test_nonzero_dtypes() -> None:
    for dtype in (torch.float64, torch.float16, torch.int8, torch.int32):
        check(torch.nonzero, torch.tensor([[0, 3], [1, 0]], dtype=dtype))
    check(torch.nonzero, torch.tensor(2.0), others=[(torch.tensor(0.0),)])


def test_nonzero_static() -> None:
    x = torch.tensor([[0, 3, 1], [1, 0, 0]])
    check(lambda x: torch.nonzero_static(x, size=2), x)
    check(lambda x: torch.nonzero_static(x, size=5, fill_value=7), x, others=[(x * 0,)])


# -- writes ----------------------------------------------------------------------------------------


index_put = torch.ops.aten.index_put


def _set(x, at, v):
    x = x.clone()
    x[at] = v
    return x


WRITES = {
    "one_index": (lambda x, i, j, v: _set(x, (i,), v), (2, 3, 4, 5)),
    "one_index_scalar": (lambda x, i, j, v: _set(x, (i,), v), ()),
    "one_index_broadcast": (lambda x, i, j, v: _set(x, (i,), v), (4, 5)),
    "inside": (lambda x, i, j, v: _set(x, (slice(None), j), v), (2, 3, 4, 5)),
    "inside_broadcast": (lambda x, i, j, v: _set(x, (slice(None), j), v), (1, 5)),
    "inside_rank_2": (lambda x, i, j, v: _set(x, (slice(None), j.reshape(3, 1)), v), (3, 1, 4, 5)),
    "last": (lambda x, i, j, v: _set(x, (..., j), v), (3, 1, 3)),
    "two": (lambda x, i, j, v: _set(x, (i, j), v), (3, 4, 5)),
    "two_broadcast": (lambda x, i, j, v: _set(x, (i[:2, None], j), v), (2, 3, 4, 5)),
    "two_scalar": (lambda x, i, j, v: _set(x, (i, j), v), ()),
    "two_inside": (lambda x, i, j, v: _set(x, (slice(None), i, j), v), (2, 3, 5)),
    "two_inside_small": (lambda x, i, j, v: _set(x, (slice(None), i, j), v), (5,)),
    "two_last": (lambda x, i, j, v: _set(x, (..., i, j), v), (2, 1, 3)),
    "apart": (lambda x, i, j, v: _set(x, (i, slice(None), j), v), (3, 3, 5)),
    "apart_inside": (lambda x, i, j, v: _set(x, (slice(None), i, slice(None), j), v), (3, 2, 4)),
    "all_dims": (lambda x, i, j, v: _set(x, (i, j, i, j), v), (3,)),
    "zero_d": (lambda x, i, j, v: index_put(x, [i[0], j[0]], v), (4, 5)),
    "with_number": (lambda x, i, j, v: _set(x, (i[:2], 1), v), (2, 4, 5)),
}


@pytest.mark.parametrize("name", WRITES)
def test_write(name: str) -> None:
    function, shape = WRITES[name]
    # Places are written once each: among repeated ones PyTorch does not say which write stays.
    once = torch.tensor([1, 0, -1])
    args = (X, once[:2] if name.startswith("one_index") else I, once, torch.randn(shape))
    check(function, *args)
    if name != "apart_inside":
        check(function, *args, dynamic={0: [2]})


ACCUMULATED = {
    "one": (lambda x, i, j, v: index_put(x, [i], v, True), ()),
    "repeated": (lambda x, i, j, v: index_put(x, [i * 0, j * 0], v, True), (3, 4, 5)),
    "inside": (lambda x, i, j, v: index_put(x, [None, j], v, True), (2, 3, 4, 5)),
    "apart": (lambda x, i, j, v: index_put(x, [i, None, j], v, True), (3, 3, 5)),
}


@pytest.mark.parametrize("name", ACCUMULATED)
def test_accumulate(name: str) -> None:
    function, shape = ACCUMULATED[name]
    check(function, X, torch.tensor([1, 0, 1]), J, torch.randn(shape))


MASK_WRITES = {
    "scalar": (lambda x, m, v: index_put(x, [m], v), ()),
    "leading": (lambda x, m, v: index_put(x, [m[:, :, 0, 0]], v), (4, 5)),
    "leading_one": (lambda x, m, v: index_put(x, [m[:, :, 0, 0]], v), (1, 4, 5)),
    "inside": (lambda x, m, v: index_put(x, [None, m[0, :, :, 0]], v), (2, 1, 5)),
    "accumulate": (lambda x, m, v: index_put(x, [m], v, True), ()),
    "masked_fill": (lambda x, m, v: x.masked_fill(m, -1.5), ()),
    "masked_fill_tensor": (lambda x, m, v: x.masked_fill(m[:, :1], v), ()),
    "masked_fill_infinite": (lambda x, m, v: x.masked_fill(~m, float("-inf")), ()),
    "masked_fill_wider": (lambda x, m, v: x[:, :1].masked_fill(m, v), ()),
    "masked_scatter": (lambda x, m, v: x.masked_scatter(m, v), (200,)),
    "masked_scatter_broadcast": (lambda x, m, v: x.masked_scatter(m[:, :, :1], v), (20, 10)),
}


@pytest.mark.parametrize("name", MASK_WRITES)
def test_masked_write(name: str) -> None:
    function, shape = MASK_WRITES[name]
    value = torch.randn(shape)
    check(function, X, MASK, value, others=[(X, OTHER_MASK, value), (X, MASK & False, value)])
    if "leading" not in name:
        # PyTorch cannot infer masked_scatter's shape where it expands a dynamic one in a trace.
        captures = ("export",) if name == "masked_scatter_broadcast" else CAPTURES
        others = [(X, OTHER_MASK, value)]
        dynamic = {0: [2], 1: [2]}
        check(function, X, MASK, value, dynamic=dynamic, others=others, captures=captures)


def test_mask_takes_values_in_order() -> None:
    count, rows = int(MASK.sum()), int(MASK[:, :, 0, 0].sum())
    check(lambda x, m, v: index_put(x, [m], v), X, MASK, torch.randn(count))
    check(lambda x, m, v: index_put(x, [m[:, :, 0, 0]], v), X, MASK, torch.randn(rows, 4, 5))
    inside = int(MASK[0, :, :, 0].sum())
    check(
        lambda x, m, v: index_put(x, [None, m[0, :, :, 0]], v),
        X,
        MASK,
        torch.randn(2, inside, 5),
    )
    check(
        lambda x, m, v: index_put(x, [m[0, 0, 0]], v),
        X.permute(3, 2, 1, 0),
        MASK,
        torch.ones(1, 4, 3, 2),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.uint8, torch.bool])
def test_write_dtypes(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    value = torch.ones((), dtype=dtype)
    check(
        lambda x, i, m, v: (
            index_put(x, [i], v),
            index_put(x, [m], v),
            index_put(x, [None, i, i], v),
            x.masked_fill(m, 1),
            index_put(x, [i, i], v, True),
            x.index_fill(1, i, 0),
        ),
        x,
        torch.tensor([1, 0]),
        MASK,
        value,
    )


# -- one dim ---------------------------------------------------------------------------------------

ONE_DIM = {
    "index_select": lambda x, i: (x.index_select(1, i), x.index_select(-1, i[0])),
    "index_select_int32": lambda x, i: x.index_select(0, i.int()),
    "take": lambda x, i: (torch.take(x, i * 7), torch.take(x, -i - 1)),
    "index_fill": lambda x, i: (x.index_fill(0, i[:1], 2.5), x.index_fill(-1, i, -1)),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x[0, 0], padding_idx=1),
    "embedding_int32": lambda x, i: torch.nn.functional.embedding(i.int(), x[0, 0]),
    "one_hot": lambda x, i: torch.nn.functional.one_hot(i, 4),
}


@pytest.mark.parametrize("name", ONE_DIM)
def test_one_dim(name: str) -> None:
    check(ONE_DIM[name], X, torch.tensor([1, 0]), others=[(X, torch.tensor([0, 1]))])
    check(
        ONE_DIM[name],
        X,
        torch.tensor([1, 0]),
        dynamic={0: [3], 1: [0]},
        others=[(OTHER[:2], torch.tensor([0, 1, 0]))],
    )


M = torch.arange(12.0).reshape(3, 4)
GATHERS = {
    "gather": (lambda x, i: x.gather(1, i), torch.tensor([[0, 3, 1, 2, 0], [1] * 5, [2] * 5])),
    "gather_rows": (lambda x, i: x.gather(-2, i), torch.tensor([[2, 0, 1, 1]])),
    "gather_smaller": (lambda x, i: x.gather(1, i), torch.tensor([[0, 3]])),
    "gather_empty": (lambda x, i: x.gather(1, i[:0]), torch.tensor([[0, 3]])),
    "take_along_dim": (
        lambda x, i: torch.take_along_dim(x, i, 1),
        torch.tensor([[0], [3], [1]]),
    ),
    "take_along_dim_broadcast": (
        lambda x, i: torch.take_along_dim(x, i, dim=1),
        torch.tensor([[0, 3, 2]]),
    ),
    "take_along_flat": (lambda x, i: torch.take_along_dim(x, i), torch.tensor([[0, 11]])),
    "take_along_argsort": (
        lambda x, i: torch.take_along_dim(x, x.argsort(1, descending=True), 1),
        torch.tensor([0]),
    ),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name: str) -> None:
    function, index = GATHERS[name]
    check(function, M, index)
    if "smaller" not in name and "take_along_" not in name:
        check(function, M, index, dynamic={0: [1]}, others=[(torch.randn(3, 6), index)])


def test_scalars() -> None:
    zero = torch.tensor(0)
    check(lambda x, i: (x.gather(0, i), x.index_select(0, i), torch.take(x, i)), M[0, 1], zero)
    check(lambda x, i: (x.gather(0, i), x.index_select(0, i)), M[0], torch.tensor([2]))
    check(lambda x, i: x.index_fill(0, i, 3), M[0, 1], zero)
    check(lambda x, m: x.masked_fill(m, 3), M[0, 1], torch.tensor(True))


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_writes_where_a_uint8_mask_is_not_zero() -> None:
    mask = torch.tensor([1, 0, 2, 0], dtype=torch.uint8)
    check(lambda x, mask: x.index_put((mask,), x[:2] + 7), torch.arange(4.0), mask)
