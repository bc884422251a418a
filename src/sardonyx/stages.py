"""The stages from a PyTorch model to the ONNX model that is written, as every caller runs them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from sardonyx import _torch_private
from sardonyx.aten.graph import AtenGraph
from sardonyx.aten.location import place_text
from sardonyx.aten.module_calls import ModuleClass, module_classes
from sardonyx.aten.signature import InputSpec
from sardonyx.capture.capture import Captured, capture
from sardonyx.capture.capture_errors import place_of
from sardonyx.capture.interrupts import interrupts_deferred
from sardonyx.errors import InternalError, SardonyxError, first_line
from sardonyx.extend.autograd_function import function_forms, opaque_functions
from sardonyx.extend.fallback import fallback_for
from sardonyx.extend.gradients import trainable_parameters
from sardonyx.extend.onnx_functions import translations
from sardonyx.extend.symbolic_functions.registration import custom_forms, operators_kept
from sardonyx.legalize import legalize, store_constants, use_available_kernels
from sardonyx.lower.lower import LowerOptions, has_form_of_its_own, lower
from sardonyx.lower.onnx_types.verifier import verify_onnx
from sardonyx.optimize.outline_modules import outline_modules
from sardonyx.optimize.pipeline import optimize
from sardonyx.options import Options
from sardonyx.serialize.interface import name_dims, rename_parameters
from sardonyx.serialize.metadata import stamp_metadata
from sardonyx.serialize.names import assign_names
from sardonyx.serialize.parameters import parameters_as_inputs

LOGGER = logging.getLogger("sardonyx")
"""Says what each export does; `enable_log` shows it."""


class StageTimes:
    """Times each stage and reports which one is running."""

    def __init__(self, progress: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        # The file is written after the verification, and serialize is announced by then.
        if self._progress is not None and name not in self.seconds:
            self._progress(name)
        start = time.perf_counter()
        try:
            yield
        except (SardonyxError, Warning, OSError, MemoryError):
            raise
        except Exception as error:
            at = place_text(place_of(error))
            headline = f"an error that nothing foresaw, in {name}: {first_line(error)}"
            raise InternalError(headline, [("at", at)]) from error
        finally:
            took = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            LOGGER.info("%s: %.3f s", name, took)


@contextmanager
def captured_model(
    model: Any, args: Any, kwargs: dict[str, Any] | None, options: Options, stage: StageTimes
) -> Iterator[tuple[Captured, LowerOptions]]:
    """The recorded model and how it is lowered; operators that stand for calls of the model's own
    functions exist until the context ends."""
    opset = options.opset_version
    translated = translations(options.custom_translation_table, opset)
    with (
        _torch_private.modes_restored(),
        closing(opaque_functions(opset, inlines=options.inlines_autograd_functions)) as functions,
        closing(operators_kept(opset, translated)) as kept,
    ):
        with stage("capture"), kept.recorded(), interrupts_deferred():
            captured = capture(model, args, kwargs, options, functions, has_form_of_its_own)
        names_fit = len(options.input_names) <= captured.inputs.nameable_count
        yield (
            captured,
            LowerOptions(
                fold_constants=options.do_constant_folding,
                fold_parameters=not options.keeps_parameters and names_fit,
                opset=opset,
                notes_calls=bool(options.export_modules_as_functions),
                custom_forms=custom_forms(
                    opset,
                    options.custom_opsets,
                    {**translated, **function_forms(functions, opset)},
                    trainable_parameters(model),
                    fallback_for(options.operator_export_type),
                    kept,
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class Interface:
    """What the file calls its inputs, outputs and parameters."""

    input_names: Sequence[str]
    output_names: Sequence[str]
    input_specs: Sequence[InputSpec] = ()
    """Of those inputs whose dims have names."""
    output_axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    parameter_names: Sequence[str] = ()
    """Other names for the first parameters."""

    @classmethod
    def of(cls, captured: Captured, options: Options) -> Interface:
        signature = captured.signature
        return cls(
            [spec.name for spec in signature.inputs],
            [*(spec.name for spec in signature.outputs), *signature.state_outputs],
            signature.inputs,
            captured.inputs.output_axes,
            options.input_names[captured.inputs.nameable_count :],
        )


def to_onnx(
    graph: AtenGraph,
    interface: Interface,
    lowering: LowerOptions,
    options: Options,
    stage: StageTimes,
    model_to_outline: Any = None,
) -> tuple[ir.Model, tuple[str, ...]]:
    """The stages after capture, each verified: the ONNX model as it is written, and notes.

    Modules of `model_to_outline` become functions of the file where the options ask for it.
    """
    opset = options.opset_version
    with stage("lower"):
        model = lower(graph, interface.input_names, interface.output_names, lowering)
    with stage("legalize"):
        legalize(model, opset)
        notes = list(use_available_kernels(model)) if options.target == "onnxruntime" else []
        verify_onnx(model, "legalize", opset)
    with stage("optimize"):
        # Before anything is simplified across the bounds of modules.
        if options.export_modules_as_functions:
            notes += _outline(model, model_to_outline, graph, options)
        if options.optimize:
            optimize(model, fold_parameters=lowering.fold_parameters)
            store_constants(model)
    with stage("serialize"):
        _name(model, interface, list(graph.parameters), options)
        verify_onnx(model, "optimize", opset, is_named=True)
    return model, tuple(notes)


def _outline(model: ir.Model, module: Any, graph: AtenGraph, options: Options) -> list[str]:
    wanted = options.export_modules_as_functions
    classes = None if isinstance(wanted, bool) else {ModuleClass.of(kind) for kind in wanted}
    return outline_modules(model, module_classes(module), classes, graph.parameters)


def _name(
    model: ir.Model, interface: Interface, parameters: Sequence[str], options: Options
) -> None:
    """Names, metadata, and parameters among the inputs."""
    name_dims(model, interface.input_specs, interface.output_axes)
    renamed = interface.parameter_names
    rename_parameters(model, renamed, parameters)
    assign_names(model)
    stamp_metadata(model)
    if options.keeps_parameters:
        parameters = [*renamed, *parameters[len(renamed) :]]
        names = [name for name in parameters if name in model.graph.initializers]
        parameters_as_inputs(model, keep_data=options.export_params, names=names)
