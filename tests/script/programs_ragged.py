"""Lists of lists whose lengths differ, and items of dynamic lists that are changed."""

from __future__ import annotations

import torch
from torch import Tensor

torch.manual_seed(0)
SIZED = [(torch.randn(size, 3), count) for size in (2, 0, 1, 7) for count in (2, 0, 1, 3)]
TOKENS = [
    (torch.tensor(tokens, dtype=torch.int64),)
    for tokens in ([1, 5, 3, 0, 2, 5], [0], [7, 7], [1, 2, 3, 4, 5, 6, 7], [])
]

# -- lists of lists -------------------------------------------------------------------------------


def lists_of_numbers(x, n: int):
    out: list[list[int]] = []
    for i in range(n):
        out.append([i + j for j in range(i)])
    t = 0
    for p in out:
        for q in p:
            t = t + q
        t += len(p) * 10
    return t


def lists_of_floats(x, n: int):
    out: list[list[float]] = []
    for i in range(n):
        out.append([float(x.sum()) for j in range(i)])
    t = 0.0
    for p in out:
        t += sum(p)
    return (t, len(out))


def lists_of_tensors(x, n: int):
    out: list[list[Tensor]] = []
    for i in range(n):
        out.append([x + i for _ in range(i)])
    t = x.sum()
    for p in out:
        for q in p:
            t = t + q.sum()
    return t


def of_two_known_lengths(x, n: int):
    out: list[list[int]] = []
    for i in range(n):
        if i % 2 == 0:
            out.append([1, 2])
        else:
            out.append([3, 4, 5])
    t = 0
    for p in out:
        t += p[-1] * len(p)
    return t


def empty_lists(x, n: int):
    out: list[list[int]] = []
    e = torch.jit.annotate(list[int], [])
    for _i in range(n):
        out.append(e)
    return len(out)


def known_at_first(x, n: int):
    out: list[list[int]] = [[1, 2]]
    for i in range(n):
        out.append([i])
    t = 0
    for p in out:
        t += p[0] * len(p)
    return t


def another_length_afterwards(x, n: int):
    out: list[list[int]] = []
    for i in range(n):
        out.append([i, i])
    out.append([7])
    t = 0
    for p in out:
        t += p[0] * len(p)
    return (t, out[-1], out[0][0])


def reversed_lists(x, n: int):
    out: list[list[int]] = []
    for i in range(n):
        out.append([i * j % 3 for j in range(i + 1)])
    out = out[::-1]
    return ([len(p) for p in out], out[0] if len(out) > 0 else [5])


def values_of_a_dict(x, n: int):
    d: dict[int, list[int]] = {}
    for i in range(n):
        d[i] = list(range(i))
    t = 0
    for k, v in d.items():
        t += k * len(v)
    return t


def parts_of_tuples(x, n: int):
    d: list[tuple[int, list[int]]] = []
    for i in range(n):
        d.append((i, list(range(i))))
    t = 0
    for k, v in d:
        t += k * len(v)
    return t


def beams(x, n: int):
    beams: list[tuple[float, list[int]]] = [(0.0, torch.jit.annotate(list[int], []))]
    for i in range(n):
        s, seq = beams[0]
        beams = [(s + i, seq + [i]), (s - 1, seq + [i + 10])]  # noqa: RUF005
    return (beams[0][1], beams[-1][0])


def entries_of_dicts(x, n: int):
    out: list[dict[str, list[int]]] = []
    for i in range(n):
        out.append({"a": [i], "b": list(range(i))})
    t = 0
    for d in out:
        t += len(d["b"]) + d["a"][0]
    return t


def empty_or_not(x, n: int):
    a: list[int] = []
    if n > 1:
        a.append(n)
    return len(a)


def empty_always(x, n: int):
    a: list[int] = []
    b: list[int] = []
    for _i in range(n):
        a = b
    return len(a)


RAGGED = [
    (program, SIZED)
    for program in (
        lists_of_numbers,
        lists_of_floats,
        lists_of_tensors,
        of_two_known_lengths,
        empty_lists,
        known_at_first,
        another_length_afterwards,
        reversed_lists,
        values_of_a_dict,
        parts_of_tuples,
        beams,
        entries_of_dicts,
        empty_or_not,
        empty_always,
    )
]

