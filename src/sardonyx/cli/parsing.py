"""What the command line says, as models, tensors and dynamic axes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import operator
import pickle
import re
import runpy
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from sardonyx.aten import pytree
from sardonyx.capture.inputs.binding import is_graph_input
from sardonyx.compat.torch_onnx.install import installed
from sardonyx.errors import SardonyxError


class UsageError(ValueError):
    """A command line that cannot be understood."""


class ModelError(SardonyxError):
    """The user's own code, or a stored model, failed before the export began."""


def load_object(target: str) -> Any:
    """The object that `package.module:name` or `path/to/file.py:name` names."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(
            f"{target!r} is neither MODULE:CALLABLE, nor FILE.py:CALLABLE, nor a .pt2 or .pt file"
        )
    module = _load_file(Path(place)) if place.endswith(".py") else _import(place)
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        raise UsageError(f"{place} has no {name!r}") from None


def load_model(target: str) -> Any:
    """The model: stored in a .pt2 or TorchScript .pt file, or made by calling what `target` names.

    A module that already is one is taken as it is.
    """
    path = Path(target)
    if path.suffix in (".pt2", ".pt", ".pth", ".ts"):
        return _load_stored(path)
    found = load_object(target)
    if isinstance(found, torch.nn.Module | torch.jit.ScriptFunction):
        return found
    return call(found, target)


def call(function: Any, target: str) -> Any:
    """The result of a user's function that takes no arguments."""
    if not callable(function):
        raise UsageError(f"{target} is {type(function).__name__}, not a callable")
    try:
        return function()
    except Exception as error:
        raise ModelError(f"calling {target} failed: {type(error).__name__}: {error}") from error


