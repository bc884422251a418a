"""What becomes a call of a function, on graphs made by hand."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.aten.module_calls import ModuleClass
from sardonyx.lower.provenance import CALLS_KEY
from sardonyx.optimize.outline_modules import outline_modules

CLASSES = {"a": ModuleClass("lib", "A"), "b": ModuleClass("lib", "B")}


def _value(name: str) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))


def _node(op: str, inputs: list[ir.Value], name: str, call: str = "") -> ir.Node:
    node = ir.node(op, inputs, metadata_props={CALLS_KEY: call, "sardonyx.module": call[:1]})
    output = node.outputs[0]
    output.name, output.type, output.shape = name, inputs[0].type, inputs[0].shape
    return node


def _model(x: ir.Value, nodes: list[ir.Node]) -> ir.Model:
    graph = ir.Graph(
        [x], [nodes[-1].outputs[0]], nodes=nodes, opset_imports={"": 20}, name="main_graph"
    )
    return ir.Model(graph, ir_version=10)


def _result(model: ir.Model) -> np.ndarray:
    (result,) = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": np.array([0.5, 2], "f4")})
    return result


@pytest.mark.parametrize("leads_back", [False, True])
def test_nodes_in_between(leads_back: bool) -> None:
    x = _value("x")
    first = _node("Exp", [x], "first", "a@0")
    between = _node("Neg", first.outputs, "between")
    second = _node("Sin", (between if leads_back else first).outputs, "second", "a@0")
    last = _node("Add", [*between.outputs, *second.outputs], "last")
    model = _model(x, [first, between, second, last])
    expected = _result(model)
    notes = outline_modules(model, CLASSES, None, ())
    assert np.array_equal(_result(model), expected)
    if leads_back:
        assert not model.functions
        assert notes == [
            "a (A) is no function of the file: other nodes depend on a part of it and lead to"
            " another"
        ]
    else:
        assert [n.op_type for n in model.graph] == ["A", "Neg", "Add"]
        assert not notes


def test_two_calls_that_read_each_other() -> None:
    """Each could be a call by itself, but not both."""
    x = _value("x")
    nodes = [_node("Exp", [x], "a1", "a@0"), _node("Sin", [x], "b1", "b@0")]
    nodes.append(_node("Neg", nodes[0].outputs, "b2", "b@0"))
    nodes.append(_node("Cos", nodes[1].outputs, "a2", "a@0"))
    nodes.append(_node("Add", [*nodes[2].outputs, *nodes[3].outputs], "last"))
    model = _model(x, nodes)
    expected = _result(model)
    notes = outline_modules(model, CLASSES, None, ())
    assert np.array_equal(_result(model), expected)
    assert len(model.functions) == len(notes) == 1


def test_an_output_that_only_some_calls_are_asked_for() -> None:
    x = _value("x")
    nodes = [_node("Exp", [x], "e0", "a@0"), _node("Sin", [x], "s0", "a@0")]
    nodes.append(_node("Add", [*nodes[0].outputs, *nodes[1].outputs], "sum"))
    nodes.append(_node("Exp", nodes[2].outputs, "e1", "a@1"))
    nodes.append(_node("Sin", nodes[2].outputs, "s1", "a@1"))
    nodes.append(_node("Neg", nodes[4].outputs, "last"))
    model = _model(x, nodes)
    expected = _result(model)
    assert not outline_modules(model, CLASSES, None, ())
    assert np.array_equal(_result(model), expected)
    assert [n.op_type for n in model.graph] == ["A", "Add", "A", "Neg"]


def test_a_parameter_stays_an_input() -> None:
    x, weight, constant = _value("x"), _value("a.weight"), _value("constant")
    for value in (weight, constant):
        value.const_value = ir.tensor(np.array([1, 3], "f4"), name=value.name)
    nodes = [_node("Mul", [x, weight], "product", "a@0")]
    nodes.append(_node("Add", [*nodes[0].outputs, constant], "last", "a@0"))
    model = _model(x, nodes)
    for value in (weight, constant):
        model.graph.register_initializer(value)
    expected = _result(model)
    outline_modules(model, CLASSES, None, ["a.weight"])
    assert np.array_equal(_result(model), expected)
    (function,) = model.functions.values()
    assert [value.name for value in function.inputs] == ["input", "weight"]
    assert [n.op_type for n in function] == ["Constant", "Mul", "Add"]
