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
from sardonyx.capture.recorder.record import record_program
from sardonyx.capture.symbolic_shapes.program_guards import notes_on_given
from sardonyx.errors import DynamicDimError, InvalidOptionError
from sardonyx.options import Options, TrainingMode

Place: TypeAlias = tuple[int, int]
"""The position of a leaf, and an axis."""


def from_exported_program(program: ExportedProgram, options: Options) -> Recorded:
    """The program, run once under the recorder; `dynamic_axes` may name its dynamic dims."""
    _check_options(options)
    called, roots = _names_of_dims(program)
    inputs = _inputs(program, options, called, roots)
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
    output.note(_torch_private.result_like(program, leaves))
    notes = notes_on_given(program, _names_of_symbols(program, inputs))
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
    program: ExportedProgram,
    options: Options,
    called: Mapping[Place, str],
    roots: Mapping[Place, str],
) -> PreparedInputs:
    """As the program declares them; its fakes stand for the example."""
    args, kwargs = _torch_private.arguments_like(program)
    leaves, structure = pytree.flatten((args, kwargs))
    placeholders = _torch_private.user_input_names(program)
    names = named_by_caller(placeholders, leaves, options.input_names)
    output_axes: dict[str, dict[int, str]] = {}
    asked: Sequence[DynamicAxes] = ()
    if options.dynamic_axes:
        known = [n if is_graph_input(leaf) else None for n, leaf in zip(names, leaves, strict=True)]
        asked, output_axes = from_dynamic_axes(options.dynamic_axes, known, leaves)
    wanted = {(p, a): dim.name for p, axes in enumerate(asked) for a, dim in axes.items()}
    dynamic = _dynamic_dims(names, leaves, (wanted, called), roots)
    if asked:
        for name, has, wants in zip(names, dynamic, asked, strict=True):
            for axis, dim in wants.items():
                if axis not in has:
                    raise DynamicDimError(
                        f"dim {axis} of {name!r} was asked to be dynamic ({dim.name!r}), but the"
                        " ExportedProgram was exported with a fixed size there"
                    )
                has[axis] = dim
    fixed = _torch_private.fixed_numbers(program)
    constant = frozenset(i for i, name in enumerate(placeholders) if name in fixed)
    return PreparedInputs(
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


def _argument_names(program: ExportedProgram, count: int) -> tuple[str, ...]:
    """Forward's own names of the positional arguments; a program may not hold them."""
    signature = program.module_call_graph[0].signature if program.module_call_graph else None
    names = getattr(signature, "forward_arg_names", None) or ()
    return tuple(names[:count])


def _dynamic_dim(size: sympy.Basic, names: Mapping[sympy.Basic, sympy.Symbol]) -> DynamicDim:
    name = str(size.xreplace(names))
    if isinstance(size, sympy.Symbol) or len(size.free_symbols) != 1:
        return DynamicDim(name)
    (root,) = size.free_symbols
    return DynamicDim(
        name,
        root=names[root].name if root in names else root.name,
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


def _names_of_dims(program: ExportedProgram) -> tuple[dict[Place, str], dict[Place, str]]:
    """What the caller of torch.export called them, as far as the program knows; and what those
    are called that others are computed from, by the places of these."""
    names = _torch_private.names_of_sizes(program)
    leaves, _ = pytree.flatten(_torch_private.arguments_like(program))
    called: dict[Place, str] = {}
    roots: dict[Place, str] = {}
    for position, axis, size in _sizes(leaves):
        if size in names:
            called[position, axis] = names[size]
        elif isinstance(size, sympy.Basic) and len(size.free_symbols) == 1:
            (root,) = size.free_symbols
            if root in names:
                roots[position, axis] = names[root]
    return called, roots


def _names_of_symbols(program: ExportedProgram, inputs: PreparedInputs) -> dict[sympy.Symbol, str]:
    """What the size symbols of the program are called."""
    leaves, _ = pytree.flatten(_torch_private.arguments_like(program))
    names: dict[sympy.Symbol, str] = {}
    for position, axis, size in _sizes(leaves):
        dim = inputs.dynamic[position].get(axis)
        if dim is None or not isinstance(size, sympy.Basic):
            continue
        if isinstance(size, sympy.Symbol):
            names[size] = dim.name
        elif dim.root is not None:
            (root,) = size.free_symbols
            names.setdefault(root, dim.root)
    return names


def _unlike(name: str, symbols: Mapping[sympy.Basic, sympy.Symbol]) -> str:
    """The name, with a number where it is taken."""
    taken = {symbol.name for symbol in symbols.values()}
    tried = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(each for each in tried if each not in taken)


def _dynamic_dims(
    names: Sequence[str],
    leaves: Sequence[Any],
    called: Sequence[Mapping[Place, str]],
    roots: Mapping[Place, str],
) -> list[DynamicAxes]:
    """A size symbol has the first name that a dim that it is was given, those of `called` in turn,
    or else is named after the first dim that it is; other dims may be expressions, whose symbols
    are named after them where no dim is that."""
    sizes = _sizes(leaves)
    symbols: dict[sympy.Basic, sympy.Symbol] = {}
    unnamed = {(p, axis): f"{names[p]}_dim_{axis}" for p, axis, _ in sizes}
    for given in (*called, unnamed):
        for position, axis, size in sizes:
            name = given.get((position, axis))
            if name is None or not isinstance(size, sympy.Symbol) or size in symbols:
                continue
            if given is not called[0] and sympy.Symbol(name) in symbols.values():
                if given is not unnamed:
                    continue  # the caller's name of another
                name = _unlike(name, symbols)
            symbols[size] = sympy.Symbol(name)
    for position, axis, size in sizes:
        if isinstance(size, sympy.Basic):
            for symbol in sorted(size.free_symbols - symbols.keys(), key=str):
                unnamed_root = f"{names[position]}_dim_{axis}_root"
                name = _unlike(roots.get((position, axis), unnamed_root), symbols)
                symbols[symbol] = sympy.Symbol(name)
    dynamic: list[DynamicAxes] = [{} for _ in leaves]
    for position, axis, size in sizes:
        if isinstance(size, sympy.Basic):
            dynamic[position][axis] = _dynamic_dim(size, symbols)
    return dynamic
