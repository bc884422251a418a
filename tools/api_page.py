"""Writes docs/api.md from the docstrings and signatures of the package.

python -m tools.api_page
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import sardonyx

PATH = Path(__file__).parents[1] / "docs" / "api.md"
_WIDTH = 96

_HEAD = """\
# API

Everything here is an attribute of `sardonyx`. Written by `python -m tools.api_page` from the
docstrings; a test fails when it is out of date.
"""

_SECTIONS: dict[str, tuple[str, ...]] = {
    "Export": (
        "export",
        "ONNXProgram",
        "ExternalData",
        "TrainingMode",
        "OperatorExportTypes",
        "export_to_pretty_string",
    ),
    "Verification": ("verification",),
    "Custom operators": (
        "register_custom_op_symbolic",
        "unregister_custom_op_symbolic",
        "GraphContext",
        "symbolic_helper",
        "ops",
        "operators",
        "JitScalarType",
    ),
    "dynamo_export": (
        "dynamo_export",
        "ExportOptions",
        "DiagnosticOptions",
        "ExportOutput",
        "ExportOutputSerializer",
        "OnnxRegistry",
        "ONNXFunction",
    ),
    "Models without weights": ("enable_fake_mode", "ONNXFakeContext"),
    "In the place of torch.onnx": ("install", "uninstall", "installed"),
    "Around an export": (
        "is_in_onnx_export",
        "select_model_mode_for_export",
        "set_training",
        "enable_log",
        "disable_log",
        "utils",
    ),
}
"""Names in the order of the page; errors come last, and names of no section under Others."""

_INSIDE = {
    "ExternalData.file_name",
    "GraphContext.as_tensor",
    "GraphContext.finish_blocks",
    "GraphContext.written_at",
    "ONNXProgram.save_as_export",
    "OnnxBackend.run",
    "OnnxRegistry.translation_table",
    "TrainingMode.of",
    *(
        f"symbolic_helper.{name}"
        for name in ("_a_tensor", "_constant", "_dtype_of", "_extreme", "_held", "_ints")
    ),
    *(f"symbolic_helper.{name}" for name in ("_number", "_numbers", "_positions", "_string")),
}
"""Public to other files of the package, and not to its users."""

_WITH_UNDERSCORES = {"symbolic_helper"}
"""Published code calls functions of these whose names begin with an underscore."""


def page() -> str:
    named = {name for names in _SECTIONS.values() for name in names}
    errors = [n for n in sardonyx.__all__ if _is_error(getattr(sardonyx, n))]
    others = [n for n in sardonyx.__all__ if n not in named and n not in errors]
    text = _HEAD
    for title, names in {**_SECTIONS, "Others": tuple(others)}.items():
        entries = [_entry(name) for name in names if name in sardonyx.__all__]
        if entries:
            text += f"\n## {title}\n" + "".join(entries)
    return text + _errors(errors)


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception | Warning)


def _entry(name: str) -> str:
    thing = getattr(sardonyx, name)
    if isinstance(thing, ModuleType):
        return _module(name, thing)
    if isinstance(thing, type):
        return _class(name, thing)
    return f"\n### {name}\n\n{_call(name, thing)}{_prose(thing)}"


def _module(name: str, module: ModuleType) -> str:
    """Its functions and classes: those of `__all__`, where all that it has is not published."""
    text = f"\n### {name}\n\n{_prose(module)}"
    listed = getattr(module, "__all__", ())
    is_whole = not listed or name in _WITH_UNDERSCORES
    known = [n for n in sardonyx.__all__ if n in listed]
    if known:
        text += f"\nAs in `sardonyx` itself: {_names(known)}.\n"
    functions = {
        member: function
        for member, function in vars(module).items()
        if inspect.isfunction(function)
        and (member in listed or (is_whole and function.__module__ == module.__name__))
        and member not in known
        and f"{name}.{member}" not in _INSIDE
    }
    for member, function in functions.items():
        if function.__doc__:
            text += f"\n{_call(f'{name}.{member}', function)}{_prose(function)}"
    plain = [member for member, function in functions.items() if not function.__doc__]
    if plain:
        text += "\nAnd, for what their names say:\n\n```py\n"
        text += "\n".join(_signature(f"{name}.{n}", functions[n]) for n in plain) + "\n```\n"
    for member in listed:
        if inspect.isclass(thing := getattr(module, member)) and member not in known:
            text += _class(f"{name}.{member}", thing)
    return text


def _names(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 100, break_on_hyphens=False)


def _class(name: str, cls: type) -> str:
    text = f"\n### {name}\n\n"
    if issubclass(cls, enum.Enum):
        text += f"{_prose(cls)}\nMembers: {_names(member.name for member in cls)}.\n"
    elif dataclasses.is_dataclass(cls) or _has_own_init(cls):
        text += f"{_call(name, cls)}{_prose(cls)}"
    else:
        text += _prose(cls)
    return text + "".join(_members(cls))


def _has_own_init(cls: type) -> bool:
    """Whether users make objects of it: other classes come out of calls."""
    return cls.__init__ is not object.__init__ and cls.__name__ == "OnnxRegistry"


def _members(cls: type) -> Iterator[str]:
    attributes = dict(_attributes(cls))
    for member, thing in vars(cls).items():
        if isinstance(thing, property) and thing.__doc__ and not member.startswith("_"):
            attributes[member] = thing.__doc__
    if attributes:
        rows = (f"- `{name}`: {' '.join(doc.split())}\n" for name, doc in attributes.items())
        yield "\n" + "".join(rows)
    for member, thing in vars(cls).items():
        function = getattr(thing, "__func__", thing)  # of class and static methods
        full_name = f"{cls.__name__}.{member}"
        if not inspect.isfunction(function) or full_name in _INSIDE:
            continue
        if member == "__call__":
            yield f"\n{_call('program', function)}{_prose(function)}"
        elif not member.startswith("_"):
            yield f"\n{_call(full_name, function)}{_prose(function)}"


def _attributes(cls: type) -> Iterator[tuple[str, str]]:
    """Fields, and what __init__ sets, where a string below says what they are."""
    if issubclass(cls, enum.Enum):
        return
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(body, ast.ClassDef)
    inits = [s for s in body.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    for statements in (body.body, *(init.body for init in inits)):
        for statement, below in itertools.pairwise(statements):
            if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
                target = ast.unparse(
                    statement.target
                    if isinstance(statement, ast.AnnAssign)
                    else statement.targets[0]
                )
                yield target.removeprefix("self."), ast.literal_eval(below.value)


def _errors(names: list[str]) -> str:
    """The errors as the tree they are."""
    text = "\n## Errors\n\n"
    aliases = {n: getattr(sardonyx, n) for n in names if getattr(sardonyx, n).__name__ != n}
    own = {n: getattr(sardonyx, n) for n in names if n not in aliases}

    def rows(cls: type, depth: int) -> Iterator[str]:
        also = [name for name, other in aliases.items() if other is cls]
        called = f" Also named {', '.join(f'`{n}`' for n in sorted(also))}." if also else ""
        doc = " ".join(_paragraphs(cls)[:1])
        yield f"{'    ' * depth}- `{cls.__name__}`: {doc}{called}\n"
        for child in sorted(own.values(), key=lambda c: c.__name__):
            if child.__bases__[0] is cls:
                yield from rows(child, depth + 1)

    for cls in sorted(own.values(), key=lambda c: c.__name__):
        if cls.__bases__[0] not in own.values():
            text += "".join(rows(cls, 0))
    return text


# -- signatures -----------------------------------------------------------------------------------


def _call(name: str, function: Callable[..., Any]) -> str:
    """A signature as a block of code, and the empty line before what is said of it."""
    said = "\n" if _paragraphs(function) else ""
    return f"```py\n{_signature(name, function)}\n```\n{said}"


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if function.__qualname__.count(".") == 1:  # a method
        parameters = parameters[1:]
    parts = list(_parameters(parameters))
    result = "" if isinstance(function, type) else _result(signature)
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) > _WIDTH:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"
    return line


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    by_name_only = False
    for i, parameter in enumerate(parameters):
        kind = parameter.kind
        if kind is inspect.Parameter.KEYWORD_ONLY and not by_name_only:
            by_name_only = True
            yield "*"
        by_name_only |= kind is inspect.Parameter.VAR_POSITIONAL
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        text = stars.get(kind, "") + parameter.name
        annotated = parameter.annotation is not inspect.Parameter.empty
        if annotated:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not inspect.Parameter.empty:
            equals = " = " if annotated else "="
            text += f"{equals}{_value(parameter.default)}"
        yield text
        last = i + 1 == len(parameters) or parameters[i + 1].kind is not kind
        if kind is inspect.Parameter.POSITIONAL_ONLY and last:
            yield "/"


def _result(signature: inspect.Signature) -> str:
    if signature.return_annotation is inspect.Signature.empty:
        return ""
    return f" -> {_annotation(signature.return_annotation)}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _value(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value).__repr__ is object.__repr__ or repr(value).startswith("<"):
        return "..."
    return repr(value)


# -- docstrings -----------------------------------------------------------------------------------


def _paragraphs(thing: Any) -> list[str]:
    doc = inspect.cleandoc(
        (vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__) or ""
    )
    if dataclasses.is_dataclass(thing) and doc.startswith(f"{thing.__name__}("):
        return []  # made by the dataclass itself
    return [p if _is_list(p) else " ".join(p.split()) for p in doc.split("\n\n") if p.strip()]


def _is_list(paragraph: str) -> bool:
    return bool(re.match(r"Args:|`\w+`: ", paragraph))


def _prose(thing: Any) -> str:
    """A docstring as Markdown: arguments are a list."""
    blocks = []
    for paragraph in _paragraphs(thing):
        if paragraph.startswith("Args:\n"):
            paragraph = textwrap.dedent(paragraph.removeprefix("Args:\n"))
            items = re.split(r"\n(?=\S)", paragraph)
            blocks.append("\n".join(_item(item) for item in items))
        elif _is_list(paragraph):
            items = re.split(r"\n(?=`\w+`: )", paragraph)
            blocks.append("\n".join("- " + " ".join(item.split()) for item in items))
        else:
            blocks.append(textwrap.fill(paragraph, 100, break_long_words=False))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _item(argument: str) -> str:
    name, _, text = argument.partition(":")
    return f"- `{name}`: {' '.join(text.split())}"


if __name__ == "__main__":
    PATH.write_text(page())
