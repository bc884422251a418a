"""Programs that write memory inside branches and loops, and the inputs to run them at."""

from __future__ import annotations

import torch
from torch import nn

from tests.capture.torchscript.control_flow.programs_flow import (
    COUNTS,
    ONES,
    ROWS,
    SIGNS,
    SIZES,
    Typed,
)


def unpack_sequences(flat, lengths):
    out = torch.zeros(lengths.size(0), 4, 2)
    start = 0
    for i in range(lengths.size(0)):
        n = int(lengths[i])
        out[i, :n] = flat[start : start + n]
        start += n
    return out


def add_in_one_branch(x, y):
    if x.sum() > 0:
        x += y
    return x * 2


def add_in_both_branches(x, y):
    z = x.clone()
    if x.sum() > 0:
        z += y
    else:
        z -= y[:1]
    return z, x


def writes_input_in_loop(x, n: int):
    for i in range(n):
        x[0] += i
        x[:, 1] *= 1.5
    return x


def view_outside_written_inside(x, n: int):
    y = x.clone()
    v = y[1:]
    for i in range(n):
        v += i
        v[0] = y[0] * 2
    return y, v


def view_outside_written_in_branch(x):
    y = x.clone()
    v = y.t()
    if x.sum() > 0:
        v[0] = 5
    else:
        v[1, :2] = 7
    return y, v


def view_inside_written_outside(x, n: int):
    y = x.clone()
    v = y[:1]
    if n > 2:
        v = y[1:2]
    w = v.clone()
    y += 1
    return y, w


def base_written_after_branch_view(x, n: int):
    y = x.clone()
    if n > 2:
        z = y
    else:
        z = y + 1
    w = z * 2
    return w, y


def chain_of_views_nested(x, n: int):
    y = x.clone()
    a = y.view(-1)
    for i in range(n):
        b = a[1:]
        if i % 2 == 0:
            for j in range(2):
                c = b[j : j + 2]
                c += i + 1
        else:
            b.mul_(0.5)
    return y, a


def in_place_on_carried(x, n: int):
    h = x * 2
    for _i in range(n):
        h = h + 1
        h.mul_(2)
        h[0] -= 1
    return h


def in_place_on_carried_first(x, n: int):
    h = x.clone()
    for i in range(n):
        h.add_(i)
        h = h * 0.5
    return h, x


def carried_input_written(x, n: int):
    h = x
    for _i in range(n):
        h = h * 2
        h += 1
    return h, x


def swap(x, n: int):
    a, b = x, x * 10
    for _i in range(n):
        a, b = b, a
    return a, b


def swap_and_write(x, n: int):
    a, b = x.clone(), x * 10
    for i in range(n):
        a, b = b, a + b
        a = a.clone()
        a[0] += i
    return a, b


def two_names(x, n: int):
    a = x.clone()
    b = a
    for _i in range(n):
        a += 1
        b[1] *= 2
    return a, b


def two_names_in_loop(x, n: int):
    total = x.clone()
    for i in range(n):
        t = total
        t += i
        total[0] = t[1] * 2
    return total


def dynamic_slices(x, n: int):
    out = torch.zeros(6, 2)
    for i in range(n):
        end = min(i + 3, 6)
        out[i:end] += x[: end - i]
    return out


def overlap_add(x):
    out = torch.zeros(x.size(0) + 1)
    count = torch.zeros_like(out)
    for i in range(x.size(0)):
        out[i : i + 2] += x[i]
        count[i : i + 2] += 1
    return out / count.clamp(min=1)


def negative_steps(x, n: int):
    out = torch.zeros(7, 2)
    for i in range(n):
        out[i::2] += i
        out[-i - 1] = x[0]
    return out


def masked_in_loop(x, n: int):
    y = x.clone()
    for i in range(n):
        y[y > 3] -= i
        y[y.sum(1) < 4] = 0.5
    return y


