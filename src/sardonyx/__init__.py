"""Sardonyx turns PyTorch models into ONNX."""

from sardonyx.api import export, export_to_pretty_string
from sardonyx.errors import (
    CaptureError,
    DynamicDimError,
    InvalidOptionError,
    MissingDependencyError,
    SardonyxError,
    SerializeError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
    UnsupportedOpsetError,
    VerificationError,
)
from sardonyx.options import ExternalData, OperatorExportTypes, TrainingMode
from sardonyx.program import ONNXProgram

__all__ = [
    "CaptureError",
    "DynamicDimError",
    "ExternalData",
    "InvalidOptionError",
    "MissingDependencyError",
    "ONNXProgram",
    "OperatorExportTypes",
    "SardonyxError",
    "SerializeError",
    "TrainingMode",
    "UnsupportedDtypeError",
    "UnsupportedOperatorError",
    "UnsupportedOpsetError",
    "VerificationError",
    "export",
    "export_to_pretty_string",
]
