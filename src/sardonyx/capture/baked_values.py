"""Tells of the computed values that a trace turned into constants."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sardonyx import _torch_private
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.location import (
    Place,
    innermost_user_place,
    is_asked_by_torch_nn,
    place_text,
    shortened,
)
from sardonyx.capture.watched_calls import Call, WatchingMode, addresses, tensors_in
from sardonyx.errors import CaptureError, format_message

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
    "results are registered as constants": "a tensor made of Python values is a constant",
    "Using len": "len() of a tensor is a constant",
    "Python list": "a tensor becomes a Python list",
}
"""By what the tracer's own warning says."""


_IDENTIFIED = "a comparison of sizes is in no call, and lost if `is` looks at it"
_MAKES_STRINGS = "a tensor becomes a Python string"
_OF_A_CONSTANT = "torch.from_numpy results"
"""A warning that tells nothing: an array with values of a tensor was warned of when it was made."""
_SHOWN_VALUES = 3


@dataclass(frozen=True, slots=True)
class BakedValue:
    """What a line of the model's code read, and the recording holds as it was."""

    place: Place
    reads: tuple[str, ...]
    """What became of tensors there: "a tensor becomes a Python int"."""
    values: tuple[str, ...]
    """What was read, in order and as text; values that cannot be told in short are missing."""

    def __str__(self) -> str:
        value = f" ({listed(self.values)})" if self.values else ""
        return f"tracing bakes a value: {'; '.join(self.reads)}{value} at {place_text(self.place)}"

    def is_what(self, predicate: str) -> str:
        """`the baked value 3 at my_model.py:12 (n = int(x.sum())) is ...`, or values that are."""
        file, line, text = self.place
        what = f"{file}:{line} ({text})"
        if len(set(self.values)) > 1:
            return f"the baked values {listed(self.values)} at {what} are {predicate}"
        value = "".join(f" {value}" for value in self.values[:1])
        return f"the baked value{value} at {what} is {predicate}"


def listed(values: Iterable[str]) -> str:
    shown = list(dict.fromkeys(values))
    more = ["..."] if len(shown) > _SHOWN_VALUES else []
    return ", ".join([*shown[:_SHOWN_VALUES], *more])


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


class _Read:
    """What is known so far of the values that one line reads."""

    def __init__(self) -> None:
        self.what: dict[str, bool] = {}
        """Whether it follows from sizes alone, by what became of tensors."""
        self.values: list[str] = []


