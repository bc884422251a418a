"""Losses against eager PyTorch: every reduction, weights, ignored targets, smoothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)
REDUCTIONS = ("none", "mean", "sum")


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


X, Y, Z = rand(4, 3), rand(4, 3), rand(4, 3)
P, Q = X.sigmoid(), Y.softmax(1)
SIGNS = torch.tensor([1.0, -1, -1, 1])
CLASSES = torch.tensor([0, 2, 1, 0])
LABELS = torch.tensor([[0, 2, -1], [1, -1, 0], [2, 1, 0], [-1, 0, 1]])
POSITIVE = torch.tensor([0.5, 2.0, 3.0])

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "mse": (F.mse_loss, (X, Y), {}),
    "mse_mixed": (F.mse_loss, (X, Y.double()), {}),
    "l1": (F.l1_loss, (X, Y), {}),
    "smooth_l1": (F.smooth_l1_loss, (X, Y), {}),
    "smooth_l1_beta": (F.smooth_l1_loss, (X, Y), {"beta": 0.3}),
    "smooth_l1_beta_0": (F.smooth_l1_loss, (X, Y), {"beta": 0.0}),
    "huber": (F.huber_loss, (X, Y), {"delta": 0.7}),
    "bce": (F.binary_cross_entropy, (P, Q), {}),
    "bce_weight": (F.binary_cross_entropy, (P, Q, Z.abs()), {}),
    "bce_sure": (F.binary_cross_entropy, (P.round(), Q), {}),
    "bce_logits": (F.binary_cross_entropy_with_logits, (X * 30, Q), {}),
    "bce_logits_double": (F.binary_cross_entropy_with_logits, (X.double(), Q.double()), {}),
    "bce_logits_weight": (F.binary_cross_entropy_with_logits, (X, Q, Z.abs()), {}),
    "bce_logits_pos_weight": (F.binary_cross_entropy_with_logits, (X, Q), {"pos_weight": POSITIVE}),
    "bce_logits_both": (F.binary_cross_entropy_with_logits, (X, Q, Z), {"pos_weight": POSITIVE}),
    "kl_div": (F.kl_div, (X, Q * (Q > 0.2)), {}),
    "kl_div_log": (F.kl_div, (X, Q.log()), {"log_target": True}),
    "soft_margin": (F.soft_margin_loss, (X * 50, SIGNS[:, None].expand(4, 3)), {}),
    "hinge_embedding": (F.hinge_embedding_loss, (X, SIGNS[:, None]), {"margin": 0.7}),
    "margin_ranking": (F.margin_ranking_loss, (X[:, 0], Y[:, 0], SIGNS), {"margin": 0.2}),
    "cosine_embedding": (F.cosine_embedding_loss, (X, Y, SIGNS), {"margin": 0.1}),
    "triplet_margin": (F.triplet_margin_loss, (X, Y, Z), {"p": 2, "swap": True}),
    "poisson_nll": (F.poisson_nll_loss, (X, Y.abs() * 3), {"full": True}),
    "poisson_nll_rates": (F.poisson_nll_loss, (X.abs(), Y.abs()), {"log_input": False}),
    "multi_margin": (F.multi_margin_loss, (X, CLASSES), {"p": 2, "margin": 0.6}),
    "multilabel_margin": (F.multilabel_margin_loss, (X, LABELS), {}),
    "multilabel_soft_margin": (F.multilabel_soft_margin_loss, (X, (Y > 0).float()), {}),
    "nll": (F.nll_loss, (X, CLASSES), {}),
    "nll_weight": (F.nll_loss, (X, CLASSES, POSITIVE), {}),
    "nll_ignored": (F.nll_loss, (X, CLASSES, POSITIVE), {"ignore_index": 0}),
    "nll_one_sample": (F.nll_loss, (X[0], CLASSES[1]), {}),
    "nll_images": (F.nll_loss, (rand(2, 3, 4, 5), torch.randint(0, 3, (2, 4, 5))), {}),
    "nll_volumes": (F.nll_loss, (rand(2, 3, 4, 5, 2), torch.randint(0, 3, (2, 4, 5, 2))), {}),
    "nll_sequences": (F.nll_loss, (rand(2, 3, 4), torch.randint(0, 3, (2, 4)), POSITIVE), {}),
    "cross_entropy": (F.cross_entropy, (X, CLASSES), {}),
    "cross_entropy_weight": (F.cross_entropy, (X, CLASSES, POSITIVE), {"ignore_index": 2}),
    "cross_entropy_one_sample": (F.cross_entropy, (X[0], CLASSES[1]), {}),
    "cross_entropy_images": (F.cross_entropy, (rand(2, 3, 4, 5), CLASSES[:2, None, None]
        .expand(2, 4, 5)), {}),
    "cross_entropy_smooth": (F.cross_entropy, (X, CLASSES), {"label_smoothing": 0.1}),
    "cross_entropy_smooth_weight": (
        F.cross_entropy, (X, CLASSES, POSITIVE), {"label_smoothing": 0.2, "ignore_index": 0},
    ),
    "cross_entropy_smooth_images": (
        F.cross_entropy, (rand(2, 3, 4, 5), torch.randint(0, 3, (2, 4, 5)), POSITIVE),
        {"label_smoothing": 0.2, "ignore_index": 1},
    ),
    "cross_entropy_probabilities": (F.cross_entropy, (X, Q), {}),
    "cross_entropy_probabilities_smooth": (
        F.cross_entropy, (X, Q, POSITIVE), {"label_smoothing": 0.3},
    ),
    "cross_entropy_probability_images": (
        F.cross_entropy, (rand(2, 3, 4, 5), rand(2, 3, 4, 5).softmax(1), POSITIVE), {},
    ),
    "cross_entropy_one_probability": (F.cross_entropy, (X[0], Q[0]), {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(CASES))
def test_every_reduction(name: str) -> None:
    function, args, options = CASES[name]
    check(lambda *x: [function(*x, **options, reduction=r) for r in REDUCTIONS], *args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["kl_div", "bce_logits", "nll_weight", "cross_entropy", "cross_entropy_smooth"]
)
def test_at_another_batch_size(name: str) -> None:
    function, args, options = CASES[name]
    batched = {k: [0] for k, a in enumerate(args) if a.shape[0] == 4}
    other = tuple(torch.cat([a, a.flip(0)]) if k in batched else a for k, a in enumerate(args))
    check(lambda *x: function(*x, **options), *args, dynamic=batched, others=[other])


def test_all_targets_ignored() -> None:
    ignored = torch.full_like(CLASSES, -100)
    check(lambda x, t: (F.nll_loss(x, t), F.cross_entropy(x, t, reduction="sum")), X, ignored)


def test_byte_targets_are_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match="Expected dtype int32/int64"):
        sardonyx.export(F.nll_loss, (X, CLASSES.byte()))


def test_gaussian_nll() -> None:
    check(lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True), X, Y, Z.abs())


def test_losses_of_integers() -> None:
    x, y, z = (torch.randint(0, 256, (4, 3)).byte() for _ in range(3))
    check(lambda x, y, t: F.margin_ranking_loss(x, y, t, 2.0, reduction="none"), x, y, z)
    check(lambda x, y, z: F.triplet_margin_with_distance_loss(x, y, z), x, y, z)


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="not in this PyTorch")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_linear_cross_entropy_by_chunks(reduction: str) -> None:
    module = importlib.import_module("torch.nn.modules.linear_cross_entropy_options")
    options = module.LinearCrossEntropyOptions(batch_chunk_size=2)
    target = torch.tensor([0, 4, -100, 2])
    check(
        lambda x, w, t, b: F.linear_cross_entropy(
            x, w, t, linear_bias=b, reduction=reduction, options=options
        ),
        X,
        rand(5, 3),
        target,
        rand(5),
    )


def test_multilabel_margin_of_one_sample() -> None:
    check(F.multilabel_margin_loss, X[0], LABELS[0])
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="one unreduced sample"):
        check(lambda x, t: F.multilabel_margin_loss(x, t, reduction="none"), X[0], LABELS[0])


def test_core_nll() -> None:
    check(lambda x, t: torch.ops.aten.nll_loss_forward(x, t, None, 1, -100)[0], X, CLASSES)


def test_half_precision() -> None:
    check(lambda x, y: (F.mse_loss(x, y), F.smooth_l1_loss(x, y)), X.half(), Y.half())
    check(lambda x, t: F.cross_entropy(x, t), X.half(), CLASSES)


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy,
     F.binary_cross_entropy_with_logits, F.hinge_embedding_loss, F.soft_margin_loss],
)  # fmt: skip
def test_mean_over_an_empty_batch(loss: Callable[..., Any]) -> None:
    check(lambda p: loss(p, p.detach()), P, dynamic={0: [0]}, others=[(P[:0],), (P[:2],)])


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
@pytest.mark.parametrize("options", [{}, {"ignore_index": 1}, {"weight": torch.rand(3)}])
def test_cross_entropy_of_an_empty_batch(reduction, options):
    def loss(x, y):
        return F.cross_entropy(x, y, reduction=reduction, **options)

    def sample(n, *rest):
        return torch.randn(n, 3, *rest), torch.randint(0, 3, (n, *rest))

    check(loss, *sample(2), dynamic={0: [0], 1: [0]}, others=[sample(0), sample(5)])
    check(loss, *sample(2, 4), dynamic={0: [0], 1: [0]}, others=[sample(0, 4), sample(5, 4)])
    check(loss, *sample(0))
