"""torch-onnx-2.1.rst, "torch.autograd.Functions": the three ways to export one, with the PythonOp
example that the document keeps in its comments."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx import OperatorExportTypes
from sardonyx.symbolic_helper import _unimplemented

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])


def operators(program):
    return [node.op_type for node in program.model.graph]


# Static Symbolic Method


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def symbolic(g: torch.Graph, input: torch.Value) -> torch.Value:
        return g.op("Clip", input, g.op("Constant", value_t=torch.tensor(0, dtype=torch.float)))


@CAPTURES
def test_static_symbolic_method(capture):
    """'a static method named symbolic ... should return ONNX operators that represent the
    function's behavior'."""
    program = sardonyx.export(
        lambda x: MyRelu.apply(x), torch.randn(2, 3), capture=capture, verify=True
    )
    assert operators(program) == ["Constant", "Clip"]


# PythonOp Symbolic


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, min):
        ctx.save_for_backward(input)
        return input.clamp(min=min)


class MyPlainRelu(torch.autograd.Function):
    """`MyRelu` of the example, which stands beside the one above with a symbolic method."""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)


MyPlainRelu.__name__ = "MyRelu"


def symbolic_python_op(ctx: sardonyx.SymbolicContext, g: sardonyx.GraphContext, *args, **kwargs):
    # The document lost the first parameter, which its text and first line speak of.
    n = ctx.cur_node
    print("original node: ", n)
    for i, out in enumerate(n.outputs()):
        print("original output {}: {}, requires grad: {}".format(i, out, out.requiresGrad()))  # noqa: UP032
    import sardonyx.symbolic_helper as sym_helper

    for i, arg in enumerate(args):
        requires_grad = arg.requiresGrad() if sym_helper._is_value(arg) else False
        print("arg {}: {}, requires grad: {}".format(i, arg, requires_grad))  # noqa: UP032

    name = kwargs["name"]
    ret = None
    if name == "MyClip":
        ret = g.op("Clip", args[0], args[1])
    elif name == "MyRelu":
        ret = g.op("Relu", args[0])
    else:
        # Logs a warning and returns None
        return _unimplemented("prim::PythonOp", "unknown node kind: " + name)
    # Copy type and shape from original node.
    ret.setType(n.type())
    return ret


class TwoFunctions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return MyClip.apply(self.linear(x), 0.1), MyPlainRelu.apply(x)


@CAPTURES
def test_python_op_symbolic(capture, capsys):
    """'The symbolic function should use the name kwarg which gets set to the name of the class'; it
    'shows how you can access requires_grad via the Node object'."""
    from sardonyx import register_custom_op_symbolic

    register_custom_op_symbolic("prim::PythonOp", symbolic_python_op, 1)
    program = sardonyx.export(TwoFunctions(), torch.randn(2, 3), capture=capture, verify=True)
    assert {"Clip", "Relu"} <= set(operators(program))
    printed = capsys.readouterr().out
    assert "prim::PythonOp" in printed and "MyClip" in printed
    # The parameters of the linear layer require gradients, the model's input does not.
    assert printed.count("requires grad: True") == 2
    assert printed.count("requires grad: False") == 3


@CAPTURES
def test_a_python_op_that_is_unknown(capture):
    """'Logs a warning and returns None': the export fails with the words of it."""

    class MyOther(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            return input.abs()

    sardonyx.register_custom_op_symbolic("prim::PythonOp", symbolic_python_op, 1)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="unknown node kind: MyOther"):
        sardonyx.export(lambda x: MyOther.apply(x), torch.randn(3), capture=capture)


@CAPTURES
def test_the_other_signatures(capture):
    """The symbolic function of the document as it stands, `(g, *args, **kwargs)`: the node is the
    graph's original_node."""

    def symbolic_python_op(g: "GraphContext", *args, **kwargs):  # noqa: F821, UP037
        ret = g.op("Clip" if kwargs["name"] == "MyClip" else "Relu", *args)
        ret.setType(g.original_node.type())
        return ret

    sardonyx.register_custom_op_symbolic("prim::PythonOp", symbolic_python_op, 1)
    program = sardonyx.export(TwoFunctions(), torch.randn(2, 3), capture=capture, verify=True)
    assert {"Clip", "Relu"} <= set(operators(program))


