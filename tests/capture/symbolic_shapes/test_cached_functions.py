"""Functions of functools.lru_cache that are called with dynamic sizes."""

import functools

import pytest
import torch
from torch import nn

import sardonyx

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])


@functools.lru_cache(maxsize=4)
def positions(length, scale=2):
    return torch.arange(length) * scale


def uncached_while_compiling(function):
    cached = functools.lru_cache(maxsize=1)(function)

    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args) if torch.compiler.is_compiling() else cached(*args, **kwargs)

    return called


class Embedding(nn.Module):
    @functools.lru_cache  # noqa: B019
    def method(self, shape, dtype):
        return torch.ones(shape, dtype=dtype).cumsum(-1)

    @staticmethod
    @functools.cache
    def static(length):
        return torch.ones(length)

    @uncached_while_compiling
    def wrapped(self, shape, *, device):
        return torch.arange(shape[-1], device=device).expand(shape)

    def forward(self, x):
        n = x.shape[1]
        twice = positions(n) + positions(n, scale=3)[: n - 1].sum()
        ours = self.method(x.shape, x.dtype) * self.static(n)
        return x + twice + ours + self.wrapped(x.shape, device=x.device) + positions(n + 1)[1:]


@BOTH
def test_cached_functions_are_called_with_symbolic_sizes(capture):
    model, x = Embedding(), torch.randn(2, 5)
    expected = model(x)  # the caches have entries of this size before the export
    program = sardonyx.export(
        model, (x,), dynamic_axes={"x": {0: "batch", 1: "n"}}, capture=capture, verify=True
    )
    assert not program.notes
    assert torch.equal(program(torch.ones(3, 9)), model(torch.ones(3, 9)))
    assert torch.equal(model(x), expected)
    assert all(type(length) is int for length in positions(4).shape)


@BOTH
def test_keys_of_dicts_are_numbers(capture):
    scales = {5: 2.0}
    with pytest.raises(sardonyx.CaptureError, match="fixes it to 5"):
        sardonyx.export(
            lambda x: x * scales.get(x.shape[0], 1.0),
            (torch.randn(5),),
            dynamic_axes={"x": {0: "n"}},
            capture=capture,
        )
