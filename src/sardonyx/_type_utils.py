"""`sardonyx._type_utils`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat.torch_onnx import jit_scalar_type
from sardonyx.compat.torch_onnx.jit_scalar_type import *  # noqa: F403

sys.modules[__name__] = jit_scalar_type
