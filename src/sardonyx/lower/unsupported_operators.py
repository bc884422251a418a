"""Operators of a model that have no ONNX form, and the error that names all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.aten.graph import AtenGraph, Node, SymbolSource
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.errors import OperatorProblem, UnsupportedOperatorError
from sardonyx.lower.custom_lowerings import CustomForms


@dataclass(frozen=True, slots=True)
class Problem:
    node: Node
    reason: str


def unsupported(
    problems: Sequence[Problem], graph: AtenGraph, opset: int, custom: CustomForms
) -> UnsupportedOperatorError:
    """One error for all of them, each with the line of the model that uses it first."""
    counts = Counter(problem.node.display_name for problem in problems)
    names = ", ".join(f"{n} ({c} use{'s' if c > 1 else ''})" for n, c in counts.items())
    fields: list[tuple[str, str | list[str]]] = [
        ("stage", f"2/6 lower · captured by {graph.captured_by} · opset {opset}")
    ]
    shown: set[tuple[str, str]] = set()
    for problem in problems:
        key = (problem.node.display_name, problem.reason)
        if key in shown:
            continue
        shown.add(key)
        reason = with_named_sizes(problem.reason, graph)
        inputs = with_named_sizes(problem.node.describe_inputs(), graph)
        fields += [
            (problem.node.display_name, reason),
            ("  first", problem.node.location.describe()),
            ("  inputs", inputs),
            ("  where", origins_of_sizes(f"{reason} {inputs}", graph)),
        ]
    first = problems[0].node.name
    if custom.find(first) is None:
        fields.append(("try", f'sardonyx.register_custom_op_symbolic("{first}", function, 9)'))
        if custom.fallback is not None and custom.last_resort(first) is None:
            any_operator = "operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH"
            fields.append(("or", f"{any_operator}, which leaves operators of any namespace"))
    return UnsupportedOperatorError(
        f"no ONNX form for {names}",
        fields,
        [
            OperatorProblem(
                p.node.display_name,
                p.reason,
                p.node.location.describe(),
                p.node.location.file,
                p.node.location.line,
            )
            for p in problems
        ],
    )


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
