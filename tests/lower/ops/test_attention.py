"""Attention against eager PyTorch: masks, causality, scale, groups, ranks and whole layers."""

from __future__ import annotations

import math
from typing import Any

import onnxruntime
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attend

import sardonyx
from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 4, 5, 7, 8


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def qkv(*lead: int, queries: int = QUERIES, keys: int = KEYS, kv_heads: int | None = None) -> Any:
    kv_lead = (*lead[:-1], kv_heads) if kv_heads else lead
    return rand(*lead, queries, SIZE), rand(*kv_lead, keys, SIZE), rand(*kv_lead, keys, SIZE + 2)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "unit_scale": {"scale": 1.0},
    "negative_scale": {"scale": -0.2, "is_causal": True},
}


@pytest.mark.parametrize("name", list(OPTIONS))
def test_options(name: str) -> None:
    options = OPTIONS[name]
    check(
        lambda q, k, v: attend(q, k, v, **options),
        *qkv(BATCH, HEADS),
        dynamic={0: [0, 2], 1: [0, 2], 2: [0, 2]},
        others=[qkv(3, HEADS, queries=9, keys=2)],
    )


@pytest.mark.parametrize("lead", [(), (3,), (2, 3, 4), (2, 1, 3, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_ranks(lead: tuple[int, ...], causal: bool) -> None:
    check(lambda q, k, v: attend(q, k, v, is_causal=causal), *qkv(*lead))


def test_dynamic_batch_of_five_dims() -> None:
    check(attend, *qkv(2, 3, 4), dynamic={0: [0, 3], 1: [0], 2: [0]},
          others=[qkv(5, 3, 4, queries=2)])  # fmt: skip


MASKS: dict[str, torch.Tensor] = {
    "queries_keys": torch.rand(QUERIES, KEYS, generator=GENERATOR) > 0.3,
    "padding": torch.rand(BATCH, 1, 1, KEYS, generator=GENERATOR) > 0.3,
    "heads": torch.rand(HEADS, QUERIES, KEYS, generator=GENERATOR) > 0.3,
    "full": torch.rand(BATCH, HEADS, QUERIES, KEYS, generator=GENERATOR) > 0.3,
    "broadcast_keys": torch.rand(BATCH, 1, QUERIES, 1, generator=GENERATOR) > 0.3,
    "nothing_allowed": torch.zeros(QUERIES, KEYS, dtype=torch.bool),
    "one_row_forbidden": torch.arange(QUERIES)[:, None].expand(QUERIES, KEYS) != 2,
}


@pytest.mark.parametrize("name", list(MASKS))
def test_bool_masks(name: str) -> None:
    check(attend, *qkv(BATCH, HEADS), MASKS[name])


@pytest.mark.parametrize("name", list(MASKS))
def test_float_masks(name: str) -> None:
    bias = torch.where(MASKS[name], rand(*MASKS[name].shape), -math.inf)
    check(attend, *qkv(BATCH, HEADS), bias)


def test_mask_at_other_sizes() -> None:
    def allowed(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=GENERATOR) > 0.3

    check(attend, *qkv(BATCH, HEADS), allowed(BATCH, 1, QUERIES, KEYS),
          dynamic={0: [0, 2], 1: [0, 2], 2: [0, 2], 3: [0, 2, 3]},
          others=[(*qkv(3, HEADS, queries=2, keys=9), allowed(3, 1, 2, 9))])  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 1, QUERIES, KEYS), (2, 1, 4, 1, KEYS), (1, 1, 4, 1, KEYS)])
def test_masks_of_five_dims(shape: tuple[int, ...]) -> None:
    check(attend, *qkv(2, 3, 4), torch.rand(*shape, generator=GENERATOR) > 0.3)


@pytest.mark.parametrize("lead", [(2, 4), (4,)])
def test_grouped_queries(lead: tuple[int, ...]) -> None:
    check(lambda q, k, v: attend(q, k, v, enable_gqa=True, is_causal=True), *qkv(*lead, kv_heads=2))


