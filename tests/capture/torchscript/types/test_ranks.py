"""Dims that a size, or the number of iterations, decides on: in branches, each of known rank."""

from __future__ import annotations

import pytest
import torch

from tests.capture.torchscript.running import assert_equal_to_eager, exported

SIZES = [(torch.randn(size, 3),) for size in (2, 0, 1, 7)]


def vector_that_grows(x, n: int):
    out = torch.zeros(0)
    for i in range(n):
        out = torch.cat([out, x.sum(0) * i])
    return out


def test_a_vector_that_grows() -> None:
    assert_equal_to_eager(vector_that_grows, [(torch.randn(3, 4), n) for n in (1, 0, 2, 3)])


def pooled_squeezed(x):
    return torch.nn.functional.adaptive_avg_pool2d(x[:, :, None, None], (1, 1)).squeeze()


def places_squeezed(x):
    return (x[:, 0] > 0).nonzero().squeeze()


def squeezed_and_used(x):
    y = x.squeeze(0)
    if y.dim() == 1:
        y = y.unsqueeze(0)
    return y @ torch.ones(3, 4), (x * 2).squeeze((0, 1)).sum(-1)


def squeezed_in_place(x):
    y = x.clone()
    y.squeeze_(0)
    return y + 1


def written_squeezed(x):
    y = x.clone()
    z = y.squeeze(0)
    z += 1
    return y, z


def squeezed_in_a_loop(x):
    t = x.sum()
    for i in range(x.size(0)):
        t = t + x[i:].squeeze(0).sum(-1).sum()
    return t


def squeezed_alike(x):
    a, b, c, d = x.squeeze(0), (x + 1).squeeze(0), (x + 2).squeeze(0), (x * 2).squeeze(0)
    e, f, g, h = a.squeeze(0), x.squeeze(0), (x + 3).squeeze(0), (x * 3).squeeze(0)
    return torch.cat([a, b, c, d, f, g, h]), e


SQUEEZES = [
    pooled_squeezed,
    places_squeezed,
    squeezed_and_used,
    squeezed_in_place,
    written_squeezed,
    squeezed_in_a_loop,
    squeezed_alike,
]


@pytest.mark.parametrize("program", SQUEEZES)
def test_a_squeeze_of_a_dynamic_dim_has_a_branch_for_each_rank(program) -> None:
    made = assert_equal_to_eager(program, SIZES)
    assert not made.notes


def squeezed_in_a_branch(x):
    y = x.sum(1, keepdim=True).squeeze(1)
    return y.unsqueeze(0) if y.dim() == 1 else y


def test_a_squeeze_of_a_static_dim_settles_the_rank() -> None:
    made = assert_equal_to_eager(squeezed_in_a_branch, SIZES)
    assert "If" not in [node.op_type for node in made.model_proto.graph.node]


def two_sizes(x):
    if bool(x.sum() > 0):
        y = x[:2]
    else:
        y = x[:3] * 2
    return y, y.sum(0)


def two_ranks(x):
    if bool(x.sum() > 0):
        return x.sum()
    return x * 2


@pytest.mark.parametrize("opset", [9, 10, 11])
@pytest.mark.parametrize("program", [two_sizes, two_ranks])
def test_branches_of_other_shapes_are_loaded_at_older_opsets(program, opset) -> None:
    inputs = [(torch.ones(4, 2),), (-torch.ones(4, 2),)]
    assert_equal_to_eager(program, inputs, opset_version=opset)


def beyond_the_example(x):
    if x.size(0) > 5:
        return x[5] * 2
    return x[0]


def written_beyond_the_example(x):
    y = x.clone()
    if x.size(0) > 5:
        y[5] += 2
    return y


@pytest.mark.parametrize("program", [beyond_the_example, written_beyond_the_example])
def test_an_index_beyond_the_size_of_the_example(program) -> None:
    assert_equal_to_eager(program, [(torch.randn(size, 2),) for size in (3, 7, 6, 1)])


class SqueezedSizes(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(x.squeeze(0).shape) + 1


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_a_recording_notes_the_size_that_it_does_not_hold_for(capture) -> None:
    made = exported(SqueezedSizes(), SIZES, capture=capture)
    assert any("dim 0 is not 1" in note and "test_ranks.py" in note for note in made.notes)
    assert made(torch.ones(5, 3)).shape == (5, 3)
