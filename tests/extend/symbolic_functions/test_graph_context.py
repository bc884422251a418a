"""The `g` of a symbolic function: nodes, attributes, inputs, bodies, and what it is told of."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from sardonyx.errors import SymbolicFunctionError


class Softplus(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softplus(x)


def exported(symbolic, *, x=None, opset=20, **options):
    """The export of a softplus whose form is `symbolic(g, x)`."""
    sardonyx.register_custom_op_symbolic(
        "aten::softplus", lambda g, self, beta, threshold: symbolic(g, self), 1
    )
    x = torch.randn(2, 3) if x is None else x
    return sardonyx.export(Softplus(), (x,), opset_version=opset, **options)


def only_node(program):
    (node,) = [n for n in program.model.graph if n.op_type != "Constant"]
    return node


def softplus(g, x):
    return g.op("Log", g.op("Add", g.op("Exp", x), 1))


@pytest.mark.parametrize("opset", [17, 18, 20, 24])
def test_nodes_numbers_and_values(opset):
    exported(softplus, opset=opset, verify=True)


def test_numbers_and_tensors_take_the_dtype_of_their_operands():
    def symbolic(g, x):
        one = g.op("Constant", value_t=torch.tensor(1))  # int64, as published functions write it
        big = g.op("Mul", g.op("Exp", x), torch.tensor(1.0, dtype=torch.float64))
        return g.op("Log", g.op("Add", big, one))

    exported(symbolic, verify=True)
    exported(symbolic, x=torch.randn(2, dtype=torch.float64), verify=True)


def test_dtypes_that_do_not_go_together():
    def symbolic(g, x):
        return g.op("Clip", x, g.op("Constant", value_t=torch.tensor([1, 2])))

    with pytest.raises(SymbolicFunctionError, match=r"Clip takes operands of one dtype.*Cast"):
        exported(symbolic)

    def fraction(g, x):
        return g.op("Range", g.op("Shape", x), 0.5, 1)

    with pytest.raises(SymbolicFunctionError, match="Range takes operands of one dtype"):
        exported(fraction)


def test_the_form_is_that_of_the_opset_asked_for():
    def old_form(g, x):
        return g.op("ReduceMean", g.op("Softplus", x), axes_i=[1], keepdims_i=1)

    sardonyx.register_custom_op_symbolic(
        "aten::softmax", lambda g, x, dim, dtype: old_form(g, x), 9
    )
    model = torch.nn.Softmax(dim=1)
    program = sardonyx.export(model, (torch.randn(2, 1),), opset_version=17)
    onnx.checker.check_model(program.model_proto, full_check=True)
    mean = next(n for n in program.model.graph if n.op_type == "ReduceMean")
    assert list(mean.attributes["axes"].as_ints()) == [1]
    program = sardonyx.export(model, (torch.randn(2, 1),), opset_version=18)
    mean = next(n for n in program.model.graph if n.op_type == "ReduceMean")
    assert "axes" not in mean.attributes
    assert len(mean.inputs) == 2


def test_every_kind_of_attribute():
    def symbolic(g, x):
        return g.op(
            "my::All",
            x,
            a_f=1,
            b_f=[1, 2.5],
            c_i=True,
            d_i=(1, 2),
            e_s="text",
            f_s=["a", "b"],
            g_t=torch.ones(2),
            h_i=None,
        )

    node = only_node(exported(symbolic))
    kinds = {name: attribute.type.name for name, attribute in node.attributes.items()}
    assert kinds == {
        "a": "FLOAT",
        "b": "FLOATS",
        "c": "INT",
        "d": "INTS",
        "e": "STRING",
        "f": "STRINGS",
        "g": "TENSOR",
    }


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda g, x: g.op("Elu", x, alpha=1.0), "write alpha_f"),
        (lambda g, x: g.op("Elu", x, alpha_i=1), "alpha takes a float: alpha_f"),
        (lambda g, x: g.op("Elu", x, alpha_f=[1.0]), "a list of float"),
        (lambda g, x: g.op("Elu", x, beta_f=1.0), "no attribute 'beta'.*alpha_f"),
        (lambda g, x: g.op("Elu", x, alpha_f="one"), "is no a float|could not convert"),
        (lambda g, x: g.op("Transpose", x, perm_i=[0.5, 1]), "fraction"),
        (lambda g, x: g.op("Transpose", x, perm_i=x), "must be known at export time"),
        (lambda g, x: g.op("Eluu", x), "no operator 'Eluu'"),
        (lambda g, x: g.op("Gelu", x), "came with opset 20"),
        (lambda g, x: g.op("Upsample", x), "deprecated"),
        (lambda g, x: g.op("Elu", x, x), "takes 1 inputs"),
        (lambda g, x: g.op("Elu", x, outputs=2), "gives 1 results"),
        (lambda g, x: g.op("Not", x), "does not take torch.float32 as X"),
        (lambda g, x: g.op("::Elu", x), "no operator"),
        (lambda g, x: g.op("Elu", "x"), "no input of a node"),
        (lambda g, x: g.nodes, "no 'nodes'"),
    ],
)
def test_what_onnx_does_not_know_is_told(write, told):
    with pytest.raises(SymbolicFunctionError, match=told):
        exported(write, opset=18)


def test_several_results_and_the_onnx_prefix():
    def symbolic(g, x):
        values, _ = g.op("onnx::TopK", g.op("Softplus", x), [3], axis_i=1, outputs=2)
        return values

    program = exported(symbolic)
    assert len(only_two(program)[1].outputs) >= 1


def only_two(program):
    return [n for n in program.model.graph if n.op_type != "Constant"]


def test_sizes_in_the_graph():
    def symbolic(g, x):
        flat = g.op("Reshape", softplus(g, x), [-1])
        return g.op("Reshape", flat, g.op("Shape", x))

    exported(symbolic, verify=True, input_names=["x"], dynamic_axes={"x": [0, 1]})


def test_aten_fallback():
    node = only_node(exported(lambda g, x: g.at("softplus", x, overload_name="default")))
    assert (node.domain, node.op_type) == ("org.pytorch.aten", "ATen")
    assert node.attributes["operator"].as_string() == "softplus"


def test_what_it_is_told_of():
    seen = {}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return torch.nn.functional.softplus(x * self.weight)

    def symbolic(g, x, beta, threshold):
        seen.update(
            opset=g.opset,
            block=g.block,
            kind=g.original_node.kind(),
            outputs=[str(o.type()) for o in g.original_node.outputs()],
            params=list(g.params_dict),
            env=g.env,
        )
        return softplus(g, x).setType(g.original_node.type())

    sardonyx.register_custom_op_symbolic("aten::softplus", symbolic, 9)
    sardonyx.export(Model(), (torch.randn(2, 3),), opset_version=18, verify=True)
    assert seen == {
        "opset": 18,
        "block": None,
        "kind": "aten::softplus",
        "outputs": ["Float(2, 3)"],
        "params": ["weight"],
        "env": {},
    }


def test_bodies():
    def symbolic(g, x):
        positive = g.op("Greater", g.op("ReduceSum", x, keepdims_i=0), 0)
        result, (then, otherwise), node = g.op_with_blocks("If", positive, n_blocks=2)
        assert node.kind() == "onnx::If"
        then.block.registerOutput(softplus(then, x))
        otherwise.block.registerOutput(otherwise.op("Softplus", x))
        assert [n.kind() for n in otherwise.block.nodes()] == ["onnx::Softplus"]
        return result

    for x in (torch.ones(2), -torch.ones(2)):
        program = exported(symbolic, x=x, verify=True)
        assert [n.op_type for n in program.model.graph][-1] == "If"


def test_a_loop_in_the_form_of_published_functions():
    def symbolic(g, x):
        y, (body,), _ = g.op_with_blocks(
            "Loop", torch.tensor(2), torch.tensor(True), g.op("Softplus", x)
        )
        body.block.addInputToBlock("i")
        going = body.block.addInputToBlock("going")
        carried = body.block.addInputToBlock("carried").setType(x.type())
        body.block.registerOutput(body.op("Identity", going))
        body.block.registerOutput(body.op("Abs", carried))
        return y

    exported(symbolic, verify=True)


def test_the_source_line_stays_with_the_nodes():
    program = exported(softplus)
    assert all(
        "test_graph_context.py" in n.metadata_props["sardonyx.source"]
        for n in program.model.graph
        if n.op_type != "Constant"
    )


@pytest.mark.parametrize("capture", ["export", "trace", "script"])
def test_inside_a_branch(capture):
    class Branch(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                y = torch.nn.functional.softplus(x)
            else:
                y = x
            return y

    def branch(x):
        return torch.cond(x.sum() > 0, torch.nn.functional.softplus, lambda x: x.clone(), (x,))

    model = torch.jit.script(Branch()) if capture == "script" else branch
    sardonyx.register_custom_op_symbolic("aten::softplus", lambda g, x, *rest: softplus(g, x), 9)
    program = sardonyx.export(model, (torch.ones(3),), capture=capture, verify=True)
    text = program.to_text()
    assert "onnx::If" in text and "onnx::Exp" in text and "Softplus" not in text