def masked_fill_in_loop(x, n: int):
    y = x.clone()
    for i in range(n):
        y.masked_fill_(y < i, float(i))
    return y


def indices_in_loop(x, n: int):
    y = x.clone()
    index = torch.tensor([0, 2])
    for i in range(n):
        y[index] += 1
        y[index, i % 2] = 9
    return y


def index_put_accumulates(x, n: int):
    y = torch.zeros(4)
    for i in range(n):
        y.index_put_((torch.tensor([0, 1, 0]),), x[:, 0], accumulate=True)
        y.index_add_(0, torch.tensor([i % 4]), x[0, :1])
    return y


def scatter_in_loop(x, n: int):
    y = torch.zeros(3, 6)
    for i in range(n):
        y.scatter_(1, torch.full((3, 1), i), x[:, :1] * i)
    return y


def transposed_views(x, n: int):
    y = x.clone()
    t = y.t()
    for i in range(n):
        t[i % 2] += y[:, 0]
        y.transpose(0, 1)[0, 0] = i
    return y, t.contiguous()


def out_in_loop(x, n: int):
    y = torch.zeros(3, 2)
    for _i in range(n):
        torch.add(x, y, out=y)
    return y


def out_of_view_in_branch(x):
    y = torch.zeros(2, 3, 2)
    if x.sum() > 0:
        torch.mul(x, 3, out=y[0])
    else:
        torch.mul(x, 2, out=y[1])
    return y


def fill_in_branches(x, n: int):
    y = torch.empty(3, 2)
    if n == 0:
        y.fill_(1)
    elif n == 1:
        y.zero_()
    else:
        y.copy_(x)
    return y


def write_then_break(x, n: int):
    y = x.clone()
    for i in range(n):
        y[i % 3] = i
        if y.sum() > 15:
            y += 1
            break
        y -= 0.5
    return y


def write_then_return(x, n: int):
    y = x.clone()
    for i in range(n):
        y[i % 3] += i
        if y.sum() > 25:
            y[0] = -1
            return y
    y[1] = -2
    return y


def while_with_writes(x):
    y = x.clone()
    while y.sum() < 40:
        y[0] += 1
        y[:, 1] *= 2
        y[1] += 1
    return y


def cumulative(x):
    y = x.clone()
    for i in range(1, x.size(0)):
        y[i] += y[i - 1]
    return y


def dynamic_programming(x):
    n = x.size(0)
    cost = torch.full((n + 1, n + 1), 100.0)
    cost[0, 0] = 0
    for i in range(n):
        for j in range(n):
            d = (x[i] - x[j]).abs().sum()
            best = torch.min(torch.min(cost[i, j + 1], cost[i + 1, j]), cost[i, j])
            cost[i + 1, j + 1] = d + best
    return cost[1:, 1:]


def bubble_sort(x):
    v = x.reshape(-1).flip(0).clone()
    n = v.size(0)
    for i in range(n):
        for j in range(n - 1 - i):
            if v[j] > v[j + 1]:
                t = v[j].clone()
                v[j] = v[j + 1]
                v[j + 1] = t
    return v


def augmented_scalar(x, n: int):
    total = torch.tensor(0.0)
    for i in range(n):
        total += x[i % 3].sum()
    return total


def rows_of_tensor_written(x):
    y = x.clone()
    for row in y:
        row *= 2
    return y


def rows_unbound_written(x):
    y = x.clone()
    a, b = y.unbind(1)
    if x.sum() > 0:
        a += 10
    else:
        b.zero_()
    return y, a, b


def expanded_read(x, n: int):
    y = x.clone()
    e = y[:1].expand(3, 2)
    for i in range(n):
        y[0] += i
    return e + y


def read_before_and_after(x, n: int):
    y = x.clone()
    before = y[0] * 1
    alias = y[0]
    for _i in range(n):
        y[0] += 1
    return before, alias, y


