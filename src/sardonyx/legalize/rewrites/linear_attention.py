"""LinearAttention as a Scan over time: the recurrence that its specification gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError
from sardonyx.legalize.emitter import Emitter, input_of, required_input, static_dim


def decompose_linear_attention(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    """Its two outputs. All arithmetic is float32, as the specification asks."""
    query, key, value = (required_input(node, index) for index in range(3))
    past, decay, beta = (input_of(node, index) for index in (3, 4, 5))
    q_heads = node.attributes["q_num_heads"].as_int()
    kv_heads = node.attributes["kv_num_heads"].as_int()
    q_hidden, v_hidden = static_dim(query, 2), static_dim(value, 2)
    if q_hidden is None or v_hidden is None:
        raise InexpressibleError("the hidden sizes of its query and value are not known")
    if beta is not None and static_dim(beta, 2) is None:
        raise InexpressibleError("the last dimension of its beta is not known")
    key_size, value_size = q_hidden // q_heads, v_hidden // kv_heads

    def unpacked(x: ir.Value, heads: int) -> ir.Value:
        """(B, T, H * D) -> (B, T, H, D) in float32."""
        return b.Reshape(b.cast(x, ir.DataType.FLOAT), b.ints(0, 0, heads, -1))

    scanned = [unpacked(query, q_heads), unpacked(key, kv_heads), unpacked(value, kv_heads)]
    if decay is not None:
        scanned.append(unpacked(decay, kv_heads))
    if beta is not None:
        scanned.append(unpacked(beta, static_dim(beta, 2) or 1))
    if past is None:
        sizes = b.Concat(b.dim(query, 0), b.ints(kv_heads, key_size, value_size), axis=0)
        initial = b.Expand(b.const(0.0, ir.DataType.FLOAT), sizes)
    else:
        initial = b.cast(past, ir.DataType.FLOAT)
    final, outputs = b.node(
        "Scan",
        [initial, *scanned],
        {
            "body": _step(b, node, len(scanned), 1 / math.sqrt(key_size)),
            "num_scan_inputs": len(scanned),
            "scan_input_axes": [1] * len(scanned),
            "scan_output_axes": [1],
        },
        outputs=2,
    )
    packed = b.Reshape(outputs, b.ints(0, 0, q_heads * value_size))
    state_dtype = query.dtype if past is None else past.dtype
    return b.cast(packed, query.dtype), b.cast(final, state_dtype)


def _step(b: Emitter, node: ir.Node, scanned: int, default_scale: float) -> ir.Graph:
    """The next state and one element of the output, of the state, the query, key and value of one
    point in time, and its decay and beta where the node has them."""
    decays, corrects = (input_of(node, index) is not None for index in (4, 5))
    q_heads = node.attributes["q_num_heads"].as_int()
    group = q_heads // node.attributes["kv_num_heads"].as_int()
    scale = node.attributes.get_float("scale", 0.0) or default_scale
    state_in = b.graph_input("state", ir.DataType.FLOAT, [None] * 4)
    elements = [
        b.graph_input(f"step{index}", ir.DataType.FLOAT, [None] * 3) for index in range(scanned)
    ]

    def step(inner: Emitter) -> Sequence[ir.Value]:
        q, k, v, *gates = elements
        last, row = inner.ints(-1), inner.ints(2)
        state = inner.Identity(state_in)
        if decays:
            state = inner.Mul(state, inner.Unsqueeze(inner.Exp(gates[0]), last))
        if corrects:
            stored = inner.Squeeze(inner.MatMul(inner.Unsqueeze(k, row), state), row)
            v = inner.Mul(gates[-1], inner.Sub(v, stored))
        update = inner.Mul(inner.Unsqueeze(k, last), inner.Unsqueeze(v, row))
        state = inner.Add(state, update)
        read = state
        if group > 1:
            read = inner.Gather(state, inner.ints(*(h // group for h in range(q_heads))), axis=1)
        out = inner.Squeeze(inner.MatMul(inner.Unsqueeze(q, row), read), row)
        return state, inner.Mul(out, inner.const(scale, ir.DataType.FLOAT))

    return b.subgraph([state_in, *elements], step, "linear_attention_step")