# -- items that are changed -----------------------------------------------------------------------


def groups_by_place(x, n: int):
    g: list[list[int]] = []
    for _ in range(3 + n):
        g.append(torch.jit.annotate(list[int], []))
    for i in range(x.size(0)):
        g[i % 3].append(i)
    return ([len(p) for p in g], g[0])


def table_of_numbers(x, n: int):
    m = [[0 for _ in range(4)] for _ in range(n)]
    for i in range(n):
        for j in range(4):
            m[i][j] = i * j + (m[i - 1][j] if i > 0 else 1)
    s = 0
    for r in m:
        s += r[3]
    return s


def groups_by_key(x, n: int):
    g: dict[int, list[int]] = {}
    for i in range(x.size(0) + n):
        k = i % 3
        if k in g:
            g[k].append(i)
        else:
            g[k] = [i]
    s = 0
    for k, v in g.items():
        s += k * sum(v)
    return (s, len(g))


def entries_replaced(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        out.append({"b": x[:i], "s": x.sum() * i})
    for o in out:
        o["b"] = o["b"] * 2
    t = x.sum()
    for o in out:
        t = t + o["b"].sum() + o["s"]
    return t


def entries_replaced_in_turn(x, n: int):
    out: list[dict[str, Tensor]] = []
    for i in range(n):
        out.append({"a": x + i})
    for d in out:
        d["a"] = d["a"] * 2
    t = x.sum()
    for d in out:
        t = t + d["a"].sum()
    return t


def entries_of_values_replaced(x, n: int):
    d: dict[int, dict[str, int]] = {}
    for i in range(n):
        d[i] = {"a": i}
    for k in d:
        d[k]["a"] = 5
    s = 0
    for k in d:
        s += d[k]["a"]
    return s


def changed_in_a_branch(x, n: int):
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i])
    cur = [0, 0]
    if n > 1:
        cur = rows[0]
        cur[1] = 3
    s = 0
    for r in rows:
        s += r[1]
    return s


CHANGED = [
    (program, SIZED)
    for program in (
        groups_by_place,
        table_of_numbers,
        groups_by_key,
        entries_replaced,
        entries_replaced_in_turn,
        entries_of_values_replaced,
        changed_in_a_branch,
    )
]

# -- groups ---------------------------------------------------------------------------------------


def places_by_token(x):
    d: dict[int, list[int]] = {}
    for i in range(x.size(0)):
        k = int(x[i])
        if k not in d:
            d[k] = torch.jit.annotate(list[int], [])
        d[k].append(i)
    return len(d)


GROUPED = [(program, TOKENS) for program in (places_by_token,)]

# -- items that may be in two places --------------------------------------------------------------


def same_twice(x, n: int):
    e = [1, 2]
    rows: list[list[int]] = []
    for _i in range(n):
        rows.append(e)
    if n > 1:
        rows[0][0] = 50
    s = 0
    for r in rows:
        s += r[0]
    return s


def same_twice2(x, n: int):
    rows = [[0, 0]]
    for i in range(n):
        rows.append([i, i])
    rows.append(rows[0])
    rows[0][0] = 50
    s = 0
    for r in rows:
        s += r[0]
    return s


def two_lists(x, n: int):
    o = [9, 9]
    a: list[list[int]] = []
    b: list[list[int]] = []
    for i in range(n):
        a.append([i, i])
        b.append([i, i])
    a.append(o)
    b.append(o)
    a[-1][0] = 50
    return b[-1][0]


def two_static(x, n: int):
    o = [9, 9]
    a = [o]
    b = [o]
    for i in range(n):
        a.append([i, i])
        b.append([i, i])
    a[0][0] = 50
    return b[0][0]


def static_dup(x, n: int):
    o = [9, 9]
    a = [o, o]
    for i in range(n):
        a.append([i, i])
    a[0][0] = 50
    return a[1][0]