def number_read_before_write(x, n: int):
    y = x.clone()
    first = float(y[0, 0])
    k = int(y[1, 0])
    for _i in range(n):
        y += 1
        last = float(y[0, 0])
        y[0] += last
    return y * first, k


def clamp_in_loop(x, n: int):
    y = x.clone()
    for i in range(n):
        y.clamp_(min=i * 1.0)
        y.relu_()
    return y


def slice_of_carried(x, n: int):
    h = x
    for i in range(n):
        h = torch.cat([h, x])
        h[-1] = i
    return h


def writes_view_of_carried(x, n: int):
    h = x.clone()
    for i in range(n):
        h = h * 2
        v = h[0]
        v += i
        w = v[:1]
        w.zero_()
    return h


def branch_choses_target(x, n: int):
    a, b = x.clone(), x * 2
    if n > 2:
        a[0] = 9
    else:
        b[0] = 8
    return a, b


def conditional_copy(x):
    y = torch.zeros_like(x)
    for i in range(x.size(0)):
        if x[i].sum() > 0:
            y[i].copy_(x[i])
        else:
            y[i] = -1
    return y


def zero_length_slices(x, n: int):
    y = x.clone()
    for i in range(n):
        y[i:i] = 5
        y[i : i + 1] += 1
    return y


def setdiff_of_flags(x, n: int):
    seen = torch.zeros(6, dtype=torch.bool)
    count = torch.zeros(6, dtype=torch.int64)
    for i in range(n):
        k = i * 2 % 6
        if not bool(seen[k]):
            seen[k] = True
            count[k] += 1
        else:
            count[k] += 10
    return seen, count


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("rows", torch.zeros(6, 2))
        self.steps = 2

    def forward(self, x, n: int):
        for i in range(n):
            self.rows[i] = x[i % 3] + self.count
            self.count += 1
            self.steps += 1
        return self.rows + self.count, self.steps


class BufferInBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.calls = 0

    def forward(self, x):
        if x.sum() > 0:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.calls += 1
        else:
            self.mean = self.mean + x.mean(0)
        return x - self.mean, self.calls


class BufferReplaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.ones(2))

    def forward(self, x, n: int):
        for i in range(n):
            self.state = torch.tanh(self.state + x[i % 3])
            if i == 2:
                self.state = self.state * 0
        return self.state * 2


class ParameterRead(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2).eval()

    def forward(self, x, n: int):
        for i in range(n):
            x = self.norm(self.layer(x)) if i % 2 == 0 else x + 1
        return x


LENGTHS = [
    (torch.arange(12.0).reshape(6, 2), torch.tensor([1, 3, 2])),
    (torch.arange(14.0).reshape(7, 2), torch.tensor([4, 0, 0, 3])),
    (torch.arange(2.0).reshape(1, 2), torch.tensor([1])),
    (torch.zeros(0, 2), torch.tensor([0, 0])),
]
PAIRS = [(ONES, ROWS), (-ONES, ROWS), (0 * ONES, ROWS)]


def reshaped_on_each_path(x):
    y = x.clone()
    total = y.sum()
    if total > 0:
        row = x
    else:
        row = x.sum(0)
    y.unsqueeze_(0)
    y.transpose_(0, 1)
    return row * 2, y + total, y.dim()


def reshaped_and_appended(x):
    kept: list[torch.Tensor] = [x[None]]
    for i in range(x.size(0)):
        y = x * i
        y.unsqueeze_(0)
        kept.append(y)
    return torch.cat(kept)


def reshaped_under_two_names(x):
    y = x.clone()
    z = y
    y.unsqueeze_(1)
    if x.sum() > 0:
        z += 1
    return z, y


def previous_row(x):
    out = torch.zeros_like(x)
    previous = torch.ones(2)
    for i in range(x.size(0)):
        out[i] = x[i] + previous * 0.5
        previous = out[i]
    return out, previous


def start_written(x, n: int):
    a = x.clone()
    h = a
    total = torch.zeros(3, 2)
    for _i in range(n):
        h.mul_(2)
        h = h + 1
        total = total + h
    return total, h


