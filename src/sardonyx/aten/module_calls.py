"""The module calls that a recorded node was made in, and the classes of the modules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from typing import Any

import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.aten.module_tree import named_modules

_SCRIPTED_CALL = re.compile(r"([^.()]+)\(([^()]*)\)")
_CONTROL_FLOW = {"prim::If": 1, "prim::Loop": 2}
"""With the number of inputs that decide what runs."""
_MODEL_ITSELF = ("",)
_NO_MODULE = ("SELF", "UNKNOWN_INSTANCE", "TOP")


@dataclass(frozen=True, slots=True)
class ModuleClass:
    """A class of modules by where it is defined: `torch.nn.modules.linear`, `Linear`."""

    package: str
    name: str

    @classmethod
    def of(cls, kind: type) -> ModuleClass:
        return cls(kind.__module__, kind.__name__)

    @classmethod
    def from_text(cls, text: str) -> ModuleClass:
        """`torch.nn.modules.linear.Linear`, `my_model.build.<locals>.Block`."""
        package, _, name = text.rpartition(".")
        if "<locals>" in package:
            package = package.partition(".<locals>")[0].rpartition(".")[0]
        return cls(package or "__main__", name)


def module_classes(model: Any) -> dict[str, ModuleClass]:
    """By module path; "" is the model itself."""
    if isinstance(model, ExportedProgram):
        found = _torch_private.qualified_module_classes(model)
        return {path: ModuleClass.from_text(text) for path, text in found.items()}
    return {path: _class_of(module) for path, module in named_modules(model, each_once=False)}


def _class_of(module: torch.nn.Module) -> ModuleClass:
    if isinstance(module, torch.jit.ScriptModule):
        return ModuleClass.from_text(_torch_private.scripted_class(module))
    return ModuleClass.of(type(module))


class RunningCalls:
    """The module and the calls of each TorchScript node, queried in program order."""

    def __init__(self, class_names: Mapping[str, str]) -> None:
        self._class_names = class_names
        self._paths: dict[str, tuple[str, ...]] = {}
        self._producers: dict[str, tuple[str, ...]] = {}
        self._last: list[tuple[str, str]] = []
        self._counts: dict[str, int] = {}

    def of(self, node: Any) -> tuple[str, tuple[str, ...]]:
        paths = self._paths_of(node)
        if node.kind() == "prim::Constant":  # TorchScript moves them all to the beginning
            return paths[-1], ()
        return paths[-1], self._numbered(paths)

    def _paths_of(self, node: Any) -> tuple[str, ...]:
        hierarchy = node.getModuleHierarchy()
        paths = self._paths.get(hierarchy)
        if paths is None:
            paths = self._paths[hierarchy] = self._scripted_paths(hierarchy)
        return self._paths_around(node) if paths == _MODEL_ITSELF else paths

    def _paths_around(self, node: Any) -> tuple[str, ...]:
        """TorchScript loses the module of a branch that may raise or return: it is that of the
        condition, for the nodes inside the branch too."""
        if node.kind() in _CONTROL_FLOW:
            deciding = list(node.inputs())[: _CONTROL_FLOW[node.kind()]]
            computed = [
                v for v in deciding if v.node().kind() not in ("prim::Constant", "prim::Param")
            ]
            if computed:
                return reduce(common_start, map(self._paths_of_producer, computed))
        owner = node.owningBlock().owningNode()
        if owner is None or owner.kind() not in _CONTROL_FLOW:
            return _MODEL_ITSELF
        return self._paths_of(owner)

    def _paths_of_producer(self, value: Any) -> tuple[str, ...]:
        name = value.debugName()
        if name not in self._producers:
            self._producers[name] = self._paths_of(value.node())
        return self._producers[name]

    def _numbered(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Calls that continue from the node before keep their number."""
        shared = common_start(paths, tuple(path for path, _ in self._last))
        running = self._last[: len(shared)]
        for path in paths[len(running) :]:
            self._counts[path] = self._counts.get(path, -1) + 1
            running.append((path, f"{path}@{self._counts[path]}"))
        self._last = running
        return tuple(call for _, call in running)

    def _scripted_paths(self, hierarchy: str) -> tuple[str, ...]:
        """TorchScript has `0(Block).linear(Linear)`: the last name of each module's path."""
        paths = [""]
        for name, class_name in _SCRIPTED_CALL.findall(hierarchy):
            if name not in _NO_MODULE:
                paths.append(self._path_of(name, class_name, paths[-1]))
        return tuple(paths)

    def _path_of(self, name: str, class_name: str, caller: str) -> str:
        start = f"{caller}." if caller else ""
        direct = start + name
        if direct in self._class_names:
            return direct
        nested = [
            path
            for path, kind in self._class_names.items()
            if path.startswith(start) and path.endswith(f".{name}") and kind == class_name
        ]
        return min(nested, key=lambda path: path.count("."), default=direct)


def common_start(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The calls that two nodes share."""
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(call for call, _ in shared)
