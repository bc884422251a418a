"""Dicts whose keys are known at run time; strings and enums that a loop chooses."""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

torch.manual_seed(0)
SIZED = [(torch.randn(size, 3), count) for size in (2, 0, 1, 7) for count in (2, 0, 1, 3)]
TOKENS = [
    (torch.tensor(tokens, dtype=torch.int64),)
    for tokens in ([1, 5, 3, 0, 2], [0], [7, 7], [1, 2, 3, 4, 5, 6, 7], [])
]
CHOSEN = [(torch.randn(2, 3), torch.tensor(key)) for key in (0, 1, 2, 5)]


class Mode(Enum):
    A = 0
    B = 1
    C = 2


# -- computed keys --------------------------------------------------------------------------------


def set_and_read_in_loops(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(n):
        d[i] = x + i
    t = x
    for i in range(n):
        t = t + d[i]
    return t


def number_of_keys(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(n):
        d[i] = x + i
    return len(d)


def keys_in_order(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i] = i * i
    s = 0
    for k in d:
        s += d[k]
    return s


def items_in_order(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i * 2] = i * i
    s = 0
    for k, v in d.items():
        s += k * v
    return s


def popped(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i] = i + 3
    if n > 1:
        v = d.pop(1)
    else:
        v = 0
    return (v, len(d))


def deleted(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i] = i + 3
    if n > 0:
        del d[0]
    return list(d.keys())


def known_count(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(3):
        d[i] = x + i
    t = x
    for i in range(3):
        t = t * d[i]
    return t


def read_with_default(x, n: int):
    d: dict[int, Tensor] = {1: x}
    y = d.get(n)
    if y is None:
        return x * 0
    return y * 3


def under_two_names(x, n: int):
    d: dict[int, int] = {}
    e = d
    for i in range(n):
        d[i] = i
    e[100] = 5
    return (len(d), len(e))


def under_two_names_in_a_loop(x, n: int):
    d: dict[int, int] = {}
    e = d
    for i in range(n):
        d[i] = i
        e[i + 1] = len(e)
    return (len(d), len(e), d.get(1, -5))


def values_written(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(n):
        d[i] = x * i
    for k in d:
        d[k] += 1
    t = x.sum()
    for v in d.values():
        t = t + v.sum()
    return t


def known_keys_overwritten(x, n: int):
    d = {0: 1.5, 1: 2.5}
    for i in range(n):
        d[i] = float(i) * 3
    return (list(d.keys()), list(d.values()), d[0])


def order_of_keys(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i * 7 % 3] = i
        d[5] = i
    return (list(d.keys()), list(d.values()))


def set_in_a_branch(x, n: int):
    d: dict[int, int] = {}
    for i in range(x.size(0)):
        if i % 2 == n % 2:
            d[i] = i * 10
    if 1 in d:
        return d[1]
    return len(d)


def values_of_several_sizes(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(n):
        d[i] = x[:i]
    t = x.sum()
    for k, v in d.items():
        t = t + v.sum() * k + v.size(0)
    return t


def values_of_booleans(x, n: int):
    d: dict[int, bool] = {}
    for i in range(n):
        d[i] = i % 2 == 0
    c = 0
    for k, v in d.items():
        if v:
            c += k + 1
    return c


def known_key_after_a_computed_one(x, n: int):
    d = {3: x, 4: x + 1}
    d[n] = x * 2
    return d[3] + d[4]


def added_to_an_entry(x, n: int):
    d = {0: x, 1: x + 1}
    k = n % 2
    d[k] += 1
    return (d[0], d[1])


def copied_and_cleared(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d[i] = i
    e = d.copy()
    e[50] = 1
    d.clear()
    return (len(d), len(e))


def set_default(x, n: int):
    d: dict[int, int] = {}
    for i in range(n):
        d.setdefault(i % 2, i + 4)
    return list(d.values())


def values_of_tuples(x, n: int):
    d: dict[int, tuple[int, Tensor]] = {}
    for i in range(n):
        d[i] = (i, x * i)
    t = x.sum()
    for _k, (a, b) in d.items():
        t = t + b.sum() * a
    return t


KEYS = [
    (program, SIZED)
    for program in (
        set_and_read_in_loops,
        number_of_keys,
        keys_in_order,
        items_in_order,
        popped,
        deleted,
        known_count,
        read_with_default,
        under_two_names,
        under_two_names_in_a_loop,
        values_written,
        known_keys_overwritten,
        order_of_keys,
        set_in_a_branch,
        values_of_several_sizes,
        values_of_booleans,
        known_key_after_a_computed_one,
        added_to_an_entry,
        copied_and_cleared,
        set_default,
        values_of_tuples,
    )
]

# -- keys from data -------------------------------------------------------------------------------


def new_or_known_key(x, k):
    d = {0: x, 1: x * 2, 2: x + 7}
    d[int(k)] = x * 0
    return len(d)


def first_key(x, k):
    d: dict[int, Tensor] = {}
    d[int(k)] = x * 2
    if 2 in d:
        x = d[2] + 1
    return x


FROM_DATA = [
    (program, CHOSEN)
    for program in (
        new_or_known_key,
        first_key,
    )
]

# -- counts and vocabularies ----------------------------------------------------------------------


def counts(x):
    d: dict[int, int] = {}
    for v in x.tolist() if False else [int(t) for t in x]:
        d[v] = d.get(v, 0) + 1
    return len(d)


def memory(x):
    memo: dict[int, int] = {0: 0, 1: 1}
    t = 0
    for i in range(x.size(0)):
        v = int(x[i])
        if v not in memo:
            memo[v] = v * v
        t += memo[v]
    return t


def vocabulary(t):
    vocab = {1: 10, 2: 20, 3: 30, 5: 50}
    out: list[int] = []
    for v in t:
        k = int(v)
        if k in vocab:
            out.append(vocab[k])
        else:
            out.append(-1)
    return torch.tensor(out)


def most_frequent(t):
    c: dict[int, int] = {}
    for v in t:
        k = int(v)
        c[k] = c.get(k, 0) + 1
    best = -1
    bc = 0
    for k, n in c.items():
        if n > bc:
            best = k
            bc = n
    return (best, bc)


def numbers_by_first_place(t):
    seen: dict[int, int] = {}
    out: list[int] = []
    for i in range(t.size(0)):
        k = int(t[i])
        if k not in seen:
            seen[k] = len(seen)
        out.append(seen[k])
    return torch.tensor(out)


COUNTED = [
    (program, TOKENS[:4])
    for program in (
        counts,
        memory,
        vocabulary,
        most_frequent,
        numbers_by_first_place,
    )
]

# -- strings and enums ----------------------------------------------------------------------------


def key_of_a_branch(x, n: int):
    d = {"a": x, "b": x * 2}
    k = "a" if n > 1 else "b"
    return d[k]


def key_that_alternates(x, n: int):
    d = {"a": x, "b": x * 2}
    k = "a"
    t = x * 0
    for _i in range(n):
        t = t + d[k]
        k = "b" if k == "a" else "a"
    return t


def key_from_a_list(x, n: int):
    d = {"a": x, "b": x * 2}
    names = ["a", "b"]
    t = x * 0
    for i in range(n):
        t = t + d[names[i % 2]]
    return t


def keys_of_known_count(x, n: int):
    d: dict[str, Tensor] = {}
    for i in range(3):
        d["layer" + str(i)] = x * i
    return d


def three_states(x, n: int):
    state = "start"
    t = x
    for _i in range(n):
        if state == "start":
            t = t + 1
            state = "mid"
        elif state == "mid":
            t = t * 2
            state = "end"
        else:
            t = t - 3
            state = "start"
    return t


def states_in_a_list(x, n: int):
    s = "a"
    c = 0
    for _i in range(n):
        if s == "a":
            s = "b"
        elif s == "b":
            s = "c"
        else:
            s = "a"
            c += 1
        if s in ["b", "c"]:
            c += 10
    if s == "c":
        return c + 1000
    return c


def two_strings(x, n: int):
    s = "a"
    p = "z"
    for _i in range(n):
        p = s
        s = "b" if p != "b" else "q"
    return (int(s == p), int(p == "a"), int(s != "q"))


def method_of_a_chosen_string(x, n: int):
    s = "ab"
    for _i in range(n):
        s = "cb" if s.startswith("a") else "ab"
    return len(s) * 10 + int(s.startswith("c"))


def modes_of_a_list(x, n: int):
    modes = ["sum", "mean", "max"]
    t = x.sum()
    for i in range(n):
        m = modes[i % 3]
        if m == "sum":
            t = t + x.sum()
        elif m == "mean":
            t = t * 2
        else:
            t = t - 1
    return t


CHOICES = [
    (program, SIZED)
    for program in (
        key_of_a_branch,
        key_that_alternates,
        key_from_a_list,
        keys_of_known_count,
        three_states,
        states_in_a_list,
        two_strings,
        method_of_a_chosen_string,
        modes_of_a_list,
    )
]

# -- state machines -------------------------------------------------------------------------------


def words(t):
    st = "out"
    n = 0
    words = 0
    for v in t:
        k = int(v)
        if st == "out":
            if k > 2:
                st = "in"
                words += 1
        elif st == "in":
            if k <= 2:
                st = "gap"
        else:
            st = "out" if k == 0 else "in"
        n += 1 if st == "in" else 0
    return (words, n, int(st == "in"))


def members(t):
    m = Mode.A
    c = 0
    for v in t:
        if m == Mode.A:
            m = Mode.B
        elif m == Mode.B:
            m = Mode.C
        else:
            m = Mode.A
            c += int(v)
    return (c, int(m == Mode.C))


STATES = [
    (program, TOKENS)
    for program in (
        words,
        members,
    )
]

# -- what has no form -----------------------------------------------------------------------------


def returned_dict(x, n: int):
    d: dict[int, Tensor] = {}
    for i in range(n):
        d[i] = x + i
    return d


def text_that_grows(x, n: int):
    s = ""
    for _i in range(n):
        s = s + "a"
    return len(s)


def returned_text(x, n: int):
    s = "a"
    for _i in range(n):
        s = "b"
    return (x, s)


REFUSED = [
    (program, SIZED)
    for program in (
        returned_dict,
        text_that_grows,
        returned_text,
    )
]
