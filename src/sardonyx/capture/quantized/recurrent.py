"""Dynamically quantized LSTM and GRU layers, one step of time after the other.

The state is quantized anew at every step, with a new scale: ONNX's LSTM and GRU cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.quantized.operators import FORMS
from sardonyx.capture.quantized.tensor import PackedParameters

if TYPE_CHECKING:
    from sardonyx.capture.quantized.reader import QuantizedReader

aten = torch.ops.aten


class _Cell(NamedTuple):
    """The two linear layers of a cell: of the input and of the state."""

    form: str
    reduce_range: bool
    of_input: PackedParameters
    of_state: PackedParameters

    def linear(self, r: QuantizedReader, packed: PackedParameters, x: Value) -> Value:
        arguments = {"X": x, "W_prepack": packed, "reduce_range": self.reduce_range}
        result: Value = FORMS[self.form](r, arguments)
        return result


_FORMS = {"quantized_dynamic": "linear_dynamic", "quantized_fp16": "linear_dynamic_fp16"}


def _cell(r: QuantizedReader, packed: Argument) -> _Cell:
    if not isinstance(packed, PackedParameters):
        raise r.refusal("a quantized recurrent layer of an early PyTorch has no ONNX form here")
    state = packed.content.__getstate__()
    kind, _, _, longs, linears = state[0] if isinstance(state[0], tuple) else state
    if kind not in _FORMS:
        raise r.refusal(f"a recurrent layer that is {kind} has no ONNX form")
    layers = (
        PackedParameters(f"{packed.name}.{name}", linear)
        for name, linear in zip(("input", "state"), linears, strict=True)
    )
    return _Cell(_FORMS[kind], bool(longs and longs[0]), *layers)


_Step: TypeAlias = "Callable[[QuantizedReader, Value, Value, list[Value]], list[Value]]"
"""From the parts of the input and the state that go into the gates, and the state, the next one."""


def _lstm_step(
    r: QuantizedReader, of_input: Value, of_state: Value, state: list[Value]
) -> list[Value]:
    gates = r.call(aten.chunk.default, r.call(aten.add.Tensor, of_input, of_state), 4, 1)
    admit, forget, output = (r.call(aten.sigmoid.default, gates[i]) for i in (0, 1, 3))
    new = r.call(aten.mul.Tensor, admit, r.call(aten.tanh.default, gates[2]))
    cell = r.call(aten.add.Tensor, r.call(aten.mul.Tensor, forget, state[1]), new)
    return [r.call(aten.mul.Tensor, output, r.call(aten.tanh.default, cell)), cell]


def _gru_step(
    r: QuantizedReader, of_input: Value, of_state: Value, state: list[Value]
) -> list[Value]:
    left, right = (r.call(aten.chunk.default, gates, 3, 1) for gates in (of_input, of_state))
    reset, update = (
        r.call(aten.sigmoid.default, r.call(aten.add.Tensor, left[i], right[i])) for i in (0, 1)
    )
    kept = r.call(aten.mul.Tensor, reset, right[2])
    new = r.call(aten.tanh.default, r.call(aten.add.Tensor, left[2], kept))
    change = r.call(aten.mul.Tensor, r.call(aten.sub.Tensor, state[0], new), update)
    return [r.call(aten.add.Tensor, change, new)]


def _direction(
    r: QuantizedReader, cell: _Cell, step: _Step, x: Value, state: list[Value], reverse: bool
) -> tuple[Value, list[Value]]:
    """What a layer gives at every step (time first), and its last state."""
    if reverse:
        x = r.call(aten.flip.default, x, [0])
    gates = cell.linear(r, cell.of_input, x)

    def body(time: Value, now: list[Value]) -> tuple[list[Value], list[Value]]:
        of_input = r.call(aten.index.Tensor, gates, [time])
        after = step(r, of_input, cell.linear(r, cell.of_state, now[0]), now)
        return after, after[:1]

    *last, outputs = r.loop(x.shape[0], state, body)
    return r.call(aten.flip.default, outputs, [0]) if reverse else outputs, last


def _layers(r: QuantizedReader, step: _Step, a: dict[str, Argument], hx: list[Value]) -> Any:
    if "batch_sizes" in a:
        raise r.refusal("a packed sequence through a quantized recurrent layer has no ONNX form")
    if a["train"] and a["dropout"]:
        raise r.refusal("dropout between quantized recurrent layers has no ONNX form")
    directions = 2 if a["bidirectional"] else 1
    x = a["input"]
    if a["batch_first"]:
        x = r.call(aten.transpose.int, x, 0, 1)
    finals: list[list[Value]] = []
    for layer in range(a["num_layers"]):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            state = [r.call(aten.select.int, h, 0, place) for h in hx]
            cell = _cell(r, a["params"][place])
            output, last = _direction(r, cell, step, x, state, reverse=direction == 1)
            outputs.append(output)
            finals.append(last)
        x = outputs[0] if directions == 1 else r.call(aten.cat.default, outputs, 2)
    if a["batch_first"]:
        x = r.call(aten.transpose.int, x, 0, 1)
    states: Sequence[tuple[Value, ...]] = list(zip(*finals, strict=True))
    return [x, *(r.call(aten.stack.default, list(s)) for s in states)]


def quantized_lstm(r: QuantizedReader, **a: Argument) -> Any:
    return _layers(r, _lstm_step, a, a["hx"])


def quantized_gru(r: QuantizedReader, **a: Argument) -> Any:
    return _layers(r, _gru_step, a, [a["hx"]])
