"""The functions that users know from the module of this name in earlier exporters."""

from sardonyx.api import export
from sardonyx.compat.torch_onnx.legacy_calls import export_to_pretty_string
from sardonyx.compat.torch_onnx.model_mode import is_in_onnx_export, select_model_mode_for_export
from sardonyx.compat.torch_onnx.unconvertible import unconvertible_ops
from sardonyx.extend.symbolic_functions.registration import (
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)

__all__ = [
    "export",
    "export_to_pretty_string",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "unconvertible_ops",
    "unregister_custom_op_symbolic",
]
