"""Helpers that published symbolic functions are made and chosen by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx import symbolic_helper as helper

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))


def served(model: Any, name: str, symbolic: Any, **options: Any) -> list[str]:
    sardonyx.register_custom_op_symbolic(name, symbolic, 9)
    program = sardonyx.export(model, options.pop("x", X), verify=True, **options)
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name: str, opset: int):
    write = getattr(helper, f"_{name}_helper")
    extreme = getattr(torch, name)
    title = name.capitalize()
    asked: list[tuple[Any, list[str]]] = [
        (extreme, [f"Reduce{title}"]),
        (lambda x: extreme(x, x.flip(0)), [title]),
        (lambda x: extreme(x, 1), [f"Arg{title}", f"Reduce{title}"]),
        (lambda x: extreme(x, -1, keepdim=True), [f"Arg{title}", f"Reduce{title}"]),
    ]
    for model, wanted in asked:
        found = served(
            model, f"aten::{name}", lambda g, *args: write(g, *args), opset_version=opset
        )
        assert set(wanted) <= set(found)


def test_overloads_by_the_number_of_arguments():
    @helper._overload_by_arg_count
    def add(g: Any, *args: Any) -> Any:
        @helper.parse_args("v", "v")
        def of_two(g: Any, self: Any, other: Any) -> Any:
            raise AssertionError

        @helper.parse_args("v", "v", "f")
        def of_three(g: Any, self: Any, other: Any, alpha: float) -> Any:
            assert alpha == 1.0
            return g.op("Sum", self, other)

        return [of_two, of_three]

    assert served(lambda x: x + x, "aten::add", add) == ["Sum"]

    @helper._overload_by_arg_count
    def relu(g: Any, *args: Any) -> Any:
        return []

    with pytest.raises(sardonyx.UnsupportedOperatorError, match="with 1 arguments"):
        served(nn.ReLU(), "aten::relu", relu)


def test_functions_of_parameters():
    @helper._apply_params("Relu")
    def relu(name: str) -> Any:
        return lambda g, self: g.op(name, self)

    assert served(nn.ReLU(), "aten::relu", relu) == ["Relu"]
    with pytest.raises(sardonyx.SymbolicFunctionError, match="relu is not supported"):
        served(nn.ReLU(), "aten::relu", helper._block_list_in_opset("relu"))


def test_constants_and_attributes():
    def relu(g: Any, self: Any) -> Any:
        half = helper._generate_wrapped_number(g, 0.5)
        assert helper._is_onnx_constant(half) and not helper._is_onnx_constant(self)
        assert helper._generate_wrapped_number(g, self) is self
        slope = g.op("LeakyRelu", self, alpha_f=0.0)
        assert helper._node_get(slope.node(), "alpha") == 0.0
        return g.op("Div", g.op("Mul", slope, half), half)

    assert served(nn.ReLU(), "aten::relu", relu) == ["LeakyRelu", "Mul", "Div"]
    ints = torch.tensor([[3, -2], [0, 7]], dtype=torch.int32)
    assert served(nn.ReLU(), "aten::relu", relu_of_integers, x=ints, opset_version=13) == [
        *("Cast", "Relu", "Cast")
    ]
    assert served(nn.ReLU(), "aten::relu", relu_of_integers, x=ints, opset_version=14) == ["Relu"]


def relu_of_integers(g: Any, self: Any) -> Any:
    return helper._op_with_optional_float_cast(g, "Relu", self, opset_before=14)


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "n"}}])
def test_splits(dynamic: Any):
    seen: list[bool] = []

    def split(g: Any, self: Any, sizes: Any, dim: Any, _outputs: int | None = None) -> Any:
        seen.append(helper._is_split_static(sizes, 2))
        assert not helper._is_split_static(sizes, None)
        return sardonyx.symbolic_opset9.split_with_sizes(g, self, sizes, dim)

    def model(x: torch.Tensor) -> Any:
        return x.split([1, x.shape[0] - 1], 0)

    served(model, "aten::split_with_sizes", split, input_names=["x"], dynamic_axes=dynamic)
    assert seen == [dynamic is None]


def test_integers_are_held_by_the_floats_between():
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    x = torch.tensor([2**40 + 1, -5])
    sardonyx.register_custom_op_symbolic("aten::relu", relu_of_integers, 9)
    program = sardonyx.export(Model(), x, opset_version=13)
    assert torch.equal(program(x), torch.relu(x))
