from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

aten = torch.ops.aten
torch.manual_seed(0)
X1, X2, X3 = torch.randn(2, 3, 10), torch.randn(2, 3, 8, 10), torch.randn(1, 2, 4, 5, 6)


def resized(mode, align_corners=None, antialias=False, **sizes):
    return lambda x: F.interpolate(
        x, mode=mode, align_corners=align_corners, antialias=antialias, **sizes
    )


SIZES = {
    "size": [(16, 20), (5, 7), (13, 10), (1, 1)],
    "scale_factor": [2, 0.5, (1.5, 3), 1.3, 0.37],
}
MODES = [
    ("nearest", None),
    ("nearest-exact", None),
    ("bilinear", False),
    ("bilinear", True),
    ("bicubic", False),
    ("bicubic", True),
]
CASES = [
    (f"{mode}-{align}-{name}-{value}", resized(mode, align, **{name: value}), X2)
    for (mode, align), name in itertools.product(MODES, SIZES)
    for value in SIZES[name]
]
CASES += [
    (f"{mode}-{value}", resized(mode, **{name: value}), X1)
    for mode in ("nearest", "nearest-exact", "linear")
    for name, value in (("size", 7), ("scale_factor", 2), ("scale_factor", 1.15))
]
CASES += [
    (f"{mode}-{value}", resized(mode, **{name: value}), X3)
    for mode in ("nearest", "nearest-exact", "trilinear")
    for name, value in (("size", (7, 3, 6)), ("scale_factor", 2), ("scale_factor", (1.7, 0.6, 1)))
]
ANTIALIASED = [
    (f"{mode}-{align}-{name}-{value}", resized(mode, align, True, **{name: value}), X2)
    for mode, align in itertools.product(("bilinear", "bicubic"), (False, True))
    for name, value in (("size", (5, 3)), ("size", (16, 7)), ("scale_factor", 0.45))
] + [("float64", resized("bicubic", antialias=True, size=(5, 13)), X2.double())]
CASES += [
    ("linear-align", resized("linear", True, size=23), X1),
    ("trilinear-align", resized("trilinear", True, size=(7, 3, 6)), X3),
    ("nearest-uint8", resized("nearest", size=(13, 7)), X2.to(torch.uint8)),
    ("nearest-float64", resized("nearest", scale_factor=2), X2.double()),
    ("bilinear-float64", resized("bilinear", scale_factor=2), X2.double()),
    ("bicubic-float64", resized("bicubic", True, size=(5, 13)), X2.double()),
    ("nearest-float16", resized("nearest", size=(13, 7)), X2.half()),
    ("bilinear-float16", resized("bilinear", scale_factor=2), X2.half()),
    ("area", resized("area", size=(5, 7)), X2),
    ("aten-bilinear2d", lambda x: aten.upsample_bilinear2d(x, [11, 13], False, 1.4, None), X2),
    ("aten-nearest2d", lambda x: aten.upsample_nearest2d(x, [16, 20], 2.0, 2.0), X2),
    ("aten-nearest1d", lambda x: aten.upsample_nearest1d(x, [17]), X1),
    ("aten-trilinear3d", lambda x: aten.upsample_trilinear3d(x, [6, 7, 8], True), X3),
]


@pytest.mark.parametrize(("function", "x"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_equals_eager(function, x):
    check(function, x, atol=2e-5 if x.dtype == torch.float32 else None)


@pytest.mark.parametrize(
    ("function", "x"), [c[1:] for c in ANTIALIASED], ids=[c[0] for c in ANTIALIASED]
)
def test_antialiasing(function, x):
    check(function, x, opsets=(20,))


def test_recomputed_factor():
    function = resized("bilinear", False, scale_factor=1.3, recompute_scale_factor=True)
    check(function, X2)
    check(function, X2, dynamic={0: [2, 3]}, others=[(torch.randn(2, 3, 10, 20),)])


def test_nearest_at_many_sizes():
    """Where in / out is no binary fraction, the rounding of positions decides."""

    def many(x):
        counts = range(1, 60, 3)
        return [F.interpolate(x, size=n) for n in counts] + [
            F.interpolate(x, size=n, mode="nearest-exact") for n in counts
        ]

    for size in (7, 12, 41):
        check(many, torch.arange(float(size)).reshape(1, 1, size))


DYNAMIC = [
    ("nearest-2", resized("nearest", scale_factor=2)),
    ("nearest-3", resized("nearest", scale_factor=3)),
    ("nearest-1.3", resized("nearest", scale_factor=1.3)),
    ("exact-1.5", resized("nearest-exact", scale_factor=1.5)),
    ("nearest-size", resized("nearest", size=(11, 13))),
    ("exact-size", resized("nearest-exact", size=(11, 13))),
    ("bilinear-2", resized("bilinear", scale_factor=2)),
    ("bilinear-align-2", resized("bilinear", True, scale_factor=2)),
    ("bilinear-1.3", resized("bilinear", scale_factor=1.3)),
    ("bilinear-size", resized("bilinear", size=(11, 13))),
    ("bicubic-0.7", resized("bicubic", scale_factor=0.7)),
    ("bicubic-align-0.7", resized("bicubic", True, scale_factor=0.7)),
    ("bicubic-2", resized("bicubic", scale_factor=2)),
]


@pytest.mark.parametrize("function", [c[1] for c in DYNAMIC], ids=[c[0] for c in DYNAMIC])
def test_sizes_may_change(function):
    others = [(torch.randn(1, 3, 9, 7),), (torch.randn(3, 3, 20, 31),)]
    check(function, X2, dynamic={0: (0, 2, 3)}, others=others, atol=5e-5)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_to_the_size_of_another_tensor(mode):
    def like(x, y):
        return F.interpolate(x, size=y.shape[-2:], mode=mode)

    y, other = torch.randn(1, 1, 13, 5), torch.randn(1, 1, 4, 30)
    check(like, X2, y, dynamic={0: (2, 3), 1: (2, 3)}, others=[(X2[..., :7], other)], atol=5e-5)


def test_antialiasing_of_sizes_that_may_change():
    function = resized("bilinear", antialias=True, size=(5, 6))
    others = [(torch.randn(1, 3, 9, 7),), (torch.randn(3, 3, 20, 31),)]
    check(function, X2, dynamic={0: (0, 2, 3)}, others=others, opsets=(20,))


def test_other_opsets():
    def resize_all(x):
        return (
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, size=(5, 7), mode="bilinear"),
            F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True),
        )

    check(resize_all, X2, dynamic={0: (0,)}, opsets=(17, 23), atol=2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(5, 5), (31, 8)])
