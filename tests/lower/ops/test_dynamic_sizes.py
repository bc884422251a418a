"""Sizes that PyTorch takes for numbers, and that are open in the file."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

WINDOW = torch.hann_window(8)


def _each(*sizes):
    return [tuple(torch.randn(*each) for each in shapes) for shapes in sizes]


def _vectors(*lengths):
    return _each(*([(n,)] for n in lengths))


def _matrices(*shapes):
    return _each(*([shape] for shape in shapes))


OF_A_LENGTH = {
    "linspace": lambda x: torch.linspace(-1, 2.5, x.shape[0]),
    "linspace of integers": lambda x: torch.linspace(-3, 17, x.shape[0], dtype=torch.int64),
    "linspace between tensors": lambda x: torch.linspace(x.sum(), 3, steps=x.shape[0]),
    "linspace up to a size": lambda x: torch.linspace(0, x.shape[0] - 0.5, x.shape[0] * 2),
    "logspace": lambda x: torch.logspace(-1, 2, x.shape[0], base=2.0),
    "bartlett": lambda x: torch.bartlett_window(x.shape[0]),
    "blackman": lambda x: torch.blackman_window(x.shape[0], periodic=False),
    "hann": lambda x: x * torch.hann_window(x.shape[0]),
    "hann, symmetric": lambda x: torch.hann_window(x.shape[0], False, dtype=torch.float64),
    "hamming": lambda x: torch.hamming_window(x.shape[0]),
    "hamming of two numbers": lambda x: torch.hamming_window(x.shape[0], True, 0.5, 0.4),
    "kaiser": lambda x: torch.kaiser_window(x.shape[0]),
    "kaiser of a number": lambda x: torch.kaiser_window(x.shape[0], False, 6.0),
    "triu_indices": lambda x: torch.triu_indices(x.shape[0], x.shape[0], 1),
    "vander": lambda x: torch.vander(x, 4),
    "vander, increasing": lambda x: torch.vander(x, increasing=True),
}


@pytest.mark.parametrize("name", OF_A_LENGTH)
def test_of_a_length(name):
    sizes = _vectors(1, 2, 8, 13) + ([] if name == "vander, increasing" else _vectors(0))
    check(OF_A_LENGTH[name], torch.randn(5), dynamic={0: [0]}, others=sizes, rtol=2e-4)


@pytest.mark.parametrize("function", [torch.fft.fftfreq, torch.fft.rfftfreq])
def test_frequencies(function):
    check(
        lambda x: function(x.shape[0], d=0.5),
        torch.randn(5),
        dynamic={0: [0]},
        others=_vectors(1, 2, 8, 13),
    )


OF_A_MATRIX = {
    "linspace": lambda x: x + torch.linspace(-1, 1, x.shape[1]),
    "tril_indices": lambda x: torch.tril_indices(x.shape[0], x.shape[1], -1),
    "triu_indices": lambda x: torch.triu_indices(x.shape[0], x.shape[1], 1),
    "a triangle": lambda x: x[tuple(torch.tril_indices(x.shape[0], x.shape[1]))],
    "kron": lambda x: torch.kron(x, torch.eye(3)),
    "kron of a vector": lambda x: torch.kron(torch.arange(3.0), x),
    "take_along_dim": lambda x: torch.take_along_dim(x, x.argsort(1), 1),
    "trapezoid at places": lambda x: torch.trapezoid(x, x.cumsum(1)),
    "one_hot": lambda x: F.one_hot(x.sum(1).long().clamp(0, 0), x.shape[1] + 1),
    "bincount": lambda x: torch.bincount(x.sum(1).long().clamp(0, 3), minlength=x.shape[1]),
    "norm 1": lambda x: torch.linalg.norm(x, 1),
    "norm inf": lambda x: torch.linalg.matrix_norm(x, math.inf),
    "norm of columns": lambda x: torch.linalg.norm(x, 3, dim=0, keepdim=True),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.T, x, torch.ones(x.shape[1])]),
}


@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_of_a_matrix(name):
    shapes = [(1, 4), (3, 1), (6, 7), (2, 2), *([] if "norm" in name else [(0, 3), (3, 0)])]
    check(
        OF_A_MATRIX[name],
        torch.randn(5, 4),
        dynamic={0: [0, 1]},
        others=_matrices(*shapes),
        atol=1e-4,
    )


@pytest.mark.parametrize("order", [-1, -math.inf, 2, -2, "nuc", "fro"])
def test_matrix_norm(order):
    check(
        lambda x: torch.linalg.matrix_norm(x, order),
        torch.randn(2, 5, 4),
        dynamic={0: [0, 1, 2]},
        others=_matrices((1, 1, 1), (3, 2, 6), (2, 3, 3)),
        opsets=[20],
    )


def test_trapezoid():
    others = _matrices((1, 4), (3, 1), (6, 7))
    check(
        lambda x: torch.trapezoid(x, dx=0.5, dim=0),
        torch.randn(5, 4),
        dynamic={0: [0, 1]},
        others=others,
    )


def test_a_gradient_along_a_dynamic_dim_is_refused():
    def model(x):
        return torch.gradient(x, dim=0)

    with pytest.raises(sardonyx.DynamicDimError, match=r"fixes it to 5(.|\n)*test_dynamic_sizes"):
        sardonyx.export(model, (torch.randn(5, 4),), dynamic_axes={"x": [0]})


def test_products_of_several_inputs():
    check(
        torch.kron,
        torch.randn(3, 4),
        torch.randn(2, 5),
        dynamic={0: [0, 1], 1: [0, 1]},
        others=_each([(1, 1), (1, 1)], [(2, 3), (5, 1)], [(0, 2), (3, 3)]),
    )
    check(
        lambda *x: torch.linalg.multi_dot(x),
        torch.randn(3, 4),
        torch.randn(4, 2),
        torch.randn(2, 5),
        dynamic={0: [0, 1], 1: [0, 1], 2: [0, 1]},
        others=_each([(1, 1)] * 3, [(2, 7), (7, 3), (3, 1)], [(0, 2), (2, 2), (2, 3)]),
    )


def test_multi_dot_of_known_sizes():
    chain = [torch.randn(2, 30), torch.randn(30, 3), torch.randn(3, 20), torch.randn(20, 5)]
    check(lambda *x: torch.linalg.multi_dot(x), *chain)
    check(lambda *x: torch.linalg.multi_dot(x), torch.randn(30), *chain[1:3], torch.randn(20))


def _indexed(rows, columns, index_rows, count):
    return torch.randn(rows, columns), torch.randint(0, columns, (index_rows, count))


def test_take_along_dim():
    def model(x, indices):
        return torch.take_along_dim(x, indices, 1)

    check(
        model,
        *_indexed(5, 4, 5, 3),
        dynamic={0: [0, 1], 1: [0, 1]},
        others=[_indexed(1, 4, 1, 3), _indexed(3, 1, 3, 2), _indexed(3, 4, 3, 0)],
    )
    check(
        model,
        *_indexed(5, 4, 1, 3),
        dynamic={0: [0, 1], 1: [1]},
        others=[_indexed(1, 4, 1, 3), _indexed(3, 1, 1, 2), _indexed(0, 2, 1, 2)],
    )


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior")
@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(align_corners):
    def model(theta, x):
        return F.affine_grid(theta, x.shape, align_corners=align_corners)

    flat = [(2, 3, 5, 4), (1, 3, 1, 1), (3, 1, 7, 5), (2, 2, 1, 6), (2, 2, 2, 1)]
    example, *others = [(torch.randn(s[0], 2, 3), torch.randn(s)) for s in flat]
    check(model, *example, dynamic={0: [0], 1: [0, 1, 2, 3]}, others=others)
    deep = [(2, 3, 3, 5, 4), (1, 3, 1, 1, 1), (3, 1, 2, 7, 5)]
    example, *others = [(torch.randn(s[0], 3, 4), torch.randn(s)) for s in deep]
    check(model, *example, dynamic={0: [0], 1: [0, 1, 2, 3, 4]}, others=others)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior")
def test_affine_grid_of_one_place():
    check(lambda t: F.affine_grid(t, [2, 3, 1, 6], align_corners=True), torch.randn(2, 2, 3))


@pytest.mark.parametrize("length", [lambda x: x.shape[-1], lambda x: None])
def test_istft(length):
    def model(x):
        spectrum = torch.stft(x, 8, 4, window=WINDOW, return_complex=True)
        return torch.istft(spectrum, 8, 4, window=WINDOW, length=length(x))

    check(
        model,
        torch.randn(2, 40),
        dynamic={0: [0, 1]},
        others=_matrices((1, 40), (3, 24), (2, 33), (1, 9)),
    )


@pytest.mark.parametrize("dim", [0, 1, None])
def test_mean_of_complex_numbers(dim):
    def example(*shape):
        return torch.randn(*shape, dtype=torch.complex64)

    check(
        lambda x: x.mean() if dim is None else x.mean(dim),
        example(5, 4),
        dynamic={0: [0, 1]},
        others=[(example(1, 4),), (example(3, 1),), (example(6, 7),)],
    )


@pytest.mark.parametrize(
    "model",
    [
        lambda x: F.adaptive_max_pool2d(x, (None, 1)),
        lambda x: F.adaptive_max_pool2d(x, (2, None), return_indices=True),
        lambda x: F.adaptive_max_pool2d(x, (x.shape[2] // 2 + 1, 3)),
        lambda x: F.adaptive_max_pool1d(x[0], x.shape[2]),
        lambda x: F.adaptive_avg_pool1d(x[0], x.shape[2] + 1),
        lambda x: F.adaptive_avg_pool2d(x, x.shape[3]),
        torch.nn.AdaptiveMaxPool2d((None, 2)),
    ],
)
def test_adaptive_pool(model):
    check(
        model,
        torch.randn(2, 3, 6, 8),
        dynamic={0: [2, 3]},
        others=_matrices((2, 3, 1, 1), (2, 3, 5, 7), (2, 3, 9, 4)),
    )


@pytest.mark.parametrize(
    "model",
    [
        lambda x: F.avg_pool2d(x, x.shape[2:]),
        lambda x: F.avg_pool2d(x, kernel_size=x.size()[2:], stride=x.size()[2:], padding=(0, 0)),
        lambda x: F.avg_pool2d(x, (x.shape[2], 2), (1, 2), 0),
        lambda x: F.max_pool2d(x, (1, x.shape[3])),
        lambda x: F.max_pool1d(x[0], x.shape[3]),
    ],
)
def test_windows_as_long_as_an_axis(model):
    # A trace does not tell that two sizes are one.
    check(
        model,
        torch.randn(2, 3, 6, 8),
        dynamic={0: [0, 2, 3]},
        others=_matrices((1, 3, 1, 2), (3, 3, 5, 7), (2, 3, 9, 4)),
        captures=["export"],
    )


def test_windows_longer_than_the_axis_of_another_size_are_refused():
    with pytest.raises(sardonyx.DynamicDimError, match="dim 3"):
        check(
            lambda x: F.avg_pool2d(x, x.shape[3]),
            torch.randn(2, 3, 6, 6),
            dynamic={0: [2, 3]},
            captures=["export"],
        )


def test_pooled_axes_of_a_volume():
    check(
        lambda x: F.adaptive_max_pool3d(x, (None, 2, None)),
        torch.randn(2, 3, 6, 8, 5),
        dynamic={0: [0, 2, 3, 4]},
        others=_matrices((1, 3, 1, 1, 1), (3, 3, 5, 7, 4)),
    )


def test_fractional_max_pool3d():
    def example(batch, *sizes):
        return torch.randn(batch, 3, *sizes), torch.rand(batch, 3, 3)

    check(
        lambda x, s: F.fractional_max_pool3d(x, 2, output_size=(2, 2, 3), _random_samples=s),
        *example(2, 6, 7, 8),
        dynamic={0: [0, 2, 3, 4], 1: [0]},
        others=[example(1, 5, 5, 5), example(3, 4, 9, 5)],
    )
