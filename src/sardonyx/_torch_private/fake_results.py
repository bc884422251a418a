"""Which results on fake tensors PyTorch keeps, to give them again for the same arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import sympy
import torch

_MOST_TERMS = 12


@contextlib.contextmanager
def long_sizes_not_kept() -> Iterator[None]:
    """Meanwhile no result is kept that has sizes of many terms. To keep one PyTorch makes it once
    more, which takes as long as to compute it, and such sizes are seldom those of another call."""
    from torch._subclasses import fake_tensor

    kind: Any = fake_tensor.FakeTensorMode
    refusal: Any = getattr(fake_tensor, "_BypassDispatchCache", None)
    keep = getattr(kind, "_make_cache_entry", None)
    if refusal is None or keep is None:
        yield
        return

    def keep_plain(self: Any, state: Any, key: Any, func: Any, *call: Any) -> Any:
        results = call[-1] if isinstance(call[-1], (list, tuple)) else [call[-1]]
        if any(isinstance(r, torch.Tensor) and _is_long(r.shape) for r in results):
            raise refusal("sizes of many terms")
        return keep(self, state, key, func, *call)

    kind._make_cache_entry = keep_plain
    try:
        yield
    finally:
        kind._make_cache_entry = keep


def _is_long(shape: Any) -> bool:
    return any(
        next(islice(sympy.preorder_traversal(size.node.expr), _MOST_TERMS, None), None) is not None
        for size in shape
        if isinstance(size, torch.SymInt)
    )
