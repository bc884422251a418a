"""An ExportedProgram that the caller made, taken as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias

import sympy
import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.aten import pytree
from sardonyx.aten.signature import DynamicAxes, DynamicDim
from sardonyx.capture.flat_model import OutputRecord, Recorded
from sardonyx.capture.inputs.binding import PreparedInputs, is_graph_input, named_by_caller
from sardonyx.capture.inputs.dynamic_shapes import from_dynamic_axes
from sardonyx.capture.recorder.entry_points import record_program
from sardonyx.capture.symbolic_shapes.program_guards import notes_on_program
from sardonyx.errors import DynamicDimError, InvalidOptionError
from sardonyx.options import Options, TrainingMode

Place: TypeAlias = tuple[int, int]
"""The position of a leaf, and an axis."""


def from_exported_program(program: ExportedProgram, options: Options) -> Recorded:
    """The program, run once under the recorder; `dynamic_axes` may name its dynamic dims."""
    _check_options(options)
    inputs, symbol_names = _inputs(program, options)
    recorded = record_program(program, inputs)
    graph = recorded.graph
    placeholders = _torch_private.user_input_names(program)
    renamed = dict(zip(placeholders, inputs.names, strict=True))
    graph.mutated = [
        replace(m, name=renamed.get(m.name, m.name)) if m.kind == "input" else m
        for m in graph.mutated
    ]
    output = OutputRecord()
    specs = [s for s in program.graph_signature.output_specs if s.kind.name == "USER_OUTPUT"]
    leaves = [getattr(s.arg, "value", 0.0) for s in specs]
    output.note(_torch_private.close_pytree(leaves, program.call_spec.out_spec))
    notes = notes_on_program(program, symbol_names)
    return replace(recorded, output=output, notes=tuple(notes))


def _check_options(options: Options) -> None:
    """What was decided when the program was exported."""
    if options.dynamic_shapes is not None:
        raise InvalidOptionError(
            "dynamic_shapes cannot change an ExportedProgram: give them to torch.export.export"
        )
    if options.capture == "trace":
        raise InvalidOptionError(
            'an ExportedProgram is recorded already: capture="trace" wants the model itself'
        )
    if options.training is TrainingMode.TRAINING:
        raise InvalidOptionError(
            "training cannot change an ExportedProgram: its mode is that of the model it was"
            " exported from"
        )


def _inputs(
    program: ExportedProgram, options: Options
) -> tuple[PreparedInputs, dict[sympy.Symbol, str]]:
    """As the program declares them, its fakes standing for the example; and the names of its size
    symbols."""
    args, kwargs = _torch_private.arguments_like(program)
    leaves, structure = pytree.flatten((args, kwargs))
    placeholders = _torch_private.user_input_names(program)
    names = named_by_caller(placeholders, leaves, options.input_names)
    output_axes: dict[str, dict[int, str]] = {}
    requested: Sequence[DynamicAxes] = ()
    if options.dynamic_axes:
        known = [n if is_graph_input(leaf) else None for n, leaf in zip(names, leaves, strict=True)]
        requested, output_axes = from_dynamic_axes(options.dynamic_axes, known, leaves)
    wanted = {(p, a): dim.name for p, axes in enumerate(requested) for a, dim in axes.items()}
    sizes = _sizes(leaves)
    symbol_names = _symbol_names(names, sizes, wanted, _torch_private.names_of_sizes(program))
    dynamic: list[DynamicAxes] = [{} for _ in leaves]
    for position, axis, size in sizes:
        if isinstance(size, sympy.Basic):
            dynamic[position][axis] = _dynamic_dim(size, symbol_names)
    if requested:
        for name, has, wants in zip(names, dynamic, requested, strict=True):
            for axis, dim in wants.items():
                if axis not in has:
                    raise DynamicDimError(
                        f"dim {axis} of {name!r} is declared dynamic ({dim.name!r}), but the"
                        " ExportedProgram was exported with a fixed size there"
                    )
                has[axis] = dim
    fixed = _torch_private.fixed_numbers(program)
    constant = frozenset(i for i, name in enumerate(placeholders) if name in fixed)
    inputs = PreparedInputs(
        args,
        kwargs,
        structure,
        tuple(leaves),
        tuple(leaves),
        tuple(names),
        tuple(dynamic),
        output_axes,
        constant,
        _argument_names(program, len(args)),
    )
    return inputs, symbol_names


def _argument_names(program: ExportedProgram, count: int) -> tuple[str, ...]:
    """Forward's own names of the positional arguments; a program may not hold them."""
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    names = getattr(signature, "forward_arg_names", None) or ()
    return tuple(names[:count])


def _dynamic_dim(size: sympy.Basic, names: Mapping[sympy.Symbol, str]) -> DynamicDim:
    name = str(size.xreplace({symbol: sympy.Symbol(name) for symbol, name in names.items()}))
    if isinstance(size, sympy.Symbol) or len(size.free_symbols) != 1:
        return DynamicDim(name)
    (root,) = size.free_symbols
    return DynamicDim(
        name,
        roots=(names[root],),
        derive=lambda number: int(size.xreplace({root: sympy.Integer(number)})),
    )


def _sizes(leaves: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Of tensors, with their places."""
    return [
        (position, axis, _torch_private.dim_of(size))
        for position, leaf in enumerate(leaves)
        if isinstance(leaf, torch.Tensor)
        for axis, size in enumerate(leaf.shape)
    ]


def _symbol_names(
    input_names: Sequence[str],
    sizes: Sequence[tuple[int, int, Any]],
    requested: Mapping[Place, str],
    known: Mapping[sympy.Symbol, str],
) -> dict[sympy.Symbol, str]:
    """What each size symbol is called: as `dynamic_axes` names a dim that it is, else as the caller
    of torch.export did, else after the first dim that it is. Symbols that are only part of
    expressions come last."""
    names: dict[sympy.Symbol, str] = {}
    plain = [(p, axis, size) for p, axis, size in sizes if isinstance(size, sympy.Symbol)]
    for position, axis, symbol in plain:
        if (position, axis) in requested:
            names.setdefault(symbol, requested[position, axis])
    for _, _, symbol in plain:
        if symbol in known and known[symbol] not in names.values():
            names.setdefault(symbol, known[symbol])
    for position, axis, symbol in plain:
        if symbol not in names:
            names[symbol] = _unlike(f"{input_names[position]}_dim_{axis}", names)
    for position, axis, size in sizes:
        if isinstance(size, sympy.Basic):
            for symbol in sorted(size.free_symbols - names.keys(), key=str):
                default = f"{input_names[position]}_dim_{axis}_root"
                names[symbol] = _unlike(known.get(symbol, default), names)
    return names


def _unlike(name: str, names: Mapping[sympy.Symbol, str]) -> str:
    """The name, with a number where it is taken."""
    tried = (f"{name}_{number}" for number in count(2))
    taken = set(names.values())
    return name if name not in taken else next(each for each in tried if each not in taken)
