"""Programs that give a dict keys in a loop."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.script.programs_flow import SIZES, Typed


def key_made_by_first_iteration(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        if "n" in d:
            d["n"] = d["n"] + x[i]
        else:
            d["n"] = x[i]
    return d["n"] if "n" in d else torch.zeros(2)


def keys_by_data(x):
    d: dict[str, Tensor] = {"all": torch.zeros(2)}
    for i in range(x.size(0)):
        d["all"] = d["all"] + x[i]
        if x[i].sum() > 0:
            d["above"] = d.get("above", torch.zeros(2)) + x[i]
        else:
            d["below"] = d["below"] * 2 if "below" in d else x[i]
    total = d["all"]
    if "above" in d:
        total = total + d["above"]
    if "below" not in d:
        total = total - 7
    else:
        total = total * d["below"]
    return total, "above" in d


def numbers_by_key(x):
    d: dict[str, int] = {}
    for i in range(x.size(0)):
        if bool(x[i, 0] > 0):
            d["above"] = d["above"] + 1 if "above" in d else 1
        d.setdefault("first", i)
    return d.get("above", -1), d.get("first", -5), "first" in d


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
    (key_made_by_first_iteration, SIZES),
    (keys_by_data, SIZES),
    (numbers_by_key, SIZES),
    (key_set_after_the_loop, SIZES),
    (key_in_nested_loops, SIZES),
]
