"""Models without weights: built in no memory, exported, and given their weights when saved."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils.weak import WeakIdKeyDictionary

from sardonyx import _torch_private
from sardonyx.errors import InvalidOptionError
from sardonyx.serialize.model_state import is_zip

_LARGE = 2**20
"""Uninitialized tensors of so many bytes are made without memory before a module has them."""


@dataclass
class ONNXFakeContext:
    """What `enable_fake_mode` gives: hand it on as `ExportOptions(fake_context=...)`."""

    state_dict_paths: list[Path] = field(default_factory=list)
    """The checkpoints that were loaded inside: `save` takes the weights from there if no
    `model_state` is given."""


@contextlib.contextmanager
def enable_fake_mode() -> Iterator[ONNXFakeContext]:
    """Modules made inside have no weights: parameters, and buffers that a state_dict holds, have a
    shape and a dtype only. Buffers that no state_dict holds are computed as always.

    Export such a model as any other, with `sardonyx.export` or `dynamo_export`, and give the
    weights to `save(..., model_state=...)`.
    """
    context = ONNXFakeContext()
    building = _Building()
    with (
        building.registrations_watched(),
        _loads_noted(context),
        warnings.catch_warnings(),
        _torch_private.LargeTensorsWeightless(_LARGE),
    ):
        # Said by copy.deepcopy of a module.
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        yield context
    building.strip_persistent_buffers()


class _Building:
    """The modules that are being made."""

    def __init__(self) -> None:
        self._modules: Any = WeakIdKeyDictionary()
        self._stripped: Any = WeakIdKeyDictionary()

    @contextlib.contextmanager
    def registrations_watched(self) -> Iterator[None]:
        parameters: Any = register_module_parameter_registration_hook
        buffers: Any = register_module_buffer_registration_hook
        handles = [parameters(self._parameter), buffers(self._buffer)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _parameter(self, module: torch.nn.Module, name: str, parameter: Any) -> Any:
        self._modules[module] = True
        if parameter is None or _torch_private.is_fake(parameter):
            return None
        if type(parameter) is not torch.nn.Parameter:
            raise InvalidOptionError(
                f"{type(module).__name__}.{name} is a {type(parameter).__name__}, which cannot be"
                " made without its values: make the module outside of enable_fake_mode()"
            )
        if parameter not in self._stripped:  # one that two modules share stays one
            self._stripped[parameter] = torch.nn.Parameter(
                _torch_private.weightless_like(parameter.detach()),
                requires_grad=parameter.requires_grad,
            )
        return self._stripped[parameter]

    def _buffer(self, module: torch.nn.Module, name: str, buffer: Any) -> None:
        self._modules[module] = True

    def strip_persistent_buffers(self) -> None:
        """Only now: what __init__ computes of them is computed of their values."""
        for module in self._modules:
            for name, buffer in module.named_buffers(recurse=False):
                if name in module.state_dict() and not _torch_private.is_fake(buffer):
                    module.register_buffer(name, _torch_private.weightless_like(buffer))


@contextlib.contextmanager
def _loads_noted(context: ONNXFakeContext) -> Iterator[None]:
    """Which checkpoints the program loads, by torch.load."""
    load: Any = torch.load

    def noting_load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(f, str | os.PathLike):
            context.state_dict_paths.append(Path(f))
            # Nothing is read before it is needed, and what goes into the model's parameters is not.
            kwargs.setdefault("mmap", is_zip(f))
        return load(f, *args, **kwargs)

    torch.load = noting_load
    try:
        yield
    finally:
        torch.load = load
