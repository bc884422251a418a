from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

torch.manual_seed(0)
X1, X2, X3 = torch.randn(2, 3, 14), torch.randn(2, 3, 12, 15), torch.randn(2, 2, 7, 8, 9)
INTEGERS = torch.randint(-50, 50, (2, 3, 11, 10))

CASES = [
    ("max1d", lambda x: F.max_pool1d(x, 3), X1),
    ("max1d-all", lambda x: F.max_pool1d(x, 3, 2, 1, 2, ceil_mode=True), X1),
    ("max1d-unbatched", lambda x: F.max_pool1d(x, 2), X1[0]),
    ("max1d-indices", lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), X1),
    ("max2d", lambda x: F.max_pool2d(x, (2, 3)), X2),
    ("max2d-all", lambda x: F.max_pool2d(x, 3, (2, 1), 1, (1, 2), ceil_mode=True), X2),
    ("max2d-indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), X2),
    ("max2d-indices-unbatched", lambda x: F.max_pool2d(x, 3, 2, 1, 1, True, True), X2[0]),
    ("max3d", lambda x: F.max_pool3d(x, 2, 2, 1, ceil_mode=True), X3),
    ("max3d-indices", lambda x: F.max_pool3d(x, (2, 3, 2), 2, return_indices=True), X3),
    ("max2d-uint8", lambda x: F.max_pool2d(x, 3, 2, 1), INTEGERS.abs().to(torch.uint8)),
    ("max2d-int64", lambda x: F.max_pool2d(x, 3, 2, 1, 2, True, True), INTEGERS),
    ("max2d-int32", lambda x: F.max_pool2d(x, 2), INTEGERS.int()),
    ("max2d-float16", lambda x: F.max_pool2d(x, 2), X2.half()),
    ("max2d-float64", lambda x: F.max_pool2d(x, 2), X2.double()),
    ("avg1d", lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), X1),
    ("avg1d-unbatched", lambda x: F.avg_pool1d(x, 3), X1[0]),
    ("avg2d", lambda x: F.avg_pool2d(x, 2), X2),
    ("avg2d-divisor", lambda x: F.avg_pool2d(x, (3, 2), 2, 1, divisor_override=4), X2),
    ("avg2d-divisor-ceil", lambda x: F.avg_pool2d(x, 3, 2, 0, True, True, 5), X2),
    ("avg2d-divisor-ceil-pad", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False, 5), X2[0]),
    ("avg3d", lambda x: F.avg_pool3d(x, 2, 2, 1, True, False), X3),
    ("avg3d-divisor", lambda x: F.avg_pool3d(x, 2, divisor_override=3), X3),
    ("lp2d", lambda x: F.lp_pool2d(x.abs() + 0.1, 2.0, 3, 2), X2),
    ("local-response", lambda x: F.local_response_norm(x, 3), X2),
    ("adaptive-avg1d", lambda x: F.adaptive_avg_pool1d(x, 5), X1),
    ("adaptive-avg1d-even", lambda x: F.adaptive_avg_pool1d(x, 7), X1),
    ("adaptive-avg2d-one", lambda x: F.adaptive_avg_pool2d(x, 1), X2),
    ("adaptive-avg2d-one-unbatched", lambda x: F.adaptive_avg_pool2d(x, 1), X2[0]),
    ("adaptive-avg2d-even", lambda x: F.adaptive_avg_pool2d(x, (4, 5)), X2),
    ("adaptive-avg2d-uneven", lambda x: F.adaptive_avg_pool2d(x, (7, 7)), X2),
    ("adaptive-avg2d-larger", lambda x: F.adaptive_avg_pool2d(x, (13, 20)), X2),
    ("adaptive-avg2d-none", lambda x: F.adaptive_avg_pool2d(x, (None, 4)), X2),
    ("adaptive-avg2d-row", lambda x: F.adaptive_avg_pool2d(x, (1, 4)), X2[0]),
    ("adaptive-avg2d-float64", lambda x: F.adaptive_avg_pool2d(x, (1, 1)), X2.double()),
    ("adaptive-avg3d", lambda x: F.adaptive_avg_pool3d(x, (2, 4, 3)), X3),
    ("adaptive-max1d", lambda x: F.adaptive_max_pool1d(x, 5), X1),
    ("adaptive-max2d", lambda x: F.adaptive_max_pool2d(x, (5, 4)), X2),
    ("adaptive-max2d-even", lambda x: F.adaptive_max_pool2d(x, (4, 5), True), X2),
    ("adaptive-max2d-indices", lambda x: F.adaptive_max_pool2d(x, (5, 4), True), X2),
    ("adaptive-max2d-one", lambda x: F.adaptive_max_pool2d(x, 1, True), X2[0]),
    ("adaptive-max3d-indices", lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), True), X3),
]


