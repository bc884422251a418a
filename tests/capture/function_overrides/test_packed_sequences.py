"""The lengths of packed sequences: a tensor, or numbers that are read off one."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import sardonyx
from sardonyx.errors import CaptureError

HINT = "the tensor itself, not a list of its items (pack_padded_sequence takes lengths as a tensor)"
X, LENGTHS = torch.randn(3, 5, 4), torch.tensor([5, 2, 3])
AXES = {"x": {0: "batch", 1: "time"}, "lengths": {0: "batch"}}


class Packs(torch.nn.Module):
    def __init__(self, as_given):
        super().__init__()
        self.gru = torch.nn.GRU(4, 3, batch_first=True)
        self.as_given = as_given

    def forward(self, x, lengths):
        given = self.as_given(lengths)
        packed = pack_padded_sequence(x, given, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]


def each(lengths):
    return [int(length) for length in lengths]


@pytest.mark.parametrize("capture", ["auto", "export"])
def test_a_list_of_as_many_lengths_as_in_the_example(capture):
    model = Packs(lambda lengths: lengths.tolist())
    program = sardonyx.export(model, (X, LENGTHS), capture=capture)
    assert program.notes == ()
    for lengths in ([5, 2, 3], [1, 4, 2]):
        inputs = X, torch.tensor(lengths)
        torch.testing.assert_close(program(*inputs), model(*inputs))


@pytest.mark.parametrize("as_given", [lambda lengths: lengths.tolist(), each], ids=["list", "each"])
def test_the_hint_where_there_may_be_any_number(as_given):
    with pytest.raises(CaptureError) as refusal:
        sardonyx.export(Packs(as_given), (X, LENGTHS), capture="export", dynamic_axes=AXES)
    assert HINT in str(refusal.value)


def test_each_of_any_number_of_lengths_by_default():
    model = Packs(each)
    program = sardonyx.export(model, (X, LENGTHS), dynamic_axes=AXES)
    for lengths in ([3], [2, 6], [1, 7, 7, 2, 5]):
        inputs = torch.randn(len(lengths), max(lengths), 4), torch.tensor(lengths)
        torch.testing.assert_close(program(*inputs), model(*inputs))


@pytest.mark.parametrize("capture", ["auto", "export", "trace"])
def test_what_the_hint_says_works(capture):
    model = Packs(lambda lengths: lengths)
    program = sardonyx.export(model, (X, LENGTHS), capture=capture, dynamic_axes=AXES)
    assert program.notes == ()
    for lengths in ([3], [2, 6], [1, 7, 7, 2, 5]):
        inputs = torch.randn(len(lengths), max(lengths), 4), torch.tensor(lengths)
        torch.testing.assert_close(program(*inputs), model(*inputs))


@pytest.mark.parametrize("make", [torch.as_tensor, torch.tensor], ids=["as_tensor", "tensor"])
def test_a_tensor_made_of_sizes_follows_them(make):
    program = sardonyx.export(
        lambda x: make([x.shape[0], 2]), (X,), capture="export", dynamic_axes={"x": {0: "n"}}
    )
    for n in (1, 3, 7):
        assert program(torch.randn(n, 5, 4)).tolist() == [n, 2]
