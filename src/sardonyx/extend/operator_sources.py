"""Where the ONNX form of each operator comes from."""

from __future__ import annotations

from typing import NamedTuple

from sardonyx.extend.symbolic_functions.registration import registered_names
from sardonyx.lower import ops
from sardonyx.lower.plugins import load_all_plugins
from sardonyx.lower.registry import LIBRARY


class OperatorSource(NamedTuple):
    name: str
    source: str
    """The module whose function writes it."""


def operators() -> tuple[list[OperatorSource], dict[str, str]]:
    """Every operator with a form: of the library, of plugins, registered in this process; and why
    plugins that could not be imported failed, by namespace."""
    ops.load()
    failed = load_all_plugins()
    found: dict[str, str] = {}
    for name in LIBRARY.names():
        lowering = LIBRARY.get(name)
        assert lowering is not None
        found[name] = lowering.source
    for name, functions in registered_names().items():
        module = functions[max(functions)].__module__
        opsets = ", ".join(f"from opset {opset}" for opset in sorted(functions))
        found[name] = f"{module} (registered, {opsets})"
    return [OperatorSource(*item) for item in sorted(found.items())], failed
