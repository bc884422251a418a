"""What every capture promises the lowering, checked once per export."""

from __future__ import annotations

from sardonyx.aten.graph import AtenGraph, Block, values_in
from sardonyx.aten.schema import parameters_of
from sardonyx.errors import InternalError


def check_contract(graph: AtenGraph) -> None:
    """No mutation, every argument named, every value typed and computed before it is read."""
    _check_block(graph, set())


def _check_block(block: Block, outer: set[int]) -> None:
    known = outer | {id(v) for v in block.inputs}
    for node in block.nodes:
        parameters = parameters_of(node.op)
        if any(p.is_written for p in parameters):
            raise InternalError(f"{node.name} writes its arguments after functionalization")
        if [p.name for p in parameters] != list(node.arguments):
            raise InternalError(f"{node.name} has arguments {list(node.arguments)}")
        for value in node.inputs():
            if id(value) not in known and value.constant is None:
                raise InternalError(f"{node.name} reads {value} before it is computed")
        for inner in node.blocks:
            _check_block(inner, known)
        known.update(id(o) for o in node.outputs)
    for output in block.outputs:
        for value in values_in(output):
            if id(value) not in known and value.constant is None:
                raise InternalError(f"output {value} is not computed")
