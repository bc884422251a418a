"""What runs the ONNX model in the search for differences."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import onnx_ir as ir
import torch
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import InvalidOptionError, NotRunnableError, first_line
from sardonyx.verify.onnxruntime_session import Output, Session, as_in_file, has_halves


class OnnxBackend(enum.Enum):
    """What runs the ONNX model."""

    REFERENCE = "ONNXReferenceEvaluator"
    ONNX_RUNTIME_CPU = "CPUExecutionProvider"
    ONNX_RUNTIME_CUDA = "CUDAExecutionProvider"

    def run(self, model: ir.Model, inputs: Mapping[str, torch.Tensor]) -> dict[str, Output]:
        """Every output by name, complex ones as pairs of reals."""
        if self is not OnnxBackend.REFERENCE:
            session = Session(model, providers=[self.value], has_halves=has_halves(model))
            if self.value not in session.providers:  # it takes the CPU instead, with a warning
                raise InvalidOptionError(f"this ONNX Runtime has no {self.value}")
            return session.run(inputs)
        arrays = {name: as_in_file(tensor).numpy() for name, tensor in inputs.items()}
        try:
            evaluator = ReferenceEvaluator(ir.to_proto(model))
            results = evaluator.run(None, arrays)
        except Exception as error:
            raise NotRunnableError(f"the reference of ONNX fails: {first_line(error)}") from error
        return {
            name: [torch.as_tensor(item) for item in result]
            if isinstance(result, list)
            else torch.as_tensor(result)
            for name, result in zip(evaluator.output_names, results, strict=True)
        }
