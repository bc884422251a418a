"""The tracer: what it records, and of which tensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch


class _CallNames(dict[Any, str]):
    """What the tracer asks for the name of a module when it is called: one for each call."""

    def __init__(self, paths: dict[Any, str]) -> None:
        super().__init__(paths)
        self._counts: dict[Any, int] = {}

    def __getitem__(self, module: Any) -> str:
        self._counts[module] = self._counts.get(module, -1) + 1
        return f"{super().__getitem__(module)}@{self._counts[module]}"

    def get(self, module: Any, default: Any = None) -> Any:
        return self[module] if module in self else default  # noqa: SIM401


def trace_graph(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], state: list[torch.Tensor]
) -> Any:
    """The graph that torch.jit.trace records, as a function of the inputs and then the state.

    torch.jit.trace itself makes a script module of every module first, which takes longer than the
    recording. None where PyTorch cannot clean up a graph without that: a Python bool in arithmetic
    is an argument that no overload has.
    """
    from torch.jit import _trace

    paths = {m: f"__module.{path}" if path else "__module" for path, m in module.named_modules()}
    outer, _trace._trace_module_map = _trace._trace_module_map, _CallNames(paths)
    try:
        graph, _ = torch._C._create_graph_by_tracing(
            lambda *tensors: module(*tensors[: len(inputs)]),
            [*inputs, *state],
            lambda _: "",
            False,
            False,
        )
    except RuntimeError as error:
        if "alias_analysis.cpp" not in str(error):
            raise
        return None
    finally:
        _trace._trace_module_map = outer
    torch._C._jit_pass_inline(graph)
    return graph


def is_tracing() -> bool:
    return bool(torch._C._is_tracing())


def traced_value(tensor: torch.Tensor) -> Any:
    """What stands for a tensor in the graph that is being traced; None where nothing can."""
    try:
        return torch._C._get_value_trace(tensor)  # type: ignore[attr-defined]
    except RuntimeError:  # it requires grad and is no input
        return None


def use_count(tensor: torch.Tensor) -> int:
    """How often the graph that is being traced takes a tensor."""
    value = traced_value(tensor)
    return 0 if value is None else len(value.uses())


def is_traced_constant(tensor: torch.Tensor) -> bool:
    value = traced_value(tensor)
    return value is not None and value.node().kind() == "prim::Constant"


def is_traced_as_a_copy(tensor: torch.Tensor) -> bool:
    """Whether the record of what made a tensor says that it has memory of its own."""
    value = traced_value(tensor)
    if value is None:
        return False
    node = value.node()
    while node.kind() in ("prim::ListUnpack", "prim::TupleUnpack"):
        node = node.input().node()
    if not node.kind().startswith("aten::"):
        return False
    _, _, results = node.schema().rpartition("->")
    return bool(results) and "(a" not in results and "(b" not in results


class TracedOrigins:
    """What the tensors of a graph that is being traced are computed from."""

    def __init__(self) -> None:
        self._of_fixed_size: set[Any] = set()
        """Nodes whose results have sizes that follow from the sizes of the inputs."""

    def of(self, tensor: torch.Tensor) -> str:
        """One of "data" (what the inputs hold, or a size that this decides), "sizes" (of the
        inputs, and nothing else) and "constant"."""
        value = traced_value(tensor)
        return "constant" if value is None else self.origin(value)

    def has_fixed_size(self, tensor: torch.Tensor) -> bool:
        """Whether no data decides the size of a tensor."""
        value = traced_value(tensor)
        return value is None or self._is_of_fixed_size(value)

    def origin(self, value: Any) -> str:
        origin = "constant"
        pending, seen = [value], set()
        while pending:
            node = pending.pop().node()
            if node in seen:
                continue
            seen.add(node)
            if node.kind() == "prim::Param":
                return "data"
            if node.kind() in ("aten::size", "aten::numel", "aten::dim"):
                origin = "sizes"
                if not self._is_of_fixed_size(node.inputsAt(0)):
                    return "data"
            else:
                pending.extend(_inputs_of(node))
        return origin

    def _is_of_fixed_size(self, value: Any) -> bool:
        pending, seen = [value], set()
        while pending:
            node = pending.pop().node()
            if node in seen or node in self._of_fixed_size:
                continue
            seen.add(node)
            kind = node.kind()
            if kind in READS_NUMBERS:
                if self.origin(node.inputsAt(0)) == "data":
                    return False
            elif may_have_size_of_data(kind) or (kind == "aten::where" and node.inputsSize() == 1):
                return False
            elif kind != "prim::Constant":
                pending.extend(_inputs_of(node))
        self._of_fixed_size |= seen
        return True


def _inputs_of(node: Any) -> list[Any]:
    """Without PyTorch's iterator, which takes ten times as long."""
    return [node.inputsAt(index) for index in range(node.inputsSize())]


READS_NUMBERS = frozenset(
    f"aten::{name}"
    for name in (
        "Bool",
        "Float",
        "FloatImplicit",
        "Int",
        "IntImplicit",
        "ScalarImplicit",
        "item",
    )
)
_OF_PYTHON_VALUES = frozenset(
    f"prim::{name}"
    for name in (
        "Constant",
        "GetAttr",
        "ListConstruct",
        "ListUnpack",
        "NumToTensor",
        "Param",
        "TupleConstruct",
        "TupleIndex",
        "TupleUnpack",
    )
)
_OF_DATA_WITHOUT_TAG = frozenset(
    f"aten::{name}"
    for name in (
        "_pack_padded_sequence",
        "_pad_packed_sequence",
        "_reshape_from_tensor",
        "_unsafe_index",
        "coalesce",
        "col_indices",
        "combinations",
        "crow_indices",
        "index",
        "indices",
        "nonzero_numpy",
        "one_hot",
        "tensor_split",
        "to_padded_tensor",
        "values",
    )
)


@functools.cache
def may_have_size_of_data(kind: str) -> bool:
    """Whether the results of an operator may have as many elements as the data says."""
    namespace, name = kind.split("::")
    if namespace == "prim":  # others call functions, or have blocks
        return kind not in _OF_PYTHON_VALUES
    if namespace != "aten" or kind in _OF_DATA_WITHOUT_TAG or "sparse" in name or "nested" in name:
        return True
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return True
    tags = (getattr(packet, overload).tags for overload in packet.overloads())
    return any(torch.Tag.dynamic_output_shape in given for given in tags)


@contextlib.contextmanager
def tracing_paused() -> Iterator[None]:
    """What runs in the body is no part of a trace that is being made."""
    if torch._C._dispatch_tls_is_dispatch_key_excluded("Tracer"):  # inside of what is recorded
        yield
        return
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)  # type: ignore[attr-defined]


@contextlib.contextmanager
def checks_answered(answer: Callable[[Any], Any]) -> Iterator[None]:
    """`torch._check` and the like get the answer to their condition, and not the condition: they
    take Python's own booleans only."""
    module: Any = torch
    original = module._check_with
    module._check_with = lambda error, condition, message: original(
        error, answer(condition), message
    )
    try:
        yield
    finally:
        module._check_with = original
