"""`sardonyx.symbolic_helper`, as published symbolic functions use it."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx import symbolic_helper as helper
from sardonyx.errors import SymbolicFunctionError


def served(model, name, symbolic, *inputs, **options):
    sardonyx.register_custom_op_symbolic(name, symbolic, 9)
    options.setdefault("verify", True)
    return sardonyx.export(model, inputs, **options)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_parse_args(capture):
    @helper.parse_args("v", "is", "b", "none")
    def mean(g, self, dim, keepdim, dtype):
        assert (dim, keepdim, dtype) == ([1, 2], True, None)
        return g.op("ReduceMean", self, torch.tensor(dim), keepdims_i=keepdim)

    x = torch.randn(2, 3, 4)
    served(lambda x: x.mean((1, 2), keepdim=True), "aten::mean", mean, x, capture=capture)


def test_parse_args_refuses_what_is_computed():
    @helper.parse_args("v", "is")
    def view(g, self, size):
        return g.op("Reshape", self, size)

    with pytest.raises(SymbolicFunctionError, match="'size' must be a list of integers that is"):
        served(
            lambda x: x.view(x.shape[0] * 3),
            "aten::view",
            view,
            torch.randn(2, 3),
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
        )


def test_parse_args_checks_its_letters():
    with pytest.raises(SymbolicFunctionError, match="'q' is none of"):
        helper.parse_args("q")

    @helper.parse_args("v")
    def relu(g, self, other):
        return self

    with pytest.raises(SymbolicFunctionError, match="1 letters for 2 arguments"):
        relu(None, 1, 2)


def test_a_value_of_the_wrong_kind():
    @helper.parse_args("v", "is")
    def softmax(g, self, dim):
        return self

    with pytest.raises(SymbolicFunctionError, match="'dim' is not a list of integers"):
        served(torch.nn.Softmax(1), "aten::softmax", softmax, torch.randn(2, 3))


def test_constants():
    def softplus(g, x, beta, threshold):
        assert helper._scalar(beta) == 2.0
        assert helper._get_const(beta, "f") == helper._maybe_get_const(beta, "f") == 2.0
        assert helper._maybe_get_const(x, "f") is x
        assert helper._maybe_get_scalar(beta) == torch.tensor(2.0)
        assert helper._is_value(beta) and not helper._is_value(2.0)
        assert helper._scalar(torch.tensor(3)) == 3
        assert helper._scalar(x) is None
        made = helper._if_scalar_type_as(2.0, x)
        assert made.dtype == torch.float32
        assert helper._if_scalar_type_as(x, x) is x
        assert helper._try_get_scalar_type(x) == "Float"
        assert helper._is_fp(x) and not helper._is_bool(x)
        return g.op("Div", g.op("Softplus", g.op("Mul", x, made)), made)

    served(
        lambda x: torch.nn.functional.softplus(x, beta=2.0), "aten::softplus", softplus,
        torch.randn(2, 3),
    )  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "n"}}])
def test_lists_of_sizes(dynamic):
    def view(g, self, size):
        assert helper._is_packed_list(size) and helper._is_list(size)
        assert helper._is_scalar_list(size)
        _, second = helper._unpack_list(size)
        assert helper._get_const(second, "i") == 3
        assert helper._is_constant(second)
        return helper._reshape_helper(g, self, size)

    served(
        lambda x: x.view(x.shape[0], 3), "aten::view", view, torch.randn(4, 3, 1),
        input_names=["x"], dynamic_axes=dynamic,
    )  # fmt: skip


def test_lists_of_tensors():
    def cat(g, tensors, dim):
        assert helper._is_tensor_list(tensors)
        return g.op("Concat", *helper._unpack_list(tensors), axis_i=dim)

    served(lambda x: torch.cat([x, x + 1], 1), "aten::cat", cat, torch.randn(2, 3))


def test_a_dtype_is_its_number():
    @helper.parse_args("v", "i", "none")
    def softmax(g, self, dim, dtype):
        return g.op("Softmax", self, axis_i=dim)

    def to_dtype(g, self, dim, dtype):
        assert helper._get_const(dtype, "i") == 7
        return g.op("Softmax", helper._cast_helper(g, self, dtype), axis_i=dim)

    x = torch.randn(2, 3)
    served(torch.nn.Softmax(1), "aten::softmax", softmax, x)
    model = lambda x: torch.softmax(x, 1, dtype=torch.float64)  # noqa: E731
    served(model, "aten::softmax", to_dtype, x)
    assert helper.cast_pytorch_to_onnx["Double"] == 11
    assert helper.scalar_type_to_onnx[7] == 11
    assert helper.scalar_type_to_pytorch_type[7] == torch.float64


FORMS = {
    "reshape": (lambda g, x: helper._reshape_helper(g, x, [3, 2, 2]), lambda x: x.reshape(3, 2, 2)),
    "squeeze": (lambda g, x: helper._squeeze_helper(g, x, [1]), lambda x: x.squeeze(1)),
    "unsqueeze": (lambda g, x: helper._unsqueeze_helper(g, x, [0]), lambda x: x.unsqueeze(0)),
    "reduce sum": (
        lambda g, x: helper._reducesum_helper(g, x, [0], keepdims_i=0),
        lambda x: x.sum(0),
    ),
    "reduce all": (lambda g, x: helper._reducesum_helper(g, x, keepdims_i=0), lambda x: x.sum()),
    "slice": (
        lambda g, x: helper._slice_helper(g, x, [0], [1], [3]),
        lambda x: x[1:3],
    ),
    "select": (lambda g, x: helper._select_helper(g, x, 0, 1), lambda x: x[1:2]),
    "select several": (
        lambda g, x: helper._select_helper(g, x, 0, torch.tensor([1, 0])),
        lambda x: x[torch.tensor([1, 0])],
    ),
    "cast": (lambda g, x: helper._cast_helper(g, x, "Double"), lambda x: x.double()),
    "size": (
        lambda g, x: helper._cast_helper(g, helper._size_helper(g, x, 2), torch.float32),
        lambda x: torch.tensor(3.0),
    ),
    "topk": (
        lambda g, x: helper._topk_helper(g, x, 2, 0, sorted=True)[0],
        lambda x: x.topk(2, 0)[0],
    ),
    "flatten": (lambda g, x: helper._flatten_helper(g, x, 1, -1, 3), lambda x: x.flatten(1)),
    "flatten first": (
        lambda g, x: helper._flatten_helper(g, x, 0, 1, 3),
        lambda x: x.flatten(0, 1),
    ),
}


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name, opset):
    form, expected = FORMS[name]

    @torch.library.custom_op(f"helper_tests::{name.replace(' ', '_')}_{opset}", mutates_args=())
    def operator(x: torch.Tensor) -> torch.Tensor:
        return expected(x).clone()

    operator.register_fake(lambda x: torch.empty_like(expected(x)))
    served(
        lambda x: operator(x),
        f"helper_tests::{name.replace(' ', '_')}_{opset}",
        form,
        torch.randn(4, 1, 3),
        opset_version=opset,
    )


def test_sizes_of_tensors():
    def relu(g, x):
        assert helper._get_tensor_rank(x) == 2
        assert helper._get_tensor_sizes(x) == [None, 3]
        assert helper._get_tensor_dim_size(x, 1) == 3
        return g.op("Relu", x)

    served(
        torch.nn.ReLU(), "aten::relu", relu, torch.randn(2, 3),
        input_names=["x"], dynamic_axes={"x": [0]},
    )  # fmt: skip


def test_opsets_that_lack_something():
    def relu(g, x):
        helper._onnx_opset_unsupported_detailed("relu", g.opset, 25, "it is too old")

    with pytest.raises(SymbolicFunctionError, match="opset 20: it is too old; opset 25 has it"):
        served(torch.nn.ReLU(), "aten::relu", relu, torch.randn(2))


def test_quantized_arguments():
    @helper.quantized_args(True)
    def relu(g, x):
        assert x.type().scalarType() == "Float"
        return g.op("Relu", x)

    def quantized_relu(g, x):
        scale = g.op("Constant", value_t=torch.tensor(0.1))
        zero_point = g.op("Constant", value_t=torch.tensor(128, dtype=torch.uint8))
        quantized = helper.quantize_helper(g, x, scale, zero_point)
        return helper.dequantize_helper(g, relu(g, quantized))[0]

    program = served(
        torch.nn.ReLU(), "aten::relu", quantized_relu, torch.tensor([-0.5, 0.5]), atol=0.06
    )
    ops = [node.op_type for node in program.model.graph if node.op_type != "Constant"]
    assert ops == [*["QuantizeLinear", "DequantizeLinear", "Relu"], *ops[:2]]
    served(torch.nn.ReLU(), "aten::relu", relu, torch.randn(2))
