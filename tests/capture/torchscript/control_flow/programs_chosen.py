"""Programs that give a dict keys in a loop."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.capture.torchscript.control_flow.programs_flow import SIZES, Typed


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
    (key_made_by_first_iteration, SIZES),
    (key_set_after_the_loop, SIZES),
    (key_in_nested_loops, SIZES),
]
