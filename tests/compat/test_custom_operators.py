"""torch-onnx-2.1.rst, from "Adding support for operators" to "Discovering all unconvertible ATen
ops at once"."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from tests.compat import foo_operator

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])
assert foo_operator.LIBRARY is not None  # it defines torch.ops.custom_ops


def operators(program):
    return [node.op_type for node in program.model.graph]


class UsesFoo(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.custom_ops.foo(torch.relu(x), y)


# Adding support for operators


@CAPTURES
def test_an_unsupported_operator(capture):
    """'RuntimeError: ONNX export failed: Couldn't export operator foo'."""
    with pytest.raises(RuntimeError, match="custom_ops::foo") as caught:
        sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)), capture=capture)
    assert "register_custom_op_symbolic" in str(caught.value), "the second thing you can do"


# ONNX exporter internals


@CAPTURES
def test_a_symbolic_function_decomposes_an_operator(capture):
    """'decomposes a PyTorch operator into a composition of a series of ONNX operators'; it returns
    'A Value or List of Values'."""

    def foo(g, input_0: torch._C.Value, input_1: torch._C.Value):
        return [g.op("Add", input_0, g.op("Neg", input_1))]

    sardonyx.register_custom_op_symbolic("custom_ops::foo", foo, 9)
    program = sardonyx.export(
        UsesFoo(), (torch.randn(2), torch.randn(2)), capture=capture, verify=True
    )
    assert operators(program) == ["Relu", "Neg", "Add"]


@CAPTURES
def test_none_if_it_cannot_be_converted(capture):
    """'None if it cannot be converted to ONNX': the document's function, which has no body."""

    def foo(
      g,
      input_0: torch._C.Value,
      input_1: torch._C.Value) -> Union[None, torch._C.Value, List[torch._C.Value]]:  # noqa: F821  # fmt: skip
        """
        Adds the ONNX operations representing this PyTorch function by updating the
        graph g with `g.op()` calls.
        """
        ...

    sardonyx.register_custom_op_symbolic("custom_ops::foo", foo, 9)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="custom_ops::foo"):
        sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)), capture=capture)


@CAPTURES
def test_nodes_are_visited_in_topological_order(capture):
    """'each node ... is visited by the exporter in topological order'."""
    visited = []

    def recording(name):
        def symbolic(g, self):
            visited.append(name)
            return g.op(name, self)

        return symbolic

    for operator in ("Sin", "Cos", "Exp"):
        sardonyx.register_custom_op_symbolic(f"aten::{operator.lower()}", recording(operator), 9)
    sardonyx.export(
        lambda x: torch.sin(torch.exp(torch.cos(x))), torch.randn(3), capture=capture, verify=True
    )
    assert visited == ["Cos", "Exp", "Sin"]


# ATen operators


def test_the_graph_of_elu():
    """'Since we see aten::elu in the graph, we know this is an ATen operator.'"""
    print(
        torch.jit.trace(
            torch.nn.ELU(),  # module
            torch.ones(1),  # example input
        ).graph
    )
    assert "aten::elu" in str(torch.jit.trace(torch.nn.ELU(), torch.ones(1)).graph)
    graph, _ = sardonyx.utils.unconvertible_ops(torch.nn.ELU(), torch.ones(1))
    assert "aten::elu" in str(graph)


@CAPTURES
def test_elu(capture):
    """'Now PyTorch is able to export models containing the aten::elu operator!' `alpha` is handed
    over as a value and accepted as an attribute."""

    def elu(g, input: torch.Value, alpha: torch.Value, inplace: bool = False):
        return g.op("Elu", input, alpha_f=alpha)

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), capture=capture, verify=True)
    (node,) = program.model.graph
    assert node.attributes["alpha"].as_float() == 0.5


