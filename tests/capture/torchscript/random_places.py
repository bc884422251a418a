"""Small TorchScript programs in which names are bound to rows and parts of tensors, at places that
branches and loops compute, and written in place."""

from __future__ import annotations

from tests.capture.torchscript.random_blocks import BlockWriter

TABLES = ("a", "b", "c", "d")
ROWS = ("r", "s", "t")


class PlaceWriter(BlockWriter):
    few = "2"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._lists = self._random.randint(0, 2)
        """Whether there is a list of rows, and whether it starts with one."""

    def program(self) -> str:
        start = [f"    {name} = {self._one_of('a', 'b', 'x', 'a[1:]')}" for name in TABLES[2:]]
        start += [f"    {name} = {self._one_of('a', 'b', 'c', 'd')}[1]" for name in ROWS]
        body = self._statements(1, ())
        body += ["    for i0 in range(n):", *self._statements(2, ("i0",), at_least=3)]
        body += self._statements(1, ())
        return "\n".join(
            [
                "from typing import List",
                "",
                "import torch",
                "from torch import Tensor",
                "",
                "",
                "def program(x: Tensor, y: Tensor, n: int):",
                "    a = x.clone()",
                "    b = torch.cat([x, y])",
                *start,
                *(
                    ["    kept = [x[0]]" if self._lists == 1 else "    kept: List[Tensor] = []"]
                    if self._lists
                    else []
                ),
                *body,
                "    return a, b, c, d, r, s, t, x * 1, y * 1"
                + (", torch.stack(kept + [x[0]])" if self._lists else ""),
                "",
            ]
        )

    def _condition(self, counters: tuple[str, ...]) -> str:
        number = self._random.randint(0, 2)
        return self._one_of(
            f"bool({self._one_of(*TABLES, *ROWS)}.sum() > {number})",
            f"n > {number}",
            *(f"{counter} % 2 == {number % 2}" for counter in counters),
        )

    def _index(self, counters: tuple[str, ...]) -> str:
        return self._one_of(
            str(self._random.randint(0, 4)),
            "n",
            f"int({self._one_of(*ROWS)}.argmax())",
            f"int({self._one_of(*TABLES)}[:, 0].argmax())",
            *(f"{counter} * {self._random.randint(1, 3)}" for counter in counters),
        )

    def _statement(self, counters: tuple[str, ...]) -> list[str]:
        one, other = (self._one_of(*TABLES) for _ in range(2))
        row, next_row = (self._one_of(*ROWS) for _ in range(2))
        at = f"({self._index(counters)}) % {other}.size(0)"
        number = self._random.randint(1, 3)
        many = f"if {other}.size(0) > 2:"
        forms = [
            [f"{one} += {number}"],
            [f"{one}.mul_(0.5)"],
            [f"{row} += {number}"],
            [f"{row} += {number}"],
            [f"{row}[{number % 2}] = {number}.5"],
            [f"{one}[-1] = {row} * 2"],
            [f"{one}[:, 0] -= {number}"],
            [f"{row} = {other}[{at}]"],
            [f"{row} = {other}[{at}]"],
            [f"{row} = {other}[{at}]", f"{row} += {number}"],
            [f"{row} = {next_row}"],
            [f"{row} = {next_row} * 2"],
            [f"{row} = {other}[{at}] if {self._condition(counters)} else {next_row}"],
            [f"{one} = {other}"],
            [f"{one} = {other} - {number}"],
            [many, f"    {one} = {other}[1:]"],
            [many, f"    {one} = {other}[:-1]"],
            [many, f"    {one} = {other}[::2]"],
            [f"{one} = {other}[{at} :]"],
            [f"{one} = {other}.flip(0)"],
            [f"{one} = {other}.t().transpose(0, 1)"],
            [f"{one} = {other}.contiguous()"],
            [f"{one} = {other}.t().clone().t()"],
            [f"flat = {other}.reshape(-1)", f"flat[-1] += {number}"],
            [f"flat = {other}.t().flatten()", f"flat[0] = {number}.5"],
        ]
        if self._lists:
            item = f"kept[({self._index(counters)}) % len(kept)]"
            forms += [
                [f"kept.append({row})"],
                [f"kept.append({row})"],
                [f"kept.append({other}[{at}])"],
                [f"kept.append({row} * 2)"],
                ["if len(kept) > 0:", f"    {item} += {number}"],
                ["if len(kept) > 0:", f"    {row} = {item}"],
                ["for each in kept:", f"    each.sub_({number})"],
            ]
        return self._random.choice(forms)
