"""Connectionist temporal classification: the sum over all alignments, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.loops import run_steps
from sardonyx.lower.kernels.reductions import accumulate
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Tensor

_NONE, _MEAN, _SUM = 0, 1, 2


@lowering("aten::ctc_loss.IntList", "aten::ctc_loss.Tensor")
def ctc_loss(
    b: Builder,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Dims,
    target_lengths: Tensor | Dims,
    blank: int = 0,
    reduction: int = _MEAN,
    zero_infinity: bool = False,
) -> Tensor:
    single = log_probs.rank == 2
    lengths = _lengths(b, target_lengths)
    loss = _negative_log_likelihood(
        b, log_probs, targets, _lengths(b, input_lengths), lengths, blank
    )
    if zero_infinity:
        loss = b.Where(b.IsInf(loss), b.scalar(0, loss.dtype), loss)
    if reduction == _NONE:
        return b.squeeze(loss, [0]) if single else loss
    if reduction == _SUM:
        return accumulate(b, "ReduceSum", loss, None)
    return accumulate(b, "ReduceMean", b.Div(loss, b.cast(b.Max(lengths, 1), loss.dtype)), None)


@lowering("aten::_ctc_loss", "aten::_ctc_loss.Tensor")
def ctc_loss_of_each(
    b: Builder,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Dims,
    target_lengths: Tensor | Dims,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, None]:
    """The losses; the table of alignments serves the backward pass and is not given.

    `zero_infinity` concerns gradients only here.
    """
    return ctc_loss(b, log_probs, targets, input_lengths, target_lengths, blank, _NONE), None


def _lengths(b: Builder, given: Tensor | Sequence[Dim]) -> Tensor:
    if not isinstance(given, Tensor):
        return b.shape(given)
    return b.reshape(b.cast(given, torch.int64), [1] if given.rank == 0 else b.dims(given))


def _negative_log_likelihood(
    b: Builder,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
) -> Tensor:
    if log_probs.rank == 2:  # one sequence without a batch dim
        log_probs = b.unsqueeze(log_probs, [1])
    batch = log_probs.dim(1)
    symbols = _with_blanks(b, b.cast(targets, torch.int64), target_lengths, batch, blank)
    may_skip = b.Not(b.Equal(symbols, _moved(b, symbols, batch, 2, -1)))
    impossible = b.scalar(-math.inf, log_probs.dtype)
    ends = b.unsqueeze(b.Mul(target_lengths, 2), [1])
    last_step = b.unsqueeze(input_lengths, [1])

    def step(
        number: Tensor, carried: Sequence[Tensor]
    ) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        (reached,) = carried
        before = _moved(b, reached, batch, 1, -math.inf)
        skipped = _moved(b, reached, batch, 2, -math.inf)
        ways = [reached, before, b.Where(may_skip, skipped, impossible)]
        emitted = b.GatherElements(b.Gather(log_probs, number, axis=0), symbols, axis=1)
        following = b.Add(_log_of_sum(b, ways), emitted)
        return [b.Where(b.Less(number, last_step), following, reached)], []

    # Before the first step nothing has been said: the first symbol alone is certain.
    length = symbols.shape[1] if symbols.shape else None
    places = arange(b, b.Shape(symbols, start=1) if length is None else length)
    zero = b.scalar(0, log_probs.dtype)
    row = b.unsqueeze(b.Where(b.Equal(places, 0), zero, impossible), [0])
    start = b.Expand(row, b.Shape(symbols))
    (reached,), _ = run_steps(b, log_probs.dim(0), step, [b.with_shape(start, symbols.shape or ())])
    after_blank = b.GatherElements(reached, ends, axis=1)
    after_label = b.GatherElements(reached, b.Max(b.Sub(ends, 1), 0), axis=1)
    after_label = b.Where(b.Greater(ends, 0), after_label, impossible)
    return b.squeeze(b.Neg(_log_of_sum(b, [after_blank, after_label])), [1])


def _log_of_sum(b: Builder, terms: Sequence[Tensor]) -> Tensor:
    largest = b.Max(*terms)
    # Where all are impossible, the largest is -inf and must not be taken from itself.
    shift = b.Where(b.IsInf(largest), b.scalar(0, largest.dtype), largest)
    total = b.Sum(*(b.Exp(b.Sub(term, shift)) for term in terms))
    return b.Add(b.Log(total), shift)


def _moved(b: Builder, table: Tensor, batch: Dim, places: int, filler: float) -> Tensor:
    """The rows of `table` moved to the right by some places."""
    dtype = table.dtype
    before = b.full([batch, places], int(filler) if dtype == torch.int64 else filler, dtype)
    moved = b.slice(b.Concat(before, table, axis=1), 1, 0, -places)
    return b.with_shape(moved, table.shape or ())


def _with_blanks(b: Builder, targets: Tensor, lengths: Tensor, batch: Dim, blank: int) -> Tensor:
    """(batch, 2 * longest + 1): the targets of each sequence with a blank around each of them."""
    longest: Dim | Tensor
    if targets.rank == 2:
        longest = targets.dim(1)
        labels = targets
    else:  # one sequence after the other
        longest = b.ReduceMax(lengths, [0], keepdims=1)
        starts = b.unsqueeze(b.CumSum(lengths, b.const(0), exclusive=1), [1])
        places = b.Add(starts, arange(b, longest))
        known = b.Less(arange(b, longest), b.unsqueeze(lengths, [1]))
        labels = b.Gather(targets, b.Where(known, places, b.scalar(0, torch.int64)), axis=0)
    known = b.Less(arange(b, longest), b.unsqueeze(lengths, [1]))
    labels = b.Where(known, labels, b.scalar(blank, torch.int64))
    labels = b.Concat(labels, b.full([batch, 1], blank, torch.int64), axis=1)
    total: Dim | Tensor
    if isinstance(longest, Tensor):
        total = b.Add(b.Mul(longest, 2), 1)
    else:
        total = 2 * longest + 1
    order = arange(b, total)
    is_label = b.Equal(b.Mod(order, 2), 1)
    symbols = b.Gather(labels, b.Where(is_label, b.Div(order, 2), b.size(longest)), axis=1)
    return b.with_shape(symbols, [batch, None if isinstance(total, Tensor) else total])
