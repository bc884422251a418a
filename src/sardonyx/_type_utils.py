"""`sardonyx._type_utils`: a module path that users of `torch.onnx` know."""

import sys

from sardonyx.compat import _type_utils
from sardonyx.compat._type_utils import *  # noqa: F403

sys.modules[__name__] = _type_utils
