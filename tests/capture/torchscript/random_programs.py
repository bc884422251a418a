"""Small TorchScript programs, made of choices: nested branches and loops, arithmetic of numbers,
writes in place, views, lists, early returns.

All numbers are multiples of powers of two that float32 holds exactly, so that a program takes the
same branches wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Choose = Callable[[int], int]
"""One of the numbers below the given one."""
MATRICES = ("m0", "m1", "m2")
ROWS = ("v0", "v1")
INTEGERS = ("i0", "i1", "k")
FLOATS = ("f0", "f1")
GROWING = ("g0", "g1")
"""Matrices of at least one row."""
RESULTS = "m0, m1, m2, v0, v1, i0, i1, f0, f1, b0, g0, g1"


class ProgramWriter:
    def __init__(self, choose: Choose, *, with_lists: bool = True) -> None:
        self._choose = choose
        self._lines: list[str] = []
        self._loops = 0
        self._with_lists = with_lists

    def program(self, statements: int = 7) -> str:
        lines = [
            "def program(x: Tensor, n: int, k: int):",
            "    m0 = x.clone()",
            f"    m1 = {self._one_of(['x * 0.5', 'm0', 'x', 'x + 1.0'])}",
            "    m2 = torch.zeros_like(x)",
            f"    v0 = {self._one_of(['x[0] * 1.0', 'm0[0]', 'torch.ones(2)'])}",
            "    v1 = torch.ones(2) * k",
            "    i0 = n",
            "    i1 = 1",
            "    f0 = 0.5",
            "    f1 = float(n)",
            "    b0 = n > 2",
            "    g0 = x[:1] * 1.0",
            f"    g1 = {self._one_of(['x', 'x[-2:]', 'torch.zeros(1, 2)', 'm0[:2]'])}",
        ]
        if self._with_lists:
            lines.append("    l0: List[Tensor] = []")
        self._block(1, statements, in_loop=False)
        lines += self._lines
        lines.append(f"    return {self._result()}")
        return "\n".join(
            ["import torch", "from torch import Tensor", "from typing import List"]
        ) + ("\n\n\n" + "\n".join(lines) + "\n")

    def _result(self) -> str:
        return RESULTS + (", len(l0)" if self._with_lists else "")

    def _one_of(self, options: Sequence[str]) -> str:
        return options[self._choose(len(options))]

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _block(self, depth: int, statements: int, *, in_loop: bool) -> None:
        for _ in range(1 + self._choose(statements)):
            self._statement(depth, in_loop)

    def _statement(self, depth: int, in_loop: bool) -> None:
        kind = self._choose(18)
        if kind < 2 and depth < 4:
            self._if(depth, in_loop)
        elif kind < 4 and depth < 4:
            self._loop(depth)
        elif kind == 4 and depth > 1 and in_loop:
            self._line(depth, f"if {self._condition()}:")
            self._line(depth + 1, self._one_of(["break", "continue"]))
        elif kind == 5 and depth > 1:
            self._line(depth, f"if {self._condition()}:")
            self._line(depth + 1, f"return {self._result()}")
        elif kind < 10:
            self._line(depth, self._write())
        elif kind == 10 and self._with_lists:
            self._list(depth)
        elif kind > 15:
            self._line(depth, self._growth())
        else:
            self._line(depth, self._assignment())

    def _if(self, depth: int, in_loop: bool) -> None:
        self._line(depth, f"if {self._condition()}:")
        self._block(depth + 1, 3, in_loop=in_loop)
        if self._choose(2):
            self._line(depth, "else:")
            self._block(depth + 1, 3, in_loop=in_loop)

    def _loop(self, depth: int) -> None:
        self._loops += 1
        counter = f"c{self._loops}"
        kind = self._choose(3)
        if kind == 0:
            self._line(depth, f"for {counter} in range({self._count()}):")
        elif kind == 1:
            self._line(depth, f"{counter} = 0")
            self._line(depth, f"while {counter} < 4 and {self._condition()}:")
            self._line(depth + 1, f"{counter} += 1")
        else:
            self._line(depth, f"for {counter} in range({self._count()}):")
            self._line(depth + 1, f"i0 = {counter} - {self._integer()}")
        self._block(depth + 1, 3, in_loop=True)

    def _count(self) -> str:
        return self._one_of(["n", "3", "x.size(0)", "i1 % 4", "k", "2"])

    def _integer(self) -> str:
        return self._one_of(["i0", "i1", "k", "n", "1", "2", "x.size(0)"])

    def _float(self) -> str:
        return self._one_of(["f0", "f1", "0.5", "float(i0)", "float(v0[0])", "2.0"])

    def _condition(self) -> str:
        kind = self._choose(6)
        if kind == 0:
            return f"{self._integer()} {self._one_of(['<', '==', '>='])} {self._integer()}"
        if kind == 1:
            return f"{self._float()} > {self._float()}"
        if kind == 2:
            return f"bool({self._matrix()}.sum() > {self._float()})"
        if kind == 3:
            return f"(b0 {self._one_of(['and', 'or'])} {self._integer()} > {self._integer()})"
        if kind == 4:
            return f"not bool({self._row()}[0] < {self._float()})"
        return "b0"

    def _index(self) -> str:
        return f"{self._one_of(['i0', 'i1', 'k', '2', 'n'])} % x.size(0)"

    def _matrix(self) -> str:
        return self._one_of([*MATRICES, "x"])

    def _row(self) -> str:
        return self._one_of([*ROWS, f"{self._one_of(MATRICES)}[{self._index()}]"])

    def _matrix_value(self) -> str:
        left, right = self._matrix(), self._matrix()
        return self._one_of(
            [
                f"torch.clamp({left} + {right}, -8.0, 8.0)",
                f"{left} * 0.5",
                f"{left} - {self._row()}",
                f"torch.maximum({left}, {right})",
                f"torch.where({left} > {self._float()}, {left}, {right})",
                f"{left}.flip(0)",
                f"{left}.clone()",
                left,
                f"{left}.view(-1, 2)",
            ]
        )

    def _row_value(self) -> str:
        left = self._row()
        return self._one_of(
            [
                f"{left} + 1.0",
                f"-{left}",
                f"torch.clamp({self._matrix()}.sum(0), -8.0, 8.0)",
                f"{left} * {self._one_of(['0.5', '2.0'])} - {self._row()}",
                f"{left}.clone()",
                left,
            ]
        )

    def _assignment(self) -> str:
        kind = self._choose(5)
        if kind == 0:
            return f"{self._one_of(MATRICES)} = {self._matrix_value()}"
        if kind == 1:
            return f"{self._one_of(ROWS)} = {self._row_value()}"
        if kind == 2:
            left, right = self._integer(), self._integer()
            made = self._one_of(
                [
                    f"({left} + {right}) % 7",
                    f"{left} - {right}",
                    f"({left} * 3 + {right}) // 2 % 5",
                    f"max({left}, {right})",
                    f"int({self._row()}[1]) % 5",
                    f"{left} if {self._condition()} else {right}",
                ]
            )
            return f"{self._one_of(['i0', 'i1'])} = {made}"
        if kind == 3:
            made = self._one_of(
                [f"{self._float()} * 0.5 - 1.0", f"min({self._float()}, 4.0)", "float(i0 % 3)"]
            )
            return f"{self._one_of(FLOATS)} = {made}"
        return f"b0 = {self._condition()}"

    def _growth(self) -> str:
        name, left, right = (self._one_of(GROWING) for _ in range(3))
        made = self._one_of(
            [
                f"torch.cat([{left}, {self._row()}.unsqueeze(0)])[-5:]",
                f"torch.cat([{left}, {right}[:2]])[-5:]",
                f"{left}[{self._one_of(['-2:', ': 1 + i1 % 3', ':1', '-1:'])}]",
                f"{left}[:1] - {right}",
                f"torch.maximum({left}, {right}[-1:])",
                f"{left} * 0.5 + {self._row()}",
                f"{left}[:1] if {self._condition()} else {right}",
                f"{left}.reshape(-1).flip(0).reshape(-1, 2)",
                f"torch.zeros({left}.size(0), 2) + {right}[0]",
                left,
            ]
        )
        kind = self._choose(6)
        if kind == 0:
            return f"{name}[{self._one_of(['0', '-1', ':1', '-1:'])}] = {self._row()}"
        if kind == 1:
            return f"i1 = {name}.size(0)"
        if kind == 2:
            return f"v0 = torch.clamp({name}.sum(0), -8.0, 8.0)"
        return f"{name} = {made}"

    def _write(self) -> str:
        kind = self._choose(10)
        matrix, row = self._one_of(MATRICES), self._one_of(ROWS)
        if kind == 0:
            return f"{matrix} += {self._one_of([self._row(), '1.0', 'i0', self._float()])}"
        if kind == 1:
            return f"{matrix}[{self._index()}] = {self._one_of([self._row(), self._float()])}"
        if kind == 2:
            return f"{matrix}[{self._index()}] -= {self._row()}"
        if kind == 3:
            return f"{matrix}[:, {self._choose(2)}] = {self._float()}"
        if kind == 4:
            return f"{matrix}[{self._one_of(['1:', ':1', ':i1', '-2:'])}] += {self._row()}"
        if kind == 5:
            return f"{row}.{self._one_of(['mul_(0.5)', 'add_(1.0)', 'neg_()', 'zero_()'])}"
        if kind == 6:
            return f"{row}[{self._choose(2)}] = {self._float()}"
        if kind == 7:
            return f"{matrix}.copy_({self._one_of([self._matrix(), self._row()])})"
        if kind == 8:
            return f"{matrix}.t()[{self._choose(2)}] *= 0.5"
        return f"{matrix}[{matrix} > {self._float()}] = {self._one_of(['0.0', '-1.0'])}"

    def _list(self, depth: int) -> None:
        kind = self._choose(3)
        if kind == 0:
            self._line(depth, f"l0.append({self._row_value()})")
            return
        self._line(depth, "if len(l0) > 0:")
        if kind == 1:
            self._line(depth + 1, f"v0 = l0[{self._one_of(['0', '-1', 'i0 % len(l0)'])}] * 0.5")
        else:
            self._line(depth + 1, "v1 = torch.clamp(torch.stack(l0).sum(0), -8.0, 8.0)")
