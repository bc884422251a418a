"""Pieces of a tensor, and its elements in another order."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import CAPTURES, check

X = torch.arange(2 * 6 * 4.0).reshape(2, 6, 4)
OTHER = torch.arange(3 * 6 * 9.0).reshape(3, 6, 9)
DYNAMIC = {0: [0, 2]}
REPEATS, TWICE = torch.tensor([1, 2, 0, 1]), torch.tensor([2])

PIECES = {
    "select": lambda x: (x[0], x[:, 2], x[..., -1], x.select(-2, -6)),
    "select_symbolic": lambda x: (x.select(2, x.shape[0]), x[:, :, x.shape[0] - 1]),
    "slice": lambda x: (x[:, 1:3], x[:, 2:], x[:, :-1], x[:, -3:-1], x[:, ::2], x[:, 1:5:3]),
    "slice_dynamic_dim": lambda x: (x[..., 1:3], x[..., -2:], x[..., :-2], x[..., 1::2]),
    "slice_beyond": lambda x: (x[:, 2:99], x[..., 1:99], x[:, -99:2], x[..., -99:3]),
    "slice_symbolic": lambda x: (x[:, : x.shape[0]], x[..., x.shape[0] :], x[:, -x.shape[0] :]),
    "slice_empty": lambda x: (x[:, 4:2], x[..., 99:]),
    "slice_whole": lambda x: (x[:, :], x[:, 0:6]),
    "narrow": lambda x: (x.narrow(1, 2, 3), x.narrow(-1, -3, 2)),
    "narrow_symbolic": lambda x: x.narrow(2, x.shape[0] - 1, 2),
    "split_sizes": lambda x: x.split([1, 0, 3, 2], 1),
    "split_with_sizes_symbolic": lambda x: x.split([1, x.shape[2] - 1], 2),
    "split": lambda x: x.split(4, 1),
    "split_even": lambda x: x.split(3, -2),
    "split_whole": lambda x: x.split(6, 1),
    "chunk": lambda x: (*x.chunk(3, 1), *x.chunk(4, 1), *x.chunk(1, 1)),
    "tensor_split": lambda x: (*x.tensor_split(4, 1), *x.tensor_split((1, 4), 1)),
    "hsplit": lambda x: (
        *torch.hsplit(x, 3),
        *torch.hsplit(x, (1, 2)),
        *torch.hsplit(x[0, 0], (1,)),
    ),
    "vsplit": lambda x: (*torch.vsplit(x[0], 2), *torch.vsplit(x[0], (2, 3))),
    "dsplit": lambda x: torch.dsplit(x, (1, 2)),
    "unbind": lambda x: (*x.unbind(1), *x[:, :1].unbind(1)),
    "flip": lambda x: (x.flip(0), x.flip(1, 2), x.flip(-1), x.flip([])),
    "flips": lambda x: (torch.fliplr(x), torch.flipud(x)),
    "rot90": lambda x: (
        torch.rot90(x),
        torch.rot90(x, 2, (1, 2)),
        torch.rot90(x, -1, (0, 2)),
        torch.rot90(x, 4),
    ),
    "roll": lambda x: (x.roll(1, 1), x.roll(-2, 2), x.roll((1, 8), (1, 2)), x.roll(5)),
    "roll_by_nothing": lambda x: x.roll((0, 6), (2, 1)),
    "roll_symbolic": lambda x: x.roll(x.shape[2] // 2, 2),
    "repeat": lambda x: (x.repeat(2, 1, 3), x.repeat(2, 1, 1, 1), x[:, :1].repeat(1, 3, 1)),
    "repeat_symbolic": lambda x: x[:1].repeat(x.shape[0], 2, 1),
    "repeat_none": lambda x: x.repeat(1, 0, 1),
    "tile": lambda x: (x.tile(2), x.tile(2, 1), x.tile(1, 2, 1, 2)),
    "repeat_interleave": lambda x: (
        x.repeat_interleave(2),
        x.repeat_interleave(3, 1),
        x.repeat_interleave(2, dim=-1, output_size=x.shape[2] * 2),
    ),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces(name: str) -> None:
    # torch.jit.trace records the shift of roll() as a number.
    captures = ("export",) if name == "roll_symbolic" else CAPTURES
    check(PIECES[name], X, dynamic=DYNAMIC, others=[(OTHER,)], captures=captures)


STATIC = {
    "narrow_copy": lambda x: (torch.narrow_copy(x, 1, 0, 2), torch.narrow_copy(x, -1, 1, 3)),
    "tensor_split_negative": lambda x: x.tensor_split((2, -1), -1),
    "chunk": lambda x: (*x.chunk(2, 0), *x.chunk(3, 2)),
    "unbind": lambda x: (*x.unbind(), *x.unbind(-1)),
    "pieces_of_scalar": lambda x: (x[0, 0, 0].repeat(3), x[0, 0, 0].repeat_interleave(2)),
    "dsplit": lambda x: torch.dsplit(x, 2),
    "empty": lambda x: (*x[:, :0].chunk(2, 1), *x[:, :0].split(2, 1), x[:, :0].roll(1, 1)),
    "roll": lambda x: (x.roll(7), x.roll((1, -1), (0, 2))),
}


@pytest.mark.parametrize("name", STATIC)
def test_static(name: str) -> None:
    check(STATIC[name], X)


def test_tensor_split_of_a_dynamic_dim() -> None:
    check(
        lambda x: (*x.tensor_split(3, 1), *torch.cat([x, x], 1).tensor_split(2, 1)),
        torch.randn(2, 7),
        dynamic={0: [1]},
        others=[(torch.randn(2, 11),)],
    )


def test_narrow_from_a_tensor() -> None:
    check(
        lambda x, i: torch.narrow(x, 1, i, 2),
        X,
        torch.tensor(1),
        others=[(X, torch.tensor(3)), (X, torch.tensor(-3))],
        captures=("trace",),
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_repeat_interleave_by_tensor(dtype: torch.dtype) -> None:
    repeats, others = (
        torch.tensor([2, 0, 1, 3, 1, 0], dtype=dtype),
        torch.tensor([1, 1, 0, 0, 4, 2]),
    )
    check(
        lambda x, r: (
            torch.repeat_interleave(x, r, dim=1),
            torch.repeat_interleave(r),
            torch.repeat_interleave(x[0, :, 0], r),
        ),
        X,
        repeats,
        others=[(X, others.to(dtype))],
    )
    check(lambda x: torch.repeat_interleave(x, REPEATS, dim=-1), X)
    check(lambda x: torch.repeat_interleave(x, TWICE, dim=1), X)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.float64, torch.int32, torch.uint8, torch.bool]
)
def test_dtypes(dtype: torch.dtype) -> None:
    check(
        lambda x: (
            x[:, 1],
            x[..., 1::2],
            x.roll(1, 2),
            x.flip(1),
            x.repeat(1, 2, 1),
            *x.split(4, 1),
        ),
        X.to(dtype),
    )


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_number_of_chunks_of_a_dynamic_dim(chunks: int, capture: str) -> None:
    program = check(
        lambda x: x.chunk(chunks)[-1],
        torch.arange(8.0),
        dynamic={0: [0]},
        others=[(torch.arange(12.0),)],
        captures=(capture,),
    )
    # 9 elements make 3 chunks where 4 are asked for; two chunks there always are.
    assert [n for n in program.notes if "so many tensors" in n] == list(program.notes)
    assert len(program.notes) == (chunks == 4)


@pytest.mark.parametrize(
    "bounds",
    [lambda n: (-2, n - 1), lambda n: (n // 2, 3), lambda n: (2, n), lambda n: (n - 3, None),
     lambda n: (n // 2, n - 1), lambda n: (n - 3, -1)],
    ids=["from the end", "to a number", "from a number", "before the front", "within", "both"],
)  # fmt: skip
def test_bounds_computed_from_the_size_need_not_fit(bounds) -> None:
    others = [(torch.randn(n, 2),) for n in (1, 2, 3, 9)]

    def cut(x):
        start, end = bounds(x.shape[0])
        return x[start:end]

    def written(x):
        x = x.clone()
        start, end = bounds(x.shape[0])
        x[start:end] += 1
        return x, x.new_ones(x[start:end].shape)

    check(cut, torch.randn(6, 2), dynamic={0: [0]}, others=others)
    check(written, torch.randn(6, 2), dynamic={0: [0]}, others=others)
