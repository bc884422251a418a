"""Sizes while a model is traced: Python's own numbers where they are fixed, followed where data
decides them."""

from __future__ import annotations

import threading

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


def counted_on(x):
    n = x[x > 0].shape[0]
    before = n
    n += 1
    return x * before


def answered_as_a_number(x):
    n = x[x > 0].shape[0]
    doubled = x * 2 if isinstance(n, int) else x
    return doubled * ((n > 2) + (n > 1)) * 2.0 ** (-n) + round(n / 2) + divmod(n, 2)[1]


def of_extremes(x):
    n = len(x[x > 0])
    torch._check(n >= 0)
    return torch.zeros(max(n, 2), min(n, 3))


@torch.jit.script
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


def of_a_script(x):
    return torch.zeros(positive(x).shape[0])


def counted_elements(x):
    return x * torch.numel(x[x > 0]), x * x[x > 0].nbytes


@pytest.mark.parametrize(
    "model",
    [
        number_of_positive,
        rows_with_positive,
        repeated,
        mixed,
        counted_on,
        answered_as_a_number,
        of_extremes,
        of_a_script,
        counted_elements,
    ],
)
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


@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.zeros(F.relu(x).to_sparse().values().shape[0]),
        lambda x: torch.zeros(F.relu(x).to_sparse_csr().values().shape[0]),
    ],
)
def test_the_sizes_of_sparse_tensors_are_refused(model):
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="sparse"):
        sardonyx.export(model, (X,), capture="trace")


class CountsTwice(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result[0] * 2 if func == torch.Tensor.shape.__get__ else result


def test_a_mode_of_the_model_may_answer():
    def model(x):
        with CountsTwice():
            rows = x.shape
        return x * rows

    program = sardonyx.export(model, (X,), capture="trace")
    torch.testing.assert_close(program(X), X * 4)


def test_a_trace_of_another_thread_has_its_sizes():
    elsewhere = []

    def trace_elsewhere():
        traced = torch.jit.trace(lambda x: x.reshape(x.shape[0] * x.shape[1]), (X,))
        elsewhere.append(traced(torch.ones(4, 5)).shape)

    def model(x):
        thread = threading.Thread(target=trace_elsewhere)
        thread.start()
        thread.join()
        return x * x.shape[0]

    program = sardonyx.export(model, (X,), capture="trace", verify=False)
    torch.testing.assert_close(program(X), X * 2)
    assert elsewhere == [(20,)]


def test_a_patch_of_the_user_stays(monkeypatch):
    asked = []
    original = torch._C.TensorBase.size

    def noted(tensor, *args):
        asked.append(args)
        return original(tensor, *args)

    monkeypatch.setattr(torch.Tensor, "size", noted, raising=False)
    sardonyx.export(lambda x: x * x.size(0), (X,), capture="trace", verify=False)
    assert torch.Tensor.size is noted
    assert (0,) in asked


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


def test_a_custom_operator_that_does_not_tell_its_sizes_is_noted():
    with torch.library._scoped_library("sardonyx_test_sizes", "FRAGMENT") as library:
        library.define("positive(Tensor x) -> Tensor")
        library.impl("positive", lambda x: x[x > 0], "CPU")

        def model(x):
            return torch.zeros(torch.ops.sardonyx_test_sizes.positive(x).shape[0])

        program = sardonyx.export(model, (X,), capture="trace", verify=False)
    (note,) = program.notes
    assert "sardonyx_test_sizes::positive has no fake kernel" in note
