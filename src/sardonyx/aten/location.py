"""Source locations: from stack traces and module paths to what a user recognizes."""

from __future__ import annotations

import linecache
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import CodeType, FrameType

import torch

from sardonyx._torch_private.paths import OWN_FOLDER, TORCH_FOLDER
from sardonyx.aten.graph import SourceLocation
from sardonyx.aten.module_tree import named_modules

Place = tuple[str, int, str]
"""File, line and the text of that line."""

_COMPILER = (os.path.join(TORCH_FOLDER, "_dynamo") + os.sep, TORCH_FOLDER + "_compile.py")
_DISTRIBUTIONS = os.path.join(TORCH_FOLDER, "distributions") + os.sep
_BOUNDARY = os.path.join(OWN_FOLDER, "capture", "flat_model.py")
"""The file whose frame calls the user's model."""
_PYTHON_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_TORCHSCRIPT_FRAME = re.compile(r"^(.*)\((\d+)\): ", re.MULTILINE)


def is_users(file: str) -> bool:
    return not (
        file.startswith((TORCH_FOLDER, OWN_FOLDER, "torch/", "<", warnings.__file__))
        or "/torch/fx/" in file
    )


@cache
def from_stack_trace(trace: str) -> Place:
    """The user's innermost frame in a Python-style stack trace."""
    return _innermost((f, int(line)) for f, line in reversed(_PYTHON_FRAME.findall(trace)))


@cache
def from_source_range(text: str) -> Place:
    """The same for TorchScript: a trace lists the innermost frame first, a script has the line that
    was compiled."""
    frames = _TORCHSCRIPT_FRAME.findall(text) or _PYTHON_FRAME.findall(text)
    return _innermost((file, int(line)) for file, line in frames)


def innermost_user_place(frame: FrameType | None) -> Place:
    """The same for a running frame and its callers."""
    return _innermost((f.f_code.co_filename, f.f_lineno) for f in _callers(frame))


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def model_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The running frames of the user's code and of torch.distributions, which checks data as
    models do, from the innermost to the model's own."""
    for caller in _callers(frame):
        file = caller.f_code.co_filename
        kind = _kind_of_file(file)
        if kind == "boundary":
            return
        if kind == "user" or file.startswith(_DISTRIBUTIONS):
            yield caller


def _innermost(frames: Iterable[tuple[str, int]]) -> Place:
    fallback: tuple[str, int] | None = None
    for file, line in frames:
        kind = _kind_of_file(file)
        if kind == "boundary":
            break  # what called the exporter is not the model
        if kind == "user":
            return _place(file, line)
        if fallback is None and kind == "torch":
            fallback = file, line
    return ("", 0, "") if fallback is None else _place(*fallback)


@cache
def _kind_of_file(file: str) -> str:
    if file == _BOUNDARY:
        return "boundary"
    if is_users(file):
        return "user"
    return "own" if file.startswith((OWN_FOLDER, *_COMPILER)) else "torch"


def _place(file: str, line: int) -> Place:
    return _shortened_place(file, line, os.getcwd(), linecache.getline(file, line).strip())


@cache
def _shortened_place(file: str, line: int, folder: str, text: str) -> Place:
    return shortened((file, line, text))


def is_called_from_torch(frame: FrameType | None) -> bool:
    """Whether the running code is PyTorch's, and not that of a model."""
    code = running_model_code(frame)
    return code is not None and code.co_filename.startswith(TORCH_FOLDER)


def running_model_code(frame: FrameType | None) -> CodeType | None:
    """The running code, apart from what dispatches and observes its calls."""
    observing = (OWN_FOLDER, warnings.__file__, TORCH_FOLDER + "_ops.py")
    codes = (f.f_code for f in _callers(frame))
    return next((code for code in codes if not code.co_filename.startswith(observing)), None)


def place_text(place: Place) -> str:
    """`my_model.py:57   h = torch.histc(x, bins=10)`"""
    file, line, text = shortened(place)
    return f"{file}:{line}   {text}".rstrip() if file else ""


def shortened(found: Place) -> Place:
    """The file relative to the working folder or to where packages are installed."""
    file, line, text = found
    if "site-packages" + os.sep in file:
        return file.split("site-packages" + os.sep)[-1], line, text
    relative = os.path.relpath(file) if file and not file.startswith("<") else file
    return (os.path.basename(file) if relative.startswith("..") else relative), line, text


def _class_name(module: torch.nn.Module) -> str:
    """TorchScript keeps the name of the class that it was made from."""
    return str(getattr(module, "original_name", type(module).__name__))


class ModuleNames:
    """Class paths such as `AlexNet/Sequential[features]/Conv2d[0]` for module paths."""

    def __init__(self, root_class: str, classes: Mapping[str, str]) -> None:
        self._root = root_class
        self.classes = classes
        """Class names by module path."""
        self._made: dict[str, str] = {}

    @classmethod
    def of(cls, model: object) -> ModuleNames:
        if not isinstance(model, torch.nn.Module):
            return cls(getattr(model, "__name__", type(model).__name__), {})
        return cls(_class_name(model), {path: _class_name(m) for path, m in named_modules(model)})

    def class_path(self, module_path: str) -> str:
        if module_path not in self._made:
            names = module_path.split(".") if module_path else []
            walked = [".".join(names[: depth + 1]) for depth in range(len(names))]
            # A ModuleList or ModuleDict is never called itself, but is part of the path.
            classes = [self.classes.get(path) or "Module" for path in walked]
            parts = [f"{kind}[{name}]" for kind, name in zip(classes, names, strict=True)]
            self._made[module_path] = "/".join([self._root, *parts])
        return self._made[module_path]

    def location(
        self, module_path: str, place: Place, calls: tuple[str, ...] = ()
    ) -> SourceLocation:
        return SourceLocation(module_path, self.class_path(module_path), *place, calls=calls)
