"""Operators that are there for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._library import simple_registry

from sardonyx._torch_private.operators import OpOverload


class TemporaryOperators:
    """The operators of a namespace that one recording needs: nothing of them is left after `close`,
    and none may be called then."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._library: Any = None

    def has(self, name: str) -> bool:
        return hasattr(getattr(torch.ops, self._namespace), name)

    def define(
        self,
        name: str,
        signature: str,
        run: Callable[..., Any],
        run_on_fakes: Callable[..., Any],
    ) -> OpOverload:
        """`signature` as in `(Tensor x) -> Tensor`."""
        if self._library is None:
            self._library = torch.library.Library(  # type: ignore[no-untyped-call]
                self._namespace, "FRAGMENT"
            )
        library = self._library
        library.define(f"{name}{signature}")
        library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{self._namespace}::{name}", run_on_fakes, lib=library)
        op: OpOverload = getattr(getattr(torch.ops, self._namespace), name).default
        return op

    def close(self) -> None:
        library, self._library = self._library, None
        if library is None:
            return
        library._destroy()
        for name in library._op_defs:
            simple_registry.singleton._data.pop(name, None)