@pytest.mark.filterwarnings("ignore:torch:DeprecationWarning", "ignore:.*quantize:UserWarning")
def test_quantized_operators():
    """'Adding support for an aten or quantized operator': these have a form without any function,
    and one that is registered comes before it; or one for what they are made of."""

    class Doubled(torch.nn.Module):
        def forward(self, x):
            x = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
            return torch.dequantize(torch.ops.quantized.add(x, x, 0.2, 10))

    def quantized_add(g, x, y, op_scale, op_zero_point):
        x, _, _, _ = sardonyx.symbolic_helper.dequantize_helper(g, x)
        y, _, _, _ = sardonyx.symbolic_helper.dequantize_helper(g, y)
        total = g.op("Mean", x, y)
        return sardonyx.symbolic_helper.quantize_helper(g, total, op_scale, op_zero_point)

    sardonyx.export(Doubled(), torch.randn(3), verify=True)
    sardonyx.register_custom_op_symbolic(
        "aten::add", lambda g, self, other, alpha: g.op("Sum", self, other), 9
    )
    program = sardonyx.export(Doubled(), torch.randn(3), verify=True)
    assert "Sum" in operators(program)
    sardonyx.register_custom_op_symbolic("quantized::add", quantized_add, 10)
    program = sardonyx.export(Doubled(), torch.ones(3))
    assert "Mean" in operators(program)
    torch.testing.assert_close(program(torch.ones(3)), torch.ones(3))


def test_a_list_of_supported_operators():
    """'Visit the auto generated list of supported ... operators': ours is a registry to ask."""
    registry = sardonyx.OnnxRegistry()
    assert registry.is_registered_op("aten", "elu")
    assert not registry.is_registered_op("custom_ops", "foo")


# ONNX-script functions

onnxscript = pytest.importorskip("onnxscript", reason="onnxscript functions need onnxscript")
# There are three opset version needed to be aligned
# This is (1) the opset version in ONNX function
from onnxscript.onnx_opset import opset15 as op  # noqa: E402

custom_opset = onnxscript.values.Opset(domain="onnx-script", version=1)


@onnxscript.script(custom_opset)
def Selu(X):
    alpha = 1.67326  # auto wrapped as Constants
    gamma = 1.0507
    alphaX = op.CastLike(alpha, X)
    gammaX = op.CastLike(gamma, X)
    neg = gammaX * (alphaX * op.Exp(X) - alphaX)
    pos = gammaX * X
    zero = op.CastLike(0, X)
    return op.Where(X <= zero, neg, pos)  # noqa: SIM300


# setType API provides shape/type to ONNX shape/type inference
def custom_selu(g: jit_utils.GraphContext, X):  # noqa: F821
    return g.onnxscript_op(Selu, X).setType(X.type())


@CAPTURES
@pytest.mark.parametrize(
    "opset_version",
    [
        15,
        17,  # beyond 'there are three opset version needed to be aligned': the function's is 15
        20,
    ],
)
def test_onnx_script_functions(tmp_path, monkeypatch, opset_version, capture):
    """'The example above exports it as a custom operator in the "onnx-script" opset.'"""
    monkeypatch.chdir(tmp_path)
    x = torch.randn(1, 2, 3, 4, requires_grad=True)
    model = torch.nn.SELU()

    # Register custom symbolic function
    # There are three opset version needed to be aligned
    # This is (2) the opset version in registry
    sardonyx.register_custom_op_symbolic(
        symbolic_name="aten::selu",
        symbolic_fn=custom_selu,
        opset_version=opset_version,
    )

    # There are three opset version needed to be aligned
    # This is (2) the opset version in exporter
    sardonyx.export(
        model,
        x,
        "model.onnx",
        opset_version=opset_version,
        # only needed if you want to specify an opset version > 1.
        custom_opsets={"onnx-script": 2},
        capture=capture,
    )
    written = onnx.load("model.onnx")
    onnx.checker.check_model(written)
    assert {o.domain: o.version for o in written.opset_import}["onnx-script"] == 2
    (node,) = written.graph.node
    assert (node.domain, node.op_type) == ("onnx-script", "Selu")
    assert [(f.domain, f.name) for f in written.functions] == [("onnx-script", "Selu")]


def test_the_custom_opset_version_of_a_function_defaults_to_1():
    """'If not specified, the custom opset version defaults to 1.'"""
    sardonyx.register_custom_op_symbolic("aten::selu", custom_selu, 15)
    program = sardonyx.export(torch.nn.SELU(), torch.randn(2, 3), verify=True, rtol=1e-4)
    assert program.model.opset_imports["onnx-script"] == 1


# C++ Operators


