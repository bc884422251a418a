"""Stage 1: the model recorded as an AtenGraph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.aten import pytree
from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import AtenGraph, Node, Value
from sardonyx.aten.signature import ConstantLeaf, InputSpec, OutputSpec, Signature
from sardonyx.aten.type_inference import TypeInference
from sardonyx.aten.verifier import verify
from sardonyx.capture import attempts
from sardonyx.capture.attempts import capture_for
from sardonyx.capture.autograd_functions import OpaqueFunctions
from sardonyx.capture.baked_values import BakedValue
from sardonyx.capture.capture_errors import (
    SizesRejectedError,
    SpecialSizeError,
    recorded_as_taken,
)
from sardonyx.capture.explicit_nodes import outputs_of_explicit_nodes
from sardonyx.capture.exported_program import from_exported_program
from sardonyx.capture.flat_model import OutputRecord, Recorded, is_graph_output
from sardonyx.capture.inputs import fake_weights
from sardonyx.capture.inputs.binding import PreparedInputs, prepare_inputs
from sardonyx.capture.inputs.output_names import name_outputs
from sardonyx.capture.quantized.tensor import quantization_step
from sardonyx.capture.side_effects.restore import model_mode, undisturbed
from sardonyx.capture.side_effects.tensor_state import state_tensors
from sardonyx.capture.symbolic_shapes.guard_boundaries import guard_conditions
from sardonyx.capture.symbolic_shapes.guards import SmallComputedSizeError, are_special
from sardonyx.capture.symbolic_shapes.rank_guards import notes_on_ranks
from sardonyx.capture.symbolic_shapes.zero_one_specialization import checked_at_example
from sardonyx.errors import (
    CaptureError,
    DynamicDimError,
    InvalidOptionError,
    UnknownNameError,
)
from sardonyx.functionalization.conditional_copies import notes_on_copies
from sardonyx.functionalization.functionalize import functionalize
from sardonyx.notes import Note
from sardonyx.options import Options


@dataclass(frozen=True, slots=True)
class Captured:
    """A functional graph, and how it maps to the user's arguments and results."""

    graph: AtenGraph
    signature: Signature
    inputs: PreparedInputs
    notes: tuple[Note, ...]
    baked: tuple[BakedValue, ...] = ()
    """Those of the notes that are about values which the recording fixed."""
    conditions: tuple[sympy.Basic, ...] = ()
    """On the dynamic dims, that the recording depends on."""
    placeholders: Mapping[str, str] = field(default_factory=dict)
    """By output, the nodes that it is computed from and that PyTorch has zeros for."""


def capture(
    model: Any,
    args: Any,
    kwargs: dict[str, Any] | None,
    options: Options,
    functions: OpaqueFunctions | None = None,
    is_whole: Callable[[Node], bool] = lambda node: False,
) -> Captured:
    """`functions` notes the torch.autograd.Functions that become one node; without it, none do.
    `is_whole` says of a node that it will not be taken apart by PyTorch later."""
    functions = functions or OpaqueFunctions(lambda kind: False)
    if isinstance(model, ExportedProgram):
        recorded = from_exported_program(model, options)
    else:
        recorded = _recorded(model, args, kwargs, options, functions, is_whole)
    graph, inputs = recorded.graph, recorded.inputs
    _order_parameters(graph, model)
    given = [spec for spec in inputs.specs() if isinstance(spec, InputSpec)]
    for value, spec in zip(graph.inputs, given, strict=True):
        value.name = spec.name
    larger = [d.name for axes in inputs.dynamic for d in axes.values() if (d.minimum or 0) > 1]
    copies = notes_on_copies(graph, larger)
    functionalize(graph)
    verify(graph)
    notes = [
        *recorded.notes,
        *recorded.output.notes,
        *functions.notes,
        *(value.note() for value in recorded.baked),
        *notes_on_ranks(graph),
        *copies,
        *_notes_on_state(graph, recorded.output.unrecorded_buffers, options),
    ]
    if not graph.outputs and not graph.mutated:
        raise CaptureError("the model returns no tensor: there is nothing to compute in a file")
    signature = _signature(graph, inputs, recorded.output, options)
    return Captured(
        graph,
        signature,
        inputs,
        tuple(map(Note.of, notes)),
        recorded.baked,
        guard_conditions(graph, recorded.conditions),
        outputs_of_explicit_nodes(
            graph, [*(output.name for output in signature.outputs), *signature.state_outputs]
        ),
    )


