"""ONNX forms that the caller of an export brings: they come before those of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx_ir as ir

from sardonyx.capture.graph import Node, Value
from sardonyx.lower.builder import Builder


@dataclass(frozen=True, slots=True)
class Call:
    """One node of the captured graph that a form is asked for."""

    b: Builder
    node: Node
    arguments: dict[str, Any]
    """By schema name; tensors are those of the ONNX graph."""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """The model's parameters and buffers."""
    trainable: frozenset[str] = frozenset()
    """The names of those that require gradients."""


CustomForm: TypeAlias = Callable[[Call], Any]
"""Writes a call and gives its results, as a lowering does; raises Refusal where it cannot."""


@dataclass(frozen=True, slots=True)
class CustomForms:
    forms: Mapping[str, CustomForm] = field(default_factory=dict)
    """By operator: `aten::add.Tensor`, or `aten::add` for every overload without one of its own."""
    domain_versions: Mapping[str, int] = field(default_factory=dict)
    """The versions of custom domains; 1 where none is given."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Why an operator has no custom form here although the caller brought one."""
    trainable: frozenset[str] = frozenset()
    """The names of the parameters that require gradients."""

    def find(self, name: str) -> CustomForm | None:
        if not self.forms:
            return None
        return self.forms.get(name) or self.forms.get(name.partition(".")[0])

    def hint(self, name: str) -> str:
        return self.hints.get(name) or self.hints.get(name.partition(".")[0], "")

    def imports(self, nodes: list[ir.Node], functions: Mapping[Any, ir.Function]) -> dict[str, int]:
        """The versions of the domains other than ONNX's own that these use."""
        bodies = [f.graph for f in functions.values()]
        used = {n.domain for body in bodies for n in ir.traversal.RecursiveGraphIterator(body)}
        for node in nodes:
            used.add(node.domain)
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
                    inner = ir.traversal.RecursiveGraphIterator(attribute.as_graph())
                    used.update(n.domain for n in inner)
        return {domain: self.domain_versions.get(domain, 1) for domain in sorted(used - {""})}


NO_CUSTOM_FORMS = CustomForms()
