"""Attention as MatMul, Softmax, MatMul: the definition its specification gives."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_rank
from sardonyx.legalize.emitter import (
    Emitter,
    input_of,
    rank_of,
    required_input,
    same_dim,
    static_dim,
)

_KNOWN_HERE = frozenset({"is_causal", "qk_matmul_output_mode", "scale"})
_GIVES_WEIGHTS = 3
"""The `qk_matmul_output_mode` that lowerings ask for."""


def decompose_attention(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    """The outputs of an Attention as lowerings write it; of others ONNX has a longer definition."""
    q, k, v = (required_input(node, index) for index in range(3))
    wants_weights = len(node.outputs) > 3
    mode = node.attributes.get_int("qk_matmul_output_mode", 0)
    is_known = node.attributes.keys() <= _KNOWN_HERE and not any(node.inputs[4:])
    if rank_of(q) != 4 or not is_known or (wants_weights and mode != _GIVES_WEIGHTS):
        return None
    present_key, present_value = k, v
    q_heads, kv_heads = _head_counts(q, k)
    if q_heads is not None and kv_heads is not None and q_heads != kv_heads:
        repeats = q_heads // kv_heads
        source = b.ints(*(head // repeats for head in range(q_heads)))
        k, v = b.Gather(k, source, axis=1), b.Gather(v, source, axis=1)

    scores = _scaled_product(b, node, q, k)
    additive, allowed = _bias(b, node, q, k)
    if additive is not None:
        scores = b.Add(scores, additive)
    if allowed is not None:
        scores = b.Where(allowed, scores, b.const_like(-math.inf, like=scores))
    weights = b.cast(b.Softmax(scores, axis=-1), q.dtype)
    masked_rows = None
    if input_of(node, 3) is not None:  # a causal mask alone leaves every query the first key
        masked_rows = _masked_rows(b, additive, allowed, like=weights)
    if masked_rows is not None and wants_weights:
        weights = b.Where(masked_rows, b.const_like(0.0, like=weights), weights)
    out = b.MatMul(weights, b.cast(v, q.dtype))
    if masked_rows is not None and not wants_weights:
        # The softmax of a row of -inf is NaN; here its output is the smaller tensor to mend.
        out = b.Where(masked_rows, b.const_like(0.0, like=out), out)
    return [out, present_key, present_value, weights][: len(node.outputs)]


def _head_counts(q: ir.Value, k: ir.Value) -> tuple[int | None, int | None]:
    """The heads of query and key; None for both if they are equal by symbol."""
    q_heads, kv_heads = static_dim(q, 1), static_dim(k, 1)
    if q_heads is not None and kv_heads is not None:
        return q_heads, kv_heads
    if same_dim(q, 1, k, 1):
        return None, None
    raise InexpressibleError("the numbers of its query and key heads are not known")


def _scaled_product(b: Emitter, node: ir.Node, q: ir.Value, k: ir.Value) -> ir.Value:
    transposed = b.Transpose(k, perm=[0, 1, 3, 2])
    head_size = static_dim(q, 3)
    root: ir.Value
    if "scale" in node.attributes or head_size is not None:
        given = node.attributes.get_float("scale", 0.0)
        scale = given if "scale" in node.attributes else 1 / math.sqrt(head_size or 1)
        if scale == 1:
            return b.MatMul(q, transposed)
        if scale < 0:
            return b.MatMul(b.Mul(q, b.const_like(scale, like=q)), transposed)
        root = b.const_like(math.sqrt(scale), like=q)
    else:
        size = b.Squeeze(b.cast(b.dim(q, 3), ir.DataType.FLOAT), b.ints(0))
        root = b.cast(b.Reciprocal(b.Sqrt(b.Sqrt(size))), q.dtype)
    # The root of the scale on either side keeps half precision from overflowing.
    return b.MatMul(b.Mul(q, root), b.Mul(transposed, root))


def _bias(
    b: Emitter, node: ir.Node, q: ir.Value, k: ir.Value
) -> tuple[ir.Value | None, ir.Value | None]:
    """What is added to the scores, and where they are not -inf."""
    mask = input_of(node, 3)
    allowed: list[ir.Value] = []
    additive: ir.Value | None = None
    if mask is not None:
        mask = _padded_mask(b, _before_expand(mask), k)
        if mask.dtype == ir.DataType.BOOL:
            allowed.append(mask)
        else:
            additive = b.cast(mask, q.dtype)
    if node.attributes.get_int("is_causal", 0):
        queries = b.Unsqueeze(_positions(b, q), b.ints(1))
        allowed.append(b.LessOrEqual(_positions(b, k), queries))
    return additive, functools.reduce(b.And, allowed) if allowed else None


def _before_expand(mask: ir.Value) -> ir.Value:
    """What was expanded along other axes than the keys: the scores broadcast it as well."""
    expand = mask.producer()
    source = None if expand is None or expand.op_type != "Expand" else expand.inputs[0]
    if source is None or not rank_of(source) or not same_dim(source, -1, mask, -1):
        return mask
    return source


def _padded_mask(b: Emitter, mask: ir.Value, k: ir.Value) -> ir.Value:
    """The mask as long as the keys: a shorter one allows none of the rest."""
    if same_dim(mask, -1, k, 2):
        return mask
    rank = known_rank(mask, "mask")
    missing = b.Sub(b.dim(k, 2), b.dim(mask, -1))
    pads = b.Concat(b.ints(*[0] * (2 * rank - 1)), missing, axis=0)
    if mask.dtype == ir.DataType.BOOL:
        return b.Pad(mask, pads, b.const(False, ir.DataType.BOOL))
    return b.Pad(mask, pads, b.const_like(-math.inf, like=mask))


def _positions(b: Emitter, x: ir.Value) -> ir.Value:
    """0, 1, ... along the sequence axis of (B, H, S, D)."""
    zero, one = (b.const(number, ir.DataType.INT64) for number in (0, 1))
    return b.Range(zero, b.Squeeze(b.dim(x, 2), b.ints(0)), one)


def _masked_rows(
    b: Emitter, additive: ir.Value | None, allowed: ir.Value | None, like: ir.Value
) -> ir.Value | None:
    """True for each query that may attend no key: its output is 0, not NaN."""
    if additive is None and allowed is not None:
        flags = b.cast(allowed, ir.DataType.INT32)
        return b.Equal(_largest_in_rows(b, flags), b.const(0, ir.DataType.INT32))
    if additive is None:
        return None
    minus_infinity = b.const_like(-math.inf, like=like)
    total = additive if allowed is None else b.Where(allowed, additive, minus_infinity)
    return b.Equal(_largest_in_rows(b, total), minus_infinity)


def _largest_in_rows(b: Emitter, x: ir.Value) -> ir.Value:
    # ONNX Runtime keeps the last axis of an empty tensor if it is named from the end.
    rank = rank_of(x)
    return b.ReduceMax(x, b.ints(-1 if rank is None else rank - 1), keepdims=1)
