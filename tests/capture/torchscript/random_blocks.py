"""What the writers of random programs share: statements in branches and loops."""

from __future__ import annotations

import abc
import importlib.util
import random
from pathlib import Path
from typing import Any


def loaded(source: str, folder: Path, number: int) -> Any:
    """TorchScript reads the source of a function from its file."""
    path = folder / f"program_{number}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


class BlockWriter(abc.ABC):
    few: str
    """How often a loop runs, as a number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = self._random.randint(8, 16)
        """Statements to write."""

    @abc.abstractmethod
    def program(self) -> str: ...

    @abc.abstractmethod
    def _statement(self, counters: tuple[str, ...]) -> list[str]: ...

    @abc.abstractmethod
    def _condition(self, counters: tuple[str, ...]) -> str: ...

    def _one_of(self, *options: str) -> str:
        return self._random.choice(options)

    def _statements(self, indent: int, counters: tuple[str, ...], at_least: int = 1) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randint(at_least, at_least + 2)):
            self._left -= 1
            space = "    " * indent
            if self._left > 0 and indent < 4 and self._random.random() < 0.3:
                lines += self._block(indent, counters)
            else:
                lines += [space + line for line in self._statement(counters)]
        return lines

    def _block(self, indent: int, counters: tuple[str, ...]) -> list[str]:
        space = "    " * indent
        if len(counters) < 2 and self._random.random() < 0.4:
            counter = f"i{len(counters)}"
            count = self._one_of("n", self.few, f"{counters[-1]} + 1" if counters else "n")
            inner = self._statements(indent + 1, (*counters, counter))
            return [f"{space}for {counter} in range({count}):", *inner]
        lines = [f"{space}if {self._condition(counters)}:", *self._statements(indent + 1, counters)]
        if self._random.random() < 0.6:
            lines += [f"{space}else:", *self._statements(indent + 1, counters)]
        return lines
