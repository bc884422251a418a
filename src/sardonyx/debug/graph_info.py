"""GraphInfo: a part of a model, whether it differs in ONNX, and which parts of it do."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from sardonyx.aten.graph import AtenGraph, Node, RecordedGraph, Value
from sardonyx.debug.repro import write_repro
from sardonyx.debug.subgraph import Subgraph
from sardonyx.debug.verification_options import VerificationOptions, differences
from sardonyx.errors import (
    InvalidOptionError,
    MissingDependencyError,
    SardonyxError,
    VerificationError,
)
from sardonyx.serialize.text import to_text
from sardonyx.verify.randomness import random_outputs

_PLACES_SHOWN = 10

ExportGraph = Callable[[AtenGraph, Sequence[str], Sequence[str]], ir.Model]
"""Takes a graph and the names of its inputs and outputs."""


@dataclass(frozen=True)
class RecordedRun:
    """A model that was recorded, every value of a run of it, and how parts of it are exported."""

    graph: AtenGraph
    values: Mapping[Value, Any]
    names: Mapping[Value, str]
    export: ExportGraph

    def named(self, values: Sequence[Value]) -> dict[str, Any]:
        return {self.names[value]: self.values[value] for value in values}


class GraphInfo:
    """A part of a model: consecutive operators, compared with their ONNX form on the values
    that they have in PyTorch. `find_mismatch` makes one of the whole model."""

    def __init__(self, run: RecordedRun, stretch: Subgraph, id: str = "") -> None:
        self._run = run
        self._stretch = stretch
        self._model: ir.Model | None = None
        self._inputs = run.named(stretch.inputs())
        self._outputs = run.named(stretch.outputs())
        self.id = id
        """Its place in the tree: a 0 for every upper half on the way there, a 1 for a lower."""
        self.input_args: tuple[torch.Tensor, ...] = tuple(self._inputs.values())
        """What it reads from outside, as PyTorch computed it."""
        self.pt_outs: tuple[Any, ...] | None = None
        """What PyTorch computes; None before the comparison."""
        self.mismatch_error: VerificationError | None = None
        """What differs, or why it does not run; None where nothing does."""
        self.upper_graph_info: GraphInfo | None = None
        """The first half of it, where it was divided."""
        self.lower_graph_info: GraphInfo | None = None
        """The second half of it, where it was divided."""

    @property
    def graph(self) -> RecordedGraph:
        """Its operators as they were recorded; prints them, one a line."""
        return RecordedGraph(self._stretch.as_graph())

    def has_mismatch(self) -> bool:
        """Whether the ONNX form was found to differ."""
        return self.mismatch_error is not None

    def find_mismatch(self, options: VerificationOptions | None = None) -> None:
        """Compare; where it differs divide it in halves, and look into both."""
        options = VerificationOptions() if options is None else options
        if not isinstance(options, VerificationOptions):
            raise InvalidOptionError(f"options must be VerificationOptions, not {options!r}")
        self.clear()
        self._compare(options)
        if not self.has_mismatch():
            return
        for upper, lower in self._stretch.halves():
            halves = (
                GraphInfo(self._run, upper, f"{self.id}0"),
                GraphInfo(self._run, lower, f"{self.id}1"),
            )
            try:
                for half in halves:
                    half._exported()
            except SardonyxError:
                continue  # a form may need what an operator before it says: divided elsewhere
            self.upper_graph_info, self.lower_graph_info = halves
            for half in halves:
                half.find_mismatch(options)
            return

    def find_partition(self, id: str) -> GraphInfo | None:
        """The part of this id, among this one and those that it was divided into."""
        return next((info for info in self._all() if info.id == id), None)

    def all_mismatch_leaf_graph_info(self) -> list[GraphInfo]:
        """The smallest parts that differ."""
        return [
            info
            for info in self._all()
            if info.has_mismatch() and not any(half.has_mismatch() for half in info._halves())
        ]

    def essential_node_count(self) -> int:
        """How many operators it has."""
        return len(self._stretch.nodes)

    def essential_node_kinds(self) -> set[str]:
        """The names of its operators, as `aten::gelu`."""
        return {_kind(node) for node in self._stretch.nodes}

    def pretty_print_mismatch(self, graph: bool = False) -> None:
        """Print what differs, with the lines of its operators; `graph`: their ONNX form too."""
        found = self.mismatch_error or f"no difference in {self._operators()}"
        print(f"part {self.id!r}: {found}")
        if graph:
            print(to_text(self._exported()))

    def pretty_print_tree(self) -> None:
        """Print all parts that were compared, with their ids, and the smallest that differ."""
        for info in self._all():
            indent = "  " * (len(info.id) - len(self.id))
            mark = "✗" if info.has_mismatch() else "✓"
            print(f"{indent}{mark} {info._operators()}  id: {info.id!r}")
        leaves = self.all_mismatch_leaf_graph_info()
        kinds = Counter(_kind(node) for info in leaves for node in info._stretch.nodes)
        print(f"differ: {', '.join(f'{k} ({n})' for k, n in kinds.items()) or 'none'}")

    def export_repro(
        self, repro_dir: str | os.PathLike[str] | None = None, name: str | None = None
    ) -> str:
        """Write the part as a model with its inputs and PyTorch's outputs, and return the folder:
        `test_<name>` in `repro_dir`, which is `onnx_debug` here if none is given.

        It has `model.onnx`, and `test_data_set_0` with `input_0.pb`, `output_0.pb` and so on.
        """
        parent = Path("onnx_debug") if repro_dir is None else Path(repro_dir)
        folder = parent.absolute() / f"test_{name or f'mismatch_{self.id}'.rstrip('_')}"
        write_repro(folder, self._exported(), self._inputs, self._outputs)
        return str(folder)

    def clear(self) -> None:
        """Forget what was found."""
        self.mismatch_error = None
        self.pt_outs = None
        self.upper_graph_info = self.lower_graph_info = None

    def _exported(self) -> ir.Model:
        if self._model is None:
            names = list(self._inputs), list(self._outputs)
            self._model = self._run.export(self._stretch.as_graph(), *names)
        return self._model

    def _compare(self, options: VerificationOptions) -> None:
        model = self._exported()
        self.pt_outs = tuple(self._outputs.values())
        if not self._outputs:
            return
        try:
            actual = options.backend.run(model, self._inputs)
        except MissingDependencyError:
            raise
        except VerificationError as error:
            self.mismatch_error = error
            return
        problems = differences(self._outputs, actual, options, random_outputs(model))
        if problems:
            self.mismatch_error = VerificationError(
                f"ONNX and PyTorch differ in {self._operators()}",
                [("output", problems), ("from", self._places())],
            )

    def _operators(self) -> str:
        nodes = self._stretch.nodes
        return _kind(nodes[0]) if len(nodes) == 1 else f"{len(nodes)} operators"

    def _places(self) -> list[str]:
        nodes = self._stretch.nodes
        shown = [f"{_kind(n)} · {n.location.describe()}" for n in nodes[:_PLACES_SHOWN]]
        more = len(nodes) - len(shown)
        return [*shown, f"and {more} more"] if more else shown

    def _halves(self) -> list[GraphInfo]:
        halves = (self.upper_graph_info, self.lower_graph_info)
        return [half for half in halves if half is not None]

    def _all(self) -> Iterator[GraphInfo]:
        yield self
        for half in self._halves():
            yield from half._all()


def _kind(node: Node) -> str:
    return node.display_name.partition(".")[0]
