"""Loss functions."""

from __future__ import annotations

import torch

from sardonyx import _torch_private
from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import accumulate, accumulation_dtype, reduce_dims
from sardonyx.lower.ops.linear import linear
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Scalar, Tensor

_torch_private.register_chunked_losses()

_NONE, _MEAN, _SUM = 0, 1, 2
_REDUCTION_NAMES = {_NONE: "none", _MEAN: "mean", _SUM: "sum"}
_REDUCTIONS_BY_NAME = {name: number for number, name in _REDUCTION_NAMES.items()}


def _reduced(b: Builder, loss: Tensor, reduction: int) -> Tensor:
    if reduction == _NONE:
        return loss
    if reduction == _SUM:
        return accumulate(b, "ReduceSum", loss, None)
    if all(loss.static_dim(axis) for axis in range(loss.rank)):
        return accumulate(b, "ReduceMean", loss, None)
    # The mean of nothing is NaN in ATen, 0 in ONNX Runtime.
    wide = b.cast(loss, accumulation_dtype(loss.dtype))
    total = reduce_dims(b, "ReduceSum", wide, None)
    return b.cast(b.Div(total, b.cast(b.Size(loss), wide.dtype)), loss.dtype)


# -- regression ------------------------------------------------------------------------------------


def _difference(b: Builder, self: Tensor | Scalar, target: Tensor | Scalar) -> Tensor:
    left, right = b.promote(self, target)
    return b.Sub(left, right)


@lowering("aten::mse_loss")
def mse_loss(b: Builder, self: Tensor, target: Tensor, reduction: int = _MEAN) -> Tensor:
    difference = _difference(b, self, target)
    return _reduced(b, b.Mul(difference, difference), reduction)


# -- binary classification and distributions -------------------------------------------------------


