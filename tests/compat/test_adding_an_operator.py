"""adding-an-operator.md, and the same section at the end of torch-onnx-1.x.rst: symbolic functions
of ATen operators and of `torch.autograd.Function`s, and the interface that they write with.

Where the documents say "add the following lines to symbolic_opset9.py", a function is registered
instead: no source of ours has to be changed.
"""

from __future__ import annotations

import importlib
import re

import onnx
import pytest
import torch

import sardonyx
from sardonyx.symbolic_helper import _if_scalar_type_as, _scalar

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])


def operators(program):
    return [node.op_type for node in program.model.graph]


def elu(g, input, alpha, inplace=False):
    return g.op("Elu", input, alpha_f=_scalar(alpha))


# Condition 1: ATen operators


def test_the_failure_names_the_operator():
    """'RuntimeError: ONNX export failed: Couldn't export operator elu': ours is one, and says the
    operator, the line and the reason."""
    sardonyx.register_custom_op_symbolic("aten::elu", lambda g, *args: None, 9)
    with pytest.raises(RuntimeError) as caught:
        sardonyx.export(torch.nn.ELU(), torch.randn(3))
    assert isinstance(caught.value, sardonyx.UnsupportedOperatorError)
    (problem,) = caught.value.problems
    assert problem.operator.partition(".")[0] == "aten::elu"
    assert re.search(r"first .*\.py:\d+   .*elu\(input, ", str(caught.value))
    assert "its symbolic function returned None" in str(caught.value)


@CAPTURES
def test_elu(capture):
    """'Now PyTorch is able to export elu operator'."""
    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), capture=capture, verify=True)
    (node,) = program.model.graph
    assert node.op_type == "Elu" and node.attributes["alpha"].as_float() == 0.5


def test_elu_in_place():
    """`inplace` of the documented signature: PyTorch's schema has none, and a write is pure by the
    time the function is called."""
    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(
        lambda x: torch.nn.functional.elu(x + 1, 0.5, inplace=True), torch.randn(3), verify=True
    )
    assert operators(program).count("Elu") == 1


def test_elu_is_standardized_in_onnx():
    """'We check the ONNX operator list, and confirm that Elu is standardized in ONNX'."""
    assert onnx.defs.has("Elu")
    program = sardonyx.export(torch.nn.ELU(), torch.randn(3), verify=True)
    assert operators(program) == ["Elu"], "supported without any function of the user's"


@pytest.mark.parametrize("package", ["sardonyx", "torch.onnx"])
def test_a_function_put_where_the_documents_have_it(package):
    """'We add the following lines to symbolic_opset9.py'; 'Make sure the function has the same name
    as the ATen function': it is put into the module, and serves that opset and later ones."""
    with sardonyx.installed():
        opset13 = importlib.import_module(f"{package}.symbolic_opset13")
        opset13.elu = lambda g, input, alpha, inplace=False: g.op("my::Elu", input)
        for opset, name in ((11, "Elu"), (13, "my::Elu"), (17, "my::Elu")):
            program = sardonyx.export(torch.nn.ELU(), torch.randn(3), opset_version=opset)
            (node,) = program.model.graph
            assert node.op_identifier()[:2] == (name.rpartition("::")[0], "Elu")
        del opset13.elu
        assert operators(sardonyx.export(torch.nn.ELU(), torch.randn(3), verify=True)) == ["Elu"]


def test_a_function_in_the_place_of_ours_for_a_while(monkeypatch):
    import sardonyx.symbolic_opset9 as opset9

    ours = opset9.relu
    with monkeypatch.context() as patched:
        patched.setattr(opset9, "relu", lambda g, self: g.op("Neg", ours(g, self)))
        program = sardonyx.export(torch.nn.ReLU(), torch.randn(3))
        assert operators(program) == ["Relu", "Neg"]
    assert operators(sardonyx.export(torch.nn.ReLU(), torch.randn(3))) == ["Relu"]
    assert "relu" not in vars(opset9)


@CAPTURES
def test_the_first_parameter_is_the_graph(capture):
    """'The first parameter is always the exported ONNX graph.'"""
    seen = []

    def relu(whatever_it_is_called, self):
        seen.append(whatever_it_is_called)
        return whatever_it_is_called.op("Relu", self)

    sardonyx.register_custom_op_symbolic("aten::relu", relu, 9)
    sardonyx.export(torch.nn.ReLU(), torch.randn(3), capture=capture, verify=True)
    assert seen and all(isinstance(g, sardonyx.GraphContext) for g in seen)


def test_dispatch_is_done_with_keyword_arguments():
    """'Parameter names must EXACTLY match'; 'Parameter ordering does NOT necessarily match'."""

    def elu(g, alpha, self):
        return g.op("Elu", self, alpha_f=alpha)

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), verify=True)


