"""Messages of `export` as the command says them: `--capture trace` for `capture="trace"`."""

from __future__ import annotations

import re
from collections.abc import Callable

_SWITCHES = "external_data|verify|optimize|state_outputs|export_modules_as_functions"
_RENAMED = {
    "dynamic_axes": "--dynamic",
    "dynamic_shapes": "--dynamic",
    "opset_version": "--opset",
    "input_names": "--input-names",
    "output_names": "--output-names",
    "state_outputs": "--state-outputs",
    "external_data": "--external-data",
    "export_modules_as_functions": "--export-modules-as-functions",
}


def _switch(found: re.Match[str]) -> str:
    name = found["name"].replace("_", "-")
    return f"--{name}" if found["value"] == "True" else f"--no-{name}"


_SPELLINGS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"\b(capture|target)=([\"'])(\w+)\2"), r"--\1 \3"),
    (re.compile(rf"\b(?P<name>{_SWITCHES})=(?P<value>True|False)\b"), _switch),
    (re.compile(r"\bdynamic_axes\[('[^']*')\]"), r"--dynamic of \1"),
    (re.compile(r"\bopset_version=(\S+)"), r"--opset \1"),
    (
        re.compile(rf"(?<![-\w.\"'])(?:{'|'.join(_RENAMED)})\b=?"),
        lambda found: _RENAMED[found[0].removesuffix("=")],
    ),
]
_LINE_OF_CODE = re.compile(r"\.py:\d+")


def as_options(message: str) -> str:
    """Lines that show the model's code stay as they are."""
    return "\n".join(
        line if _LINE_OF_CODE.search(line) else _spelled(line) for line in message.split("\n")
    )


def _spelled(line: str) -> str:
    for pattern, spelling in _SPELLINGS:
        line = pattern.sub(spelling, line)
    return line
