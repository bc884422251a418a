"""torch.autograd.Function: its `symbolic` method, functions for prim::PythonOp, inlining."""

from __future__ import annotations

import gc
import threading

import numpy as np
import onnx
import pytest
import torch

import sardonyx
from sardonyx import symbolic_helper
from sardonyx.errors import CaptureError, SymbolicFunctionError, UnsupportedOperatorError

CAPTURES = ["export", "trace"]


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def symbolic(g: sardonyx.GraphContext, input):
        return g.op("Clip", input, g.op("Constant", value_t=torch.tensor(0, dtype=torch.float)))


class MyLogExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.exp().log().log()


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, min):
        ctx.save_for_backward(input)
        return input.clamp(min=min)


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return input.clamp(min=0)


relu_by_another_name = MyRelu.apply


def export(model, *inputs, capture="export", **options):
    return sardonyx.export(model, inputs, capture=capture, **options)


def op_types(program):
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


@pytest.mark.parametrize("capture", [*CAPTURES, "auto"])
def test_a_symbolic_method_is_honoured(capture):
    program = export(
        lambda x: MyRelu.apply(x) + 1,
        torch.randn(2, 3),
        capture=capture,
        input_names=["x"],
        dynamic_axes={"x": {0: "batch"}},
        verify=True,
    )
    assert op_types(program) == ["Clip", "Add"]
    (output,) = program.model.graph.outputs
    assert [str(d) for d in output.shape] == ["batch", "3"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_apply_bound_to_a_name_before(capture):
    program = export(lambda x: relu_by_another_name(x), torch.randn(3), capture=capture)
    assert op_types(program) == ["Clip"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_in_a_module_and_with_its_parameters(capture):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias, power):
            return x * weight**power if bias is None else x * weight**power + bias

        @staticmethod
        def symbolic(g, x, weight, bias, power):
            assert bias is None or bias.requiresGrad()
            assert weight.requiresGrad() and x.requiresGrad() == (bias is not None)
            y = g.op("Mul", x, g.op("Pow", weight, power))
            return y if bias is None else g.op("Add", y, bias)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(3) + 1)
            self.bias = torch.nn.Parameter(torch.randn(3))

        def forward(self, x):
            y = Scaled.apply(x, self.weight, None, 2.0)
            return Scaled.apply(y, self.weight, self.bias, 3.0)

    program = export(Model(), torch.randn(2, 3), capture=capture, verify=True)
    assert op_types(program) == ["Pow", "Mul", "Pow", "Mul", "Add"]
    assert set(program.model.graph.initializers) >= {"weight", "bias"}


class Parts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, mode, sizes, scale=None):
        ctx.mark_non_differentiable(x)
        top, places = x.topk(k)
        return top, "note", places, x.sum(sizes)

    @staticmethod
    def symbolic(g, x, k, mode, sizes, scale=None):
        assert (k, mode, sizes, scale) == (2, "largest", [0, 1], None)
        assert x.type().dtype() == torch.float32 and x.type().dim() == 2
        top, places = g.op("TopK", x, torch.tensor([k]), axis_i=-1, outputs=2)
        total = g.op("ReduceSum", x, torch.tensor(sizes), keepdims_i=0)
        return top, None, places, total