def test_names_that_do_not_match_are_taken_in_order():
    """Beyond 'must EXACTLY match': names of one's own serve in the schema's order."""

    def elu(g, tensor, slope, *rest):
        return g.op("Elu", tensor, alpha_f=slope)

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), verify=True)


def test_tensors_come_first():
    """'tensors (inputs) are always first, then non-tensor arguments'."""
    seen = []

    def addmm(g, *args):
        seen.append([arg.type().kind() for arg in args])
        return g.op("Gemm", args[1], args[2], args[0])

    sardonyx.register_custom_op_symbolic("aten::addmm", addmm, 9)
    sardonyx.export(
        torch.addmm, (torch.randn(2, 2), torch.randn(2, 3), torch.randn(3, 2)), verify=True
    )
    assert seen[0][:3] == ["TensorType"] * 3
    assert "TensorType" not in seen[0][3:]


def test_one_node_where_onnx_has_the_operator():
    """'we only need to create a node to represent the ONNX operator in the graph'."""
    sardonyx.register_custom_op_symbolic("aten::sign", lambda g, self: g.op("Sign", self), 9)
    assert operators(sardonyx.export(torch.sign, torch.randn(3), verify=True)) == ["Sign"]


def test_scalar_makes_a_python_number_of_a_tensor():
    """'_scalar can convert a scalar tensor into a python scalar'."""

    def add(g, self, other, alpha):
        number = _scalar(g.op("Constant", value_t=torch.tensor(2.5)))
        assert type(number) is float and number == 2.5
        assert _scalar(torch.tensor(3)) == 3
        return g.op("Add", self, other)

    sardonyx.register_custom_op_symbolic("aten::add", add, 9)
    sardonyx.export(torch.add, (torch.randn(2), torch.randn(2)), verify=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_if_scalar_type_as_makes_a_tensor_of_a_number(dtype):
    """'_if_scalar_type_as can turn a Python scalar into a PyTorch tensor': of the other's type."""

    def add(g, self, other, alpha):
        scaled = _if_scalar_type_as(_scalar(alpha), self)
        assert isinstance(scaled, torch.Tensor) and scaled.dtype == dtype
        assert _if_scalar_type_as(self, other) is self, "a value stays one"
        assert torch.equal(_if_scalar_type_as(g, _scalar(alpha), self), scaled), "as of torch 1.10"
        return g.op("Add", self, g.op("Mul", other, scaled))

    sardonyx.register_custom_op_symbolic("aten::add", add, 9)
    sardonyx.export(
        lambda x, y: torch.add(x, y, alpha=3),
        (torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)),
        verify=True,
    )


# Condition 2: operators that are not ATen's


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, scale, inplace=False):
        return input * scale, input.argmax()

    @staticmethod
    def symbolic(g, input, scale, inplace=False):
        factor = g.op("Constant", value_t=torch.tensor(scale))
        flat = g.op("Reshape", input, g.op("Constant", value_t=torch.tensor([-1])))
        return g.op("Mul", input, factor), g.op("ArgMax", flat, axis_i=0, keepdims_i=0)


@CAPTURES
def test_a_function_named_symbolic_in_the_function_class(capture):
    """'Create a symbolic function named symbolic in the corresponding Function class'; 'The output
    tuple size must match the outputs of forward'."""
    program = sardonyx.export(
        lambda x: Scaled.apply(x, 2.5), torch.randn(2, 3), capture=capture, verify=True
    )
    assert {"Mul", "ArgMax"} <= set(operators(program))


@CAPTURES
def test_names_other_than_those_of_forward(capture):
    """Beyond 'Parameter names except the first must EXACTLY match the names in forward'."""

    class Renamed(Scaled):
        @staticmethod
        def symbolic(graph, tensor, factor):
            return Scaled.symbolic(graph, tensor, factor)

    sardonyx.export(lambda x: Renamed.apply(x, 2.5), torch.randn(3), capture=capture, verify=True)


