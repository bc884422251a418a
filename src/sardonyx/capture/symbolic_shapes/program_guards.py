"""What a given ExportedProgram assumes about sizes: its ranges, its assertions and its guards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy
import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.symbolic_shapes.guards import (
    SymbolOrigin,
    at_sizes,
    check_conditions,
    named,
    readable,
)
from sardonyx.notes import Note, guard_note


def notes_on_program(program: ExportedProgram, names: Mapping[sympy.Symbol, str]) -> list[Note]:
    """`names` are those of the sizes of its inputs."""
    if not names:
        return []
    origins = {symbol: SymbolOrigin(name, required=False) for symbol, name in names.items()}
    mode = _torch_private.mode_of_program(program)
    # Those that torch.export noted; a program that was read from a file has none.
    conditions = [] if mode is None else _torch_private.guards(mode)
    notes = check_conditions(conditions, origins, _torch_private.hints_of(program))
    known = [condition.expression for condition in conditions]
    asserted = [c for c in _asserted(program) if c not in known and c.free_symbols <= names.keys()]
    known += asserted
    said = [
        *((readable(condition, origins), condition) for condition in asserted),
        *_ranges(program, names, known),
    ]
    notes += [
        guard_note(text, "the ExportedProgram says so", expression=named(condition, origins))
        for text, condition in said
    ]
    return list(dict.fromkeys(notes))


def _asserted(program: ExportedProgram) -> Iterator[sympy.Basic]:
    """What it checks when it runs: the model's own conditions, and operators' on their inputs; of
    both the plain ones."""
    for node in program.graph.nodes:
        if node.target == torch.ops.aten._assert_scalar.default:
            condition = getattr(node.args[0], "meta", {}).get("val")
            expression = _torch_private.dim_of(condition)
            if isinstance(expression, sympy.Basic) and _is_plain(expression):
                yield expression


def _is_plain(condition: sympy.Basic) -> bool:
    """Whether it is about a size, or about what a number leaves of one."""
    sides = [side for side in condition.args if not side.is_Integer]
    return len(sides) == 1 and (sides[0].is_Symbol or _is_remainder(sides[0]))


def _is_remainder(side: sympy.Basic) -> bool:
    if type(side).__name__ not in _REMAINDERS:
        return False
    size, divisor = side.args
    return bool(size.is_Symbol and divisor.is_Integer)


_REMAINDERS = ("Mod", "PythonMod")


def _ranges(
    program: ExportedProgram,
    names: Mapping[sympy.Symbol, str],
    conditions: Sequence[sympy.Basic],
) -> Iterator[tuple[str, sympy.Basic]]:
    """The bounds of sizes that no condition implies. PyTorch assumes sizes of at least 2 anyway;
    that alone is no bound."""
    for symbol, allowed in program.range_constraints.items():
        if symbol not in names:
            continue
        least = int(allowed.lower) if allowed.lower.is_Integer else 0
        most = int(allowed.upper) if allowed.upper.is_Integer else None
        own = [c for c in conditions if _is_inequality(c) and c.free_symbols == {symbol}]
        bounds_below = least > 2 and not _is_bound(own, symbol, least, least - 1)
        if most is not None and not _is_bound(own, symbol, most, most + 1):
            text = f"{f'{least} <= ' if least else ''}{names[symbol]} <= {most}"
            yield text, sympy.And(sympy.Ge(symbol, least), sympy.Le(symbol, most))
        elif bounds_below:
            yield f"{names[symbol]} >= {least}", sympy.Ge(symbol, least)


def _is_inequality(condition: sympy.Basic) -> bool:
    return isinstance(condition, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge))


def _is_bound(
    conditions: Sequence[sympy.Basic], symbol: sympy.Symbol, last: int, beyond: int
) -> bool:
    return any(
        at_sizes(condition, {symbol: last}) == sympy.true
        and at_sizes(condition, {symbol: beyond}) == sympy.false
        for condition in conditions
    )
