"""The `prims` that decompositions end in; a program that was decomposed so far can be exported."""

import pytest
import torch

import sardonyx

P = torch.ops.prims
X = torch.tensor([[0.5, -1.5, 2.0], [3.25, 0.0, -0.25]])
CALLS = {
    **{
        name: (lambda x, name=name: getattr(P, name)(x * 0.25))
        for name in (
            "abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
            "floor", "neg", "round", "sin", "sinh", "tan", "tanh",
        )
    },
    "acosh": lambda x: P.acosh(x.abs() + 1),
    "log": lambda x: P.log(x.abs() + 1),
    "sqrt": lambda x: P.sqrt(x.abs()),
    **{
        name: (lambda x, name=name: getattr(P, name)(x, x.flip(0)))
        for name in ("add", "eq", "ge", "gt", "le", "lt", "mul", "ne", "sub")
    },
    "pow": lambda x: P.pow(x.abs() + 1, x),
    "remainder": lambda x: P.remainder(x, x.abs() + 0.75),
    "div": lambda x: P.div(x, x.abs() + 1),
    "div of integers": lambda x: P.div((x * 10).int(), (x * 0).int() + 4),
    "where": lambda x: P.where(x > 0, x, -x),
    "convert_element_type": lambda x: P.convert_element_type(x, torch.int32),
    "reshape": lambda x: P.reshape(x, [3, 2]),
    "squeeze": lambda x: P.squeeze(x[None], [0]),
    "transpose": lambda x: P.transpose(x, [1, 0]),
    "broadcast_in_dim": lambda x: P.broadcast_in_dim(x[:, None], [2, 4, 3], [0, 1, 2]),
    "broadcast_in_dim to inner dims": lambda x: P.broadcast_in_dim(x, [5, 2, 3], [1, 2]),
    "sum": lambda x: P.sum(x, [0]),
    "var": lambda x: P.var(x, [1], 1.0),
    "var without correction": lambda x: P.var(x, [0, 1], 0.0),
}  # fmt: skip


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_every_prim(capture):
    calls = dict(CALLS)
    if capture == "export":  # torch.jit.trace does not take a device there
        calls["device_put"] = lambda x: P.device_put(x, torch.device("cpu"))

    def all_of_them(x):
        return tuple(call(x) for call in calls.values())

    program = sardonyx.export(all_of_them, (X,), capture=capture)
    for x in (X, X.flip(1) * 0.5):
        for name, ours, theirs in zip(calls, program(x), all_of_them(x), strict=True):
            torch.testing.assert_close(ours, theirs, msg=lambda text, name=name: f"{name}: {text}")
