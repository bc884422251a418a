"""Slices of tensors of fixed sizes by dynamic bounds: tables of positions, masks, caches."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
r = torch.randn
TABLE = r(16, 3)
MASK = torch.ones(16, 16).tril().bool()
WITHIN = (0, 1, 2, 7, 16)
ALL = (*WITHIN, 17, 20)


def rows(x):
    return TABLE[: x.shape[0]]


def written(x, value):
    table = TABLE.clone()
    table[: x.shape[0]] = value
    return table


BEYOND = {
    "itself": rows,
    "length": lambda x: torch.ones(rows(x).shape[0]),
    "the_rest": lambda x: torch.ones(TABLE[x.shape[0] :].shape[0]),
    "last": lambda x: torch.ones_like(TABLE[-x.shape[0] :]),
    "step": lambda x: torch.ones_like(TABLE[: x.shape[0] : 2]),
    "sum": lambda x: rows(x).sum(0) + x.sum(0),
    "joined": lambda x: torch.cat([rows(x), x]),
    "flat": lambda x: rows(x).flatten(),
    "product": lambda x: x @ rows(x).T,
    "repeated": lambda x: rows(x).expand(2, -1, -1),
    "positions": lambda x: F.embedding(torch.arange(16)[: x.shape[0]], TABLE),
    "two_tables": lambda x: rows(x) * TABLE.cos()[: x.shape[0]],
    "cut": lambda x: TABLE[: min(x.shape[0], 16)] + x[:16],
    "write": lambda x: written(x, 3.0),
    "attention": lambda x: F.scaled_dot_product_attention(x, rows(x), rows(x)),
}


@BOTH
@pytest.mark.parametrize("name", BEYOND)
def test_a_slice_ends_with_its_table(name, capture):
    model = BEYOND[name]
    program = sardonyx.export(
        model, (r(8, 3),), capture=capture, dynamic_axes={"x": {0: "n"}}, input_names=["x"]
    )
    assert program.notes == ()
    for n in ALL:
        if (name, n) != ("attention", 0):
            x = r(n, 3)
            torch.testing.assert_close(program(x), model(x), equal_nan=True)


def rotated(x):
    n = x.shape[0]
    turned = x * TABLE.cos()[:n] + x.flip(-1) * TABLE.sin()[:n]
    return turned.view(1, n, 3).transpose(0, 1).reshape(n, 3)


FITTING = {
    "added": lambda x: x + rows(x),
    "added_to": lambda x: (rows(x) + x).reshape(x.shape[0], 3, 1),
    "masked": lambda x: (x @ x.T).masked_fill(MASK[: x.shape[0], : x.shape[0]], 0.0),
    "chosen": lambda x: torch.where(MASK[: x.shape[0], : x.shape[0]], x @ x.T, 0.0),
    "positions": lambda x: F.embedding(torch.arange(16)[None, : x.shape[0]], TABLE)[0] + x,
    "rotated": rotated,
}
"""PyTorch raises beyond the table, and the result is as long as what meets it."""


@BOTH
@pytest.mark.parametrize("name", FITTING)
def test_what_meets_a_slice_says_how_long_it_is(name, capture):
    model = FITTING[name]
    program = sardonyx.export(
        model, (r(8, 3),), capture=capture, dynamic_axes={"x": {0: "n"}}, input_names=["x"]
    )
    assert program.notes == ()
    assert str(program.model.graph.outputs[0].shape[0]) == "n"
    assert not {node.op_type for node in program.model.graph} & {"Min", "Max", "Expand"}
    for n in WITHIN if name != "rotated" else WITHIN[1:]:
        x = r(n, 3)
        torch.testing.assert_close(program(x), model(x))


@BOTH
def test_a_slice_that_meets_the_whole_table(capture):
    def model(x):
        return (rows(x) + TABLE).flatten()

    program = sardonyx.export(
        model, (r(16, 3),), capture=capture, dynamic_axes={"x": {0: "n"}}, input_names=["x"]
    )
    assert list(program.model.graph.outputs[0].shape) == [48]
    for n in (1, 16, 17, 30):
        torch.testing.assert_close(program(r(n, 3)), model(r(n, 3)))


OF_TWO = {
    "position": lambda x, y: x + TABLE[y.shape[0] : y.shape[0] + x.shape[0]],
    "position_first": lambda x, y: (TABLE[y.shape[0] : y.shape[0] + x.shape[0]] + x).view(
        x.shape[0], 3, 1
    ),
    "mask": lambda x, y: torch.where(
        MASK[y.shape[0] : y.shape[0] + x.shape[0], : y.shape[0] + x.shape[0]],
        x @ torch.cat([y, x]).T,
        -1.0,
    ).softmax(-1),
}


@BOTH
@pytest.mark.parametrize("name", OF_TWO)
def test_a_slice_behind_what_was_before(name, capture):
    model = OF_TWO[name]
    program = sardonyx.export(
        model,
        (r(5, 3), r(8, 3)),
        capture=capture,
        dynamic_axes={"x": {0: "n"}, "y": {0: "p"}},
        input_names=["x", "y"],
    )
    assert program.notes == ()
    assert str(program.model.graph.outputs[0].shape[0]) == "n"
    for n, p in ((5, 2), (3, 0), (1, 15), (2, 14), (1, 1)):
        x, y = r(n, 3), r(p, 3)
        torch.testing.assert_close(program(x, y), model(x, y))


@BOTH
def test_the_cache_of_a_decoder(capture):
    def model(x, y):
        cache, start, end = TABLE.clone(), y.shape[0], y.shape[0] + x.shape[0]
        cache[start:end] = x
        keys = cache[:end]
        return (x @ keys.T).softmax(-1) @ keys

    program = sardonyx.export(
        model,
        (r(5, 3), r(8, 3)),
        capture=capture,
        dynamic_axes={"x": {0: "n"}, "y": {0: "p"}},
        input_names=["x", "y"],
    )
    for n, p in ((5, 2), (3, 0), (1, 15), (2, 14), (1, 1)):
        x, y = r(n, 3), r(p, 3)
        torch.testing.assert_close(program(x, y), model(x, y))


@BOTH
def test_dims_that_become_one_where_a_slice_meets_them(capture):
    def model(x, y):
        return (x + TABLE[: y.shape[0]]) * 2

    program = sardonyx.export(
        model,
        (r(8, 3), r(8, 3)),
        capture=capture,
        dynamic_axes={"x": {0: "n"}, "y": {0: "m"}},
        input_names=["x", "y"],
    )
    (note,) = program.notes
    assert "n == Min(16, m): an operator takes them for one size" in note
    for n, m in ((2, 2), (16, 16), (16, 30), (5, 1), (1, 5)):
        x, y = r(n, 3), r(m, 3)
        torch.testing.assert_close(program(x, y), model(x, y))


def test_a_question_about_a_slice_is_noted():
    def model(x):
        return x * 2 if rows(x).shape[0] == x.shape[0] else x

    program = sardonyx.export(
        model, (r(8, 3),), capture="export", dynamic_axes={"x": {0: "n"}}, input_names=["x"]
    )
    (note,) = program.notes
    assert "holds where Min(16, n) == n: the model decides by it" in note


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(r(1, 32, 8))
        self.words = nn.Embedding(9, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.register_buffer("mask", torch.full((32, 32), float("-inf")).triu(1))

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.words(tokens) + self.positions[:, :n]
        return self.layers(x, mask=self.mask[:n, :n])


@BOTH
def test_positions_and_mask_of_an_encoder(capture):
    model = Encoder().eval()
    tokens = torch.randint(9, (2, 6))
    program = sardonyx.export(
        model, (tokens,), capture=capture, dynamic_axes={"t": {0: "b", 1: "n"}}, input_names=["t"]
    )
    assert program.notes == ()
    assert "Pad" not in {node.op_type for node in program.model.graph}
    for shape in ((2, 6), (1, 1), (3, 2), (2, 32)):
        tokens = torch.randint(9, shape)
        torch.testing.assert_close(program(tokens), model(tokens), atol=1e-4, rtol=1e-4)