def test_batches_that_broadcast() -> None:
    q, (_, k, v) = rand(3, HEADS, QUERIES, SIZE), qkv(1, HEADS)
    check(attend, q, k, v)
    check(attend, q, k[0], v[0])
    check(attend, q[0], k.expand(2, -1, -1, -1), v)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    inputs = [x.to(dtype) for x in qkv(BATCH, HEADS)]
    # ONNX Runtime moves a scale into an attribute of its MatMul, a float32.
    rtol, atol = (5e-3, 2e-3) if dtype == torch.float16 else (1e-6, 1e-6)
    check(
        lambda q, k, v: (attend(q, k, v, scale=0.3), attend(q, k, v)),
        *inputs,
        rtol=rtol,
        atol=atol,
    )


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_dropout_scales_what_it_keeps(kv_heads: int) -> None:
    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return attend(q, k, v, dropout_p=0.25, enable_gqa=True)

    q, k, _ = qkv(1, 4, queries=300, keys=20, kv_heads=kv_heads)
    ones = torch.ones(1, kv_heads, 20, 1)
    program = sardonyx.export(
        Attention(), (q, k, ones), capture="trace", training=sardonyx.TrainingMode.TRAINING
    )
    options = onnxruntime.SessionOptions()
    # ONNX Runtime's optimizations remove every Dropout, also one that trains.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    names = [i.name for i in session.get_inputs()]
    feeds = {n: x.numpy() for n, x in zip(names, (q, k, ones), strict=True)}
    out = torch.tensor(session.run(None, feeds)[0])
    assert out.std() > 0.05
    torch.testing.assert_close(out.mean(), torch.tensor(1.0), rtol=0, atol=0.05)


def test_core_operators() -> None:
    q, k, v = rand(2, 4, 5, 8), rand(2, 4, 7, 8), rand(2, 4, 7, 8)
    bias = rand(2, 4, 5, 7)
    aten = torch.ops.aten
    check(lambda q, k, v: aten._scaled_dot_product_attention_math(q, k, v, scale=0.5)[0], q, k, v)
    flash = aten._scaled_dot_product_flash_attention_for_cpu
    check(lambda q, k, v, m: flash(q, k, v, attn_mask=m)[0], q, k, v, bias)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(need_weights: bool) -> None:
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True, kdim=12, vdim=10)

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, *qkv_and_padding: torch.Tensor) -> Any:
            return self.layer(*qkv_and_padding, need_weights=need_weights)

    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    check(Attention(), rand(2, 5, 16), rand(2, 7, 12), rand(2, 7, 10), padding)


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder(norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, activation="gelu", batch_first=True, norm_first=norm_first
    )
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    check(encoder, rand(2, 5, 16), dynamic={0: [0, 1]}, others=[(rand(3, 9, 16),)])


def test_transformer_decoder() -> None:
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(16, 4, 32), 2)

    class Causal(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = decoder

        def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
            mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[0])
            return self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)

    check(Causal(), rand(5, 2, 16), rand(7, 2, 16))


def test_float64_keeps_its_digits() -> None:
    # Below opset 23 the products stand alone, and ONNX Runtime scales them in float32.
    inputs = [torch.randn(2, 2, 5, 7, dtype=torch.float64) for _ in range(3)]
    check(attend, *inputs, opsets=[23], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("as_bias", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(0, KEYS), (2, 0), (0, 0)])
def test_masks_of_nothing(queries: int, keys: int, as_bias: bool) -> None:
    """Where Attention is spelled out: ONNX Runtime's own does not take what is empty."""

    def attended(q: Any, k: Any, v: Any, mask: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, torch.where(mask, 1.0, -math.inf) if as_bias else mask)

    def given(queries: int, keys: int) -> tuple[torch.Tensor, ...]:
        q, k, v = qkv(BATCH, HEADS, queries=queries, keys=keys)
        # As wide as no other dim.
        return q, k, rand(*v.shape[:-1], 11), torch.ones(BATCH, 1, queries, keys) > 0

    check(attended, *given(QUERIES, KEYS), dynamic={0: [2], 1: [2], 2: [2], 3: [2, 3]},
          others=[given(queries, keys)], opsets=(17, 20))  # fmt: skip


@pytest.mark.parametrize(("key_heads", "value_heads"), [(2, 4), (4, 2), (1, 4), (1, 2)])
def test_keys_and_values_with_other_numbers_of_heads(key_heads: int, value_heads: int) -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 5, 8, generator=generator)
    key = torch.randn(2, key_heads, 6, 8, generator=generator)
    value = torch.randn(2, value_heads, 6, 8, generator=generator)
    check(lambda q, k, v: attend(q, k, v, enable_gqa=True), query, key, value)
