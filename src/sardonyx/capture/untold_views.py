"""Results that share memory with an argument, of calls that PyTorch takes for copies."""

from __future__ import annotations

import torch

from sardonyx import _torch_private
from sardonyx.capture.watched_calls import Call, WatchingMode, tensors_in


class UntoldViews(WatchingMode):
    """Collects such results while a model is traced: the tracer leaves out a write of one that is
    not read again, unless the trace returns it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor] = []

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call) -> None:
        if not call.given_addresses or not _torch_private.is_tracing():
            return
        for tensor in tensors_in(call.result):
            if (
                _torch_private.memory_address(tensor) in call.given_addresses
                and not tensor.is_quantized
                and not any(tensor is given for given in call.given)
                and _torch_private.is_traced_as_a_copy(tensor)
            ):
                self.found.append(tensor)
