"""Sizes in messages: under the caller's names, and where those come from that have none."""

from __future__ import annotations

import re

from sardonyx.aten.graph import AtenGraph, SymbolSource
from sardonyx.aten.size_printing import in_callers_names

_UNNAMED = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")


def with_named_sizes(text: str, graph: AtenGraph) -> str:
    return in_callers_names(text, graph.symbol_names, of_data=None)


def origins_of_sizes(text: str, graph: AtenGraph) -> list[str]:
    """What the symbols are that a message has left."""
    sources = {symbol.name: source for symbol, source in graph.symbols.items()}
    return [
        f"{name} {_origin(sources[name])}"
        for name in dict.fromkeys(_UNNAMED.findall(text))
        if name in sources
    ]


def _origin(source: SymbolSource) -> str:
    value = source.value
    if value.producer is None:
        return f"is dim {source.axis} of {value.name!r}"
    what = "a number" if source.axis is None else "a size"
    return f"is {what} computed from the data: {value.producer.location.describe()}"
