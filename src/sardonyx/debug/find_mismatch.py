"""Searches for the operators whose ONNX form differs from PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from sardonyx.aten.graph import AtenGraph, Value, values_in
from sardonyx.capture.autograd_functions import OpaqueFunctions
from sardonyx.capture.capture import Captured, capture
from sardonyx.capture.inputs.binding import split_arguments
from sardonyx.capture.inputs.fake_weights import is_weightless
from sardonyx.capture.opaque_calls import KeptCalls
from sardonyx.debug.graph_info import GraphInfo, RecordedRun
from sardonyx.debug.node_values import node_values
from sardonyx.debug.subgraph import Subgraph
from sardonyx.debug.verification_options import VerificationOptions
from sardonyx.errors import InvalidOptionError
from sardonyx.extend.autograd_function import function_forms, opaque_functions
from sardonyx.extend.gradients import trainable_parameters
from sardonyx.extend.symbolic_functions.registration import custom_forms, operators_kept
from sardonyx.legalize import legalize, supported_opset, use_available_kernels
from sardonyx.lower.constant_folding import fold_constants
from sardonyx.lower.dead_code import remove_unused
from sardonyx.lower.lower import LowerOptions, lower
from sardonyx.optimize.pipeline import optimize
from sardonyx.options import Options, TrainingMode
from sardonyx.serialize.metadata import stamp_metadata
from sardonyx.serialize.names import assign_names
from sardonyx.serialize.parameters import parameters_as_inputs


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
    inlines = export_options.inlines_autograd_functions
    with (
        closing(opaque_functions(opset, inlines=inlines)) as functions,
        closing(operators_kept(opset, ())) as kept,
    ):
        info = _whole(model, input_args, export_options, functions, kept)
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
    model: Any, input_args: Any, options: Options, functions: OpaqueFunctions, kept: KeptCalls
) -> GraphInfo:
    opset = options.opset_version
    with kept.recorded():
        captured = capture(model, input_args, None, options, functions)
    own = function_forms(functions, opset)
    forms = custom_forms(opset, {}, own, trainable_parameters(model), None, kept)
    lower_options = LowerOptions(
        fold_constants=options.do_constant_folding,
        fold_parameters=not options.keeps_parameters,
        opset=opset,
        custom_forms=forms,
    )
    graph = captured.graph
    remove_unused(graph)
    if lower_options.fold_constants:  # before it is divided: forms look at constants
        fold_constants(
            graph,
            fold_parameters=lower_options.fold_parameters,
            keeps=lambda name: forms.find(name) is not None,
        )
    run = RecordedRun(
        graph,
        node_values(graph, captured.signature.flatten(*_arguments(model, input_args, captured))),
        _names(captured),
        partial(_exported, options=lower_options, keeps_parameters=options.keeps_parameters),
    )
    return GraphInfo(run, Subgraph(graph, 0, len(graph.nodes)))


def _arguments(
    model: Any, input_args: Any, captured: Captured
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(model, torch.export.ExportedProgram):
        return split_arguments(input_args, None)
    return captured.inputs.args, dict(captured.inputs.kwargs)


def _exported(
    graph: AtenGraph,
    input_names: Sequence[str],
    output_names: Sequence[str],
    *,
    options: LowerOptions,
    keeps_parameters: bool,
) -> ir.Model:
    """The stages after the capture, for a part of the model."""
    model = lower(graph, input_names, output_names, options)
    legalize(model, options.opset)
    use_available_kernels(model)
    optimize(model, fold_parameters=options.fold_parameters)
    assign_names(model)
    stamp_metadata(model)
    if keeps_parameters:
        names = [name for name in graph.parameters if name in model.graph.initializers]
        parameters_as_inputs(model, keep_data=True, names=names)
    return model


def _names(captured: Captured) -> Mapping[Value, str]:
    """A unique name for every value that a part may take or give."""
    names: dict[Value, str] = {}
    taken = set(captured.graph.parameters)
    for value, name in _wanted_names(captured):
        if value in names:
            continue
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        names[value] = unique
        taken.add(unique)
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