@lowering("aten::binary_cross_entropy")
def binary_cross_entropy(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Tensor:
    # ATen bounds the logarithms so that a sure and wrong answer costs 100, not infinity.
    of_true = b.Max(b.Log(self), -100)
    of_false = b.Max(b.Log(b.Sub(1, self)), -100)
    loss = b.Sub(b.Mul(b.Sub(target, 1), of_false), b.Mul(target, of_true))
    return _reduced(b, loss if weight is None else b.Mul(loss, weight), reduction)


@lowering("aten::soft_margin_loss")
def soft_margin_loss(b: Builder, self: Tensor, target: Tensor, reduction: int = _MEAN) -> Tensor:
    # Overflows to infinity where ATen's does.
    agreement = b.Mul(*b.promote(self, target))
    return _reduced(b, b.Log(b.Add(b.Exp(b.Neg(agreement)), 1)), reduction)


# -- margins ---------------------------------------------------------------------------------------


@lowering("aten::hinge_embedding_loss")
def hinge_embedding_loss(
    b: Builder, self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = _MEAN
) -> Tensor:
    zero = b.scalar(0, self.dtype)
    of_negative = b.Where(b.Equal(target, 1), zero, b.Max(b.Sub(margin, self), 0))
    of_positive = b.Where(b.Equal(target, -1), zero, self)
    return _reduced(b, b.Add(of_negative, of_positive), reduction)


@lowering("aten::margin_ranking_loss")
def margin_ranking_loss(
    b: Builder,
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = _MEAN,
) -> Tensor:
    # Integers are multiplied as such and wrap; the margin makes floats of them.
    behind = b.Mul(*b.promote(_difference(b, input2, input1), target))
    behind = b.cast(behind, type_promotion.float_dtype(input1, input2, target))
    return _reduced(b, b.Max(b.Add(behind, margin), 0), reduction)


@lowering("aten::multilabel_margin_loss", "aten::multilabel_margin_loss_forward")
def multilabel_margin_loss(
    b: Builder, self: Tensor, target: Tensor, reduction: int = _MEAN
) -> tuple[Tensor, None]:
    """The loss; which classes are targets serves the backward pass and is not given."""
    if self.rank <= 1 and reduction == _NONE:
        raise b.refuse("PyTorch infers a shape for one unreduced sample that it does not give")
    if self.rank == 0:
        self, target = b.unsqueeze(self, [0]), b.unsqueeze(target, [0])
    classes = self.dim(-1)
    target = b.cast(target, torch.int64)
    # The targets of a sample end at the first negative one.
    ended = b.CumSum(b.cast(b.Less(target, 0), torch.int32), target.rank - 1)
    counts = b.Equal(ended, 0)
    known = b.Where(counts, target, b.scalar(0, torch.int64))
    scores = b.GatherElements(self, known, axis=-1)
    every = b.Range(*(b.scalar(n, torch.int64) for n in (0, classes, 1)))
    counts = b.unsqueeze(counts, [-1])
    hits = b.cast(b.And(b.Equal(b.unsqueeze(known, [-1]), every), counts), torch.int32)
    is_target = b.Greater(b.ReduceMax(hits, [-2], keepdims=1), 0)
    gaps = b.Sub(b.unsqueeze(scores, [-1]), b.unsqueeze(self, [-2]))
    margins = b.Max(b.Sub(1, gaps), 0)
    compared = b.And(counts, b.Not(is_target))
    losses = b.Where(compared, margins, b.scalar(0, self.dtype))
    loss = b.Div(accumulate(b, "ReduceSum", losses, [-2, -1]), b.scalar(classes, self.dtype))
    return _reduced(b, loss, reduction), None


# -- classification --------------------------------------------------------------------------------


@lowering("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss_forward(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> tuple[Tensor, None]:
    """The loss; the total weight serves the backward pass and is not computed."""
    op = "NegativeLogLikelihoodLoss"
    return _indexed_loss(b, op, self, target, weight, reduction, ignore_index), None


nll_loss = lowering("aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd")(
    first_result(nll_loss_forward)
)


@lowering("aten::cross_entropy_loss")
def cross_entropy_loss(
    b: Builder,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    if target.is_floating_point:
        return _loss_of_probabilities(b, self, target, weight, reduction, label_smoothing)
    if label_smoothing == 0:
        if self.static_shape is None or 0 in self.static_shape:
            # ONNX Runtime's SoftmaxCrossEntropyLoss takes no empty batch.
            log_probabilities = b.LogSoftmax(self, axis=_class_axis(self))
            return nll_loss(b, log_probabilities, target, weight, reduction, ignore_index)
        return _indexed_loss(
            b, "SoftmaxCrossEntropyLoss", self, target, weight, reduction, ignore_index
        )
    return _smoothed_loss(b, self, target, weight, reduction, ignore_index, label_smoothing)


@lowering("torch_nn::_linear_cross_entropy_batch_chunked")
def linear_cross_entropy(
    b: Builder,
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    acc_dtype: torch.dtype,
) -> tuple[Tensor, None, None, None]:
    """The loss of a linear layer's scores, whose gradients are not computed.

    PyTorch does it chunk by chunk, which changes the memory it takes, not what it is.
    """
    scores = linear(b, *(b.cast(x, acc_dtype) for x in (input, linear_weight)))
    if linear_bias is not None:
        scores = b.Add(scores, b.cast(linear_bias, acc_dtype))
    weights = None if weight is None else b.cast(weight, acc_dtype)
    reduced = _REDUCTIONS_BY_NAME[reduction]
    loss = cross_entropy_loss(b, scores, target, weights, reduced, ignore_index, label_smoothing)
    return b.cast(loss, input.dtype), None, None, None


lowering(
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction",
    reduction="none",
    label_smoothing=0.0,
)(first_result(linear_cross_entropy))


def _indexed_loss(
    b: Builder,
    op: str,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> Tensor:
    target = b.cast(target, torch.int64)
    single = scores.rank == 1
    if single:  # one sample without a batch dim
        scores, target = b.unsqueeze(scores, [0]), b.reshape(target, [1])
    loss = b.op(
        op,
        scores,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=_REDUCTION_NAMES[reduction],
    )
    if reduction != _NONE:
        return b.with_shape(loss, [])
    loss = b.with_shape(loss, b.dims(target))
    return b.squeeze(loss, [0]) if single else loss


def _class_axis(scores: Tensor) -> int:
    return 0 if scores.rank == 1 else 1


def _sum_over_classes(b: Builder, log_likelihoods: Tensor, weight: Tensor | None) -> Tensor:
    """The loss of each sample, with the classes weighted."""
    axis = _class_axis(log_likelihoods)
    if weight is not None:
        per_class = b.reshape(weight, [-1, *[1] * (log_likelihoods.rank - 1 - axis)])
        log_likelihoods = b.Mul(log_likelihoods, per_class)
    return b.Neg(accumulate(b, "ReduceSum", log_likelihoods, axis))


def _loss_of_probabilities(
    b: Builder,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    smoothing: float,
) -> Tensor:
    axis = _class_axis(scores)
    classes = scores.dim(axis)
    if smoothing:
        share = b.Div(b.scalar(smoothing, target.dtype), b.scalar(classes, target.dtype))
        target = b.Add(b.Mul(target, 1 - smoothing), share)
    loss = _sum_over_classes(b, b.Mul(b.LogSoftmax(scores, axis=axis), target), weight)
    # The mean is over samples, whatever the weights.
    return _reduced(b, loss, reduction)


def _smoothed_loss(
    b: Builder,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    """(1 - s) of the loss of the target and s of the mean of the losses of all classes."""
    axis = _class_axis(scores)
    log_probabilities = b.LogSoftmax(scores, axis=axis)
    of_target = nll_loss(b, log_probabilities, target, weight, reduction, ignore_index)
    of_all = _sum_over_classes(b, log_probabilities, weight)
    ignored = b.Equal(b.cast(target, torch.int64), ignore_index)
    of_all = b.Where(ignored, b.scalar(0, scores.dtype), of_all)
    if reduction != _NONE:
        of_all = accumulate(b, "ReduceSum", of_all, None)
    if reduction == _MEAN:
        zero, one = b.scalar(0, scores.dtype), b.scalar(1, scores.dtype)
        counted = one
        if weight is not None:
            known = b.Where(ignored, b.scalar(0, torch.int64), b.cast(target, torch.int64))
            counted = b.Gather(weight, known, axis=0)
        of_all = b.Div(of_all, accumulate(b, "ReduceSum", b.Where(ignored, zero, counted), None))
    share = b.Div(b.scalar(smoothing, scores.dtype), b.scalar(scores.dim(axis), scores.dtype))
    return b.Add(b.Mul(of_target, 1 - smoothing), b.Mul(of_all, share))
