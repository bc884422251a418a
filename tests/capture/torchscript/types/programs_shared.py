# ruff: noqa: UP006, UP035, UP045, RUF005
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Scripted programs in which two variables hold one list, dict or object, and numbers are read
from tensors that are written afterwards."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.capture.torchscript.types.programs_numbers import matrix

COUNTS = [(matrix(3, 2), 1), (matrix(3, 2), 0), (matrix(3, 2), 2), (matrix(3, 2), 5)]
SIGNS = [(matrix(3, 2),), (matrix(3, 2) + 9,), (matrix(3, 2) * 0,), (matrix(3, 2) - 9,)]


def tensor_of_a_number_written(n: int):
    t = torch.tensor(n)
    t += 1
    return t, n


def number_of_an_element_written(x: Tensor):
    n = x[0].item()
    x[0] = 100
    return x, n


def number_before_and_after_a_write(x: Tensor):
    before = int(x.sum())
    x += 1
    return before, int(x.sum())


def tensor_of_a_list_written(x: Tensor):
    items: List[int] = x.long().tolist()
    t = torch.tensor(items)
    t[0] = 7
    return t, torch.tensor(items)


def tensor_counter(x: Tensor, n: int):
    count = torch.tensor(5)
    for i in range(n):
        count += i
    return count, int(count) * 2


def number_of_a_small_float(x: Tensor):
    number = float(torch.tensor(0.1))
    return number == 0.1, number * 1e8 - 1e7, int(torch.tensor(16777217.0))


def number_of_a_small_integer(x: Tensor):
    wrapped = torch.tensor(200, dtype=torch.uint8) + 100
    return int(wrapped), int(torch.tensor(100, dtype=torch.int8) * 2)


def sizes_changed(x: Tensor):
    shape = x.size()
    shape[0] = 7
    return x.size(0), shape[0]


def tensor_in_a_dict_written(x: Tensor):
    found: Dict[str, Tensor] = {"a": x}
    y = found["a"]
    y += 1
    found["b"] = found["a"] * 2
    return x, found


def row_in_a_dict_written(x: Tensor):
    row = x[0]
    found = {"row": row}
    found["row"].add_(5)
    row.mul_(2)
    return x, found["row"]


def dict_of_two_names_in_a_loop(x: Tensor, n: int):
    one = {"a": x, "b": x * 2}
    other = one
    for i in range(n):
        if i % 2 == 0:
            one["a"] += 1
        else:
            other["b"] = other["b"] + one["a"]
    return one, other["a"]


def changed_then_chosen(x: Tensor):
    one = {"a": x}
    other = {"a": x * 2}
    if x.sum() > 0:
        one["a"] = x + 5
        chosen = one
    else:
        chosen = other
    return chosen["a"]


def lists_of_branches(x: Tensor):
    if x.sum() > 0:
        items = [x]
        items.append(x + 1)
    else:
        items = [x * 2]
        items.append(x * 3)
        items[0] = x - 7
    return items[0] + items[1]


def list_in_a_tuple(x: Tensor):
    items = [x, x]
    if x.sum() > 0:
        items[0] = x + 5
        pair = (items, 1)
    else:
        items[1] = x + 6
        pair = (items, 2)
    return pair[0][0] + pair[0][1] * pair[1], items[0]


def list_in_a_dict(x: Tensor):
    found: Dict[str, List[Tensor]] = {"items": [x]}
    if x.sum() > 0:
        found["items"].append(x * 2)
    else:
        found["items"].append(x * 3)
        found["items"][0] = x * 9
    return found["items"][0] + found["items"][1]


def list_in_a_dict_in_a_loop(x: Tensor, n: int):
    items = [x]
    found = {"items": items}
    last = {"n": x}
    for i in range(n):
        last["n"] = last["n"] + 1
        found["items"].append(x * i)
    return torch.stack(items), last["n"]


@torch.jit.script
class Log:
    def __init__(self, items: List[Tensor]) -> None:
        self.items = items
        self.total = items[0]
        self.count = 0

    def put(self, item: Tensor) -> None:
        self.count += 1
        self.total = self.total + item
        self.items.append(item)


def object_of_either_branch(x: Tensor):
    one = Log([x])
    other = Log([x * 2])
    if x.sum() > 0:
        one.put(x)
        chosen = one
    else:
        other.put(x * 5)
        chosen = other
    return chosen.total, len(chosen.items), one.total, other.total


def list_of_an_object_in_a_loop(x: Tensor, n: int):
    items = [x]
    log = Log(items)
    for i in range(n):
        log.put(x * i)
    return torch.stack(items), log.count, len(log.items), log.total


def list_of_an_object_in_a_branch(x: Tensor):
    items = [x]
    log = Log(items)
    if x.sum() > 0:
        log.put(x * 2)
    else:
        log.put(x * 3)
        items[0] = x + 1
    return torch.stack(items), log.count, len(log.items), log.items[0]


def dict_made_anew_in_a_loop(x: Tensor, n: int):
    one = {"a": x}
    first = one
    for _ in range(n):
        one = {"a": first["a"] * 2}
    return one["a"], first["a"]


