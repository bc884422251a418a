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
    "Python complex": "a tensor becomes a Python complex number",
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
        self._told = 0
        self._inputs: set[int] = set()
        self._computed: set[int] = set()
        """Addresses in memory; another tensor may be where a computed one was."""

    def know_inputs(self, tensors: Iterable[torch.Tensor]) -> None:
        self._inputs = _addresses(tensors)

    def tracer_warns(self, text: str) -> None:
        if self._makes_literal and "results are registered as constants" in text:
            return
        self._tell_unless_nn_asks(
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
            self._tell_unless_nn_asks(_LEAVES_TORCH[name])
        elif any(self._is_lost(tensor) for tensor in given):
            self._tell("a tensor from outside of PyTorch is a constant")
        # x.new_tensor(1.0) asks the tensor for its dtype.
        taken = given[1:] if name.startswith("new_") else given
        numbers = {id(t): (t, _torch_private.use_count(t)) for t in taken if t.dim() == 0}
        told = self._told
        self._makes_literal = func in _OF_PYTHON_VALUES and not given
        try:
            result = func(*args, **kwargs)
        finally:
            self._makes_literal = False
        if self._told == told and given:
            if isinstance(result, (bool, float)) and not _asks_what_a_tensor_is(name):
                self._tell_unless_nn_asks(
                    f"{name}() of tensors becomes a Python {type(result).__name__}"
                )
            elif name == "__setitem__" or next(_tensors_in(result), None) is not None:
                made = [id(tensor) for tensor in _tensors_in(result)]
                self._tell_of_unused(name, [n for i, n in numbers.items() if i not in made])
        self._computed |= _addresses(_tensors_in(result)) - _addresses(given)
        return result

    def _is_lost(self, tensor: torch.Tensor) -> bool:
        """Whether the tracer takes for a constant what lies where a computed tensor does."""
        address = _torch_private.memory_address(tensor)
        return (
            address in self._inputs
            or (address in self._computed and _torch_private.has_foreign_memory(tensor))
        ) and _torch_private.is_traced_constant(tensor)

    def _tell_of_unused(self, name: str, numbers: Iterable[tuple[torch.Tensor, int]]) -> None:
        """A number that the call took, but not the record of the call, was read."""
        for tensor, uses in numbers:
            if _torch_private.use_count(tensor) == uses and _torch_private.is_of_data(tensor):
                self._tell(f"a tensor becomes a Python number in {name}()")

    def _tell_unless_nn_asks(self, what: str) -> None:
        if not is_asked_by_torch_nn(sys._getframe(1)):
            self._tell(what)

    def _tell(self, what: str) -> None:
        place = place_text(innermost_user_place(sys._getframe(1)))
        self.lines[_baked_line(what, place)] = None
        self._told += 1


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


def _addresses(tensors: Iterable[torch.Tensor]) -> set[int]:
    return set(map(_torch_private.memory_address, tensors)) - {0}


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
