"""The table of rules that take a model across one opset boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter

# A rule returns the values that replace the node's outputs, or None to leave the node as it is.
Rule = Callable[[Emitter, ir.Node], "ir.Value | Sequence[ir.Value] | None"]


class InexpressibleError(Exception):
    """Raised by a rule: this node has no form at the lower opset. Carries the reason."""


class Boundary:
    """What happens to a model on its way from opset `opset + 1` to opset `opset`.

    `refused` names the operators whose newer form has none at `opset`, with the reason. A form
    that `opset` does accept passes all the same: legality decides, node by node. `refused_dtypes`
    are types that no operator takes there, not even Cast.
    """

    def __init__(
        self,
        opset: int,
        refused: Mapping[str, str] | None = None,
        refused_dtypes: Mapping[ir.DataType, str] | None = None,
    ) -> None:
        self.opset = opset
        self.refused_dtypes: Mapping[ir.DataType, str] = dict(refused_dtypes or {})
        self.rules: dict[str, Rule] = {}
        self.refused: Mapping[str, str] = dict(refused or {})

    def rewrite(self, *op_types: str) -> Callable[[Rule], Rule]:
        """Register a rule for operators that opset `self.opset + 1` added or changed."""

        def register(rule: Rule) -> Rule:
            for op_type in op_types:
                if op_type in self.rules:
                    raise ValueError(f"{op_type} has a rule to opset {self.opset} already")
                self.rules[op_type] = rule
            return rule

        return register