@CAPTURES
def test_another_number_of_outputs_is_refused(capture):
    """'The output tuple size must match the outputs of forward': or the export says so."""

    class TooMany(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            return input.clamp(min=0)

        @staticmethod
        def symbolic(g, input):
            return g.op("Relu", input), g.op("Neg", input)

    with pytest.raises(
        sardonyx.SymbolicFunctionError, match="2 in number, and those of the operator 1"
    ):
        sardonyx.export(lambda x: TooMany.apply(x), torch.randn(3), capture=capture)


@CAPTURES
def test_dropout_as_a_function_class(capture):
    """'you need to create a symbolic function for operator Dropout': the documents' own case."""

    class Dropout(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, p=0.5, train=False, inplace=False):
            return torch.nn.functional.dropout(input, p, train)

        @staticmethod
        def symbolic(g, input, p=0.5, train=False, inplace=False):
            ratio = g.op("Constant", value_t=torch.tensor(p))
            result, _ = g.op("Dropout", input, ratio, outputs=2)
            return result

    program = sardonyx.export(
        lambda x: Dropout.apply(x, 0.25, False), torch.randn(3), capture=capture, optimize=False
    )
    program.verify()
    assert "Dropout" in operators(program)


# The interface


def test_value_type_sizes():
    """`Value.type()`; `Type.sizes()` 'Returns a tuple of ints representing the shape'."""
    seen = []

    def relu(g, self):
        seen.append(tuple(self.type().sizes()))
        return g.op("Relu", self)

    sardonyx.register_custom_op_symbolic("aten::relu", relu, 9)
    sardonyx.export(torch.nn.ReLU(), torch.randn(2, 3))
    assert seen[0] == (2, 3) and all(type(size) is int for size in seen[0])


def test_attributes_by_their_letter():
    """'alpha_f indicates the alpha attribute with type f. The valid type specifiers are f (float),
    i (int), s (string) or t (Tensor)'; 'accepts either a single float, or a list of floats'."""

    def relu(g, self):
        return g.op(
            "my_domain::Everything",
            self,
            alpha_f=0.5,
            alphas_f=[0.5, 1.5],
            axis_i=1,
            dims_i=[1, 2],
            mode_s="fast",
            modes_s=["fast", "slow"],
            value_t=torch.tensor([1, 2]),
        )

    sardonyx.register_custom_op_symbolic("aten::relu", relu, 9)
    program = sardonyx.export(torch.nn.ReLU(), torch.randn(3))
    (node,) = program.model_proto.graph.node
    kinds = {a.name: onnx.AttributeProto.AttributeType.Name(a.type) for a in node.attribute}
    assert kinds == {
        "alpha": "FLOAT",
        "alphas": "FLOATS",
        "axis": "INT",
        "dims": "INTS",
        "mode": "STRING",
        "modes": "STRINGS",
        "value": "TENSOR",
    }


def test_outputs():
    """'by default an operator is assumed to return a single output. If outputs is greater than one,
    this functions returns a tuple of output Value'."""

    def max_dim(g, self, dim, keepdim):
        single = g.op("Identity", self)
        assert not isinstance(single, (tuple, list))
        several = g.op("TopK", single, [1], axis_i=dim, outputs=2)
        assert type(several) is tuple and len(several) == 2
        return several

    sardonyx.register_custom_op_symbolic("aten::max.dim", max_dim, 9)
    sardonyx.export(lambda x: x.max(1, keepdim=True), torch.randn(2, 3), verify=True)


def test_none_for_an_output_that_onnx_does_not_support():
    """'(or None if an output is not supported by ONNX)': fine while nothing reads it."""

    def max_dim(g, self, dim, keepdim):
        return g.op("ReduceMax", self, [1], keepdims_i=0), None

    sardonyx.register_custom_op_symbolic("aten::max.dim", max_dim, 9)
    program = sardonyx.export(lambda x: x.max(1)[0], torch.randn(2, 3), verify=True)
    assert "ReduceMax" in operators(program)
    with pytest.raises(sardonyx.SardonyxError, match=r"aten::max\.dim"):
        sardonyx.export(lambda x: x.max(1)[1], torch.randn(2, 3))


# Standardize the operator in ONNX


def test_onnx_rejects_operators_that_it_does_not_understand():
    """'ONNX will reject any operators that it does not understand'."""
    sardonyx.register_custom_op_symbolic("aten::relu", lambda g, x: g.op("MyRelu", x), 9)
    with pytest.raises(sardonyx.SymbolicFunctionError, match="MyRelu"):
        sardonyx.export(torch.nn.ReLU(), torch.randn(3))


def test_experimental_operators_have_a_domain_of_their_own():
    """'you can add your operator as an experimental operator'."""
    sardonyx.register_custom_op_symbolic(
        "aten::relu", lambda g, x: g.op("experimental::MyRelu", x), 9
    )
    program = sardonyx.export(torch.nn.ReLU(), torch.randn(3))
    (node,) = program.model_proto.graph.node
    assert (node.domain, node.op_type) == ("experimental", "MyRelu")
    onnx.checker.check_model(program.model_proto)


def test_a_model_that_no_runtime_can_run():
    """'you can only export model': calling or verifying it says that the runtime lacks it."""
    sardonyx.register_custom_op_symbolic(
        "aten::relu", lambda g, x: g.op("experimental::MyRelu", x), 9
    )
    program = sardonyx.export(torch.nn.ReLU(), torch.randn(3))
    with pytest.raises(sardonyx.NotRunnableError, match="MyRelu"):
        program.verify()
