"""Names tell the module, are unique and follow from the graph alone."""

from __future__ import annotations

import io

import onnx
import onnx_ir as ir
import torch

from sardonyx.serialize.names import assign_names
from sardonyx.serialize.writer import write_model
from tests.serialize.models import initializer, model_of, tensor_value


def node(op_type: str, inputs, module: str | None, outputs=None, attributes=()) -> ir.Node:
    made = ir.Node(
        "", op_type, inputs, list(attributes), outputs=outputs, num_outputs=None if outputs else 1
    )
    if module is not None:
        made.metadata_props["sardonyx.module"] = module
    return made


def chain() -> ir.Model:
    x, y = tensor_value("x", 2), tensor_value("y", 2)
    first = node("Relu", [x], "features.0")
    second = node("Relu", first.outputs, "features.0")
    third = node("Neg", second.outputs, "")
    fourth = node("Neg", third.outputs, None)
    last = node("Add", fourth.outputs * 2, "head", outputs=[y])
    graph = ir.Graph(
        [x],
        [y],
        nodes=[first, second, third, fourth, last],
        opset_imports={"": 20},
        name="g",
    )
    return model_of(graph)


def test_nodes_are_named_after_modules_and_values_after_nodes():
    model = chain()
    assign_names(model)
    names = [each.name for each in model.graph]
    assert names == ["/features/0/Relu", "/features/0/Relu_1", "/Neg", "/Neg_1", "/head/Add"]
    outputs = [each.outputs[0].name for each in model.graph]
    assert outputs == [
        "/features/0/Relu_output_0",
        "/features/0/Relu_1_output_0",
        "/Neg_output_0",
        "/Neg_1_output_0",
        "y",
    ]
    assign_names(model)
    assert [each.name for each in model.graph] == names


def test_names_of_the_interface_are_never_taken():
    x = tensor_value("/Relu_output_0", 2)
    graph = ir.Graph([x], [], nodes=[], opset_imports={"": 20}, name="g")
    weight = initializer(graph, "/Add_output_0", torch.ones(2))
    relu = node("Relu", [x], "")
    add = node("Add", [relu.outputs[0], weight], "")
    graph.extend([relu, add])
    add.outputs[0].name = "/Relu_output_0_1"
    graph.outputs.append(add.outputs[0])
    model = model_of(graph)
    assign_names(model)
    assert (x.name, weight.name, graph.outputs[0].name) == (
        "/Relu_output_0",
        "/Add_output_0",
        "/Relu_output_0_1",
    )
    assert relu.outputs[0].name == "/Relu_output_0_2"


def test_an_output_not_asked_for_stays_nameless():
    x, y = tensor_value("x", 2), tensor_value("y", 2)
    split = ir.Node("", "Dropout", [x], outputs=[y, ir.Value(name="")])
    graph = ir.Graph([x], [y], nodes=[split], opset_imports={"": 20}, name="g")
    assign_names(model_of(graph))
    assert split.outputs[1].name == ""


def branch(name: str, x: ir.Value) -> ir.Graph:
    inner = node("Neg", [x], "gate")
    graph = ir.Graph([], [inner.outputs[0]], nodes=[inner], name=name)
    weight = initializer(graph, "scale", torch.ones(2))
    outer = node("Mul", [inner.outputs[0], weight], "gate")
    graph.append(outer)
    graph.outputs[0] = outer.outputs[0]
    return graph


def test_subgraphs_are_unique_in_the_whole_model():
    x, y = tensor_value("x", 2), tensor_value("y", 2)
    cond = tensor_value("c", dtype=ir.DataType.BOOL)
    branches = [ir.AttrGraph(name, branch(name, x)) for name in ("then_branch", "else_branch")]
    if_ = node("If", [cond], "gate", outputs=[y], attributes=branches)
    graph = ir.Graph([x, cond], [y], nodes=[if_], opset_imports={"": 20}, name="g")
    model = model_of(graph)
    assign_names(model)
    then_graph, else_graph = (attribute.as_graph() for attribute in branches)
    assert (then_graph.name, else_graph.name) == ("/gate/If_then_branch", "/gate/If_else_branch")
    assert list(then_graph.initializers) == ["scale"]
    assert list(else_graph.initializers) == ["scale_1"]
    names = [
        value.name for each in ir.traversal.RecursiveGraphIterator(graph) for value in each.outputs
    ]
    assert len(set(names)) == len(names) == 5
    stream = io.BytesIO()
    write_model(model, stream)
    onnx.checker.check_model(onnx.load_from_string(stream.getvalue()), full_check=True)


def test_loop_inputs_and_functions_have_their_own_names():
    iteration = tensor_value("i", dtype=ir.DataType.INT64)
    going = tensor_value("c", dtype=ir.DataType.BOOL)
    state = tensor_value("s", 2)
    keep, step = node("Identity", [going], ""), node("Neg", [state], "")
    body = ir.Graph(
        [iteration, going, state],
        [keep.outputs[0], step.outputs[0]],
        nodes=[keep, step],
        name="body",
    )
    count = tensor_value("i", dtype=ir.DataType.INT64)
    x, y = tensor_value("x", 2), tensor_value("y", 2)
    loop = node("Loop", [count, None, x], "", outputs=[y], attributes=[ir.AttrGraph("body", body)])
    graph = ir.Graph([count, x], [y], nodes=[loop], opset_imports={"": 20}, name="g")
    a, b = ir.Value(name="i"), ir.Value(name="y")
    inner = [node("Relu", [a], ""), node("Relu", [a], "", outputs=[b])]
    function = ir.Function(
        "local",
        "F",
        graph=ir.Graph([a], [b], nodes=inner, opset_imports={"": 20}),
        attributes=[],
    )
    assign_names(model_of(graph, functions=[function]))
    assert [value.name for value in body.inputs] == [f"/Loop_body_input_{i}" for i in range(3)]
    assert [each.name for each in function] == ["/Relu", "/Relu_1"]
    assert (a.name, b.name) == ("i", "y")
