"""Writes through masks and other index tensors, where a mask selects another number than in the
example: none, one, several."""

from __future__ import annotations

import pytest
import torch

import sardonyx

X = torch.randn(5, 4, 3)
MASKS = {
    5: [[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]],
    4: [[1, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]],
}
INDICES = {
    "mask": (5, lambda m: m),
    "None, mask": (5, lambda m: (None, m)),
    "mask, None": (5, lambda m: (m, None)),
    "None, mask, None": (5, lambda m: (None, m, None)),
    "mask, int": (5, lambda m: (m, 1)),
    "mask, -1": (5, lambda m: (m, -1)),
    "mask, slice": (5, lambda m: (m, slice(1, None))),
    "mask, ..., int": (5, lambda m: (m, ..., 0)),
    "mask, two ints": (5, lambda m: (m, 0, 1)),
    "mask, number": (5, lambda m: (m, torch.tensor(1))),
    "mask, indices": (5, lambda m: (m, torch.tensor([1]))),
    "mask, :, indices": (5, lambda m: (m, slice(None), torch.tensor([1]))),
    "slice, mask": (4, lambda m: (slice(None, 2), m)),
    "slice of one, mask": (4, lambda m: (slice(None, 1), m)),
    "steps, mask": (4, lambda m: (slice(None, None, 2), m)),
    "int, mask": (4, lambda m: (1, m)),
    "int, None, mask": (4, lambda m: (0, None, m)),
    "None, ..., mask": (4, lambda m: (None, ..., m, slice(None))),
    "nonzero": (4, lambda m: (torch.tensor([0]), m.nonzero()[:, 0])),
}


def added(x, index):
    x[index] += 1
    return x


def scaled(x, index):
    x[index] = x[index] * 2
    return x


def with_another_dim(x, index):
    x[index] = (x[index] * 2)[None]
    return x


def with_a_row(x, index):
    x[index] = x[:1, 0, 0].clone().reshape(1, 1)
    return x


WRITES = [added, scaled, with_another_dim, with_a_row]


@pytest.mark.parametrize(
    ("capture", "write"), [("export", added), *(("trace", write) for write in WRITES)]
)
@pytest.mark.parametrize(("size", "index"), INDICES.values(), ids=INDICES)
def test_a_write_where_a_mask_selects(size, index, write, capture):
    masks = [torch.tensor(mask).bool() for mask in MASKS[size]]
    one_or_several = 1 if write is added else 0

    def model(x, mask):
        return write(x.clone(), index(mask))

    program = sardonyx.export(model, (X, masks[one_or_several]), capture=capture)
    assert program.notes == ()
    for mask in masks:
        torch.testing.assert_close(program(X, mask), model(X, mask))


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("write", [added, scaled])
def test_a_write_through_a_mask_of_bytes(write):
    several, one, none, _ = (torch.tensor(mask) for mask in MASKS[5])

    def model(x, mask):
        return write(x.clone(), (None, mask.byte()))

    program = sardonyx.export(model, (X, one), capture="trace")
    assert program.notes == ()
    for mask in (several, one, none):
        torch.testing.assert_close(program(X, mask), model(X, mask))


def test_the_value_may_have_a_dynamic_size():
    def model(x, rows):
        x = x.clone()
        x[torch.tensor([0, 2])] = rows[None]
        return x

    axes = {"x": {2: "n"}, "rows": {1: "n"}}
    program = sardonyx.export(model, (X, X[0]), capture="trace", dynamic_axes=axes)
    for n in (0, 1, 2, 7):
        x = torch.randn(5, 4, n)
        torch.testing.assert_close(program(x, x[0] * 3), model(x, x[0] * 3))
