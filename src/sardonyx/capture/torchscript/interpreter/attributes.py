"""Attributes of the modules of a TorchScript program, which it may read and set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.aten.graph import Argument
from sardonyx.capture.flat_model import without_prefix
from sardonyx.capture.quantized.tensor import PackedParameters
from sardonyx.capture.torchscript.errors import ScriptRefusal
from sardonyx.capture.torchscript.types.aliases import copied
from sardonyx.capture.torchscript.types.values import (
    Heap,
    Mutable,
    ScriptDict,
    ScriptInstance,
    ScriptList,
)


@dataclass(frozen=True, slots=True)
class ModuleAt:
    """A module, by its path from the root."""

    path: tuple[str, ...]


class ModuleAttributes:
    def __init__(
        self,
        root: torch.nn.Module,
        heap: Heap,
        parameter: Callable[[str, torch.Tensor], Argument],
    ) -> None:
        self._root = root
        self._heap = heap
        self._parameter = parameter
        self._cells: dict[tuple[str, ...], ScriptInstance] = {}
        """One object for each attribute, so that the heap records its changes."""
        self._before: dict[tuple[str, ...], tuple[Argument, Argument]] = {}
        """The first value of each, and a copy of it."""

    def set(self, path: tuple[str, ...], content: Argument) -> None:
        self.get(path)
        self._heap.set(self._cells[path], {path[-1]: content})

    def get(self, path: tuple[str, ...], class_name: str = "") -> Argument:
        cell = self._cells.get(path)
        if cell is None:
            found: Any = self._root
            for name in path:
                try:
                    found = getattr(found, name)
                except RuntimeError as error:
                    raise ScriptRefusal(
                        f"the attribute {name!r} has the class {class_name}, which Python does not"
                        " know here",
                        "import the module that defines it first",
                    ) from error
            if isinstance(found, torch.ScriptObject):
                owners = [name for name in path if name != "_packed_params"]
                return PackedParameters(without_prefix(".".join(owners)), found)
            if isinstance(found, torch.nn.Module):
                return ModuleAt(path)
            # Its serial stays 0: it is older than any block.
            cell = self._cells[path] = ScriptInstance(".".join(path))
            held = self._held(path, found)
            if class_name and not isinstance(held, Mutable):
                attributes = {k: self._held((*path, k), item) for k, item in vars(found).items()}
                held = ScriptInstance(class_name, attributes)
            self._before[path] = (held, copied(held))
            cell.state = {path[-1]: held}
        return cell.state[path[-1]]

    def _held(self, path: tuple[str, ...], found: Any) -> Argument:
        if isinstance(found, torch.Tensor):
            return self._parameter(".".join(path), found.detach())
        if isinstance(found, (list, tuple)):
            items = tuple(self._held((*path, str(i)), item) for i, item in enumerate(found))
            return ScriptList(items) if isinstance(found, list) else items
        if isinstance(found, dict):
            return ScriptDict({k: self._held((*path, str(k)), item) for k, item in found.items()})
        return found

    def changed(self) -> list[tuple[str, Argument, Argument]]:
        """Attributes of modules that the program changed: the name, the value before and after."""
        found = []
        for path, cell in self._cells.items():
            (before, content), after = self._before[path], cell.state[path[-1]]
            if before is not after or not _holds_the_same(after, content):
                found.append((without_prefix(".".join(path)), before, after))
        return found


def _holds_the_same(one: Argument, other: Argument) -> bool:
    """Of an object and an earlier copy of it."""
    if isinstance(one, Mutable) and isinstance(other, Mutable):
        return _holds_the_same(one.held, other.held)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_holds_the_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_holds_the_same, one, other))
    return one is other
