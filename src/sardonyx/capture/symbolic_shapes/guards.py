"""What a recording assumes about dynamic sizes: refused where it specializes one, noted where it
only restricts one."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from types import FrameType
from typing import Any, TypeVar

import sympy

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.location import Place, is_users, model_frames, place_text
from sardonyx.aten.size_printing import text_of
from sardonyx.capture.function_overrides.source_statements import is_only_reported
from sardonyx.errors import DynamicDimError
from sardonyx.notes import Note, error_at, guard_note


class SmallComputedSizeError(DynamicDimError):
    """A size that follows from dynamic ones is 0 or 1 in the example, and the recording is for
    that one only."""

    sizes: tuple[int, ...] = ()
    """Of the dynamic dims it follows from, as recorded."""


def text_place(frame: FrameType) -> Place | None:
    """Where the model's code makes text of a size; None where it only reports something by that."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    if not is_users(file) or _is_of_python(file) or only_reports(frame):
        return None
    return file, line, linecache.getline(file, line).strip()


def only_reports(frame: FrameType | None) -> bool:
    """Whether the model's code makes the message of an error, or prints or logs something."""
    innermost = next(model_frames(frame), None)
    return innermost is not None and is_only_reported(innermost)


def _is_of_python(file: str) -> bool:
    return file.startswith(os.path.dirname(os.__file__)) and "site-packages" not in file


def note_on_text(what: str, place: Place) -> Note:
    """The model's code makes a string of a size or a tensor."""
    return Note(
        f"the model makes text of {what} at {place_text(place)}: what it decides by that text is"
        " not recorded",
        place=place,
    )


def notes_on_small_sizes(
    answers: Mapping[sympy.Basic, Place],
    origins: Mapping[sympy.Symbol, SymbolOrigin],
    sizes: Mapping[sympy.Symbol, int],
) -> list[Note]:
    """On answers that hold for sizes from 2 on and not for one of 0 or 1."""
    return [
        guard_note(readable(expression, origins), _DECIDED, place, named(expression, origins))
        for expression, place in answers.items()
        if _fails_at_small_sizes(expression, origins, sizes)
    ]


def _fails_at_small_sizes(
    expression: sympy.Basic,
    origins: Mapping[sympy.Symbol, SymbolOrigin],
    sizes: Mapping[sympy.Symbol, int],
) -> bool:
    symbols = sorted(expression.free_symbols & origins.keys() & sizes.keys(), key=str)
    tried = [[sizes[s], *range(origins[s].least, 2)] for s in symbols[:_MOST_SYMBOLS]]
    return any(
        at_sizes(expression, {**sizes, **dict(zip(symbols, small, strict=False))}) == sympy.false
        for small in product(*tried)
    )


_MOST_SYMBOLS = 4


_DECIDED = "the model decides by it"


@dataclass(frozen=True, slots=True)
class SymbolOrigin:
    """What a size symbol is to the caller: its name, and whether it must stay free."""

    name: str
    required: bool
    least: int = 0


def check_conditions(
    conditions: Iterable[SizeCondition],
    origins: Mapping[sympy.Symbol, SymbolOrigin],
    sizes: Mapping[sympy.Symbol, int],
) -> list[Note]:
    """Notes on what the recording holds for; DynamicDimError where it holds for one size only.

    A condition of an operator that every valid input fulfils (a view that divides) is nothing to
    report. `sizes` are those of the example.
    """
    notes: dict[Note, None] = {}
    first_of: dict[str, sympy.Symbol] = {}
    for symbol, origin in origins.items():
        first_of.setdefault(origin.name, symbol)
    for condition in conditions:
        # Dims of one name are one size, which the capture that made a symbol of each need not know.
        expression = condition.expression.xreplace(
            {
                s: first_of[origins[s].name]
                for s in condition.expression.free_symbols & origins.keys()
            }
        )
        symbols = expression.free_symbols & origins.keys()
        fixed = {s for s in symbols if _fixes(expression, s, sizes)}
        text = readable(expression, origins)
        if any(origins[s].required for s in fixed):
            names = sorted(origins[s].name for s in fixed)
            if _is_small(expression):
                refusal = _narrowed_to_one(SmallComputedSizeError, text, condition.place, names)
                refusal.sizes = tuple(sizes[s] for s in fixed)
                raise refusal
            raise _narrowed_to_one(DynamicDimError, text, condition.place, names)
        if symbols and (condition.in_model_code or fixed):
            reason = _DECIDED
        elif symbols and _counts_pieces(expression, symbols, sizes):
            reason = "an operator gives so many tensors"
        elif _makes_one(expression, origins):
            reason = "an operator takes them for one size"
        else:
            continue
        typed = named(expression, origins)
        notes[guard_note(text, reason, condition.place, typed)] = None
    return list(notes)


