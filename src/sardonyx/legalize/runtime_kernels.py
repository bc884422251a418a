"""What ONNX allows and ONNX Runtime does not run: operators, and types of others.

`onnxruntime_kernels.json`, which `tools/onnxruntime_kernels.py` generates, lists the kernels that
the runtime has. An operator that it has none for is written as at the opset below, or as ONNX
defines it. Other nodes are computed in the nearest supported type that holds every value of theirs,
by casts around them. No other type holds every float64: some operators are decomposed into ones
that take it, others lose precision in float32, and a note says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, Rule
from sardonyx.legalize.emitter import (
    Emitter,
    UniqueNames,
    constant_of,
    input_of,
    is_omitted,
    required_input,
    static_dim,
)
from sardonyx.legalize.function_bodies import expanded
from sardonyx.legalize.pipeline import BOUNDARIES, replace_node
from sardonyx.legalize.rewrites.float64 import FLOAT64_FORMS
from sardonyx.legalize.rewrites.random_numbers import RANDOM_FORMS
from sardonyx.legalize.rewrites.slicing import slice_by_gathering
from sardonyx.legalize.type_widening import cast_around, wider_types
from sardonyx.lower.onnx_types.legality import all_parameters_given, is_standard, signature_of
from sardonyx.lower.onnx_types.subgraphs import all_nodes, with_bodies

TABLE = Path(__file__).with_name("onnxruntime_kernels.json")
OLDEST_OPSET = 7
"""Of the versions in the table."""

Types = Mapping[str, ir.DataType]
"""The type that each type variable of an operator stands for."""

D: TypeAlias = ir.DataType

_LOSSY: Mapping[D, Sequence[D]] = {D.DOUBLE: (D.FLOAT,)}
_COST_OF_LOSS = 1000
_OPSET_OF_WRONG_SLICES = 10


def use_available_kernels(model: ir.Model) -> tuple[str, ...]:
    """Replace the operators that ONNX Runtime does not run, and cast around the nodes that it
    cannot run in their own types; notes for the user."""
    opset = model.opset_imports[""]
    names: UniqueNames | None = None
    missing: Counter[str] = Counter()
    narrowed: Counter[str] = Counter()
    nodes = list(all_nodes(model))
    for node in nodes:
        if opset == _OPSET_OF_WRONG_SLICES and _slices_a_named_dim(node):
            names = names or UniqueNames.beside(model)
            _replace(node, opset, names, slice_by_gathering)
            continue
        if _pools_what_is_padded(node):
            names = names or UniqueNames.beside(model)
            nodes += _replace(node, opset, names, _pool_apart)
            continue
        signature = signature_of(node.op_type, opset) if is_standard(node) else None
        rows = None if signature is None else _rows(node, signature.since_version)
        if signature is None or rows is None:
            continue
        if not rows:
            names = names or UniqueNames.beside(model)
            made = _replace(node, opset, names, _other_form(node, signature.since_version))
            missing[node.op_type] += not made
            nodes += made  # they may need replacing, too
            continue
        types = {
            parameter.type_name: value.dtype
            for value, parameter in all_parameters_given(node, signature)
            if value.dtype is not None and not is_omitted(value)
        }
        changes = _nearest(node.op_type, types, rows)
        if not changes:
            continue
        names = names or UniqueNames.beside(model)
        lossy = any(new in _LOSSY.get(types[variable], ()) for variable, new in changes.items())
        if lossy and node.op_type in FLOAT64_FORMS:
            _replace(node, opset, names, FLOAT64_FORMS[node.op_type])
        else:
            around = partial(cast_around, signature=signature, changes=changes)
            _replace(node, opset, names, around)
            narrowed[node.op_type] += lossy
    return (
        *_notes(f"operators that ONNX Runtime does not run at opset {opset}", +missing),
        *_notes("float64 computed in float32, where ONNX Runtime has no float64 kernel", +narrowed),
    )


def _other_form(node: ir.Node, version: int) -> Rule:
    """For an operator that the runtime lacks: one of ours, the rule of the boundary below the
    version, or ONNX's definition."""
    below = BOUNDARIES.get(version - 1)
    rule = RANDOM_FORMS.get(node.op_type) or (below and below.rules.get(node.op_type))
    is_known = not any(attribute.is_ref() for attribute in node.attributes.values())
    return rule if rule and is_known else expanded


