"""ONNXProgram: what an export returns; save it, call it, verify it, look at it."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import sympy
import torch

from sardonyx._torch_private.paths import OWN_FOLDER
from sardonyx.aten.module_tree import weights_of
from sardonyx.aten.signature import Signature
from sardonyx.capture.baked_values import BakedValue
from sardonyx.capture.inputs.binding import split_arguments
from sardonyx.capture.side_effects.restore import version_of
from sardonyx.errors import (
    InvalidOptionError,
    NarrowedDimWarning,
    VerificationError,
    format_message,
)
from sardonyx.legalize import store_constants
from sardonyx.lower.onnx_types.verifier import verify_onnx
from sardonyx.lower.weights import TorchTensor
from sardonyx.notes import Note
from sardonyx.optimize.pipeline import optimize
from sardonyx.options import ExternalData, Options, check_external_data
from sardonyx.report import summary
from sardonyx.serialize.destination import Destination
from sardonyx.serialize.model_state import GivenWeight, ModelState, given_weights
from sardonyx.serialize.parameters import parameters_as_inputs
from sardonyx.serialize.text import to_text
from sardonyx.serialize.writer import WriteResult, write_model
from sardonyx.verify.baked_reads import BakedReads
from sardonyx.verify.drawn_sizes import broken_guards, is_narrowing
from sardonyx.verify.eager import EagerModel
from sardonyx.verify.inputs import example_sizes
from sardonyx.verify.onnxruntime_session import Output, Session, has_halves
from sardonyx.verify.randomness import random_outputs
from sardonyx.verify.verification import Verification, VerificationReport


class ONNXProgram:
    """An exported model.

    `model` refers to the memory of the PyTorch model's parameters; `save` streams from there.
    `verification` is the last report of `verify`, None before the first.
    """

    def __init__(
        self,
        model: ir.Model,
        *,
        signature: Signature,
        options: Options,
        verifier_context: EagerModel | None,
        fold_parameters: bool = True,
        notes: tuple[str, ...] = (),
        baked: tuple[BakedValue, ...] = (),
        conditions: tuple[sympy.Basic, ...] = (),
        placeholders: Mapping[str, str] | None = None,
        stage_seconds: dict[str, float] | None = None,
        path: Path | None = None,
        tied_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.model = model
        self.signature = signature
        self.options = options
        self.notes = tuple(map(Note.of, notes))
        self.baked = baked
        self.stage_seconds: dict[str, float] = {} if stage_seconds is None else stage_seconds
        self.path = path
        self.verification: VerificationReport | None = None
        self._eager = verifier_context
        self._conditions = conditions
        self._placeholders = placeholders or {}
        self._fold_parameters = fold_parameters
        self._file_as_written = _file_stamp(path)
        self._session: Session | None = None
        self._versions_written = self._versions_run = self._weight_versions()
        self._tied_names = tied_names or {}

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as protobuf, weights copied into it."""
        proto = ir.to_proto(self.model)
        # As in the file: weights say their types themselves.
        stated = [v for v in proto.graph.value_info if v.name not in self.model.graph.initializers]
        del proto.graph.value_info[:]
        proto.graph.value_info.extend(stated)
        return proto

    def save(
        self,
        destination: Destination,
        *,
        model_state: ModelState | Sequence[ModelState] | None = None,
        external_data: bool | ExternalData | None = None,
        keep_initializers_as_inputs: bool = False,
    ) -> WriteResult:
        """Write to a path or a binary file.

        `model_state` has the weights of a model that was made without them: a state_dict, the path
        of a `.pt` or `.safetensors` file, of the index of a sharded checkpoint or of their folder.
        They go from there into the file one by one. `external_data` is as in `export`; None is what
        the export has, where `destination` is a path.
        """
        check_external_data(external_data)
        if external_data is None and isinstance(destination, str | os.PathLike):
            external_data = self._external_data_for(Path(destination))
        model = self.model
        if keep_initializers_as_inputs:
            model = model.clone()
            parameters_as_inputs(model, keep_data=True)
        given = None if model_state is None else self._given_weights(model_state)
        result = write_model(model, destination, external_data=external_data, given=given)
        if given is not None and result.path is not None:
            self._runs_from(Path(result.path))  # the only place that has the weights
        return result

    def _given_weights(
        self, model_state: ModelState | Sequence[ModelState]
    ) -> dict[str, GivenWeight]:
        wanted = {
            name: tensor
            for name, value in self.model.graph.initializers.items()
            if isinstance(tensor := value.const_value, TorchTensor) and not tensor.has_data
        }
        if not wanted:
            raise InvalidOptionError(
                "model_state is for models that were made without weights (enable_fake_mode): this"
                " program has its weights"
            )
        return given_weights(wanted, model_state, self._tied_names)

    def _external_data_for(self, path: Path) -> bool | ExternalData | None:
        """As in the export; its weights file is not overwritten by another model."""
        option = self.options.external_data
        if isinstance(option, ExternalData) and self.path is not None and path != self.path:
            return replace(option, location=None)
        return option

    def save_as_export(self, destination: Destination) -> None:
        """Write the file of the export; runs use it from then on."""
        self.save(destination, external_data=self.options.external_data)
        if isinstance(destination, (str, os.PathLike)):
            self._runs_from(Path(destination))

    def _runs_from(self, path: Path) -> None:
        self.path = path
        self._file_as_written = _file_stamp(path)
        self._versions_written = self._weight_versions()
        self._session = None

    def _weight_versions(self) -> list[int]:
        """The version counters of the PyTorch model's weights, whose memory `model` refers to."""
        model = None if self._eager is None else self._eager.model
        return [version_of(tensor) for tensor in weights_of(model)]

    def _reload_changed_weights(self) -> None:
        """A session holds the weights that it was made with: make another where one was written."""
        versions = self._weight_versions()
        if versions != self._versions_run:
            self._versions_run = versions
            self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run in ONNX Runtime with the weights that the PyTorch model has now; takes and returns
        what the PyTorch model does."""
        self._reload_changed_weights()
        tensors = self.signature.flatten(args, kwargs)
        sizes = example_sizes(self.signature.inputs, tensors)
        _warn("the file may differ from the model at these sizes", broken_guards(self.notes, sizes))
        outputs = self._run(tensors)
        return self.signature.unflatten([outputs[spec.name] for spec in self.signature.outputs])

    def verify(
        self,
        args: Any = None,
        kwargs: dict[str, Any] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> VerificationReport:
        """Compare with the PyTorch model, at the example's inputs unless others are given, and at
        drawn ones like them, of other sizes too. Raises VerificationError where they differ.

        `args` and `kwargs` are as in `export`. The tolerances are the export's unless given.
        """
        if self._eager is None:
            raise VerificationError(
                "there is no PyTorch model to compare with, or it holds no example inputs"
            )
        if args is None and kwargs is None:
            args, kwargs = self._eager.args, dict(self._eager.kwargs)
        else:
            args, kwargs = split_arguments(() if args is None else args, kwargs)
        self._reload_changed_weights()
        verification = Verification(
            self._run,
            self.signature,
            self._eager,
            args,
            kwargs,
            rtol=self.options.rtol if rtol is None else rtol,
            atol=self.options.atol if atol is None else atol,
            random=random_outputs(self.model),
            notes=self.notes,
            reads=BakedReads(self.baked),
            conditions=self._conditions,
            placeholders=self._placeholders,
        )
        self.verification = verification.report()
        return self.verification

    def warn_of_conditions(self) -> None:
        """On dims that are to be dynamic: those that sizes of 2 or more break, and those that were
        found to matter."""
        dims = [dim for spec in self.signature.inputs for dim in spec.dynamic.values()]
        required = {dim.name for dim in dims if dim.required}
        differs = self.verification.left_out if self.verification is not None else {}
        narrowing = {
            note.condition: note
            for note in self.notes
            if note.condition is not None
            and not required.isdisjoint(symbol.name for symbol in note.condition.free_symbols)
            and (note in differs or is_narrowing(note))
        }
        _warn("the file is valid for some sizes only", list(narrowing.values()))

    def optimize(self) -> None:
        """Run the optimization passes on `model`, in place. A file saved before stays as it is."""
        optimize(self.model, fold_parameters=self._fold_parameters)
        store_constants(self.model)
        opset = self.model.opset_imports[""]
        verify_onnx(self.model, "optimize", opset, is_typed=False, is_named=True)
        self._session = None
        self._file_as_written = None

    def to_text(self) -> str:
        """The graph in the textual form that `verbose=True` and `sardonyx show` print."""
        return to_text(self.model)

    def report(self) -> str:
        """A short account: operators, size, time by stage, verification, notes."""
        return summary.summary_text(self)

    def __repr__(self) -> str:
        graph = self.model.graph
        inputs = ", ".join(summary.describe_value(value) for value in graph.inputs)
        outputs = ", ".join(summary.describe_value(value) for value in graph.outputs)
        return (
            f"ONNXProgram(opset {self.model.opset_imports.get('')}, "
            f"{summary.node_count(self.model)} nodes, ({inputs}) -> ({outputs}))"
        )

    def _repr_html_(self) -> str:
        return summary.summary_html(self)

    def _run(self, tensors: Sequence[torch.Tensor]) -> dict[str, Output]:
        if self._session is None:
            self._session = Session(
                self._runnable(),
                libraries=self.options.custom_op_libraries,
                has_halves=has_halves(self.model),
            )
        names = [spec.name for spec in self.signature.inputs]
        feeds = dict(zip(names, tensors, strict=True))
        unfed = [name for name in self._session.input_names if name not in feeds]
        if unfed and self._eager is not None and isinstance(self._eager.model, torch.nn.Module):
            # export_params=False: the weights are inputs, under their state_dict names.
            state = self._eager.model.state_dict(keep_vars=True)
            feeds.update({name: state[name] for name in unfed if name in state})
        results = self._session.run(feeds)
        return {
            name: torch.view_as_complex(result)
            if name in self.signature.complex_outputs and isinstance(result, torch.Tensor)
            else result
            for name, result in results.items()
        }

    def _runnable(self) -> Path | ir.Model:
        """The file, where it is still the one the export wrote; else the model in memory."""
        unchanged = (
            self._file_as_written == _file_stamp(self.path)
            and self._versions_written == self._versions_run
        )
        return self.path if self.path is not None and unchanged else self.model


def _warn(headline: str, notes: Sequence[Note]) -> None:
    """At the line of the user's code."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_FOLDER):
        level, frame = level + 1, frame.f_back
    if notes:
        warnings.warn(format_message(headline, [("notes", notes)]), NarrowedDimWarning, level)


def _file_stamp(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size