def _makes_one(expression: sympy.Basic, origins: Mapping[sympy.Symbol, SymbolOrigin]) -> bool:
    """Whether two dims that the caller gave a name each become one, or one and the piece that the
    other cuts: where an operator broadcasts, a size of 1 in one of them would be valid, too."""
    if not isinstance(expression, sympy.Eq):
        return False
    sides = {_torch_private.if_it_fits(side) for side in expression.args}
    return len(sides) == 2 and all(side in origins and origins[side].required for side in sides)


def _counts_pieces(
    expression: sympy.Basic, symbols: set[sympy.Symbol], sizes: Mapping[sympy.Symbol, int]
) -> bool:
    """Whether a quotient of sizes, rounded up, must be a number, and is another one for some
    sizes: 9 elements make 3 chunks where 4 are requested."""
    if not isinstance(expression, sympy.Eq) or not any(a.is_Integer for a in expression.args):
        return False
    quotients = [a for a in expression.args if type(a).__name__ == "FloorDiv"]
    if not any(quotient.args[0].is_Add for quotient in quotients):
        return False
    return any(False in _outcomes(expression, s, sizes, least=2) for s in symbols)


_SIZES_TRIED = 64
_Refusal = TypeVar("_Refusal", bound=DynamicDimError)


def _fixes(
    expression: sympy.Basic, symbol: sympy.Symbol, sizes: Mapping[sympy.Symbol, int]
) -> bool:
    """Whether an equation of sizes and a number holds for none of the next larger sizes, or for
    none of those from twice the size on.

    Tried rather than solved: `p // (p // 4) == 4` holds for every p that was padded to four. A
    symbol that simply is a number is reported with its dim, not here.
    """
    if not isinstance(expression, sympy.Eq) or symbol not in sizes:
        return False
    if symbol in expression.args or not any(a.is_Integer for a in expression.args):
        return False
    size = sizes[symbol]
    if True not in _outcomes(expression, symbol, sizes, least=size + 1):
        return True
    return not any(_outcomes(expression, symbol, sizes, least=2 * size + 2))


def are_special(
    shape: Iterable[Any], sizes: Mapping[sympy.Symbol, int], larger: Mapping[sympy.Symbol, int]
) -> bool:
    """Whether some size of a result is 0 or 1 where the dynamic ones are these, and not where they
    are larger."""
    return any(
        at_sizes(size, sizes) in (0, 1) and at_sizes(size, larger) not in (0, 1)
        for size in shape
        if isinstance(size, sympy.Expr) and size not in sizes
    )


def _is_small(equation: sympy.Basic) -> bool:
    """Whether a size must be 0 or 1, or several times that: 20 * n == 20."""
    left, right = equation.args
    return any(
        side in (0, 1) or (side.is_Integer and other.as_coeff_Mul()[0] == side)
        for side, other in ((left, right), (right, left))
    )


def _outcomes(
    expression: sympy.Basic, symbol: sympy.Symbol, sizes: Mapping[sympy.Symbol, int], least: int
) -> Iterator[bool]:
    """Whether a condition holds at sizes from `least` on, those at which it means nothing left
    out; the other sizes are those of the example."""
    for size in range(least, max(least, sizes.get(symbol, 0) + 1) + _SIZES_TRIED):
        outcome = at_sizes(expression, {**sizes, symbol: size})
        if outcome is not None:
            yield outcome == sympy.true


def at_sizes(expression: sympy.Basic, sizes: Mapping[sympy.Symbol, int]) -> sympy.Basic | None:
    """A condition where sizes are these; None where it means nothing."""
    try:
        return expression.xreplace({s: sympy.Integer(n) for s, n in sizes.items()})
    except ZeroDivisionError:
        return None


def _narrowed_to_one(kind: type[_Refusal], text: str, place: Place, names: list[str]) -> _Refusal:
    return error_at(
        kind,
        place,
        f"{', '.join(names)} is declared dynamic, but the recording is for {text} only",
        "torch.sym_int(n) for int(n), and no Python number that depends on a size",
    )


def readable(expression: sympy.Basic, origins: Mapping[sympy.Symbol, SymbolOrigin]) -> str:
    """A condition in the caller's names, as text."""
    condition = named(expression, origins)
    if isinstance(condition, (sympy.Eq, sympy.Ne)):
        left, right = map(text_of, condition.args)
        return f"{left} {'==' if isinstance(condition, sympy.Eq) else '!='} {right}"
    return text_of(condition)


def named(expression: sympy.Basic, origins: Mapping[sympy.Symbol, SymbolOrigin]) -> sympy.Basic:
    """A condition in the caller's names."""
    return expression.xreplace(
        {s: sympy.Symbol(origins[s].name) for s in expression.free_symbols if s in origins}
    )