def _load_stored(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        if path.suffix == ".pt2":
            return torch.export.load(path)
        return torch.jit.load(path)  # type: ignore[no-untyped-call]
    except Exception as error:
        if path.suffix != ".pt2" and _is_pickle(path):
            raise ModelError(
                f"{path} holds what torch.save wrote, a pickle, and no TorchScript model",
                [("try", "FILE.py:CALLABLE that makes the model and loads its weights")],
            ) from None
        kind = "exported program" if path.suffix == ".pt2" else "TorchScript model"
        raise ModelError(f"{path} cannot be read as a {kind}: {error}") from error


def _is_pickle(path: Path) -> bool:
    """Whether torch.save wrote a file: TorchScript has constants and code beside the pickle."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes()[:1] == pickle.PROTO
    with zipfile.ZipFile(path) as archive:
        members = {name.rpartition("/")[2] for name in archive.namelist()}
    return "data.pkl" in members and "constants.pkl" not in members


def _import(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {name!r}") from None
        raise ModelError(f"importing {name} failed: {error}") from error
    except Exception as error:
        raise ModelError(f"importing {name} failed: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported")
    # The file may import its neighbours, and is itself what pickles and dataclasses look up.
    sys.path.insert(0, str(path.parent.resolve()))
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"importing {path} failed: {type(error).__name__}: {error}") from error
    return module


@dataclass(frozen=True)
class InputText:
    """One `--input`: `[name=]DIMxDIM...[:dtype][:low..high]`, the high end excluded."""

    name: str | None
    shape: tuple[int, ...]
    dtype: torch.dtype
    low: float | None = None
    high: float | None = None

    @classmethod
    def parse(cls, text: str) -> InputText:
        match = re.fullmatch(
            r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>scalar|\d+(?:x\d+)*)"
            r"(?::(?P<dtype>\w+))?(?::(?P<low>-?[\d.]+?)\.\.(?P<high>-?[\d.]+))?",
            text,
        )
        if match is None:
            raise UsageError(
                f"--input {text!r} is not of the form [name=]1x3x224x224[:float32][:low..high] "
                "(or scalar in place of the dims)"
            )
        dtype = getattr(torch, match["dtype"] or "float32", None)
        if not isinstance(dtype, torch.dtype):
            raise UsageError(f"--input {text!r}: torch has no dtype {match['dtype']!r}")
        dims = () if match["shape"] == "scalar" else tuple(map(int, match["shape"].split("x")))
        try:
            low, high = (
                None if match[end] is None else float(match[end]) for end in ("low", "high")
            )
        except ValueError:
            raise UsageError(f"--input {text!r}: the range is not made of numbers") from None
        if low is not None and high is not None and not low < high:
            raise UsageError(f"--input {text!r}: the range {low:g}..{high:g} is empty")
        return cls(match["name"], dims, dtype, low, high)

    def draw(self, generator: torch.Generator) -> torch.Tensor:
        """Random values: floats normal, integers 0 or 1, unless a range is given."""
        if self.dtype == torch.bool:
            return torch.rand(self.shape, generator=generator) < 0.5
        ranged = self.low is not None and self.high is not None
        low, high = (self.low or 0.0, self.high or 0.0) if ranged else (0.0, 2.0)
        if self.dtype.is_complex:
            # Both parts as a float's would be drawn.
            parts = InputText(None, (*self.shape, 2), self.dtype.to_real(), self.low, self.high)
            return torch.view_as_complex(parts.draw(generator))
        if not self.dtype.is_floating_point:
            drawn = torch.randint(int(low), int(high), self.shape, generator=generator)
        elif ranged:
            drawn = torch.rand(self.shape, generator=generator) * (high - low) + low
        else:
            drawn = torch.randn(self.shape, generator=generator)
        return drawn.to(self.dtype)


def drawn_inputs(texts: Sequence[str]) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """Positional and named example inputs, the same in every run."""
    generator = torch.Generator().manual_seed(0)
    args: list[torch.Tensor] = []
    kwargs: dict[str, torch.Tensor] = {}
    for text in map(InputText.parse, texts):
        tensor = text.draw(generator)
        if text.name is None:
            args.append(tensor)
        elif text.name in kwargs:
            raise UsageError(f"--input {text.name}= is given twice")
        else:
            kwargs[text.name] = tensor
    return tuple(args), kwargs


def required_inputs(model: Any) -> list[str]:
    """The arguments a model cannot be called without, as far as Python can tell."""
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        scripted: Any = model.forward if isinstance(model, torch.jit.ScriptModule) else model
        schema = scripted.schema
        return [a.name for a in schema.arguments if a.name != "self" and not a.has_default_value()]
    try:
        parameters = inspect.signature(getattr(model, "forward", model)).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def inputs_from(target: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the function named by `--inputs` returns: a tensor, a tuple whose last element may be
    a dict of keyword arguments, or such a dict alone."""
    result = call(load_object(target), target)
    if isinstance(result, dict):
        return (), result
    if not isinstance(result, tuple | list):
        return (result,), {}
    if result and isinstance(result[-1], dict):
        return tuple(result[:-1]), result[-1]
    return tuple(result), {}


def dynamic_axes(texts: Sequence[str]) -> dict[str, dict[int, Any]] | None:
    """`x:0=batch` and `x:0=batch[2..64]` as the `dynamic_axes` argument of `export`."""
    axes: dict[str, dict[int, Any]] = {}
    for text in texts:
        match = re.fullmatch(
            r"(?P<input>.+):(?P<axis>\d+)=(?P<name>[A-Za-z_]\w*)"
            r"(?P<range>\[(?P<least>\d+)?\.\.(?P<most>\d+)?\])?",
            text,
        )
        if match is None:
            raise UsageError(
                f"--dynamic {text!r} is not of the form input:axis=name or"
                " input:axis=name[min..max], as x:0=batch or x:0=batch[2..64]"
            )
        dim: Any = match["name"]
        if match["range"]:
            ends = {"min": match["least"], "max": match["most"]}
            try:
                dim = torch.export.Dim(dim, **{k: int(end) for k, end in ends.items() if end})
            except Exception as error:
                raise UsageError(f"--dynamic {text!r}: {error}") from error
        axes.setdefault(match["input"], {})[int(match["axis"])] = dim
    return axes or None


def names(text: str | None) -> list[str] | None:
    """A list of names separated by commas."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{text!r} has an empty name")
    return parts


def input_names(
    text: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str] | None:
    """Names for the inputs, and for them alone: further ones would rename parameters, which the
    files written here do not list."""
    found = names(text)
    leaves, _ = pytree.flatten((args, kwargs))
    count = sum(map(is_graph_input, leaves))
    if found is not None and len(found) > count:
        raise UsageError(f"--input-names has {len(found)} names, the model has {count} inputs")
    return found


def run_script(path: Path, argv: Sequence[str]) -> None:
    """Run a program as `python path *argv` would, with Sardonyx behind PyTorch's exporter."""
    before = sys.argv, list(sys.path)
    sys.argv = [str(path), *argv]
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with installed():
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before
