"""What lower, legalize and optimize each leave behind, checked after every one of them.

- Every value is computed once, before it is read, by a node of the same graph or of one around it.
- Every node of a standard operator has a form that the schema of the opset knows: attributes,
  numbers of inputs and outputs, types. The domain of any other operator is imported.
- Every value has a type, and after lower a rank where the inputs of its node have one and decide
  it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.errors import InternalError
from sardonyx.lower.onnx_types.legality import is_standard, why_illegal
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of, with_bodies
from sardonyx.lower.provenance import SOURCE_KEY, WRITTEN_AT

INPUT_OF_SIZES = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""Which input has a size for each dim of the result."""
_OPEN_RANK = frozenset({"GatherND", "If", "Loop", "Scan", "SequenceAt", "Squeeze", "Unsqueeze"})


def verify_onnx(
    model: ir.Model,
    stage: str,
    opset: int,
    *,
    is_typed: bool = True,
    is_ranked: bool = False,
    is_named: bool = False,
) -> None:
    """Raises InternalError where a model of `opset` breaks a promise of the stage that wrote it.

    `is_typed`: whether values have types; those that a user wrote into the model may have none.
    `is_ranked`: whether values have ranks; rewrites know them as far as ONNX infers them.
    `is_named`: whether names are final, so that each stands for one value.
    """
    imports = {domain for domain in model.opset_imports if domain}
    called = {(domain, name) for domain, name, _ in model.functions}
    check = _Check(stage, opset, imports, called, is_ranked, is_named, is_typed)
    check.graph(model.graph, set(), set())
    check.is_typed = False  # functions of ONNX have no types
    for function in model.functions.values():
        check.graph(function.graph, set(), set())


def verify_locations(nodes: Iterable[ir.Node], stage: str) -> None:
    """Raises InternalError where a node does not say which line of the model it comes from."""
    for node in with_bodies(nodes):
        if SOURCE_KEY not in node.metadata_props:
            raise InternalError(f"{stage} left {_described(node)} without a source location")


@dataclass
class _Check:
    stage: str
    opset: int
    imports: set[str]
    called: set[tuple[str, str]]
    is_ranked: bool
    is_named: bool
    is_typed: bool

    def graph(self, graph: ir.Graph, outer: set[ir.Value], outer_names: set[str | None]) -> None:
        known = {*outer, *graph.inputs, *graph.initializers.values()}
        names = outer_names | {value.name for value in known} if self.is_named else set()
        for node in graph:
            for value in node.inputs:
                if value is not None and value not in known:
                    raise self._broken(node, f"reads {value.name}, which is not computed before it")
            for body in subgraphs_of(node):
                self.graph(body, known, names)
            self._node(node)
            known.update(node.outputs)
            if self.is_named:
                self._check_names(node, names)
        for value in graph.outputs:
            if value not in known:
                raise InternalError(
                    f"{self.stage} left output {value.name} of {graph.name}, which is not computed"
                )

    def _check_names(self, node: ir.Node, taken: set[str | None]) -> None:
        for value in node.outputs:
            if value.name and value.name in taken:
                raise self._broken(node, f"computes {value.name}, which is computed already")
            taken.add(value.name)

    def _node(self, node: ir.Node) -> None:
        if not is_standard(node):
            if node.domain not in self.imports and (node.domain, node.op_type) not in self.called:
                raise self._broken(node, f"is of domain {node.domain}, which is not imported")
            return
        reason = why_illegal(node, self.opset)
        # Nodes of users' functions have the form of the opset that the file will have.
        if reason is not None and node.meta.get(WRITTEN_AT, self.opset) == self.opset:
            raise self._broken(node, f"is not valid at opset {self.opset}: {reason}")
        for value in node.outputs:
            if (value.type is None or value.shape is None) and value.name and self.is_typed:
                self._unknown(node, value)

    def _unknown(self, node: ir.Node, value: ir.Value) -> None:
        """What a value has not, one of the inputs must lack too, or a user's function wrote it."""
        if WRITTEN_AT in node.meta:
            return
        inputs = [given for given in node.inputs if given is not None]
        if value.type is None and all(given.type is not None for given in inputs):
            raise self._broken(node, "gives a value without a type")
        if not self.is_ranked or not isinstance(value.type, ir.TensorType) or _has_open_rank(node):
            return
        if value.shape is None and all(given.shape is not None for given in inputs):
            raise self._broken(node, "gives a value without a rank")

    def _broken(self, node: ir.Node, how: str) -> InternalError:
        return InternalError(f"{self.stage} left {_described(node)}, which {how}")


def _has_open_rank(node: ir.Node) -> bool:
    """Whether the ranks of the results may depend on values, or on bodies, beside the inputs'."""
    position = INPUT_OF_SIZES.get(node.op_type)
    sizes = None if position is None else node.inputs[position]
    if sizes is None or sizes.shape is None:
        return position is not None or node.op_type in _OPEN_RANK
    return not isinstance(sizes.shape[0], int)


def _described(node: ir.Node) -> str:
    source = node.metadata_props.get(SOURCE_KEY)
    return f"{node.op_type} ({source})" if source else f"{node.op_type} {node.name or ''}".rstrip()
