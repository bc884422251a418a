"""Special functions against eager PyTorch, over their whole range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import special

from tests.lower.ops.harness import check

NAN, INF = math.nan, math.inf
EDGES = [0.0, -0.0, 1e-30, -1e-30, 1e-6, 1e3, 1e10, INF, -INF, NAN]
REALS = torch.cat([torch.linspace(-12, 12, 97), torch.linspace(-60, 60, 25), torch.tensor(EDGES)])
PROBABILITIES = torch.tensor([-0.1, 0, 1e-20, 1e-6, 0.02, 0.135, 0.2, 0.5, 0.9, 1 - 1e-6, 1, NAN])

UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "erfc": torch.erfc,
    **{
        name: getattr(special, name)
        for name in (
            "erfcx",
            "log_ndtr",
            "ndtr",
            "i0",
            "i0e",
            "i1",
            "i1e",
            "airy_ai",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "spherical_bessel_j0",
        )
    },
}
POLYNOMIALS = [
    *(f"{s}chebyshev_polynomial_{kind}" for s in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]


@pytest.mark.parametrize("name", UNARY)
def test_of_one_number(name: str) -> None:
    function = UNARY[name]
    check(function, REALS, opsets=(20,))
    check(function, torch.tensor([-3, 0, 1, 2, 9]), opsets=(17,), captures=("trace",))


@pytest.mark.parametrize("name", [name for name in UNARY if name != "ndtr"])
def test_in_float64(name: str) -> None:
    values = REALS[:-4].double()
    check(UNARY[name], values, opsets=(20,), captures=("export",), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfc", "i0", "bessel_j0"])
def test_in_half_precision(name: str) -> None:
    function = UNARY[name]
    if name != "bessel_j0":  # PyTorch has it for full floats only
        check(function, torch.linspace(0.1, 6, 20).half(), opsets=(20,))


def test_inverses() -> None:
    check(special.ndtri, PROBABILITIES, rtol=1e-5)
    check(torch.erfinv, 2 * PROBABILITIES - 1, rtol=1e-5)
    check(special.ndtri, PROBABILITIES.double(), opsets=(20,), rtol=1e-12)


def test_small_tails_keep_their_digits() -> None:
    check(torch.erfc, torch.linspace(2, 9, 20), opsets=(20,), rtol=1e-5, atol=0)
    near_zeros = torch.tensor([1.00001, 0.99999, 2.00001, 1.99999])
    check(torch.lgamma, near_zeros, opsets=(20,), rtol=1e-5, atol=0)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n: int) -> None:
    x = torch.cat([torch.linspace(-5.2, 12, 40), torch.tensor([0.0, INF, 100.0])])
    check(lambda x: torch.polygamma(n, x), x, opsets=(20,))


def test_multivariate_lgamma() -> None:
    check(lambda x: torch.mvlgamma(x, 3), torch.tensor([1.5, 2.0, 8.0]))


def _pairs(*values: list[float]) -> list[torch.Tensor]:
    return [t.flatten() for t in torch.meshgrid(*map(torch.tensor, values), indexing="ij")]


def test_zeta() -> None:
    x, q = _pairs(
        [0.5, 1.0, 1.5, 2.0, 7.0, 30.0, -1.0, NAN], [-3.5, -2.0, -0.5, 0.0, 0.1, 1.0, 10.0, 50, INF]
    )
    check(special.zeta, x, q, opsets=(20,), rtol=1e-5, atol=0)
    check(lambda q: (special.zeta(3, q), special.zeta(q, 2.5)), torch.tensor([1.5, 2.0, 9.0]))


@pytest.mark.parametrize("function", [torch.igamma, torch.igammac])
def test_incomplete_gamma(function: Callable[..., Any]) -> None:
    numbers = [-1.0, 0.0, 1e-3, 0.3, 1.0, 1.5, 10.0, 25.0, 150.0, 1e4, 3e6, INF, NAN]
    a, x = _pairs(numbers, [*numbers, 11.0, 9.5, 10100.0, 2.999e6])
    check(function, a, x, opsets=(20,), rtol=3e-4)
    check(function, a.double(), x.double(), opsets=(20,), captures=("export",), rtol=1e-6)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_tensor_degrees(name: str) -> None:
    x, n = _pairs(
        [-9.0, -1.0, -0.9, -0.3, 0.0, 0.2, 0.5, 0.99, 1.0, 1.3, 7.0, NAN],
        [-1.0, -0.5, 0.0, 1.0, 2.0, 3.7, 6.0, 7.0, 9.0, 12.0, NAN, INF],
    )
    check(getattr(special, name), x, n, opsets=(20,), rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_known_degrees(name: str) -> None:
    function = getattr(special, name)
    x = torch.tensor([-2.0, -1.0, -0.3, 0.0, 0.2, 0.5, 1.0, 1.3])
    check(lambda x: tuple(function(x, n) for n in (0, 1, 4, 10, 40)), x, opsets=(20,), rtol=1e-3)
    check(lambda n: function(0.3, n), torch.tensor([0, 1, 4, 10]), opsets=(17,), atol=1e-5)


def test_hermite_gives_up_at_high_degrees() -> None:
    check(lambda n: special.hermite_polynomial_h(0.5, n), torch.tensor([5, 128, 129, 1000]))


def test_dynamic_shapes() -> None:
    check(
        lambda x, y: (
            torch.lgamma(x),
            torch.igamma(x, y),
            special.zeta(x + 1, y),
            special.chebyshev_polynomial_t(x, y),
        ),
        torch.rand(2, 1) + 1,
        torch.rand(3) * 5,
        dynamic={0: [0], 1: [0]},
        others=[(torch.rand(5, 1) + 1, torch.rand(4) * 5), (torch.rand(5, 1), torch.rand(0))],
    )


def test_scalars_and_empty_tensors() -> None:
    check(lambda x: (torch.lgamma(x), torch.erfinv(x)), torch.tensor(0.3))
    check(torch.igamma, torch.zeros(0, 2), torch.ones(2))


def test_lgamma_of_the_largest_numbers() -> None:
    x = torch.tensor([-3e38, -3.4e38, 3e38, -1e20, -2.5, -3.0, -torch.inf])
    check(torch.lgamma, x)
    check(torch.lgamma, x.double() * 5e269)
