"""Calls that a trace records without running them, and the values that they would have had."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch

from sardonyx._torch_private.memory import memory_address
from sardonyx._torch_private.tracing import (
    READS_NUMBERS,
    TracedOrigins,
    may_have_size_of_data,
    tracing_paused,
)

_Graph = Any
_NO_OVERLAP = 0


def recorded_on_empty_batches(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    batches: Collection[int],
) -> Any:
    """Records a call, and gives zeros that are like its results.

    `batches` are the positions of the arguments along whose first dim the call treats one entry
    after the other. The results lie in memory as new tensors do; one that is an argument which the
    call writes is that argument.
    """
    empty = {position: _empty_batch(args[position]) for position in batches}
    results = func(*(empty.get(p, a) for p, a in enumerate(args)), **kwargs)

    def like_result(made: torch.Tensor) -> torch.Tensor:
        for position, batch in empty.items():
            if batch is made:
                return _standing_for(made, args[position])
        with tracing_paused():
            size = args[min(batches)].shape[0]
            zeros = _zeros((size, *made.shape[1:]), made.dtype)
        _standing_for(made, zeros)
        torch._C._get_value_trace(zeros).inferTypeFrom(zeros)  # type: ignore[attr-defined]
        return zeros

    if isinstance(results, tuple):
        return tuple(map(like_result, results))
    return like_result(results)


def _empty_batch(tensor: torch.Tensor) -> torch.Tensor:
    with tracing_paused():
        empty = tensor.narrow(0, 0, 0)
    return _standing_for(tensor, empty)


def _standing_for(recorded: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, which is in the trace what `recorded` is."""
    value = torch._C._get_value_trace(recorded)  # type: ignore[attr-defined]
    torch._C._set_value_trace(tensor, value)  # type: ignore[attr-defined]
    return tensor


def _zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """NumPy has the system give zeros, where torch.zeros writes them: much of it is never read."""
    strides = torch.empty(shape, device="meta").stride()
    memory = torch.from_numpy(np.zeros(math.prod(shape) * dtype.itemsize, np.uint8))
    zeros: torch.Tensor = torch.empty(0, dtype=dtype, device="cpu")
    return zeros.set_(memory.untyped_storage(), 0, shape, strides)


def holds_whatever_values(graph: _Graph, known: Collection[int]) -> bool:
    """Whether a recorded graph is the same for all values: it has no branch, reads no number off
    data, has no sizes that data decides, and no constant but Python's numbers and the tensors
    that lie at the known addresses."""
    origins = TracedOrigins()
    for node in graph.nodes():
        kind = node.kind()
        if kind == "prim::Constant":
            if node.hasAttribute("value") and node.kindOf("value") == "t":
                tensor = node.t("value")
                if tensor.dim() and memory_address(tensor) not in known:
                    return False
        elif kind in READS_NUMBERS:
            if origins.origin(node.inputsAt(0)) == "data":
                return False
        elif kind != "aten::index" and may_have_size_of_data(kind):
            return False
    return True


def give_values(
    graph: _Graph, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor | None]
) -> None:
    """Runs a recorded graph; writes its last results to the tensors."""
    values = torch._C._jit_interpret_graph(graph, tuple(inputs))  # type: ignore[attr-defined]
    for tensor, value in zip(tensors, values[len(values) - len(tensors) :], strict=True):
        if tensor is None:
            continue
        if torch._debug_has_internal_overlap(tensor) == _NO_OVERLAP:
            tensor.copy_(value)
        else:
            tensor.data = value


def without_last_results(graph: _Graph, count: int) -> None:
    """Takes out of a recorded graph its last results, and what only these need."""
    results = next(iter(graph.outputs()))
    node = results.node()
    for _ in range(count):
        node.removeInput(node.inputsSize() - 1)
    results.setType(torch._C.TupleType([value.type() for value in node.inputs()]))
    torch._C._jit_pass_dce(graph)
