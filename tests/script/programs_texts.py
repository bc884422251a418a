"""Programs with strings that are known at run time: made of numbers, or held by lists and dicts."""

from __future__ import annotations

import torch
from torch import Tensor

torch.manual_seed(0)
COUNTED = [(torch.randn(4, 3), count) for count in (2, 0, 1, 7)]
SIGNED = [(torch.randn(4, 3), number) for number in (2, -2, 0, 12, -1)]


def entry_of_a_number(x, n: int):
    entries = {"0": x, "1": x * 2, "2": x + 1}
    total = x.sum()
    for i in range(n):
        total = total + entries[str(i % 3)].sum()
    return total


def entry_of_a_known_number(x, n: int):
    entries = {"0": x, "1": x * 2, "2": x + 1}
    total = x.sum()
    for i in range(3):
        total = total + entries[str(i)].sum() * n
    return total


def entry_of_a_format(x, n: int):
    entries = {"layer0.weight": x, "layer1.weight": x * 2, "other": x * 3}
    total = x.sum()
    for i in range(n):
        total = total + entries["layer{}.weight".format(i % 2)].sum()  # noqa: UP032
    return total


def entry_of_a_formatted_string(x, n: int):
    entries = {"layer0": x, "layer1": x * 2}
    total = x.sum()
    for i in range(n):
        total = total + entries[f"layer{i % 2}"].sum()
    return total


def entry_of_a_percent_format(x, n: int):
    entries = {"layer0": x, "layer1": x * 2}
    total = x.sum()
    for i in range(n):
        total = total + entries["layer%d" % (i % 2)].sum()  # noqa: UP031
    return total


def entry_of_a_sum(x, n: int):
    entries = {"layer0": x, "layer1": x * 2}
    total = x.sum()
    for i in range(n):
        total = total + entries["layer" + str(i % 2)].sum()
    return total


def entries_set(x, n: int):
    entries: dict[str, Tensor] = {}
    for i in range(n):
        entries[str(i)] = x * i
    total = x.sum()
    for i in range(n):
        total = total + entries[str(i)].sum()
    return total, len(entries)


def entries_set_again(x, n: int):
    entries = {"row0": x, "row1": x + 1}
    for i in range(n):
        entries["row" + str(i % 3)] = x * i
    total = x.sum()
    if "row2" in entries:
        total = total + entries["row2"].sum()
    return total, entries["row0"], len(entries)


def keys_of_entries(x, n: int):
    entries: dict[str, Tensor] = {}
    for i in range(n):
        entries["k" + str(i)] = x * i
    total = x.sum()
    found = 0
    for key in entries.keys():  # noqa: SIM118
        if key == "k3":
            found += 1
        total = total + entries[key].sum()
    return total, found


def items_of_entries(x, n: int):
    entries: dict[str, Tensor] = {}
    for i in range(n):
        entries[str(i)] = x * i
    total = x
    for key, entry in entries.items():
        if key != "1":
            total = total + entry
    return total


def is_a_key(x, n: int):
    entries = {"0": x, "1": x * 2, "-2": x * 3}
    if str(n) in entries:
        return entries[str(n)]
    return x - 1


def names_of_two(x, n: int):
    names: list[str] = []
    for i in range(n):
        names.append("even" if i % 2 == 0 else "odd")
    count = 0
    for name in names:
        if name == "even":
            count += 1
    return x * count, len(names), names.count("odd")


def names_with_numbers(x, n: int):
    names: list[str] = []
    for i in range(n):
        names.append("n" + str(i))
    count = 0
    for name in names:
        if name == "n3":
            count += 1
    return x * count, "n1" in names, "n" in names, "n01" in names


def last_name(x, n: int):
    names: list[str] = ["a"]
    for _i in range(n):
        names.append("b")
    if names[-1] == "b":
        return x * 2
    return x


def place_of_a_name(x, n: int):
    names: list[str] = ["x"]
    for i in range(n + 1):
        names.append(str(i))
    return x * names.index(str(n))


def name_of_a_branch(x, n: int):
    name = "none"
    if n > 1:
        name = "n" + str(n)
    total = x.sum()
    for i in range(n):
        if name == "n" + str(i + 1):
            total = total + i
    return total, name == "none"


def name_that_a_loop_carries(x, n: int):
    name = ""
    for i in range(n):
        name = "step" + str(i)
    if name == "step6":
        return x * 2
    return x


def names_compared(x, n: int):
    count = 0
    for i in range(n):
        for j in range(n):
            if str(i) == str(j):
                count += 1
            if str(i) != "n" + str(j):
                count += 10
    return x * count


def negative_numbers(x, n: int):
    if "n" + str(n) == "n-2":
        return x * 2
    if "n-" + str(n) == "n--1":
        return x * 3
    if f"{n}" == "12":
        return x * 4
    return x


def names_in_tuples(x, n: int):
    rows: list[tuple[str, Tensor]] = []
    for i in range(n):
        rows.append(("a" if i < 2 else "b", x * i))
    total = x.sum()
    for name, row in rows:
        if name == "b":
            total = total + row.sum()
    return total


PROGRAMS = [
    (program, inputs)
    for inputs, programs in (
        (
            COUNTED,
            (
                entry_of_a_number,
                entry_of_a_known_number,
                entry_of_a_format,
                entry_of_a_formatted_string,
                entry_of_a_percent_format,
                entry_of_a_sum,
                entries_set,
                entries_set_again,
                keys_of_entries,
                items_of_entries,
                names_of_two,
                names_with_numbers,
                last_name,
                place_of_a_name,
                name_of_a_branch,
                name_that_a_loop_carries,
                names_compared,
                names_in_tuples,
            ),
        ),
        (SIGNED, (is_a_key, negative_numbers)),
    )
    for program in programs
]
