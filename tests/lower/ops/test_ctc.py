"""CTC loss against eager PyTorch: every reduction, both forms of targets, impossible alignments."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

torch.manual_seed(0)
LOG_PROBS = torch.randn(12, 3, 6).log_softmax(-1)
TARGETS = torch.tensor([[1, 2, 2, 4], [3, 3, 3, 3], [5, 1, -7, -7]])
LENGTHS = torch.tensor([12, 8, 5])
TARGET_LENGTHS = torch.tensor([4, 4, 2])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_padded_targets(reduction):
    def loss(log_probs, targets, lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, lengths, target_lengths, reduction=reduction)

    others = [
        (
            torch.randn(9, 2, 6).log_softmax(-1),
            torch.tensor([[1, 2, 3], [4, 4, 1]]),
            torch.tensor([9, 0]),
            torch.tensor([3, 0]),
        )
    ]
    dynamic = {0: (0, 1), 1: (0, 1), 2: (0,), 3: (0,)}
    example = (LOG_PROBS, TARGETS, LENGTHS, TARGET_LENGTHS)
    check(loss, *example, dynamic=dynamic, others=others)


def test_targets_one_after_the_other():
    def loss(log_probs, targets, lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, lengths, target_lengths, blank=5, reduction="none")

    targets = torch.tensor([1, 2, 2, 4, 0, 3])
    check(
        loss,
        LOG_PROBS.double(),
        targets,
        LENGTHS,
        torch.tensor([3, 1, 2]),
        others=[(LOG_PROBS.double(), targets, LENGTHS, torch.tensor([0, 5, 1]))],
    )


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_impossible_alignments(zero_infinity):
    def loss(log_probs, targets):
        return F.ctc_loss(
            log_probs, targets, (4, 4, 4), (2, 4, 2), reduction="none", zero_infinity=zero_infinity
        )

    check(loss, LOG_PROBS, TARGETS)


def test_one_sequence_without_a_batch():
    for reduction in ("none", "mean"):
        check(
            lambda x, t, n, m, reduction=reduction: F.ctc_loss(x, t, n, m, reduction=reduction),
            LOG_PROBS[:, 0],
            TARGETS[0],
            torch.tensor(10),
            torch.tensor(4),
        )