@pytest.mark.parametrize("capture", CAPTURES)
def test_several_results_and_arguments_that_are_no_tensors(capture):
    def model(x):
        top, note, places, total = Parts.apply(x, 2, "largest", [0, 1], None)
        assert note == "note"
        return top * total, places

    program = export(model, torch.randn(4, 5), capture=capture, verify=True)
    assert op_types(program) == ["TopK", "ReduceSum", "Mul"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_tensors_inside_lists_and_dicts(capture):
    class Joined(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors, options):
            return torch.cat([*tensors, options["last"]], options["dim"])

        @staticmethod
        def symbolic(g, tensors, options):
            return g.op("Concat", *tensors, options["last"], axis_i=options["dim"])

    program = export(
        lambda x, y: Joined.apply([x, y], {"last": x, "dim": 1}),
        torch.randn(2, 3),
        torch.randn(2, 4),
        capture=capture,
        verify=True,
    )
    assert op_types(program) == ["Concat"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_setup_context_and_defaults(capture):
    class Leaky(torch.autograd.Function):
        @staticmethod
        def forward(x, slope=0.25):
            return torch.where(x > 0, x, x * slope)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        @symbolic_helper.parse_args("v", "f")
        def symbolic(g, x, slope):
            return g.op("LeakyRelu", x, alpha_f=slope)

    program = export(lambda x: Leaky.apply(x), torch.randn(5), capture=capture, verify=True)
    (node,) = program.model.graph
    assert (node.op_type, node.attributes["alpha"].as_float()) == ("LeakyRelu", 0.25)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_custom_domain_has_the_types_of_pytorch(capture):
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[::2].to(torch.float64), x.argmax(1)

        @staticmethod
        def symbolic(g, x):
            return g.op("my::Halved", x, outputs=2)

    program = export(
        lambda x: Halved.apply(x), torch.randn(4, 3), capture=capture, custom_opsets={"my": 3}
    )
    (node,) = program.model.graph
    assert (node.domain, node.op_type) == ("my", "Halved")
    assert [list(o.shape) for o in node.outputs] == [[2, 3], [4]]
    assert [o.dtype.name for o in node.outputs] == ["DOUBLE", "INT64"]
    assert program.model.opset_imports["my"] == 3
    onnx.checker.check_model(program.model_proto)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_size_as_an_argument_stays_dynamic(capture):
    class Repeated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, count):
            return x[:1].expand(count, -1) * count

        @staticmethod
        def symbolic(g, x, count):
            shape = g.op("Concat", g.op("Unsqueeze", count, [0]), torch.tensor([3]), axis_i=0)
            first = g.op("Slice", x, [0], [1], [0])
            return g.op("Mul", g.op("Expand", first, shape), g.op("Cast", count, to_i=1))

    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}
    model = lambda x: Repeated.apply(x, x.shape[0] * 2)  # noqa: E731
    program = export(model, torch.randn(2, 3), capture=capture, verify=True, **options)
    assert program.notes == ()
    assert [str(d) for d in program.model.graph.outputs[0].shape] == ["2*n", "3"]
    for n in (1, 2, 5):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("reads", [lambda x: x.sum().item(), lambda x: int(x.sum().item())])
def test_a_number_that_data_decides_as_an_argument(reads):
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def symbolic(g, x, factor):
            return g.op("Mul", x, g.op("Cast", factor, to_i=1))

    assert export(lambda x: Times.apply(x, reads(x)), torch.rand(3) * 9, verify=True)


