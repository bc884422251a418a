"""Losses over classes, spelled out."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, required_input


def along_last_axis(b: Emitter, op_type: str, x: ir.Value, axis: int, rank: int) -> ir.Value:
    """Softmax and its kin of opsets below 13, which take all axes from one on: of one alone."""
    if axis == rank - 1:
        return b.node(op_type, [x], {"axis": axis})[0]
    swapped = list(range(rank))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    moved = b.Transpose(x, perm=swapped)
    return b.Transpose(b.node(op_type, [moved], {"axis": rank - 1})[0], perm=swapped)


def log_probabilities(b: Emitter, scores: ir.Value) -> ir.Value:
    return along_last_axis(b, "LogSoftmax", scores, 1, known_rank(scores, "scores"))


def negative_log_likelihood(b: Emitter, node: ir.Node, log_prob: ir.Value) -> ir.Value:
    """Of the classes that input 1 of the node names, weighted by input 2."""
    classes, weight = required_input(node, 1), input_of(node, 2)
    if log_prob.dtype is None or classes.dtype is None:
        raise InexpressibleError("the element type of its input is not known")
    ignored: ir.Value | None = None
    if "ignore_index" in node.attributes:
        ignored_class = b.const(node.attributes["ignore_index"].as_int(), classes.dtype)
        ignored = b.Equal(classes, ignored_class)
        classes = b.Where(ignored, b.const(0, classes.dtype), classes)
    column = b.Unsqueeze(classes, axes=[1])
    picked = b.Squeeze(b.GatherElements(log_prob, column, axis=1), axes=[1])
    loss, applied = b.Neg(picked), None
    if weight is not None:
        applied = b.Gather(weight, classes, axis=0)
        loss = b.Mul(loss, applied)
    if ignored is not None:
        zero = b.const(0.0, log_prob.dtype)
        loss = b.Where(ignored, zero, loss)
        applied = b.const(1.0, log_prob.dtype) if applied is None else applied
        applied = b.Where(ignored, zero, applied)
    reduction = node.attributes.get_string("reduction", "mean")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return b.ReduceSum(loss, keepdims=0)
    if applied is None:
        return b.ReduceMean(loss, keepdims=0)
    return b.Div(b.ReduceSum(loss, keepdims=0), b.ReduceSum(applied, keepdims=0))
