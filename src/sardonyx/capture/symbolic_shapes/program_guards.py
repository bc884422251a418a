"""What a given ExportedProgram assumes about sizes: its ranges, its assertions and its guards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import sympy
import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.flat_model import SizeCondition
from sardonyx.capture.symbolic_shapes.guards import SymbolOrigin, check_conditions, readable
from sardonyx.notes import Note, guard_note


def notes_on_program(program: ExportedProgram, names: Mapping[sympy.Symbol, str]) -> list[Note]:
    """`names` are those of the sizes of its inputs."""
    if not names:
        return []
    origins = {symbol: SymbolOrigin(name, required=False) for symbol, name in names.items()}
    conditions = list(_recorded(program))
    notes = check_conditions(conditions, origins, _torch_private.hints_of(program))
    known = [condition.expression for condition in conditions]
    asserted = [c for c in _asserted(program) if c not in known and c.free_symbols <= names.keys()]
    said = [
        *(readable(condition, origins) for condition in asserted),
        *_ranges(program, names),
    ]
    if not notes:
        # A program that was read from a file: PyTorch writes what it checks of inputs as text.
        said += filter(_REMAINDER.fullmatch, _torch_private.texts_of_guards(program))
    notes += [guard_note(text, "the ExportedProgram says so") for text in said]
    return list(dict.fromkeys(notes))


_REMAINDER = re.compile(r"\(?L\S+ % \d+\)? == \d+")


def _recorded(program: ExportedProgram) -> Iterator[SizeCondition]:
    """Those that torch.export noted; a program that was read from a file has none."""
    mode = _torch_private.mode_of_program(program)
    if mode is not None:
        for guard in _torch_private.guards(mode):
            if not guard.is_layout_check:
                place = guard.place or ("", 0, "")
                yield SizeCondition(guard.expression, place, guard.in_model_code)


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


def _ranges(program: ExportedProgram, names: Mapping[sympy.Symbol, str]) -> Iterator[str]:
    """PyTorch assumes sizes of at least 2 anyway; that alone is no bound."""
    for symbol, allowed in program.range_constraints.items():
        if symbol not in names:
            continue
        least = int(allowed.lower) if allowed.lower.is_Integer else 0
        if allowed.upper.is_Integer:
            yield f"{f'{least} <= ' if least else ''}{names[symbol]} <= {allowed.upper}"
        elif least > 2:
            yield f"{names[symbol]} >= {least}"