@pytest.mark.parametrize("capture", CAPTURES)
def test_without_one_the_forward_is_inlined(capture):
    program = export(lambda x: MyLogExp.apply(x), torch.rand(3) + 2, capture=capture, verify=True)
    assert op_types(program) == ["Exp", "Log", "Log"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_function_inside_another(capture):
    class Inlined(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return MyRelu.apply(x) * 2

    class Whole(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return MyRelu.apply(x) * 2

        @staticmethod
        def symbolic(g, x):
            return g.op("my::Whole", x)

    inlined = export(lambda x: Inlined.apply(x), torch.randn(3), capture=capture, verify=True)
    assert op_types(inlined) == ["Clip", "Mul"]
    whole = export(lambda x: Whole.apply(x), torch.randn(3), capture=capture)
    assert op_types(whole) == ["Whole"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_forward_that_needs_real_values(dynamic):
    class InNumpy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.from_numpy(np.tanh(x.detach().numpy()))

        @staticmethod
        def symbolic(g, x):
            return g.op("Tanh", x)

    axes = {"x": {0: "n"}} if dynamic else None
    program = export(
        lambda x: InNumpy.apply(x) + 1,
        torch.randn(2, 3),
        capture="auto",
        input_names=["x"],
        dynamic_axes=axes,
        verify=True,
    )
    assert op_types(program) == ["Tanh", "Add"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_an_identity_of_its_argument(capture):
    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x.view_as(x)

        @staticmethod
        def symbolic(g, x, factor):
            return g.op("Identity", x)

    def model(x):
        y = Reversed.apply(x, 0.1)
        return y + x

    assert not export(model, torch.randn(3), capture=capture, verify=True).notes

    def writes(x):
        x = x * 2
        y = Reversed.apply(x, 0.1)
        return y.relu_()

    (note,) = export(writes, torch.randn(3), capture=capture, verify=True).notes
    assert "Reversed.forward returns memory of its argument" in note


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_write_of_an_argument_is_refused(capture):
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def symbolic(g, x):
            return g.op("Mul", x, 2.0)

    with pytest.raises(CaptureError, match=r"Writes.forward writes one of its arguments"):
        export(lambda x: Writes.apply(x.clone()), torch.randn(3), capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_goes_wrong_is_told_with_its_place(capture):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1

        @staticmethod
        def symbolic(g, x):
            return g.op("NoSuchOperator", x)

    class Nothing(Fails):
        @staticmethod
        def symbolic(g, x):
            return symbolic_helper._unimplemented("Nothing", "not in ONNX")

    with pytest.raises(SymbolicFunctionError, match=r"(?s)Fails.symbolic.*NoSuchOp.*autograd_func"):
        export(lambda x: Fails.apply(x), torch.randn(3), capture=capture)
    with pytest.raises(UnsupportedOperatorError, match="not in ONNX"):
        export(lambda x: Nothing.apply(x), torch.randn(3), capture=capture)


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda x: relu_by_another_name(x) + MyClip.apply(x, 0.5),
            lambda x: Plain.apply(x + 1),
            (x,),
        )


def test_in_the_branches_of_cond():
    x = torch.randn(3)
    for _ in range(2):
        inlined = export(Branches(), x, verify=True).to_text()
        assert inlined.count("onnx::Clip(") == 3 and "PythonOp" not in inlined
        kept = export(Branches(), x, autograd_inlining=False).to_text()
        assert kept.count("prim::PythonOp") == 2 and kept.count("onnx::Clip(") == 1


def test_where_torch_export_compiles_the_model():
    class Model(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_dynamo_compiling():
                assert not torch.compiler.is_exporting()
            return MyRelu.apply(x) + MyLogExp.apply(x.abs() + 2)

    program = export(Model(), torch.randn(3), verify=True)
    assert op_types(program).count("Clip") == 1
    assert not any(len(node.inputs) > 2 for node in program.model.graph if node.op_type == "Clip")


def test_under_vmap_it_is_opened():
    class Scaled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, scale):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def symbolic(g, x, scale):
            return g.op("my::Scaled", x)

    model = lambda x: torch.vmap(lambda row: Scaled.apply(row, 2.0))(x)  # noqa: E731
    for inlines in (True, False):
        program = export(model, torch.randn(3, 2), autograd_inlining=inlines, verify=True)
        assert op_types(program) == ["Mul"]


class Rectified(torch.nn.Module):
    def forward(self, x):
        return MyRelu.apply(x) + 1


class Loop(torch.nn.Module):
    def forward(self, x, count: int):
        for _ in range(count):
            if x.sum() > 0:
                x = MyRelu.apply(x) - 0.5
            else:
                x = Plain.apply(x + 1)
        return x


def test_in_torchscript_too():
    x = torch.randn(2, 3)
    dynamic = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}, "verify": True}
    for model in (torch.jit.script(Rectified()), torch.jit.trace(Rectified(), x)):
        program = export(model, x, capture="auto", **dynamic)
        assert op_types(program) == ["Clip", "Add"]
    program = export(torch.jit.script(Loop()), x, 3, capture="auto", **dynamic)
    assert op_types(program)[-1] == "Loop"
    text = program.to_text()
    assert text.count("onnx::Clip[](") == 0 and text.count("onnx::Clip(") == 2


def test_torchscript_without_a_symbolic_method():
    class Model(torch.nn.Module):
        def forward(self, x):
            return WritesInside.apply(MyLogExp.apply(x))

    x = torch.rand(3, 4) + 2
    for model in (torch.jit.script(Model()), torch.jit.trace(Model(), x)):
        program = export(
            model, x, capture="auto", input_names=["x"], dynamic_axes={"x": [0]}, verify=True
        )
        assert op_types(program)[:3] == ["Exp", "Log", "Log"]
        kept = export(model, x, capture="auto", autograd_inlining=False)
        assert op_types(kept) == ["PythonOp", "PythonOp"]


class WritesInside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[:, 0] = 5
        return y.mul_(x.shape[0])


class TwoFunctions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return Plain.apply(MyClip.apply(self.linear(x), 0.5))


def _written(g, args, name):
    if name == "MyClip":
        return g.op("Clip", args[0], args[1])
    if name == "Plain":
        return g.op("Relu", args[0])
    return symbolic_helper._unimplemented("prim::PythonOp", "unknown node kind: " + name)


def python_op_of_2_1(g: sardonyx.GraphContext, *args, **kwargs):
    assert g.original_node.kind() == "prim::PythonOp"
    ret = _written(g, args, kwargs["name"])
    assert g.original_node.output().requiresGrad() and args[0].requiresGrad()
    return ret if ret is None else ret.setType(g.original_node.type())


def python_op_with_name(g, *args, name):
    return _written(g, args, name)


def python_op_of_1_10(g, n, *args, **kwargs):
    assert [out.requiresGrad() for out in n.outputs()] == [True]
    assert n.pyname() == kwargs["name"] == n.s("name")
    assert n.pyobj().__self__ in (MyClip, Plain)
    assert (n.cconv(), n.scalar_args()) in (("dc", [0.5]), ("d", []))
    ret = _written(g, args, kwargs["name"])
    return ret if ret is None else ret.setType(n.type())


def python_op_of_1_11(ctx: sardonyx.SymbolicContext, g, *args, **kwargs):
    assert "linear.weight" in ctx.params_dict
    ret = _written(g, args, kwargs["name"])
    return ret if ret is None else ret.setType(ctx.cur_node.type())


def python_op_by_node_type(g, call: torch._C.Node, *args, **kwargs):
    assert call.kind() == "prim::PythonOp"
    return _written(g, args, kwargs["name"])


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", ["prim::PythonOp", "::prim_PythonOp"])
@pytest.mark.parametrize(
    "function",
    [
        python_op_of_2_1,
        python_op_with_name,
        python_op_of_1_10,
        python_op_of_1_11,
        python_op_by_node_type,
    ],
)
def test_a_function_for_python_ops(function, name, capture):
    sardonyx.register_custom_op_symbolic(name, function, 1)
    program = export(TwoFunctions(), torch.randn(2, 3), capture=capture, verify=True)
    assert op_types(program) == ["Gemm", "Clip", "Relu"]


def test_its_own_symbolic_method_comes_first_and_unknown_ones_are_refused():
    sardonyx.register_custom_op_symbolic("prim::PythonOp", python_op_with_name, 18)
    program = export(lambda x: Plain.apply(MyRelu.apply(x)), torch.randn(3))
    assert op_types(program) == ["Clip", "Relu"]
    with pytest.raises(UnsupportedOperatorError, match="unknown node kind: MyLogE"):
        export(lambda x: MyLogExp.apply(x), torch.randn(3))
    early = export(lambda x: MyLogExp.apply(x), torch.rand(3) + 2, opset_version=17)
    assert op_types(early) == ["Exp", "Log", "Log"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_symbolic_method_with_context(capture):
    class WithContext(MyLogExp):
        @staticmethod
        def symbolic(ctx, g, input):
            assert isinstance(ctx, sardonyx.SymbolicContext)
            return g.op("my::LogExp", input).setType(ctx.cur_node.type())

    program = export(lambda x: WithContext.apply(x), torch.randn(3), capture=capture)
    assert op_types(program) == ["LogExp"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_kept_as_python_ops_where_inlining_is_off(capture):
    program = export(
        lambda x: Parts2.apply(MyRelu.apply(x), [1, 2], None, 0.5, "mode", x),
        torch.randn(2, 3),
        capture=capture,
        autograd_inlining=False,
    )
    assert op_types(program) == ["Clip", "PythonOp"]
    node = program.model.graph[-1]
    assert node.domain == "prim"
    assert {name: a.value for name, a in node.attributes.items()} == {
        "name": "Parts2",
        "module": __name__,
        "inputs": ("x", "other"),
        "sizes": (1, 2),
        "scale": 0.5,
        "mode": "mode",
    }
    assert [list(o.shape) for o in node.outputs] == [[2, 3], [2]]
    onnx.checker.check_model(program.model_proto)


class Parts2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sizes, bias, scale, mode, other):
        return x * scale + other, x.sum(1)


def test_an_argument_that_no_attribute_holds():
    class TakesObject(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, function):
            return function(x)

    model = lambda x: TakesObject.apply(x, torch.sin)  # noqa: E731
    assert op_types(export(model, torch.randn(3), verify=True)) == ["Sin"]
    with pytest.raises(UnsupportedOperatorError, match="no attribute can hold its argument func"):
        export(model, torch.randn(3), autograd_inlining=False)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_pytorchs_own_functions_are_inlined_always():
    from torch.utils.checkpoint import checkpoint

    linear = torch.nn.Linear(3, 3)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            return checkpoint(self.linear, x, use_reentrant=True)

    program = export(Model(), torch.randn(2, 3), autograd_inlining=False, verify=True)
    assert op_types(program) == ["Gemm"]


def test_nothing_is_left_behind():
    before = vars(torch.autograd.Function.__mro__[1]).get("apply")
    gradients = []

    def train():
        x = torch.randn(3, requires_grad=True)
        MySquare.apply(x).sum().backward()
        gradients.append(torch.equal(x.grad, 2 * x))

    class MySquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

        @staticmethod
        def symbolic(g, x):
            return g.op("Mul", x, x)

    def model(x):
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        return MySquare.apply(x)

    assert op_types(export(model, torch.randn(3), capture="trace", verify=True)) == ["Mul"]
    train()
    assert gradients and all(gradients)
    assert vars(torch.autograd.Function.__mro__[1]).get("apply") is before
    gc.collect()
    assert not hasattr(torch.ops.sardonyx_autograd, "MySquare")


@pytest.mark.parametrize("capture", CAPTURES)
def test_errors_have_the_name_of_the_class(capture):
    """Also where a call of another form has an operator of its own."""

    class Unwritten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *others):
            return x.abs()

        @staticmethod
        def symbolic(g, x, *others):
            return g.op("NoSuchOperator", x) if len(others) > 1 else None

    def model(x):
        return Unwritten.apply(Unwritten.apply(x), 1.0)

    with pytest.raises(UnsupportedOperatorError, match=r"no ONNX form for Unwritten \(2 uses\)"):
        sardonyx.export(model, torch.randn(3), capture=capture)
    graph, unconvertible = sardonyx.utils.unconvertible_ops(model, torch.randn(3), capture=capture)
    assert unconvertible == ["Unwritten", "Unwritten"]
    assert "sardonyx_autograd" not in str(graph)
    with pytest.raises(SymbolicFunctionError, match=r"symbolic of Unwritten failed: .*NoSuchOp"):
        sardonyx.export(lambda x: Unwritten.apply(x, 1.0, "a"), torch.randn(3), capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_a_forward_writes_is_written_once(capture):
    class Adds(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

    class Averages(torch.autograd.Function):
        @staticmethod
        def forward(x, mean):
            mean.mul_(0.9).add_(0.1 * x)
            return x - mean

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

    def model(x):
        mean = torch.ones(3)
        first = Averages.apply(Adds.apply(x * 1), mean)
        return first, Adds.apply(x[1:] * 2), mean

    x = torch.randn(3)
    program = sardonyx.export(model, (x,), capture=capture)
    for ours, theirs in zip(program(x), model(x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_an_argument_that_a_forward_returns_is_a_view_of_it():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    def model(x):
        y = x * 1
        z = Same.apply(y)
        z += 1
        return y, z, z is y

    x = torch.randn(3)
    program = sardonyx.export(lambda x: model(x)[:2], (x,), capture="trace")
    for ours, theirs in zip(program(x), model(x)[:2], strict=True):
        torch.testing.assert_close(ours, theirs)
