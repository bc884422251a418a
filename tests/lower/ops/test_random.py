"""Random operators: dtype, shape and distribution of what the exported model draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import sardonyx
from tests.lower.ops.harness import CAPTURES, check

SIZE = (60, 80)
X = torch.rand(*SIZE)


class Call(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def export(function: Callable[..., Any], *args: torch.Tensor, **options: Any) -> Any:
    return sardonyx.export(Call(function), args, kwargs={}, **options)


# Name, function, the mean and the standard deviation of its distribution, its bounds.
DISTRIBUTIONS: list[tuple[str, Callable[..., Any], float, float, float, float]] = [
    ("rand", lambda x: torch.rand(*SIZE), 0.5, 12**-0.5, 0, 1),
    ("rand_like", torch.rand_like, 0.5, 12**-0.5, 0, 1),
    ("rand_double", lambda x: torch.rand(*SIZE, dtype=torch.float64), 0.5, 12**-0.5, 0, 1),
    ("rand_half", lambda x: torch.rand(*SIZE, dtype=torch.float16), 0.5, 12**-0.5, 0, 1),
    ("uniform", lambda x: x.clone().uniform_(-3, 5), 1, 8 * 12**-0.5, -3, 5),
    ("randn", lambda x: torch.randn(*SIZE), 0, 1, -9, 9),
    ("randn_like", lambda x: torch.randn_like(x, dtype=torch.float64), 0, 1, -9, 9),
    ("normal", lambda x: torch.normal(2.0, 3.0, SIZE), 2, 3, -30, 30),
    ("normal_tensors", lambda x: torch.normal(x * 0 + 2, x * 0 + 3), 2, 3, -30, 30),
    ("normal_tensor_float", lambda x: torch.normal(x * 0 + 2, 3.0), 2, 3, -30, 30),
    ("normal_float_tensor", lambda x: torch.normal(2.0, x * 0 + 3), 2, 3, -30, 30),
    ("normal_in_place", lambda x: x.clone().normal_(-1, 0.5), -1, 0.5, -6, 6),
    ("randint", lambda x: torch.randint(10, SIZE), 4.5, (99 / 12) ** 0.5, 0, 9.5),
    ("randint_low", lambda x: torch.randint(-5, 5, SIZE), -0.5, (99 / 12) ** 0.5, -5, 4.5),
    ("randint_like", lambda x: torch.randint_like(x, 10), 4.5, (99 / 12) ** 0.5, 0, 9.5),
    ("randint_like_low", lambda x: torch.randint_like(x, 2, 4), 2.5, 0.5, 2, 3.5),
    ("random_to", lambda x: x.clone().random_(4), 1.5, 1.25**0.5, 0, 3.5),
    ("exponential", lambda x: x.clone().exponential_(2.0), 0.5, 0.5, 0, 20),
    ("bernoulli", lambda x: torch.bernoulli(x * 0 + 0.3), 0.3, 0.21**0.5, 0, 1.5),
    ("bernoulli_p", lambda x: torch.bernoulli(x, 0.3), 0.3, 0.21**0.5, 0, 1.5),
    ("bernoulli_tensor", lambda x: x.clone().bernoulli_(x * 0 + 0.3), 0.3, 0.21**0.5, 0, 1.5),
    ("dropout", lambda x: F.dropout(x * 0 + 1, 0.3), 1, (0.3 / 0.7) ** 0.5, 0, 1.5),
    ("alpha_dropout", lambda x: F.alpha_dropout(torch.randn_like(x), 0.3, True), 0, 1, -9, 9),
    ("multinomial", lambda x: torch.multinomial(torch.tensor([0.3, 0.7]).expand(4800, 2), 1), 0.7,
     0.21**0.5, 0, 1.5),
    ("multinomial_replaced", lambda x: torch.multinomial(torch.tensor([0.3, 0.7]), 4800, True), 0.7,
     0.21**0.5, 0, 1.5),
]  # fmt: skip


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("case", DISTRIBUTIONS, ids=[c[0] for c in DISTRIBUTIONS])
def test_distribution(case: tuple[Any, ...], capture: str) -> None:
    _, function, mean, deviation, low, high = case
    program = export(function, X, capture=capture)
    expected, first, second = function(X), program(X), program(X)
    assert (first.dtype, first.shape) == (expected.dtype, expected.shape)
    assert not torch.equal(first, second)
    drawn = torch.cat([first.reshape(-1), second.reshape(-1)]).double()
    assert drawn.min() >= low and drawn.max() < high
    assert abs(drawn.mean() - mean) < 5 * deviation / len(drawn) ** 0.5
    assert abs(drawn.std() - deviation) < 0.1 * deviation


def test_dynamic_sizes() -> None:
    program = export(
        lambda x: (torch.rand(x.shape[0], 3), torch.randn_like(x), torch.randperm(x.shape[0])),
        torch.randn(4, 2),
        dynamic_axes={"in0": [0]},
        input_names=["in0"],
    )
    uniform, normal, order = program(torch.randn(7, 2))
    assert uniform.shape == (7, 3) and normal.shape == (7, 2)
    assert order.sort().values.tolist() == list(range(7))


def test_random_between() -> None:
    # torch.export writes `aten.random_.from`, which is not Python.
    drawn = export(lambda x: x.clone().random_(2, 4), X, capture="trace")(X)
    assert set(drawn.unique().tolist()) == {2.0, 3.0}


def test_draws_are_independent() -> None:
    first, second = export(lambda x: (torch.rand_like(x), torch.rand_like(x)), X)(X)
    assert not torch.equal(first, second)


def test_without_replacement_no_class_comes_twice() -> None:
    weights = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4]).expand(50, 5).contiguous()
    drawn = export(lambda w: torch.multinomial(w, 4), weights)(weights)
    assert drawn.dtype == torch.int64
    assert all(sorted(row) == [1, 2, 3, 4] for row in drawn.tolist())


def test_feature_dropout_drops_whole_channels() -> None:
    x = torch.ones(30, 20, 3, 3)
    drawn = export(lambda x: F.dropout2d(x, 0.25), x)(x)
    per_channel = drawn.flatten(2)
    assert torch.equal(per_channel.amin(-1), per_channel.amax(-1))
    torch.testing.assert_close(per_channel.unique(), torch.tensor([0.0, 4 / 3]))
    assert abs((per_channel == 0).double().mean() - 0.25) < 0.1


EVALUATED = [
    torch.nn.Dropout(0.5),
    torch.nn.Dropout1d(0.5),
    torch.nn.AlphaDropout(0.5),
    torch.nn.FeatureAlphaDropout(0.5),
]


@pytest.mark.parametrize("module", EVALUATED, ids=lambda m: type(m).__name__)
def test_dropout_of_eval_is_the_identity(module: torch.nn.Module) -> None:
    program = check(module, torch.randn(2, 3, 4))
    assert len(list(program.model.graph)) == 1


def test_dropout_of_everything() -> None:
    check(lambda x: F.dropout(x, 1.0, training=True), X)
    check(lambda x: torch.ops.aten.native_dropout(x, 0.5, False), X)


def distance(share: torch.Tensor) -> float:
    """Kolmogorov and Smirnov's, of numbers that should be uniform; above 2 once in 1500 times."""
    ordered = share.double().flatten().sort().values
    count = len(ordered)
    steps = torch.arange(1, count + 1) / count
    return float(torch.maximum(steps - ordered, ordered - steps + 1 / count).max()) * count**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("concentration", [0.2, 0.5, 1.0, 3.0, 100.0])
