"""register_custom_op_symbolic: names, opsets, overloads, overrides, errors."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from sardonyx import symbolic_helper
from sardonyx.errors import InvalidOptionError, SymbolicFunctionError, UnsupportedOperatorError
from tests.extend import custom_operators as custom

CAPTURES = ["export", "trace", "script"]


class Foo(torch.nn.Module):
    def __init__(self, attr1: float, attr2: int) -> None:
        super().__init__()
        self.attr1 = attr1
        self.attr2 = attr2

    def forward(self, input1, input2):
        return torch.ops.extend_tests.foo_forward(input1, input2, self.attr1, self.attr2)


@symbolic_helper.parse_args("v", "v", "f", "i")
def symbolic_foo_forward(g, input1, input2, attr1, attr2):
    return g.op("custom_domain::Foo", input1, input2, attr1_f=attr1, attr2_i=attr2)


def export(model, *inputs, capture="export", **options):
    if capture == "script":
        model, capture = torch.jit.script(model), "script"
    return sardonyx.export(model, inputs, capture=capture, **options)


def op_types(program):
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("version", [None, 2])
def test_an_operator_of_a_custom_domain(capture, version):
    sardonyx.register_custom_op_symbolic("extend_tests::foo_forward", symbolic_foo_forward, 9)
    x = torch.randn(2, 3)
    versions = None if version is None else {"custom_domain": version, "not_used": 7}
    program = export(Foo(0.5, 3), x, x, capture=capture, custom_opsets=versions)
    (node,) = program.model.graph
    assert (node.domain, node.op_type) == ("custom_domain", "Foo")
    assert node.attributes["attr1"].as_float() == 0.5
    assert node.attributes["attr2"].as_int() == 3
    assert program.model.opset_imports == {"": 20, "custom_domain": version or 1}
    (output,) = program.model.graph.outputs
    assert list(output.shape) == [2, 3]
    onnx.checker.check_model(program.model_proto)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_custom_op_of_torch_library_keeps_dynamic_sizes(capture):
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.ops.extend_tests.scaled(x, 2.5) + 1

    def symbolic(g, x, factor):
        return g.op("Mul", x, factor)

    sardonyx.register_custom_op_symbolic("extend_tests::scaled", symbolic, 9)
    program = export(
        Model(),
        torch.randn(2, 3),
        capture=capture,
        input_names=["x"],
        dynamic_axes={"x": {0: "batch"}},
        verify=True,
    )
    assert op_types(program) == ["Mul", "Add"]


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_it_takes_the_place_of_our_form(capture):
    def symbolic(g, input, approximate):
        return g.op("my::FastGelu", input)

    sardonyx.register_custom_op_symbolic("aten::gelu", symbolic, 9)
    program = export(torch.nn.GELU(), torch.randn(3), capture=capture)
    assert op_types(program) == ["FastGelu"]
    sardonyx.unregister_custom_op_symbolic("aten::gelu", 9)
    assert op_types(export(torch.nn.GELU(), torch.randn(3), capture=capture)) != ["FastGelu"]


def test_constants_do_not_bypass_it():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x + torch.ops.extend_tests.scaled(torch.ones(3), 2.0)

    sardonyx.register_custom_op_symbolic(
        "extend_tests::scaled", lambda g, x, factor: g.op("my::Scaled", x, factor_f=factor), 9
    )
    assert "Scaled" in op_types(export(Model(), torch.randn(3)))


def test_the_newest_function_up_to_the_opset_serves():
    for version, name in ((9, "Old"), (18, "New")):
        sardonyx.register_custom_op_symbolic(
            "aten::relu", lambda g, x, name=name: g.op(f"my::{name}", x), version
        )
    served = {
        opset: op_types(export(torch.nn.ReLU(), torch.randn(3), opset_version=opset))
        for opset in (17, 18, 20)
    }
    assert served == {17: ["Old"], 18: ["New"], 20: ["New"]}


def test_a_function_for_later_opsets_only_is_named():
    sardonyx.register_custom_op_symbolic("extend_tests::foo_forward", symbolic_foo_forward, 18)
    x = torch.randn(2)
    with pytest.raises(UnsupportedOperatorError, match="registered for opset 18 and later"):
        export(Foo(1.0, 1), x, x, opset_version=17)


def test_an_overload_has_its_own():
    sardonyx.register_custom_op_symbolic("aten::add", lambda g, *a: g.op("my::Any", a[0]), 9)
    sardonyx.register_custom_op_symbolic(
        "aten::add.Tensor", lambda g, x, y, alpha: g.op("my::OfTensors", x, y), 9
    )
    assert op_types(export(lambda x: x + x, torch.randn(2), capture="trace")) == ["OfTensors"]
    sardonyx.unregister_custom_op_symbolic("aten::add.Tensor", 9)
    assert op_types(export(lambda x: x + x, torch.randn(2), capture="trace")) == ["Any"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("elu", "domain::name"),
        ("aten::2elu", "domain::name"),
        ("a b::elu", "domain::name"),
        ("aten::el u", "domain::name"),
        ("onnx::Elu", "not open"),
        ("prim::Constant", "not open"),
        ("aten::relu_", "'aten::relu'"),
        (3, "text like"),
    ],
)
def test_names_are_checked(name, told):
    with pytest.raises(InvalidOptionError, match=told):
        sardonyx.register_custom_op_symbolic(name, lambda g: None, 9)


@pytest.mark.parametrize("name", ["::elu", "my-lib::op_2", "a::__and__", "::prim_PythonOp"])
def test_names_that_are_good(name):
    sardonyx.register_custom_op_symbolic(name, lambda g: None, 1)
    sardonyx.unregister_custom_op_symbolic(name, 1)
    sardonyx.unregister_custom_op_symbolic(name, 1)


def test_function_and_opset_are_checked():
    with pytest.raises(InvalidOptionError, match="no function"):
        sardonyx.register_custom_op_symbolic("aten::elu", "elu", 9)
    with pytest.raises(InvalidOptionError, match="from 1 on"):
        sardonyx.register_custom_op_symbolic("aten::elu", lambda g: None, 0)


@pytest.mark.parametrize("given", [{"": 2}, {"onnx": 2}, {"my": 0}, {"my": "2"}, [("my", 2)]])
def test_custom_opsets_are_checked(given):
    with pytest.raises(InvalidOptionError, match="custom_opsets"):
        export(torch.nn.ReLU(), torch.randn(2), custom_opsets=given)


class Softplus(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softplus(x, beta=2.0)


def test_arguments_by_name_whatever_their_order():
    def symbolic(g, threshold, beta, self):
        assert symbolic_helper._scalar(threshold) == 20
        return g.op("my::Softplus", self, beta_f=beta)

    sardonyx.register_custom_op_symbolic("aten::softplus", symbolic, 9)
    (node,) = export(Softplus(), torch.randn(2)).model.graph
    assert node.attributes["beta"].as_float() == 2.0


def test_what_it_does_not_take_must_be_the_default():
    sardonyx.register_custom_op_symbolic("aten::softplus", lambda g, x: g.op("Softplus", x), 9)
    with pytest.raises(UnsupportedOperatorError, match="does not take beta, which is 2"):
        export(Softplus(), torch.randn(2))
    assert op_types(export(torch.nn.Softplus(), torch.randn(2), verify=True)) == ["Softplus"]


def test_none_means_it_cannot_be_converted():
    def symbolic(g, x, *rest):
        return symbolic_helper._unimplemented("softplus", "with a beta")

    sardonyx.register_custom_op_symbolic("aten::softplus", symbolic, 9)
    with pytest.raises(UnsupportedOperatorError, match="softplus: with a beta"):
        export(Softplus(), torch.randn(2))


def test_errors_say_where():
    def symbolic(g, x, *rest):
        return {}["missing"]

    sardonyx.register_custom_op_symbolic("aten::softplus", symbolic, 9)
    with pytest.raises(SymbolicFunctionError, match=r"symbolic of aten::softplus failed: KeyError"):
        export(Softplus(), torch.randn(2))
    with pytest.raises(SymbolicFunctionError, match=r"test_registration.py:\d+"):
        export(Softplus(), torch.randn(2))


def test_a_wrong_dtype_or_rank_is_told():
    sardonyx.register_custom_op_symbolic("aten::relu", lambda g, x: g.op("Cast", x, to_i=7), 9)
    with pytest.raises(SymbolicFunctionError, match="gives int64 where PyTorch gives float32"):
        export(torch.nn.ReLU(), torch.randn(2))
    sardonyx.register_custom_op_symbolic(
        "aten::relu", lambda g, x: g.op("ReduceSum", x, keepdims_i=0), 9
    )
    with pytest.raises(SymbolicFunctionError, match="0 dims where PyTorch gives"):
        export(torch.nn.ReLU(), torch.randn(2))


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_several_results_and_every_kind_of_argument(capture):
    @symbolic_helper.parse_args("v", "is", "s", "b")
    def symbolic(g, x, sizes, mode, flag):
        assert (sizes, mode, flag) == ([1, 2], "fast", True)
        return g.op("my::Two", x, sizes_i=sizes, mode_s=mode, flag_i=flag, outputs=2)

    sardonyx.register_custom_op_symbolic("extend_tests::two", symbolic, 9)

    def model(x):
        first, second = torch.ops.extend_tests.two(x, [1, 2], "fast", True)
        return first + second

    program = export(model, torch.randn(2, 3), capture=capture)
    node = next(iter(program.model.graph))
    assert list(node.attributes["sizes"].as_ints()) == [1, 2]
    assert node.attributes["mode"].as_string() == "fast"
    assert [list(output.shape) for output in node.outputs] == [[2, 3]] * 2


def test_an_operator_without_a_fake_kernel_is_traced():
    assert custom.typeless is not None
    sardonyx.register_custom_op_symbolic(
        "extend_tests::typeless", lambda g, x: g.op("Mul", x, 2.0), 9
    )
    program = sardonyx.export(
        lambda x: torch.ops.extend_tests.typeless(x) + 1, (torch.randn(2, 3),), verify=True
    )
    assert op_types(program) == ["Mul", "Add"]


def test_an_operator_without_a_fake_kernel_has_open_sizes():
    sardonyx.register_custom_op_symbolic(
        "extend_tests::typeless", lambda g, x: g.op("Mul", x, 2.0), 9
    )

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x):
            return self.linear(torch.ops.extend_tests.typeless(x)) + 1

    sardonyx.export(
        Model(),
        (torch.randn(2, 3),),
        input_names=["x"],
        dynamic_axes={"x": {0: "batch"}},
        verify=True,
    )


def test_a_refused_registration_leaves_nothing_behind():
    with pytest.raises(sardonyx.errors.InvalidOptionError):
        sardonyx.register_custom_op_symbolic("aten::gelu", lambda g, x, *rest: g.op("Abs", x), 0)
    sardonyx.export(torch.nn.GELU(), (torch.randn(3),), verify=True)
