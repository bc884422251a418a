"""Each guarantee of the captured graph, broken once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch

from sardonyx.aten.control_flow import BRANCH, LOOP
from sardonyx.aten.graph import (
    READS_A_NUMBER,
    AtenGraph,
    Block,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    UnrankedType,
    Value,
)
from sardonyx.aten.verifier import verify
from sardonyx.errors import InternalError

aten = torch.ops.aten
ROWS = sympy.Symbol("s0", integer=True, nonnegative=True)
AT = SourceLocation("layer", "Layer", "model.py", 3, "x.relu()")


def value(name: str, *shape: Any, dtype: torch.dtype = torch.float32) -> Value:
    return Value(name, TensorType(dtype, shape or (ROWS, 2)))


def relu(of: Value, result: Value) -> Node:
    return Node(aten.relu.default, {"self": of}, [result], AT)


def branch(condition: Value, result: Value, *blocks: Block) -> Node:
    return Node(BRANCH, {"condition": condition}, [result], AT, blocks=list(blocks))


def loop(first: Value, results: list[Value], body: Block) -> Node:
    arguments = {"count": 3, "condition": None, "carried": [first]}
    return Node(LOOP, arguments, results, AT, blocks=[body])


class Example:
    """`x.relu()`, then a branch and a loop over it."""

    def __init__(self) -> None:
        self.x, self.y, self.condition = value("x"), value("y"), Value("c", BOOL)
        self.weight = Value("w", TensorType(torch.float32, (2,)), constant=torch.zeros(2))
        then, otherwise, self.chosen = value("then"), value("otherwise"), value("chosen")
        self.then = Block([], [relu(self.y, then)], [then])
        self.otherwise = Block([], [relu(self.y, otherwise)], [otherwise])
        self.branch = branch(self.condition, self.chosen, self.then, self.otherwise)
        step, carried, after = Value("i", INDEX), value("carried"), value("after")
        self.body = Block([step, carried], [relu(carried, after)], [None, after, after])
        self.stacked = value("stacked", 3, ROWS, 2)
        self.loop = loop(self.chosen, [value("last"), self.stacked], self.body)
        self.graph = AtenGraph(
            [self.x, self.condition],
            [relu(self.x, self.y), self.branch, self.loop],
            [self.stacked],
            parameters={"w": self.weight},
            symbols={ROWS: SymbolSource(self.x, 0)},
        )


BOOL = TensorType(torch.bool, ())
INDEX = TensorType(torch.int64, ())


def test_a_sound_graph_passes() -> None:
    verify(Example().graph)


def _writes(e: Example) -> None:
    e.graph.nodes.append(Node(aten.relu_.default, {"self": e.y}, [value("z")], AT))


def _writes_in_block(e: Example) -> None:
    e.body.nodes.append(Node(aten.relu_.default, {"self": e.y}, [value("z")], AT))


def _marker(e: Example) -> None:
    e.graph.nodes.append(Node(READS_A_NUMBER, {"self": e.y}, [], AT))


def _argument_missing(e: Example) -> None:
    e.graph.nodes.append(Node(aten.add.Tensor, {"self": e.y, "other": e.y}, [value("z")], AT))


def _argument_out_of_order(e: Example) -> None:
    given = {"other": e.y, "self": e.y, "alpha": 1}
    e.graph.nodes.append(Node(aten.add.Tensor, given, [value("z")], AT))


def _no_location(e: Example) -> None:
    e.graph.nodes[0].location = None


def _read_before(e: Example) -> None:
    e.graph.nodes.insert(0, relu(e.y, value("z")))


def _read_from_finished_block(e: Example) -> None:
    e.graph.nodes.append(relu(e.then.outputs[0], value("z")))


def _output_not_computed(e: Example) -> None:
    e.graph.outputs.append(value("z"))


def _block_output_not_computed(e: Example) -> None:
    e.then.outputs = [value("z")]


def _final_content_not_computed(e: Example) -> None:
    e.graph.mutated.append(Mutation("w", "buffer", value("z"), AT))


def _computed_twice(e: Example) -> None:
    e.graph.nodes.append(relu(e.x, e.y))


def _no_dtype(e: Example) -> None:
    e.y.type = TensorType(None, e.y.shape)


def _no_rank(e: Example) -> None:
    e.y.type = TensorType(torch.float32, None)


def _size_without_source(e: Example) -> None:
    e.body.nodes.append(relu(e.y, value("z", sympy.Symbol("u0") + 1, 2)))


def _constant_of_another_type(e: Example) -> None:
    e.weight.constant = torch.zeros(2, dtype=torch.int64)


def _constant_of_another_type_is_read(e: Example) -> None:
    read = Value("k", TensorType(torch.float32, (2,)), constant=torch.zeros(2, 2))
    e.graph.nodes.append(relu(read, value("z", 2)))


def _unranked_is_read(e: Example) -> None:
    e.y.type = UnrankedType(torch.float32, ())


def _one_block(e: Example) -> None:
    e.branch.blocks.pop()


def _branch_with_input(e: Example) -> None:
    e.then.inputs.append(value("z"))


def _branch_of_another_dtype(e: Example) -> None:
    e.then.outputs = [Value("k", BOOL, constant=torch.tensor(True))]


def _branch_of_another_rank(e: Example) -> None:
    e.then.outputs = [e.weight]


def _loop_without_iteration_number(e: Example) -> None:
    e.body.inputs.pop(0)


def _loop_that_carries_nothing_on(e: Example) -> None:
    e.body.outputs.pop()


def _loop_that_changes_dtype(e: Example) -> None:
    e.body.outputs[1] = Value("k", BOOL, constant=torch.tensor(True))


def _blocks_of_another_operator(e: Example) -> None:
    e.graph.nodes[0].blocks = [e.then]


BROKEN: list[tuple[Callable[[Example], None], str]] = [
    (_writes, "writes its arguments"),
    (_writes_in_block, "writes its arguments"),
    (_marker, "writes its arguments"),
    (_argument_missing, "has arguments"),
    (_argument_out_of_order, "has arguments"),
    (_no_location, "no source location"),
    (_read_before, "not computed before"),
    (_read_from_finished_block, "not computed before"),
    (_output_not_computed, "not computed before"),
    (_block_output_not_computed, "not computed before"),
    (_final_content_not_computed, "the final content of w"),
    (_computed_twice, "computed twice"),
    (_no_dtype, "no dtype or no rank"),
    (_no_rank, "no dtype or no rank"),
    (_size_without_source, "no source gives the size"),
    (_constant_of_another_type, "constant of another type"),
    (_constant_of_another_type_is_read, "constant of another type"),
    (_unranked_is_read, "rank is not known"),
    (_one_block, "blocks that do not fit"),
    (_branch_with_input, "blocks that do not fit"),
    (_branch_of_another_dtype, "blocks that do not fit"),
    (_branch_of_another_rank, "blocks that do not fit"),
    (_loop_without_iteration_number, "blocks that do not fit"),
    (_loop_that_carries_nothing_on, "blocks that do not fit"),
    (_loop_that_changes_dtype, "blocks that do not fit"),
    (_blocks_of_another_operator, "blocks that do not fit"),
]


@pytest.mark.parametrize(("break_it", "message"), BROKEN, ids=[f.__name__ for f, _ in BROKEN])
def test_a_broken_guarantee_is_found(break_it: Callable[[Example], None], message: str) -> None:
    example = Example()
    break_it(example)
    with pytest.raises(InternalError, match=message):
        verify(example.graph)
