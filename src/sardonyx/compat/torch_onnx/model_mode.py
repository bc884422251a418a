"""The mode of a model around an export, and whether one is going on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.capture.side_effects.restore import model_mode
from sardonyx.options import TrainingMode


@contextlib.contextmanager
def select_model_mode_for_export(
    model: Any, mode: TrainingMode | int | None = TrainingMode.EVAL
) -> Iterator[None]:
    """The model in `mode` inside the block; afterwards every module has its own mode again. None
    and PRESERVE change nothing."""
    with model_mode(model, TrainingMode.PRESERVE if mode is None else TrainingMode.of(mode)):
        yield


@contextlib.contextmanager
def set_training(model: torch.nn.Module, mode: bool | None) -> Iterator[torch.nn.Module]:
    """The same with True for training and False for evaluation."""
    modes = {None: TrainingMode.PRESERVE, True: TrainingMode.TRAINING, False: TrainingMode.EVAL}
    with model_mode(model, modes[mode]):
        yield model


def is_in_onnx_export() -> bool:
    """Whether an export is running; model code calls it to export in another way."""
    return _torch_private.is_in_onnx_export()
