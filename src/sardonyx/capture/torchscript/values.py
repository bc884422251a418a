"""What TorchScript's variables hold while a graph is read, besides tensors and constants.

A number is a Python number, a sympy expression of sizes, or a ComputedNumber. A tuple is a tuple.
Lists, dicts and objects are mutable and shared: a write of one variable is seen by every other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx.capture.graph import Argument, SequenceType, Value
from sardonyx.errors import CaptureError


@dataclass(frozen=True, slots=True, eq=False)
class ComputedNumber:
    """A Python number that is known at run time: a 0-d tensor of int64, float64 or bool."""

    value: Value


class Uninitialized:
    """What a variable holds where no path of the program reads it."""


UNINITIALIZED = Uninitialized()


class UnknownText:
    """A string made of what is known at run time: the message of an exception may be one."""


@dataclass(frozen=True, slots=True, eq=False)
class MaybeNone:
    """None, or `content` where the number `present` is true at run time."""

    present: Argument
    content: Argument


@dataclass(frozen=True, slots=True, eq=False)
class MaybeEntry(MaybeNone):
    """An entry of a dict that a loop may have made: where `present` is true, at some place."""


class Absent:
    """An entry that a dict does not have."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True, eq=False)
class DynamicItems:
    """The items of a list whose length is known at run time: a sequence, or a tensor that has them
    stacked along its first dim. Numbers are always stacked."""

    content: Value
    of_numbers: bool

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.content.type, SequenceType)

    @property
    def known_length(self) -> int | None:
        if self.is_sequence or not isinstance(self.content.shape[0], int):
            return None
        return self.content.shape[0]


@dataclass(frozen=True, slots=True, eq=False)
class DynamicRows:
    """The items of a list of tuples whose length is known at run time: a list for each place of
    the tuples."""

    columns: tuple[DynamicItems | DynamicRows, ...]


Dynamic: TypeAlias = DynamicItems | DynamicRows
ListItems: TypeAlias = tuple[Argument, ...] | DynamicItems | DynamicRows


def column_of(items: ListItems, place: int) -> ListItems:
    """One place of the tuples in a list."""
    if isinstance(items, DynamicRows):
        return items.columns[place]
    assert isinstance(items, tuple)
    return tuple(item[place] for item in items)


class Mutable:
    """An object of TorchScript that its program may change."""

    held: Any
    serial: int = 0
    entangled: str = ""
    """Why a change of it could not be followed."""
    outdated: str = ""
    """Why it is not known any more what it holds."""
    maybe: tuple[Mutable, ...] = ()
    """Objects that may be this one."""
    maybe_of: tuple[Mutable, ...] = ()
    """Objects that this one may be."""

    @property
    def state(self) -> Any:
        if self.outdated:
            raise CaptureError(self.outdated)
        return self.held

    @state.setter
    def state(self, state: Any) -> None:
        self.held = state


class ScriptList(Mutable):
    """`state` is a tuple of the items where each is a value of its own."""

    def __init__(self, items: Any = ()) -> None:
        is_dynamic = isinstance(items, (DynamicItems, DynamicRows))
        self.held: ListItems = items if is_dynamic else tuple(items)


class ScriptDict(Mutable):
    def __init__(self, entries: dict[Any, Argument]) -> None:
        self.held: dict[Any, Argument] = entries


class ScriptInstance(Mutable):
    """An object of a scripted class, or the attributes that a program sets on a module."""

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name
        self.held: dict[str, Argument] = {}


@dataclass(slots=True)
class Heap:
    """Knows which objects change inside a block, so that a block can be read more than once."""

    _frames: list[dict[Mutable, Any]] = field(default_factory=list)
    _outdated: list[Mutable] = field(default_factory=list)
    _count: int = 0

    def new(self, made: Any) -> Any:
        made.serial = self.age()
        return made

    def age(self) -> int:
        """Of an object that would be made now."""
        self._count += 1
        return self._count

    def set(self, changed: Mutable, state: Any) -> None:
        if changed.entangled:
            raise CaptureError(changed.entangled)
        if self._frames:
            self._frames[-1].setdefault(changed, changed.held)
        changed.held = state
        for other in changed.maybe_of:
            for relative in (other, *other.maybe):
                if relative is not changed and not relative.outdated:
                    self._outdated.append(relative)
                    relative.outdated = _OUTDATED

    @contextmanager
    def frame(self) -> Iterator[dict[Mutable, Any]]:
        """What was there before is as before afterwards; what was changed of it, and what that held
        at the end, is in the dict it gives."""
        first_new = self._count + 1
        self._frames.append({})
        changes: dict[Mutable, Any] = {}
        known = len(self._outdated)
        try:
            yield changes
        except BaseException:
            self._forget_outdated(known)
            raise
        finally:
            for changed, before in self._frames.pop().items():
                if changed.serial < first_new:
                    changes[changed] = changed.held
                    changed.held = before

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Changes that are taken back where what makes them fails."""
        self._frames.append({})
        known = len(self._outdated)
        try:
            yield
        except BaseException:
            for changed, before in self._frames.pop().items():
                changed.held = before
            self._forget_outdated(known)
            raise
        made = self._frames.pop()
        if self._frames:
            for changed, before in made.items():
                self._frames[-1].setdefault(changed, before)

    def _forget_outdated(self, known: int) -> None:
        while len(self._outdated) > known:
            self._outdated.pop().outdated = ""


_OUTDATED = (
    "a list, dict or object is read that another variable, which holds it in one branch or"
    " iteration only, has changed: copy it there"
)


def is_number(argument: Argument) -> bool:
    return isinstance(argument, (bool, int, float, sympy.Basic, ComputedNumber))


def is_constant(argument: Argument) -> bool:
    """Whether it is known while the graph is read, all of it."""
    if isinstance(
        argument, (Value, sympy.Basic, ComputedNumber, MaybeNone, Uninitialized, UnknownText)
    ):
        return False
    if isinstance(argument, ScriptList):
        return isinstance(argument.state, tuple) and all(map(is_constant, argument.state))
    if isinstance(argument, ScriptDict):
        return all(map(is_constant, argument.state.values()))
    if isinstance(argument, tuple):
        return all(map(is_constant, argument))
    return not isinstance(argument, ScriptInstance)


def number_dtype(number: Argument) -> torch.dtype:
    """The dtype of the tensor that holds a number."""
    if isinstance(number, ComputedNumber):
        return number.value.dtype
    if isinstance(number, bool) or is_condition(number):
        return torch.bool
    if isinstance(number, int) or (isinstance(number, sympy.Expr) and number.is_integer):
        return torch.int64
    return torch.float64


def is_condition(number: Argument) -> bool:
    """A symbol counts as a boolean in sympy, too."""
    return isinstance(number, sympy.logic.boolalg.Boolean) and not isinstance(number, sympy.Symbol)


def as_python(argument: Argument) -> Any:
    """A known value as Python has it."""
    if isinstance(argument, ScriptList):
        assert isinstance(argument.state, tuple)
        return [as_python(a) for a in argument.state]
    if isinstance(argument, ScriptDict):
        return {k: as_python(v) for k, v in argument.state.items()}
    if isinstance(argument, tuple):
        return tuple(as_python(a) for a in argument)
    return argument
