"""The shapes of layers and losses whose kernels read data or turn symbolic sizes into numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from sardonyx import _torch_private

aten = torch.ops.aten
Size = int | torch.SymInt
_min: Callable[[Any, Any], Any] = torch.sym_min

# -- attention, convolution, normalization ---------------------------------------------------------


def with_kernel(attend: Callable[..., Any]) -> Callable[..., Any]:
    """An attention function with a kernel for its tensors. To choose one, PyTorch compares sizes
    with 0; the math kernel takes any."""

    def attended(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        sizes = (*query.shape, *key.shape, *value.shape)
        is_open = any(map(_torch_private.is_decided_by_data, sizes))
        with sdpa_kernel(SDPBackend.MATH) if is_open else contextlib.nullcontext():
            return attend(query, key, value, *args, **kwargs)

    return attended


def _convolution(*arguments: Any) -> Any:
    """Without the last arguments, which choose a backend."""
    return aten.convolution.default(*arguments[:9])


def like_input(input: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return torch.empty_like(input)


# -- pooling ---------------------------------------------------------------------------------------


def _max_pool1d(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> torch.Tensor:
    (step,) = stride or kernel_size
    padded = self.shape[-1] + 2 * padding[0]
    free = padded - dilation[0] * (kernel_size[0] - 1) - 1
    length = free // step + 1
    if ceil_mode:
        # The last window starts within the input or its left padding.
        starts = (self.shape[-1] + padding[0] + step - 1) // step
        length = _min((free + step - 1) // step + 1, starts)
    return self.new_empty([*self.shape[:-1], length])


def _adaptive_max_pool(
    self: torch.Tensor, output_size: Sequence[Size]
) -> tuple[torch.Tensor, torch.Tensor]:
    sizes = [*self.shape[: self.dim() - len(output_size)], *output_size]
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


# -- recurrent layers ------------------------------------------------------------------------------
# PyTorch runs a layer step by step, which fixes the length of a sequence to that of the example.


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
    """The output and the states; an LSTM has two."""
    states = [hx] if isinstance(hx, torch.Tensor) else hx
    features = states[0].shape[-1] * (2 if bidirectional else 1)
    return input.new_empty([*input.shape[:-1], features]), *map(torch.empty_like, states)


def _packed_layers(
    data: torch.Tensor, batch_sizes: torch.Tensor, *arguments: Any
) -> tuple[torch.Tensor, ...]:
    return _layers(data, *arguments)


def _cell(input: torch.Tensor, hx: torch.Tensor | Sequence[torch.Tensor], *weights: Any) -> Any:
    return torch.empty_like(hx) if isinstance(hx, torch.Tensor) else [*map(torch.empty_like, hx)]


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


# -- fake quantization, which PyTorch has no rules for ---------------------------------------------


def _with_mask(self: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(self), torch.empty_like(self, dtype=torch.bool)


def _with_mask_and_state(
    self: torch.Tensor, observer_on: torch.Tensor, fake_quant_on: torch.Tensor, *rest: Any
) -> tuple[torch.Tensor, ...]:
    """The state is the range that was seen, the scale and the zero point."""
    return *_with_mask(self), *map(torch.empty_like, rest[:4])


# -- losses ----------------------------------------------------------------------------------------


_NO_REDUCTION = 0


def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> torch.Tensor:
    has_batch = reduction == _NO_REDUCTION and log_probs.dim() == 3
    return log_probs.new_empty([log_probs.shape[1]] if has_batch else [])


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: with_kernel(
        aten.scaled_dot_product_attention.default
    ),
    aten._convolution.default: _convolution,
    aten._convolution.deprecated: _convolution,
    aten.batch_norm.default: like_input,
    aten.group_norm.default: like_input,
    aten.max_pool1d.default: _max_pool1d,
    aten.adaptive_avg_pool1d.default: lambda self, output_size: _adaptive_max_pool(
        self, output_size
    )[0],
    aten.adaptive_max_pool1d.default: _adaptive_max_pool,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool,
    aten.adaptive_max_pool3d.default: _adaptive_max_pool,
    aten.fractional_max_pool3d.default: lambda self, kernel_size, output_size, random_samples: (
        _adaptive_max_pool(self, output_size)
    ),
    aten._pack_padded_sequence.default: _packed,
    aten._pad_packed_sequence.default: _padded,
    **{
        getattr(aten, f"{name}_cell").default: _cell
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    **dict.fromkeys(
        (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), _layers
    ),
    **dict.fromkeys(
        (aten.lstm.data, aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data), _packed_layers
    ),
    aten.fake_quantize_per_tensor_affine.default: like_input,
    aten.fake_quantize_per_tensor_affine.tensor_qparams: like_input,
    aten.fake_quantize_per_channel_affine.default: like_input,
    aten.fake_quantize_per_tensor_affine_cachemask.default: _with_mask,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _with_mask,
    aten.fake_quantize_per_channel_affine_cachemask.default: _with_mask,
    aten._fake_quantize_learnable_per_tensor_affine.default: like_input,
    aten._fake_quantize_learnable_per_channel_affine.default: like_input,
    aten.fused_moving_avg_obs_fake_quant.default: like_input,
    aten._fused_moving_avg_obs_fq_helper.default: _with_mask,
    aten._fused_moving_avg_obs_fq_helper_functional.default: _with_mask_and_state,
    **dict.fromkeys((aten.ctc_loss.IntList, aten.ctc_loss.Tensor), _ctc_loss),
}
