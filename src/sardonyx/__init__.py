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
from sardonyx.options import OperatorExportTypes, TrainingMode
from sardonyx.program import ONNXProgram
from sardonyx.serialize.external_data import ExternalData

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
