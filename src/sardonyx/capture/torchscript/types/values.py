"""What TorchScript's variables hold while a graph is read, besides tensors and constants.

A number is a Python number, a sympy expression of sizes, or a ComputedNumber. A tuple is a tuple.
Lists, dicts and objects are mutable and shared: a write of one variable is seen by every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import sympy
import torch

from sardonyx.aten.graph import Argument, Dim, SequenceType, Value
from sardonyx.errors import CaptureError

NUMBERS = {"IntType": torch.int64, "FloatType": torch.float64, "BoolType": torch.bool}
"""The dtypes of Python's numbers, by the kinds of types that TorchScript has for them."""


@dataclass(frozen=True, slots=True, eq=False)
class ComputedNumber:
    """A Python number that is known at run time: a 0-d tensor of int64, float64 or bool."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class AnyRank:
    """A tensor whose number of dims is known at run time: its elements in a row, and its sizes."""

    flat: Value
    sizes: Value
    since: str
    """The place of the loop or the branch that decides the number of dims."""

    @property
    def dtype(self) -> torch.dtype:
        return self.flat.dtype

    @property
    def rank(self) -> Dim:
        return self.sizes.shape[0]


class Uninitialized:
    """What a variable holds where no path of the program reads it."""


UNINITIALIZED = Uninitialized()


@dataclass(frozen=True, slots=True, eq=False)
class UnknownText:
    """A string made of what is known at run time: the message of an exception may be one."""

    made_of: tuple[Argument, ...]
    parts: tuple[Argument, ...] | None = None
    """Strings and integers that it is, one after the other, where that is known."""

    @property
    def integer(self) -> tuple[str, Argument, str] | None:
        """The one integer in it, and what is around it; None where it may not be read off again."""
        places = [i for i, p in enumerate(self.parts or ()) if not isinstance(p, str)]
        if self.parts is None or len(places) != 1:
            return None
        (place,) = places
        before, after = "".join(self.parts[:place]), "".join(self.parts[place + 1 :])
        if before[-1:].isdigit() or any(map(str.isdigit, after)):
            return None
        return before, self.parts[place], after


@dataclass(frozen=True, slots=True, eq=False)
class CodedText:
    """A string that is known at run time: one of all strings, by the number `code`."""

    code: Argument


@dataclass(frozen=True, slots=True, eq=False)
class ChosenConstant:
    """One of several strings, or members of an enum: the number `code` says which of them."""

    code: Argument
    options: tuple[Any, ...]


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


@dataclass(frozen=True, slots=True)
class RowForm:
    """What the items of a list are that has a list for each of their places. An array is a list
    whose length differs from item to item: its items are stacked in one tensor, and the keys are
    the dtype and the dims of each, and whether they are numbers."""

    kind: Literal["tuple", "list", "dict", "object", "optional", "array", "text"]
    count: int
    keys: tuple[Any, ...] = ()
    class_name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DynamicRows:
    """The items of a list of tuples, or of others of that form, whose length is known at run time:
    a list for each place of the items."""

    columns: tuple[DynamicItems | DynamicRows, ...]
    form: RowForm


Dynamic: TypeAlias = DynamicItems | DynamicRows
ListItems: TypeAlias = tuple[Argument, ...] | DynamicItems | DynamicRows


class Mutable:
    """An object of TorchScript that its program may change."""

    held: Any
    serial: int = 0
    entangled: str = ""
    """Why a change of it could not be followed."""
    original: Mutable | None = None
    """Whose state at another time it shows."""
    is_copied: bool = False
    """Whether that is because a list holds a copy of it, or it is one of what a list holds."""
    copied_at: int = 0
    copied_within: Any = None
    """The items of the list whose copies were made last."""
    origin: Origin | None = None
    """Where a copy was read: a change of it is one of what is there, too."""
    shown: tuple[Mutable, ...] = ()
    """Copies of its items that were read."""
    outdated: str = ""
    """Why it is not known any more what it holds."""
    maybe: tuple[Mutable, ...] = ()
    """Objects that may be this one."""
    maybe_of: tuple[Mutable, ...] = ()
    """Objects that this one may be."""
    other_names: tuple[Mutable, ...] = ()
    """Objects that may be this one in a later iteration than the first."""

    @property
    def state(self) -> Any:
        if self.outdated:
            raise CaptureError(self.outdated)
        return self.held

    @state.setter
    def state(self, state: Any) -> None:
        self.held = state


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The place of an item, of which a copy was read: the list or dict, the index or key, and what
    the list or dict held then."""

    holder: Mutable
    place: Argument
    state: Any


class ScriptList(Mutable):
    """`state` is a tuple of the items where each is a value of its own."""

    number: torch.dtype | None = None
    """Of what it would hold, where the program says that it is a list of numbers."""

    def __init__(self, items: Any = ()) -> None:
        is_dynamic = isinstance(items, (DynamicItems, DynamicRows))
        self.held: ListItems = items if is_dynamic else tuple(items)