def carried_same(x, n: int):
    cur = [0, 0]
    rows: list[list[int]] = []
    for i in range(n):
        rows.append(cur)
        if i % 2 == 1:
            cur = [i, i]
    if n > 1:
        rows[0][0] = 50
    s = 0
    for r in rows:
        s += r[0]
    return s


def choice(x, n: int):
    a = [1, 1]
    b = [2, 2]
    c = a if n > 1 else b
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i])
    rows.append(c)
    rows.append(a)
    rows[-1][0] = 50
    return rows[-2][0]


def two_items(x, n: int):
    rows = [[0, 0], [1, 1]]
    for i in range(n):
        rows.append([i, i])
    a = rows[0]
    b = rows[n // 2]
    a[0] = 70
    return b[0]


def item_then_list(x, n: int):
    rows = [[0, 0], [1, 1]]
    for i in range(n):
        rows.append([i, i])
    a = rows[0]
    rows.insert(0, [5, 5])
    a[0] = 70
    return (rows[0][0], rows[1][0])


def loop_carried_item(x, n: int):
    rows = [[0, 0], [1, 1]]
    for i in range(n):
        rows.append([i, i])
    cur = [0, 0]
    s = 0
    for i in range(n):
        rows[0][0] = i + 20
        s += cur[0]
        cur = rows[0]
    return s


def values(x, n: int):
    d: dict[int, list[int]] = {}
    for i in range(n):
        d[i] = [i, i]
    for v in d.values():
        v[0] = 9
    s = 0
    for k in d:
        s += d[k][0]
    return s


def sliced_then(x, n: int):
    rows = [[0, 0], [1, 1]]
    for i in range(n):
        rows.append([i, i])
    o = rows[1:]
    rows[1][0] = 8
    return o[0][0]


def nested(x, n: int):
    rows: list[dict[str, list[int]]] = []
    for i in range(n):
        rows.append({"a": [i, i]})
    for r in rows:
        r["a"][0] = 7
    s = 0
    for r in rows:
        s += r["a"][0]
    return s


def in_loop_flag_after(x, n: int):
    rows = [[0, 0], [1, 1]]
    for _i in range(n):
        rows[0][0] = rows[0][0] + 1
        rows.append(rows[0])
    s = 0
    for r in rows:
        s += r[0]
    return s


REFUSED = [
    (program, SIZED)
    for program in (
        same_twice,
        same_twice2,
        two_lists,
        two_static,
        static_dup,
        carried_same,
        choice,
        two_items,
        item_then_list,
        loop_carried_item,
        values,
        sliced_then,
        nested,
        in_loop_flag_after,
    )
]

# -- objects that a branch changes and then puts into a list ---------------------------------------


def changed_and_put(x, n: int):
    kept = [[0, 0]]
    current = [1, 1]
    if n > 1:
        current[0] = 5
        kept[0] = current
    else:
        kept[0] = [7, 7]
    return kept[0][0]


def grown_and_put(x, n: int):
    kept: list[list[int]] = [[0]]
    current = [1]
    if n > 1:
        current.append(n)
        kept[0] = current
    else:
        kept[0] = [7, 7]
    return kept[0]


def grown_and_put_into_a_dict(x, n: int):
    kept: dict[str, list[int]] = {"a": [1]}
    current = [3]
    if n > 1:
        current.append(4)
        kept["a"] = current
    return kept["a"]


PUT = [(program, SIZED) for program in (changed_and_put, grown_and_put, grown_and_put_into_a_dict)]


def put_by_one_side_and_changed(x, n: int):
    kept: list[list[int]] = []
    one, other = [1], [2]
    for i in range(3):
        kept.append([i for _ in range(n)])
    if n > 2:
        kept.append(one)
    else:
        kept.append(other)
    one.append(5)
    return [len(row) for row in kept]


def put_again_and_changed(x, n: int):
    kept: list[list[int]] = []
    current: list[int] = []
    for i in range(n):
        if i % 2 == 0:
            kept.append(current)
        else:
            current.append(i)
    return [len(row) for row in kept]


REFUSED += [(program, SIZED) for program in (put_by_one_side_and_changed, put_again_and_changed)]
