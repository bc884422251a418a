import pytest
import torch

from sardonyx.verify.inputs import (
    UnknownSizeError,
    drawn_like,
    other_sizes,
    resized,
    symbol_sizes,
)


def draw(example, *shape):
    return drawn_like(example, shape, torch.Generator().manual_seed(0))


def test_a_name_has_one_size_everywhere():
    dims = [("batch", 3), ("time", "batch")]
    sizes = symbol_sizes(dims, [torch.ones(2, 3), torch.ones(5, 2)])
    assert sizes == {"batch": 2, "time": 5}
    assert [resized(d, {"batch": 4, "time": 7}) for d in dims] == [(4, 3), (7, 4)]


def test_dims_may_be_expressions_of_other_dims():
    assert resized(("2*batch", "batch + time"), {"batch": 3, "time": 4}) == (6, 7)
    with pytest.raises(UnknownSizeError, match="time"):
        resized(("time",), {"batch": 3})
    with pytest.raises(UnknownSizeError, match="batch=1"):
        resized(("batch - 4",), {"batch": 1})


@pytest.mark.parametrize("sizes", [{"a": 1}, {"a": 2, "b": 2}, {"a": 0, "b": 8, "c": 8}])
def test_other_sizes_differ_in_every_symbol(sizes):
    candidates = list(other_sizes(sizes))
    assert len(candidates) >= 3
    for candidate in candidates:
        assert all(candidate[name] != size and candidate[name] > 0 for name, size in sizes.items())
    assert len(set(candidates[0].values())) == len({*candidates[0].values()})
    equal_sizes = [name for name in sizes if list(sizes.values()).count(sizes[name]) > 1]
    assert len({candidates[0][name] for name in equal_sizes}) == len(equal_sizes)


def test_integers_stay_within_the_range_of_the_example():
    drawn = draw(torch.tensor([3, 7, 5]), 200)
    assert drawn.dtype == torch.int64
    assert set(drawn.tolist()) == {3, 4, 5, 6, 7}
    largest = torch.iinfo(torch.int64).max
    assert draw(torch.tensor([largest]), 4).min() >= largest - 1
    assert draw(torch.empty(0, dtype=torch.int64), 2).tolist() == [0, 0]


def test_floats_keep_the_spread_of_the_example():
    drawn = draw(torch.randn(1000) * 50, 1000)
    assert drawn.dtype == torch.float32
    assert 40 < float(drawn.std()) < 60
    unit = draw(torch.tensor([0.1, 0.9]), 1000)
    assert 0.1 <= float(unit.min()) < 0.2 < 0.8 < float(unit.max()) <= 0.9


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.complex64], ids=str
)
def test_values_vary_in_every_dtype(dtype):
    drawn = draw(torch.tensor([0, 1, 3]).to(dtype), 20)
    assert drawn.dtype == dtype
    assert len(set(drawn.tolist())) > 1
