"""Export is pure: what a capture may touch, put back as it was."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private
from sardonyx.options import TrainingMode


@contextlib.contextmanager
def model_mode(model: Any, training: TrainingMode) -> Iterator[None]:
    """The model in the mode asked for; every module's own flag is restored."""
    if not isinstance(model, torch.nn.Module) or training is TrainingMode.PRESERVE:
        yield
        return
    before = [(module, module.training) for module in model.modules()]
    model.train(training is TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, flag in before:
            module.training = flag


@contextlib.contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Runs the body without gradients and without the fused paths of torch.nn; buffers, RNG
    state and global flags are afterwards as before."""
    buffers: list[tuple[torch.Tensor, torch.Tensor, int]] = []
    if isinstance(model, torch.nn.Module):
        buffers = [(b, b.detach().clone(), b._version) for b in model.buffers() if _has_data(b)]
    devices = sorted({b.device.index or 0 for b in _tensors_of(model) if b.device.type == "cuda"})
    fastpath = torch.backends.mha.get_fastpath_enabled()
    with (
        torch.random.fork_rng(devices),
        torch.no_grad(),
        _torch_private.in_onnx_export(),
        warnings.catch_warnings(),
        _DataAsDetach(),
    ):
        warnings.simplefilter("ignore")
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fastpath)
            for buffer, content, version in buffers:
                if buffer._version != version:
                    buffer.copy_(content)


class _DataAsDetach(TorchFunctionMode):
    """`x.data` recorded as `x.detach()`: captures see the former as a constant."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func == _READ_DATA:
            return args[0].detach()
        return func(*args, **(kwargs or {}))


_READ_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]


def _has_data(tensor: torch.Tensor) -> bool:
    return tensor.device.type != "meta" and not _torch_private.is_fake(tensor)


def _tensors_of(model: Any) -> Iterator[torch.Tensor]:
    if isinstance(model, torch.nn.Module):
        yield from model.parameters()
        yield from model.buffers()
