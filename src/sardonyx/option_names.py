"""Errors for options that do not exist, with the nearest one that does."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from sardonyx.errors import UnknownOptionError

P = ParamSpec("P")
R = TypeVar("R")
Class = TypeVar("Class", bound=type)

OF_OTHER_EXPORTERS = {
    "dynamo": "Sardonyx records a model in the way that suits it; capture= chooses one",
    "fallback": "capture='auto', the default, tries torch.export and then a trace by itself",
    "report": "the program that export returns has a report()",
    "profile": "the program that export returns has stage_seconds",
    "dump_exported_program": "there is none to dump; the program's to_text() prints the graph",
    "artifacts_dir": "nothing is written but the model itself",
    "example_outputs": "outputs are inferred, no example of them is needed",
    "strip_doc_string": "source lines are in the nodes' metadata and never in doc strings",
    "enable_onnx_checker": "every file is valid at its opset, or the export fails",
    "onnx_shape_inference": "shapes come from PyTorch and are always in the file",
    "propagate": "parameters are always exported with their values",
    "export_type": "one file is written, and external_data= says where the weights are",
    "google_printer": "str(program.model_proto) is the model as protobuf prints it",
    "add_node_names": "nodes always have names",
    "_retain_param_name": "parameters always keep their names",
}
"""Options of other exporters, and what to know of them here."""


def suggests_options(
    called: str, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that, for options it does not have, says which one is meant. `called` is its name,
    `elsewhere` has what to know of the options of other functions of that name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = inspect.signature(function).parameters

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_unknown(called, kwargs, known, elsewhere)
            return function(*args, **kwargs)

        return checked

    return decorate


def refuse_unknown(
    called: str,
    given: Mapping[str, Any],
    known: Collection[str],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raises for the first of the options given that is not one of those known."""
    for name in given:
        if name not in known:
            raise UnknownOptionError(_message(called, name, given[name], known, elsewhere))


def suggests_fields(kind: Class) -> Class:
    """A class that does so for its fields."""
    made = kind.__init__  # type: ignore[misc]
    setattr(kind, "__init__", suggests_options(kind.__name__)(made))  # noqa: B010
    return kind


def _message(
    called: str, name: str, value: Any, known: Collection[str], elsewhere: Mapping[str, str]
) -> str:
    message = f"{called}() has no option {name}"
    if name in elsewhere:
        return f"{message}: {elsewhere[name]}"
    if _MEANT.get(name) in known:
        return f"{message}: did you mean {_MEANT[name]}?"
    near = nearest(name, known)
    if near is None:
        listed = ", ".join(option for option in known if option not in ("self", "model"))
        return f"{message}: it has {listed}"
    text = repr(value)
    given = f"{near}={text}" if len(text) <= 60 and "\n" not in text else near
    return f"{message}: did you mean {given}?"


_MEANT = {
    "inputs": "args",
    "example_inputs": "args",
    "sample_inputs": "args",
    "file": "f",
    "filename": "f",
    "path": "f",
    "output": "f",
    "output_path": "f",
    "dynamic": "dynamic_axes",
}
"""Names that are spelled otherwise, or are no full answer to what they ask."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The option that is spelled most alike, or one that has the name for a part."""
    spelled = {o.replace("_", ""): o for o in known if o not in ("self", "model", "f")}
    plain = name.replace("_", "").lower()
    parts = [option for text, option in spelled.items() if plain in text or text in plain]
    alike = difflib.get_close_matches(plain, spelled, n=1, cutoff=0.75)
    if alike:
        return spelled[alike[0]]
    if parts and len(plain) > 2:
        return max(parts, key=lambda o: difflib.SequenceMatcher(None, plain, o).ratio())
    loosely = difflib.get_close_matches(plain, spelled, n=1)
    return spelled[loosely[0]] if loosely else None
