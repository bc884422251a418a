"""Sizes while a model is traced: Python's own numbers where they are fixed, followed where data
decides them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import sardonyx
from sardonyx import _torch_private
from sardonyx.capture import trace

X = torch.tensor([[1.0, -2.0, 3.0], [-1.0, 0.5, -0.5]])


def graph_of(model, *args, **options) -> str:
    """What the tracer records."""
    recorded: list[str] = []
    original = _torch_private.trace_graph
    with pytest.MonkeyPatch.context() as patch:

        def kept(*given):
            graph = original(*given)
            recorded.append(str(graph))
            return graph

        patch.setattr(trace._torch_private, "trace_graph", kept)
        sardonyx.export(model, args, capture="trace", verify=False, **options)
    return recorded[0]


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)[0]


def test_the_record_has_no_fixed_size():
    attention = SelfAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    assert "aten::size" not in graph_of(attention, x)
    assert "aten::size" in graph_of(attention, x, dynamic_axes={"x": {0: "batch"}})


def number_of_positive(x):
    return x.reshape(-1)[: x[x > 0].size(0)] * 2


def rows_with_positive(x):
    rows = torch.nonzero(x > 0)
    return torch.zeros(rows.shape[0], x.shape[1]), rows.shape[0] * x.shape[0]


def repeated(x):
    many = x.repeat_interleave((x[:, 0] > 0).long() + 1, dim=0)
    return torch.arange(len(many)), many.numel() + 0 * many.sum()


def mixed(x):
    kept = x[x > 0]
    return F.pad(kept, (0, x.numel() - kept.numel()))


@pytest.mark.parametrize("model", [number_of_positive, rows_with_positive, repeated, mixed])
def test_sizes_that_data_decides_are_followed(model):
    program = sardonyx.export(model, (X,), capture="trace", verify=False)
    for x in (X, -X, X.abs(), -X.abs(), torch.randn(2, 3)):
        torch.testing.assert_close(program(x), _tensors(model(x)), check_dtype=False)


def _tensors(results):
    if isinstance(results, torch.Tensor):
        return results
    return tuple(r if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results)


def test_a_number_that_is_an_input_decides_sizes():
    def model(x, n):
        made = torch.zeros(n, 2)
        return made + x.sum(), made.shape[0] * x.shape[0]

    program = sardonyx.export(model, (X, 4), capture="trace", verify=False)
    for n in (4, 1, 6):
        result, count = program(X, n)
        torch.testing.assert_close(result, model(X, n)[0])
        assert int(count) == 2 * n


def of_tracers(x):
    """As libraries have it for torch.jit.trace."""
    if torch.jit.is_tracing():
        rows = x.shape[0].to(torch.float32)
        assert isinstance(x.shape[1], torch.Tensor)
        return x * rows
    return x * x.shape[0]


@pytest.mark.parametrize("options", [{}, {"dynamic_axes": {"x": {0: "n"}}}])
def test_code_that_takes_traced_sizes_for_tensors(options):
    program = sardonyx.export(of_tracers, (X,), capture="trace", **options)
    torch.testing.assert_close(program(X), of_tracers(X))


@pytest.mark.parametrize("asks", [False, True])
def test_a_model_that_raises_is_traced_again_only_where_it_got_numbers(asks):
    traced = []

    def model(x):
        traced.append(torch.jit.is_tracing())
        assert not asks or x.shape
        raise ValueError("no")

    with pytest.raises(sardonyx.CaptureError, match="no"):
        sardonyx.export(model, (X,), capture="trace")
    assert traced == [True, *[True] * asks, False]


@pytest.mark.parametrize("fails", [False, True])
def test_the_questions_are_put_back(fails):
    def model(x):
        if fails:
            raise ValueError("no")
        return x * x.shape[0]

    if fails:
        with pytest.raises(sardonyx.CaptureError, match="no"):
            sardonyx.export(model, (X,), capture="trace")
    else:
        sardonyx.export(model, (X,), capture="trace")
    assert torch.Tensor.size is torch._C.TensorBase.size
    assert torch.Tensor.shape is torch._C.TensorBase.shape
    assert "size" not in vars(torch.Tensor)
