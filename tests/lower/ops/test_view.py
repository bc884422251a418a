"""Views: shape, order of dims, diagonals and windows."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import CAPTURES, check

X = torch.arange(24.0).reshape(2, 3, 4)
WIDE = torch.arange(4 * 3 * 5.0).reshape(4, 3, 5)
M = torch.arange(12.0).reshape(3, 4)
TALL = torch.arange(10.0).reshape(5, 2)
IMAGE = torch.arange(2 * 8 * 3 * 2.0).reshape(2, 8, 3, 2)
SCALAR = torch.tensor(3.5)

SHAPES = {
    "view": lambda x: x.view(6, 4),
    "view_minus_one": lambda x: x.view(-1, 2),
    "view_symbolic": lambda x: x.view(x.shape[0], -1),
    "view_two_symbols": lambda x: x.view(x.shape[0] * x.shape[1], x.shape[2]),
    "view_split_symbol": lambda x: x.view(x.shape[0], 3, 2, x.shape[2] // 2),
    "reshape_transposed": lambda x: x.transpose(0, 2).reshape(-1),
    "reshape_swapped_symbols": lambda x: x.reshape(x.shape[2], x.shape[0], 3),
    "reshape_as": lambda x: x.reshape_as(x.transpose(0, 1)),
    "view_as": lambda x: x.view_as(x.transpose(0, 1).contiguous()),
    "flatten": lambda x: x.flatten(),
    "flatten_some": lambda x: x.flatten(1),
    "flatten_front": lambda x: x.flatten(0, -2),
    "ravel": torch.ravel,
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "unflatten_minus_one": lambda x: x.unflatten(-1, (-1, 2)),
    "expand": lambda x: x[:, :1].expand(-1, 5, -1),
    "expand_new_dims": lambda x: x.expand(2, 1, *x.shape),
    "expand_as": lambda x: x[:1].expand_as(x),
    "broadcast_to": lambda x: x[:, :1].broadcast_to(x.shape),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[:1], x[:, :1, :1]),
    "squeeze_dim": lambda x: x[:, :1].squeeze(1),
    "squeeze_dim_kept": lambda x: x.squeeze(1),
    "squeeze_dims": lambda x: x[:, :1].unsqueeze(0).squeeze((0, 2)),
    "unsqueeze": lambda x: (x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(2)),
    "atleast": lambda x: (torch.atleast_1d(x), torch.atleast_2d(x[0]), torch.atleast_3d(x[0])),
    "atleast_sequence": lambda x: torch.atleast_3d(x[0, 0], x[0], x),
    "permute": lambda x: x.permute(2, 0, 1),
    "permute_negative": lambda x: x.permute(-1, 0, -2),
    "transpose": lambda x: x.transpose(0, -1),
    "swapaxes": lambda x: (torch.swapaxes(x, 0, 1), torch.swapdims(x, 1, 2)),
    "matrix_transposes": lambda x: (x.mT, x.mH, x.adjoint(), x[0].t(), x[0].T, x[0].H),
    "movedim": lambda x: torch.movedim(x, 0, -1),
    "movedims": lambda x: torch.moveaxis(x, (0, 1), (-1, 0)),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold_steps": lambda x: x.unfold(1, 2, 3),
    "unfold_dynamic": lambda x: x.unfold(-1, 3, 2),
    "diagonal": lambda x: (x.diagonal(), x.diagonal(1, 2, 1), x.diagonal(-1, -1, 0)),
    "diagonal_outside": lambda x: x.diagonal(9, 0, 1),
    "diag_embed": lambda x: (torch.diag_embed(x), torch.diag_embed(x, 1), torch.diag_embed(x, -2)),
    "diag_embed_dims": lambda x: torch.diag_embed(x, 1, 0, 2),
    "diagflat": lambda x: torch.diagflat(x[0], 1),
    "linalg_diagonal": lambda x: torch.linalg.diagonal(x, offset=1),
    "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[:, 0, 0], x[0, :, 0], indexing="ij"),
    "meshgrid_xy": lambda x: torch.meshgrid(x[0, 0], x[:, 0, 0], indexing="xy"),
    "cartesian_prod": lambda x: torch.cartesian_prod(x[0, 0], x[:, 0, 0]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name: str) -> None:
    check(SHAPES[name], X)


NOT_FOR_ANY_SIZE = {"view", "view_minus_one", "unflatten_minus_one", "diagonal_outside"}


@pytest.mark.parametrize("name", [n for n in SHAPES if n not in NOT_FOR_ANY_SIZE])
def test_shape_dynamic(name: str) -> None:
    other = torch.arange(5 * 3 * 6.0).reshape(5, 3, 6)
    check(SHAPES[name], X, dynamic={0: [0, 2]}, others=[(other,)])


@pytest.mark.parametrize("offset", [0, 1, -1, 2])
@pytest.mark.parametrize("dynamic", [None, {0: [0, 1]}])
def test_diagonal_of_matrix(offset: int, dynamic: dict[int, list[int]] | None) -> None:
    check(
        lambda x: (torch.diag(x, offset), x.diagonal(offset), torch.diag(x[0], offset)),
        M,
        dynamic=dynamic,
        others=[(TALL,)] if dynamic else [],
        # PyTorch cannot infer the shape of aten::diag with dynamic sizes outside torch.export.
        captures=("export",) if dynamic else CAPTURES,
    )


def test_diag_of_bool() -> None:
    check(lambda x: torch.diag_embed(x, 1), torch.tensor([True, False, True]))


SCALARS = {
    "reshape": lambda x: (x.reshape(1, 1), x.view(-1), x.flatten(), x.ravel()),
    "squeeze": lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(-1), x.unsqueeze(-1)),
    "expand": lambda x: (x.expand(2, 3), x.expand([])),
    "order": lambda x: (x.permute([]), x.transpose(0, -1), x.t(), x.movedim(0, 0)),
    "atleast": lambda x: (torch.atleast_1d(x), torch.atleast_2d(x), torch.atleast_3d(x)),
    "unfold": lambda x: x.unfold(0, 1, 1),
    "flip_roll": lambda x: (x.flip([]), x.roll(1), x.repeat(2, 2), x.tile(3)),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalar(name: str) -> None:
    check(SCALARS[name], SCALAR)


def test_squeeze_of_all() -> None:
    check(lambda x: x.squeeze(), torch.ones(1, 3, 1, 2))
    check(lambda x: x.squeeze(), torch.ones(1, 1))


@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
def test_squeeze_keeps_a_dynamic_dim(dim: int | tuple[int, ...] | None) -> None:
    def squeezed(x: torch.Tensor) -> torch.Tensor:
        return x.squeeze() if dim is None else x.squeeze(dim)

    program = sardonyx.export(squeezed, torch.randn(2, 1, 3), dynamic_axes={"x": {0: "n"}})
    for n in (2, 5, 0):
        x = torch.randn(n, 1, 3)
        torch.testing.assert_close(program(x), squeezed(x), rtol=0, atol=0)
    assert "the size of dim 0 is not 1" in " ".join(program.notes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_pixel_shuffle(dtype: torch.dtype) -> None:
    image = IMAGE.to(dtype)
    check(lambda x: torch.pixel_shuffle(x, 2), image)
    check(lambda x: torch.pixel_shuffle(x[0], 2), image)


def test_pixel_shuffle_dynamic() -> None:
    wider = torch.randn(1, 8, 5, 4)
    check(lambda x: torch.pixel_shuffle(x, 2), IMAGE, dynamic={0: [0, 2, 3]}, others=[(wider,)])


def test_pixel_unshuffle() -> None:
    image, other = torch.randn(2, 3, 4, 6), torch.randn(3, 3, 4, 6)
    check(lambda x: torch.pixel_unshuffle(x, 2), image)
    check(lambda x: torch.pixel_unshuffle(x, 2), torch.randn(3, 4, 6))
    check(lambda x: torch.pixel_unshuffle(x, 2), image, dynamic={0: [0]}, others=[(other,)])


def test_channel_shuffle() -> None:
    check(lambda x: torch.nn.functional.channel_shuffle(x, 4), IMAGE)
    check(
        lambda x: torch.nn.functional.channel_shuffle(x, 2),
        IMAGE,
        dynamic={0: [0, 2]},
        others=[(torch.randn(1, 8, 5, 2),)],
    )


def test_view_as_dtype() -> None:
    check(lambda x: x.view(torch.float32), X, captures=("export",))
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="narrower"):
        check(lambda x: x.view(torch.int16), X, captures=("export",))


def test_empty_dims() -> None:
    check(lambda x: (x.view(-1), x.reshape(4, 0), x.transpose(0, 1)), torch.ones(0, 4))


EMPTY = [(torch.randn(sizes),) for sizes in ((0, 3, 4), (2, 0, 4), (2, 3, 0))]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.repeat_interleave(2, 0),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: x.repeat_interleave(2, 2),
        lambda x: x.reshape(x.shape[1], x.shape[0] * x.shape[2]),
        lambda x: x.reshape(x.shape[2], x.shape[0], x.shape[1]),
    ],
)
def test_reshaping_what_turns_out_to_be_empty(function):
    check(function, torch.randn(2, 3, 4), dynamic={0: (0, 1, 2)}, others=EMPTY)


def test_unflatten_of_an_empty_batch():
    check(lambda x: x.unflatten(2, (2, -1)), torch.randn(2, 3, 4), dynamic={0: (0, 1)},
          others=EMPTY[:2])  # fmt: skip


def test_unflatten_of_an_open_size_of_nothing():
    x = torch.randn(4, 6)
    others = [(torch.randn(*s),) for s in ((0, 6), (2, 0), (0, 0), (3, 2))]
    check(lambda x: x.unflatten(1, (2, -1)), x, dynamic={0: (0, 1)}, others=others)
    check(lambda x: x.unflatten(1, (-1, 2)), x, dynamic={0: (0, 1)}, others=others)


OF_FOURS = {
    "unbind": lambda x: x.view(-1, 4, 3).unbind(1),
    "mean": lambda x: x.view(-1, 4, 3).mean(1),
    "amin": lambda x: x.reshape(-1, 4, 3).amin(1),
    "unflatten": lambda x: x.unflatten(0, (-1, 4)).chunk(2, 1),
    "computed": lambda x: x.view(x.shape[0] // 4, 4, 3).amax(1),
    "transposed": lambda x: (x * 2).t().reshape(3, -1, 4).transpose(0, 2).sum(0),
    "written": lambda x: x.clone().view(-1, 4, 3).mul_(2)[:, 1].add_(1),
}


@pytest.mark.parametrize("name", OF_FOURS)
def test_parts_of_an_open_size_are_as_long_as_asked_for(name: str) -> None:
    rows = [torch.arange(n * 3.0).reshape(n, 3) for n in (8, 0, 4, 12)]
    check(OF_FOURS[name], rows[0], dynamic={0: [0]}, others=[(x,) for x in rows[1:]])


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_file_says_how_long_the_parts_of_a_window_are(capture: str) -> None:
    def windows(x):
        n, h, w, c = x.shape
        x = x.view(n, h // 2, 2, w // 3, 3, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 2, 3, c)

    axes = {"x": {1: "h", 2: "w"}}
    program = sardonyx.export(
        windows, (torch.randn(2, 4, 9, 5),), capture=capture, dynamic_axes=axes
    )
    (output,) = program.model.graph.outputs
    assert list(output.shape)[1:] == [2, 3, 5]
    x = torch.randn(2, 6, 3, 5)
    torch.testing.assert_close(program(x), windows(x))
