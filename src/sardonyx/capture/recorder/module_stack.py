"""Which module runs, and in which of its calls, while a model is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from sardonyx.aten.graph import SourceLocation
from sardonyx.aten.location import ModuleNames, Place
from sardonyx.aten.module_tree import named_modules
from sardonyx.capture.side_effects.restore import check_mode


class ModuleCalls:
    """The calls of modules that are running, outermost first: `layers.0.linear@1` is the second
    call of that module."""

    def __init__(self, model: Any) -> None:
        self._names = ModuleNames.of(model)
        self._paths = {id(module): path for path, module in named_modules(model)}
        self._running: list[str] = []
        self._calls: tuple[str, ...] = ()
        self._counts: Counter[str] = Counter()
        self._locations: dict[tuple[Place, tuple[str, ...]], SourceLocation] = {}

    def called(
        self, call: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a call of a module."""
        path = self._paths.get(id(module))
        if path is None:  # one that the model only refers to
            check_mode(module)
            return call(module, *args, **kwargs)
        outer, outer_calls = self._running, self._calls
        count = self._counts[path]
        self._counts[path] += 1
        self._running = [*outer, path]
        self._calls = (*outer_calls, f"{path}@{count}")
        try:
            return call(module, *args, **kwargs)
        finally:
            self._running, self._calls = outer, outer_calls

    def location(self, place: Place) -> SourceLocation:
        key = (place, self._calls)
        found = self._locations.get(key)
        if found is None:
            path = self._running[-1] if self._running else ""
            found = self._locations[key] = self._names.location(path, place, self._calls)
        return found
