"""The exporter that the reference documents, as far as today's PyTorch still has it: what it makes
of a model stands beside what Sardonyx makes of it."""

from __future__ import annotations

import inspect
import io
import warnings
from typing import Any

import onnxruntime
import pytest
import torch


def documented_export(model: Any, args: Any, **options: Any) -> onnxruntime.InferenceSession:
    """The model's file, loaded. Raises what the exporter or ONNX Runtime does."""
    if "dynamo" not in inspect.signature(torch.onnx.export).parameters:
        pytest.skip("this PyTorch has the documented exporter no more")
    if not isinstance(model, torch.nn.Module | torch.jit.ScriptFunction):
        model = _Called(model)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, args, file, dynamo=False, opset_version=17, **options)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(file.getvalue(), settings)


def outputs_of(session: onnxruntime.InferenceSession, *args: torch.Tensor) -> list[Any]:
    """What it gives for flat inputs; it keeps those only that its graph reads."""
    inputs = session.get_inputs()
    fed = {i.name: a.numpy() for i, a in zip(inputs, args, strict=len(inputs) == len(args))}
    settings = onnxruntime.RunOptions()
    settings.log_severity_level = 4
    return [torch.as_tensor(found) for found in session.run(None, fed, settings)]


class _Called(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)
