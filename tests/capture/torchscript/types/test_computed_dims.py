"""Dims that are inputs of a script, or computed by it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.capture.torchscript.running import assert_equal_to_eager


def unsqueezed(x: Tensor, dim: int):
    return x.unsqueeze(dim) * 2


def unsqueezed_at_a_tensor(x: Tensor, dim: Tensor):
    return x.unsqueeze(int(dim))


def many(x: Tensor, dim: int):
    found = x.sum(dim), x.select(dim, 0), x.softmax(dim), x.transpose(0, dim)
    return found, x.max(dim)[1], x.narrow(dim, 0, 1), x.mean([dim], keepdim=True), x.size(dim)


@pytest.mark.parametrize("opset", [11, 20])
@pytest.mark.parametrize("program", [unsqueezed, many])
def test_each_dim(program, opset) -> None:
    inputs = [(torch.randn(2, 3), 1), (torch.randn(4, 3), 0), (torch.randn(3, 3), -1)]
    assert_equal_to_eager(program, inputs, opset_version=opset)


def test_a_dim_that_is_a_tensor() -> None:
    inputs = [(torch.randn(2, 3), torch.tensor(dim)) for dim in (1, 2, -3)]
    assert_equal_to_eager(unsqueezed_at_a_tensor, inputs)


def squeezed(x: Tensor, dim: int):
    return x.squeeze(dim) + 1


def test_a_squeeze_whose_rank_is_not_known_is_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match="a tensor has 2 dims here and 3 there"):
        sardonyx.export(torch.jit.script(squeezed), (torch.randn(2, 1, 3), 1))


def written(x: Tensor, dim: int):
    y = x.clone()
    y.select(dim, 0).mul_(2)
    return y


def test_a_write_through_a_view_of_a_computed_dim_is_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match="may share its memory"):
        sardonyx.export(torch.jit.script(written), (torch.randn(2, 3), 1))


def repeated(x: Tensor, n: int):
    return x.tile([n])


def test_a_number_of_times_is_no_dim() -> None:
    assert_equal_to_eager(repeated, [(torch.randn(2, 3), 3), (torch.randn(2, 3), 2)])


def embedded(x: Tensor, dim: int):
    return x.diag_embed(0, dim, -1)


def several(x: Tensor, dims: list[int]):
    return x.sum(dims)


def in_place(x: Tensor, dim: int):
    return x.clone().unsqueeze_(dim)


@pytest.mark.parametrize(("program", "dim"), [(embedded, 1), (several, [0, 1]), (in_place, 1)])
def test_what_is_not_followed_is_right_or_refused(program, dim) -> None:
    try:
        made = sardonyx.export(torch.jit.script(program), (torch.randn(2, 3), dim), verify=True)
    except sardonyx.CaptureError as refusal:
        assert "at run time" in str(refusal)
        return
    x = torch.randn(2, 3)
    torch.testing.assert_close(made(x, dim), program(x, dim))