def dict_made_anew_in_a_branch(x: Tensor):
    found = {"a": x}
    if x.sum() > 0:
        found = {"a": x * 2}
    found["a"] = found["a"] + 1
    return found["a"]


def keys_of_a_branch(x: Tensor):
    found: Dict[str, Tensor] = {}
    if x.sum() > 0:
        found["more"] = x
    else:
        found["less"] = -x
        found["more"] = x * 0
    if "less" in found:
        return found["less"] + found["more"]
    return found["more"]


def keys_taken_in_a_branch(x: Tensor):
    found = {"a": x}
    if x.sum() > 0:
        taken = found.pop("a")
    else:
        taken = found["a"] * 2
        found.clear()
    found["z"] = taken
    return found


def optional_dict(x: Tensor):
    found: Optional[Dict[str, Tensor]] = None
    if x.sum() > 0:
        found = {"k": x}
        found["j"] = x * 2
    if found is not None:
        x = x + found["j"]
    return x


def optional_tuple_in_a_loop(x: Tensor, n: int):
    last: Optional[Tuple[Tensor, int]] = None
    for i in range(n):
        if last is not None:
            x = x + last[0] * last[1]
        last = (x * 0.5, i)
    if last is None:
        return x
    return last[0]


def appended_or_made_anew(x: Tensor, n: int):
    items: List[Tensor] = []
    for i in range(n):
        if i % 2 == 0:
            items = items + [x]
        else:
            items.append(x * i)
    return len(items), torch.stack(items + [x]).sum(0)


def dicts_in_a_list(x: Tensor):
    dicts: List[Dict[str, Tensor]] = [{"a": x}, {"a": x * 2}]
    dicts.append({"a": x + 1})
    total = torch.zeros_like(x)
    for each in dicts:
        total = total + each["a"]
        each["a"] = total
    return total, dicts


def fills(x: Tensor, found: Dict[str, Tensor]) -> None:
    found["out"] = x * 3


def dict_filled_by_a_function(x: Tensor):
    found: Dict[str, Tensor] = {}
    fills(x, found)
    return found["out"]


def early_results(x: Tensor, n: int) -> Tuple[Tensor, int]:
    if n == 0:
        return x, 0
    if n == 1:
        return x * 2, n + 10
    for i in range(n):
        if i == 3:
            return x + i, i
    return x - 1, -n


def forked_twice(x: Tensor, n: int):
    one = torch.jit.fork(early_results, x, n)
    other = torch.jit.fork(early_results, x, n + 1)
    a, b = torch.jit.wait(one)
    c, d = torch.jit.wait(other)
    return a + c, b + d


@torch.jit.script
class Settings:
    def __init__(self, count: int, rate: float) -> None:
        self.count = count
        self.rate = rate

    def twice(self) -> int:
        return self.count * 2


class HoldsAnObject(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings(3, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.settings.twice() + self.settings.rate


class HoldsContainers(nn.Module):
    cache: Dict[str, Tensor]
    sizes: List[int]

    def __init__(self) -> None:
        super().__init__()
        self.inner = HoldsAnObject()
        self.linear = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
        self.cache = {}
        self.sizes = []

    def forward(self, x: Tensor) -> Tensor:
        self.cache["x"] = x
        self.sizes.append(x.size(0))
        y = self.inner(self.linear(x)) + self.cache["x"]
        return y + self.sizes[-1] + len(self.sizes)


CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (tensor_of_a_number_written, [(3,), (0,), (-2,)]),
    (number_of_an_element_written, [(matrix(3),), (matrix(4),), (matrix(2),)]),
    (number_before_and_after_a_write, SIGNS),
    (tensor_of_a_list_written, [(matrix(3),), (matrix(4),), (matrix(1),)]),
    (tensor_counter, COUNTS),
    (number_of_a_small_float, SIGNS),
    (number_of_a_small_integer, SIGNS),
    (tensor_in_a_dict_written, SIGNS),
    (row_in_a_dict_written, SIGNS),
    (dict_of_two_names_in_a_loop, COUNTS),
    (changed_then_chosen, SIGNS),
    (lists_of_branches, SIGNS),
    (list_in_a_tuple, SIGNS),
    (list_in_a_dict, SIGNS),
    (list_in_a_dict_in_a_loop, COUNTS),
    (object_of_either_branch, SIGNS),
    (list_of_an_object_in_a_loop, COUNTS),
    (list_of_an_object_in_a_branch, SIGNS),
    (dict_made_anew_in_a_loop, COUNTS),
    (dict_made_anew_in_a_branch, SIGNS),
    (keys_of_a_branch, SIGNS),
    (keys_taken_in_a_branch, SIGNS),
    (optional_dict, SIGNS),
    (optional_tuple_in_a_loop, COUNTS),
    (appended_or_made_anew, COUNTS),
    (dicts_in_a_list, SIGNS),
    (dict_filled_by_a_function, SIGNS),
    (HoldsAnObject(), SIGNS),
    (HoldsContainers(), SIGNS),
]
SCRIPT_CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (sizes_changed, SIGNS),
    (forked_twice, COUNTS),
]
"""Where TorchScript gives what Python does not."""
