"""custom-operators-zh.md: custom operators as users of torch 1.10 wrote them down, in Chinese."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from sardonyx import OperatorExportTypes
from sardonyx.symbolic_helper import _scalar, _unimplemented
from tests.compat import foo_operator
from tests.compat.test_autograd_functions import MyClip, MyPlainRelu

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])
assert foo_operator.LIBRARY is not None  # it defines torch.ops.custom_ops


def operators(program):
    return [node.op_type for node in program.model.graph]


class UsesFoo(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.custom_ops.foo(x, y)


# 1. 引入


def test_an_operator_that_is_not_supported():
    """'RuntimeError: ONNX export failed: Couldn't export operator {UNSUPPORT_OPS}'."""
    with pytest.raises(RuntimeError, match="custom_ops::foo"):
        sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)))


def test_custom_operators_need_no_change_of_the_source():
    """'需要修改pytorch源码' (PyTorch's source has to be changed): registering a function is enough,
    and taking it back leaves things as before."""
    args = (torch.randn(2), torch.randn(2))
    sardonyx.register_custom_op_symbolic("custom_ops::foo", lambda g, a, b: g.op("Sub", a, b), 9)
    sardonyx.export(UsesFoo(), args, verify=True)
    sardonyx.unregister_custom_op_symbolic("custom_ops::foo", 9)
    with pytest.raises(
        sardonyx.UnsupportedOperatorError,
        match=r'register_custom_op_symbolic\("custom_ops::foo", function, 9\)',
    ):
        sardonyx.export(UsesFoo(), args)


def test_none_where_it_cannot_be_converted():
    """'Returns None if it cannot be converted to ONNX': the document's function, without a body."""

    def foo(
      g: torch._C.Graph,
      input_0: torch._C.Value,
      input_1: torch._C.Value) -> Union[None, torch._C.Value, List[torch._C.Value]]:  # noqa: F821  # fmt: skip
        """
        Modifies g (e.g., using "g.op()"), adding the ONNX operations representing
        this PyTorch function.
        """

    sardonyx.register_custom_op_symbolic("custom_ops::foo", foo, 9)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="custom_ops::foo"):
        sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)))


# 2. 修改torch源码


def test_elu_without_its_symbolic_function():
    """'会导出onnx模型报错' (without the function of elu the export fails)."""
    print(
        torch.jit.trace(
            torch.nn.ELU(),  # module
            torch.ones(1),  # example input
        ).graph
    )
    sardonyx.register_custom_op_symbolic("aten::elu", lambda g, *args: None, 9)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="aten::elu"):
        sardonyx.export(torch.nn.ELU(), torch.ones(1))


def test_several_standard_operators_in_place_of_one():
    """'需要创造有数个标准算子的计算图' (else a graph of several standard operators)."""

    def foo(g, input_0, input_1):
        return g.op("Add", input_0, g.op("Neg", input_1))

    sardonyx.register_custom_op_symbolic("custom_ops::foo", foo, 9)
    program = sardonyx.export(UsesFoo(), (torch.randn(2), torch.randn(2)), verify=True)
    assert operators(program) == ["Neg", "Add"]


@CAPTURES
def test_parameters_have_the_names_of_the_stub_files(capture):
    """'第一个参数通常都是需要被导出的onnx计算图' (the graph comes first); the other names are
    those of the .pyi files, as `input` for the schema's `self`; _scalar() gives a number."""

    def elu(g, alpha, input, inplace=False):
        return g.op("Elu", input, alpha_f=_scalar(alpha))

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), capture=capture, verify=True)


# 3.1 Static Symbolic Method


class MyReluWithSymbolic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def symbolic(g: torch._C.graph, input: torch._C.Value) -> torch._C.Value:
        return g.op("Clip", input, g.op("Constant", value_t=torch.tensor(0, dtype=torch.float)))


