"""Writes of results that are views, though PyTorch's schema calls them copies."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch.onnx.operators

import sardonyx


def of_a_shape(x):
    shape = torch.onnx.operators.shape_as_tensor(x)
    return torch.onnx.operators.reshape_from_tensor_shape(x, shape)


VIEWS = {
    "reshape_from_tensor_shape": of_a_shape,
    "atleast_1d": torch.atleast_1d,
    "atleast_3d": torch.atleast_3d,
    "einsum": lambda x: torch.einsum("ij->ji", x),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x)[0],
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 2)[1],
    "type_as": lambda x: x.type_as(x),
    "dropout": lambda x: F.dropout(x, training=False),
    "as_tensor": torch.as_tensor,
    "asarray": torch.asarray,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_write_is_seen_where_the_view_is_not_read_again(view):
    def model(x):
        x = x.clone()
        view(x).add_(1)
        return x

    example = torch.randn(4, 3)
    program = sardonyx.export(model, (example,), capture="trace", dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    assert len(program.model_proto.graph.output) == 1
    for n in (2, 4, 7):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_write_is_seen_by_both(view):
    def model(x):
        x = x.clone()
        seen = view(x)
        seen.view(-1).mul_(2) if seen.is_contiguous() else seen.mul_(2)
        x.add_(3)
        return x, seen

    x = torch.randn(4, 3)
    program = sardonyx.export(model, (x,), capture="trace")
    torch.testing.assert_close(program(x + 1), model(x + 1))