class BakedValues(WatchingMode):
    """Each place where tracing turns a computed value into a constant: as the tracer warns, and as
    seen in the calls it is silent about.

    Tensors made of Python values alone are none: where such a value was read off a tensor, the
    tracer warned then.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[Place, _Read] = {}
        self._makes_literal = False
        self._warned: list[str] | None = None
        """What the tracer warns of in the call that runs."""
        self._lost_at: Place | None = None
        """Where an operator failed: the tracer, which stops for its run, does not go on then."""
        self._inputs: set[int] = set()
        self._numbers: list[tuple[torch.Tensor, int]] = []
        """The tensors without dims that the call takes, and how often they were taken before."""
        self._computed: set[int] = set()
        """Addresses in memory; another tensor may be where a computed one was."""
        self._origins = _torch_private.TracedOrigins()

    def know_inputs(self, tensors: Iterable[torch.Tensor]) -> None:
        self._inputs = addresses(tensors)

    def found_in(self, graph: AtenGraph) -> list[BakedValue]:
        """All of it but for loops over dims of a fixed size, which always run as they ran, and
        sizes where every size is fixed."""
        static_loops = _static_loops(graph)
        found = []
        for place, read in self._found.items():
            kept = tuple(
                what
                for what, of_sizes in read.what.items()
                if not (what == _ITERATES and static_loops.get(place, False))
                and not (of_sizes and not graph.symbols)
            )
            if kept:
                found.append(BakedValue(place, kept, tuple(read.values)))
        return found

    @property
    def has_read_data(self) -> bool:
        """Whether Python has had values of tensors, and not just what follows from sizes."""
        return any(
            not of_sizes and what != _ITERATES
            for read in self._found.values()
            for what, of_sizes in read.what.items()
        )

    def tracer_warns(self, text: str) -> None:
        is_constant = _OF_A_CONSTANT in text or (
            self._makes_literal and "results are registered as constants" in text
        )
        if is_constant or is_asked_by_torch_nn(sys._getframe(1)):
            return
        what = next((short for key, short in _BAKES.items() if key in text), text.splitlines()[0])
        if self._warned is None:
            self._tell(what)
        else:
            self._warned.append(what)

    def before(self, call: Call) -> None:
        self._check_recorded()
        if not _torch_private.is_tracing():
            return
        if any(map(self._is_lost, call.given)):
            self._tell("a tensor from outside of PyTorch is a constant")
        # x.new_tensor(1.0) asks the tensor for its dtype.
        taken = call.given[1:] if call.name.startswith("new_") else call.given
        self._numbers = [(t, _torch_private.use_count(t)) for t in taken if t.dim() == 0]
        self._makes_literal = not call.given and call.func in _OF_PYTHON_VALUES
        self._warned = []

    @contextlib.contextmanager
    def recorded_to_the_end(self) -> Iterator[None]:
        yield
        self._numbers = []
        self._check_recorded()

    def _check_recorded(self) -> None:
        if self._lost_at is not None:
            raise CaptureError(
                format_message(
                    "the model goes on after a call that failed, which tracing cannot record",
                    [("at", place_text(self._lost_at)), ("try", 'capture="export"')],
                )
            )

    def failed(self) -> None:
        if self._warned is not None and not _torch_private.is_tracing():
            self._lost_at = innermost_user_place(sys._getframe(1))
        self._warned = None

    def after(self, call: Call) -> None:
        if self._warned is None:
            return
        warned, self._warned = self._warned, None
        if call.name in _LEAVES_TORCH and not is_asked_by_torch_nn(sys._getframe(1)):
            warned = [_LEAVES_TORCH[call.name]]
        if warned:
            self._tell_of_reads(warned, call.given, call.name, call.result)
        elif call.given:
            self._tell_of_silent_reads(call)
        self._computed |= call.new_addresses

    def answers_unread(self, places: Iterable[Place]) -> None:
        """Not even the example has what a Python boolean that is looked at by `is` leads to."""
        for place in places:
            self._found.setdefault(shortened(place), _Read()).what[_IDENTIFIED] = False

    def _is_lost(self, tensor: torch.Tensor) -> bool:
        """Whether the tracer takes for a constant what lies where a computed tensor does."""
        address = _torch_private.memory_address(tensor)
        return (
            address in self._inputs
            or (address in self._computed and _torch_private.has_foreign_memory(tensor))
        ) and _torch_private.is_traced_constant(tensor)

    def _tell_of_reads(
        self, warned: list[str], given: list[torch.Tensor], name: str, result: Any
    ) -> None:
        origins = set(map(self._origins.of, given))
        if origins == {"constant"}:
            return
        of_sizes = bool(given) and "data" not in origins
        value = text_of_read(name, given, result)
        if isinstance(result, str):  # made of several reads
            warned = [_MAKES_STRINGS]
        for what in dict.fromkeys(warned):
            self._tell(what, value, of_sizes=of_sizes)
            value = None

    def _tell_of_silent_reads(self, call: Call) -> None:
        result = call.result
        if isinstance(result, (bool, float)) and not asks_what_a_tensor_is(call.name):
            if not is_asked_by_torch_nn(sys._getframe(1)):
                becomes = f"{call.name}() of tensors becomes a Python {type(result).__name__}"
                self._tell_of_reads([becomes], call.given, call.name, result)
        elif self._numbers:
            made = [id(tensor) for tensor in tensors_in(result)]
            if made or call.name == "__setitem__":
                self._tell_of_unused(call.name, [n for n in self._numbers if id(n[0]) not in made])

    def _tell_of_unused(self, name: str, numbers: Iterable[tuple[torch.Tensor, int]]) -> None:
        """A number that the call took, but not the record of the call, was read."""
        for tensor, uses in numbers:
            if _torch_private.use_count(tensor) == uses and self._origins.of(tensor) == "data":
                with _torch_private.tracing_paused():
                    value = text_of_read(name, (), tensor.item())
                self._tell(f"a tensor becomes a Python number in {name}()", value)

    def _tell(self, what: str, value: str | None = None, *, of_sizes: bool = False) -> None:
        place = shortened(innermost_user_place(sys._getframe(1)))
        read = self._found.setdefault(place, _Read())
        read.what[what] = read.what.get(what, True) and of_sizes
        if value is not None:
            read.values.append(value)


_OF_PYTHON_VALUES = (torch.tensor, torch.as_tensor, torch.asarray)
_LEAVES_TORCH = {
    "__index__": _BAKES["Python index"],
    "__dlpack__": "a tensor leaves PyTorch by DLPack",
}
"""Calls of which the tracer is silent, as range(n)."""
_LONGEST_TEXT = 40


def asks_what_a_tensor_is(name: str) -> bool:
    """Whether a call that gives a Python value looks at no data."""
    return (name.startswith(("is_", "has_", "__get__")) and name != "is_nonzero") or (
        name in ("_is_view", "_has_compatible_shallow_copy_type", "q_scale")
    )


def text_of_read(name: str, args: Sequence[Any], result: Any) -> str | None:
    """What the call of a function read off tensors, in short; None where it gives no value."""
    if name == "__iter__" and isinstance(args[0], torch.Tensor):
        return f"{args[0].shape[0]} times"
    if isinstance(result, list) and result:
        result = np.asarray(result)
    if isinstance(result, np.ndarray):
        first = [_text(value) for value in result.reshape(-1)[:_SHOWN_VALUES].tolist()]
        if result.ndim == 1 and result.size <= _SHOWN_VALUES:
            return f"[{', '.join(first)}]"
        return f"[{', '.join([*first, '...'])}] of shape {list(result.shape)}"
    return _text(result) if isinstance(result, (int, float, complex, str, list)) else None


def _text(value: Any) -> str:
    if isinstance(value, (float, complex)):
        return f"{value:.6g}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def _static_loops(graph: AtenGraph) -> dict[Place, bool]:
    """Whether the tensors that are taken apart at a place have as many parts in every run."""
    static: dict[Place, bool] = {}
    for node in graph.nodes:
        if node.op is torch.ops.aten.unbind.int:
            tensor, at = node.arguments["self"], node.location
            place = shortened((at.file, at.line, at.text))
            fixed = isinstance(tensor.shape[node.arguments["dim"]], int)
            static[place] = static.get(place, True) and fixed
    return static