@CAPTURES
def test_static_symbolic_method(capture):
    """'给对应的类增加symbolic静态方法' (a static method symbolic of the class)."""
    program = sardonyx.export(
        lambda x: MyReluWithSymbolic.apply(x), torch.randn(3), capture=capture, verify=True
    )
    assert "Clip" in operators(program)


# 3.2 PythonOp Symbolic


def symbolic_pythonop(g: torch._C.Graph, n: torch._C.Node, *args, **kwargs):
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
        ret = g.op("Clip", args[0], min_f=args[1])
    elif name == "MyRelu":
        ret = g.op("Relu", args[0])
    else:
        # Logs a warning and returns None
        return _unimplemented("prim::PythonOp", "unknown node kind: " + name)
    # Copy type and shape from original node.
    ret.setType(n.type())
    return ret


class TwoFunctions(torch.nn.Module):
    def forward(self, x):
        return MyPlainRelu.apply(MyClip.apply(x, -0.5))


@CAPTURES
@pytest.mark.parametrize(
    "opset_version",
    [
        9,  # what torch 1.10 wrote, and where Clip has `min` as an attribute
        17,
        20,
    ],
)
def test_python_op_symbolic(capture, opset_version, capsys):
    """'应该使用 name 参数' (the name tells the classes apart), and how to ask a node whether its
    results require gradients."""
    from sardonyx import register_custom_op_symbolic

    register_custom_op_symbolic("::prim_PythonOp", symbolic_pythonop, 1)
    program = sardonyx.export(
        TwoFunctions(),
        torch.randn(3),
        opset_version=opset_version,
        capture=capture,
        verify=True,
    )
    assert operators(program)[-2:] == ["Clip", "Relu"]
    printed = capsys.readouterr().out
    assert "original node:  " in printed and "name=MyClip" in printed
    assert "arg 1: -0.5, requires grad: False" in printed


def test_the_namespace_prim_is_not_open():
    """'不允许在prim命名空间中注册算子' (no operators in the namespace prim); PythonOp itself may be
    registered under either name."""
    with pytest.raises(sardonyx.InvalidOptionError, match="prim"):
        sardonyx.register_custom_op_symbolic("prim::ListConstruct", lambda g, *args: None, 1)
    for name in ("::prim_PythonOp", "prim::PythonOp"):
        sardonyx.register_custom_op_symbolic(name, symbolic_pythonop, 1)
        sardonyx.unregister_custom_op_symbolic(name, 1)


# 3.3 operator_export_type


def upper_triangle(x):
    return torch.triu(x, 0) * x


def is_missing(g, *args):
    return None


@CAPTURES
def test_onnx(capture):
    """'ONNX: All ops are exported as regular ONNX ops'."""
    program = sardonyx.export(
        upper_triangle,
        torch.randn(3, 3),
        operator_export_type=OperatorExportTypes.ONNX,
        capture=capture,
        verify=True,
    )
    assert {node.domain for node in program.model.graph} == {""}


@CAPTURES
def test_onnx_aten(capture):
    """'ONNX_ATEN: All ops are exported as ATen ops'."""
    program = sardonyx.export(
        upper_triangle,
        torch.randn(3, 3),
        operator_export_type=OperatorExportTypes.ONNX_ATEN,
        capture=capture,
    )
    nodes = [n for n in program.model_proto.graph.node if n.op_type != "Constant"]
    assert [(n.domain, n.op_type) for n in nodes] == [("org.pytorch.aten", "ATen")] * 2
    named = [{a.name: a.s.decode() for a in n.attribute if a.s}["operator"] for n in nodes]
    assert named == ["triu", "mul"]


