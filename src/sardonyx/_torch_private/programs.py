"""Programs of torch.export: their inputs, classes, and how they are recorded."""

from __future__ import annotations

import re
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.utils import _pytree as pytree

from sardonyx._torch_private.symbolic_shapes.sizes import example_sizes
from sardonyx._torch_private.tensors.fake_tensors import fake_mode_of, is_fake


def arguments_like(program: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of an ExportedProgram: fake tensors, example numbers and constants."""
    leaves = []
    for spec, value in zip(_user_inputs(program), user_input_values(program), strict=True):
        given = spec.arg.value if isinstance(spec.arg, ConstantArgument) else value
        leaves.append(given.node.hint if isinstance(given, torch.SymInt) else given)
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def user_input_names(program: Any) -> list[str]:
    return [
        getattr(spec.arg, "name", "") or f"input_{i}"
        for i, spec in enumerate(_user_inputs(program))
    ]


def user_input_values(program: Any) -> list[Any]:
    """The fake tensors and symbols of a program's inputs."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    return [values.get(spec.arg.name) for spec in _user_inputs(program)]


def fixed_numbers(program: Any) -> set[str]:
    """The names of number inputs that an ExportedProgram holds one value of."""
    return {
        spec.arg.name
        for spec in _user_inputs(program)
        if isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, (int, float))
    }


def qualified_module_classes(program: Any) -> dict[str, str]:
    """Class names by module path, as far as the program's nodes tell, with those of the Python
    modules they are defined in."""
    classes: dict[str, str] = {}
    for node in program.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
            classes.setdefault(path.split("@")[0], name)
    return classes


def _user_inputs(program: Any) -> list[Any]:
    return [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]


def mode_of_program(program: Any) -> Any:
    """The fake mode that the sizes of an ExportedProgram belong to; None where it has none."""
    for node in program.graph.nodes:
        mode = fake_mode_of(node.meta.get("val"))
        if mode is not None and mode.shape_env is not None:
            return mode
    return None


def hints_of(program: Any) -> dict[Any, int]:
    """The sizes that the symbols of an ExportedProgram had in its example."""
    mode = mode_of_program(program)
    return {} if mode is None else example_sizes(mode)


def names_of_sizes(program: ExportedProgram) -> dict[sympy.Symbol, str]:
    """The name of the `Dim` that a symbol was made for. A program that was read from a file has
    none: PyTorch does not write them."""
    values = (node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder")
    env: Any = next((v.fake_mode.shape_env for v in values if is_fake(v)), None)
    given = getattr(env, "source_name_to_debug_name", None)
    if not given:
        return {}
    names: dict[sympy.Symbol, str] = {}
    for symbol, sources in env.var_to_sources.items():
        for source in sources:
            written = source.name() if callable(source.name) else source.name
            name, stands_for = given.get(written), env.replace(symbol)
            if name is None:
                continue
            if isinstance(stands_for, sympy.Symbol):
                if name.isidentifier():
                    names.setdefault(stands_for, name)
            elif len(stands_for.free_symbols) == 1:  # of a dim that is computed from another
                of_root = set(_NAME.findall(name))
                if len(of_root) == 1:
                    names.setdefault(*stands_for.free_symbols, *of_root)
    return names


_NAME = re.compile(r"[^\W\d]\w*")
