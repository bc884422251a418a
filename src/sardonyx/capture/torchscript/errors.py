"""The exceptions of the TorchScript reader."""

from __future__ import annotations

from sardonyx.aten.graph import SourceLocation
from sardonyx.errors import CaptureError, UnsupportedOperatorError


class ScriptRefusal(CaptureError):
    """Something that a program does and that has no ONNX form; the reader adds the line."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, [("try", hint)])
        self._message = message
        self._hint = hint

    def located(self, location: SourceLocation) -> CaptureError:
        return CaptureError(self._message, [("at", location.describe()), ("try", self._hint)])


class NotHere(Exception):
    """The call is one of tensors, or of known values: another table has it."""


class ModelRaises(Exception):
    """The program raises here, whatever its inputs are. In the first reading of a loop, what it
    reads may not be there yet."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.location = location
        """None until the node is known."""

    def place(self) -> str:
        return "an unknown line" if self.location is None else self.location.describe()


class CannotJoin(Exception):
    """Two values have no type in common that ONNX has."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class TypesChange(CaptureError):
    """A loop changes the type of a variable that it carries."""

    def __init__(self, reason: CannotJoin, location: SourceLocation) -> None:
        headline = f"a loop changes the type of a variable that it carries: {reason}"
        super().__init__(headline, [("at", location.describe()), ("try", reason.hint)])


class BranchesDiffer(CaptureError):
    """The branches of an if leave types that cannot be joined."""

    def __init__(self, reason: CannotJoin, location: SourceLocation) -> None:
        headline = f"the branches of an if leave different types: {reason}"
        super().__init__(headline, [("at", location.describe()), ("try", reason.hint)])


def no_form(kind: str, location: SourceLocation) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"{kind} in TorchScript has no ONNX form yet", [("first", location.describe())]
    )


def computed_key() -> ScriptRefusal:
    return ScriptRefusal(
        "the key of a dict is computed at run time",
        "use a list or a tensor, and the number as its index",
    )


def runtime_string() -> ScriptRefusal:
    return ScriptRefusal(
        "the program uses a string that is made at run time",
        "use the numbers that the string is made of",
    )
