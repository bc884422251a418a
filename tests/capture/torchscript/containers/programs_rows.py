"""Lists of tuples whose length is computed at run time."""

from typing import NamedTuple

import torch
from torch import Tensor

torch.manual_seed(0)
SIZED = [(torch.randn(size, 3), count) for size in (2, 0, 1, 7) for count in (2, 0, 1, 3)]
DETECTIONS = [(torch.rand(b, n, 6) * 5,) for b, n in ((2, 5), (1, 3), (3, 1), (2, 7))]
SEQUENCES = [(torch.randn(t, 4), torch.tensor(k)) for t, k in ((5, 2), (1, 0), (3, 3), (7, 1))]


class Point(NamedTuple):
    place: Tensor
    number: int


class Detection(NamedTuple):
    box: Tensor
    score: float
    label: int


@torch.jit.script
class Hypothesis:
    def __init__(self, score: float, tokens: Tensor):
        self.score = score
        self.tokens = tokens


# -- lists of rows --------------------------------------------------------------------------------


def tuples(x, n: int):
    out: list[tuple[Tensor, Tensor]] = []
    for i in range(n):
        out.append((x + i, x.sum(0) * i))
    t = x.sum()
    for a, b in out:
        t = t + a.sum() * 2 + b.sum()
    return t


def named_tuples(x, n: int):
    out: list[Point] = []
    for i in range(n):
        out.append(Point(x + i, i))
    t = x.sum()
    for p in out:
        t = t + p.place.sum() * p.number
    return t


def nested_tuples(x, n: int):
    out: list[tuple[Tensor, tuple[int, float]]] = []
    for i in range(n):
        out.append((x[:i], (i, i * 0.5)))
    t = x.sum()
    for a, (k, f) in out:
        t = t + a.sum() * k + f
    return t


LISTS = [
    (program, SIZED)
    for program in (
        tuples,
        named_tuples,
        nested_tuples,
    )
]

# -- detection ------------------------------------------------------------------------------------


def padded_detections(p):
    res: list[Tensor] = []
    mx = 0
    for i in range(p.size(0)):
        sel = p[i][p[i, :, 4] > 2]
        mx = max(mx, sel.size(0))
        res.append(sel)
    out = torch.zeros(p.size(0), mx, 6)
    for i, r in enumerate(res):
        out[i, : r.size(0)] = r
    return out


DETECTED = [(program, DETECTIONS) for program in (padded_detections,)]

# -- decoding -------------------------------------------------------------------------------------


def named_detections(x, k):
    ds: list[Detection] = []
    for i in range(x.size(0)):
        if float(x[i, 0]) > 0:
            ds.append(Detection(x[i], float(x[i, 1]), i))
    s = 0.0
    labels = 0
    for d in ds:
        s += d.score
        labels += d.label
    return (s, labels, len(ds))


DECODED = [(program, SEQUENCES) for program in (named_detections,)]
