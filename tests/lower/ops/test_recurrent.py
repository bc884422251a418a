from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import sardonyx
from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(7, 3, 5)

KINDS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn-tanh": nn.RNN,
    "rnn-relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
}
SETTINGS = {
    "plain": {},
    "no-bias": {"bias": False},
    "bidirectional": {"bidirectional": True},
    "two-layers": {"num_layers": 2, "batch_first": True, "dropout": 0.5},
    "all": {"num_layers": 3, "batch_first": True, "bidirectional": True, "bias": False},
}
CASES = list(itertools.product(KINDS, SETTINGS))


@pytest.mark.parametrize(("kind", "settings"), CASES, ids=["-".join(c) for c in CASES])
def test_layers(kind, settings):
    check(KINDS[kind](5, 4, **SETTINGS[settings]), X)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_written_from_where_they_lie(kind, monkeypatch, tmp_path):
    model = KINDS[kind](5, 64, bidirectional=True)
    program = sardonyx.export(model, (X,), capture="trace")
    monkeypatch.setattr(torch, "cat", lambda *_: pytest.fail("a copy of the weights"))
    program.save(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > sum(p.nbytes for p in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states_and_sizes_that_change(kind):
    model = KINDS[kind](5, 4, num_layers=2, bidirectional=True)

    def states(batch):
        made = torch.randn(4, batch, 4), torch.randn(4, batch, 4)
        return made if kind == "lstm" else made[:1]

    class WithStates(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x, *state):
            return self.model(x, state if len(state) == 2 else state[0])

    other = (torch.randn(11, 2, 5), *states(2))
    dynamic = {0: (0, 1), 1: (1,)} | ({2: (1,)} if kind == "lstm" else {})
    check(WithStates(), X, *states(3), dynamic=dynamic, others=[other], opsets=(17, 20))


@pytest.mark.parametrize("kind", KINDS)
def test_batch_first_with_sizes_that_change(kind):
    model = KINDS[kind](5, 4, batch_first=True)
    check(model, X, dynamic={0: (0, 1)}, others=[(torch.randn(2, 9, 5),)])


def test_unbatched():
    check(nn.LSTM(5, 4, bidirectional=True), X[:, 0])
    check(nn.GRU(5, 4), X[:, 0])


@pytest.mark.parametrize("settings", SETTINGS)
def test_lstm_with_projections(settings):
    check(
        nn.LSTM(5, 4, proj_size=2, **SETTINGS[settings]),
        X,
        dynamic={0: (1,)} if settings == "plain" else None,
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_projections_over_a_length_that_may_change(settings):
    check(
        nn.LSTM(5, 4, proj_size=2, **SETTINGS[settings]),
        X,
        dynamic={0: (0, 1)},
        others=[(torch.randn(4, 3, 5),), (torch.randn(1, 6, 5),)],
    )


@pytest.mark.parametrize("bidirectional", [False, True])
def test_projections_over_packed_sequences(bidirectional):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(5, 4, num_layers=2, proj_size=2, bidirectional=bidirectional)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            output, (hidden, cell) = self.lstm(packed)
            return *nn.utils.rnn.pad_packed_sequence(output), hidden, cell

    x = torch.randn(6, 3, 5)
    check(Model(), x, torch.tensor([4, 6, 1]), others=[(x, torch.tensor([6, 2, 5]))])


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn-tanh"])
def test_weights_computed_by_the_model(kind):
    operator = {"lstm": torch.lstm, "gru": torch.gru, "rnn-tanh": torch.rnn_tanh}[kind]
    gates = {"lstm": 4, "gru": 3, "rnn-tanh": 1}[kind]

    def run(x, w, r, bi, bh):
        zeros = torch.zeros(1, 3, 4)
        state = [zeros, zeros] if kind == "lstm" else zeros
        params = [w * 2, r * 2, bi, bh]
        return operator(x, state, params, True, 1, 0.0, False, False, False)

    rows = gates * 4
    weights = torch.randn(rows, 5), torch.randn(rows, 4), torch.randn(rows), torch.randn(rows)
    check(run, X, *weights)


def test_one_node_per_layer():
    program = check(nn.LSTM(5, 4, num_layers=3, bidirectional=True), X)
    assert [n.op_type for n in program.model.graph].count("LSTM") == 3


@pytest.mark.parametrize("bias", [True, False])
def test_cells(bias):
    cells = nn.LSTMCell(5, 4, bias), nn.GRUCell(5, 4, bias), nn.RNNCell(5, 4, bias)
    relu = nn.RNNCell(5, 4, bias, nonlinearity="relu")

    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([*cells, relu])

        def forward(self, x, h, c):
            lstm, *others = self.cells
            return [*lstm(x, (h, c)), *(cell(x, h) for cell in others)]

    model = Cells()
    h, c = torch.randn(3, 4), torch.randn(3, 4)
    other = (torch.randn(6, 5), torch.randn(6, 4), torch.randn(6, 4))
    check(model, X[0], h, c, dynamic={0: (0,), 1: (0,), 2: (0,)}, others=[other])
    check(model, X[0, 0], h[0], c[0])


def test_dropout_between_layers_in_training_mode():
    program = sardonyx.export(
        nn.GRU(5, 4, num_layers=2, dropout=0.5), (X,), training=sardonyx.TrainingMode.TRAINING
    )
    assert [n.op_type for n in program.model.graph].count("Dropout") == 1


class Packed(nn.Module):
    def __init__(self, layer, **padding):
        super().__init__()
        self.layer = layer
        self.padding = padding

    def forward(self, x, lengths):
        pack, pad = nn.utils.rnn.pack_padded_sequence, nn.utils.rnn.pad_packed_sequence
        first = {"batch_first": self.layer.batch_first}
        output, state = self.layer(pack(x, lengths, **first))
        return *pad(output, **first, **self.padding), state


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind):
    layer = KINDS[kind](5, 4, num_layers=2, bidirectional=True)
    lengths, dynamic = torch.tensor([7, 4, 2]), {0: (0, 1), 1: (0,)}
    others = [
        (torch.randn(7, 3, 5), torch.tensor([5, 5, 1])),
        (torch.randn(9, 2, 5), torch.tensor([8, 3])),
    ]
    check(Packed(layer), X, lengths, dynamic=dynamic, others=others)


def test_packed_sequences_padded_further():
    layer = nn.GRU(5, 4, batch_first=True)
    model = Packed(layer, padding_value=-3.0, total_length=9)
    # torch.export refuses to compare a total length with one that the data know.
    check(model, X.transpose(0, 1).contiguous(), torch.tensor([7, 4, 2]), captures=("trace",))


@pytest.mark.parametrize("capture", ["trace"])
def test_a_packed_sequence_padded_to_a_total_length(capture):
    def repacked(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=10)[0]

    x = torch.randn(2, 6, 3)
    program = sardonyx.export(repacked, (x, torch.tensor([6, 4])), capture=capture)
    shorter = torch.tensor([3, 2])
    torch.testing.assert_close(program(x, shorter), repacked(x, shorter))
