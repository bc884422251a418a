"""Programs that write one of two tensors, or give a dict keys in a loop."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.script.programs_flow import COUNTS, ROWS, SIZES, Typed

PAIRS = [(ROWS, -ROWS), (-ROWS, ROWS), (ROWS, ROWS * 2), (-ROWS, -ROWS)]

# -- one of two tensors ---------------------------------------------------------------------------


def chosen_and_written(x, y):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    c += 1
    return a, b, c


def elements_of_chosen(x, y):
    a = x + 0
    b = y + 0
    if a.sum() > 0:
        c = a
    else:
        c = b
    c[0] = 5.0
    c[:, 1] *= 2
    return a, b, c


def view_chosen(x, y):
    a = x + 0
    if y.sum() > 0:
        row = a[0]
    else:
        row = a[1]
    row += 10
    return a, row


def itself_or_another(x, y):
    a = x + 0
    if y.sum() > 0:
        b = a
    else:
        b = a * 2
    b += 1
    return a, b


def the_other_name_written(x, y):
    a = x * 1
    if y.sum() > 0:
        b = a
    else:
        b = x * 2
    a += 1
    return b, a


def chosen_twice(x, y):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    d = a if bool(b.sum() > 0) else b
    c += 1
    d *= 2
    return a, b, c, d


def one_of_three(x, y):
    a = x + 0
    b = y + 0
    c = a - b
    if a.sum() > 0:
        d = a
    elif b.sum() > 0:
        d = b
    else:
        d = c
    d.mul_(3)
    return a, b, c, d


def input_chosen(x, y):
    z = x if bool(y.sum() > 0) else y
    z.add_(1)
    return x * 1, y * 1


def chosen_then_returned_early(x, y):
    a = x + 0
    if y.sum() > 0:
        b = a
    else:
        b = a.clone()
    if x.sum() > 0:
        b += 3
        return a, b
    b -= 1
    return b, a


def chosen_in_a_loop(x, n: int):
    a = x + 0
    b = x * 2
    for i in range(n):
        if i % 2 == 0:
            c = a
        else:
            c = b
        c[0] += i
    return a, b


def back_and_forth(x, n: int):
    a = x + 0
    b = torch.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            source = a
            target = b
        else:
            source = b
            target = a
        target.copy_(source * 2 + i)
    return a, b


def chosen_before_a_loop(x, n: int):
    a = x + 0
    b = x * 2
    c = a if n > 2 else b
    for i in range(n):
        c += i
        a *= 1.5
    return a, b, c


def chosen_and_read_in_the_next_iteration(x, n: int):
    a = x * 1
    if n > 2:
        b = a
    else:
        b = x * 2
    total = torch.zeros(3, 2)
    for _i in range(n):
        total = total + b
        a += 1
    return total


class BufferChosen(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(3, 2))
        self.register_buffer("second", torch.ones(3, 2))

    def forward(self, x, y):
        chosen = self.first if bool(x.sum() > 0) else self.second
        chosen += x
        return self.first * 1, self.second + y, chosen * 2


# -- dicts that gain keys in a loop ---------------------------------------------------------------


def key_made_by_first_iteration(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        if "n" in d:
            d["n"] = d["n"] + x[i]
        else:
            d["n"] = x[i]
    return d["n"] if "n" in d else torch.zeros(2)


def key_set_after_the_loop(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        d["n"] = x[i]
    d["n"] = torch.ones(2)
    return d["n"] + 1


def key_in_nested_loops(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        for j in range(i):
            if "s" in d:
                d["s"] = torch.cat([d["s"], x[j]])
            else:
                d["s"] = x[j] * 10
    return d["s"] if "s" in d else x.sum(0)


CHOSEN: list[Typed] = [
    (chosen_and_written, PAIRS),
    (elements_of_chosen, PAIRS),
    (view_chosen, PAIRS),
    (itself_or_another, PAIRS),
    (the_other_name_written, PAIRS),
    (chosen_twice, PAIRS),
    (one_of_three, PAIRS),
    (input_chosen, PAIRS),
    (chosen_then_returned_early, PAIRS),
    (BufferChosen(), PAIRS),
    (chosen_in_a_loop, COUNTS),
    (back_and_forth, COUNTS),
    (chosen_before_a_loop, COUNTS),
    (chosen_and_read_in_the_next_iteration, COUNTS),
    (key_made_by_first_iteration, SIZES),
    (key_set_after_the_loop, SIZES),
    (key_in_nested_loops, SIZES),
]