def _recorded(
    model: Any,
    args: Any,
    kwargs: dict[str, Any] | None,
    options: Options,
    functions: OpaqueFunctions,
    is_whole: Callable[[Node], bool],
) -> Recorded:
    """A model in Python or TorchScript, recorded by one of the attempts."""
    if isinstance(model, type):
        raise InvalidOptionError(f"{model.__qualname__} is a class: give an instance of it")
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    if not callable(forward):
        hint = ": build the model and give it to load_state_dict" * isinstance(model, dict)
        raise InvalidOptionError(f"{type(model).__qualname__} is no model{hint}")
    if fake_weights.is_weightless(model):
        fake_weights.check_options(options)
        options = replace(options, capture="export")
    args, kwargs = fake_weights.with_values(args), fake_weights.with_values(kwargs)
    inputs = prepare_inputs(forward, args, kwargs, options)
    _check_meta_device(model, inputs, options)
    with (
        undisturbed(model),
        model_mode(model, options.training),
        functions.recorded(),
    ):
        way = capture_for(model, options.capture)
        record = partial(attempts.record, way=way)
        if way != "script":  # which has every size and number in its conditions
            record = partial(checked_at_example, record)
        return _at_generic_sizes(record, model, inputs, is_whole)


def _notes_on_state(
    graph: AtenGraph, unrecorded_buffers: Collection[str], options: Options
) -> Iterator[str]:
    """On buffers and inputs that the model writes; those that the file does not return are taken
    off the graph's mutations."""
    graph.mutated = [m for m in graph.mutated if m.name not in unrecorded_buffers]
    if unrecorded_buffers:
        yield (
            f"the model assigns to its buffer {', '.join(unrecorded_buffers)}: the file computes"
            " the outputs with that, but does not keep it from run to run (self.h.copy_(new) would"
            " be kept)"
        )
    if graph.mutated and not options.state_outputs:
        mutated = [f"{m.kind} {m.name}" for m in graph.mutated]
        yield (
            f"the model writes {', '.join(mutated)}: the file computes the outputs with the writes,"
            " but does not keep them from run to run (the option state_outputs returns them)"
        )
        graph.mutated = []


def _check_meta_device(model: Any, inputs: PreparedInputs, options: Options) -> None:
    """Tensors without values: weights only where they are left out, and then inputs as well."""
    state = dict(state_tensors(model))
    without_values = [name for name, tensor in state.items() if tensor.device.type == "meta"]
    if without_values and options.export_params:
        advice = [
            'model.to_empty(device="cpu") and model.load_state_dict(...) first',
            "or export_params=False, for a file that takes its weights as inputs",
        ]
        raise CaptureError(
            f"the model's {without_values[0]!r} is on the meta device: there are no values to"
            " write",
            [("try", advice)],
        )
    for name, leaf in zip(inputs.names, inputs.leaves, strict=True):
        if not isinstance(leaf, torch.Tensor):
            continue
        if without_values and leaf.device.type != "meta":
            raise CaptureError(
                f"the model's {without_values[0]!r} is on the meta device, the input {name!r} is"
                f' on {leaf.device}: give it as {name}.to("meta")'
            )
        if state and not without_values and leaf.device.type == "meta":
            raise CaptureError(
                f"the input {name!r} is on the meta device, the model is not: give real values"
            )


_MOST_RECORDINGS = 2


def _at_generic_sizes(
    record: Callable[[Any, PreparedInputs], Recorded],
    model: Any,
    inputs: PreparedInputs,
    is_whole: Callable[[Node], bool],
) -> Recorded:
    """The recording; where a small size of the example gets fixed, one at a larger size."""
    larger = inputs.recorded_larger()
    try:
        recorded = record(model, inputs)
    except DynamicDimError as refusal:
        changed: Iterable[PreparedInputs | None] = [larger]
        if isinstance(refusal, SizesRejectedError) and not inputs.follows:
            changed = islice(recorded_as_taken(model, inputs), 1)
        elif isinstance(refusal, SpecialSizeError) and not inputs.follows:
            changed = chain(changed, islice(recorded_as_taken(model, inputs), _MOST_RECORDINGS))
        elif isinstance(refusal, SmallComputedSizeError) and inputs.keeps(refusal.sizes):
            changed = [inputs.recorded_doubled()]
        for other in changed:
            if other is not None:
                with contextlib.suppress(CaptureError):
                    return _at_generic_sizes(record, model, other, is_whole)
        raise
    if recorded.baked or all(map(is_whole, all_nodes(recorded.graph.nodes))):
        return recorded
    # What an operator is made of, which is known later, would ask whether a size is 1.
    for others in (larger, inputs.recorded_doubled()):
        if others is not None and _has_special_sizes(recorded, others):
            with contextlib.suppress(CaptureError):
                again = record(model, others)
                return recorded if again.baked else again
    return recorded


