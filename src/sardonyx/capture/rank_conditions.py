"""Results that PyTorch gives fewer dims where a size is 1: a file has one number of dims."""

from __future__ import annotations

import torch

from sardonyx.capture.graph import AtenGraph, Value
from sardonyx.capture.location import place_text

_OF_ROWS = (torch.ops.aten.cov.default, torch.ops.aten.corrcoef.default)


def notes_on_ranks(graph: AtenGraph) -> list[str]:
    """What a recording with dynamic sizes holds for, as far as numbers of dims depend on it."""
    notes: dict[str, None] = {}
    for node in graph.nodes:
        rows = node.arguments.get("self")
        if node.op not in _OF_ROWS or not isinstance(rows, Value):
            continue
        if len(rows.shape) == 2 and not isinstance(rows.shape[0], int):
            where = node.location
            place = place_text((where.file, where.line, where.text))
            at = f" at {place}" if place else ""
            notes[
                "the recording holds where there are two rows or more:"
                f" {node.op._opname} of one has no dims{at}"
            ] = None
    return list(notes)
