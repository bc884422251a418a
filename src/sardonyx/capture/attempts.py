"""The ways to record a model, in the order in which they are tried, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.recorder.entry_points import (
    record_by_example,
    record_compiled,
    record_symbolically,
)
from sardonyx.capture.recorder.model_run import ComparedByIdentityError
from sardonyx.capture.torchscript.program import capture_by_script
from sardonyx.errors import (
    CaptureError,
    DynamicDimError,
    FinalCaptureError,
    InvalidOptionError,
    format_message,
)

Record: TypeAlias = Callable[[Any, PreparedInputs], Recorded]


@dataclass(frozen=True, slots=True)
class Attempt:
    name: str
    record: Record
    reason: str
    """Why it is tried: what it records that those before it do not."""
    accepts_baked: bool = True
    """Whether values that the recording fixed are noted; else they are a reason to refuse."""


SYMBOLIC = Attempt("export", record_symbolically, "every size and value that may vary is a symbol")
COMPILED = Attempt(
    "export, compiled",
    record_compiled,
    "Python numbers made of tensors, and NumPy's functions, are in bytecode alone",
)
BY_EXAMPLE = Attempt("trace", record_by_example, "values are those of the example")
UNBAKED = replace(
    BY_EXAMPLE,
    reason="a model that looks at values only where they do not count",
    accepts_baked=False,
)
SCRIPT = Attempt("script", capture_by_script, "a TorchScript program is read, not run")

ATTEMPTS: dict[str, tuple[Attempt, ...]] = {
    "export": (SYMBOLIC, COMPILED),
    "trace": (BY_EXAMPLE, COMPILED),
    "script": (SCRIPT,),
    "auto": (SYMBOLIC, COMPILED, UNBAKED),
}
"""By the option `capture`."""


def capture_for(model: Any, requested: str) -> str:
    """TorchScript is read as the program it is."""
    if not isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        return requested
    if requested == "export":
        raise InvalidOptionError('torch.export does not take TorchScript: use capture="script"')
    return "script" if requested == "auto" else requested


def record(model: Any, inputs: PreparedInputs, way: str) -> Recorded:
    """By the first attempt that succeeds; the error of the first where none does."""
    refusals: list[tuple[Attempt, CaptureError]] = []
    for attempt in ATTEMPTS[way]:
        if attempt is COMPILED and not _may_compile(refusals):
            continue
        try:
            recorded = attempt.record(model, inputs)
        except FinalCaptureError:
            raise
        except CaptureError as error:
            refusals.append((attempt, error))
            if isinstance(error, DynamicDimError):
                break
            continue
        if attempt.accepts_baked or not recorded.baked:
            return recorded
        raise _baked(refusals[0][1], recorded) from refusals[0][1]
    raise refusals[0][1]


def _may_compile(refusals: list[tuple[Attempt, CaptureError]]) -> bool:
    """Whether compiled bytecode may record more than a run: no specialized dims, and no comparisons
    by `is`."""
    return not any(
        isinstance(error, (DynamicDimError, ComparedByIdentityError)) for _, error in refusals
    )


def _baked(refusal: CaptureError, recorded: Recorded) -> CaptureError:
    return CaptureError(
        format_message(
            "the model cannot be recorded faithfully",
            [
                ("export", refusal.headline),
                ("trace", [str(value) for value in recorded.baked]),
                (
                    "try",
                    [
                        'capture="script", if torch.jit.script compiles the model',
                        'capture="trace" to accept the baked values',
                    ],
                ),
            ],
        )
    )
