"""Weights that are tensor subclasses which wrap other tensors, as those of torchao."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import sardonyx


class Wrapper(torch.Tensor):
    """A weight in integers, with a scale for every row; operators see it as real numbers."""

    names = ("qdata", "scale")

    @staticmethod
    def __new__(cls, qdata: Any, scale: Any, shape: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=scale.dtype)

    def __init__(self, qdata: Any, scale: Any, shape: Any) -> None:
        self.qdata, self.scale = qdata, scale

    def __tensor_flatten__(self) -> Any:
        return list(self.names), self.shape

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, shape: Any, size: Any, stride: Any) -> Any:
        return cls(inner["qdata"], inner["scale"], shape)

    def dequantized(self) -> torch.Tensor:
        return self.qdata * self.scale

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].qdata, args[0].scale, args[0].shape)
        plain = [a.dequantized() if isinstance(a, Wrapper) else a for a in args]
        return func(*plain, **(kwargs or {}))


class ByFunction(Wrapper):
    """Takes calls of functions of its own, as torchao's weights do."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.functional.linear:
            return nn.functional.linear(args[0], args[1].dequantized(), *args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Nibbles(Wrapper):
    """Two integers of four bits in each byte."""

    def dequantized(self) -> torch.Tensor:
        integers = torch.stack([self.qdata & 0xF, self.qdata >> 4], -1).view(self.shape)
        return (integers.to(self.scale.dtype) - 8) * self.scale


class OfWrapper(Wrapper):
    """Wraps one that wraps."""

    def dequantized(self) -> torch.Tensor:
        return self.qdata.dequantized() * self.scale


def weight_of(kind: type[Wrapper]) -> Wrapper:
    torch.manual_seed(0)
    if kind is Nibbles:
        return Nibbles(
            torch.randint(0, 256, (256, 32), dtype=torch.uint8), torch.rand(256, 1) / 100, (256, 64)
        )
    integers = torch.randint(-128, 128, (256, 64), dtype=torch.int8)
    if kind is OfWrapper:
        inner = Wrapper(integers, torch.rand(256, 1) / 100, (256, 64))
        return OfWrapper(inner, torch.rand(256, 1) / 100, (256, 64))
    return kind(integers, torch.rand(256, 1) / 100, (256, 64))


class Layer(nn.Module):
    def __init__(self, kind: type[Wrapper]) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 256)
        self.linear.weight = nn.Parameter(weight_of(kind), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("kind", [Wrapper, ByFunction, Nibbles, OfWrapper])
def test_a_weight_that_wraps_others(kind: type[Wrapper], capture: str, tmp_path: Path) -> None:
    model = Layer(kind).eval()
    weight = model.linear.weight
    inner = [getattr(weight, name) for name in weight.names]
    program = sardonyx.export(
        model,
        (torch.randn(3, 64),),
        tmp_path / "m.onnx",
        dynamic_axes={"x": {0: "batch"}},
        capture=capture,
        verify=True,
    )
    x = torch.randn(5, 64)
    torch.testing.assert_close(program(x), model(x))

    stored = {v.name: v.dtype.name for v in program.model.graph.initializers.values()}
    integers = {name: dtype for name, dtype in stored.items() if name.endswith("qdata")}
    expected = "linear.weight.qdata.qdata" if kind is OfWrapper else "linear.weight.qdata"
    assert integers == {expected: "UINT8" if kind is Nibbles else "INT8"}
    sizes = [v.const_value.nbytes for v in program.model.graph.initializers.values()]
    assert max(sizes) == (8192 if kind is Nibbles else 16384)  # no copy in real numbers

    assert model.linear.weight is weight
    assert all(getattr(weight, n) is t for n, t in zip(weight.names, inner, strict=True))
    assert torch.equal(weight.dequantized(), weight_of(kind).dequantized())


def test_a_wrapper_that_is_made_of_an_input() -> None:
    """As the activations of a layer that quantizes them are."""

    def model(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(1, keepdim=True) / 127
        wrapped = Wrapper((x / scale).round().to(torch.int8), scale, x.shape)
        return wrapped @ torch.ones(8, 2)

    x = torch.randn(3, 8)
    program = sardonyx.export(model, (x,), dynamic_axes={"x": {0: "batch"}}, verify=True)
    torch.testing.assert_close(program(x[:2]), model(x[:2]))


def test_a_write_to_the_inside_is_undone() -> None:
    class Writes(Layer):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.linear.weight.scale.mul_(2)
            return self.linear(x)

    model = Writes(Wrapper).eval()
    scale = model.linear.weight.scale.clone()
    program = sardonyx.export(model, (torch.randn(3, 64),), verify=True)
    assert torch.equal(model.linear.weight.scale, scale)
    x = torch.randn(3, 64)
    torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_as_an_input_or_an_output_it_is_refused(capture: str) -> None:
    weight = weight_of(Wrapper)
    with pytest.raises(sardonyx.UnsupportedDtypeError, match="is a Wrapper"):
        sardonyx.export(lambda w: w + 1, (weight,), capture=capture)

    def returns(x: torch.Tensor) -> torch.Tensor:
        return Wrapper(x, x[:, :1], x.shape)

    with pytest.raises(sardonyx.CaptureError, match="returns a Wrapper"):
        sardonyx.export(returns, (torch.randn(2, 3),), capture=capture)
