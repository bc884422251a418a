"""Programs that use lists as decoders, queues and collectors of results do."""
# ruff: noqa: B007, B905, RUF005, RUF007  what TorchScript takes

import torch
from torch import Tensor

torch.manual_seed(1)


def _x(*shape: int) -> Tensor:
    return torch.randn(*shape)


_ROWS = [(_x(3, 2),), (_x(5, 2),), (_x(1, 2),), (_x(0, 2),)]
_COUNTS = [(_x(3, 2), 3), (_x(4, 2), 1), (_x(2, 2), 7), (_x(3, 2), 0), (_x(1, 2), 2)]


def ints_as_input(x: Tensor, sizes: list[int]):
    y = x.reshape(sizes)
    return y, sizes[0] + sizes[1], sizes


def appended_until_break(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        x = x + 1
        o.append(x)
        if bool(x.sum() > 20):
            break
    return torch.stack(o + [x]), len(o)


def constants_appended(x: Tensor, n: int):
    a: list[int] = []
    b: list[float] = []
    c: list[Tensor] = []
    for i in range(n):
        a.append(1)
        b.append(0.5)
        c.append(x)
    return a, b, torch.stack(c + [x]), sum(a)


def while_over_known(x: Tensor):
    items = [x, x * 2, x * 3]
    i = 0
    t = x * 0
    while i < len(items):
        t = t + items[i]
        i += 1
    return t


def while_over_known_until_data(x: Tensor):
    items = [x, x * 2, x * 3]
    i = 0
    t = x * 0
    while i < len(items) and bool(t.sum() < 4):
        t = t + items[i]
        i += 1
    return t, i


def known_list_popped(x: Tensor):
    items = [x, x + 1, x + 2, x + 3]
    t = x * 0
    for i in range(3):
        t = t * 2 + items.pop()
    return t, items


def sequence_from_the_end(x: Tensor, n: int):
    o = [x]
    for i in range(n):
        o.append(x[:, : i % 2 + 1])
    k = len(o)
    return o[-k], o[k - 1], o[-1], o[(n * 2) % k]


def before_the_last(x: Tensor, n: int):
    o = [x, x[:1]]
    for i in range(n):
        o.insert(-1, x[:1] * i)
    return torch.cat(o)


def beyond_the_end(x: Tensor, n: int):
    o = [x]
    for i in range(n):
        o.insert(n * 5, x * i)
    return torch.stack(o)


def list_through_dict(x: Tensor, n: int):
    d: dict[str, list[Tensor]] = {"a": [], "b": [x]}
    for i in range(n):
        d["a"].append(x * i)
        d["b"].append(x + i)
    return torch.stack(d["a"] + [x]), torch.stack(d["b"])


def tuple_of_lists(x: Tensor, n: int):
    a: list[Tensor] = []
    b: list[int] = []
    p = (a, b)
    for i in range(n):
        p[0].append(x * i)
        p[1].append(i)
    return torch.stack(a + [x]), b


def returns_lists(x: Tensor, n: int) -> tuple[list[Tensor], list[int]]:
    a: list[Tensor] = []
    b: list[int] = []
    for i in range(n):
        a.append(x * i)
        b.append(i)
    return a, b


def lists_of_a_function(x: Tensor, n: int):
    a, b = returns_lists(x, n)
    return torch.stack(a + [x]), sum(b)


def branch_lists(x: Tensor, n: int):
    if n > 2:
        o = [x, x + 1]
    elif n > 0:
        o = [x]
    else:
        o = [x * 2, x, x]
    return torch.stack(o), len(o), o[0], o[-1]


def branch_returned(x: Tensor, n: int):
    if n > 2:
        return [x, x + 1]
    return [x]


def numbers_of_branches(x: Tensor, n: int):
    d = [0, 1]
    if n > 2:
        d = [1]
    held = [2]
    if n > 1:
        held.append(n)
    return d, held, x


def sorted_and_reversed(x: Tensor, n: int):
    held: list[int] = []
    for i in range(n):
        held.append(n - i)
    held.sort()
    held.reverse()
    return held, x


def two_loops_one_list(x: Tensor, n: int):
    o: list[Tensor] = []
    for i in range(n):
        o.append(x * i)
    for i in range(n):
        o.append(x + i)
    for i in range(2):
        o.append(x - i)
    return torch.stack(o + [x])


def items_of_growing_length(x: Tensor):
    o: list[Tensor] = []
    for i in range(x.size(0)):
        o.append(x[i, :1].repeat(i + 1))
    return torch.cat(o + [x[:, 0]])


def lengths_of_rows(x: Tensor):
    lens: list[int] = []
    for i in range(x.size(0)):
        lens.append(int((x[i] > 0).sum()))
    m = torch.zeros(x.size(0), 3)
    for i in range(len(lens)):
        m[i, : lens[i]] = 1.0
    return m, lens


def split_by_repeated_sizes(x: Tensor, n: int):
    parts = x.repeat(n + 1, 1).split([x.size(0)] * (n + 1))
    return torch.stack(parts), len(parts)


def neighbours(x: Tensor, n: int):
    o = [x * i for i in range(n)]
    t = x * 0
    for i, (a, b) in enumerate(zip(o, o[1:])):
        t = t + a * b * i
    return t


def numbers_of_rows(x: Tensor, n: int):
    lens = [int(r.sum() * 3) for r in x] + [n]
    return max(lens), min(lens), sum(lens), sorted(lens)


def rows_written_and_kept(x: Tensor):
    o: list[Tensor] = []
    for r in x.unbind():
        r = r * 2
        r[0] = 5
        o.append(r)
    return torch.stack(o + [torch.zeros(2)])


def buffer_filled(x: Tensor, n: int):
    buf = torch.zeros(8, 2)
    o: list[Tensor] = []
    for i in range(n):
        buf[i] = x[0] * i
        o.append(buf[i].clone())
    return buf, torch.stack(o + [x[0]])


def item_that_grows(x: Tensor, n: int):
    seqs = [x[:, :1]]
    for i in range(n):
        seqs[0] = torch.cat([seqs[0], x[:, 1:]], 1)
    return seqs[0], seqs


def beam_of_one(x: Tensor, n: int):
    best: list[tuple[Tensor, float]] = [(x[:, 0], 0.0)]
    for i in range(n):
        new: list[tuple[Tensor, float]] = []
        for t, s in best:
            new.append((t + i, s + i))
        best = new
    return best[0][0], best[0][1], len(best)


def beam_of_three(x: Tensor, n: int):
    best: list[tuple[Tensor, float]] = [(x[:, 0], 0.0)]
    for i in range(n):
        new: list[tuple[Tensor, float]] = []
        for t, s in best:
            new.append((t + i, s + i))
            new.append((t - i, s - i))
        best = new[:3]
    tot = x[:, 0] * 0
    for t, s in best:
        tot = tot + t * s
    return tot, len(best)


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x: Tensor, n: int):
        o: list[Tensor] = []
        for i in range(n):
            for m in self.layers:
                x = torch.tanh(m(x))
            o.append(x)
        return torch.stack(o + [x])


