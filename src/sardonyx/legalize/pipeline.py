"""`legalize`: one opset boundary after the other, then a check of every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module

import onnx
import onnx_ir as ir

from sardonyx.errors import (
    InternalError,
    InvalidOptionError,
    UnsupportedOpsetError,
    format_message,
)
from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import (
    ORIGIN,
    Emitter,
    UniqueNames,
    infer_output_types,
    is_omitted,
)
from sardonyx.legalize.function_bodies import expanded
from sardonyx.legalize.stored_constants import store_constants
from sardonyx.legalize.type_widening import in_wider_types
from sardonyx.lower.onnx_types.legality import (
    form_of,
    is_standard,
    lowest_opset_for,
    means_another_thing,
    newest_opset,
    ops_changed_by,
    schema_of,
    signature_of,
    why_illegal,
)
from sardonyx.lower.onnx_types.subgraphs import all_nodes, roots_of, subgraphs_of
from sardonyx.lower.provenance import CODE_KEY, MODULE_KEY, SOURCE_KEY, WRITTEN_AT
from sardonyx.options import DEFAULT_OPSET

BOUNDARIES: dict[int, Boundary] = {
    opset: import_module(f"sardonyx.legalize.opset_{opset + 1}_to_{opset}").BOUNDARY
    for opset in (*range(7, 21), *range(22, 28))
}
"""What has no file, the boundary between 22 and 21, only widens types."""
_FIRST_OPSET_WITHOUT_RANKS = 13
SUPPORTED_OPSETS = range(min(BOUNDARIES), newest_opset() + 1)


def supported_opset(given: int | None) -> int:
    """The target opset for the option `given`."""
    opset = DEFAULT_OPSET if given is None else given
    if type(opset) is not int or opset not in SUPPORTED_OPSETS:
        raise InvalidOptionError(
            f"opset_version={opset!r} is not supported:"
            f" {min(SUPPORTED_OPSETS)} to {max(SUPPORTED_OPSETS)} are"
        )
    return opset


@dataclass(frozen=True)
class _Refusal:
    """A node that the target opset cannot express."""

    op_type: str
    reason: str
    lowest_opset: int | None
    place: str


def legalize(model: ir.Model, opset: int) -> None:
    """Rewrite `model` in place so that it is valid at `opset`.

    Raises UnsupportedOpsetError, naming every operator that cannot be expressed there.
    """
    if opset not in SUPPORTED_OPSETS:
        raise UnsupportedOpsetError(
            f"opset {opset} is not supported: choose one from {SUPPORTED_OPSETS[0]} "
            f"to {SUPPORTED_OPSETS[-1]}"
        )
    current = model.opset_imports.get("", newest_opset())
    if current < opset:
        raise InternalError(f"a model of opset {current} cannot be legalized up to opset {opset}")
    refused: dict[ir.Node, _Refusal] = {}
    names = UniqueNames.beside(model)
    if opset < _FIRST_OPSET_WITHOUT_RANKS:
        for graph in roots_of(model):
            _complete_ranks(graph, current)
    for step in range(current - 1, opset - 1, -1):
        descent = _Descent(step, names, refused)
        for graph in roots_of(model):
            descent.cross(graph)
    _declare_opset(model, opset)
    store_constants(model)
    for node in all_nodes(model):
        if node in refused:
            continue
        written_at = node.meta.get(WRITTEN_AT, current)
        if written_at < opset and (reason := means_another_thing(node, written_at, opset)):
            refused[node] = _refusal(node, reason, None)
        elif (reason := why_illegal(node, opset)) is not None:
            refused[node] = _refusal(node, reason, lowest_opset_for(node, opset))
    if refused:
        refusals = list(refused.values())
        raise UnsupportedOpsetError(_message(opset, refusals), [r.op_type for r in refusals])


def _complete_ranks(graph: ir.Graph, opset: int) -> None:
    """Infer the shapes of values that have none, of nodes of `opset`: old forms of operators name
    every axis."""
    for node in graph:
        for subgraph in subgraphs_of(node):
            _complete_ranks(subgraph, opset)
        lacking = [v for v in node.outputs if v.shape is None and not is_omitted(v)]
        if not lacking or not is_standard(node):
            continue
        types = [value.type for value in node.outputs]
        infer_output_types(node, opset)
        for value, type_ in zip(node.outputs, types, strict=True):
            value.type = type_ or value.type


class _Descent:
    """Takes nodes from opset `opset + 1` to `opset`."""

    def __init__(self, opset: int, names: UniqueNames, refused: dict[ir.Node, _Refusal]) -> None:
        self._opset = opset
        self._names = names
        self._refused = refused
        self._boundary = BOUNDARIES.get(opset, Boundary(opset))
        self._changed = ops_changed_by(opset + 1)
        self._valid_forms: set[Hashable] = set()

    def cross(self, graph: ir.Graph) -> None:
        for node in tuple(graph):
            self._cross_node(graph, node)

    def _cross_node(self, graph: ir.Graph, node: ir.Node) -> None:
        for subgraph in subgraphs_of(node):
            self.cross(subgraph)
        is_changed = node.op_type in self._changed and is_standard(node)
        if is_changed and self._is_above(node) and form_of(node) not in self._valid_forms:
            self._rewrite(graph, node)

    def _is_above(self, node: ir.Node) -> bool:
        written_at = node.meta.get(WRITTEN_AT)
        return node not in self._refused and (written_at is None or written_at > self._opset)

    def _rewrite(self, graph: ir.Graph, node: ir.Node) -> None:
        emitter = Emitter(node, self._opset, self._names)
        try:
            replacements = self._replacements(emitter, node)
        except InexpressibleError as error:
            if not self._expand(graph, node):
                self._refused[node] = _refusal(node, str(error), self._opset + 1)
            return
        if replacements is not None:
            replace_node(graph, node, emitter, replacements)

    def _expand(self, graph: ir.Graph, node: ir.Node) -> bool:
        """Put ONNX's definition, of the upper opset, in place of the node, if it may be."""
        upper = Emitter(node, self._opset + 1, self._names)
        is_defined = node.op_type in self._boundary.functions
        outputs = expanded(upper, node) if is_defined else None
        if outputs is None:
            return False
        replace_node(graph, node, upper, outputs)
        for made in upper.nodes:
            self._cross_node(graph, made)
        return True

    def _replacements(self, emitter: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
        for value in (*node.inputs, *node.outputs):
            dtype = None if value is None else value.dtype
            if dtype is not None and dtype in self._boundary.refused_dtypes:
                raise InexpressibleError(self._boundary.refused_dtypes[dtype])
        rule = self._boundary.rules.get(node.op_type)
        if rule is not None:
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    raise InexpressibleError(
                        f"its attribute {attribute.name} is a parameter of a function"
                    )
            replacements = rule(emitter, node)
            if replacements is not None:
                return [replacements] if isinstance(replacements, ir.Value) else replacements
        _drop_default_attributes(node, self._opset)
        signature = signature_of(node.op_type, self._opset)
        widened = None if signature is None else in_wider_types(emitter, node, signature)
        if widened is not None:
            return widened
        if (reason := why_illegal(node, self._opset)) is not None:
            if node.op_type == "Constant":  # those of types that it lacks are stored in the end
                return None
            is_new = signature is None
            raise InexpressibleError(f"it came with opset {self._opset + 1}" if is_new else reason)
        if rule is None:
            self._valid_forms.add(form_of(node))
        return None


def _drop_default_attributes(node: ir.Node, opset: int) -> None:
    """Remove attributes that the lower version lacks and that only state their default."""
    lower, upper = schema_of(node.op_type, opset), schema_of(node.op_type, opset + 1)
    if lower is None or upper is None:
        return
    for name, attribute in tuple(node.attributes.items()):
        if name in lower.attributes or name not in upper.attributes or attribute.is_ref():
            continue
        default = upper.attributes[name].default_value
        if default.type != onnx.AttributeProto.UNDEFINED and (
            ir.serde.deserialize_attribute(default).value == attribute.value
        ):
            del node.attributes[name]


def replace_node(
    graph: ir.Graph,
    node: ir.Node,
    emitter: Emitter,
    replacements: Sequence[ir.Value],
) -> None:
    """Put the emitted nodes where `node` is, with one of their values for each of its outputs."""
    emitted = {value for new_node in emitter.nodes for value in new_node.outputs}
    for old, new in zip(node.outputs, replacements, strict=True):
        if is_omitted(old):
            continue
        if new not in emitted:  # an input of the node, or a value given twice
            new = emitter.Identity(new)
        emitted.discard(new)
        name, old.name = old.name, None
        new.name = name
        new.type = old.type or new.type
        new.shape = new.shape if old.shape is None else old.shape
        new.metadata_props.update(old.metadata_props)
        new.meta.update(old.meta)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.insert_before(node, emitter.nodes)
    graph.remove(node, safe=True)


def _declare_opset(model: ir.Model, opset: int) -> None:
    for graph in roots_of(model):
        graph.opset_imports[""] = opset
    imports = [onnx.helper.make_opsetid("", opset)]
    # Model-local functions came with IR version 8; before 4, every weight was an input.
    oldest = 8 if model.functions else 4
    model.ir_version = max(onnx.helper.find_min_ir_version_for(imports), oldest)


def _refusal(node: ir.Node, reason: str, lowest_opset: int | None) -> _Refusal:
    provenance = node.metadata_props
    where = [provenance.get(MODULE_KEY), provenance.get(SOURCE_KEY)]
    place = " · ".join(part for part in where if part) or f"node {node.name}"
    code = provenance.get(CODE_KEY)
    origin = node.meta.get(ORIGIN)
    op_type = node.op_type if origin in (None, node.op_type) else f"{node.op_type} (of {origin})"
    return _Refusal(op_type, reason, lowest_opset, f"{place}   {code}" if code else place)


def _message(opset: int, refusals: Sequence[_Refusal]) -> str:
    counted = Counter(refusals)
    rows: list[tuple[str, list[str]]] = []
    for refusal, count in counted.items():
        lowest = refusal.lowest_opset
        needs = f"; needs opset {lowest}" if lowest else "; no newer opset has it either"
        uses = f" ({count} uses)" if count > 1 else ""
        rows.append((refusal.op_type, [refusal.reason + needs + uses, refusal.place]))
    lowest_opsets = [refusal.lowest_opset for refusal in refusals]
    advice = []
    if all(lowest_opsets):
        advice.append(f"opset_version={max(lowest for lowest in lowest_opsets if lowest)}")
    operators = "operator" if len(refusals) == 1 else "operators"
    headline = f"opset {opset} cannot express {len(refusals)} {operators} of this model"
    return format_message(headline, [*rows, ("try", advice)])