def test_interpolated_bytes(mode, size):
    def resize(x):
        return (
            F.interpolate(x, size=size, mode=mode),
            F.interpolate(x, size=size, mode=mode, align_corners=True),
            F.interpolate(x, size=size, mode=mode, antialias=True),
            F.interpolate(x, scale_factor=1.7, mode=mode),
        )

    pictures = [torch.randint(0, 256, (n, 3, 9, 14)).byte() for n in (2, 3)]
    check(resize, pictures[0], dynamic={0: (0,)}, others=[(pictures[1],)])


def test_interpolated_bytes_of_sizes_that_may_change_are_refused():
    picture = torch.randint(0, 256, (2, 3, 9, 14)).byte()
    with pytest.raises(sardonyx.SardonyxError, match="uint8 needs sizes"):
        check(resized("bilinear", size=(5, 5)), picture, dynamic={0: (2,)})


GRID = torch.rand(2, 6, 5, 2) * 2.6 - 1.3
GRID3 = torch.rand(1, 3, 4, 5, 3) * 2.6 - 1.3


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode, padding, align):
    def sample(x, grid):
        return F.grid_sample(x, grid, mode, padding, align)

    check(sample, X2, GRID, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_in_three_dimensions(mode):
    def sample(x, grid):
        return F.grid_sample(x, grid, mode, align_corners=False)

    check(sample, X3, GRID3, atol=1e-4, opsets=(20,))


def test_grid_sample_at_another_size():
    sizes = {0: (2, 3), 1: (1, 2)}
    other = (torch.randn(2, 3, 5, 6), torch.rand(2, 3, 9, 2))
    check(
        lambda x, g: F.grid_sample(x, g, align_corners=True),
        X2,
        GRID,
        dynamic=sizes,
        others=[other],
        opsets=(17, 20),
    )


@pytest.mark.parametrize("align", [False, True])
def test_affine_grid(align):
    check(lambda t: F.affine_grid(t, [2, 3, 5, 6], align), torch.randn(2, 2, 3))
    check(lambda t: F.affine_grid(t, [2, 3, 4, 5, 6], align), torch.randn(2, 3, 4))


UNFOLD = [
    ("plain", {"kernel_size": 3}),
    ("all", {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 2), "stride": (2, 3)}),
    ("patches", {"kernel_size": 2, "stride": 2}),
]


@pytest.mark.parametrize("settings", [c[1] for c in UNFOLD], ids=[c[0] for c in UNFOLD])
def test_unfold(settings):
    check(lambda x: F.unfold(x, **settings), X2)
    check(lambda x: F.unfold(x, **settings), X2[0])
    axes = {0: (0, 2, 3)}
    check(lambda x: F.unfold(x, **settings), X2, dynamic=axes, others=[(torch.randn(1, 3, 12, 6),)])


@pytest.mark.parametrize("settings", [c[1] for c in UNFOLD], ids=[c[0] for c in UNFOLD])
def test_fold(settings):
    columns = F.unfold(X2, **settings)
    check(lambda x: F.fold(x, (8, 10), **settings), columns)
    check(lambda x: F.fold(x, (8, 10), **settings), columns[0])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_enlarging_with_antialiasing_before_it_existed(mode: str) -> None:
    """Opset 17 has no antialiasing, which changes nothing where an image grows."""
    check(
        lambda x: F.interpolate(x, scale_factor=2.0, mode=mode, antialias=True),
        torch.randn(2, 2, 4, 5),
        dynamic={0: [0, 2, 3]},
        others=[(torch.randn(1, 2, 3, 7),)],
        opsets=(17, 18),
    )
