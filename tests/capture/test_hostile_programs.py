"""Programs that PyTorch runs and few write: exported as they compute, or refused in our words."""

import functools
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import sardonyx
from tests.capture.torchscript.running import assert_equal_to_eager

X = torch.arange(1.0, 7).reshape(2, 3)
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


class Holding(nn.Module):
    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.register_buffer("held", tensor)

    def forward(self, x):
        return self.held @ x.t()


class WithoutForward(nn.Module):
    pass


class Cast(nn.Module):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return x @ x.t()


class Ignoring(nn.Module):
    @torch.jit.ignore
    def helper(self, x: Tensor) -> Tensor:
        return x * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) + 1


class Unusing(nn.Module):
    @torch.jit.unused
    def helper(self, x: Tensor) -> Tensor:
        return x * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) + 1


def viewed_as_integers(x):
    return x[:1, 1].view(torch.int32)


SCRIPTS = {
    "a sparse weight": (Holding(torch.eye(3).to_sparse()), "sparse_coo tensor cannot be recorded"),
    "a partial": (functools.partial(torch.add, alpha=2), "partial is no function"),
    "no forward": (WithoutForward(), "no module with forward"),
    "autocast": (Cast(), "@autocast"),
    "ignore": (Ignoring(), "(?s)calls helper in Python.*before torch.jit.script"),
    "unused": (Unusing(), "(?s)annotated to be ignored.*before torch.jit.script"),
    "fails": (viewed_as_integers, "operator of the program fails: shape '.3.' is invalid"),
}


@pytest.mark.parametrize(("model", "reason"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_a_script_cannot_have(model, reason) -> None:
    with pytest.raises(sardonyx.CaptureError, match=reason):
        sardonyx.export(model, (X,), capture="script")


@pytest.mark.parametrize("capture", ["auto", "export", "trace", "script"])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_no_input(capture) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(sardonyx.UnsupportedDtypeError, match="is a nested tensor"):
        sardonyx.export(nn.Identity(), (nested,), capture=capture)


@CAPTURES
def test_what_needs_gradients_is_not_the_model_s_failure(capture) -> None:
    class Hooked(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            y.register_hook(lambda gradient: gradient * 2)
            return y

    with pytest.raises(sardonyx.CaptureError, match=r"cannot be recorded: .* hook on a"):
        sardonyx.export(Hooked(3, 4), (X,), capture=capture)


@CAPTURES
def test_a_wrapper_of_tensors_is_named(capture) -> None:
    def model(x):
        return torch.masked.masked_tensor(x, x > 0).sum().to_tensor(0.0)

    with pytest.raises(sardonyx.CaptureError, match="a MaskedTensor cannot be recorded"):
        sardonyx.export(model, (X,), capture=capture)


@CAPTURES
def test_a_step_of_training_leaves_no_gradient(capture) -> None:
    class Trained(nn.Linear):
        def forward(self, x):
            with torch.enable_grad():
                step = torch.optim.SGD(self.parameters(), lr=0.1)
                super().forward(x).sum().backward()
                step.step()
            return super().forward(x)

    model = Trained(3, 4)
    sardonyx.export(model, (X,), capture=capture, verify=True)
    assert model.weight.grad is None and model.bias.grad is None


@CAPTURES
def test_a_default_dtype_that_the_model_sets(capture) -> None:
    def model(x):
        torch.set_default_dtype(torch.float64)
        ones = torch.ones(3)
        torch.set_default_dtype(torch.float32)
        return x + ones, ones, torch.zeros(2)

    sardonyx.export(model, (X,), capture=capture, verify=True)


def test_a_result_without_values_is_told() -> None:
    with pytest.raises(sardonyx.VerificationError, match="on the meta device"):
        sardonyx.export(lambda x: x.to("meta"), (X,), verify=True)


class Inner(NamedTuple):
    left: Tensor
    right: tuple[Tensor, Tensor]


class Outer(NamedTuple):
    inner: Inner
    several: list[Inner]
    by_name: dict[str, Inner]


def named_tuples(x: Tensor) -> Outer:
    inner = Inner(x, (x + 1, x * 2))
    return Outer(inner, [inner], {"a": inner})


def test_named_tuples_in_each_other() -> None:
    program = assert_equal_to_eager(named_tuples, [(X,), (torch.randn(5, 3),)])
    assert program(X).several[0].right[1].shape == (2, 3)
    program.verify()


class Swapping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        self.a, self.b = self.b, self.a
        return self.a(x)


def test_modules_that_are_exchanged() -> None:
    sardonyx.export(Swapping(), (X,), verify=True)
    with pytest.raises(sardonyx.CaptureError, match="sets its module"):
        sardonyx.export(Swapping(), (X,), capture="script")


@pytest.mark.parametrize("capture", ["auto", "script"])
def test_what_nothing_foresaw_is_an_error_of_ours(capture) -> None:
    class WithoutState(nn.Module):
        def forward(self, x):
            return x

        def state_dict(self, *args, **kwargs):
            raise TypeError("none")

    with pytest.raises(sardonyx.SardonyxError, match="nothing foresaw, in capture: TypeError"):
        sardonyx.export(WithoutState(), (X,), capture=capture)


def test_a_module_without_a_hash() -> None:
    class Unhashable(nn.Module):
        __hash__ = None

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x)

    assert_equal_to_eager(Unhashable(), [(X,), (torch.randn(5, 3),)])


def test_a_float_argument_is_fed_as_float64() -> None:
    program = sardonyx.export(lambda x, k: (x * k, torch.full((2,), k)), (X, 2.5))
    assert program.model.graph.inputs[1].dtype.name == "DOUBLE"
    scaled, filled = program(X, 0.1)
    torch.testing.assert_close(scaled, X * 0.1)
    torch.testing.assert_close(filled, torch.full((2,), 0.1))
