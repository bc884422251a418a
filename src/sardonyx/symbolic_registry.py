"""`sardonyx.symbolic_registry`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat import symbolic_registry
from sardonyx.compat.symbolic_registry import *  # noqa: F403

sys.modules[__name__] = symbolic_registry
