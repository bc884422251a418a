"""Each promise of the stages after capture, broken once."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import pytest
import torch

import sardonyx
import sardonyx.stages
from sardonyx.errors import InternalError
from sardonyx.lower.onnx_types.schemas import NEWEST_OPSET
from sardonyx.lower.onnx_types.verifier import verify_locations, verify_onnx
from sardonyx.optimize.pipeline import optimize

FLOAT = ir.TensorType(ir.DataType.FLOAT)


def value(name: str, type_: ir.TypeProtocol | None = FLOAT, dims: int | None = 1) -> ir.Value:
    return ir.Value(name=name, type=type_, shape=None if dims is None else ir.Shape([2] * dims))


def model_of(nodes: list[ir.Node], inputs: list[ir.Value], outputs: list[ir.Value]) -> ir.Model:
    graph = ir.Graph(
        inputs, outputs, nodes=nodes, name="graph", opset_imports={"": NEWEST_OPSET, "my": 1}
    )
    return ir.Model(graph, ir_version=10)


def relu(x: ir.Value, y: ir.Value, **attributes: float) -> ir.Node:
    return ir.node("Relu", [x], attributes, outputs=[y])


def valid() -> ir.Model:
    x, y = value("x"), value("y")
    return model_of([relu(x, y), ir.node("Mine", [y], domain="my")], [x], [y])


def read_too_early() -> ir.Model:
    x, y, z = value("x"), value("y"), value("z")
    return model_of([relu(y, z), relu(x, y)], [x], [z])


def output_of_nothing() -> ir.Model:
    x, y = value("x"), value("y")
    return model_of([relu(x, y)], [x], [y, value("z")])


def computed_twice() -> ir.Model:
    x, y, again = value("x"), value("y"), value("y")
    return model_of([relu(x, y), relu(x, again)], [x], [y])


def unknown_operator() -> ir.Model:
    x = value("x")
    return model_of([ir.node("Relux", [x])], [x], [])


def unknown_attribute() -> ir.Model:
    x, y = value("x"), value("y")
    return model_of([relu(x, y, alpha=1.0)], [x], [y])


def wrong_type() -> ir.Model:
    x, y = value("x", ir.TensorType(ir.DataType.BOOL)), value("y", ir.TensorType(ir.DataType.BOOL))
    return model_of([relu(x, y)], [x], [y])


def no_type() -> ir.Model:
    x, y = value("x"), value("y", None)
    return model_of([relu(x, y)], [x], [y])


def no_rank() -> ir.Model:
    x, y = value("x"), value("y", dims=None)
    return model_of([relu(x, y)], [x], [y])


def unknown_domain() -> ir.Model:
    x = value("x")
    return model_of([ir.node("Mine", [x], domain="other")], [x], [])


def test_a_valid_model_passes() -> None:
    verify_onnx(valid(), "lower", NEWEST_OPSET, is_ranked=True, is_named=True)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (read_too_early, "reads y, which is not computed before it"),
        (output_of_nothing, "output z of graph, which is not computed"),
        (computed_twice, "computes y, which is computed already"),
        (unknown_operator, "the operator does not exist there"),
        (unknown_attribute, "attribute alpha does not exist there"),
        (wrong_type, r"X may not be tensor\(bool\) there"),
        (no_type, "gives a value without a type"),
        (no_rank, "gives a value without a rank"),
        (unknown_domain, "domain other, which is not imported"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_broken_promise_is_found(broken: Callable[[], ir.Model], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verify_onnx(broken(), "lower", NEWEST_OPSET, is_ranked=True, is_named=True)


def test_a_node_says_where_it_comes_from() -> None:
    node = next(iter(valid().graph))
    with pytest.raises(InternalError, match="without a source location"):
        verify_locations([node], "lower")
    node.metadata_props["sardonyx.source"] = "model.py:1"
    verify_locations([node], "lower")


def test_what_optimization_does_to_an_old_opset_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gelu is an operator since opset 20."""

    def optimize_wrongly(model: ir.Model, *, fold_parameters: bool) -> None:
        optimize(model, fold_parameters=fold_parameters)
        next(iter(model.graph)).op_type = "Gelu"

    monkeypatch.setattr(sardonyx.stages, "optimize", optimize_wrongly)
    x = torch.ones(2)
    assert sardonyx.export(torch.nn.ReLU(), x, opset_version=20)
    with pytest.raises(InternalError, match=r"optimize left Gelu .*not valid at opset 17"):
        sardonyx.export(torch.nn.ReLU(), x, opset_version=17)
