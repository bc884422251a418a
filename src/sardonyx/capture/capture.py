"""Stage 1: the model recorded as an AtenGraph, by the way that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from sardonyx.capture import tree
from sardonyx.capture.contract import check_contract
from sardonyx.capture.export_capture import capture_by_export, inputs_of_exported_program
from sardonyx.capture.exported import graph_from_exported_program
from sardonyx.capture.flat_model import OutputRecord, Recorded, is_graph_output
from sardonyx.capture.functionalize import functionalize
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.inputs import PreparedInputs, prepare_inputs
from sardonyx.capture.location import ModuleNames
from sardonyx.capture.outputs import name_outputs
from sardonyx.capture.purity import model_mode, undisturbed
from sardonyx.capture.signature import ConstantLeaf, InputSpec, OutputSpec, Signature
from sardonyx.capture.trace import capture_by_trace
from sardonyx.errors import CaptureError, DynamicDimError, InvalidOptionError, format_message
from sardonyx.options import Options


@dataclass(frozen=True, slots=True)
class Captured:
    """A functional graph, and how it maps to the user's arguments and results."""

    graph: AtenGraph
    signature: Signature
    inputs: PreparedInputs
    notes: tuple[str, ...]


def capture(model: Any, args: Any, kwargs: dict[str, Any] | None, options: Options) -> Captured:
    if isinstance(model, ExportedProgram):
        recorded = _from_program(model)
    else:
        if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            raise CaptureError(
                "scripted models are not supported yet: give the plain module, or an ExportedProgram"
            )
        forward = model.forward if isinstance(model, torch.nn.Module) else model
        if not callable(forward):
            raise InvalidOptionError(f"a {type(model).__qualname__} is no model")
        inputs = prepare_inputs(forward, args, kwargs, options)
        with undisturbed(model), model_mode(model, options.training):
            recorded = _record(model, inputs, options.capture)
    graph, inputs = recorded.graph, recorded.inputs
    _order_parameters(graph, model)
    functionalize(graph)
    check_contract(graph)
    mutated = [f"{m.kind} {m.name}" for m in graph.mutated]
    notes = [*recorded.notes, *recorded.baked]
    if mutated and not options.state_outputs:
        notes.append(
            f"the model writes {', '.join(mutated)}: the file computes the outputs with the writes, but"
            " does not keep them from run to run (state_outputs=True returns them)"
        )
        graph.mutated = []
    signature = _signature(graph, inputs, recorded.output, options)
    return Captured(graph, signature, inputs, tuple(notes))


def _order_parameters(graph: AtenGraph, model: Any) -> None:
    """Parameters and buffers as the state_dict lists them; constants of the graph after them."""
    if isinstance(model, torch.nn.Module):
        order = {name: i for i, name in enumerate(model.state_dict())}
        graph.parameters = dict(
            sorted(graph.parameters.items(), key=lambda item: order.get(item[0], len(order)))
        )


def _record(model: Any, inputs: PreparedInputs, way: str) -> Recorded:
    if way == "export":
        return capture_by_export(model, inputs)
    if way == "trace":
        return capture_by_trace(model, inputs)
    if way != "auto":
        raise InvalidOptionError(f"capture={way!r} is not known: auto, export or trace")
    try:
        return capture_by_export(model, inputs)
    except DynamicDimError:
        raise
    except CaptureError as error:
        refusal = error
    recorded = capture_by_trace(model, inputs)
    if recorded.baked:
        raise CaptureError(
            format_message(
                "neither torch.export nor tracing can record the model faithfully",
                [
                    ("export", str(refusal).splitlines()[0]),
                    ("trace", recorded.baked),
                    ("try", 'capture="trace" to accept the baked values'),
                ],
            )
        ) from refusal
    return recorded


def _from_program(program: ExportedProgram) -> Recorded:
    graph = graph_from_exported_program(program, ModuleNames("", {}), strip_prefix=False)
    for value in graph.inputs:
        for axis, size in enumerate(value.shape):
            if not isinstance(size, int) and size.is_Symbol:
                graph.symbol_names.setdefault(size, f"{value.name}_dim_{axis}")
    output = OutputRecord()
    from sardonyx import _torch_private

    specs = [s for s in program.graph_signature.output_specs if s.kind.name == "USER_OUTPUT"]
    leaves = [getattr(s.arg, "value", 0.0) for s in specs]
    output.note(_torch_private.result_like(program, leaves))
    return Recorded(graph, output, inputs_of_exported_program(program))


def _signature(
    graph: AtenGraph, inputs: PreparedInputs, output: OutputRecord, options: Options
) -> Signature:
    specs = inputs.specs()
    input_specs = tuple(s for s in specs if isinstance(s, InputSpec))
    assert output.structure is not None
    taken = [*(s.name for s in input_specs), *graph.parameters]
    paths = list(tree.paths(output.structure))
    kept = [p for p, leaf in zip(paths, output.leaves, strict=True) if is_graph_output(leaf)]
    state_paths = [(f"{m.name}.out",) for m in graph.mutated]
    names = name_outputs([*kept, *state_paths], options.output_names, taken)
    found = iter(names)
    leaves: list[OutputSpec | ConstantLeaf] = [
        OutputSpec(next(found), ".".join(path)) if is_graph_output(leaf) else ConstantLeaf(leaf)
        for path, leaf in zip(paths, output.leaves, strict=True)
    ]
    outputs = tuple(leaf for leaf in leaves if isinstance(leaf, OutputSpec))
    return Signature(
        inputs=input_specs,
        outputs=outputs,
        input_structure=inputs.structure,
        input_leaves=tuple(specs),
        output_structure=output.structure,
        output_leaves=tuple(leaves),
        keyword_names=tuple(inputs.kwargs),
        state_outputs=tuple(found),
    )
