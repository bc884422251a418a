import pytest
import torch

from sardonyx.aten.drawn_values import drawn_like
from sardonyx.aten.signature import DynamicDim, InputSpec
from sardonyx.verify.drawn_sizes import DrawnSizes
from sardonyx.verify.inputs import (
    UnknownSizeError,
    example_sizes,
    resized,
)


def spec(*dims, **dynamic):
    by_axis = {dims.index(dim.name): dim for dim in dynamic.values()}
    return InputSpec("x", "x", "tensor", torch.float32, dims, by_axis)


def draw(example, *shape):
    return drawn_like(example, shape, torch.Generator().manual_seed(0))


def test_a_name_has_one_size_everywhere():
    specs = [spec("batch", 3), spec("time", "batch")]
    sizes = example_sizes(specs, [torch.ones(2, 3), torch.ones(5, 2)])
    assert sizes == {"batch": 2, "time": 5}
    assert [resized(s, {"batch": 4, "time": 7}) for s in specs] == [(4, 3), (7, 4)]


@pytest.mark.parametrize("name", ["batch size", "seq-len", "2x", "2*batch", "lambda", "__import__"])
def test_a_name_may_be_any_text(name):
    sizes = example_sizes([spec(name)], [torch.ones(2)])
    assert sizes == {name: 2}
    assert resized(spec(name), {name: 5}) == (5,)


def test_dims_may_be_computed_from_other_dims():
    double = DynamicDim("2*batch", roots=("batch",), derive=lambda n: 2 * n)
    less = DynamicDim("batch - 4", roots=("batch",), derive=lambda n: n - 4)
    derived = spec("2*batch", "batch - 4", double=double, less=less)
    specs = [spec("batch"), derived]
    assert example_sizes(specs, [torch.ones(5), torch.ones(10, 1)]) == {"batch": 5}
    assert resized(derived, {"batch": 6}) == (12, 2)
    with pytest.raises(UnknownSizeError, match="batch, which is no dim"):
        resized(derived, {"time": 3})
    with pytest.raises(UnknownSizeError, match="batch=1"):
        resized(derived, {"batch": 1})


def test_sizes_stay_within_what_the_caller_allows():
    limited = [spec("n", "m", n=DynamicDim("n", minimum=4, maximum=5))]
    sizes = {"n": 4, "m": 4}
    assert {s["n"] for s in DrawnSizes(limited, sizes, ()).others()} <= {4, 5}
    assert list(DrawnSizes(limited, sizes, ()).smaller()) == [{"n": 4, "m": 3}]
    single = [spec("n", n=DynamicDim("n", maximum=1))]
    assert list(DrawnSizes(single, {"n": 1}, ()).others()) == []


@pytest.mark.parametrize("sizes", [{"a": 1}, {"a": 2, "b": 2}, {"a": 0, "b": 8, "c": 8}])
def test_other_sizes_differ_in_every_symbol(sizes):
    candidates = list(DrawnSizes([spec(*sizes)], sizes, ()).others())
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
    assert 0 <= float(draw(torch.full((3,), 2.0), 1000).min()) < 0.1


def test_memory_lies_as_in_the_example():
    example = torch.randn(3, 2).t()
    assert draw(example, 2, 3).stride() == example.stride()


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.complex64], ids=str
)
def test_values_vary_in_every_dtype(dtype):
    drawn = draw(torch.tensor([0, 1, 3]).to(dtype), 20)
    assert drawn.dtype == dtype
    assert len(set(drawn.tolist())) > 1
