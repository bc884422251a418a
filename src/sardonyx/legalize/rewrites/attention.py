"""Attention as MatMul, Softmax, MatMul: the definition its specification gives."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

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

_UNBOUNDED = -1


@dataclass(frozen=True)
class _Bias:
    """What is added to the scores: `additive`, then -inf wherever `allowed` is false."""

    additive: ir.Value | None
    allowed: ir.Value | None
    may_mask_whole_rows: bool


def decompose_attention(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    """The outputs that `node` (Attention 23, 24 or 25) declares."""
    q, k, v = (required_input(node, index) for index in range(3))
    past_key, past_value = input_of(node, 4), input_of(node, 5)
    if rank_of(q) not in (3, 4):
        raise InexpressibleError("the rank of its query is not known to be 3 or 4")
    packed = rank_of(q) == 3
    q_heads, kv_heads = _head_counts(node, q, k, packed)
    if packed:
        q = _unpacked(b, q, q_heads)
        k, v = _unpacked(b, k, kv_heads), _unpacked(b, v, kv_heads)
    if past_key is not None and past_value is not None:
        k, v = b.Concat(past_key, k, axis=2), b.Concat(past_value, v, axis=2)
    present_key, present_value = k, v
    if q_heads is not None and kv_heads is not None and q_heads != kv_heads:
        repeats = q_heads // kv_heads
        source = b.ints(*(head // repeats for head in range(q_heads)))
        k, v = b.Gather(k, source, axis=1), b.Gather(v, source, axis=1)

    scores = _scaled_product(b, node, q, k)
    debug = [scores]
    softcap = node.attributes.get_float("softcap", 0.0)
    if softcap:
        cap = b.const_like(softcap, like=scores)
        scores = b.Mul(b.Tanh(b.Div(scores, cap)), cap)
    debug.append(scores)
    bias = _bias(b, node, q, k)
    if bias.additive is not None:
        scores = b.Add(scores, bias.additive)
    if bias.allowed is not None:
        scores = b.Where(bias.allowed, scores, b.const_like(-math.inf, like=scores))
    debug.append(scores)

    precision = node.attributes.get_int("softmax_precision", 0)
    logits = b.cast(scores, ir.DataType(precision)) if precision else scores
    weights = b.cast(b.Softmax(logits, axis=-1), q.dtype)
    masked_rows = _masked_rows(b, bias, like=weights)
    wants_weights = len(node.outputs) > 3
    if masked_rows is not None and wants_weights:
        weights = b.Where(masked_rows, b.const_like(0.0, like=weights), weights)
    debug.append(weights)
    out = b.MatMul(weights, b.cast(v, q.dtype))
    if masked_rows is not None and not wants_weights:
        # The softmax of a row of -inf is NaN; here its output is the smaller tensor to mend.
        out = b.Where(masked_rows, b.const_like(0.0, like=out), out)
    if packed:
        out = b.Reshape(b.Transpose(out, perm=[0, 2, 1, 3]), b.ints(0, 0, -1))

    mode = node.attributes.get_int("qk_matmul_output_mode", 0)
    return [out, present_key, present_value, debug[mode]][: len(node.outputs)]


def _head_counts(
    node: ir.Node, q: ir.Value, k: ir.Value, packed: bool
) -> tuple[int | None, int | None]:
    """The heads of query and key; None for both if they are equal by symbol."""
    if packed:
        return node.attributes["q_num_heads"].as_int(), node.attributes["kv_num_heads"].as_int()
    q_heads, kv_heads = static_dim(q, 1), static_dim(k, 1)
    if q_heads is not None and kv_heads is not None:
        return q_heads, kv_heads
    if same_dim(q, 1, k, 1):
        return None, None
    raise InexpressibleError("the numbers of its query and key heads are not known")


def _unpacked(b: Emitter, x: ir.Value, heads: int | None) -> ir.Value:
    """(B, S, H * D) -> (B, H, S, D)."""
    hidden = static_dim(x, 2)
    size = hidden // heads if hidden is not None and heads else -1
    return b.Transpose(b.Reshape(x, b.ints(0, 0, heads or 0, size)), perm=[0, 2, 1, 3])


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


def _bias(b: Emitter, node: ir.Node, q: ir.Value, k: ir.Value) -> _Bias:
    mask, past_key, nonpad = (input_of(node, index) for index in (3, 4, 6))
    allowed: list[ir.Value] = []
    additive: ir.Value | None = None
    if mask is not None:
        mask = _padded_mask(b, _before_expand(mask), k)
        if mask.dtype == ir.DataType.BOOL:
            allowed.append(mask)
        else:
            additive = b.cast(mask, q.dtype)
    is_causal = bool(node.attributes.get_int("is_causal", 0))
    left = node.attributes.get_int("left_window_size", _UNBOUNDED)
    right = node.attributes.get_int("right_window_size", _UNBOUNDED)
    if is_causal or left >= 0 or right >= 0:
        offset = _query_offset(b, q, past_key, nonpad)
        allowed += _position_masks(b, q, k, offset, is_causal, left, right)
    if nonpad is not None:
        keys = _positions(b, k)
        allowed.append(b.Less(keys, b.Reshape(nonpad, b.ints(-1, 1, 1, 1))))
    both = functools.reduce(b.And, allowed) if allowed else None
    # A causal mask alone leaves every query at least the first key.
    only_causal = is_causal and left < 0 and right < 0 and mask is None and nonpad is None
    return _Bias(additive, both, may_mask_whole_rows=not only_causal)


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


def _query_offset(
    b: Emitter, q: ir.Value, past_key: ir.Value | None, nonpad: ir.Value | None
) -> ir.Value | None:
    """The number of keys before the first query, broadcastable to (B, H, Sq, Sk)."""
    if past_key is not None:
        return b.dim(past_key, 2)
    if nonpad is not None:
        return b.Sub(b.Reshape(nonpad, b.ints(-1, 1, 1, 1)), b.dim(q, 2))
    return None


def _position_masks(
    b: Emitter,
    q: ir.Value,
    k: ir.Value,
    offset: ir.Value | None,
    is_causal: bool,
    left: int,
    right: int,
) -> list[ir.Value]:
    keys = _positions(b, k)
    queries = b.Unsqueeze(_positions(b, q), b.ints(1))
    if offset is not None:
        queries = b.Add(queries, offset)
    masks = []
    if is_causal:
        masks.append(b.LessOrEqual(keys, queries))
    if right >= 0:
        masks.append(b.LessOrEqual(keys, b.Add(queries, b.ints(right))))
    if left >= 0:
        masks.append(b.GreaterOrEqual(keys, b.Sub(queries, b.ints(left))))
    return masks


def _masked_rows(b: Emitter, bias: _Bias, like: ir.Value) -> ir.Value | None:
    """True for each query that may attend no key: its output is 0, not NaN."""
    if not bias.may_mask_whole_rows:
        return None
    if bias.additive is None:
        if bias.allowed is None:
            return None
        flags = b.cast(bias.allowed, ir.DataType.INT32)
        return b.Equal(_largest_in_rows(b, flags), b.const(0, ir.DataType.INT32))
    minus_infinity = b.const_like(-math.inf, like=like)
    total = bias.additive
    if bias.allowed is not None:
        total = b.Where(bias.allowed, total, minus_infinity)
    return b.Equal(_largest_in_rows(b, total), minus_infinity)


def _largest_in_rows(b: Emitter, x: ir.Value) -> ir.Value:
    # ONNX Runtime keeps the last axis of an empty tensor if it is named from the end.
    rank = rank_of(x)
    return b.ReduceMax(x, b.ints(-1 if rank is None else rank - 1), keepdims=1)
