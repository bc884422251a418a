"""Lists of dicts, lists, tuples, objects and optionals whose length is known at run time."""

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


def dicts(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        out.append({"a": x + i, "b": x.sum(0) * i})
    t = x.sum()
    for d in out:
        t = t + d["a"].sum() * 2 + d["b"].sum()
    return t


def dicts_at_places(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        out.append({"a": x + i, "b": x.sum(0) * i})
    if len(out) > 1:
        return (out[1]["a"], out[-1]["b"])
    return (x, x.sum(0))


def dicts_of_some(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(x.size(0)):
        if float(x[i].sum()) > 0:
            out.append({"a": x[:i], "b": x[i]})
    return ([d["a"] for d in out], torch.stack([d["b"] for d in out]) if len(out) > 0 else x)


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


def lists_of_tensors(x, n: int):
    out: list[list[Tensor]] = []
    for i in range(n):
        out.append([x + i, x.sum(0) * i])
    t = x.sum()
    for p in out:
        t = t + p[0].sum() * 2 + p[1].sum()
    return t


def lists_of_numbers(x, n: int):
    out: list[list[int]] = []
    for i in range(n):
        out.append([i, i * i])
    t = 0
    for p in out:
        t = t + p[0] * 2 + p[1]
    return t


def optionals(x, n: int):
    out: list[Tensor | None] = []
    for i in range(n):
        if i % 2 == 0:
            out.append(None)
        else:
            out.append(x + i)
    t = x.sum()
    for o in out:
        if o is not None:
            t = t + o.sum()
    return t


def dicts_of_the_last(x, n: int):
    out: list[dict[str, Tensor]] = [{"a": x}]
    for _i in range(n):
        out.append({"a": out[-1]["a"] * 2})
    return out[-1]["a"]


def nested_tuples(x, n: int):
    out: list[tuple[Tensor, tuple[int, float]]] = []
    for i in range(n):
        out.append((x[:i], (i, i * 0.5)))
    t = x.sum()
    for a, (k, f) in out:
        t = t + a.sum() * k + f
    return t


def held_before_the_last(x, n: int):
    rows: list[list[int]] = []
    cur = [0, 0]
    for i in range(n):
        rows.append(cur)
        cur = [i, i]
    cur[0] = 9
    s = 0
    for r in rows:
        s += r[0]
    return (s, cur[0])


LISTS = [
    (program, SIZED)
    for program in (
        dicts,
        dicts_at_places,
        dicts_of_some,
        tuples,
        named_tuples,
        lists_of_tensors,
        lists_of_numbers,
        optionals,
        dicts_of_the_last,
        nested_tuples,
        held_before_the_last,
    )
]

# -- detection ------------------------------------------------------------------------------------


def detections(p):
    out: list[dict[str, Tensor]] = []
    for i in range(p.size(0)):
        m = p[i, :, 4] > 2
        sel = p[i][m]
        out.append({"boxes": sel[:, :4], "scores": sel[:, 4], "labels": sel[:, 5].long()})
    n: list[int] = []
    for d in out:
        n.append(d["boxes"].size(0))
    return ([d["boxes"] for d in out], [d["scores"] for d in out], torch.tensor(n))


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


DETECTED = [
    (program, DETECTIONS)
    for program in (
        detections,
        padded_detections,
    )
]

# -- decoding -------------------------------------------------------------------------------------


def hypotheses(x, k):
    hs: list[Hypothesis] = []
    for i in range(x.size(0)):
        hs.append(Hypothesis(float(x[i].sum()), x[:i]))
    best = 0
    for i in range(len(hs)):
        if hs[i].score > hs[best].score:
            best = i
    return (hs[best].tokens, hs[best].score)


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


DECODED = [
    (program, SEQUENCES)
    for program in (
        hypotheses,
        named_detections,
    )
]

# -- what would have to be seen through another name ----------------------------------------------


def changed_after_append(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        d = {"a": x + i}
        out.append(d)
        d["a"] = x * 5
    t = x.sum()
    for d in out:
        t = t + d["a"].sum()
    return t


def appended_in_every_iteration(x, n: int):
    out: list[dict[str, Tensor]] = []
    d = {"a": x}
    for i in range(n):
        d["a"] = x * i
        out.append(d)
    t = x.sum()
    for e in out:
        t = t + e["a"].sum()
    return t


def held_outside(x, n: int):
    d = {"a": x}
    out = [d]
    for i in range(n):
        out.append({"a": x * i})
    d["a"] = x * 7
    t = x.sum()
    for e in out:
        t = t + e["a"].sum()
    return t


def held_outside_of_a_branch(x, n: int):
    a = {"k": x}
    out: list[dict[str, Tensor]] = []
    if n > 1:
        out.append(a)
    a["k"] = x * 3
    t = x.sum()
    for e in out:
        t = t + e["k"].sum()
    return t


def carried_item_changed(x, n: int):
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i])
    cur = [0, 0]
    for i in range(n):
        cur[0] = 7
        cur = rows[i]
    s = 0
    for r in rows:
        s += r[0]
    return s


def chosen_item_changed(x, n: int):
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i])
    cur = [0, 0]
    if n > 1:
        cur = rows[0]
    cur[0] = 7
    s = 0
    for r in rows:
        s += r[0]
    return s


def appended_then_changed(x, n: int):
    rows: list[list[int]] = []
    cur = [0, 0]
    for i in range(n):
        rows.append(cur)
        cur[0] = i
    s = 0
    for r in rows:
        s += r[0]
    return s


def changed_then_appended(x, n: int):
    rows: list[list[int]] = []
    cur = [0, 0]
    for i in range(n):
        cur[1] = cur[1] + i
        rows.append(cur)
        if i % 2 == 0:
            cur = [0, i]
    s = 0
    for r in rows:
        s += r[1]
    return s


def last_one_changed(x, n: int):
    rows: list[list[int]] = []
    cur = [0, 0]
    for i in range(n):
        cur = [i, i]
        rows.append(cur)
    cur[0] = 9
    s = 0
    for r in rows:
        s += r[0]
    return (s, cur[0])


def popped_one_changed(x, n: int):
    rows: list[list[int]] = [[5, 6]]
    for i in range(n):
        rows.append([i, i])
    last = rows.pop()
    last[0] = 100
    s = 0
    for r in rows:
        s += r[0]
    return (s, last[0])


def item_of_a_copy_changed(x, n: int):
    rows: list[list[int]] = [[5, 6]]
    for i in range(n):
        rows.append([i, i])
    other = rows[:]
    other[0][0] = 100
    return rows[0][0]


REFUSED = [
    (program, SIZED)
    for program in (
        changed_after_append,
        appended_in_every_iteration,
        held_outside,
        held_outside_of_a_branch,
        carried_item_changed,
        chosen_item_changed,
        appended_then_changed,
        changed_then_appended,
        last_one_changed,
        popped_one_changed,
        item_of_a_copy_changed,
    )
]
