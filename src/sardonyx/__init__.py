"""Sardonyx turns PyTorch models into ONNX."""

from sardonyx.api import export, export_to_pretty_string
from sardonyx.errors import (
    CaptureError,
    DynamicDimError,
    InvalidOptionError,
    MissingDependencyError,
    NotRunnableError,
    SardonyxError,
    SerializeError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
    UnsupportedOpsetError,
    VerificationError,
)
from sardonyx.options import ExternalData, OperatorExportTypes, TrainingMode
from sardonyx.program import ONNXProgram
from sardonyx.serialize.metadata import producer_version

__version__ = producer_version()

__all__ = [
    "CaptureError",
    "DynamicDimError",
    "ExternalData",
    "InvalidOptionError",
    "MissingDependencyError",
    "NotRunnableError",
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
