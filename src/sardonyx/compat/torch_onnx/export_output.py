"""ExportOutput: what `dynamo_export` returns."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol, cast

import onnx
import torch

from sardonyx.aten import pytree
from sardonyx.aten.signature import OutputSpec
from sardonyx.compat.torch_onnx.diagnostics import DiagnosticContext
from sardonyx.compat.torch_onnx.fake_mode import ONNXFakeContext
from sardonyx.errors import InvalidOptionError, SardonyxError
from sardonyx.program import ONNXProgram
from sardonyx.serialize.destination import Destination, staged_files
from sardonyx.serialize.model_state import ModelState


class ExportOutputSerializer(Protocol):
    """Writes an `ExportOutput` in another format; given to `save(serializer=...)`."""

    def serialize(self, export_output: ExportOutput, destination: BinaryIO) -> None: ...


class ExportOutput:
    """An exported model. `program` is the same as `sardonyx.export` returns."""

    def __init__(
        self,
        program: ONNXProgram | None,
        diagnostic_context: DiagnosticContext,
        fake_context: ONNXFakeContext | None = None,
        error: SardonyxError | None = None,
    ) -> None:
        self._program = program
        self._error = error
        self.diagnostic_context = diagnostic_context
        self.fake_context = fake_context

    @property
    def program(self) -> ONNXProgram:
        if self._program is None:
            assert self._error is not None
            raise self._error
        return self._program

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as protobuf; without its weights where it was exported without them."""
        return self.program.model_proto

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run in ONNX Runtime; takes and returns what the PyTorch model does."""
        return self.program(*args, **kwargs)

    def adapt_torch_inputs_to_onnx(
        self, *model_args: Any, **model_kwargs: Any
    ) -> Sequence[torch.Tensor]:
        """The inputs of the PyTorch model as those of the file, in their order."""
        flat = self.program.signature.flatten(model_args, model_kwargs)
        return [torch.view_as_real(t) if t.is_complex() else t for t in flat]

    def adapt_torch_outputs_to_onnx(self, model_outputs: Any) -> Sequence[torch.Tensor]:
        """The outputs of the PyTorch model as those of the file, in their order."""
        signature = self.program.signature
        leaves, _ = pytree.flatten(model_outputs)
        if len(leaves) != len(signature.output_leaves):
            raise InvalidOptionError(
                f"these are {len(leaves)} outputs, the model has {len(signature.output_leaves)}"
            )
        tensors = [
            leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf)
            for leaf, spec in zip(leaves, signature.output_leaves, strict=True)
            if isinstance(spec, OutputSpec)
        ]
        return [torch.view_as_real(t) if t.is_complex() else t for t in tensors]

    def save(
        self,
        destination: Destination,
        *,
        model_state: ModelState | None = None,
        serializer: ExportOutputSerializer | None = None,
        model_state_dict: ModelState | None = None,
    ) -> None:
        """Write to a path or a binary file.

        `model_state` has the weights of a model that was made in `enable_fake_mode()`: a
        state_dict, or the path of a checkpoint; by default the checkpoints that were loaded there.
        `model_state_dict` is its older name. `serializer` writes in another format.
        """
        if serializer is not None:
            self._serialize(serializer, destination)
            return
        given: Any = model_state if model_state is not None else model_state_dict
        if given is None and self.fake_context is not None and self.fake_context.state_dict_paths:
            given = self.fake_context.state_dict_paths
        self.program.save(destination, model_state=given)

    def _serialize(self, serializer: ExportOutputSerializer, destination: Destination) -> None:
        if not callable(getattr(serializer, "serialize", None)):
            raise InvalidOptionError(f"{serializer!r} has no method serialize")
        buffer = io.BytesIO()
        if not isinstance(destination, str | os.PathLike):
            serializer.serialize(self, destination)
            return
        with staged_files(os.fspath(destination)) as [sink]:
            serializer.serialize(self, cast(BinaryIO, buffer))
            sink.write(buffer.getvalue())

    def save_diagnostics(self, destination: str | os.PathLike[str]) -> None:
        """Write the diagnostics of the export as a SARIF 2.1 log, which many tools read."""
        if not os.fspath(destination).endswith(".sarif"):
            raise InvalidOptionError(f"a SARIF log has the ending .sarif: {destination}")
        self.diagnostic_context.dump(destination)

    def __repr__(self) -> str:
        return f"ExportOutput({self._program if self._error is None else self._error!r})"
