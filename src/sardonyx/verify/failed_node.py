"""Which line of the model's code a runtime speaks of: it names the node that it cannot run, or the
operator that it does not have."""

from __future__ import annotations

import contextlib
import os
import re

import onnx_ir as ir

from sardonyx.aten.graph import SourceLocation
from sardonyx.lower.onnx_types.subgraphs import all_nodes
from sardonyx.lower.provenance import CODE_KEY, MODULE_KEY, SOURCE_KEY

_NAMES_A_NODE = (
    re.compile(r"Name:'(?P<name>[^']+)'"),
    re.compile(r"node with name '(?P<name>[^']+)'"),
    re.compile(r"[Nn]ode ?\((?P<name>[^()]+)\)"),
    re.compile(r"[Nn]ode:(?P<name>\S+)"),
)
_NAMES_AN_OPERATOR = re.compile(r"(?P<domain>[\w.]*):(?P<op_type>\w+)\(-?\d+\) is not a registered")


def place_of_failed_node(source: str | os.PathLike[str] | ir.Model, error: Exception) -> str:
    """`encoder.head · my_model.py:57   h = torch.histc(x, bins=10)`, or nothing where the error
    names no node of ours: a runtime makes new ones of several."""
    text = str(error)
    names = {match["name"] for form in _NAMES_A_NODE for match in form.finditer(text)}
    operators = {(m["domain"], m["op_type"]) for m in _NAMES_AN_OPERATOR.finditer(text)}
    if not names and not operators:
        return ""
    if not isinstance(source, ir.Model):
        with contextlib.suppress(Exception):  # what cannot be loaded may not be read either
            source = ir.load(source)
    if not isinstance(source, ir.Model):
        return ""
    for node in all_nodes(source):
        is_named = node.name in names or (node.domain, node.op_type) in operators
        if is_named and SOURCE_KEY in node.metadata_props:
            properties = node.metadata_props
            file, _, line = properties[SOURCE_KEY].rpartition(":")
            number = int(line) if line.isdigit() else 0
            return SourceLocation(
                properties.get(MODULE_KEY, ""), "", file, number, properties.get(CODE_KEY, "")
            ).describe()
    return ""
