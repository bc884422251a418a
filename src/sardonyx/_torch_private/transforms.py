"""The transforms of torch.func: grad, vmap, jvp and what is made of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd import forward_ad


@contextlib.contextmanager
def transforms_left_in_the_end() -> Iterator[None]:
    """A model that fails inside a transform, where PyTorch runs its code in an interpreter of its
    own, leaves it entered: all that runs later in the process would be transformed."""
    functorch: Any = torch._C._functorch
    before = functorch.maybe_current_level() or 0
    dual_before = forward_ad._current_level
    try:
        yield
    finally:
        if (functorch.maybe_current_level() or 0) > before:
            while (functorch.maybe_current_level() or 0) > before:
                functorch.pop_dynamic_layer_stack()
            if dual_before < 0:
                forward_ad._current_level = -1
                with contextlib.suppress(RuntimeError):  # where none of it was for jvp
                    torch._C._exit_dual_level(level=0)


def is_transformed(tensor: torch.Tensor) -> bool:
    """Whether it is a tensor inside a transform, around another one."""
    functorch: Any = torch._C._functorch
    return bool(functorch.is_functorch_wrapped_tensor(tensor))
