"""What an export made, in short: as a table for the terminal, as data, as text and as HTML."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
from rich.table import Table
from rich.text import Text

from sardonyx.errors import format_message
from sardonyx.lower.onnx_types.subgraphs import all_nodes
from sardonyx.verify.onnxruntime_session import weight_bytes

if TYPE_CHECKING:
    from sardonyx.program import ONNXProgram

_SHOWN_OPERATORS = 12


def summary_table(program: ONNXProgram) -> Table:
    """The summary as a rich table of two columns."""
    # As Text: rich would take the dims in `x: float32[batch, 3]` for markup.
    table = Table(title=Text(_title(program)), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for label, lines in _rows(program):
        if lines:
            table.add_row(label, Text("\n".join(lines)))
    return table


def summary_dict(program: ONNXProgram) -> dict[str, Any]:
    """The summary as plain data, fit for JSON."""
    model = program.model
    verification = program.verification
    summary: dict[str, Any] = {
        "path": None if program.path is None else str(program.path),
        "opset": model.opset_imports.get(""),
        "ir_version": model.ir_version,
        "inputs": [_value_dict(value) for value in model.graph.inputs],
        "outputs": [_value_dict(value) for value in model.graph.outputs],
        "nodes": node_count(model),
        "nodes_by_operator": dict(_operators(model)),
        "weights": len(model.graph.initializers),
        "weight_bytes": weight_bytes(model),
        "stage_seconds": dict(program.stage_seconds),
        "notes": list(program.notes),
        "verification": None,
    }
    if verification is not None:
        summary["verification"] = {
            "largest_absolute": verification.largest_absolute,
            "largest_relative": verification.largest_relative,
            "runs": [run.label for run in verification.runs if run.outputs],
            "skipped": list(verification.skipped),
            "baked": list(verification.baked),
        }
    return summary


def summary_text(program: ONNXProgram) -> str:
    """The summary as aligned rows of text."""
    return format_message(_title(program), _rows(program))


def summary_html(program: ONNXProgram) -> str:
    """The summary as an HTML table, for notebooks."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
        f"<td style='text-align:left'>{'<br>'.join(html.escape(line) for line in lines)}</td></tr>"
        for label, lines in _rows(program)
        if lines
    )
    return f"<table><caption>{html.escape(_title(program))}</caption>{rows}</table>"


def node_count(model: ir.Model) -> int:
    """Nodes of the graph, those in the bodies of its control flow and functions included."""
    return sum(1 for _ in all_nodes(model))


def describe_value(value: ir.Value) -> str:
    """`x: float32[batch, 3]`."""
    dtype = "?" if value.dtype is None else value.dtype.name.lower()
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    if isinstance(value.type, ir.SequenceType):
        return f"{value.name}: list of {dtype}"
    if value.shape is None:
        return f"{value.name}: {dtype}"
    return f"{value.name}: {dtype}[{', '.join(_dim_text(dim) for dim in value.shape)}]"


def _title(program: ONNXProgram) -> str:
    where = "in memory" if program.path is None else str(program.path)
    return f"ONNX opset {program.model.opset_imports.get('')}, {where}"


def _rows(program: ONNXProgram) -> list[tuple[str, list[str]]]:
    model = program.model
    operators = _operators(model)
    shown = [f"{count:>5}  {name}" for name, count in operators[:_SHOWN_OPERATORS]]
    rest = sum(count for _, count in operators[_SHOWN_OPERATORS:])
    if rest:
        shown.append(f"{rest:>5}  of {len(operators) - _SHOWN_OPERATORS} other operators")
    seconds = program.stage_seconds
    times = [f"{stage:<10} {time:8.3f} s" for stage, time in seconds.items()]
    if times:
        times.append(f"{'total':<10} {sum(seconds.values()):8.3f} s")
    return [
        ("inputs", [describe_value(value) for value in model.graph.inputs]),
        ("outputs", [describe_value(value) for value in model.graph.outputs]),
        ("nodes", [f"{node_count(model):>5}  in all", *shown]),
        ("size", _sizes(program)),
        ("time", times),
        ("verified", _verification_lines(program)),
        ("notes", list(program.notes)),
    ]


def _verification_lines(program: ONNXProgram) -> list[str]:
    verification = program.verification
    if verification is None:
        return ["not run"]
    return [
        *verification.findings,
        *(f"skipped: {reason}" for reason in verification.skipped),
        *verification.baked,
    ]


def _operators(model: ir.Model) -> list[tuple[str, int]]:
    """How often each operator occurs, the most frequent first; the domain is named if not ONNX."""
    counts = Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for node in all_nodes(model)
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _sizes(program: ONNXProgram) -> list[str]:
    weights = program.model.graph.initializers
    lines = [f"{_size_text(weight_bytes(program.model))} of weights in {len(weights)} tensors"]
    if program.path is not None and program.path.exists():
        lines.append(f"{_size_text(program.path.stat().st_size)} in {program.path.name}")
    return lines


def _size_text(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    if size < 1024**2:
        return f"{size / 1024:.1f} KiB"
    if size < 1024**3:
        return f"{size / 1024**2:.1f} MiB"
    return f"{size / 1024**3:.2f} GiB"


def _value_dict(value: ir.Value) -> dict[str, Any]:
    dims = None if value.shape is None else list(value.shape)
    return {
        "name": value.name,
        "dtype": None if value.dtype is None else value.dtype.name,
        "dims": None if dims is None else [d if isinstance(d, int) else d.value for d in dims],
    }


def _dim_text(dim: int | ir.SymbolicDim) -> str:
    return str(dim) if isinstance(dim, int) else str(dim.value or "?")
