"""`sardonyx.utils`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat import utils
from sardonyx.compat.utils import *  # noqa: F403

sys.modules[__name__] = utils
