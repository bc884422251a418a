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


def _layers(
    input: torch.Tensor,
    hx: torch.Tensor | Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[torch.Tensor, ...]:
    """The output, and the states: of LSTMs there are two."""
    states = [hx] if isinstance(hx, torch.Tensor) else hx
    features = states[0].shape[-1] * (2 if bidirectional else 1)
    return input.new_empty([*input.shape[:-1], features]), *map(torch.empty_like, states)


def _packed_layers(
    data: torch.Tensor, batch_sizes: torch.Tensor, *arguments: Any
) -> tuple[torch.Tensor, ...]:
    return _layers(data, *arguments)


def _cell(input: torch.Tensor, hx: torch.Tensor, *weights: Any) -> torch.Tensor:
    return torch.empty_like(hx)


def _cell_with_cell_state(
    input: torch.Tensor, hx: Sequence[torch.Tensor], *weights: Any
) -> tuple[torch.Tensor, ...]:
    return tuple(map(torch.empty_like, hx))


def _packed(
    input: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    elements, steps = (_torch_private.new_data_dependent_size_of(input) for _ in range(2))
    return input.new_empty([elements, *input.shape[2:]]), lengths.new_empty([steps])


def _padded(
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: int | torch.SymInt,
) -> tuple[torch.Tensor, torch.Tensor]:
    sequences = _torch_private.new_data_dependent_size_of(data)
    given = not isinstance(total_length, int) or total_length > 0
    steps = total_length if given else batch_sizes.shape[0]
    order = [sequences, steps] if batch_first else [steps, sequences]
    return data.new_empty([*order, *data.shape[1:]]), batch_sizes.new_empty([sequences])


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
    **dict.fromkeys(
        (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _layers
    ),
    **dict.fromkeys(
        (aten.lstm.data, aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _packed_layers
    ),
}
