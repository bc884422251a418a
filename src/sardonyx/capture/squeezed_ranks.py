"""Squeezes whose number of dims is all that a model asks for."""

from __future__ import annotations

import torch

from sardonyx import _torch_private
from sardonyx.capture.watched_calls import Call, WatchingMode


class SqueezedRanks(WatchingMode):
    """Collects the sizes of what a squeeze leaves while a model is traced: the tracer drops a call
    whose result no other reads, and nothing would tell that the number of dims depends on sizes."""

    def __init__(self, found: list[torch.Tensor]) -> None:
        """`found`: what the trace returns beside its results."""
        super().__init__()
        self._found = found

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call) -> None:
        if call.name not in _SQUEEZES:
            return
        left = call.result
        if not _torch_private.is_tracing() or not isinstance(left, torch.Tensor):
            return
        # A tensor inside a transform is gone with that.
        if not (left.is_quantized or _torch_private.is_transformed(left)):
            self._found.append(torch.ops.aten._shape_as_tensor(left))


_SQUEEZES = frozenset(("squeeze", "squeeze_"))
