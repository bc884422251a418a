"""Searches for the operators whose ONNX form differs from PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from sardonyx.aten.graph import AtenGraph, Value, values_in
from sardonyx.aten.node_values import node_values
from sardonyx.capture.capture import Captured
from sardonyx.capture.inputs.binding import split_arguments
from sardonyx.capture.inputs.fake_weights import is_weightless
from sardonyx.debug.graph_info import GraphInfo, RecordedRun
from sardonyx.debug.subgraph import Subgraph
from sardonyx.debug.verification_options import VerificationOptions
from sardonyx.errors import InvalidOptionError
from sardonyx.legalize import supported_opset
from sardonyx.legalize.emitter import UniqueNames
from sardonyx.lower.lower import LowerOptions, simplify
from sardonyx.options import Options, TrainingMode
from sardonyx.stages import Interface, StageTimes, captured_model, to_onnx


def find_mismatch(
    model: Any,
    input_args: Any,
    do_constant_folding: bool = True,
    training: TrainingMode | int = TrainingMode.EVAL,
    opset_version: int | None = None,
    keep_initializers_as_inputs: bool = True,
    verbose: bool = False,
    options: VerificationOptions | None = None,
) -> GraphInfo:
    """Find the operators whose ONNX form computes something else than PyTorch.

    The model is traced, unless it is TorchScript or exported already, and its operators are run one
    by one, so that every value in between is known. What differs is divided in halves, each
    exported alone and run on PyTorch's values, down to single operators. All the values are held
    while the result lives.

    Args:
        model: A module, a function of tensors, or an `ExportedProgram`.
        input_args: The inputs, as `args` of `export`.
        do_constant_folding: As in `export`.
        training: The mode the model is exported in.
        opset_version: The opset of the export.
        keep_initializers_as_inputs: As in `export`.
        verbose: Print the parts that were compared, and what differs.
        options: How closely to compare, and what runs the ONNX form.
    """
    opset = supported_opset(opset_version)
    if is_weightless(model):
        raise InvalidOptionError("the model was made without weights: there are no values to find")
    export_options = Options(
        do_constant_folding=do_constant_folding,
        training=TrainingMode.of(training),
        opset_version=opset,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        capture="auto" if _is_recorded(model) else "trace",
    )
    stage = StageTimes()
    with captured_model(model, input_args, None, export_options, stage) as (captured, lowering):
        info = _whole(model, input_args, captured, lowering, export_options)
        info.find_mismatch(options)
    if verbose:
        info.pretty_print_tree()
        for leaf in info.all_mismatch_leaf_graph_info():
            leaf.pretty_print_mismatch(graph=True)
    return info


def _is_recorded(model: Any) -> bool:
    kinds = (torch.jit.ScriptModule, torch.jit.ScriptFunction, torch.export.ExportedProgram)
    return isinstance(model, kinds)


def _whole(
    model: Any, input_args: Any, captured: Captured, lowering: LowerOptions, options: Options
) -> GraphInfo:
    graph = captured.graph
    simplify(graph, lowering)  # before it is divided: forms look at constants

    def export_part(
        part: AtenGraph, input_names: Sequence[str], output_names: Sequence[str]
    ) -> ir.Model:
        interface = Interface(input_names, output_names)
        return to_onnx(part, interface, lowering, options, StageTimes())[0]

    run = RecordedRun(
        graph,
        node_values(graph, captured.signature.flatten(*_arguments(model, input_args, captured)))[1],
        _names(captured),
        export_part,
    )
    return GraphInfo(run, Subgraph(graph, 0, len(graph.nodes)))


def _arguments(
    model: Any, input_args: Any, captured: Captured
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(model, torch.export.ExportedProgram):
        return split_arguments(input_args, None)
    return captured.inputs.args, dict(captured.inputs.kwargs)


def _names(captured: Captured) -> Mapping[Value, str]:
    """A unique name for every value that a part may take or give."""
    names: dict[Value, str] = {}
    unique = UniqueNames(captured.graph.parameters)
    for value, name in _wanted_names(captured):
        if value not in names:
            names[value] = unique.derived_from(name)
    return names


def _wanted_names(captured: Captured) -> Iterator[tuple[Value, str]]:
    graph, signature = captured.graph, captured.signature
    for value, given in zip(graph.inputs, signature.inputs, strict=True):
        yield value, given.name
    for output, returned in zip(graph.outputs, signature.outputs, strict=True):
        for value in values_in(output):
            yield value, returned.name
    for node in graph.nodes:
        for value in node.outputs:
            yield value, node.op._schema.name.rpartition("::")[2]
