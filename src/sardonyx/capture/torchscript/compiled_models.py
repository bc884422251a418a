"""Models in Python whose branches and loops data decides, compiled by torch.jit.script: read only
where the script is known to be the same program."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.utils.parametrize import is_parametrized

from sardonyx import _torch_private
from sardonyx.aten.location import is_users
from sardonyx.aten.module_tree import modules_of
from sardonyx.capture.capture_errors import check_same_results
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.function_overrides.source_statements import names_in
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.torchscript.program import capture_by_script, compiled_script
from sardonyx.errors import CaptureError, SardonyxError

_NOT_THE_SAME = frozenset(("is_scripting", "unused", "ignore", "popitem", ""))
"""Names in the source of models that may compute something else as a script."""


def read_compiled(model: Any, inputs: PreparedInputs) -> Recorded:
    for reason in _differences(model):
        raise CaptureError(f"as a script the model may compute something else: {reason}")
    program = compiled_script(model)
    files = _torch_private.files_of_script(program) | set(_files_of_classes(model))
    for file in sorted(filter(is_users, files)):
        for name in sorted(_NOT_THE_SAME & names_in(file)):
            raise CaptureError(
                f"as a script the model may compute something else: {file}"
                f" {f'uses {name}' if name else 'has no source'}"
            )
    try:
        recorded = capture_by_script(program, inputs)
    except CaptureError:
        raise
    except SardonyxError as error:
        raise CaptureError(error.headline) from error
    check_same_results(model, program, inputs, "as a script")
    return recorded


def _files_of_classes(model: Any) -> Iterator[str]:
    for module in modules_of(model):
        with contextlib.suppress(TypeError, OSError):
            yield inspect.getsourcefile(type(module)) or ""


def _differences(model: Any) -> Iterator[str]:
    """What a script leaves out of a model."""
    if _torch_private.has_hooks():
        yield "there are hooks on all modules"
    for module in modules_of(model):
        if inspect.getattr_static(type(module), "__call__") is not _CALL:
            yield f"{type(module).__qualname__} has a __call__ of its own"
        if _torch_private.has_hooks(module):
            yield f"{type(module).__qualname__} has hooks"
        if is_parametrized(module):
            yield f"{type(module).__qualname__} has parametrizations"


_CALL = inspect.getattr_static(torch.nn.Module, "__call__")
