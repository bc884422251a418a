"""What is there under the name of the package: its API."""

from sardonyx import operators, ops, verification
from sardonyx.api import export
from sardonyx.compat import symbolic_helper, utils
from sardonyx.compat.torch_onnx.dynamo_export import dynamo_export
from sardonyx.compat.torch_onnx.export_options import DiagnosticOptions, ExportOptions
from sardonyx.compat.torch_onnx.export_output import ExportOutput, ExportOutputSerializer
from sardonyx.compat.torch_onnx.fake_mode import ONNXFakeContext, enable_fake_mode
from sardonyx.compat.torch_onnx.install import install, installed, uninstall
from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType
from sardonyx.compat.torch_onnx.legacy_calls import export_to_pretty_string
from sardonyx.compat.torch_onnx.log import disable_log, enable_log
from sardonyx.compat.torch_onnx.model_mode import (
    is_in_onnx_export,
    select_model_mode_for_export,
    set_training,
)
from sardonyx.compat.torch_onnx.registry import ONNXFunction, OnnxRegistry
from sardonyx.errors import (
    CaptureError,
    CheckerError,
    DynamicDimError,
    InvalidExportOptionsError,
    InvalidOptionError,
    MissingDependencyError,
    NarrowedDimWarning,
    NotRunnableError,
    OnnxExporterError,
    OnnxExporterWarning,
    SardonyxError,
    SerializeError,
    SymbolicFunctionError,
    SymbolicValueError,
    UnknownOptionError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
    UnsupportedOpsetError,
    VerificationError,
)
from sardonyx.extend.autograd_function import SymbolicContext
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.registration import (
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)
from sardonyx.options import ExternalData, OperatorExportTypes, TrainingMode
from sardonyx.program import ONNXProgram

__all__ = [
    "CaptureError",
    "CheckerError",
    "DiagnosticOptions",
    "DynamicDimError",
    "ExportOptions",
    "ExportOutput",
    "ExportOutputSerializer",
    "ExternalData",
    "GraphContext",
    "InvalidExportOptionsError",
    "InvalidOptionError",
    "JitScalarType",
    "MissingDependencyError",
    "NarrowedDimWarning",
    "NotRunnableError",
    "ONNXFakeContext",
    "ONNXFunction",
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxExporterWarning",
    "OnnxRegistry",
    "OperatorExportTypes",
    "SardonyxError",
    "SerializeError",
    "SymbolicContext",
    "SymbolicFunctionError",
    "SymbolicValueError",
    "TrainingMode",
    "UnknownOptionError",
    "UnsupportedDtypeError",
    "UnsupportedOperatorError",
    "UnsupportedOpsetError",
    "VerificationError",
    "disable_log",
    "dynamo_export",
    "enable_fake_mode",
    "enable_log",
    "export",
    "export_to_pretty_string",
    "install",
    "installed",
    "is_in_onnx_export",
    "operators",
    "ops",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "set_training",
    "symbolic_helper",
    "uninstall",
    "unregister_custom_op_symbolic",
    "utils",
    "verification",
]