def unpacked_pieces(x: Tensor, n: int):
    first, second = x.split(n)
    return first, second


def read_backwards(x: Tensor, n: int):
    parts: list[Tensor] = []
    numbers: list[int] = []
    for i in range(n):
        parts.append(x * i)
        numbers.append(i)
    joined = x[:0]
    for part in parts[::-1]:
        joined = torch.cat([joined, part])
    return joined, numbers[::-1], numbers[::-2]


class Cells(torch.nn.Module):
    """Recurrent cells whose states are inputs of a size of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRUCell(2, 2)
        self.lstm = torch.nn.LSTMCell(2, 2)
        self.rnn = torch.nn.RNNCell(2, 2)

    def forward(self, x: Tensor, h: Tensor, c: Tensor):
        v = h
        for t in range(x.size(0)):
            v = self.gru(x[t], v)
            h, c = self.lstm(v, (h, c))
            v = self.rnn(h, v)
        return v, h, c


CASES = [
    *(
        (program, _ROWS)
        for program in (
            while_over_known,
            while_over_known_until_data,
            known_list_popped,
            items_of_growing_length,
            lengths_of_rows,
            rows_written_and_kept,
        )
    ),
    *(
        (program, _COUNTS)
        for program in (
            appended_until_break,
            constants_appended,
            sequence_from_the_end,
            before_the_last,
            beyond_the_end,
            list_through_dict,
            tuple_of_lists,
            returns_lists,
            lists_of_a_function,
            branch_lists,
            branch_returned,
            numbers_of_branches,
            sorted_and_reversed,
            two_loops_one_list,
            split_by_repeated_sizes,
            neighbours,
            numbers_of_rows,
            item_that_grows,
            beam_of_one,
            beam_of_three,
            Layers(),
        )
    ),
    (buffer_filled, _COUNTS[:3]),
    (unpacked_pieces, [(_x(3, 2), 2), (_x(5, 2), 4), (_x(2, 2), 1)]),
    (ints_as_input, [(_x(6), [2, 3]), (_x(6), [3, 2]), (_x(6), [1, 6])]),
    (read_backwards, _COUNTS),
    (Cells(), [(_x(t, b, 2), _x(b, 2), _x(b, 2)) for t, b in ((3, 2), (1, 1), (0, 4))]),
]
