"""The values of TorchScript's variables while a graph is read, besides tensors and constants.

A number is a Python number, a sympy expression of sizes, or a ComputedNumber. A tuple is a tuple.
Lists, dicts and objects are mutable and shared: a write of one variable is seen by every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import sympy
import torch

from sardonyx.aten.graph import Argument, SequenceType, Value
from sardonyx.capture.torchscript.errors import ScriptRefusal

_T = TypeVar("_T")
NUMBERS = {"IntType": torch.int64, "FloatType": torch.float64, "BoolType": torch.bool}
"""The dtypes of Python's numbers, by the kinds of types that TorchScript has for them."""


@dataclass(frozen=True, slots=True, eq=False)
class ComputedNumber:
    """A Python number that is known at run time: a 0-d tensor of int64, float64 or bool."""

    value: Value


class Uninitialized:
    """The value of a variable that no path of the program reads."""


UNINITIALIZED = Uninitialized()


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeString:
    """A string formatted from values that are computed at run time. The message of an exception or
    a warning may be one; nothing else in the program can use it."""

    made_of: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MaybeNone:
    """None, or `content` where the number `present` is true at run time."""

    present: Argument
    content: Argument


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
    """The items of a list of tuples whose length is computed at run time. ONNX has lists of tensors
    only, so there is one list for each element of the tuples."""

    columns: tuple[DynamicItems | DynamicRows, ...]


Dynamic: TypeAlias = DynamicItems | DynamicRows
ListItems: TypeAlias = tuple[Argument, ...] | DynamicItems | DynamicRows


def columns_of(tuples: ListItems, count: int) -> Sequence[ListItems]:
    """The list for each element of a list of tuples, which have `count` elements."""
    if isinstance(tuples, DynamicRows):
        return tuples.columns
    assert isinstance(tuples, tuple)
    return [tuple(row[place] for row in tuples) for place in range(count)]


class Mutable:
    """A list, dict or object, which the program may change."""

    held: Any
    serial: int = 0
    is_entangled: bool = False
    """Whether a variable that a branch or loop returned may be this object: a change of it cannot
    be followed there."""
    outdated: bool = False
    """Whether its state is no longer known."""
    maybe: tuple[Mutable, ...] = ()
    """Objects that may be this one."""
    maybe_of: tuple[Mutable, ...] = ()
    """Objects that this one may be."""
    other_names: tuple[Mutable, ...] = ()
    """Objects that may be this one in a later iteration than the first."""

    @property
    def state(self) -> Any:
        if self.outdated:
            raise ScriptRefusal(
                "a list, dict or object is read that another variable, which holds it in one branch"
                " or iteration only, has changed",
                "copy it before it is changed",
            )
        return self.held

    @state.setter
    def state(self, state: Any) -> None:
        self.held = state


class ScriptList(Mutable):
    """`state` is a tuple of the items if the length is known."""

    number: torch.dtype | None = None
    """The dtype of its items, if the program declares a list of numbers."""

    def __init__(self, items: Any = ()) -> None:
        is_dynamic = isinstance(items, (DynamicItems, DynamicRows))
        self.held: ListItems = items if is_dynamic else tuple(items)


class ScriptDict(Mutable):
    def __init__(self, entries: dict[Any, Argument]) -> None:
        self.held: dict[Any, Argument] = entries


class ScriptInstance(Mutable):
    """An object of a scripted class, or the attributes that a program sets on a module."""

    def __init__(self, class_name: str, attributes: dict[str, Argument] | None = None) -> None:
        self.class_name = class_name
        self.held: dict[str, Argument] = attributes or {}


@dataclass(slots=True)
class Heap:
    """Records which objects change inside a block, so that a block can be read more than once."""

    _frames: list[dict[Mutable, Any]] = field(default_factory=list)
    _outdated: list[Mutable] = field(default_factory=list)
    _count: int = 0

    def new(self, made: Any) -> Any:
        made.serial = self.age()
        return made

    def age(self) -> int:
        """The serial number of an object made now."""
        self._count += 1
        return self._count

    def set(self, changed: Mutable, state: Any) -> None:
        if changed.is_entangled:
            raise ScriptRefusal(
                "a list, dict or object that another variable holds too, in one branch or iteration"
                " only, is changed afterwards",
                "copy it in that branch or iteration",
            )
        if self._frames:
            self._frames[-1].setdefault(changed, changed.held)
        changed.held = state
        for relative in (*_may_be_same(changed), *changed.other_names):
            if relative is not changed and not relative.outdated:
                self._outdated.append(relative)
                relative.outdated = True

    @contextmanager
    def frame(self) -> Iterator[dict[Mutable, Any]]:
        """Restores older objects at the end. The dict then has the changed ones with their states
        inside."""
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
        """Undoes all changes if an exception is raised inside."""
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
            self._outdated.pop().outdated = False


def _may_be_same(changed: Mutable) -> set[Mutable]:
    """All objects that may be the same as this one, by way of those that it may be."""
    originals = reachable([changed], lambda one: one.maybe_of)
    return reachable(originals, lambda one: one.maybe)


def reachable(start: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """The transitive closure, the start included."""
    found: set[_T] = set()
    pending = list(start)
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += following(one)
    return found


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def is_number(argument: Argument) -> bool:
    return isinstance(argument, (bool, int, float, sympy.Basic, ComputedNumber))


def is_constant(argument: Argument) -> bool:
    """Whether it is known while the graph is read, all of it."""
    if isinstance(
        argument,
        (Value, sympy.Basic, ComputedNumber, MaybeNone, Uninitialized, RuntimeString),
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
