"""Diagnostics of an export, also as SARIF 2.1 for other programs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sardonyx.compat.torch_onnx.export_options import DiagnosticOptions
from sardonyx.errors import SardonyxError, UnsupportedOperatorError
from sardonyx.notes import NoteKind
from sardonyx.program import ONNXProgram
from sardonyx.version import producer_version

_RULES = {
    "note": ("Note", "Something to know of the file."),
    "baked-value": ("BakedValue", "A value of the example run is a constant of the file."),
    "unsupported-operator": ("UnsupportedOperator", "An operator has no ONNX form."),
    "export-failed": ("ExportFailed", "The model could not be exported."),
    "verification": ("Verification", "ONNX Runtime was compared with PyTorch."),
}
_LEVELS = {logging.INFO: "note", logging.WARNING: "warning", logging.ERROR: "error"}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One note, warning or error of an export."""

    rule: str
    level: int
    """A level of logging."""
    message: str
    file: str = ""
    """Of the model's code that it is about, with the line."""
    line: int = 0

    def as_result(self) -> dict[str, Any]:
        """As a result of a SARIF log, with the line of the model's source it speaks of."""
        result: dict[str, Any] = {
            "ruleId": self.rule,
            "level": _LEVELS[self.level],
            "message": {"text": self.message},
        }
        if self.file:
            result["locations"] = [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": self.file.replace("\\", "/")},
                        "region": {"startLine": self.line},
                    }
                }
            ]
        return result


@dataclass
class DiagnosticContext:
    """The diagnostics of one export."""

    options: DiagnosticOptions = field(default_factory=DiagnosticOptions)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics += [d for d in diagnostics if d.level >= self.options.verbosity_level]

    def sarif_log(self) -> dict[str, Any]:
        rules = [
            {"id": rule, "name": name, "shortDescription": {"text": text}}
            for rule, (name, text) in _RULES.items()
        ]
        driver = {"name": "sardonyx", "version": producer_version(), "rules": rules}
        return {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": driver},
                    "results": [diagnostic.as_result() for diagnostic in self.diagnostics],
                }
            ],
        }

    def dump(self, destination: str | os.PathLike[str]) -> None:
        """Write the SARIF log."""
        with open(destination, "w", encoding="utf-8") as file:
            json.dump(self.sarif_log(), file, indent=2)


def of_program(program: ONNXProgram) -> Iterator[Diagnostic]:
    for note in program.notes:
        is_baked = note.kind is NoteKind.BAKED_VALUE
        rule, level = ("baked-value", logging.WARNING) if is_baked else ("note", logging.INFO)
        file, line, _ = note.place or ("", 0, "")
        yield Diagnostic(rule, level, str(note), file, line)


def of_error(error: SardonyxError) -> Iterator[Diagnostic]:
    """One for each problem, where the error is about several."""
    problems = error.problems if isinstance(error, UnsupportedOperatorError) else ()
    for problem in problems:
        text = f"{problem.operator}: {problem.reason} ({problem.place})"
        place = (problem.file, problem.line)
        yield Diagnostic("unsupported-operator", logging.ERROR, text, *place)
    if not problems:
        file, line, _ = error.place or ("", 0, "")
        yield Diagnostic("export-failed", logging.ERROR, str(error), file, line)
