"""What PyTorch says, prints and flags while a model is exported."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def in_onnx_export() -> Iterator[None]:
    """Raise the flag that model code reads as `torch.onnx.is_in_onnx_export()`."""
    flags = _export_flags()
    before = flags.in_onnx_export
    flags.in_onnx_export = True
    try:
        yield
    finally:
        flags.in_onnx_export = before


def is_in_onnx_export() -> bool:
    return bool(_export_flags().in_onnx_export)


def _export_flags() -> Any:
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

    return GLOBALS


@contextlib.contextmanager
def quiet_loggers() -> Iterator[None]:
    """Keeps from the user what torch logs of a failed attempt: it is answered, or our own error."""
    names = (
        "torch._subclasses.fake_tensor",
        "torch.export._trace",
        "torch.fx.experimental.symbolic_shapes",
    )
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def rival_exporter() -> Any:
    """The module whose names `sardonyx.install()` takes over; nothing in it is called."""
    return importlib.import_module("torch.onnx")
