"""`sardonyx.symbolic_helper`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat import symbolic_helper
from sardonyx.compat.symbolic_helper import *  # noqa: F403

sys.modules[__name__] = symbolic_helper
