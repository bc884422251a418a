"""The three exporters of the README's table, called the same way and run in ONNX Runtime."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

import sardonyx

Exporter = Callable[..., "Outcome"]


@dataclass
class Outcome:
    """What one exporter made of a model."""

    path: Path
    error: Exception | None = None
    said: list[str] = field(default_factory=list)
    """Warnings, log records and prints."""
    program: Any = None

    @property
    def proto(self) -> onnx.ModelProto:
        assert self.error is None, self.error
        return onnx.load(self.path)

    @property
    def opset(self) -> int:
        return next(o.version for o in self.proto.opset_import if o.domain == "")

    @property
    def input_names(self) -> list[str]:
        return [value.name for value in self.proto.graph.input]

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.proto.graph.output]

    @property
    def output_dims(self) -> list[int | str]:
        dims = self.proto.graph.output[0].type.tensor_type.shape.dim
        return [dim.dim_param or dim.dim_value for dim in dims]

    def run(self, *inputs: Any) -> list[np.ndarray]:
        """The outputs in ONNX Runtime; inputs that the file does not have are left out."""
        assert self.error is None, self.error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(self.path, options)
        names = [value.name for value in session.get_inputs()]
        arrays = [i.numpy() if isinstance(i, torch.Tensor) else np.array(i) for i in inputs]
        return session.run(None, dict(zip(names, arrays, strict=False)))

    def agrees(self, model: torch.nn.Module, *inputs: Any) -> list[bool]:
        """For each output, whether it is what PyTorch computes."""
        with torch.no_grad():
            expected = model(*(i.clone() if isinstance(i, torch.Tensor) else i for i in inputs))
        wanted = torch.utils._pytree.tree_leaves(expected)
        got = self.run(*inputs)
        assert len(wanted) == len(got)
        return [
            tuple(e.shape) == a.shape and np.allclose(e.numpy(), a, atol=1e-5)
            for e, a in zip(wanted, got, strict=True)
        ]


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def _attempt(path: Path, export: Callable[[Path], Any]) -> Outcome:
    outcome = Outcome(path)
    printed, records = io.StringIO(), _Records()
    logging.getLogger("torch").addHandler(records)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            try:
                outcome.program = export(path)
            except Exception as error:
                outcome.error = error
    finally:
        logging.getLogger("torch").removeHandler(records)
    outcome.said = [*(str(w.message) for w in caught), *records.texts, printed.getvalue()]
    return outcome


@dataclass(frozen=True)
class Exporters:
    folder: Path

    def sardonyx(self, model: Any, *args: Any, **options: Any) -> Outcome:
        def export(path: Path) -> Any:
            return sardonyx.export(model, args, path, **options)

        return _attempt(self.folder / "sardonyx.onnx", export)

    def dynamo(self, model: Any, *args: Any, **options: Any) -> Outcome:
        def export(path: Path) -> Any:
            return torch.onnx.export(
                model, args, path, dynamo=True, external_data=False, verbose=False, **options
            )

        return _attempt(self.folder / "dynamo.onnx", export)

    def torchscript(self, model: Any, *args: Any, **options: Any) -> Outcome:
        def export(path: Path) -> Any:
            return torch.onnx.export(model, args, path, dynamo=False, **options)

        return _attempt(self.folder / "torchscript.onnx", export)