class ScriptDict(Mutable):
    """`state` is a dict, or a list of pairs where keys are known at run time."""

    def __init__(self, entries: dict[Any, Argument] | DynamicRows) -> None:
        self.held: dict[Any, Argument] | DynamicRows = entries


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
    _shared: list[tuple[Mutable, str]] = field(default_factory=list)
    """With why their changes could not be followed before."""
    _count: int = 0
    replaced: Callable[[Mutable, Argument, Mutable], Any] | None = None
    """What a list or dict holds with an item at a place."""
    is_in_several: bool = False
    """Whether an object may be in two places of lists that hold copies: no change reaches both."""
    writes: int = 0
    """How many changes of copies were changes of what they were copied from."""

    def new(self, made: Any) -> Any:
        made.serial = self.age()
        return made

    def age(self) -> int:
        """Of an object that would be made now."""
        self._count += 1
        return self._count

    def set(self, changed: Mutable, state: Any) -> None:
        origin = changed.origin
        if changed.entangled and (
            origin is None or self.is_in_several or origin.holder.held is not origin.state
        ):
            raise CaptureError(changed.entangled)
        if self._frames:
            self._frames[-1].setdefault(changed, changed.held)
        changed.held = state
        if origin is not None:
            self._write_through(changed, origin)
        relatives = [o for other in changed.maybe_of for o in (other, *other.maybe)]
        for relative in (*relatives, *changed.other_names):
            if relative is not changed and not relative.outdated:
                self._outdated.append(relative)
                relative.outdated = _OUTDATED

    def _write_through(self, changed: Mutable, origin: Origin) -> None:
        holder = origin.holder
        assert self.replaced is not None
        self.writes += 1
        is_in_several = self.is_in_several
        state = self.replaced(holder, origin.place, changed)
        self.is_in_several = is_in_several  # it goes where it was
        self.set(holder, state)
        changed.origin = replace(origin, state=holder.held)
        for copied in (*holder.shown, *(shared for shared, _ in self._shared)):
            self._outdate(copied, changed)

    @property
    def shared_count(self) -> int:
        return len(self._shared)

    def unshare(self, count: int) -> list[tuple[Mutable, str]]:
        """Takes back which objects lists of copies hold, but for the first `count`; what was taken
        back."""
        taken = []
        while len(self._shared) > count:
            held, before = self._shared.pop()
            taken.append((held, held.entangled))
            held.entangled, held.is_copied = before, False
        return taken

    def share_again(self, taken: list[tuple[Mutable, str]]) -> None:
        for held, reason in reversed(taken):
            if not held.is_copied:
                self._shared.append((held, held.entangled))
                held.entangled, held.is_copied = reason, True

    def note_repeated(self, age: int) -> None:
        """Of a loop whose body is read since an age: what was there before, and is put into a list
        of copies, is put there by every iteration."""
        for shared, _ in self._shared:
            if shared.copied_within is None and shared.serial < age and shared.copied_at > age:
                self.is_in_several = True

    def _outdate(self, copied: Mutable, changed: Mutable) -> None:
        if copied is not changed and not copied.outdated:
            self._outdated.append(copied)
            copied.outdated = _OUTDATED
            for relative in copied.maybe:
                self._outdate(relative, changed)

    def share(self, held: Argument, reason: str, within: Any = None) -> None:
        """A list of copies holds one of an object: its changes cannot be followed any more.
        `within`: the items of a list that becomes one of copies."""
        if not isinstance(held, Mutable):
            return
        held = held.original or held
        if held.maybe or held.maybe_of:
            self.is_in_several = True
        if held.is_copied and (within is None or held.copied_within is not within):
            self.is_in_several = True
        if not held.is_copied:
            self._shared.append((held, held.entangled))
            held.entangled, held.is_copied = reason, True
            held.copied_at = self.age()
        held.copied_within = within

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
        known, shared, is_in_several = len(self._outdated), len(self._shared), self.is_in_several
        try:
            yield
        except BaseException:
            for changed, before in self._frames.pop().items():
                changed.held = before
            self._forget_outdated(known)
            self.is_in_several = is_in_several
            self.unshare(shared)
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


def is_computed_text(argument: Argument) -> bool:
    """Whether it is a string that is known at run time, and may be compared with others."""
    if isinstance(argument, UnknownText):
        return argument.integer is not None
    return isinstance(argument, CodedText)


def is_number(argument: Argument) -> bool:
    return isinstance(argument, (bool, int, float, sympy.Basic, ComputedNumber))


def is_constant(argument: Argument) -> bool:
    """Whether it is known while the graph is read, all of it."""
    if isinstance(
        argument,
        (
            Value,
            AnyRank,
            sympy.Basic,
            ComputedNumber,
            MaybeNone,
            Uninitialized,
            UnknownText,
            CodedText,
            ChosenConstant,
        ),
    ):
        return False
    if isinstance(argument, ScriptList):
        return isinstance(argument.state, tuple) and all(map(is_constant, argument.state))
    if isinstance(argument, ScriptDict):
        state = argument.state
        return isinstance(state, dict) and all(map(is_constant, state.values()))
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
