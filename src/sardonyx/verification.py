"""`sardonyx.verification`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat import verification
from sardonyx.compat.verification import *  # noqa: F403

sys.modules[__name__] = verification
