"""Programs of which a part is read more than once, and programs that leave a value out."""

from __future__ import annotations

import torch
from torch import Tensor

SIGNS = [(torch.ones(3, 2),), (-torch.ones(3, 2),), (torch.ones(0, 2),), (torch.ones(1, 2),)]
SIZED = [
    (torch.arange(2.0 * size).reshape(size, 2) + 1, count)
    for size in (3, 0, 1, 2, 7)
    for count in (1, 0, 3)
]

# -- an `if` whose condition is known, with one inside that leaves two types ----------------------


class WritesOnce(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flag = True

    def forward(self, x):
        y = x * 1
        d: dict[str, Tensor] = {}
        if self.flag:
            y += 1
            if float(x.sum()) > 0:
                d["extra"] = x
        if "extra" in d:
            return y + d["extra"]
        return y


class WritesBufferOnce(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.flag = True

    def forward(self, x):
        d: dict[str, Tensor] = {}
        if self.flag:
            self.seen += 1
            if float(x.sum()) > 0:
                d["extra"] = x
        if "extra" in d:
            return self.seen + d["extra"].sum(0)
        return self.seen * 1


class CountsOnce(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flag = True
        self.calls = 0

    def forward(self, x):
        kept: list[Tensor] = []
        y = x
        if self.flag:
            self.calls += 1
            kept.append(x)
            if float(x.sum()) > 0:
                y = x.sum(0)
        return y.sum() + len(kept) * 10 + self.calls


def appended_once(x):
    kept: list[Tensor] = []
    d: dict[str, Tensor] = {}
    if len(d) == 0:
        kept.append(x)
        if float(x.sum()) > 0:
            d["extra"] = x * 2
    if "extra" in d:
        kept.append(d["extra"])
    return torch.cat(kept)


def nested_known_conditions(x):
    kept: list[int] = []
    y = x
    if len(kept) == 0:
        kept.append(1)
        if len(kept) == 1:
            kept.append(2)
            if x.size(0) > 1:
                y = x.sum(0)
            kept.append(3)
        kept.append(4)
    return y.sum() + len(kept)


@torch.jit.script
class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1


def object_changed_once(x):
    counter = Counter()
    d: dict[str, int] = {}
    if counter.count == 0:
        counter.add()
        if float(x.sum()) > 0:
            d["a"] = 1
    if "a" in d:
        return x + counter.count
    return x - counter.count


KNOWN_CONDITIONS = [
    (program, SIGNS)
    for program in (
        WritesOnce(),
        WritesBufferOnce(),
        CountsOnce(),
        appended_once,
        nested_known_conditions,
        object_changed_once,
    )
]

# -- values that may be left out ------------------------------------------------------------------


def optional_of_a_dynamic_size(x, n: int):
    y = x * 1.0 + 1.0
    found: Tensor | None = None
    if n > 2:
        found = y
    z = torch.zeros(2)
    if found is not None:
        z = z + found.sum(0)
    return z


def optional_set_in_a_loop(x, n: int):
    y = x * 1.0
    found: Tensor | None = None
    for _ in range(n):
        found = y
    z = torch.zeros(2)
    if found is not None:
        z = z + found.sum(0)
    y = y.flip(0)
    y = torch.cat([y, x])
    return y, z


def optional_list_of_numbers(x, n: int):
    found: list[int] | None = None
    if n > 2:
        found = [i * 2 for i in range(x.size(0))]
    y = torch.arange(x.size(0)) * 3
    z = torch.flip(y, [0])
    if found is not None:
        z = z + torch.tensor(found, dtype=torch.int64)
    return y, z


def size_below_zero_where_absent(x, n: int):
    found: Tensor | None = None
    if x.size(0) >= 3:
        found = torch.zeros(x.size(0) - 3, 2) + n
    z = torch.zeros(2)
    if found is not None:
        z = z + found.sum(0)
    return z


def size_divided_by_zero_where_absent(x, n: int):
    found: Tensor | None = None
    if x.size(0) >= 1:
        found = torch.zeros(12 // x.size(0), 2) + n
    z = torch.zeros(2)
    if found is not None:
        z = z + found.sum(0)
    return z


def number_below_zero_where_absent(x, n: int):
    found: Tensor | None = None
    if n > 2:
        found = torch.zeros(n - 2, 2) + x.sum()
    z = torch.zeros(2)
    if found is not None:
        z = z + found.sum(0)
    return z


ABSENT_VALUES = [
    (program, SIZED)
    for program in (
        optional_of_a_dynamic_size,
        optional_set_in_a_loop,
        optional_list_of_numbers,
        size_below_zero_where_absent,
        size_divided_by_zero_where_absent,
        number_below_zero_where_absent,
    )
]

# -- entries that an earlier iteration sets -------------------------------------------------------


def known_count(x, n: int):
    d: dict[str, Tensor] = {}
    for i in range(3):
        if i == 0:
            d["a"] = x * n
        else:
            d["a"] = d["a"] + x
    return d["a"]


EARLIER_ENTRIES = [(program, SIZED) for program in (known_count,)]
