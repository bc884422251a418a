"""Parameters that have a shape and no memory."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sardonyx._torch_private.tensors.fake_tensors import fake_with_strides_of, is_fake


@functools.cache
def _weightless_mode() -> Any:
    """One for all: tensors of two models can meet."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class WeightlessMode(FakeTensorMode):  # type: ignore[no-untyped-call]
        def __deepcopy__(self, memo: Any) -> Any:  # a copied module has tensors of the same mode
            return self

    mode = WeightlessMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    # A note of every tensor would keep Module.to() and the like from exchanging parameters.
    converter: Any = mode.fake_tensor_converter
    converter.set_tensor_memo = lambda tensor, fake: None
    return mode


def is_weightless(tensor: Any) -> bool:
    """Whether a tensor was made to have no values; torch.export's own fakes were not."""
    return is_fake(tensor) and tensor.fake_mode is _weightless_mode()


def weightless_like(tensor: torch.Tensor) -> torch.Tensor:
    return fake_with_strides_of(_weightless_mode(), tensor)


class LargeTensorsWeightless(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Uninitialized and random tensors of many bytes get no memory."""

    def __init__(self, from_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._from_bytes = from_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.name().split(".")[0] in _MAKES_NO_VALUES and self._is_large(args, kwargs):
            with _weightless_mode():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    def _is_large(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        size = args[0] if args else kwargs.get("size", ())
        if not isinstance(size, (list, tuple)) or not all(isinstance(n, int) for n in size):
            return False
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        return math.prod(size) * dtype.itemsize >= self._from_bytes


_MAKES_NO_VALUES = ("aten::empty", "aten::empty_strided", "aten::rand", "aten::randn")
