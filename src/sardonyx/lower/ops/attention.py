"""Scaled dot-product attention, under every name PyTorch gives it."""

from __future__ import annotations

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Dim
from sardonyx.lower.builder import Builder
from sardonyx.lower.ops.random import native_dropout
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Tensor, product_of


@lowering(
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_attention_math",
)
@lowering(
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_fused_attention_overrideable",
    renamed={"attn_bias": "attn_mask"},
)
def fused_attention(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor | None, ...]:
    """The attention; what else these return serves the backward pass and is not computed."""
    q, k, v = _with_common_batch(b, query, key, value, enable_gqa)
    lead = b.dims(q)[:-3]
    mask = None if attn_mask is None else _mask(b, attn_mask, lead, q.dim(-2), k.dim(-2))
    size = q.static_dim(-1)
    if scale is None and q.dtype == torch.float64 and size:
        scale = size**-0.5
    if scale is not None and (scale <= 0 or q.dtype == torch.float64):
        # The attribute is a float32, and ONNX Runtime wants it positive.
        q, scale = b.Mul(q, scale), 1.0
    rank = q.rank
    q, k, v = (_four_dims(b, x) for x in (q, k, v))
    if enable_gqa and k.dim(1) != v.dim(1):  # ONNX has one number of heads for both
        k, v = _repeated_heads(b, k, q), _repeated_heads(b, v, q)
    causal = 1 if is_causal else None
    if dropout_p == 0:
        out = b.Attention(q, k, v, mask, is_causal=causal, scale=scale)
    else:
        _, keys, values, weights = b.Attention(
            q, k, v, mask, is_causal=causal, scale=scale, qk_matmul_output_mode=3, outputs=4
        )
        # onnx infers these where there are past ones alone.
        b.with_shape(keys, b.dims(k))
        b.with_shape(values, b.dims(v))
        kept, _ = native_dropout(b, weights, dropout_p)
        out = b.MatMul(kept, _repeated_heads(b, v, q))
    out = b.with_shape(out, [*b.dims(q)[:-1], v.dim(-1)])
    if rank < 4:
        out = b.squeeze(out, list(range(4 - rank)))
    else:
        out = b.reshape(out, [*lead, *b.dims(out)[1:]])
    return out, *[None] * 8


lowering("aten::scaled_dot_product_attention")(first_result(fused_attention))


def _with_common_batch(
    b: Builder, query: Tensor, key: Tensor, value: Tensor, grouped: bool
) -> list[Tensor]:
    """Query, key and value with the same leading dims; heads are left alone where grouped."""
    tensors = [query, key, value]
    kept = 3 if grouped else 2
    leads = [b.dims(x)[:-kept] for x in tensors]
    rank = max(map(len, leads))
    # Sizes that are not known to be equal must be so at run time; only a 1 broadcasts.
    common = [
        next((d for d in sizes if d != 1), 1)
        for sizes in zip(*([1] * (rank - len(lead)) + lead for lead in leads), strict=True)
    ]
    return [
        b.expand(x, [*common, *b.dims(x)[-kept:]])
        if len(lead) < rank or any(d == 1 != c for d, c in zip(lead, common, strict=True))
        else x
        for x, lead in zip(tensors, leads, strict=True)
    ]


def _four_dims(b: Builder, x: Tensor) -> Tensor:
    """(batch, heads, length, size)."""
    if x.rank < 4:
        return b.unsqueeze(x, list(range(4 - x.rank)))
    return b.reshape(x, [product_of(b.dims(x)[:-3]), *b.dims(x)[-3:]])


def _mask(b: Builder, mask: Tensor, lead: list[Dim], queries: Dim, keys: Dim) -> Tensor:
    if mask.rank < 2:
        mask = b.unsqueeze(mask, list(range(2 - mask.rank)))
    # ATen broadcasts a mask of one key or one query; ONNX would pad the first, and ONNX Runtime
    # does not take the second.
    rows, columns = mask.dim(-2), mask.dim(-1)
    if (rows == 1 != queries) or (columns == 1 != keys):
        wanted = [queries if rows == 1 else rows, keys if columns == 1 else columns]
        mask = b.expand(mask, [*b.dims(mask)[:-2], *wanted])
    mask = _as_long_as_asked_for(b, mask, [queries, keys])
    if mask.rank < 4 or len(lead) <= 1:
        return mask
    own = b.dims(mask)
    if all(d == 1 for d in own[:-3]):
        return b.reshape(mask, own[-3:])
    return b.reshape(b.expand(mask, [*lead, *own[-3:]]), [product_of(lead), *own[-3:]])


def _as_long_as_asked_for(b: Builder, mask: Tensor, wanted: list[Dim]) -> Tensor:
    """A piece of a table, mask[:n, :n], with the sizes of what it masks: ATen takes no shorter one,
    while ONNX pads it."""
    own = b.dims(mask)
    asked = [
        _torch_private.if_it_fits(size) if isinstance(size, sympy.Expr) else size
        for size in own[-2:]
    ]
    if own[-2:] == wanted or asked != wanted:
        return mask
    piece = b.Identity(mask)
    return b.with_shape(piece, [*own[:-2], *wanted])


def _repeated_heads(b: Builder, x: Tensor, query: Tensor) -> Tensor:
    """Each head of `x` as often as heads of the query share it."""
    if x.dim(1) == query.dim(1):
        return x
    heads, shared_by = x.static_dim(1), query.static_dim(1)
    if heads is None or shared_by is None:
        raise b.refuse("the numbers of heads must be known for this grouped attention")
    source = torch.arange(heads).repeat_interleave(shared_by // heads)
    return b.Gather(x, source, axis=1)
