"""The ways to record a model, in the order in which they are tried, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from sardonyx.aten.location import place_text
from sardonyx.capture.capture_errors import DataDependentError
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.recorder.entry_points import (
    record_as_exporting,
    record_by_example,
    record_compiled,
    record_symbolically,
)
from sardonyx.capture.recorder.model_run import ComparedByIdentityError
from sardonyx.capture.torchscript.compiled_models import read_compiled
from sardonyx.capture.torchscript.program import capture_by_script
from sardonyx.errors import (
    CaptureError,
    DynamicDimError,
    FinalCaptureError,
    InvalidOptionError,
)
from sardonyx.notes import Note

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
EXPORTING = Attempt(
    "export, told so",
    record_as_exporting,
    "models that look at values unless torch.jit.is_tracing()",
)
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


COMPILED_SCRIPT = Attempt(
    "script", read_compiled, "branches and loops that data decides are in the source alone"
)

ATTEMPTS: dict[str, tuple[Attempt, ...]] = {
    "export": (SYMBOLIC, EXPORTING, COMPILED),
    "trace": (BY_EXAMPLE, COMPILED),
    "script": (SCRIPT,),
    "auto": (SYMBOLIC, EXPORTING, COMPILED, COMPILED_SCRIPT, UNBAKED),
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
        if not _may_record_more(attempt, [error for _, error in refusals]):
            continue
        try:
            recorded = attempt.record(model, inputs)
        except FinalCaptureError:
            raise
        except CaptureError as error:
            if attempt is not EXPORTING:  # refused for the same, mostly
                refusals.append((attempt, error))
            if isinstance(error, DynamicDimError):
                break
            continue
        if attempt in _INSTEAD:
            note = _instead(refusals[0][1], _INSTEAD[attempt])
            recorded = replace(recorded, notes=(note, *recorded.notes))
        if attempt.accepts_baked or not recorded.baked:
            return recorded
        raise _baked(refusals, recorded) from refusals[0][1]
    raise refusals[0][1]


def _may_record_more(attempt: Attempt, refused: list[CaptureError]) -> bool:
    """Whether an attempt may record what those before it were refused for. Compiled bytecode has
    the same sizes, cannot compare by `is`, and loses assertions that are caught; a script has both
    branches."""
    if attempt is COMPILED:
        return not any(
            isinstance(error, (DynamicDimError, ComparedByIdentityError))
            or (isinstance(error, DataDependentError) and error.may_be_caught)
            for error in refused
        )
    return attempt not in _INSTEAD or isinstance(refused[0], DataDependentError)


_INSTEAD = {
    EXPORTING: "the model is recorded as what it does where torch.jit.is_tracing() is true",
    COMPILED_SCRIPT: "the model is read as a TorchScript program",
}
"""What is done where data decides a branch or a loop."""


def _instead(refusal: CaptureError, done: str) -> Note:
    place = refusal.place
    where = f" at {place_text(place)}" if place else ""
    return Note(f"{refusal.headline}{where}: {done}", place=place)


def _baked(refusals: list[tuple[Attempt, CaptureError]], recorded: Recorded) -> CaptureError:
    return CaptureError(
        "the model cannot be recorded faithfully",
        [
            *((attempt.name, error.headline) for attempt, error in refusals),
            ("trace", [str(value) for value in recorded.baked]),
            ("try", 'capture="trace" to accept the baked values'),
        ],
    )
