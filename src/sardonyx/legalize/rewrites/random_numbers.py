"""Random numbers where ONNX Runtime draws none but those of Dropout, as from opset 22 on.

The mask of a Dropout is a random number of 64 bits, which SplitMix64 spreads over all elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_ir as ir

from sardonyx.legalize.boundary import known_dtype
from sardonyx.legalize.emitter import Emitter, required_input

_BITS = 64
_GOLDEN_RATIO = 0x9E3779B97F4A7C15
_MIXING_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _seed(b: Emitter, node: ir.Node) -> ir.Value:
    """Another uint64 at every run."""
    given = node.attributes.get_float("seed")
    step = b.graph_input("step", ir.DataType.INT64, [])
    goes_on = b.graph_input("goes_on", ir.DataType.BOOL, [])

    def drawn(inner: Emitter) -> list[ir.Value]:
        # It depends on the step: ONNX Runtime computes a Dropout of constants once and for all.
        data = inner.Expand(inner.Cast(step, to=ir.DataType.FLOAT), inner.ints(_BITS + 1))
        ratio, training = inner.const(0.5, ir.DataType.FLOAT), inner.const(True, ir.DataType.BOOL)
        seed = {"seed": None if given is None else int(given)}
        _, mask = inner.node("Dropout", [data, ratio, training], seed, outputs=2)
        return [inner.Identity(goes_on), mask]

    once, always = b.const(1, ir.DataType.INT64), b.const(True, ir.DataType.BOOL)
    mask = b.Loop(once, always, body=b.subgraph([step, goes_on], drawn, "draw"))
    # ONNX Runtime's Dropout treats the first element alike in all runs.
    weights = b.ints(0, *(1 << bit for bit in range(_BITS - 1)), -1 << (_BITS - 1))
    number = b.ReduceSum(b.Mul(b.Cast(mask, to=ir.DataType.INT64), weights), keepdims=0)
    return b.Cast(number, to=ir.DataType.UINT64)


def _uniform(b: Emitter, node: ir.Node, sizes: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Numbers from [0, 1), with all bits that a float of the type has."""

    def number(value: int) -> ir.Value:
        return b.const(value, ir.DataType.UINT64)

    def shifted(value: ir.Value, by: int) -> ir.Value:
        return b.BitShift(value, number(by), direction="RIGHT")

    zero, one = (b.const(value, ir.DataType.INT64) for value in (0, 1))
    places = b.Range(zero, b.ReduceProd(sizes, keepdims=0), one)
    steps = b.Mul(b.Cast(places, to=ir.DataType.UINT64), number(_GOLDEN_RATIO))
    state = b.Add(_seed(b, node), steps)
    for by, factor in _MIXING_STEPS:
        state = b.Mul(b.BitwiseXor(state, shifted(state, by)), number(factor))
    state = b.BitwiseXor(state, shifted(state, 31))
    digits = 53 if dtype == ir.DataType.DOUBLE else 24
    drawn = b.Cast(shifted(state, _BITS - digits), to=dtype)
    return b.Reshape(b.Mul(drawn, b.const(2.0**-digits, dtype)), sizes, allowzero=1)


def _random(b: Emitter, node: ir.Node) -> ir.Value:
    """RandomUniform and RandomNormal, of a shape or like a tensor."""
    given, dtype = node.attributes, known_dtype(node.outputs[0])
    wide = ir.DataType.DOUBLE if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
    sizes = b.Shape(node.inputs[0]) if node.inputs else b.ints(*given["shape"].as_ints())
    if "Normal" in node.op_type:  # by the method of Box and Muller
        pairs = _uniform(b, node, b.Concat(b.ints(2), sizes, axis=0), wide)
        first, second = (b.Gather(pairs, b.const(row, ir.DataType.INT64)) for row in (0, 1))
        logarithm = b.Log(b.Sub(b.const(1.0, wide), first))
        radius = b.Sqrt(b.Mul(logarithm, b.const(-2.0, wide)))
        drawn = b.Mul(radius, b.Cos(b.Mul(second, b.const(2 * math.pi, wide))))
        scale, offset = given.get_float("scale", 1.0), given.get_float("mean", 0.0)
    else:
        drawn, offset = _uniform(b, node, sizes, wide), given.get_float("low", 0.0)
        scale = given.get_float("high", 1.0) - offset
    if (scale, offset) != (1.0, 0.0):
        drawn = b.Add(b.Mul(drawn, b.const(scale, wide)), b.const(offset, wide))
    return b.cast(drawn, dtype)


def _multinomial(b: Emitter, node: ir.Node) -> ir.Value:
    """The largest of the logarithms plus noise of Gumbel's distribution."""
    logarithms = b.at_least_float32(required_input(node, 0))
    samples = b.ints(node.attributes.get_int("sample_size", 1))
    sizes = b.Concat(b.dim(logarithms, 0), samples, b.dim(logarithms, 1), axis=0)
    drawn = _uniform(b, node, sizes, known_dtype(logarithms))
    noise = b.Neg(b.Log(b.Neg(b.Log(drawn))))
    chosen = b.ArgMax(b.Add(b.Unsqueeze(logarithms, b.ints(1)), noise), axis=2, keepdims=0)
    return b.cast(chosen, known_dtype(node.outputs[0]))


RANDOM_FORMS: Mapping[str, Callable[[Emitter, ir.Node], ir.Value]] = {
    "Multinomial": _multinomial,
    **{f"Random{kind}{of}": _random for kind in ("Normal", "Uniform") for of in ("", "Like")},
}
