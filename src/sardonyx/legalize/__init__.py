"""Stage 3: rewrite a model of the newest opset for the target opset and for ONNX Runtime."""

from sardonyx.legalize.pipeline import SUPPORTED_OPSETS, legalize, supported_opset
from sardonyx.legalize.runtime_kernels import use_available_kernels
from sardonyx.legalize.stored_constants import store_constants
from sardonyx.lower.onnx_types.legality import newest_opset

__all__ = [
    "SUPPORTED_OPSETS",
    "legalize",
    "newest_opset",
    "store_constants",
    "supported_opset",
    "use_available_kernels",
]