def _pools_what_is_padded(node: ir.Node) -> bool:
    """ONNX Runtime 1.31 makes Pad and the pool after it one pool, which pads with -inf in place of
    0, and does not load where they are 1-D."""
    if not is_standard(node) or node.op_type not in ("MaxPool", "AveragePool"):
        return False
    return "auto_pad" not in node.attributes and _comes_from_pad(required_input(node, 0))


def _comes_from_pad(value: ir.Value | None) -> bool:
    """Also by operators that may do nothing, which the runtime removes first."""
    source = None if value is None else value.producer()
    if source is None or source.op_type not in _MAY_DO_NOTHING:
        return source is not None and source.op_type == "Pad"
    return any(map(_comes_from_pad, source.inputs))


_MAY_DO_NOTHING = frozenset(
    {"Add", "Cast", "Div", "Dropout", "Expand", "Flatten", "Identity", "Mul", "Reshape", "Squeeze"}
    | {"Sub", "Transpose", "Unsqueeze"}
)


def _pool_apart(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    """A pool that says that it does not pad is left alone; so is one of another node."""
    x = required_input(node, 0)
    is_plain = not any(node.attributes.get_ints("pads", []))
    if is_plain and not node.attributes.get_int("ceil_mode", 0):
        return b.again([x], auto_pad="VALID", pads=None)
    return b.again([b.Max(x)])


def _slices_a_named_dim(node: ir.Node) -> bool:
    """ONNX infers that Slice-10 leaves a dim with a name as it is, and the runtime believes it."""
    if not is_standard(node) or node.op_type != "Slice":
        return False
    x, axes = required_input(node, 0), constant_of(input_of(node, 3))
    return axes is not None and any(static_dim(x, int(axis)) is None for axis in axes)


def _replace(node: ir.Node, opset: int, names: UniqueNames, form: Rule) -> Sequence[ir.Node]:
    """The nodes made; none if the node has no such form."""
    assert node.graph is not None
    emitter = Emitter(node, opset, names)
    try:
        made = form(emitter, node)
    except InexpressibleError:
        made = None
    if made is None:
        return ()
    replace_node(node.graph, node, emitter, [made] if isinstance(made, ir.Value) else made)
    return list(with_bodies(emitter.nodes))


def _notes(what: str, counted: Counter[str]) -> tuple[str, ...]:
    uses = ", ".join(f"{op} ({n} uses)" if n > 1 else op for op, n in sorted(counted.items()))
    return (f"{what}: {uses}",) if counted else ()


@cache
def _table() -> dict[str, Any]:
    operators: dict[str, Any] = json.loads(TABLE.read_text())["operators"]
    return operators


def _rows(node: ir.Node, version: int) -> Sequence[Mapping[str, frozenset[ir.DataType]]] | None:
    """What the runtime runs this form of the operator in; None if that is everything."""
    for name, attribute in node.attributes.items():
        if attribute.type == ir.AttributeType.STRING and not attribute.is_ref():
            variant = _parsed(f"{node.op_type}[{name}={attribute.as_string()}]", version)
            if variant:
                return variant
    return _parsed(node.op_type, version)


@cache
def _parsed(form: str, version: int) -> Sequence[Mapping[str, frozenset[ir.DataType]]] | None:
    found = _table().get(form, {}).get(str(version))
    return found and [
        {
            variable: frozenset(ir.DataType[name.upper()] for name in names)
            for variable, names in row.items()
        }
        for row in found
    ]


def _nearest(
    op_type: str, types: Types, rows: Sequence[Mapping[str, frozenset[ir.DataType]]]
) -> dict[str, ir.DataType]:
    """The variables to give another type, so that a row has them all; none if one has already,
    or if none can be reached."""
    reached = [change for row in rows if (change := _change(op_type, types, row)) is not None]
    return min(reached, key=lambda found: found[0])[1] if reached else {}


def _change(
    op_type: str, types: Types, row: Mapping[str, frozenset[ir.DataType]]
) -> tuple[int, dict[str, ir.DataType]] | None:
    cost, changes = 0, {}
    for variable, dtype in types.items():
        allowed = row.get(variable)
        if allowed is None or dtype in allowed:
            continue
        exact = enumerate(wider_types(op_type, dtype), start=1)  # nearest first, with their prices
        options = (*exact, *enumerate(_LOSSY.get(dtype, ()), start=_COST_OF_LOSS))
        found = next(((price, new) for price, new in options if new in allowed), None)
        if found is None:
            return None
        cost += found[0]
        changes[variable] = found[1]
    return cost, changes
