"""What an export says of the model's code, with the line: notes, and errors at a line."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Self, TypeVar

import sympy

from sardonyx.aten.location import Place, place_text
from sardonyx.errors import SardonyxError

_Error = TypeVar("_Error", bound=SardonyxError)


class NoteKind(enum.Enum):
    """What a note is about."""

    GENERAL = "note"
    BAKED_VALUE = "baked-value"
    """A value of the example is a constant of the file."""
    GUARD = "guard"
    """The file is valid only for sizes that meet a condition."""
    CHECKED_BRANCH = "checked-branch"
    """The file has another branch than the model takes at some sizes, with the same results."""


class Note(str):
    """Something to know about an exported file: the text, and for programs its kind and place."""

    kind: NoteKind
    place: Place | None
    condition: sympy.Basic | None
    """What a guard assumes, in the caller's names of dims, where that is known."""

    def __new__(
        cls,
        text: str,
        kind: NoteKind = NoteKind.GENERAL,
        place: Place | None = None,
        condition: sympy.Basic | None = None,
    ) -> Self:
        note = super().__new__(cls, text)
        note.kind = kind
        note.condition = condition
        note.place = place if place is not None and place[0] else None
        return note

    @classmethod
    def of(cls, text: str) -> Note:
        return text if isinstance(text, Note) else cls(text)


_LONGEST_CONDITION = 300


def guard_note(
    condition: str,
    reason: str = "",
    place: Place | None = None,
    expression: sympy.Basic | None = None,
) -> Note:
    """The file is valid where a condition holds; `reason` says what assumes it, `expression` is the
    condition in the caller's names."""
    if len(condition) > _LONGEST_CONDITION:
        condition = f"{condition[: _LONGEST_CONDITION - 40]} … {condition[-40:]}"
    at = place_text(place) if place is not None else ""
    text = f"the recording holds where {condition}{reason and f': {reason}'}{at and f' at {at}'}"
    return Note(text, NoteKind.GUARD, place, expression)


def error_at(
    kind: type[_Error],
    place: Place,
    headline: str,
    advice: str | Sequence[str] = (),
    condition: str = "",
) -> _Error:
    """An error about a line of the model's code."""
    error = kind(headline, [("condition", condition), ("at", place_text(place)), ("try", advice)])
    error.place = place
    return error
