from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

aten = torch.ops.aten
torch.manual_seed(0)
X = torch.randn(2, 3, 6, 7)
X5 = torch.randn(2, 2, 4, 5, 6)
LONG, BOOL = torch.randint(-9, 9, (2, 3, 6, 7)), torch.randn(2, 3, 6, 7) > 0

CASES = [
    ("constant", lambda x: F.pad(x, (1, 2)), X),
    ("constant-value", lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), X),
    ("constant-all-axes", lambda x: F.pad(x, (1, 2, 0, 3, 1, 1, 0, 1), value=-torch.inf), X),
    ("constant-negative", lambda x: F.pad(x, (-1, 2, 3, -2), value=2.0), X),
    ("constant-vector", lambda x: F.pad(x, (2, -1)), X[0, 0, 0]),
    ("constant-int64", lambda x: F.pad(x, (1, 2), value=7), LONG),
    ("constant-int32", lambda x: F.pad(x, (1, 2), value=7), LONG.int()),
    ("constant-uint8", lambda x: F.pad(x, (1, 2), value=7), LONG.abs().to(torch.uint8)),
    ("constant-bool", lambda x: F.pad(x, (1, 2), value=True), BOOL),
    ("constant-float16", lambda x: F.pad(x, (1, 2), value=0.5), X.half()),
    ("constant-float64", lambda x: F.pad(x, (1, 2), value=0.1), X.double()),
    ("constant-nothing", lambda x: F.pad(x, (0, 0)) + 1, X),
    ("constant_pad_nd", lambda x: aten.constant_pad_nd(x, [1, 0, 2, 1], 3), X),
    ("reflect-1d", lambda x: F.pad(x, (2, 3), "reflect"), X[0]),
    ("reflect-2d", lambda x: F.pad(x, (2, 3, 1, 4), "reflect"), X),
    ("reflect-unbatched", lambda x: F.pad(x, (2, 3, 1, 4), "reflect"), X[0]),
    ("reflect-3d", lambda x: F.pad(x, (2, 3, 1, 4, 0, 2), "reflect"), X5),
    ("reflect-negative", lambda x: F.pad(x, (-2, 3, 2, -1), "reflect"), X),
    ("replicate-1d", lambda x: F.pad(x, (2, 9), "replicate"), X[0]),
    ("replicate-2d", lambda x: F.pad(x, (2, 3, 9, 4), "replicate"), X),
    ("replicate-3d", lambda x: F.pad(x, (2, 3, 1, 4, 0, 2), "replicate"), X5),
    ("replicate-negative", lambda x: F.pad(x, (-2, 3, 2, -1), "replicate"), X),
    ("circular-1d", lambda x: F.pad(x, (2, 3), "circular"), X[0]),
    ("circular-2d", lambda x: F.pad(x, (2, 3, 1, 6), "circular"), X),
    ("circular-3d", lambda x: F.pad(x, (2, 3, 1, 4, 0, 2), "circular"), X5),
    ("circular-empty", lambda x: F.pad(x, (1, 2), "circular"), torch.empty(0, 3, 3)),
    ("circular-negative", lambda x: F.pad(x, (-2, 3, 2, -1), "circular"), X),
    ("aten-reflection_pad2d", lambda x: aten.reflection_pad2d(x, [1, 2, 3, 0]), X),
    ("aten-replication_pad3d", lambda x: aten.replication_pad3d(x, [1, 2, 3, 0, 1, 1]), X5),
    ("aten-_pad_enum", lambda x: aten._pad_enum(x, [1, 2], 1), X[0]),
]


@pytest.mark.parametrize(("function", "x"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_equals_eager(function, x):
    check(function, x)


def to_multiple_of_8(mode):
    def pad(x):
        h, w = x.shape[-2:]
        return F.pad(x, (0, (8 - w % 8) % 8, 0, (8 - h % 8) % 8), mode)

    return pad


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_computed_from_sizes(mode):
    others = [(torch.randn(2, 3, h, w),) for h, w in ((8, 8), (10, 13))]
    check(to_multiple_of_8(mode), X, dynamic={0: (2, 3)}, others=others)


@pytest.mark.parametrize("mode", ["constant", "replicate", "reflect", "circular"])
def test_padding_that_may_turn_negative(mode):
    def to_ten(x):
        return F.pad(x, (0, 10 - x.shape[-1]), mode)

    check(to_ten, X[0], dynamic={0: (2,)}, others=[(torch.randn(3, 6, 13),)])


def test_other_opsets():
    def every_mode(x):
        return [
            F.pad(x, (2, 1, 0, 3), mode)
            for mode in ("constant", "reflect", "replicate", "circular")
        ]

    check(
        every_mode, X, dynamic={0: (0, 2)}, others=[(torch.randn(1, 3, 9, 7),)], opsets=(17, 20, 23)
    )


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_circular_padding_of_an_empty_batch(spatial):
    pad = getattr(torch.nn, f"CircularPad{spatial}d")(tuple(range(2 * spatial)))
    sizes = (5, 6, 7)[:spatial]
    others = [(torch.randn(n, 2, *sizes),) for n in (0, 1, 3)]
    check(pad, torch.randn(2, 2, *sizes), dynamic={0: (0,)}, others=others)


def test_circular_padding_that_crops_an_empty_batch():
    others = [(torch.randn(n, 2, 6, 5),) for n in (0, 1)]

    def pad(x):
        return F.pad(x, (2, -1, -1, 2), "circular")

    check(pad, torch.randn(2, 2, 4, 5), dynamic={0: (0, 2)}, others=others)
