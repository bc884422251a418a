"""ONNX forms that the caller of an export brings: they come before those of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx_ir as ir

from sardonyx.aten.graph import Node, Value
from sardonyx.lower.builder import Builder


@dataclass(frozen=True, slots=True)
class Call:
    """One node of the captured graph, for a custom lowering."""

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
class Fallback:
    """A form for operators that have none, instead of an error."""

    form: CustomForm
    serves: Callable[[str], bool]
    """Whether it can write the operator of that name."""
    replaces_all: bool
    """Whether it also writes operators that the library has a form for."""


@dataclass(frozen=True, slots=True)
class CustomForms:
    forms: Mapping[str, CustomForm] = field(default_factory=dict)
    """By operator: `aten::add.Tensor`, or `aten::add` for every overload without an entry."""
    domain_versions: Mapping[str, int] = field(default_factory=dict)
    """The versions of custom domains; 1 where none is given."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Why an operator has no custom form here although the caller brought one."""
    trainable: frozenset[str] = frozenset()
    """The names of the parameters that require gradients."""
    fallback: Fallback | None = None

    def find(self, name: str) -> CustomForm | None:
        """The form that comes before the library's."""
        if self.fallback is None and not self.forms:
            return None
        form = self.forms.get(name) or self.forms.get(name.partition(".")[0])
        replaces = self.fallback is not None and self.fallback.replaces_all
        return form or (self.last_resort(name) if replaces else None)

    def last_resort(self, name: str) -> CustomForm | None:
        """The form for an operator that neither the caller nor the library has one for."""
        if self.fallback is None or not self.fallback.serves(name):
            return None
        return self.fallback.form

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