@CAPTURES
def test_cpp_operators(tmp_path, monkeypatch, capture):
    """'The example above exports it as a custom operator in the "custom_domain" opset.'"""
    monkeypatch.chdir(tmp_path)
    attr1, attr2, example_input1 = 0.5, 3, torch.randn(2, 3)

    from sardonyx import symbolic_helper

    # Define custom symbolic function
    @symbolic_helper.parse_args("v", "v", "f", "i")
    def symbolic_foo_forward(g, input1, input2, attr1, attr2):
        return g.op("custom_domain::Foo", input1, input2, attr1_f=attr1, attr2_i=attr2)

    # Register custom symbolic function
    sardonyx.register_custom_op_symbolic("custom_ops::foo_forward", symbolic_foo_forward, 9)

    class FooModel(torch.nn.Module):
        def __init__(self, attr1, attr2):
            super().__init__()
            self.attr1 = attr1
            self.attr2 = attr2

        def forward(self, input1, input2):
            # Calling custom op
            return torch.ops.custom_ops.foo_forward(input1, input2, self.attr1, self.attr2)

    model = FooModel(attr1, attr2)
    sardonyx.export(
        model,
        (example_input1, example_input1),
        "model.onnx",
        # only needed if you want to specify an opset version > 1.
        custom_opsets={"custom_domain": 2},
        capture=capture,
    )
    written = onnx.load("model.onnx")
    onnx.checker.check_model(written)
    assert {o.domain: o.version for o in written.opset_import} == {"": 20, "custom_domain": 2}
    (node,) = written.graph.node
    assert (node.domain, node.op_type, len(node.input)) == ("custom_domain", "Foo", 2)
    assert {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} == {
        "attr1": 0.5,
        "attr2": 3,
    }


def export_foo(f=None, **options):
    sardonyx.register_custom_op_symbolic(
        "custom_ops::foo", lambda g, a, b: g.op("custom_domain::Foo", a, b), 9
    )
    return sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)), f, **options)


def test_the_custom_domain_version_defaults_to_1():
    """'If not specified, the custom opset version defaults to 1.'"""
    assert export_foo().model.opset_imports["custom_domain"] == 1


def test_the_runtime_needs_to_support_the_custom_op(tmp_path):
    """'The runtime that consumes the model needs to support the custom op.' tests/extend has one
    that is given it."""
    with pytest.raises(sardonyx.NotRunnableError, match=r"Foo[\s\S]*custom_op_libraries"):
        export_foo(tmp_path / "model.onnx", verify=True)
    assert not (tmp_path / "model.onnx").exists()


# Discovering all unconvertible ATen ops at once


class SeveralUnconvertible(torch.nn.Module):
    def forward(self, x, y):
        first = torch.ops.custom_ops.foo(x, y)
        return torch.ops.custom_ops.foo_forward(torch.relu(first), y, 0.5, 2)


@CAPTURES
def test_unconvertible_ops(capture, capsys):
    """'To discover all of the unconvertible ops in one go you can'."""
    # prepare model, args, opset_version
    model, args, opset_version = SeveralUnconvertible(), (torch.randn(2), torch.randn(2)), 20

    torch_script_graph, unconvertible_ops = sardonyx.utils.unconvertible_ops(
        model, args, opset_version=opset_version, capture=capture
    )

    print(set(unconvertible_ops))
    assert set(unconvertible_ops) == {"custom_ops::foo", "custom_ops::foo_forward"}
    assert "aten::relu" in str(torch_script_graph)


def test_the_error_names_all_of_them():
    """'the error message only mentions the first': ours has them all."""
    with pytest.raises(sardonyx.UnsupportedOperatorError) as caught:
        sardonyx.export(SeveralUnconvertible(), (torch.randn(2), torch.randn(2)))
    assert "custom_ops::foo " in str(caught.value)
    assert "custom_ops::foo_forward" in str(caught.value)


def test_ops_with_partial_support_are_listed():
    """'Some other ops may have partial support that will fail conversion with particular inputs':
    they are in the list for those inputs, and not for others."""

    def bits(dtype):
        x = torch.arange(-2, 2, dtype=torch.int32)
        return sardonyx.utils.unconvertible_ops(lambda x: x.view(dtype), x)[1]

    assert bits(torch.uint32) == []
    assert bits(torch.int16) == ["aten::view"]


def test_ops_that_are_removed_are_not_listed():
    """'The set is approximated because some ops may be removed during the conversion': an unused
    result needs no form, and is not in the list."""

    class Unused(torch.nn.Module):
        def forward(self, x, y):
            torch.ops.custom_ops.foo(x, y)
            return x + y

    args = (torch.randn(2), torch.randn(2))
    assert sardonyx.utils.unconvertible_ops(Unused(), args)[1] == []
    sardonyx.export(Unused(), args, verify=True)
