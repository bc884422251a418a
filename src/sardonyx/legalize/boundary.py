"""The table of rules that take a model across one opset boundary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, constant_of, input_of, rank_of

# A rule returns the values that replace the node's outputs, or None to leave the node as it is.
Rule = Callable[[Emitter, ir.Node], "ir.Value | Sequence[ir.Value] | None"]


REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
"""The axes of ReduceSum, which is none of them, became an input earlier."""


class InexpressibleError(Exception):
    """Raised by a rule: this node has no form at the lower opset. Carries the reason."""


def known_rank(value: ir.Value, of: str = "input") -> int:
    """The rank of a node's input, which a rule cannot do without."""
    rank = rank_of(value)
    if rank is None:
        raise InexpressibleError(f"the rank of its {of} is not known")
    return rank


def known_dtype(value: ir.Value) -> ir.DataType:
    if value.dtype is None:
        raise InexpressibleError("its element type is not known")
    return value.dtype


def constant_axes(node: ir.Node, index: int = 1) -> list[int] | None:
    """The axes that an input of the node gives; None without it."""
    value = input_of(node, index)
    if value is None:
        return None
    axes = constant_of(value)
    if axes is None:
        raise InexpressibleError("its axes are computed by the model")
    return [int(axis) for axis in axes.reshape(-1)]


@dataclass(frozen=True)
class Boundary:
    """What happens to a model on its way from opset `opset + 1` to opset `opset`.

    Nodes that no rule rewrites stay as they are, or are refused: legality decides, node by node.
    `refused_dtypes` are types that no operator takes there, not even Cast. For what is left of the
    operators in `functions`, ONNX's own definition by other operators stands in.
    """

    opset: int
    functions: Collection[str] = ()
    refused_dtypes: Mapping[ir.DataType, str] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)

    def rewrite(self, *op_types: str) -> Callable[[Rule], Rule]:
        """Register a rule for operators that opset `self.opset + 1` added or changed."""

        def register(rule: Rule) -> Rule:
            for op_type in op_types:
                if op_type in self.rules:
                    raise ValueError(f"{op_type} has a rule to opset {self.opset} already")
                self.rules[op_type] = rule
            return rule

        return register
