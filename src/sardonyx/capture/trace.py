"""trace"""

from __future__ import annotations

from typing import Any

from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs import PreparedInputs


def capture_by_trace(model: Any, inputs: PreparedInputs) -> Recorded:
    raise NotImplementedError
