"""Examples and sentences of the reference on symbolic functions, under our package's name."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from sardonyx.extend import custom_symbolics
from sardonyx.symbolic_helper import _scalar, parse_args

LIBRARY = torch.library.Library("custom_ops", "DEF")
LIBRARY.define("foo_forward(Tensor input1, Tensor input2, float attr1, int attr2) -> Tensor")
LIBRARY.impl(
    "foo_forward",
    lambda input1, input2, attr1, attr2: input1 * attr1 + input2 * attr2,
    "CompositeExplicitAutograd",
)
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


@pytest.fixture(autouse=True)
def no_registrations_left(monkeypatch):
    monkeypatch.setattr(custom_symbolics, "_registered", {})


@CAPTURES
def test_elu_of_the_first_generation(capture):
    def elu(g, input, alpha, inplace=False):
        return g.op("Elu", input, alpha_f=_scalar(alpha))

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), capture=capture, verify=True)
    (node,) = program.model.graph
    assert node.attributes["alpha"].as_float() == 0.5


@CAPTURES
def test_elu_of_the_second_generation(capture):
    def elu(g, input: torch.Value, alpha: torch.Value, inplace: bool = False):
        return g.op("Elu", input, alpha_f=alpha)

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), capture=capture, verify=True)
    (node,) = program.model.graph
    assert node.attributes["alpha"].as_float() == 0.5


@CAPTURES
def test_cpp_operators(capture, tmp_path):
    # Define custom symbolic function
    @parse_args("v", "v", "f", "i")
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

    model = FooModel(0.5, 3)
    example_input1 = torch.randn(2, 3)
    sardonyx.export(
        model,
        (example_input1, example_input1),
        str(tmp_path / "model.onnx"),
        # only needed if you want to specify an opset version > 1.
        custom_opsets={"custom_domain": 2},
        capture=capture,
    )
    written = onnx.load(tmp_path / "model.onnx")
    assert {o.domain: o.version for o in written.opset_import} == {"": 20, "custom_domain": 2}
    (node,) = written.graph.node
    assert (node.domain, node.op_type, len(node.input)) == ("custom_domain", "Foo", 2)


def test_a_custom_opset_version_defaults_to_1():
    sardonyx.register_custom_op_symbolic(
        "custom_ops::foo_forward", lambda g, a, b, *rest: g.op("custom_domain::Foo", a, b), 9
    )
    program = sardonyx.export(
        lambda a, b: torch.ops.custom_ops.foo_forward(a, b, 1.0, 2), (torch.ones(2), torch.ones(2))
    )
    assert program.model.opset_imports["custom_domain"] == 1


def test_parameter_order_does_not_matter_where_the_names_match():
    """'Parameter ordering does NOT necessarily match': dispatch is done with keyword arguments."""

    def elu(g, alpha, self):
        return g.op("Elu", self, alpha_f=alpha)

    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), verify=True)


def test_lists_and_several_outputs():
    """'an attribute specified with type float accepts a list of floats'; 'a tuple of outputs'."""

    def split(g, self, split_size, dim):
        parts = g.op("my::Parts", self, sizes_f=[1.0, 2.0], axis_i=dim, outputs=2)
        assert type(parts) is tuple and len(parts) == 2
        return parts

    sardonyx.register_custom_op_symbolic("aten::split", split, 9)
    program = sardonyx.export(lambda x: torch.split(x, 2)[1], torch.randn(4, 3))
    (node,) = program.model.graph
    assert list(node.attributes["sizes"].as_floats()) == [1.0, 2.0]


def test_none_if_it_cannot_be_converted():
    sardonyx.register_custom_op_symbolic("aten::elu", lambda g, *args: None, 9)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="aten::elu"):
        sardonyx.export(torch.nn.ELU(), torch.randn(3))
