"""The ways that the default capture takes where data decides what the model does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from tests.capture.programs_as_scripts import AsksWhetherItIsAScript, HasUnusedMethod

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
OTHERS = [X, -X, X * 20, torch.zeros(3, 4), X.abs()]


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return self.linear(x)
        return x - 1


class Loops(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        left = int(x.abs().sum())
        while left > 3:
            x = x / 2
            left = left // 2
        for i in range(int(x.argmax())):
            x = x + i
        return {"x": x, "sum": x.sum()}


def early_return(x: torch.Tensor) -> torch.Tensor:
    for row in range(x.shape[0]):
        if bool(x[row].sum() > 2):
            return x[row]
    return x.sum(0)


@pytest.mark.parametrize("model", [Branches(), Loops(), early_return])
def test_branches_and_loops_that_data_decides(model: Any) -> None:
    program = sardonyx.export(model, (X,))
    for x in OTHERS:
        torch.testing.assert_close(program(x), model(x))
    assert "is read as a TorchScript program" in program.notes[0]
    assert program.notes[0].place[0].endswith("test_attempts.py")


class CallsItself(nn.Module):
    def __call__(self, x: torch.Tensor) -> Any:
        return super().__call__(x).clamp(max=100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return x


@pytest.mark.parametrize("model", [AsksWhetherItIsAScript(), HasUnusedMethod(), CallsItself()])
def test_a_script_that_may_compute_something_else_is_refused(model: nn.Module) -> None:
    with pytest.raises(sardonyx.CaptureError, match="cannot be recorded faithfully") as caught:
        sardonyx.export(model, (X.abs(),))
    assert "if x.sum() > 0:" in str(caught.value)


def test_hooks_on_all_modules_are_not_left_out() -> None:
    hook = nn.modules.module.register_module_forward_pre_hook(lambda module, args: args[0] * 2)
    try:
        with pytest.raises(sardonyx.CaptureError, match="hooks on all modules"):
            sardonyx.export(Branches(), (X,))
    finally:
        hook.remove()


class Normalized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return self.norm(x)
        return x


def test_buffers_and_attributes_are_as_before() -> None:
    model = Normalized().eval()
    names = [sorted(vars(module)) for module in model.modules()]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    program = sardonyx.export(model, (X,))
    for x in OTHERS:
        torch.testing.assert_close(program(x), model(x))
    assert [sorted(vars(module)) for module in model.modules()] == names
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name])


def test_a_refusal_names_every_attempt() -> None:
    with pytest.raises(sardonyx.CaptureError) as caught:
        sardonyx.export(lambda x: x + 1 if x.sum() > 0 else x, (X,))
    rows = str(caught.value).splitlines()[1:]
    named = [row.split()[0] for row in rows]
    assert named[0] == "export" and {"script", "trace", "try"} <= set(named)


class Parametrized(Branches):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(self.linear)


def test_layers_with_parametrizations_are_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match="ParametrizedLinear has parametrizations"):
        sardonyx.export(Parametrized().eval(), (X,))


class MasksUnlessFull(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not torch.jit.is_tracing() and torch.all(mask == 1):
            return x
        return x.masked_fill(mask == 0, -1.0)


def test_the_code_that_a_model_has_for_exporters_is_recorded_where_its_own_looks_at_data() -> None:
    model, mask = MasksUnlessFull(), torch.ones(3, 4)
    program = sardonyx.export(model, (X, mask))
    mask[1, 2:] = 0
    torch.testing.assert_close(program(X, mask), model(X, mask))
    (note,) = program.notes
    assert "torch.jit.is_tracing()" in note and "torch.all(mask == 1)" in note
    assert not torch.jit.is_tracing()


class OtherwiseTraced(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.jit.is_tracing() and x.sum() > 0:
            return x * eval("2")  # which no script has
        return x * 3


def test_code_for_exporters_that_computes_something_else_is_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match="cannot be recorded faithfully"):
        sardonyx.export(OtherwiseTraced(), (torch.ones(3, 4),))
