"""export(): one call per stage."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.capture import Captured
from sardonyx.capture.inputs.binding import split_arguments
from sardonyx.capture.inputs.fake_weights import is_weightless, names_of_tied_weights
from sardonyx.capture.inputs.wrappers import unwrapped
from sardonyx.errors import InternalError, InvalidOptionError
from sardonyx.garbage_collection import older_objects_set_aside
from sardonyx.legalize import supported_opset
from sardonyx.option_names import OF_OTHER_EXPORTERS, suggests_options
from sardonyx.options import ExternalData, OperatorExportTypes, Options, TrainingMode
from sardonyx.program import ONNXProgram
from sardonyx.serialize.destination import check_destination
from sardonyx.stages import LOGGER, Interface, StageTimes, captured_model, to_onnx
from sardonyx.verify.eager import EagerModel

_ONE_AT_A_TIME = threading.RLock()
"""While a model is recorded, parts of PyTorch and of Python are others, for the whole process."""


@suggests_options("export", OF_OTHER_EXPORTERS)
def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    export_params: bool = True,
    verbose: bool = False,
    training: TrainingMode | int = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    opset_version: int | None = None,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type] = False,
    autograd_inlining: bool = True,
    *,
    kwargs: dict[str, Any] | None = None,
    capture: str = "auto",
    dynamic_shapes: Any = None,
    target: str = "onnxruntime",
    external_data: bool | ExternalData | None = None,
    optimize: bool = True,
    verify: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    state_outputs: bool = False,
    custom_translation_table: Mapping[Any, Any] | None = None,
    custom_op_libraries: Sequence[str | os.PathLike[str]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ONNXProgram:
    """Turn a PyTorch model into ONNX.

    Args:
        model: A module, a function of tensors, or an `ExportedProgram`.
        args: The example inputs: a tensor, a tuple, or a tuple whose last element is a dict of
            keyword arguments.
        f: A path or a writable binary file; None writes nothing. The program is returned anyway.
        export_params: False leaves the weights out: they become inputs of the file.
        verbose: Print the graph in its textual form.
        training: The mode the model is exported in.
        input_names: Names for the inputs, then for the parameters, in order.
        output_names: Names for the outputs, in order.
        operator_export_type: What becomes of operators without an ONNX form: refused (ONNX), nodes
            `org.pytorch.aten::ATen` (ONNX_ATEN_FALLBACK), or custom nodes named after the operator
            (ONNX_FALLTHROUGH). ONNX_ATEN and RAW write all operators so, with a form or without.
        opset_version: The opset of the file, 7 or newer.
        do_constant_folding: Compute at export time what depends on weights and constants only.
        dynamic_axes: Dims that may vary, by input name: a list of axes or a dict of axis to name.
        keep_initializers_as_inputs: Also list the weights among the inputs.
        custom_opsets: Versions of custom domains; 1 for those that are not named.
        export_modules_as_functions: True makes a function of the file of every class of modules,
            a set of classes of those alone; needs opset 15.
        autograd_inlining: False keeps a `torch.autograd.Function` without a symbolic function as
            one node `prim::PythonOp`, instead of the operators that its `forward` runs.
        kwargs: Keyword arguments of the example, instead of a dict at the end of `args`.
        capture: How the model is recorded: "export", "trace", "script" (as a TorchScript program),
            or "auto": TorchScript as what it is; anything else as "export", where data decides a
            branch or a loop as "script", and as "trace" if no value of the example is kept.
        dynamic_shapes: Dims that may vary, nested like the inputs, as `torch.export` takes them.
        target: What the file is to run in: "onnxruntime", which gets other operators and types
            where it has no kernel, or "onnx", any runtime that has the whole opset.
        external_data: Weights in a separate file: True, False, None (above 2 GB), or a
            `sardonyx.ExternalData` that says how.
        optimize: Simplify the graph.
        verify: Run the file in ONNX Runtime against the model; raise where they differ.
        rtol: The relative error that verification accepts; by default one that suits the dtype.
        atol: The absolute error that verification accepts; by default one that suits the dtype.
        state_outputs: Return inputs and buffers that the model writes as extra outputs.
        custom_translation_table: Functions for operators, as {torch.ops.aten.selu.default: selu}:
            of onnxscript, or symbolic ones.
        custom_op_libraries: Shared libraries with operators of custom domains, for running the file
            in ONNX Runtime.
        progress: Called with the name of each stage as it starts.
    """
    options = _options({name: o for name, o in locals().items() if name in _OPTION_NAMES})
    with _ONE_AT_A_TIME, older_objects_set_aside():
        return _export(unwrapped(model), args, kwargs, f, options)


def _export(
    model: Any,
    args: Any,
    kwargs: dict[str, Any] | None,
    f: str | os.PathLike[str] | BinaryIO | None,
    options: Options,
) -> ONNXProgram:
    if f is not None:
        check_destination(f)
    if autocast := _torch_private.autocast_devices():
        raise InvalidOptionError(
            f"autocast is enabled for {autocast[0]} around the export: export outside of it, and"
            " let forward enter it where the model is to compute in lower precision"
        )
    stage = StageTimes(options.progress)
    with captured_model(model, args, kwargs, options, stage) as (captured, lowering):
        eager = _eager(model, args, kwargs, captured, options)
        interface = Interface.of(captured, options)
        with _blaming_the_model_first(eager):
            onnx_model, notes = to_onnx(
                captured.graph, interface, lowering, options, stage, model_to_outline=model
            )
    program = ONNXProgram(
        onnx_model,
        signature=captured.signature,
        options=options,
        verifier_context=eager,
        fold_parameters=lowering.fold_parameters,
        notes=(*captured.notes, *notes),
        baked=captured.baked,
        conditions=captured.conditions,
        placeholders=captured.placeholders,
        stage_seconds=stage.seconds,
        tied_names=names_of_tied_weights(model),
    )
    if options.verify:  # before the file gets its name: a wrong model never stands there
        with stage("verify"):
            program.verify()
    if f is not None:
        with stage("serialize"):
            program.save_as_export(f)
    program.warn_of_conditions()
    if options.verbose:
        print(program.to_text())
    for note in program.notes:
        LOGGER.info("note: %s", note)
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("%s", program.to_text())
    return program


def _eager(
    model: Any, args: Any, kwargs: dict[str, Any] | None, captured: Captured, options: Options
) -> EagerModel | None:
    if is_weightless(model):
        return None
    if not isinstance(model, ExportedProgram):
        inputs = captured.inputs
        return EagerModel(model, inputs.args, inputs.kwargs, options.training)
    example = split_arguments(args, kwargs)
    if any(example):
        captured.signature.flatten(*example)  # refuses what the program does not take
    elif model.example_inputs is None:
        return None
    else:
        example = model.example_inputs
    # Its mode was fixed when it was exported, and its module has no train() to set another.
    return EagerModel(model.module(), *example, TrainingMode.PRESERVE)


@contextmanager
def _blaming_the_model_first(eager: EagerModel | None) -> Iterator[None]:
    """PyTorch records some models that it refuses to run, such as a product of two dtypes: what
    fails for that reason is not a bug of ours."""
    try:
        yield
    except InternalError:
        if eager is not None:
            eager.check_example()
        raise


_OPTION_NAMES = frozenset(field.name for field in dataclasses.fields(Options))

_DEFAULTS: Mapping[str, Any] = {
    "input_names": (),
    "output_names": (),
    "keep_initializers_as_inputs": False,
    "custom_opsets": {},
    "custom_op_libraries": (),
}
"""What None stands for in a call of `export`."""


def _options(given: dict[str, Any]) -> Options:
    given["opset_version"] = supported_opset(given["opset_version"])
    given["training"] = TrainingMode.of(given["training"])
    given["operator_export_type"] = OperatorExportTypes.of(given["operator_export_type"])
    for name, default in _DEFAULTS.items():
        given[name] = default if given[name] is None else given[name]
    return Options(**given)
