"""The transforms of torch.func: recorded or refused, and never left entered."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import CaptureError

X = torch.randn(3, 4)


def cube(x):
    return (x**3).sum()


GRADIENTS = {
    "grad": lambda x: torch.func.grad(cube)(x),
    "vjp": lambda x: torch.func.vjp(torch.sin, x)[1](x)[0],
    "jacrev": lambda x: torch.func.jacrev(lambda a: a.sum(0) ** 2)(x),
    "grad of each row": lambda x: torch.func.vmap(torch.func.grad(cube))(x),
    "hessian": lambda x: torch.func.hessian(cube)(x[0]),
}


def by_autograd(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(cube(x), x)
    return gradient


def assert_exports_go_on():
    program = sardonyx.export(lambda x: x.sin() + 1, (X,), capture="export")
    torch.testing.assert_close(program(X), X.sin() + 1)
    dual = torch.func.jvp(torch.sin, (X,), (X,))[1]
    torch.testing.assert_close(dual, X.cos() * X)


@pytest.mark.parametrize("capture", ["trace", "auto"])
@pytest.mark.parametrize("model", GRADIENTS.values(), ids=GRADIENTS)
def test_a_gradient_that_would_end_the_process_is_refused(model, capture):
    with pytest.raises(CaptureError, match=r"torch\.func\.grad, and what is made of it") as told:
        sardonyx.export(model, (X,), capture=capture)
    assert "test_function_transforms.py:" in str(told.value)
    assert "torch.autograd.grad" in str(told.value)
    assert_exports_go_on()


def test_what_the_hint_says_works():
    program = sardonyx.export(by_autograd, (X,), capture="auto")
    for x in (X, X * 2 + 1):
        torch.testing.assert_close(program(x), by_autograd(x))


def test_a_refused_export_leaves_no_transform_entered():
    def model(x):
        return torch.func.jacfwd(lambda a: a.sum(0) ** 2)(x[:2])

    with pytest.raises(CaptureError):
        sardonyx.export(model, (X,), capture="export")
    assert_exports_go_on()
    program = sardonyx.export(model, (X,), capture="auto")
    torch.testing.assert_close(program(X + 1), model(X + 1))


def test_a_gradient_that_torch_export_loses_is_refused():
    def model(x):
        _, backward = torch.func.vjp(lambda y: y.sin() * y, x)
        return backward(torch.ones_like(x))[0]

    with pytest.raises(sardonyx.SardonyxError, match=r"torch\.export cannot"):
        sardonyx.export(model, (torch.randn(3, 3),), capture="export", dynamic_axes={"x": {0: "n"}})