def _has_special_sizes(recorded: Recorded, larger: PreparedInputs) -> bool:
    """Whether the recording has sizes of 0 or 1 that would not be that in the larger one."""
    graph, inputs = recorded.graph, recorded.inputs
    sizes = _torch_private.example_sizes(TypeInference.for_graph(graph).mode)
    larger_sizes = dict(sizes)
    for value, position in zip(graph.inputs, inputs.input_positions, strict=True):
        leaf = larger.capture_leaves[position]
        if isinstance(leaf, torch.Tensor):
            symbols = zip(value.shape, leaf.shape, strict=True)
            larger_sizes.update({s: n for s, n in symbols if isinstance(s, sympy.Symbol)})
    shapes = {v.shape for node in graph.nodes for v in node.outputs if v.has_shape}
    return any(are_special(shape, sizes, larger_sizes) for shape in shapes)


def _order_parameters(graph: AtenGraph, model: Any) -> None:
    """Parameters and buffers as the state_dict lists them; constants of the graph after them."""
    if isinstance(model, torch.nn.Module):
        order = {name: i for i, name in enumerate(model.state_dict())}
        graph.parameters = dict(
            sorted(graph.parameters.items(), key=lambda item: order.get(item[0], len(order)))
        )


def _signature(
    graph: AtenGraph, inputs: PreparedInputs, output: OutputRecord, options: Options
) -> Signature:
    given = options.input_names[: inputs.nameable_count]
    # The names beyond the inputs are new ones for the parameters, in order.
    parameters = list(graph.parameters)[max(len(options.input_names) - inputs.nameable_count, 0) :]
    specs = _apart_from_parameters(inputs.specs(), given, parameters)
    input_specs = tuple(s for s in specs if isinstance(s, InputSpec))
    assert output.structure is not None
    taken = [*(s.name for s in input_specs), *parameters]
    paths = list(pytree.paths(output.structure))
    kept = [p for p, leaf in zip(paths, output.leaves, strict=True) if is_graph_output(leaf)]
    state_paths = [(f"{m.name}.out",) for m in graph.mutated]
    names = name_outputs([*kept, *state_paths], options.output_names, taken)
    unknown = [name for name in inputs.output_axes if name not in names]
    if unknown:
        refusal = UnknownNameError(
            f"dynamic_axes names {unknown[0]!r}, which is neither an input nor an output",
            [("inputs", ", ".join(s.name for s in input_specs)), ("outputs", ", ".join(names))],
        )
        refusal.name = unknown[0]
        raise refusal
    found, values = iter(names), iter(graph.outputs)
    leaves: list[OutputSpec | ConstantLeaf] = [
        OutputSpec(
            next(found), ".".join(path), id(leaf) in output.lists, quantization_step(next(values))
        )
        if is_graph_output(leaf)
        else ConstantLeaf(leaf)
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
        complex_outputs=frozenset(
            name
            for name, output in zip(
                names, [*graph.outputs, *(m.final for m in graph.mutated)], strict=True
            )
            if isinstance(output, Value) and output.dtype.is_complex
        ),
        argument_names=inputs.argument_names,
    )


def _apart_from_parameters(
    specs: list[InputSpec | ConstantLeaf], given: Sequence[str], parameters: Collection[str]
) -> list[InputSpec | ConstantLeaf]:
    """Inputs under names that no parameter has: state_dict names stay as they are."""
    taken = {*parameters, *(s.name for s in specs if isinstance(s, InputSpec))}
    apart: list[InputSpec | ConstantLeaf] = []
    for spec in specs:
        if isinstance(spec, InputSpec) and spec.name in parameters:
            if spec.name in given:
                raise InvalidOptionError(
                    f"input name {spec.name!r} is also the name of a parameter; give another one"
                )
            name = f"{spec.name}_input"
            while name in taken:
                name += "_input"
            taken.add(name)
            spec = replace(spec, name=name)
        apart.append(spec)
    return apart
