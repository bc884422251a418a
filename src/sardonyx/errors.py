"""The error tree and the only message formatter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


class Message(str):
    """A message laid out in rows."""

    headline: str
    """The row that says what is wrong; those below say where, and what to do."""


Rows: TypeAlias = Iterable[tuple[str, str | Sequence[str]]]
"""Labels, and the lines of text beside them."""


class SardonyxError(RuntimeError):
    """Every error an export can end with. `str(error)` is the whole message for the user."""

    place: tuple[str, int, str] | None = None
    """File, line and text of the model's code that it is about, where that is known."""
    export_output: Any = None
    """What `dynamo_export` has to give all the same: its diagnostics."""

    def __init__(self, message: str = "", rows: Rows = ()) -> None:
        """`rows` say where, and what to do."""
        super().__init__(format_message(message, rows) if rows else message)

    @property
    def headline(self) -> str:
        """The message without the rows on where and what to do."""
        message = self.args[0] if self.args else ""
        return message.headline if isinstance(message, Message) else str(message)


class InvalidOptionError(SardonyxError, ValueError):
    """An argument of `export` that cannot be honoured."""


class UnknownNameError(InvalidOptionError):
    """`dynamic_axes` names neither an input nor an output."""

    name: str = ""


class UnknownOptionError(InvalidOptionError, TypeError):
    """An option that does not exist."""


class CaptureError(SardonyxError):
    """The model itself fails, could not be recorded, or would have been with a baked value."""


class FinalCaptureError(CaptureError):
    """The model cannot be recorded, by whatever capture."""


class DynamicDimError(CaptureError):
    """A dim that is declared dynamic is specialized by the model."""

    dim: tuple[str, int] | None = None
    """The input or output and the axis, where it is one dim."""


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """A use of an operator that has no ONNX form."""

    operator: str
    reason: str
    place: str
    """The module and the line of the model's source."""
    file: str = ""
    line: int = 0


class UnsupportedOperatorError(SardonyxError):
    """Operators with no ONNX form, all of them at once."""

    def __init__(
        self, message: str, rows: Rows = (), problems: Sequence[OperatorProblem] = ()
    ) -> None:
        super().__init__(message, rows)
        self.problems = tuple(problems)


class SymbolicFunctionError(SardonyxError):
    """A custom symbolic function raised, or wrote a node that ONNX does not know."""


class UnsupportedDtypeError(SardonyxError):
    """A dtype that ONNX does not have."""


class UnsupportedOpsetError(SardonyxError):
    """The model cannot be expressed at the requested opset."""

    def __init__(self, message: str, onnx_operators: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.onnx_operators = tuple(onnx_operators)


class SerializeError(SardonyxError, OSError):
    """The file could not be written; nothing was left behind."""


class VerificationError(SardonyxError):
    """ONNX Runtime and PyTorch disagree, or could not be compared."""


class NotRunnableError(VerificationError):
    """ONNX Runtime cannot load or run the model: nothing was compared."""


class MissingDependencyError(SardonyxError, ImportError):
    """An optional dependency is needed and not installed."""


class InternalError(SardonyxError):
    """A broken promise between two stages: a bug in Sardonyx."""


class OnnxExporterWarning(UserWarning):
    """An option without effect, or with another one than in other exporters."""


class NarrowedDimWarning(OnnxExporterWarning):
    """The file is valid for some sizes only of a dim that is declared dynamic."""


# The names that users of earlier exporters catch.
OnnxExporterError = SardonyxError
InvalidExportOptionsError = InvalidOptionError
CheckerError = SerializeError
SymbolicValueError = SymbolicFunctionError


def format_message(headline: str, fields: Rows = ()) -> Message:
    """A headline, then aligned `label  text` rows; empty rows are left out."""
    rows: list[tuple[str, str]] = []
    for label, text in fields:
        lines = [text] if isinstance(text, str) else list(text)
        lines = [line for line in lines if line]
        rows += [(label if index == 0 else "", line) for index, line in enumerate(lines)]
    width = max((len(label) for label, _ in rows), default=0)
    message = Message("\n".join([headline, *(f"  {label:<{width}}  {t}" for label, t in rows)]))
    message.headline = headline
    return message


def first_line(error: BaseException) -> str:
    """`ValueError: what it says first`, of an error that is not ours."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
