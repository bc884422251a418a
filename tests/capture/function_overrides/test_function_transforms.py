"""Gradients and the transforms of torch.func: recorded, and never left entered."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import CaptureError

X = torch.randn(3, 4)


def cube(x):
    return (x**3).sum()


def two_alike_calls(x):
    return (x.sin() + (x + 1).sin()).sum()


def by_autograd(compute, x):
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(compute(x), x)
    return gradient


OF_ANY_LENGTH = {
    "grad": lambda x: torch.func.grad(cube)(x),
    "vjp": lambda x: torch.func.vjp(torch.sin, x)[1](x)[0],
    "vjp of a product": lambda x: torch.func.vjp(lambda y: y.sin() * y, x)[1](x + 2)[0],
    "grad of rows": lambda x: torch.func.vmap(torch.func.grad(cube))(x),
    "grad of two alike calls": lambda x: torch.func.grad(two_alike_calls)(x),
    "autograd": lambda x: by_autograd(cube, x),
    "autograd of two alike calls": lambda x: by_autograd(two_alike_calls, x),
}
TRANSFORMS = {
    "jacrev": lambda x: torch.func.jacrev(lambda a: a.sum(0) ** 2)(x),
    "hessian": lambda x: torch.func.hessian(cube)(x[0]),
    "jacfwd": lambda x: torch.func.jacfwd(lambda a: a.sum(0) ** 2)(x[:2]),
    "jvp": lambda x: torch.func.jvp(torch.sin, (x,), (x * 3,))[1],
    **OF_ANY_LENGTH,
}


def assert_exports_go_on():
    program = sardonyx.export(lambda x: x.sin() + 1, (X,), capture="export")
    torch.testing.assert_close(program(X), X.sin() + 1)
    dual = torch.func.jvp(torch.sin, (X,), (X,))[1]
    torch.testing.assert_close(dual, X.cos() * X)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("model", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_transform_is_recorded(model, capture):
    program = sardonyx.export(model, (X,), capture=capture)
    assert program.notes == ()
    for x in (X, X * 2 + 1, torch.randn(3, 4)):
        torch.testing.assert_close(program(x), model(x))
    assert_exports_go_on()


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("model", OF_ANY_LENGTH.values(), ids=OF_ANY_LENGTH)
def test_a_gradient_over_a_dynamic_dim(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for n in (1, 2, 3, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), model(x))


def by_data(x):
    return x * 2 if x.sum() > 0 else x


def test_a_refused_export_leaves_no_transform_entered():
    def model(x):
        return torch.func.grad(lambda a: by_data(a).sum())(x)

    with pytest.raises(CaptureError):
        sardonyx.export(model, (X,), capture="export")
    assert_exports_go_on()
