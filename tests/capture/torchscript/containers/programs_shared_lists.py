"""Programs whose lists share tensors, or that look into a list while they fill it."""
# ruff: noqa: B007, B905, RUF005, UP045  what TorchScript takes

from typing import Optional

import torch
from torch import Tensor

torch.manual_seed(1)


def _x(*shape: int) -> Tensor:
    return torch.randn(*shape)


_ROWS = [(_x(3, 2),), (_x(5, 2),), (_x(1, 2),), (_x(0, 2),)]
_COUNTS = [(_x(3, 2), 3), (_x(4, 2), 1), (_x(2, 2), 7), (_x(3, 2), 0), (_x(1, 2), 2)]


def none_or_more_joined(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        o.append(x * i)
    return torch.stack(o + [x]), torch.cat([x] + o), len(o)


def none_or_more_appended(x: Tensor, n: int):
    o = [x]
    for i in range(n):
        o.append(x * i)
    return torch.stack(o), torch.cat(o, 1)


def fresh_item_written(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        y = x * i
        o.append(y)
        y += 1
    return torch.stack(o + [x])


def item_bound_anew(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        o.append(x)
        x = x + 1
        x.mul_(2)
    return torch.stack(o + [x])


def item_written_before_append(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        x.mul_(2)
        o.append(x)
        x = x + 1
    return torch.stack(o + [x])


def item_handed_on_and_written(x: Tensor, n: int):
    o: list[Tensor] = []
    y = x * 1
    for i in range(n):
        y.mul_(2)
        z = y + 1
        o.append(z)
        y = z
    return torch.stack(o + [y])


def rows_written_through_list(x: Tensor):
    y = x * 1
    rows = y.unbind()
    for r in rows:
        r += 1
    return y


def stack_written(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        o.append(x * i)
    s = torch.stack(o + [x])
    s += 1
    t = torch.stack(o + [x])
    return s, t


def second_name_of_list(x: Tensor, n: int):
    a: list[Tensor] = []
    b = a
    for i in range(n):
        a.append(x * i)
    b.append(x)
    return torch.stack(a), len(b)


def list_carried_under_two_names(x: Tensor, n: int):
    a = [x]
    b = a
    for i in range(n):
        a.append(x * i)
        a = b
    return torch.stack(b), len(a)


def list_flushed(x: Tensor, n: int):
    cur: list[Tensor] = []
    res: list[Tensor] = [x]
    for i in range(n):
        cur.append(x * i)
        if len(cur) == 2:
            res.append(cur[0] + cur[1])
            cur = []
    return torch.stack(res), len(cur)


def lists_swapped(x: Tensor, n: int):
    a = [x]
    b = [x + 1]
    for i in range(n):
        a.append(x * i)
        a, b = b, a
    return torch.stack(a), torch.stack(b)


def list_copied_each_time(x: Tensor, n: int):
    a = [x]
    for i in range(n):
        b = a.copy()
        b.append(x * i)
        a = b
    return torch.stack(a)


def list_twice_in_list(x: Tensor, n: int):
    inner = [x]
    outer = [inner, inner]
    for i in range(n):
        outer[0].append(x * i)
    return torch.stack(outer[1]), len(inner)


def reversed_views_written(x: Tensor):
    y = x * 1
    rows = list(y.unbind())
    rows.reverse()
    y += 1
    return torch.stack(rows + [torch.zeros(2)])


def last_item_read(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        if i > 0:
            o.append(o[i - 1] * 2 + x)
        else:
            o.append(x)
    return torch.stack(o + [x])


def numbers_read_back(x: Tensor, n: int):
    held: list[int] = [1, 1]
    for i in range(n):
        held.append(held[-1] + held[-2])
    return held, x * held[-1]


def known_count_with_branch(x: Tensor):
    o: list[Tensor] = []
    for i in range(5):
        if i % 2 == 0:
            o.append(x * i)
    return torch.stack(o), len(o)


def known_list_in_loop(x: Tensor, n: int):
    ws = [x, x + 1, x * 2]
    t = x * 0
    for i in range(n):
        for w in ws:
            t = t + w * i
    return t


def known_list_at_computed_place(x: Tensor, n: int):
    ws = [x, x + 1, x * 2]
    t = x * 0
    for i in range(n):
        t = t + ws[i % 3]
    return t


def two_hundred_items(x: Tensor):
    o: list[Tensor] = []
    for i in range(200):
        o.append(x * i)
    t = x * 0
    for i in range(200):
        t = t + o[i]
    return t


def tuples_popped(x: Tensor, n: int):
    p: list[tuple[Tensor, Tensor]] = []
    for i in range(n):
        p.append((x * i, x[:1] + i))
    a = x
    b = x[:1]
    for u, v in p:
        a = a + u
        b = b + v
    if n > 0:
        q = p[-1]
        a = a + q[0]
        u, v = p.pop(0)
        b = b + v
    return a, b, len(p)


def floats_sorted(x: Tensor, n: int):
    s: list[float] = []
    for i in range(n):
        s.append(float(x[0, 0]) * (i - 2))
    s.sort()
    return s, x


def split_columns(x: Tensor):
    ps = x.t().split(2, 1)
    return ps[0], len(ps), torch.cat(ps, 1)


def chunks_of_computed_number(x: Tensor, n: int):
    t = torch.zeros(2)
    k = 0
    for c in x.chunk(n + 1):
        t = t + c.sum(0)
        k += 1
    return t, k


def enumerated_rows(x: Tensor):
    t = torch.zeros(2)
    for i, r in enumerate(x.unbind(0)):
        t = t + r * i
    return t


def zipped_unequal(x: Tensor, y: Tensor):
    t = torch.zeros(2)
    for a, b in zip(x.unbind(), y.unbind()):
        t = t + a * b
    return t


def rows_from_the_end(x: Tensor):
    o: list[Tensor] = []
    for i in range(x.size(0) - 1, -1, -1):
        o.append(x[i])
    return torch.stack(o + [torch.zeros(2)])


def returned_from_loop(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        o.append(x * i)
        if i == 4:
            return torch.stack(o)
    return torch.stack(o + [x])


def optional_list(x: Tensor, n: int):
    o: Optional[list[Tensor]] = None
    if n > 2:
        o = [x]
    if o is not None:
        return torch.stack(o)
    return x[None]


def list_times_number(x: Tensor, n: int):
    return [0] * n, [1, 2] * n, torch.stack([x] * n + [x])


def queue_emptied(x: Tensor, n: int):
    held = [x, x + 1]
    for i in range(n):
        held.append(x * i)
    t = x * 0
    while len(held) > 1:
        t = t * 2 + held.pop(0)
    return t, held


def ends_replaced(x: Tensor, n: int):
    held = [x]
    for i in range(n):
        held.append(x * i)
    held[-1] = x + 5
    held[0] = x * 9
    return torch.stack(held)


def flags_counted(x: Tensor):
    f: list[bool] = [bool(r.sum() > 0) for r in x]
    k = 0
    for b in f:
        if b:
            k += 1
    return k, f


def known_loop_in_loop(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        for j in range(3):
            o.append(x * (i + j))
    return torch.stack(o + [x])


def no_longer_than_three(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        if len(o) < 3:
            o.append(x * i)
    return torch.stack(o + [x]), len(o)


def bytes_of_unequal_shapes(x: Tensor, n: int):
    o: list[Tensor] = []
    y = (x * 10).to(torch.uint8)
    for i in range(n):
        o.append(y[: i % 2 + 1])
    return torch.cat(o + [y])


def halves_returned(x: Tensor, n: int):
    o: list[Tensor] = []
    y = x.to(torch.float16)
    for i in range(n):
        o.append(y + i)
    return o


def growing_returned(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        x = torch.cat([x, x[:1]])
        o.append(x)
    return o


def nested_static_lists(x: Tensor, n: int):
    g: list[list[Tensor]] = [[], []]
    for i in range(n):
        g[0].append(x * i)
        g[1].append(x + i)
    return torch.stack(g[0] + [x]), torch.stack(g[1] + [x])


def copy_changed(x: Tensor, n: int):
    a: list[int] = [1]
    for i in range(n):
        a.append(i)
    b = list(a)
    b.append(7)
    a[0] = 5
    return a, b, x


def unpacked(x: Tensor):
    o: list[Tensor] = []
    for i in range(5):
        x = x + 1
        o.append(x)
    a, _b, _c, _d, e = o
    return a + e, o


def place_of_largest(x: Tensor, n: int):
    held: list[float] = [0.5]
    for i in range(n):
        held.append(float(x.sum()) * i)
    best = max(held)
    return held.index(best), best


CASES = [
    *(
        (program, _ROWS)
        for program in (
            rows_written_through_list,
            known_count_with_branch,
            two_hundred_items,
            split_columns,
            enumerated_rows,
            rows_from_the_end,
            flags_counted,
            unpacked,
        )
    ),
    *(
        (program, _COUNTS)
        for program in (
            none_or_more_joined,
            none_or_more_appended,
            fresh_item_written,
            item_bound_anew,
            stack_written,
            second_name_of_list,
            list_flushed,
            lists_swapped,
            list_copied_each_time,
            list_twice_in_list,
            last_item_read,
            numbers_read_back,
            known_list_in_loop,
            known_list_at_computed_place,
            tuples_popped,
            chunks_of_computed_number,
            returned_from_loop,
            optional_list,
            list_times_number,
            queue_emptied,
            ends_replaced,
            known_loop_in_loop,
            no_longer_than_three,
            bytes_of_unequal_shapes,
            halves_returned,
            growing_returned,
            nested_static_lists,
            copy_changed,
            place_of_largest,
        )
    ),
    (floats_sorted, [(_x(3, 2), 3), (_x(4, 2), 1), (_x(2, 2), 7)]),
    (zipped_unequal, [(_x(3, 2), _x(4, 2)), (_x(5, 2), _x(2, 2)), (_x(0, 2), _x(1, 2))]),
]
REFUSED = [
    item_written_before_append, item_handed_on_and_written, list_carried_under_two_names,
    reversed_views_written,
]  # fmt: skip
"""What is, or may be, in a list is written in place, and the list read."""
