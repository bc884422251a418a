"""Sizes that the data decide, recorded by torch.export: computed in the graph, for any count."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.lower.ops.harness import check


def counts(*values):
    return [torch.tensor(v) for v in values]


def floats(*rows):
    return [torch.tensor(r, dtype=torch.float32) for r in rows]


N = counts(4, 2, 7, 1, 3)
N0 = counts(4, 2, 0, 7, 1)
SIGNS = floats(
    [1.0, -2, 3, 0, 4, -1],
    [-1.0, -2, -3, -4, -5, -6],
    [1.0, 2, 3, 4, 5, 6],
    [0.0, 0, 0, 0, 0, 1],
)
ROWS = [torch.stack([s, -s, s.roll(1)]) for s in SIGNS]
INTEGERS = [
    torch.tensor(v) for v in ([3, 1, 3, 0, 2], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [5, 4, 3, 2, 1])
]


def checked(n):
    n = n.item()
    torch._check(n >= 0)
    torch._check(n <= 100)
    return n


# -- .item() -------------------------------------------------------------------------------------


def zeros_of_item(n):
    return torch.zeros(n.item(), 3) + 1


def zeros_of_checked_item(n):
    return torch.zeros(checked(n), 3) + 1


def arange_of_item(n):
    return torch.arange(n.item()) * 2, torch.arange(1, n.item() + 1), torch.arange(n.item(), 20, 3)


def full_of_item(n):
    return torch.full((n.item(), 2), 7.0), torch.ones(2, n.item()), torch.empty(n.item()).zero_()


def eye_of_item(n):
    return torch.eye(checked(n))


def linspace_of_item(n):
    return torch.linspace(0, 1, checked(n))


def item_in_arithmetic(n):
    k = n.item()
    return torch.zeros(k * 2 + 1), torch.ones(3) * k, torch.ones(2) / (k + 1), torch.tensor(k)


def item_returned(n):
    return n.item() + 1, n.item() * 2.5


def two_items(n):
    a = n.item()
    b = (n + 2).item()
    torch._check(a >= 0)
    torch._check(b >= 0)
    return torch.zeros(a, b), torch.cat([torch.zeros(a), torch.ones(b)])


def equal_items(n):
    a, b = n.item(), (n * 1).item()
    torch._check(a == b)
    torch._check(a >= 0)
    return torch.zeros(a) + torch.ones(b)


def doubled_item(n):
    a, b = n.item(), (n * 2).item()
    torch._check(a >= 0)
    torch._check(b == 2 * a)
    return torch.zeros(b).reshape(a, 2), torch.ones(a)


def item_of_bool(n):
    return torch.ones(3) * (n > 3).item()


def item_of_float(n):
    k = (n / 2).item()
    return torch.ones(2) * k, torch.full((2,), k), torch.ones(2) + k


def item_to_branch(n):
    k = checked(n)
    return torch.cond(k > 3, lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))


def int_of_tensor(n):
    return torch.zeros(int(n)), torch.ones(2) * float(n)


def item_as_shift(n):
    return torch.arange(6).roll(1) + n.item(), torch.ones(3).mul(n.item()).add(2, alpha=n.item())


def expand_to_item(n):
    return torch.arange(3)[None].expand(checked(n), 3), torch.ones(1, 2).repeat(checked(n), 1)


def one_hot_of_item(n):
    return F.one_hot(torch.tensor([0, 1]), checked(n) + 2)


def mask_of_lengths(n):
    k = checked(n)
    return torch.arange(k)[None] < torch.tensor([1, 2])[:, None]


def tolist_of_lengths(n):
    a, b = torch.stack([n, n + 1]).tolist()
    torch._check(a >= 0)
    torch._check(b >= 0)
    return torch.zeros(a), torch.ones(b)


def maximum_of_lengths(n):
    lengths = torch.stack([n, n + 2, n - n])
    longest = lengths.max().item()
    torch._check(longest >= 0)
    return torch.arange(longest)[None] < lengths[:, None]


# -- an item that cuts a tensor ------------------------------------------------------------------

X = torch.arange(24.0).reshape(8, 3)


def cut(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k], x[k:], x[:k].sum(), x[k:].shape[0]


def narrowed(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x.narrow(0, 0, k), torch.narrow(x, 0, k, x.shape[0] - k)


def split_at(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    a, b = x.split([k, x.shape[0] - k])
    return a * 2, b


def selected(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k < x.shape[0])
    return x[k], x.select(0, k) * 2, x[k, 1]


def selected_without_check(x, n):
    return x[n.item()], x[n]


def view_of_item(x, n):
    k = n.item()
    torch._check(k > 0)
    y = torch.zeros(k, 4) + x.sum()
    return y.view(-1), y.reshape(4, k), y.flatten().view(k, 2, 2), y.T.contiguous()


def written_to_item(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    y = x.clone()
    y[:k] = 0
    y[k:] += 1
    return y


def padded_to_item(x, n):
    k = checked(n)
    return F.pad(x, (0, 0, 0, k)), torch.cat([x, x.new_zeros(k, 3)])


# -- masks and places ----------------------------------------------------------------------------


def masked(x):
    y = x[x > 0]
    return y * 2, y.sum(), y.shape[0], torch.ones(y.shape[0])


def masked_rows(x):
    y = x[x[:, 0] > 0]
    return y, y.sum(0), y.softmax(-1), y @ y.mT, y.reshape(-1), y.flatten(), y.mean(-1)


def masked_columns(x):
    return x[:, x[0] > 0], x[:, x[0] > 0].sum(1)


def masked_sorted(x):
    y = x[x > 0]
    return y.sort()[0], y.argsort(), y.cumsum(0), y.flip(0), torch.cat([y, y]), torch.stack([y, y])


def masked_select(x):
    return torch.masked_select(x, x > 0), x.masked_select(x < 0).abs()


def masked_written(x):
    y = x.clone()
    y[y > 0] = 7
    y[y < 0] *= 2
    return y


def masked_assigned(x):
    y = x.clone()
    positive = y[y > 0]
    y[y > 0] = positive * positive.shape[0]
    return y


def nonzero(x):
    places = x.nonzero()
    return places, places.shape[0], places.float().sum(0), x.nonzero(as_tuple=True)


def where_places(x):
    rows, columns = torch.where(x > 0)
    return x[rows, columns], rows.bincount(minlength=3), rows * 2 + columns


def gathered_by_places(x):
    rows = (x[:, 0] > 0).nonzero().squeeze(1)
    return x[rows], x.index_select(0, rows), torch.zeros_like(x).index_add(0, rows, x[rows])


def argwhere(x):
    return torch.argwhere(x > 1), torch.count_nonzero(x)


def scattered_back(x):
    keep = x[:, 0] > 0
    out = torch.zeros_like(x)
    out[keep] = x[keep] * 2
    return out


def padded_after_mask(x):
    y = x[x > 0]
    return F.pad(y, (0, 6 - y.shape[0])), F.pad(y, (1, 2), value=3.0)


def concatenated(x):
    a, b = x[x > 0], x[x <= 0]
    return torch.cat([a, b]), torch.cat([b, a]).reshape(x.shape), a.shape[0] - b.shape[0]


def batch_of_ones(x):
    y = x[x[:, 0] > 0]
    return F.linear(y, torch.ones(2, 6)), F.layer_norm(y, (6,)), y.unsqueeze(1).expand(-1, 2, -1)


def convolved(x):
    y = x[x[:, 0] > 0].unsqueeze(1)
    return F.conv1d(y, torch.ones(2, 1, 3)), F.max_pool1d(y, 2), F.relu(y).transpose(0, 1)


def normalized(x):
    y = x[x[:, 0] > 0]
    return (
        F.batch_norm(y, torch.zeros(6), torch.ones(6)),
        F.group_norm(y, 2),
        y.logsumexp(0),
        torch.cdist(y, x),
        y.norm(dim=1),
    )


def attended(x):
    y = x[x[:, 0] > 0][None]
    return F.scaled_dot_product_attention(y, y, y), torch.einsum("bij,kj->bik", y, x)


def cut_after_mask(x):
    y = x[x > 0]
    return y[:3], y[-2:], y.flip(0)[:2], y[:0], y[1:]


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        chosen = x.argmax(-1) % 3
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows = (chosen == index).nonzero().squeeze(1)
            out.index_add_(0, rows, expert(x[rows]))
        return out


def thresholded_boxes(x):
    scores = x.sigmoid().max(-1).values
    keep = scores > 0.7
    order = scores[keep].argsort(descending=True)
    return x[keep][order], scores[keep][order]


def chained_masks(x):
    y = x[x[:, 0] > -2]
    z = y[y[:, 1] > 0]
    w = z[z.sum(1) > 1]
    return y, z, w, y.shape[0] + z.shape[0] * w.shape[0]


# -- sets, repeats -------------------------------------------------------------------------------


def unique(x):
    values = torch.unique(x)
    return values, values.shape[0]


def unique_all(x):
    return torch.unique(x, return_inverse=True, return_counts=True)


def unique_rows(x):
    return torch.unique(x[:, None].expand(-1, 2), dim=0)


def unique_consecutive(x):
    return torch.unique_consecutive(x, return_counts=True)


def repeated(x):
    return torch.repeat_interleave(x, x), torch.repeat_interleave(x), x.repeat_interleave(2)


def repeated_rows(x):
    y = torch.stack([x, x + 1], 1)
    out = y.repeat_interleave(x, dim=0)
    return out, out.shape[0], out.sum(0)


def counted(x):
    return torch.bincount(x), torch.bincount(x, minlength=4), F.one_hot(x)


def split_by_lengths(x):
    lengths = x.tolist()
    for k in lengths:
        torch._check(k >= 0)
    pieces = [torch.full((k,), float(i)) for i, k in enumerate(lengths)]
    return torch.cat(pieces), pieces[0].sum()


CASES = [
    *[(f, [(n,) for n in N0], None) for f in (
        zeros_of_item, zeros_of_checked_item, arange_of_item, full_of_item, eye_of_item,
        linspace_of_item, item_in_arithmetic, item_returned, two_items, equal_items, doubled_item,
        item_of_bool, item_of_float, item_to_branch, int_of_tensor, item_as_shift, expand_to_item,
        one_hot_of_item, mask_of_lengths, tolist_of_lengths, maximum_of_lengths,
    )],
    *[(f, [(X, torch.tensor(n)) for n in (3, 0, 8, 1)], None)
      for f in (cut, narrowed, split_at, written_to_item, padded_to_item)],
    *[(f, [(X, torch.tensor(n)) for n in (3, 0, 7, 1)], None)
      for f in (selected, selected_without_check)],
    (view_of_item, [(X, torch.tensor(n)) for n in (3, 8, 1)], None),
    *[(f, [(X, torch.tensor(3)), (X[:5], torch.tensor(5)), (X[:2], torch.tensor(0))], {0: [0]})
      for f in (cut, written_to_item)],
    *[(f, [(x,) for x in SIGNS], None) for f in (
        masked, masked_sorted, masked_select, masked_written, masked_assigned, nonzero,
        padded_after_mask, concatenated, argwhere, cut_after_mask,
    )],
    *[(f, [(x,) for x in ROWS], None) for f in (
        masked, masked_rows, masked_columns, masked_written, nonzero, where_places,
        gathered_by_places, scattered_back, batch_of_ones, convolved, Experts(), thresholded_boxes,
        chained_masks, argwhere, normalized, attended,
    )],
    *[(f, [(ROWS[0],), (ROWS[2][:1],), (ROWS[1].repeat(2, 1),)], {0: [0]}) for f in (
        masked, masked_rows, masked_columns, nonzero, gathered_by_places, scattered_back, Experts(),
        chained_masks,
    )],
    *[(f, [(x,) for x in INTEGERS], None) for f in (
        unique, unique_all, unique_rows, unique_consecutive, repeated, repeated_rows, counted,
        split_by_lengths,
    )],
    *[(f, [(INTEGERS[0],), (INTEGERS[1][:2],), (INTEGERS[3].repeat(3),)], {0: [0]}) for f in (
        unique, unique_all, unique_consecutive, repeated, repeated_rows, counted,
    )],
]  # fmt: skip


def _name(case):
    model = case[0]
    name = getattr(model, "__name__", type(model).__name__)
    return f"{name}{'-dynamic' if case[2] else ''}-{tuple(case[1][0][0].shape)}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_equal_to_eager(case):
    model, (first, *others), dynamic = case
    check(model, *first, dynamic=dynamic, others=others, captures=("export",))
