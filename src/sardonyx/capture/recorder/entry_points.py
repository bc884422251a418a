"""A model recorded: run once, on fake tensors, under the recorder.

Two policies differ in what happens where code looks at a value. Symbolic ("export"): it is a
symbol, and to branch on it is refused with the line. By example ("trace"): it is computed,
followed, and noted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.capture_errors import check_same_results, with_constant_numbers
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.recorder.data_access import GradientsRequestedError
from sardonyx.capture.recorder.model_run import Recording
from sardonyx.capture.recorder.program_run import CompiledRecording, ProgramRecording
from sardonyx.errors import CaptureError, DynamicDimError, FinalCaptureError


def record_symbolically(model: Any, inputs: PreparedInputs) -> Recorded:
    return _settled(record_symbolically, Recording, model, inputs)


def record_as_exporting(model: Any, inputs: PreparedInputs) -> Recorded:
    """Symbolically, with the code that a model has for `torch.jit.is_tracing()`."""

    def told(*args: Any, **kwargs: Any) -> Any:
        with _torch_private.exporting_answers():
            return model(*args, **kwargs)

    with _torch_private.exporting_answers():
        recorded = record_symbolically(model, inputs)
    check_same_results(model, told, inputs, "where torch.jit.is_tracing() is true")
    return recorded


def record_by_example(model: Any, inputs: PreparedInputs) -> Recorded:
    return _settled(record_by_example, partial(Recording, by_example=True), model, inputs)


def record_compiled(model: Any, inputs: PreparedInputs) -> Recorded:
    """By the compiler of torch.export's strict mode, which reads the bytecode of the model: it
    makes symbols of numbers that code turns tensors into (`int(x.sum())`, slices by tensors), and
    operators of NumPy's functions. What it gives is recorded symbolically."""
    return _settled(record_compiled, CompiledRecording, model, inputs)


def record_program(program: ExportedProgram, inputs: PreparedInputs) -> Recorded:
    """An ExportedProgram that the caller gave."""
    recorded, _ = ProgramRecording(program, inputs).run()
    return recorded


def _settled(
    again: Callable[[Any, PreparedInputs], Recorded],
    recording: Callable[[Any, PreparedInputs], Recording],
    model: Any,
    inputs: PreparedInputs,
) -> Recorded:
    try:
        try:
            recorded, fixed = recording(model, inputs).run()
        except GradientsRequestedError:
            again_with = recording(model, inputs)
            again_with.record_gradients()
            recorded, fixed = again_with.run()
    except (DynamicDimError, FinalCaptureError):
        raise
    except CaptureError as error:
        if not inputs.number_positions:
            raise
        return with_constant_numbers(again, model, inputs, inputs.number_positions, error)
    if isinstance(fixed, list):
        return with_constant_numbers(again, model, inputs, fixed, None)
    if not fixed:
        return recorded
    narrowed = inputs.without_dynamic(fixed)
    if narrowed.recorded_sizes == inputs.recorded_sizes:
        return replace(recorded, inputs=narrowed)
    # Recorded at a size that is not the example's, and then fixed to it.
    return again(model, narrowed)