def test_set_type_helps_the_nodes_behind():
    """'it can help the exporter's shape and type inference for down-stream nodes'."""

    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            return input[:, ::2] + 1

        @staticmethod
        def symbolic(g, input):
            kind = input.type()
            half = g.op("my_domain::Half", input)
            assert half.type().sizes() is None and half.type().scalarType() is None
            half.setType(kind.with_sizes([kind.sizes()[0], kind.sizes()[1] // 2]))
            behind = g.op("Add", half, g.op("Constant", value_t=torch.tensor(1.0)))
            assert tuple(behind.type().sizes()) == (2, 3)
            return behind

    program = sardonyx.export(lambda x: Halves.apply(x), torch.randn(2, 6))
    assert program.model.graph.outputs[0].shape == (2, 3)


def test_set_type_is_not_required():
    """'This is not required, but it can help the exporter's shape and type inference': the types
    are PyTorch's without it."""
    sardonyx.register_custom_op_symbolic(
        "prim::PythonOp", lambda g, *args, **kwargs: g.op("my_domain::Anything", args[0]), 1
    )
    program = sardonyx.export(lambda x: MyPlainRelu.apply(x).relu(), torch.randn(2, 3))
    (node, _) = program.model.graph
    assert node.outputs[0].shape == (2, 3) and node.outputs[0].dtype.name == "FLOAT"


# Inline Autograd Function


class MyLogExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        h = input.exp()
        return h.log().log()


class LogExpModel(torch.nn.Module):
    def forward(self, input):
        return MyLogExp.apply(input)


@CAPTURES
def test_inline_autograd_function(capture):
    """'There is no static symbolic method present for this model, yet it is exported as follows'"""
    program = sardonyx.export(LogExpModel(), torch.tensor([2.0]), capture=capture, verify=True)
    assert operators(program) == ["Exp", "Log", "Log"]
    assert "graph(%input : Float(1)" in program.to_text()


@CAPTURES
def test_inlining_fails_where_an_operator_inside_is_not_supported(capture):
    """'successful as long as these individual operators are supported'."""

    class Inside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            return input.to_sparse().to_dense()

    with pytest.raises(sardonyx.UnsupportedOperatorError, match="to_sparse") as raised:
        sardonyx.export(lambda x: Inside.apply(x), torch.randn(2, 2), capture=capture)
    assert "return input.to_sparse().to_dense()" in str(raised.value), "the line inside"


@CAPTURES
@pytest.mark.parametrize(
    "mode", [OperatorExportTypes.ONNX_FALLTHROUGH, OperatorExportTypes.ONNX_ATEN_FALLBACK]
)
def test_avoiding_inlining(capture, mode):
    """'If you need to avoid inlining ... operator_export_type set to ONNX_FALLTHROUGH or
    ONNX_ATEN_FALLBACK'."""
    program = sardonyx.export(
        LogExpModel(), torch.tensor([2.0]), capture=capture, operator_export_type=mode
    )
    (node,) = program.model_proto.graph.node
    assert (node.domain, node.op_type) == ("prim", "PythonOp")
    named = {a.name: a.s.decode() for a in node.attribute}
    assert named["name"] == "MyLogExp"


@CAPTURES
def test_avoiding_inlining_by_the_option(capture):
    """`autograd_inlining=False` asks for the same and nothing else."""
    program = sardonyx.export(
        LogExpModel(), torch.tensor([2.0]), capture=capture, autograd_inlining=False
    )
    assert operators(program) == ["PythonOp"]
