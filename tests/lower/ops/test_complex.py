"""Complex numbers: pairs of reals in the file, complex tensors for the caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import sardonyx
from tests.lower.ops.harness import CAPTURES, check


def z(*shape: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, dtype=dtype, generator=generator)


def x(*shape: int) -> torch.Tensor:
    return z(*shape).real.clone()


# -- the file -------------------------------------------------------------------------------------


class Rotation(torch.nn.Module):
    def __init__(self, dtype: torch.dtype = torch.complex64) -> None:
        super().__init__()
        self.turn = torch.nn.Parameter(z(3, dtype=dtype))

    def forward(self, given: torch.Tensor) -> dict[str, torch.Tensor]:
        turned = given * self.turn
        return {"turned": turned, "length": turned.abs()}


def test_in_the_file_a_complex_tensor_has_a_last_dim_of_two(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    program = sardonyx.export(
        Rotation(), (z(2, 3),), path, dynamic_axes={"given": {0: "batch"}}, verify=True
    )
    graph = program.model.graph
    assert [str(d) for d in graph.inputs[0].shape] == ["batch", "3", "2"]
    assert list(graph.initializers["turn"].shape) == [3, 2]
    session = onnxruntime.InferenceSession(path)
    given = z(5, 3)
    (turned, length) = session.run(None, {"given": torch.view_as_real(given).numpy()})
    expected = Rotation()(given)
    np.testing.assert_allclose(turned[..., 0], expected["turned"].real.detach(), rtol=1e-5)
    np.testing.assert_allclose(length, expected["length"].detach(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_program_takes_and_gives_complex_tensors(dtype: torch.dtype) -> None:
    model = Rotation(dtype)
    program = sardonyx.export(model, (z(2, 3, dtype=dtype),), verify=True)
    given = z(2, 3, dtype=dtype).conj()  # its conjugation is a bit beside the memory
    torch.testing.assert_close(program(given), dict(model(given)), rtol=1e-5, atol=1e-6)


def test_weights_that_are_inputs_are_fed_from_the_model() -> None:
    program = sardonyx.export(Rotation(), (z(2, 3),), export_params=False, verify=True)
    assert [i.name for i in program.model.graph.inputs] == ["given", "turn"]


def test_complex_state_is_returned() -> None:
    class Memory(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3, dtype=torch.complex64))

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            self.total += given
            return self.total.abs()

    program = sardonyx.export(Memory(), (z(3),), state_outputs=True, verify=True)
    assert program.signature.complex_outputs == {"total.out"}


def test_weights_are_not_copied() -> None:
    model = Rotation()
    program = sardonyx.export(model, (z(2, 3),))
    weight = program.model.graph.initializers["turn"].const_value
    assert weight.raw.untyped_storage().data_ptr() == model.turn.untyped_storage().data_ptr()


# -- arithmetic -----------------------------------------------------------------------------------

ARITHMETIC: dict[str, Callable[..., object]] = {
    "with a real tensor": lambda a, c, r: (a + r, r - a, a * r, a / r, r / a),
    "with numbers": lambda a, c, r: (a + 2, 1 - a, a * 1j, a / (1 + 2j), 2 / a, a * 3.0),
    "of two": lambda a, c, r: (a + c, a - c, a * c, a / c, torch.rsub(a, c, alpha=1j)),
    "with an alpha": lambda a, c, r: torch.add(a, c, alpha=2 - 1j),
    "real with complex numbers": lambda a, c, r: (r + 1j, r * (2 + 1j), r == 1j),
    "promoted": lambda a, c, r: (a.to(torch.complex128) * r, a + r.double(), a * r.double()),
    "powers": lambda a, c, r: (a**2, a**-3, a**0, a**0.5, a**2.5, a ** (1 + 1j), a**c, 2**a),
    "parts": lambda a, c, r: (a.real, a.imag, a.abs(), a.angle(), a.sgn(), a.conj()),
    "joined": lambda a, c, r: (torch.complex(r, r), torch.polar(r.abs(), r)),
    "viewed": lambda a, c, r: (
        torch.view_as_real(a),
        torch.view_as_complex(torch.stack([r, r], -1)),
    ),
    "compared": lambda a, c, r: (a == c, a != a, a.isfinite(), torch.isclose(a, a), a.isreal()),
    "converted": lambda a, c, r: (r.to(torch.complex64), a.to(torch.bool), a.to(torch.complex128)),
    "chosen": lambda a, c, r: (torch.where(r > 0, a, r), torch.where(r > 0, a, 1j)),
    "filled": lambda a, c, r: (a.masked_fill(r > 0, 2 + 1j), torch.full_like(a, 1j)),
    "joined along a dim": lambda a, c, r: (torch.cat([a, r]), torch.stack([a, c], 1)),
    "reduced": lambda a, c, r: (a.sum(0), a.mean(), a.prod(1), a.var(0), a.std(), a.norm()),
    "accumulated": lambda a, c, r: (a.cumsum(0), a.cumprod(1)),
    "truth": lambda a, c, r: (a.any(), a.all(1), a.logical_not(), a.count_nonzero()),
    "products": lambda a, c, r: (
        a @ c.mH,
        torch.outer(a[0], r[0]),
        torch.einsum("ij,kj->ik", a, c),
    ),
    "created": lambda a, c, r: (torch.ones_like(a), a.new_zeros(2), torch.eye(2) * a[:2, :2]),
    "moved": lambda a, c, r: (a.movedim(0, 1), a.movedim([0], [-1]), a.roll(1, 0), a.flip(0)),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name: str) -> None:
    a, c = z(3, 4), z(3, 4).roll(1, 0)
    check(ARITHMETIC[name], a, c, x(3, 4), captures=CAPTURES, opsets=(17, 21))


def test_dynamic_sizes() -> None:
    def model(a: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (a * r).sum(0), a @ a.mH, torch.cat([a, r]).view(-1), (a + r[:1]).abs()

    check(
        model,
        z(3, 4),
        x(3, 4),
        dynamic={0: [0], 1: [0]},
        others=[(z(5, 4), x(5, 4)), (z(1, 4), x(1, 4))],
    )


UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square",
    "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "sigmoid", "neg", "sgn",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    grid = torch.tensor([-2.5, -1.0, -0.3, 1e-4, 0.4, 1.0, 3.0])
    values = torch.complex(grid[:, None].expand(7, 7), grid[None, :].expand(7, 7))
    check(getattr(torch, name), values.contiguous(), captures=["trace"], opsets=(18,), rtol=2e-5)


def test_nothing_overflows_on_the_way() -> None:
    large, small = complex(3e30, -4e30), complex(3e-30, 4e-30)
    values = torch.tensor([large, small, complex(0, 1e30), 1 + 1j])

    def model(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a.abs(), a / a.flip(0), a.reciprocal(), a.sqrt(), a.sgn()

    check(model, values, captures=["trace"], opsets=(20,))


def test_at_zero() -> None:
    def model(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a / a.abs().max(), a.sgn(), a.sqrt(), a**2, a**1.5, a.angle(), (1 + 2j) / a

    check(model, torch.tensor([0j, 1 + 0j, 0 - 1j]), captures=["trace"], opsets=(20,))


def test_empty_and_single() -> None:
    def model(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a.sum(), a * 1j, a.abs(), a.conj()

    check(model, z(0, 3))
    check(model, torch.tensor(1 + 2j))


def test_writes() -> None:
    def model(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b = a.clone()
        b.real[0] = 7
        b[1] *= 1j
        b.conj()[2] = 1 + 2j
        return b, a

    check(model, z(3, 2))


def test_a_convolution() -> None:
    weight, bias = z(4, 3, 3), z(4)
    check(lambda a: torch.nn.functional.conv1d(a, weight, bias, padding=1), z(2, 3, 8))


def test_random_parts_share_the_variance() -> None:
    program = sardonyx.export(lambda a: torch.randn_like(a), (z(4000),))
    drawn = program(z(4000))
    assert drawn.dtype == torch.complex64
    assert abs(float(drawn.abs().square().mean()) - 1) < 0.1
    assert abs(float((drawn.real * drawn.imag).mean())) < 0.1


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="linalg_eig"):
        sardonyx.export(lambda a: torch.linalg.eigvals(a), (z(3, 3),))


@pytest.mark.filterwarnings("ignore:.*ComplexHalf.*:UserWarning")
def test_half_precision_is_refused() -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="half precision"):
        sardonyx.export(lambda a: a.to(torch.complex32).real, (z(3),))


def test_linear_algebra() -> None:
    def model(a: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        positive = a @ a.mH + 4 * torch.eye(3)
        return (
            torch.linalg.inv(a),
            torch.linalg.solve(a, c),
            torch.linalg.cholesky(positive),
            torch.linalg.svdvals(a),
            torch.linalg.eigvalsh(positive),
            torch.linalg.matrix_exp(a),
        )

    a = z(2, 3, 3) + 3 * torch.eye(3)
    check(model, a, z(2, 3, 4), captures=["export"], rtol=1e-3, atol=1e-4)


def test_singular_vectors_are_refused() -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="has no ONNX form here"):
        sardonyx.export(lambda a: torch.linalg.svd(a)[0], (z(3, 3),))


def lu_parts(a: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
    packed, pivots = torch.linalg.lu_factor(a)
    return (
        packed,
        pivots,
        *torch.linalg.lu(a),
        *torch.lu_unpack(packed, pivots),
        torch.linalg.lu_solve(packed, pivots, c),
        torch.linalg.lu_solve(packed, pivots, c, adjoint=True),
        torch.linalg.lu_solve(packed, pivots, c.mT, left=False),
        torch.linalg.det(a),
        torch.linalg.slogdet(a),
        torch.logdet(a),
    )


def qr_parts(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    packed, tau = torch.geqrf(a)
    return (
        packed,
        tau,
        *torch.linalg.qr(a),
        *torch.linalg.qr(a, "complete"),
        torch.linalg.qr(a, "r")[1],
        torch.linalg.householder_product(packed, tau) if a.shape[-2] >= a.shape[-1] else tau,
        torch.ormqr(packed, tau, a),
        torch.ormqr(packed, tau, a, transpose=True),
        torch.ormqr(packed, tau, a.mT, left=False),
    )


def triangular_parts(a: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
    factor = torch.linalg.cholesky(a @ a.mH + 4 * torch.eye(3))
    return (
        torch.cholesky_solve(c, factor),
        torch.cholesky_solve(c, factor.mH, upper=True),
        torch.cholesky_inverse(factor),
        torch.cholesky_inverse(factor.mH, upper=True),
        *torch.triangular_solve(c, factor, upper=False),
        *torch.triangular_solve(c, factor, upper=False, transpose=True),
        *torch.triangular_solve(c, factor.mT, unitriangular=True),
    )


def test_elimination() -> None:
    a = z(2, 3, 3)
    check(lu_parts, a, z(2, 3, 4), rtol=1e-3, atol=1e-4, others=[(a.flip(-1), z(2, 3, 4))])
    check(torch.linalg.lu, z(4, 3), dynamic={0: [0, 1]}, others=[(z(2, 5),), (z(1, 1),)])
    singular = torch.tensor([[0, 0, 1], [0, 0, 2j], [0, 1 + 1j, 3]])
    check(lambda a: (torch.linalg.det(a), torch.linalg.lu_factor_ex(a)), singular)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 4, 2)])
def test_reflections(shape: tuple[int, ...]) -> None:
    check(qr_parts, z(*shape), rtol=1e-3, atol=1e-4)


def test_reflections_of_what_is_done() -> None:
    check(lambda a: (torch.linalg.qr(a), torch.geqrf(a)), torch.eye(3, dtype=torch.complex64) * 1j)
    check(torch.linalg.qr, z(4, 3), dynamic={0: [0, 1]}, others=[(z(2, 5),), (z(1, 1),)])


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_triangular_systems() -> None:
    check(triangular_parts, z(2, 3, 3), z(2, 3, 4), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
def test_least_squares(driver: str) -> None:
    def solve(a: torch.Tensor, c: torch.Tensor) -> Any:
        return tuple(torch.linalg.lstsq(a, c, driver=driver))

    check(solve, z(2, 5, 3), z(2, 5, 2), rtol=1e-3, atol=1e-4)
    check(solve, z(2, 3, 4), z(2, 3, 2), rtol=1e-3, atol=1e-4)


def test_covariance() -> None:
    frequencies, weights = torch.tensor([1, 3, 2, 1]), torch.rand(4)
    check(
        lambda a: (
            torch.cov(a),
            torch.cov(a, correction=0, fweights=frequencies, aweights=weights),
            torch.cov(a, aweights=weights),
            torch.cov(a[0]),
            torch.corrcoef(a),
            torch.corrcoef(a[0]),
        ),
        z(3, 4),
        opsets=(20,),
    )
    check(lambda a: (torch.cov(a), torch.corrcoef(a)), z(3, 4), dynamic={0: [0, 1]},
          others=[(z(2, 5),), (z(4, 7),)])  # fmt: skip