def number_becomes_tensor(x, n: int):
    k = n + 1
    t = torch.tensor(k)
    for _i in range(n):
        t += k
    return t, k


def two_starts_one_memory(x, n: int):
    a = x.clone()
    b = a[0]
    for _i in range(n):
        a[1] = b * 2
        a[0] += 1
    return a, b


def out_resized(x):
    y = torch.empty(0)
    torch.add(x, 1, out=y)
    if x.sum() > 0:
        torch.mul(y, 2, out=y)
    return y


def writes_after_the_loop(x, n: int):
    y = x.clone()
    h = x * 3
    for _i in range(n):
        h = h + y
    y += 1
    return h, y


def row_views_in_nested_loops(x, n: int):
    y = x.clone()
    for i in range(n):
        row = y[i % 3]
        for j in range(2):
            cell = row[j : j + 1]
            cell += i
            row[0] -= 1
    return y


WRITES: list[Typed] = [
    (reshaped_on_each_path, SIGNS),
    (reshaped_and_appended, SIZES),
    (reshaped_under_two_names, SIGNS),
    (previous_row, SIZES),
    (start_written, COUNTS),
    (number_becomes_tensor, COUNTS),
    (two_starts_one_memory, COUNTS),
    (out_resized, SIGNS),
    (writes_after_the_loop, COUNTS),
    (row_views_in_nested_loops, COUNTS),
    (unpack_sequences, LENGTHS),
    (add_in_one_branch, PAIRS),
    (add_in_both_branches, PAIRS),
    (writes_input_in_loop, COUNTS),
    (view_outside_written_inside, COUNTS),
    (view_outside_written_in_branch, SIGNS),
    (view_inside_written_outside, COUNTS),
    (base_written_after_branch_view, COUNTS),
    (chain_of_views_nested, COUNTS),
    (in_place_on_carried, COUNTS),
    (in_place_on_carried_first, COUNTS),
    (carried_input_written, COUNTS),
    (swap, COUNTS),
    (swap_and_write, COUNTS),
    (two_names, COUNTS),
    (two_names_in_loop, COUNTS),
    (dynamic_slices, [(ROWS, 3), (ROWS, 0), (ROWS, 1), (ROWS, 6)]),
    (overlap_add, [(torch.arange(3.0),), (torch.arange(5.0),), (torch.ones(1),), (torch.ones(0),)]),
    (negative_steps, COUNTS),
    (masked_in_loop, COUNTS),
    (masked_fill_in_loop, COUNTS),
    (indices_in_loop, COUNTS),
    (index_put_accumulates, COUNTS),
    (scatter_in_loop, COUNTS),
    (transposed_views, COUNTS),
    (out_in_loop, COUNTS),
    (out_of_view_in_branch, SIGNS),
    (fill_in_branches, COUNTS),
    (write_then_break, COUNTS),
    (write_then_return, COUNTS),
    (while_with_writes, [(ONES,), (ROWS,), (100 * ONES,)]),
    (cumulative, SIZES),
    (dynamic_programming, SIZES),
    (bubble_sort, SIZES),
    (augmented_scalar, COUNTS),
    (rows_of_tensor_written, SIZES),
    (rows_unbound_written, SIGNS),
    (expanded_read, COUNTS),
    (read_before_and_after, COUNTS),
    (number_read_before_write, COUNTS),
    (clamp_in_loop, COUNTS),
    (slice_of_carried, COUNTS),
    (writes_view_of_carried, COUNTS),
    (branch_choses_target, COUNTS),
    (conditional_copy, SIZES),
    (zero_length_slices, COUNTS),
    (setdiff_of_flags, COUNTS),
    (Counter(), COUNTS),
    (BufferInBranch(), SIGNS),
    (BufferReplaced(), COUNTS),
    (ParameterRead(), COUNTS),
]
