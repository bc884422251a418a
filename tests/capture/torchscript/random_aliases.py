"""Small TorchScript programs in which names are swapped, chosen by branches, loops and lists, bound
to new tensors and written in place."""

from __future__ import annotations

from tests.capture.torchscript.random_blocks import BlockWriter

NAMES = ("a", "b", "c", "d")


class AliasWriter(BlockWriter):
    few = "3"

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
