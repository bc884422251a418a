"""Calls that a trace records without running them, and the values that they would have had."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from sardonyx._torch_private.memory import memory_address
from sardonyx._torch_private.tracing import (
    READS_NUMBERS,
    TracedOrigins,
    may_have_size_of_data,
    traced_value,
    tracing_paused,
)

_Graph: TypeAlias = Any
CALLS_OF_SCRIPTS: tuple[tuple[type, str], ...] = tuple(
    (getattr(torch._C, name), "__call__") for name in ("ScriptFunction", "ScriptMethod")
)
"""What runs scripted functions and methods, of which no mode sees anything."""
_SCOPE = "prim::TracedModuleForward"
"""The calls of a module, while it is traced: a block of which all values are seen from outside."""


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
                return _standing_for(made, args[position], is_result=True)
        with tracing_paused():
            size = args[min(batches)].shape[0]
            if 0 in made.shape[1:]:
                raise RuntimeError(
                    "the result has no elements, which may be an error of a real run"
                )
            zeros = _zeros((size, *made.shape[1:]), made.dtype)
        return _standing_for(made, zeros, is_result=True)

    if isinstance(results, tuple):
        return tuple(map(like_result, results))
    return like_result(results)


def _empty_batch(tensor: torch.Tensor) -> torch.Tensor:
    with tracing_paused():
        empty = tensor.narrow(0, 0, 0)
    return _standing_for(tensor, empty)


def _standing_for(
    recorded: torch.Tensor, tensor: torch.Tensor, *, is_result: bool = False
) -> torch.Tensor:
    """`tensor`, which is in the trace what `recorded` is."""
    value = torch._C._get_value_trace(recorded)  # type: ignore[attr-defined]
    torch._C._set_value_trace(tensor, value)  # type: ignore[attr-defined]
    if is_result:
        value.inferTypeFrom(tensor)
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


def give_values_while_tracing(
    tensors: Iterable[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> None:
    """Runs what was recorded so far, and writes to the tensors what they stand for."""
    traced = [(tensor, traced_value(tensor)) for tensor in tensors]
    computed = [
        (tensor, value)
        for tensor, value in traced
        if value is not None and value.node().kind() != "prim::Constant"
    ]
    recorded = torch._C._get_tracing_state().graph()
    with tracing_paused(), torch._C.DisableTorchFunction():
        graph = _without_scopes(recorded, [value for _, value in computed])
        give_values(graph, inputs, [tensor for tensor, _ in computed])


def give_values(
    graph: _Graph,
    inputs: Sequence[torch.Tensor],
    tensors: Sequence[torch.Tensor | None],
    first: int = 0,
) -> None:
    """Runs a recorded graph; writes its results, from the one at a position on, to the tensors."""
    with torch.autocast("cpu", enabled=False), _disable_current_modes():
        values = torch._C._jit_interpret_graph(graph, tuple(inputs))  # type: ignore[attr-defined]
        first %= len(values)
        for tensor, value in zip(tensors, values[first : first + len(tensors)], strict=True):
            if tensor is not None:
                with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                    _write(value, tensor)


def _write(value: torch.Tensor, tensor: torch.Tensor) -> None:
    """Into the memory that it has, which others may share."""
    if _layout(value) == _layout(tensor):
        if value.data_ptr() != tensor.data_ptr():
            tensor.untyped_storage().copy_(value.untyped_storage())
        return
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if size > 1 and stride == 0:
            tensor, value = tensor.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
    tensor.copy_(value)


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tensor.stride(),
        tensor.storage_offset(),
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.untyped_storage().nbytes(),
    )


def functions_unwatched() -> contextlib.AbstractContextManager[None]:
    """No mode sees the calls in its body."""
    return torch._C.DisableTorchFunction()


def dispatch_mode_count() -> int:
    """Of the modes that see operators, and not just calls."""
    return torch._C._len_torch_dispatch_stack()


def _without_scopes(graph: _Graph, results: Iterable[Any]) -> _Graph:
    """A copy that gives these values, of a graph that is being traced."""
    flat: Any = torch._C.Graph()
    known = {}
    for value in graph.inputs():
        known[value.debugName()] = flat.addInput()
        known[value.debugName()].setType(value.type())

    def copy(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node.kind() == _SCOPE:
                for block in node.blocks():
                    copy(block.nodes())
                continue
            copied = flat.createClone(node, lambda value: known[value.debugName()])
            flat.appendNode(copied)
            for output, output_copied in zip(node.outputs(), copied.outputs(), strict=True):
                known[output.debugName()] = output_copied

    copy(graph.nodes())
    node = flat.create("prim::TupleConstruct", [known[value.debugName()] for value in results], 1)
    flat.appendNode(node)
    node.output().setType(torch._C.TupleType([value.type() for value in node.inputs()]))
    flat.registerOutput(node.output())
    torch._C._jit_pass_inline(flat)
    return flat


def without_last_results(graph: _Graph, count: int) -> None:
    """Takes out of a recorded graph its last results, and what only these need."""
    results = next(iter(graph.outputs()))
    node = results.node()
    for _ in range(count):
        node.removeInput(node.inputsSize() - 1)
    results.setType(torch._C.TupleType([value.type() for value in node.inputs()]))
    torch._C._jit_pass_dce(graph)
