"""Programs that compute with sizes of tensors which may be empty."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.capture.torchscript.control_flow.programs_flow import Typed, rows

EMPTY_TOO = [(rows(5),), (rows(0),), (rows(1),), (rows(2),), (rows(3),)]


def size_of_a_rest(x):
    return torch.zeros((x[1:] * 2).size(0) + 1)


def sizes_of_slices(x):
    middle = x[1:3].size(0), x[2:-1].size(0), (x[-3:-1] + 1).numel()
    return x[:3].size(0), x[-2:].size(0), x[:-1].size(0), x[::2].size(0), x[1::3].size(0), middle


def slices_of_slices(x):
    y = x[1:]
    z = y[1:]
    return y.size(0), z.size(0), (z[1:] + 1).size(0), x[:2][1:].size(0), x[:-1][:-1].size(0)


def at_most_one_row(x):
    y = x[:1]
    last = x[-1:]
    return (y + 1).size(0), (y * last).size(0), (y @ torch.ones(2, 3)).size(0), y.clone().size(0)


def one_row_broadcast(x):
    y = x[:1]
    w = torch.ones(1, 2)
    chosen = torch.where(w > 0, y, w).size(0), torch.where(y > 0, w, w).size(0)
    return (w + y).size(0), torch.min(y, w).size(0), (y == w).size(0), y.clamp(w).size(0), chosen


def one_row_by_columns(x):
    y = x[:1, :1]
    column = torch.ones(1, 4)
    return (y * column).shape[0], torch.addcmul(column, y, column).size(0), y.expand(-1, 3).size(0)


def one_row_ordered(x):
    y = x[:1]
    parts = torch.cat([y, x[:2]]).size(0), torch.stack([y, y]).size(1), y.flip(0).size(0)
    return y.cumsum(0).size(0), y.sort(0)[0].size(0), y.roll(1, 0).size(0), parts


def one_row_written(x):
    y = x[:1].clone()
    y += 1
    y[:, 0] = 3.0
    return y, y.size(0)


def differences(x):
    y = torch.diff(x, dim=0)
    return y, y.size(0), torch.zeros(y.size(0) + 1), torch.diff(x, 2, 0).size(0)


def ranges_of_rests(x):
    i = torch.arange(x[1:].size(0))
    return torch.arange(x[:-2].size(0) + 2), x[i], x[i + 1] - x[i]


def questions_of_sizes(x):
    n = x.size(0)
    asked = n > 0, n == 0, x[1:].size(0) > 0, bool(n), not n
    return min(n, 1), max(n, 1), min(n - 1, 0), max(n - 1, 0), abs(n - 1), max(2 - n, 0), asked


def loops_over_rests(x):
    t = torch.zeros(1)
    for i in range(x[1:].size(0)):
        t = t + i
    n = 0
    while n < (x[:2] + 1).size(0):
        n += 1
    return t, n


def decided_by_rests(x):
    if x.size(0) == 0:
        return torch.full((1,), -1.0), 0
    if x[1:].size(0) == 0:
        return torch.full((1,), -2.0), 1
    return x.sum().reshape(1), x.size(0)


def halves_by_size(x):
    n = x.size(0)
    h = n // 2
    return torch.cat([x[h:], x[:h]]), x[:h].size(0), x[n - 1 :], x[max(n - 2, 0) :], x[-min(n, 3) :]


def pieces(x):
    total = torch.zeros(0)
    for piece in x.split(2):
        total = torch.cat([total, piece.sum().reshape(1)])
    return total, len(x.chunk(3)), torch.tensor_split(x, 3)[2].size(0), F.pad(x, [1, 1, 2, 0]).shape


def views_of_rests(x):
    y = x[1:]
    wide = y.unsqueeze(1).expand(-1, 3, -1).reshape(-1, 2)
    return y.view(-1, 1, 2).size(0), y.reshape(-1).size(0), wide.size(0), y.repeat(2, 3).size(0)


def masked_rests(x):
    y = x[x.sum(1) > 0]
    return y.size(0), y[1:].size(0), (y[:1] + 1).size(0), torch.zeros(y[:-1].size(0) + 1)


def filled_behind(x):
    sums = torch.zeros(x.size(0) + 1, 2)
    sums[1:] = x.cumsum(0)
    return sums[1:] - sums[:-1], torch.linspace(0, 1, x[1:].size(0) + 1)


def a_size_in_one_branch(x):
    if x.size(0) == 5:
        return (x + torch.ones(5, 1)).view(10)
    return x.sum(0)


def equal_in_one_branch(x, y):
    if x.size(0) == y.size(0):
        z = x + y
    else:
        z = torch.cat([x, y])
    return z, x.size(0) - y.size(0), x.size(0) == y.size(0)


SIZES: list[Typed] = [
    *(
        (program, EMPTY_TOO)
        for program in (
            size_of_a_rest,
            sizes_of_slices,
            slices_of_slices,
            at_most_one_row,
            one_row_broadcast,
            one_row_by_columns,
            one_row_ordered,
            one_row_written,
            differences,
            ranges_of_rests,
            questions_of_sizes,
            loops_over_rests,
            decided_by_rests,
            halves_by_size,
            pieces,
            views_of_rests,
            masked_rests,
            filled_behind,
            a_size_in_one_branch,
        )
    ),
    (
        equal_in_one_branch,
        [(rows(4), rows(4)), (rows(3), rows(2)), (rows(0), rows(0)), (rows(1), rows(3))],
    ),
]
