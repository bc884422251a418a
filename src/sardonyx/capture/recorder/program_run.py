"""Runs of programs of torch.export: a given one, and what strict mode makes of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.location import ModuleNames
from sardonyx.aten.module_calls import module_classes
from sardonyx.aten.signature import DynamicAxes
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.capture.autograd_functions import opaque_to_the_compiler
from sardonyx.capture.capture_errors import fixed_dim_error, result_on_copies
from sardonyx.capture.flat_model import FlatModel, OutputRecord, Recorded, without_prefix
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.recorder.model_run import Recording
from sardonyx.capture.recorder.program_interpreter import ProgramRun
from sardonyx.capture.side_effects.tensor_state import state_restored
from sardonyx.capture.symbolic_shapes.program_guards import notes_on_program
from sardonyx.errors import CaptureError, first_line


class ProgramRecording(Recording):
    """One run of an ExportedProgram."""

    def __init__(self, program: ExportedProgram, inputs: PreparedInputs) -> None:
        self._program = program
        super().__init__(program, inputs)

    def _state(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from ProgramRun.state_of(self._program).items()

    def _run_model(self, given: list[Any]) -> list[Any]:
        classes = {path: kind.name for path, kind in module_classes(self._program).items()}
        modules = ModuleNames(classes.get("", type(self._program).__name__), classes)
        run = ProgramRun(self._program, self._recorder, modules)
        return self._run_recorded(lambda: run.run(given))

    def _refusal(self, error: Exception) -> CaptureError:
        said = in_callers_names(first_line(error), {s: o.name for s, o in self._origins.items()})
        return CaptureError(f"the ExportedProgram cannot be recorded: {said}")


class CompiledRecording(Recording):
    """One run of the program that strict torch.export makes of a model."""

    def __init__(self, model: Any, inputs: PreparedInputs) -> None:
        self._flat = FlatModel(model, inputs, OutputRecord())
        self._program = self._exported(model, inputs)
        super().__init__(model, inputs)
        result, assigned = result_on_copies(model, inputs, inputs.capture_leaves)
        # The compiler does not let us note the structure of the result, and records the writes of
        # buffers only.
        self._record.note(result)
        self._record.unrecorded_buffers += assigned

    def _exported(self, model: Any, inputs: PreparedInputs) -> ExportedProgram:
        given = [(inputs.capture_leaves[p], inputs.dynamic[p]) for p in inputs.input_positions]
        leaves = tuple(_own_tensor(leaf) for leaf, _ in given)
        shapes = (tuple(_shape_spec(leaf, axes) for leaf, axes in given),) if given else None
        try:
            with (
                _torch_private.transforms_exited(),
                _torch_private.export_without_prints(),
                opaque_to_the_compiler(),
            ):
                return torch.export.export(self._flat, leaves, dynamic_shapes=shapes, strict=True)
        except Exception as error:
            raise CaptureError(f"torch.export refuses the model: {first_line(error)}") from error

    def _state(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in ProgramRun.state_of(self._program).items():
            yield without_prefix(name), tensor

    def run(self) -> tuple[Recorded, Any]:
        names = self._checked_dims()
        recorded, fixed = super().run()
        notes = (*recorded.notes, *notes_on_program(self._program, names))
        return replace(recorded, notes=tuple(dict.fromkeys(notes))), fixed

    def _decisions(self) -> Iterator[SizeCondition]:
        """The compiler does not report what it assumes about sizes from 2 on: the program is
        compared with the model where the example has other sizes."""
        yield from super()._decisions()
        if self._inputs.recorded_sizes != self._inputs.example_sizes and self._is_special():
            yield SizeCondition(self._is_as_recorded(), ("", 0, ""), in_model_code=True)

    def _is_special(self) -> bool:
        inputs = self._inputs
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            expected, _ = result_on_copies(self._model, inputs, inputs.leaves)
        given = [_own_tensor(inputs.leaves[position]) for position in inputs.input_positions]
        try:
            with torch.random.fork_rng([]), state_restored(self._model):
                torch.manual_seed(0)
                results = self._program.module(check_guards=False)(*given)
            torch.testing.assert_close(list(results), OutputRecord().note(expected), equal_nan=True)
        except Exception:
            return True
        return False

    def _checked_dims(self) -> dict[sympy.Symbol, str]:
        """What the size symbols of the program are called; each dynamic dim must have one."""
        inputs = self._inputs
        values = _torch_private.user_input_values(self._program)
        names: dict[sympy.Symbol, str] = {}
        for position, value in zip(inputs.input_positions, values, strict=True):
            for axis, dim in inputs.dynamic[position].items():
                size = value.shape[axis] if isinstance(value, torch.Tensor) else value
                expression = _torch_private.dim_of(size)
                if not isinstance(expression, sympy.Basic):
                    raise fixed_dim_error(inputs.names[position], axis, dim, expression, [])
                if isinstance(expression, sympy.Symbol):
                    names[expression] = dim.name
        return names

    def _run_model(self, given: list[Any]) -> list[Any]:
        modules = ModuleNames.of(self._model)
        run = ProgramRun(self._program, self._recorder, modules, without_prefix)
        return self._run_recorded(lambda: run.run(given))

    def _refusal(self, error: Exception) -> CaptureError:
        return CaptureError(f"torch.export refuses the model: {first_line(error)}")


def _own_tensor(leaf: Any) -> Any:
    """torch.export makes one input of tensors that are the same object."""
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.get_default_dtype())
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _shape_spec(leaf: Any, axes: DynamicAxes) -> Any:
    if isinstance(leaf, float):
        return {}
    return Dim.AUTO if isinstance(leaf, int) else dict.fromkeys(axes, Dim.AUTO)