@CAPTURES
def test_onnx_aten_fallback(capture):
    """'If an ATen op is not supported in ONNX or its symbolic is missing, fall back on ATen op.
    Registered ops are exported to ONNX regularly': the document's graph and its result. triu has a
    form here, which is taken away for the example."""
    sardonyx.register_custom_op_symbolic("aten::triu", is_missing, 9)
    program = sardonyx.export(
        upper_triangle,
        torch.randn(3, 3),
        operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK,
        capture=capture,
    )
    nodes = [n for n in program.model_proto.graph.node if n.op_type != "Constant"]
    # The document has the domain as `aten`, files of its day had org.pytorch.aten.
    assert [(n.domain, n.op_type) for n in nodes] == [("org.pytorch.aten", "ATen"), ("", "Mul")]
    assert {a.name: a.s.decode() for a in nodes[0].attribute}["operator"] == "triu"
    assert len(nodes[0].input) == 2, "the diagonal is a Constant, as in the document"


@CAPTURES
def test_onnx_fallthrough(capture):
    """'If an op is not supported in ONNX, fall through and export the operator as is, as a custom
    ONNX op', for the user's runtime."""
    program = sardonyx.export(
        lambda x, y: torch.relu(torch.ops.custom_ops.foo(x, y)),
        (torch.randn(2), torch.randn(2)),
        operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
        capture=capture,
    )
    nodes = program.model_proto.graph.node
    assert [(n.domain, n.op_type) for n in nodes] == [("custom_ops", "foo"), ("", "Relu")]
    onnx.checker.check_model(program.model_proto)


@pytest.mark.parametrize("dtype", [torch.long, torch.float32])
def test_onnx_fallthrough_of_a_list(dtype):
    """The document's second graph: a list of a sum. It is a ReduceSum there; here integers are
    summed by what is exact in ONNX Runtime."""

    def model(x):
        y = [torch.sum(x)]
        return y

    program = sardonyx.export(
        torch.jit.script(model),
        torch.ones(1, dtype=dtype),
        operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
    )
    assert {node.domain for node in program.model.graph} == {""}
    assert ("ReduceSum" in operators(program)) == dtype.is_floating_point
    (found,) = program(torch.tensor([7], dtype=dtype))
    assert found.item() == 7 and found.dtype == dtype


@CAPTURES
def test_raw(capture):
    """'RAW: Export raw ir': the recorded operators under their own names."""
    program = sardonyx.export(
        upper_triangle,
        torch.randn(3, 3),
        operator_export_type=OperatorExportTypes.RAW,
        capture=capture,
    )
    nodes = [n for n in program.model_proto.graph.node if n.op_type != "Constant"]
    assert [f"{n.domain}::{n.op_type}" for n in nodes] == ["aten::triu", "aten::mul"]


# 4. 自定义算子


@CAPTURES
def test_custom_operators(tmp_path, monkeypatch, capture):
    """'模型使用了c++实现的算子' (models with operators in C++ are exported by this example)."""
    monkeypatch.chdir(tmp_path)
    attr1, attr2, example_input1 = 0.5, 3, torch.randn(2, 3)

    from sardonyx import register_custom_op_symbolic
    from sardonyx.symbolic_helper import parse_args

    # Define custom symbolic function
    @parse_args("v", "v", "f", "i")
    def symbolic_foo_forward(g, input1, input2, attr1, attr2):
        return g.op("custom_domain::Foo", input1, input2, attr1_f=attr1, attr2_i=attr2)

    # Register custom symbolic function
    register_custom_op_symbolic("custom_ops::foo_forward", symbolic_foo_forward, 9)

    class FooModel(torch.nn.Module):
        def __init__(self, attr1, attr2):
            super(FooModule, self).__init__()
            self.attr1 = attr1
            self.attr2 = attr2

        def forward(self, input1, input2):
            # Calling custom op
            return torch.ops.custom_ops.foo_forward(input1, input2, self.attr1, self.attr2)

    FooModule = FooModel  # a slip of the document

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
    assert {o.domain: o.version for o in written.opset_import}["custom_domain"] == 2
    (node,) = written.graph.node
    assert (node.domain, node.op_type) == ("custom_domain", "Foo")
