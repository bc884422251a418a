"""Tells of the computed values that a trace turned into constants."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.location import innermost_user_place, is_asked_by_torch_nn, place_text

_ITERATES = "a Python loop runs over a tensor"
_BAKES = {
    "Python boolean": "a tensor decides a Python branch",
    "Python integer": "a tensor becomes a Python int",
    "Python float": "a tensor becomes a Python float",
    "Python number": "a tensor becomes a Python number",
    "Python index": "a tensor becomes a Python index",
    "NumPy array": "a tensor becomes a NumPy array",
    "Iterating over a tensor": _ITERATES,
    "torch.from_numpy results": "a NumPy array becomes a constant",
    "results are registered as constants": "a tensor made of Python values is a constant",
    "Using len": "len() of a tensor is a constant",
    "Python list": "a tensor becomes a Python list",
}
"""By what the tracer's own warning says."""


@contextlib.contextmanager
def baked_values() -> Iterator[BakedValues]:
    """Keeps the tracer's warnings from the user, and notes them in what it gives."""
    watch = BakedValues()

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, torch.jit.TracerWarning):  # type: ignore[attr-defined]
            watch.tracer_warns(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield watch


class BakedValues(TorchFunctionMode):
    """One line for each place where tracing turns a computed value into a constant: as the tracer
    warns, and as seen in the calls it is silent about.

    Tensors made of Python values alone are none: where such a value was read off a tensor, the
    tracer warned then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, None] = {}
        self._makes_literal = False
        self._warnings = 0
        self._computed: set[int] = set()
        """Where in memory the inputs and what was made of them are."""

    def know_inputs(self, tensors: Iterable[torch.Tensor]) -> None:
        self._computed = set(map(_torch_private.memory_address, tensors)) - {0}

    def tracer_warns(self, text: str) -> None:
        self._warnings += 1
        if self._makes_literal and "results are registered as constants" in text:
            return
        self._tell(
            next((short for key, short in _BAKES.items() if key in text), text.splitlines()[0])
        )

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not _torch_private.is_tracing():
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        given = list(_tensors_in((*args, *kwargs.values())))
        if name in _LEAVES_TORCH:
            self._tell(_LEAVES_TORCH[name])
        elif any(self._is_lost(tensor) for tensor in given):
            self._tell("a tensor that comes from outside of PyTorch is a constant")
        numbers = {id(t): (t, _torch_private.use_count(t)) for t in given if t.dim() == 0}
        warned = self._warnings
        self._makes_literal = func in _OF_PYTHON_VALUES and not given
        try:
            result = func(*args, **kwargs)
        finally:
            self._makes_literal = False
        if self._warnings == warned and given:
            if isinstance(result, (bool, float)) and not _asks_what_a_tensor_is(name):
                self._tell(f"{name}() of tensors becomes a Python {type(result).__name__}")
            elif name == "__setitem__" or not _is_of(result, given):
                self._tell_of_unused(name, numbers.values())
        addresses = set(map(_torch_private.memory_address, _tensors_in(result)))
        self._computed |= addresses - set(map(_torch_private.memory_address, given)) - {0}
        return result

    def _is_lost(self, tensor: torch.Tensor) -> bool:
        """Whether the tracer takes for a constant what lies where a computed tensor does."""
        return _torch_private.memory_address(
            tensor
        ) in self._computed and _torch_private.is_traced_constant(tensor)

    def _tell_of_unused(self, name: str, numbers: Iterable[tuple[torch.Tensor, int]]) -> None:
        """A number that the call took, but not the record of the call, was read."""
        for tensor, uses in numbers:
            if _torch_private.use_count(tensor) == uses and _torch_private.is_of_data(tensor):
                self._tell(f"a tensor becomes a Python number in {name}()")

    def _tell(self, what: str) -> None:
        frame = sys._getframe(1)
        if not is_asked_by_torch_nn(frame):
            self.lines[_baked_line(what, place_text(innermost_user_place(frame)))] = None


_OF_PYTHON_VALUES = (torch.tensor, torch.as_tensor, torch.asarray)
_LEAVES_TORCH = {
    "__index__": _BAKES["Python index"],
    "__dlpack__": "a tensor leaves PyTorch by DLPack",
}
"""Calls of which the tracer is silent, as range(n)."""


def _asks_what_a_tensor_is(name: str) -> bool:
    """Whether a call that gives a Python value looks at no data."""
    return (name.startswith(("is_", "has_", "__get__")) and name != "is_nonzero") or (
        name in ("_is_view", "_has_compatible_shallow_copy_type", "q_scale")
    )


def _is_of(result: Any, given: list[torch.Tensor]) -> bool:
    """Whether a call gives no tensor that it made."""
    return all(any(tensor is g for g in given) for tensor in _tensors_in(result))


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, slice):
        yield from _tensors_in((value.start, value.stop, value.step))


def without_static_loops(baked: Iterable[str], graph: AtenGraph) -> list[str]:
    """What is baked but for loops over dims of a fixed size, which always run as they ran."""
    iterated: dict[str, bool] = {}
    for node in graph.nodes:
        if node.op is torch.ops.aten.unbind.int:
            tensor = node.arguments["self"]
            static = isinstance(tensor.shape[node.arguments["dim"]], int)
            at = node.location
            line = _baked_line(_ITERATES, place_text((at.file, at.line, at.text)))
            iterated[line] = iterated.get(line, True) and static
    return [line for line in baked if not iterated.get(line, False)]


def _baked_line(what: str, place: str) -> str:
    return f"tracing bakes a value: {what} at {place}"