@pytest.mark.parametrize(("function", "x"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_equals_eager(function, x):
    check(function, x)


def test_unpooling():
    # F.max_unpool2d itself cannot be traced.
    def there_and_back(x):
        return F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)

    def there_and_back_3d(x):
        return F.max_unpool3d(*F.max_pool3d(x, 2, 2, return_indices=True), 2)

    check(there_and_back, X2[..., :14], captures=("export",))
    check(there_and_back_3d, X3[:, :, :6, :, :8], captures=("export",))


DYNAMIC = [
    ("max2d-ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), X2, (0, 2, 3)),
    ("max2d-indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), X2, (0, 2, 3)),
    ("avg2d-ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), X2, (2, 3)),
    ("avg1d", lambda x: F.avg_pool1d(x, 3, 2, 1), X1, (0, 2)),
    ("adaptive-one", lambda x: F.adaptive_avg_pool2d(x, 1), X2, (0, 2, 3)),
    ("adaptive-avg", lambda x: F.adaptive_avg_pool2d(x, (5, 4)), X2, (0, 2, 3)),
    ("adaptive-avg-one-axis", lambda x: F.adaptive_avg_pool2d(x, (None, 4)), X2, (0, 2, 3)),
    ("adaptive-max", lambda x: F.adaptive_max_pool2d(x, (5, 4), True), X2, (0, 2, 3)),
    ("adaptive-max-one", lambda x: F.adaptive_max_pool2d(x, 1), X2, (0, 2, 3)),
]


@pytest.mark.parametrize(
    ("function", "x", "axes"), [c[1:] for c in DYNAMIC], ids=[c[0] for c in DYNAMIC]
)
def test_sizes_may_change(function, x, axes):
    others = [
        (torch.randn([d + step if a in axes else d for a, d in enumerate(x.shape)]),)
        for step in (1, 4, 9)
    ]
    check(function, x, dynamic={0: axes}, others=others)


@pytest.mark.parametrize("padding", [0, 1])
def test_every_window_that_ceil_mode_adds(padding):
    """All the ways in which the last window can meet the end of the input, in one model."""
    settings = [s for s in itertools.product((2, 3, 4), (1, 2, 3)) if padding <= s[0] // 2]

    def pools(x):
        return [
            pool
            for k, s in settings
            for pool in (
                F.max_pool1d(x, k, s, padding, ceil_mode=True),
                F.avg_pool1d(x, k, s, padding, ceil_mode=True),
                F.avg_pool1d(x, k, s, padding, ceil_mode=True, count_include_pad=False),
            )
        ]

    for size in (8, 9, 10, 11):
        check(pools, torch.randn(1, 2, size))


def test_infinite_elements_stay_in_their_windows():
    x = X1.clone()
    x[0, 0, 3] = torch.inf
    check(lambda x: F.adaptive_avg_pool1d(x, 5), x)


def test_other_opsets():
    check(
        lambda x: (F.max_pool2d(x, 3, 2, 1, return_indices=True), F.adaptive_avg_pool2d(x, 7)),
        X2,
        opsets=(17, 23),
    )


INTEGER_POOLS = [
    ("avg1d", lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), (5, 3, 11)),
    ("avg2d", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 9)),
    ("avg2d-divisor", lambda x: F.avg_pool2d(x, (2, 3), 2, 1, True, True, 4), (3, 8, 9)),
    ("avg3d", lambda x: F.avg_pool3d(x, 2, 1, 1, False, False), (2, 2, 3, 4, 5)),
    ("max2d", lambda x: F.max_pool2d(x, 3, 2, 1, 2, True, True), (2, 3, 9, 10)),
]


@pytest.mark.parametrize(
    ("function", "shape"), [c[1:] for c in INTEGER_POOLS], ids=[c[0] for c in INTEGER_POOLS]
)
def test_integers_in_sizes_that_may_change(function, shape):
    axes = (len(shape) - 1, len(shape) - 2)
    largest = 2**60  # sums wrap
    others = [
        (
            torch.randint(
                -largest, largest, [d + n if a in axes else d for a, d in enumerate(shape)]
            ),
        )
        for n in (1, 4)
    ]
    check(function, torch.randint(-50, 50, shape), dynamic={0: axes}, others=others)


def test_ceil_mode_with_a_divisor_in_sizes_that_may_change():
    others = [(torch.randn(2, 3, size, 12),) for size in (13, 14, 15)]
    check(lambda x: F.avg_pool2d(x, 3, 2, 1, True, True, 5), X2, dynamic={0: (2, 3)}, others=others)


def test_fractional_max_pooling():
    samples = torch.rand(2, 3, 2)
    check(
        lambda x, s: F.fractional_max_pool2d(
            x, (2, 3), output_size=(5, 4), return_indices=True, _random_samples=s
        ),
        X2,
        samples,
        dynamic={0: (0,), 1: (0,)},
        others=[(torch.randn(5, 3, 12, 15), torch.rand(5, 3, 2))],
    )
    check(
        lambda x, s: F.fractional_max_pool3d(
            x, 2, output_ratio=(0.5, 0.4, 0.8), return_indices=True, _random_samples=s
        ),
        X3[0],
        torch.rand(1, 2, 3),
    )


def test_fractional_max_pooling_draws_anew():
    program = sardonyx.export(lambda x: F.fractional_max_pool2d(x, 2, output_size=5), (X2,))
    runs = [program(X2) for _ in range(5)]
    assert any(not torch.equal(runs[0], other) for other in runs[1:])
    assert torch.isin(runs[0], X2).all()


def test_max_pool_of_int16() -> None:
    x = torch.arange(32, dtype=torch.int16).reshape(1, 2, 4, 4) * 1001 - 16000
    check(lambda x: F.max_pool2d(x, 2), x, dynamic={0: [0, 2]}, others=[(x[:, :, :3],)])
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)


def test_windows_that_step_over_an_axis() -> None:
    """Their padding alone is in them: the largest of nothing is -inf."""
    x = torch.rand(1, 1, 1)
    check(lambda x: F.max_pool2d(x, 3, None, 1, (1, 2), True, True), x)
    others = [(torch.rand(1, 2, n),) for n in (2, 3, 4)]
    check(
        lambda x: F.max_pool1d(x, 2, 1, 1, 3), torch.rand(1, 2, 9), dynamic={0: [2]}, others=others
    )

    def pool(x):
        return F.max_pool2d(x, (2, 4), (2, 1), 1, (3, 1), return_indices=True)

    others = [(torch.randn(2, 2, n, 8),) for n in (2, 3, 4)]
    check(pool, torch.randn(2, 2, 9, 8), dynamic={0: [2, 3]}, others=others)
    integers = [((10 * x).long(),) for (x,) in others]
    check(pool, *integers[2], dynamic={0: [2]}, others=integers)


def test_adaptive_max_pool_with_indices_of_an_empty_batch():
    others = [(torch.randn(n, 2, 4),) for n in (0, 3)]

    def pool(x):
        return F.adaptive_max_pool1d(x, 3, return_indices=True)

    check(pool, torch.randn(2, 2, 4), dynamic={0: (0,)}, others=others)
