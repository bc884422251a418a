"""Small TorchScript programs in which names are swapped, chosen by branches, loops and lists, bound
to new tensors and written in place."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

NAMES = ("a", "b", "c", "d")


def loaded(source: str, folder: Path, number: int) -> Any:
    """TorchScript reads the source of a function from its file."""
    path = folder / f"program_{number}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


class AliasWriter:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = self._random.randint(8, 16)
        """Statements to write."""

    def program(self) -> str:
        start = [f"    c = {self._one_of('a', 'x')}", f"    d = {self._one_of('a', 'b', 'x + y')}"]
        body = self._statements(1, ())
        body += ["    for i0 in range(n):", *self._statements(2, ("i0",), at_least=4)]
        return "\n".join(
            [
                "import torch",
                "from torch import Tensor",
                "",
                "",
                "def program(x: Tensor, y: Tensor, n: int):",
                "    a = x.clone()",
                "    b = y.clone()",
                *start,
                "    kept = [x * 3]",
                *body,
                "    return a, b, c, d, x * 1, y * 1, torch.stack(kept)",
                "",
            ]
        )

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
            count = self._one_of("n", "3", f"{counters[-1]} + 1" if counters else "n")
            inner = self._statements(indent + 1, (*counters, counter))
            return [f"{space}for {counter} in range({count}):", *inner]
        lines = [f"{space}if {self._condition(counters)}:", *self._statements(indent + 1, counters)]
        if self._random.random() < 0.6:
            lines += [f"{space}else:", *self._statements(indent + 1, counters)]
        return lines

    def _condition(self, counters: tuple[str, ...]) -> str:
        name, number = self._one_of(*NAMES), self._random.randint(0, 2)
        return self._one_of(
            f"bool({name}.sum() > {number})",
            f"bool({name}[{number}, 0] > 0)",
            f"n > {number}",
            *(f"{counter} % 2 == {number % 2}" for counter in counters),
        )

    def _statement(self, counters: tuple[str, ...]) -> list[str]:
        one, other, third = (self._one_of(*NAMES) for _ in range(3))
        number = self._random.randint(0, 2)
        row = self._one_of(str(number), *(f"{counter} % 3" for counter in counters))
        place = self._one_of("0", "-1", "len(kept) // 2", "n % len(kept)")
        forms = [
            [f"{one} += {number + 1}"],
            [f"{one}.mul_(0.5)"],
            [f"{one}[{row}] = {other}[{number}] + 1"],
            [f"{one}[1:].sub_({other}[:-1].clone())"],
            [f"row = {one}[{row}]", "row += 2"],
            [f"{one} = {other}"],
            [f"{one}, {other} = {other}, {one}"],
            [f"{one} = {other} - {third}"],
            [f"{one} = {other}.clone()"],
            [f"{one} = {other}.view(2, 3).view(3, 2)"],
            [f"{one} = {other} if {self._condition(counters)} else {third}"],
            [f"items = [{one}, {other}, {third}]", f"{third} = items[n % 3]"],
            [f"kept.append({one} * 2)"],
            [f"kept[{place}].add_(1)"],
            [f"kept[{place}] = {one} + 1"],
        ]
        return self._random.choice(forms)
