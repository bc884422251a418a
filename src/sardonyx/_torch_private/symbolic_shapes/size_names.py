"""The names that callers of torch.export gave to sizes."""

from __future__ import annotations

import re
from typing import Any

import sympy
from torch.export import ExportedProgram

from sardonyx._torch_private.tensors.fakes import is_fake


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