def test_gamma_distribution(concentration: float, dtype: torch.dtype) -> None:
    alpha = torch.full((100, 100), concentration, dtype=dtype)
    for capture in CAPTURES:
        program = export(torch._standard_gamma, alpha, capture=capture)
        first, second = program(alpha), program(alpha)
        assert first.dtype == dtype and not torch.equal(first, second)
        drawn = torch.stack([first, second]).double()
        assert distance(torch.special.gammainc(alpha.double().expand_as(drawn), drawn)) < 2


def test_gamma_of_other_numbers() -> None:
    program = export(torch._standard_gamma, torch.ones(4))
    drawn = program(torch.tensor([torch.nan, 0.0, torch.inf, 2.0]))
    assert drawn[0].isnan() and drawn[1] == torch.finfo(torch.float32).tiny
    assert drawn[2] == torch.inf and 0 < drawn[3] < 30


@pytest.mark.parametrize("capture", CAPTURES)
def test_dirichlet_distribution(capture: str) -> None:
    # The first of the three is seldom large: of 8000 draws, its deviation would vary by 5 %.
    count = 100_000
    alpha = torch.tensor([0.05, 1.0, 4.0]).expand(count, 3).contiguous()
    drawn = export(torch._sample_dirichlet, alpha, capture=capture)(alpha)
    assert drawn.dtype == torch.float32 and drawn.min() > 0 and drawn.max() < 1
    torch.testing.assert_close(drawn.sum(-1), torch.ones(count))
    mean, total = alpha[0] / alpha[0].sum(), alpha[0].sum()
    deviation = (mean * (1 - mean) / (total + 1)).sqrt()
    assert ((drawn.mean(0) - mean).abs() < 5 * deviation / count**0.5).all()
    torch.testing.assert_close(drawn.std(0), deviation, rtol=0.1, atol=0)


DISTRIBUTION = torch.distributions
DRAWN_BY_GAMMA: dict[str, tuple[Callable[..., Any], float]] = {
    "Gamma": (lambda a: DISTRIBUTION.Gamma(a, 2 * a, validate_args=False).sample(), 0.5),
    "Chi2": (lambda a: DISTRIBUTION.Chi2(a, validate_args=False).sample(), 3.0),
    "Beta": (lambda a: DISTRIBUTION.Beta(a, a, validate_args=False).sample(), 0.5),
}


@pytest.mark.parametrize("name", DRAWN_BY_GAMMA)
def test_distributions_made_of_gamma(name: str) -> None:
    function, mean = DRAWN_BY_GAMMA[name]
    alpha = torch.full((90, 90), 3.0)
    drawn = export(function, alpha)(alpha)
    assert drawn.shape == alpha.shape
    assert abs(float(drawn.mean()) - mean) < 5 * float(drawn.std()) / 90
