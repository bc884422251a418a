"""The shapes of what recurrent layers give.

PyTorch finds them by running a layer step by step, which takes the length of a sequence for
the number it is in the example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from sardonyx import _torch_private

aten = torch.ops.aten


def _layers_with_cell_state(
    input: torch.Tensor,
    hx: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    output = _output(input, hx[0], bidirectional)
    return output, torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _layers(
    input: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return _output(input, hx, bidirectional), torch.empty_like(hx)


def _packed_layers_with_cell_state(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    hx: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    output = _output(data, hx[0], bidirectional)
    return output, torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _packed_layers(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    hx: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return _output(data, hx, bidirectional), torch.empty_like(hx)


def _output(x: torch.Tensor, hidden: torch.Tensor, bidirectional: bool) -> torch.Tensor:
    features = hidden.shape[-1] * (2 if bidirectional else 1)
    return x.new_empty([*x.shape[:-1], features])


def _cell(input: torch.Tensor, hx: torch.Tensor, *weights: Any) -> torch.Tensor:
    return torch.empty_like(hx)


def _cell_with_cell_state(
    input: torch.Tensor, hx: Sequence[torch.Tensor], *weights: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _packed(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    elements, steps = (_size_known_at_run_time(input) for _ in range(2))
    return input.new_empty([elements, *input.shape[2:]]), lengths.new_empty([steps])


def _padded(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: int | torch.SymInt,
) -> tuple[torch.Tensor, torch.Tensor]:
    sequences = _size_known_at_run_time(data)
    given = not isinstance(total_length, int) or total_length > 0
    steps = total_length if given else batch_sizes.shape[0]
    order = [sequences, steps] if batch_first else [steps, sequences]
    return data.new_empty([*order, *data.shape[1:]]), batch_sizes.new_empty([sequences])


def _size_known_at_run_time(fake: torch.Tensor) -> Any:
    return _torch_private.new_data_dependent_size(_torch_private.fake_mode_of(fake))


PACKED_SEQUENCES: dict[Any, Callable[..., Any]] = {
    aten._pack_padded_sequence.default: _packed,
    aten._pad_packed_sequence.default: _padded,
}
SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **PACKED_SEQUENCES,
    aten.lstm_cell.default: _cell_with_cell_state,
    **dict.fromkeys(
        (aten.gru_cell.default, aten.rnn_tanh_cell.default, aten.rnn_relu_cell.default), _cell
    ),
    aten.lstm.input: _layers_with_cell_state,
    aten.lstm.data: _packed_layers_with_cell_state,
    **dict.fromkeys((aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _layers),
    **dict.fromkeys((aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _packed_layers),
}
"""By operator, a function with its signature that gives empty results of the right shapes."""
