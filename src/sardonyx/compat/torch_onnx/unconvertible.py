"""Which operators of a model have no ONNX form: all of them, from one call."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sardonyx.api import export
from sardonyx.aten.graph import RecordedGraph
from sardonyx.capture.capture import capture as capture_model
from sardonyx.errors import UnsupportedOperatorError, UnsupportedOpsetError
from sardonyx.extend.symbolic_functions.registration import operators_kept
from sardonyx.legalize import supported_opset
from sardonyx.options import Options, TrainingMode


def unconvertible_ops(
    model: Any,
    args: Any,
    training: TrainingMode | int = TrainingMode.EVAL,
    opset_version: int | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    capture: str = "auto",
) -> tuple[RecordedGraph, list[str]]:
    """The recorded model, and the operators in it that cannot be converted, one entry a use.

    `aten::name` is one of PyTorch's; `onnx::Name` is a node that the requested opset lacks.
    """
    opset = supported_opset(opset_version)
    mode = TrainingMode.of(training)
    options = Options(training=mode, opset_version=opset, capture=capture)
    with closing(operators_kept(opset, ())) as kept, kept.recorded():
        graph = capture_model(model, args, kwargs, options).graph
    try:
        export(model, args, kwargs=kwargs, training=mode, opset_version=opset, capture=capture)
    except UnsupportedOperatorError as error:
        # As a graph of TorchScript names them: without the overload.
        names = [problem.operator.partition(".")[0] for problem in error.problems]
    except UnsupportedOpsetError as error:
        names = [f"onnx::{name}" for name in error.onnx_operators]
    else:
        names = []
    return RecordedGraph(graph), names
