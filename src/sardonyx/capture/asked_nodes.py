"""Nodes that a model asks for by their names (`sardonyx.ops.symbolic`), in a trace.

The tracer has no types for lists in which tensors are missing, nor for lists of lists, and notes
the numbers of sizes. It records an operator for each form of such calls, which takes the tensors,
and tensors of the sizes that the results have; the reader makes the call of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx._torch_private import OpOverload
from sardonyx.capture.bind import bind
from sardonyx.capture.graph import KEPT_NAMESPACE, Argument
from sardonyx.capture.kept_calls import KeptCall, Operand, calls_kept
from sardonyx.capture.traced_sizes import TracedSize

_ASK_FOR_NODES = frozenset(
    ("onnx_symbolic::_symbolic", "onnx_symbolic::_symbolic_multi_out", "sardonyx::symbolic")
)
"""The operators behind `symbolic` and `symbolic_multi_out`, PyTorch's and ours."""


@dataclass(frozen=True, slots=True)
class _SizesOf:
    tensor: Operand


class AskedNode(KeptCall):
    def _apart(self, argument: Argument, name: str) -> Any:
        if isinstance(argument, (list, tuple)) and any(type(a) is TracedSize for a in argument):
            # The tracer follows sizes into this.
            return _SizesOf(self._operand(torch.zeros(()).expand(argument), "Tensor", name))
        return super()._apart(argument, name)

    def _together(self, argument: Any, operands: Mapping[str, Any]) -> Any:
        if isinstance(argument, _SizesOf):
            return list(operands[argument.tensor.name].shape)
        return super()._together(argument, operands)


def asks_for_node(func: Any) -> bool:
    return isinstance(func, OpOverload) and func._schema.name in _ASK_FOR_NODES


def is_node_asked_for(func: Any) -> bool:
    return asks_for_node(func) and calls_kept() is not None


def call_as_operator(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A call of the model's, by the operator that stands for it in the trace."""
    kept = calls_kept()
    assert kept is not None
    call = AskedNode(op, bind(op, args, kwargs))
    return kept.defined(call)(*call.operands)


def call_in_trace(
    op: OpOverload, arguments: dict[str, Argument]
) -> tuple[OpOverload, dict[str, Argument]]:
    """The call that an operator of a trace stands for, where it does for one."""
    kept = calls_kept()
    if op.namespace != KEPT_NAMESPACE or kept is None:
        return op, arguments
    call = kept.of_operator(op)
    return call.op, call.arguments(arguments)
