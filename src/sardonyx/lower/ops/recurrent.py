"""Recurrent networks: one ONNX node per layer, and the cells they are made of.

ATen and ONNX order the gates of a weight differently; a weight that is known is reordered here,
one that the model computes is reordered in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from sardonyx import _torch_private
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, sizes_of
from sardonyx.lower.kernels.loops import run_steps
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Scalar, Tensor


@dataclass(frozen=True, slots=True)
class _Kind:
    """A recurrent operator: its ONNX name and where ONNX finds each gate in ATen's order."""

    op: str
    gates: tuple[int, ...]
    activation: str | None = None


_LSTM = _Kind("LSTM", (0, 3, 1, 2))
_GRU = _Kind("GRU", (1, 0, 2))


@dataclass(frozen=True, slots=True)
class _Weights:
    """Of one layer in one direction, as ATen has them."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None


def _weights_by_layer(
    b: Builder, params: Sequence[Tensor], has_biases: bool, layers: int, directions: int
) -> list[list[_Weights]]:
    count = layers * directions
    each = len(params) // count
    if each * count != len(params) or each not in ((4, 5) if has_biases else (2, 3)):
        raise b.refuse(f"{len(params)} weights do not make {layers} layers")
    made = []
    for start in range(0, len(params), each):
        entry = list(params[start : start + each])
        projection = entry.pop() if each in (3, 5) else None
        input_bias, hidden_bias = entry[2:] if has_biases else (None, None)
        made.append(_Weights(entry[0], entry[1], input_bias, hidden_bias, projection))
    return [made[i : i + directions] for i in range(0, count, directions)]


# -- weights in ONNX's order -------------------------------------------------------------------


def _in_onnx_order(b: Builder, pieces: Sequence[Sequence[Tensor]], gates: Sequence[int]) -> Tensor:
    """[directions, ...]: the tensors of each direction one below the other, the gates of each in
    the order given."""
    known = [
        t.const
        for row in pieces
        for t in row
        if t.const is not None and not _torch_private.is_fake(t.const)
    ]
    if len(known) == sum(map(len, pieces)):
        parts = [chunks[gate] for t in known for chunks in [t.chunk(len(gates))] for gate in gates]
        height = sum(map(len, parts)) // len(pieces)
        shape = (len(pieces), height, *parts[0].shape[1:])
        return b.joined([part.detach() for part in parts], shape)
    rows = [[part for t in row for part in _reordered(b, t, gates)] for row in pieces]
    stacked = [
        b.unsqueeze(row[0] if len(row) == 1 else b.Concat(*row, axis=0), [0]) for row in rows
    ]
    return stacked[0] if len(stacked) == 1 else b.Concat(*stacked, axis=0)


def _reordered(b: Builder, weight: Tensor, gates: Sequence[int]) -> list[Tensor]:
    """The gates of a weight, in the order given."""
    if len(gates) == 1:
        return [weight]
    parts = b.Split(weight, outputs=len(gates), axis=0, num_outputs=len(gates))
    return [parts[gate] for gate in gates]


def _run_layer(
    b: Builder,
    kind: _Kind,
    x: Tensor,
    weights: Sequence[_Weights],
    initial: Sequence[Tensor],
    lengths: Tensor | None = None,
    reverse: bool = False,
) -> tuple[Tensor, ...]:
    """(output [time, batch, directions * hidden], last hidden state, that of an LSTM's cell)."""
    size = weights[0].hidden.static_dim(1)
    if size is None:
        raise b.refuse("the hidden size must be known at export time")
    bias = None
    if weights[0].input_bias is not None:
        rows = [
            [i, h]
            for i, h in ((w.input_bias, w.hidden_bias) for w in weights)
            if i is not None and h is not None
        ]
        bias = _in_onnx_order(b, rows, kind.gates)
    direction = "bidirectional" if len(weights) == 2 else "reverse" if reverse else "forward"
    output, *states = b.op(
        kind.op,
        x,
        _in_onnx_order(b, [[w.input] for w in weights], kind.gates),
        _in_onnx_order(b, [[w.hidden] for w in weights], kind.gates),
        bias,
        lengths,
        *initial,
        outputs=1 + len(initial),
        hidden_size=size,
        direction=direction,
        activations=[kind.activation] * len(weights) if kind.activation else None,
        linear_before_reset=1 if kind.op == "GRU" else None,
    )
    # (time, directions, batch, hidden) to (time, batch, directions * hidden)
    if len(weights) == 1:
        output = b.squeeze(output, [1])
    else:
        output = b.Reshape(b.transpose(output, [0, 2, 1, 3]), [0, 0, 2 * size])
    return output, *states


def _stepwise_lstm(
    b: Builder,
    x: Tensor,
    weights: Sequence[_Weights],
    initial: Sequence[Tensor],
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM layer with projections, which ONNX LSTM lacks, step by step."""
    sizes = sizes_of(b, x)
    count = b.squeeze(b.size(sizes[0]), [0])
    outputs, hiddens, cells = [], [], []
    for number, entry in enumerate(weights):
        start = [
            b.with_shape(b.Gather(s, b.const(number), axis=0), s.shape[1:] if s.shape else ())
            for s in initial
        ]

        def step(
            index: Tensor,
            carried: Sequence[Tensor],
            entry: _Weights = entry,
            backwards: bool = number == 1,
        ) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
            time = b.Sub(b.Sub(count, 1), index) if backwards else index
            current = b.Gather(x, time, axis=0)
            hidden, cell = _lstm_step(b, current, carried, entry)
            if lengths is None:
                return [hidden, cell], [hidden]
            # Beyond the end of a sequence its state stays as it is.
            runs = b.unsqueeze(b.Less(time, b.cast(lengths, torch.int64)), [1])
            after = [
                b.with_shape(b.Where(runs, new, old), b.dims(old))
                for new, old in zip((hidden, cell), carried, strict=True)
            ]
            return after, [b.Where(runs, hidden, b.scalar(0, hidden.dtype))]

        (hidden, cell), (output,) = run_steps(b, count, step, start)
        outputs.append(b.slice(output, 0, -1, None, step=-1) if number else output)
        hiddens.append(b.unsqueeze(hidden, [0]))
        cells.append(b.unsqueeze(cell, [0]))
    output, last_hidden, last_cell = (
        parts[0] if len(parts) == 1 else b.Concat(*parts, axis=axis)
        for parts, axis in ((outputs, 2), (hiddens, 0), (cells, 0))
    )
    return output, last_hidden, last_cell


# -- layers ------------------------------------------------------------------------------------


def recurrent(
    b: Builder,
    input: Tensor,
    hx: list[Tensor] | Tensor,
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
    batch_sizes: Tensor | None = None,
    *,
    kind: _Kind,
) -> tuple[Tensor, ...]:
    """Output and last states of all layers; with `batch_sizes`, of packed sequences."""
    lengths = mask = None
    if batch_sizes is not None:
        x, mask, lengths = _unpacked(b, input, batch_sizes)
        lengths = b.cast(lengths, torch.int32)
    else:
        x = b.transpose(input, [1, 0, 2]) if batch_first else input
    states = hx if isinstance(hx, list) else [hx]  # an LSTM has two
    directions = 2 if bidirectional else 1
    layers = _weights_by_layer(b, params, has_biases, num_layers, directions)
    last: list[list[Tensor]] = [[] for _ in states]
    for number, weights in enumerate(layers):
        if number and train and dropout:
            x = b.Dropout(x, b.scalar(dropout, torch.float32), b.const(True))
        initial = [
            s if num_layers == 1 else b.slice(s, 0, number * directions, (number + 1) * directions)
            for s in states
        ]
        if any(w.projection is not None for w in weights):
            x, *after = _stepwise_lstm(b, x, weights, initial, lengths)
        else:
            x, *after = _run_layer(b, kind, x, weights, initial, lengths)
        for collected, state in zip(last, after, strict=True):
            collected.append(state)
    states = [s[0] if len(s) == 1 else b.Concat(*s, axis=0) for s in last]
    if mask is not None:
        x = _packed(b, x, mask)
    return b.transpose(x, [1, 0, 2]) if batch_first else x, *states


for _name, _kind in (
    ("lstm", _LSTM),
    ("gru", _GRU),
    ("rnn_tanh", _Kind("RNN", (0,), "Tanh")),
    ("rnn_relu", _Kind("RNN", (0,), "Relu")),
):
    lowering(f"aten::{_name}.input", kind=_kind)(recurrent)
    lowering(f"aten::{_name}.data", renamed={"data": "input"}, kind=_kind)(recurrent)


@lowering("aten::mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    b: Builder,
    input: Tensor,
    weight0: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    hx_: Tensor,
    cx_: Tensor,
    reverse: bool,
    batch_sizes: list[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> tuple[Tensor | None, ...]:
    """One direction of one LSTM layer: what PyTorch's decomposition of lstm is made of."""
    lstm_mode = 2
    if mode != lstm_mode or batch_sizes:
        raise b.refuse("only an LSTM layer over unpacked sequences is supported")
    biases = (weight2, weight3) if has_biases else (None, None)
    weights = _Weights(weight0, weight1, *biases)
    initial = [s if s.rank == 3 else b.unsqueeze(s, [0]) for s in (hx_, cx_)]
    output, *last = _run_layer(b, _LSTM, input, [weights], initial, reverse=reverse)
    return output, *(s if hx_.rank == 3 else b.squeeze(s, [0]) for s in last), None


# -- packed sequences --------------------------------------------------------------------------
#
# Packed data holds, for each time step, the elements of all sequences that are that long; the
# longest sequence comes first. Row by row it is the padded (time, batch) table without padding.


def _packed(b: Builder, padded: Tensor, mask: Tensor) -> Tensor:
    places = b.transpose(b.NonZero(mask), [1, 0])
    return b.GatherND(padded, places)


def _unpacked(b: Builder, data: Tensor, batch_sizes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(padded [time, batch, features], mask [time, batch], lengths [batch])."""
    largest = b.ReduceMax(batch_sizes, [0], keepdims=1)
    sequence = arange(b, largest)
    mask = b.Less(sequence, b.unsqueeze(batch_sizes, [1]))
    lengths = b.ReduceSum(b.cast(mask, torch.int64), [0], keepdims=0)
    first = b.CumSum(batch_sizes, b.const(0), exclusive=1)
    rows = b.Add(b.unsqueeze(first, [1]), sequence)
    padded = b.Gather(data, b.Where(mask, rows, b.const(0)), axis=0)
    return padded, mask, lengths


@lowering("aten::_pack_padded_sequence")
def pack_padded_sequence(
    b: Builder, input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    padded = b.transpose(input, [1, 0, *range(2, input.rank)]) if batch_first else input
    lengths = b.cast(lengths, torch.int64)
    steps = arange(b, b.ReduceMax(lengths, [0], keepdims=1))
    mask = b.Less(b.unsqueeze(steps, [1]), lengths)
    batch_sizes = b.ReduceSum(b.cast(mask, torch.int64), [1], keepdims=0)
    return _packed(b, padded, mask), batch_sizes


@lowering("aten::_pad_packed_sequence")
def pad_packed_sequence(
    b: Builder,
    data: Tensor,
    batch_sizes: Tensor,
    batch_first: bool,
    padding_value: Scalar,
    total_length: Dim,
) -> tuple[Tensor, Tensor]:
    padded, mask, lengths = _unpacked(b, data, batch_sizes)
    trailing = list(range(2, data.rank + 1))
    filler = b.scalar(padding_value, data.dtype)
    padded = b.Where(b.unsqueeze(mask, trailing), padded, filler)
    longer = not isinstance(total_length, int) or total_length > 0
    if longer and total_length != batch_sizes.dim(0):
        missing = b.Sub(b.size(total_length), b.Shape(batch_sizes))
        zeros = [0] * data.rank
        pads = b.Concat(b.const([*zeros, 0]), missing, b.const(zeros), axis=0)
        padded = b.Pad(padded, pads, filler)
    if batch_first:
        padded = b.transpose(padded, [1, 0, *range(2, data.rank + 1)])
    return padded, lengths


# -- cells -------------------------------------------------------------------------------------


def _gates(b: Builder, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight.T + bias, where `x` may lack a batch."""
    if x.rank == 2:
        return b.Gemm(x, weight, bias, transB=1)
    result = b.MatMul(x, b.transpose(weight, [1, 0]))
    return result if bias is None else b.Add(result, bias)


def _lstm_step(
    b: Builder, x: Tensor, states: Sequence[Tensor], weights: _Weights
) -> tuple[Tensor, Tensor]:
    hidden, cell = states
    from_input = _gates(b, x, weights.input, weights.input_bias)
    gates = b.Add(from_input, _gates(b, hidden, weights.hidden, weights.hidden_bias))
    enter, forget, candidate, leave = b.Split(gates, outputs=4, axis=-1, num_outputs=4)
    kept = b.Mul(b.Sigmoid(forget), cell)
    new_cell = b.Add(kept, b.Mul(b.Sigmoid(enter), b.Tanh(candidate)))
    new_hidden = b.Mul(b.Sigmoid(leave), b.Tanh(new_cell))
    if weights.projection is not None:
        new_hidden = _gates(b, new_hidden, weights.projection, None)
    return new_hidden, new_cell


def _gru_step(b: Builder, x: Tensor, hidden: Tensor, weights: _Weights) -> Tensor:
    gates = _gates(b, x, weights.input, weights.input_bias)
    from_input = b.Split(gates, outputs=3, axis=-1, num_outputs=3)
    gates = _gates(b, hidden, weights.hidden, weights.hidden_bias)
    from_hidden = b.Split(gates, outputs=3, axis=-1, num_outputs=3)
    reset, update = (b.Sigmoid(b.Add(from_input[i], from_hidden[i])) for i in (0, 1))
    candidate = b.Tanh(b.Add(from_input[2], b.Mul(reset, from_hidden[2])))
    return b.Add(candidate, b.Mul(update, b.Sub(hidden, candidate)))


def _rnn_step(op: str, b: Builder, x: Tensor, hidden: Tensor, weights: _Weights) -> Tensor:
    from_input = _gates(b, x, weights.input, weights.input_bias)
    return b.op(op, b.Add(from_input, _gates(b, hidden, weights.hidden, weights.hidden_bias)))


@lowering("aten::lstm_cell", step=_lstm_step)
@lowering("aten::gru_cell", step=_gru_step)
@lowering("aten::rnn_tanh_cell", step=partial(_rnn_step, "Tanh"))
@lowering("aten::rnn_relu_cell", step=partial(_rnn_step, "Relu"))
def cell(
    b: Builder,
    input: Tensor,
    hx: list[Tensor] | Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    *,
    step: Callable[..., Tensor | tuple[Tensor, Tensor]],
) -> Tensor | tuple[Tensor, Tensor]:
    return step(b, input, hx, _Weights(w_ih, w_hh, b_ih, b_hh))
