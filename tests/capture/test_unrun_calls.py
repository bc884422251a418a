"""Costly calls are recorded and not run; where a model looks at values, all of it is run."""

from __future__ import annotations

import io
import threading
from collections import UserList
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import wrap_torch_function
from torch.utils._python_dispatch import TorchDispatchMode

import sardonyx
from sardonyx import _torch_private
from sardonyx.capture import unrun_calls
from sardonyx.capture.batched_calls import BATCHED_CALLS
from tests.ops.harness import check

X = torch.linspace(-2, 3, 32).reshape(4, 8)
LEAST_WORK = unrun_calls.LEAST_WORK
EVERY_SIZE = 0
NO_SIZE = 1 << 62


@pytest.fixture(autouse=True)
def small_calls_are_costly(monkeypatch):
    monkeypatch.setattr(unrun_calls, "LEAST_WORK", EVERY_SIZE)


class Recordings:
    """How a model was recorded."""

    def __init__(self) -> None:
        self.unrun = 0
        """Calls that were not run."""
        self.computed = 0
        """How often their values were computed after all."""
        self.runs = 0

    def __eq__(self, other: object) -> bool:
        return (self.unrun, self.computed, self.runs) == other

    def __repr__(self) -> str:
        return f"{self.unrun} unrun, {self.computed} computed, {self.runs} runs"


@pytest.fixture
def recordings(monkeypatch) -> Recordings:
    found = Recordings()
    replace = _torch_private.recorded_on_empty_batches
    give, trace = _torch_private.give_values_while_tracing, _torch_private.trace_graph

    def counted(attribute, function):
        def call(*args):
            setattr(found, attribute, getattr(found, attribute) + 1)
            return function(*args)

        return call

    monkeypatch.setattr(_torch_private, "recorded_on_empty_batches", counted("unrun", replace))
    monkeypatch.setattr(_torch_private, "give_values_while_tracing", counted("computed", give))
    monkeypatch.setattr(_torch_private, "trace_graph", counted("runs", trace))
    return found


class Attention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 6, 2, batch_first=True)
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        return self.head(self.rnn(x)[0]).log_softmax(-1)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

    def forward(self, x):
        y = F.relu(self.norm(self.conv(x)), inplace=True)
        y += x
        y[:, 0] = y[:, 1].sigmoid()
        return F.max_pool2d(y, 2), y.flatten(1) @ y.flatten(1).t()


WHOLE_MODELS = {
    "perceptron": (nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)), (4, 8), 3),
    "attention": (Attention(8, 2, batch_first=True), (2, 5, 8), 2),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8), 7),
    "recurrent": (Recurrent(), (2, 5, 8), 2),
    "residual": (Residual(), (2, 3, 8, 8), 5),
}


def files_of(model, x, monkeypatch) -> list[bytes]:
    """Without and with a run of all calls; by one line, which is in the files."""
    found = []
    for least in (EVERY_SIZE, NO_SIZE):
        monkeypatch.setattr(unrun_calls, "LEAST_WORK", least)
        stream = io.BytesIO()
        sardonyx.export(model, (x,), stream, capture="trace")
        found.append(stream.getvalue())
    return found


@pytest.mark.parametrize("name", WHOLE_MODELS)
def test_the_file_is_the_same(name, monkeypatch):
    model, shape, _ = WHOLE_MODELS[name]
    unrun, run = files_of(model.eval(), torch.randn(shape), monkeypatch)
    assert unrun == run


@pytest.mark.parametrize("name", WHOLE_MODELS)
def test_costly_calls_are_not_run(name, recordings):
    model, shape, count = WHOLE_MODELS[name]
    sardonyx.export(model.eval(), (torch.randn(shape),), capture="trace", verify=True)
    assert recordings == (count, 0, 1)


@pytest.mark.parametrize("name", WHOLE_MODELS)
def test_with_dynamic_dims(name, recordings):
    model, shape, _ = WHOLE_MODELS[name]
    others = [(torch.randn(n, *shape[1:]),) for n in (1, 5)]
    check(model, torch.randn(shape), others=others, dynamic={0: [0]}, captures=["trace"])
    assert recordings.unrun > 0
    assert recordings.computed == 0


def test_small_calls_are_run(recordings, monkeypatch):
    monkeypatch.setattr(unrun_calls, "LEAST_WORK", LEAST_WORK)
    sardonyx.export(nn.Linear(8, 8), (X,), capture="trace")
    assert recordings == (0, 0, 1)


W = torch.randn(8, 8)


class Product(nn.Module):
    """Goes on with a function of its input and of what was not computed."""

    def __init__(self, function):
        super().__init__()
        self.w = W
        self.function = function

    def forward(self, x):
        return self.function(x, x @ self.w)


def no_value(x, y):
    return x * y.amax() + y[:, 1:2].sin()


def test_a_model_that_looks_at_no_values_is_not(recordings):
    sardonyx.export(Product(no_value), (X,), capture="trace", verify=True)
    assert recordings == (1, 0, 1)


def an_item(x, y):
    return x * y.amax().item()


def a_branch(x, y):
    return x + 1 if y.sum() > -1e9 else x - 1


def a_list(x, y):
    return x * y[0, :2].tolist()[1]


def an_array(x, y):
    return x + torch.from_numpy(y.numpy() * 2)


def elements_of_a_mask(x, y):
    return y[y > 0]


def rows_that_are_positive(x, y):
    rows = y.sum(1).relu().nonzero()
    return x[rows[:, 0]] if len(rows) else x


def repeated_rows(x, y):
    return x.repeat_interleave(y[:, 0].relu().ceil().long() + 1, 0)


def a_number_of_a_call(x, y):
    return torch.add(x, x, alpha=y[0, 0].abs())


def a_string(x, y):
    return x * len(f"{y[0, 0]:.3f}")


def what_is_in_it(x, y):
    return x + 1 if 7.0 in y else x - 1


def equal_tensors(x, y):
    return x + 1 if torch.equal(y, torch.zeros_like(y)) else x - 1


@torch.jit.script
def scripted(x):
    if bool(x.sum() != 0):
        return x[:2]
    return x


def a_branch_of_a_script(x, y):
    z = scripted(y)
    return z.new_ones(z.shape[0]) + z.sum()


def a_swallowed_end(x, y):
    try:
        n = int(y.argmax())
    except BaseException:
        n = -1
    return y * n


def a_count(x, y):
    return x * len(x.new_zeros(y.argmax() + 1).unbind())


def an_index_that_is_too_large(x, y):
    return F.embedding(y.argmax(1), W) * 2


def a_sum_in_a_literal(x, y):
    total = torch.tensor([0.0])
    total += y.sum()
    return y * total


def a_literal_of_tensors(x, y):
    return x * torch.tensor(UserList([y[0, 0], y[0, 1]])).sum()


def an_array_that_is_written(x, y):
    array = np.zeros(8, np.float32)
    torch.from_numpy(array)[:] = y[0]
    return x + 1 if array.any() else x - 1


def a_thread(x, y):
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(float(y.max())))
    thread.start()
    thread.join()
    return x * found[0]


def a_pool_of_threads(x, y):
    with ThreadPoolExecutor(1) as pool:
        return x * pool.submit(lambda: float(y.max())).result()


class Sees(TorchDispatchMode):
    largest = 0.0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.relu.default:
            self.largest = float(result.max())
        return result


def a_mode_that_sees_operators(x, y):
    with Sees() as mode:
        z = y.relu()
    return z * mode.largest


@wrap_torch_function(lambda x: (x,))
def relu(x):
    """Has the name of one that looks at no values."""
    return x + 1 if x.max() > 0 else x - 1


def a_function_of_a_known_name(x, y):
    return relu(y)


def how_it_was_made(x, y):
    return y * 2 if y._version == 0 else y * 3


def a_write_to_a_part(x, y):
    part = y[:, :3]
    if y.max() > -1e9:
        part.fill_(50.0)
    return y * 2 if y.max() > 49 else y * 3


def a_write_seen_by_a_part(x, y):
    part = y.unfold(1, 3, 1)
    k = y.max().item()
    y.add_(1)
    return y * k * part.sum().item()


def where_it_is_cast(x, y):
    with torch.autocast("cpu", torch.bfloat16):
        k = y.max().item()
    return x * k


def random_numbers_of_a_generator(x, y):
    numbers = torch.rand(8, generator=torch.Generator().manual_seed(5))
    k = y.max().item()
    return x * numbers.max().item() * k


def random_numbers_that_are_not_used(x, y):
    torch.rand(3)
    numbers = torch.rand(8)
    return x * (y * numbers).max().item()


def random_numbers_of_a_seed(x, y):
    torch.manual_seed(3)
    numbers = torch.rand(8)
    k = y.max().item()
    return x * numbers.max().item() * k


def an_array_of_a_tensor(x, y):
    z = torch.zeros(4, 8)
    array = z.numpy()
    z.add_(x @ W)
    return x * float(array.max())


READS_VALUES: list[Callable[..., Any]] = [
    an_item, a_branch, a_list, an_array, elements_of_a_mask, rows_that_are_positive, repeated_rows,
    a_number_of_a_call, a_string, what_is_in_it, equal_tensors, a_branch_of_a_script,
    a_swallowed_end, a_count, an_index_that_is_too_large, a_sum_in_a_literal,
    a_literal_of_tensors, an_array_that_is_written, a_thread, a_pool_of_threads,
    a_mode_that_sees_operators, a_function_of_a_known_name, how_it_was_made,
    a_write_to_a_part, a_write_seen_by_a_part, where_it_is_cast, random_numbers_of_a_generator,
    random_numbers_that_are_not_used, random_numbers_of_a_seed, an_array_of_a_tensor,
]  # fmt: skip


@pytest.mark.parametrize("function", READS_VALUES, ids=lambda f: f.__name__)
def test_a_model_that_looks_at_values_is_run(function, recordings):
    sardonyx.export(Product(function), (X,), capture="trace")
    assert recordings.unrun > 0
    assert recordings.computed == 1 or recordings.runs == 2


@pytest.mark.parametrize("function", READS_VALUES, ids=lambda f: f.__name__)
def test_the_file_of_a_model_that_looks_at_values(function, monkeypatch):
    again, run = files_of(Product(function), X, monkeypatch)
    assert again == run


def test_nothing_is_printed_that_was_not_computed(capsys):
    def chatty(x, y):
        print(y.max())
        return y

    sardonyx.export(Product(chatty), (X,), capture="trace")
    assert capsys.readouterr().out == f"{(X @ W).max()!r}\n"


SEEN: dict[str, torch.Tensor] = {}


def sees_results(x, y):
    SEEN["product"] = y
    SEEN["part"] = y.relu().add_(1)[:, 2:]
    SEEN["repeated"] = y[:1].expand(3, 8)
    return y * 2


def sees_results_and_looks(x, y):
    sees_results(x, y)
    return x * float(SEEN["product"][0, 0])


@pytest.mark.parametrize("function", [sees_results, sees_results_and_looks])
def test_results_that_something_else_holds_get_their_values(function, recordings):
    SEEN.clear()
    sardonyx.export(Product(function), (X,), capture="trace")
    assert recordings == (2, function is sees_results_and_looks, 1)
    y = X @ W
    torch.testing.assert_close(SEEN["product"], y)
    torch.testing.assert_close(SEEN["part"], (y.relu() + 1)[:, 2:])
    torch.testing.assert_close(SEEN["repeated"], y[:1].expand(3, 8))


def test_a_cache_that_outlives_a_given_up_recording_has_values():
    cache: list[torch.Tensor] = []

    def cached(x, y):
        if not cache:
            cache.append(y)
        return x * cache[0].sum().item() + cache[0]

    sardonyx.export(Product(cached), (X,), capture="trace")
    torch.testing.assert_close(cache[0], X @ W)


def returned_and_kept(x, y):
    SEEN["product"] = y
    return y


def returned_after_a_number(x, y):
    SEEN["product"] = y
    return {"size": x.shape[0], "none": None, "first": x, "product": y}


def filled_later(x, y):
    SEEN["product"] = made = torch.zeros(4, 8)
    made[:] = x @ W
    return y


def of_inference_mode(x, y):
    with torch.inference_mode():
        SEEN["product"] = y * 1
    return x


def as_a_parameter(x, y):
    SEEN["product"] = nn.Parameter(y, requires_grad=False)
    return x


@pytest.mark.parametrize(
    "function",
    [returned_and_kept, returned_after_a_number, filled_later, of_inference_mode, as_a_parameter],
)
def test_kinds_of_results_that_are_kept(function):
    SEEN.clear()
    sardonyx.export(Product(function), (X,), capture="trace")
    torch.testing.assert_close(SEEN["product"].data, X @ W)


def test_random_numbers_of_what_is_kept_are_those_that_were_drawn():
    def masked(x, y):
        SEEN["mask"] = torch.rand(4, 8)
        SEEN["masked"] = y * SEEN["mask"]
        return SEEN["masked"]

    sardonyx.export(Product(masked), (X,), capture="trace")
    torch.testing.assert_close(SEEN["masked"], (X @ W) * SEEN["mask"])


class Scaled(nn.Linear):
    def forward(self, x):
        SEEN["product"] = y = super().forward(x)
        return y, self.bias


def test_a_parameter_that_is_returned(recordings):
    model = Scaled(8, 8).eval()
    bias = model.bias.detach().clone()
    sardonyx.export(model, (X,), capture="trace")
    assert recordings == (1, 0, 1)
    assert torch.equal(model.bias, bias)
    torch.testing.assert_close(SEEN["product"], model(X)[0].detach())


class Writes(nn.Module):
    """What was there before."""

    def __init__(self, place):
        super().__init__()
        self.linear, self.place = nn.Linear(8, 8), place
        self.parameter = nn.Parameter(torch.zeros(8), requires_grad=False)
        self.plain = torch.zeros(8)
        self.listed = [torch.zeros(8)]

    def forward(self, x):
        y = self.linear(x)
        place = self.listed[0] if self.place == "listed" else getattr(self, self.place)
        place.mul_(0.5).add_(y.mean(0))
        return y + place


@pytest.mark.parametrize("place", ["parameter", "plain", "listed"])
def test_what_was_there_before_is_as_it_was(place):
    model = Writes(place).eval()
    program = sardonyx.export(model, (X,), capture="trace")
    for tensor in (model.parameter, model.plain, *model.listed):
        assert not tensor.any()
    y = model.linear(X)
    torch.testing.assert_close(program(X), y + y.mean(0))


class Doubled(nn.Module):
    """Writes a copy, or what it was made of, as the layout in memory has it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y = self.layer(x)
        z = y.contiguous()
        z.mul_(2)
        return y, z


LAST = torch.channels_last
LAYOUTS = {
    "weight": (nn.Conv2d(4, 5, 1).to(memory_format=LAST), torch.randn(2, 4, 6, 6)),
    "one channel": (nn.Conv2d(1, 5, 3), torch.randn(2, 1, 6, 6).to(memory_format=LAST)),
    "one pixel": (nn.ConvTranspose2d(4, 5, 3), torch.randn(1, 1, 2, 4).permute(2, 3, 0, 1)),
    "pooled": (nn.AdaptiveAvgPool2d(2), torch.randn(1, 1, 2, 4).permute(2, 3, 0, 1)),
    "in order": (nn.Conv2d(4, 5, 3), torch.randn(2, 4, 6, 6)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_in_memory(name):
    layer, x = LAYOUTS[name]
    check(Doubled(layer), x, captures=["trace"])


def test_autocast_in_a_model():
    def casts(x):
        with torch.autocast("cpu", torch.bfloat16):
            return ((x @ x.mT).softmax(-1) @ x).float()

    check(casts, torch.randn(2, 5, 8), captures=["trace"], rtol=0.05, atol=0.05)


def test_the_size_of_what_is_written_in_place():
    def scaled(x):
        return x * F.relu(torch.arange(8.0) - 4, inplace=True)

    others = [(torch.randn(n, 8),) for n in (1, 3)]
    check(scaled, X, others=others, dynamic={0: [0]}, captures=["trace"])


def normed(x):
    return F.batch_norm(x, torch.zeros(3), torch.ones(3))


def widened(x):
    return F.conv_transpose2d(x[None, :, :, None], torch.randn(4, 2, 3, 3), output_padding=1)


def mixed(x):
    return F.linear(x, torch.randn(2, 8, dtype=torch.float64))


@pytest.mark.parametrize("model", [normed, widened, mixed])
def test_what_pytorch_does_not_check_on_empty_batches(model):
    with pytest.raises(sardonyx.errors.CaptureError, match="the model itself fails"):
        sardonyx.export(model, (X,), capture="trace")


def fails(*args):
    raise RuntimeError("no values")


@pytest.mark.parametrize("name", ["give_values_while_tracing", "recorded_on_empty_batches"])
def test_a_recording_that_is_given_up_is_not_used(name, monkeypatch):
    """Although the model catches what ends it."""

    def swallows(x):
        try:
            k = (x @ x.mT).max().item()
        except BaseException:
            k = -1.0
        return x * k

    monkeypatch.setattr(_torch_private, name, fails)
    program = sardonyx.export(swallows, (X,), capture="trace")
    torch.testing.assert_close(program(X), swallows(X))


def test_announcements_that_are_left_over_do_nothing(monkeypatch):
    monkeypatch.setattr(unrun_calls, "_UNSEEN", ((threading.Thread, "start"),))
    announced: list[str] = []
    first = unrun_calls._uses_unseen_announced(lambda: announced.append("first"))
    second = unrun_calls._uses_unseen_announced(lambda: announced.append("second"))
    start = threading.Thread.start
    with pytest.MonkeyPatch.context() as patch:  # as two threads may do
        patch.setattr(threading.Thread, "start", start)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    assert announced == []
    assert threading.Thread.start is start


def test_where_gradients_are_enabled():
    def asked(x):
        with torch.enable_grad():
            y = x @ x.new_ones(8, 8).requires_grad_()
        return y * 2 if y.requires_grad else y * 3

    check(asked, X, captures=["trace"])


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.last = nn.Linear(8, 8), None
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x):
        self.last = self.linear(x)
        self.count += self.last.mean(0)
        return self.last.cos() + self.count


def test_attributes_and_buffers(recordings):
    model = Keeps().eval()
    program = sardonyx.export(model, (X,), capture="trace", state_outputs=True)
    assert recordings == (1, 1, 1)
    assert model.last is None
    assert not model.count.any()
    count = model.linear(X).mean(0)
    torch.testing.assert_close(program(X), model.linear(X).cos() + count)
    assert [output.name for output in program.model.graph.outputs] == ["output", "count.out"]


def test_the_error_of_a_model_that_fails():
    def fails(x, y):
        return y.reshape(5, 5)

    with pytest.raises(sardonyx.errors.CaptureError, match=r"y\.reshape\(5, 5\)"):
        sardonyx.export(Product(fails), (X,), capture="trace")


def batches(*shape, dtype=torch.float32) -> list[torch.Tensor]:
    """Of one shape, lying in memory in several ways."""
    x = torch.randn(shape).to(dtype)
    turned = x.transpose(-1, -2).contiguous().transpose(-1, -2)
    found = [x, turned, torch.cat([x, x], -1)[..., : shape[-1]], x[:1].expand(shape)]
    if len(shape) == 4:
        found.append(x.contiguous(memory_format=torch.channels_last))
    return found


def weight(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


POOLS = {1: (3, 4, 9), 2: (3, 4, 9, 7), 3: (3, 4, 5, 6, 7)}
ONES = {"one channel": (2, 1, 6, 6), "one pixel": (2, 4, 1, 1), "one entry": (1, 4, 6, 6)}


def calls() -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    made: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
    for x in (*batches(4, 8), *batches(2, 5, 8), *batches(2, 3, 5, 8), torch.randn(8)):
        made += [(F.linear, (x, weight(6, 8)), {}), (F.linear, (x, weight(6, 8), weight(6)), {})]
        made += [(torch.matmul, (x, weight(8, 6)), {}), (torch.Tensor.matmul, (x, W.t()), {})]
        made += [(torch.matmul, (x, weight(8)), {})]
        if x.dim() > 1:
            made += [(torch.matmul, (x, x.mT), {}), (torch.matmul, (x, weight(2, 1, 8, 6)), {})]
            made += [(F.layer_norm, (x, x.shape[-n:]), {}) for n in range(1, x.dim() + 1)]
            made += [(F.batch_norm, (x, None, None), {"training": True})] * (x.dim() > 2)
            channels = [weight(x.shape[1]), weight(x.shape[1]).abs()]
            made += [(F.batch_norm, (x, *channels), {}), (F.batch_norm, (x, *channels * 2), {})]
    for x in batches(4, 8):
        made += [(torch.mm, (x, W), {}), (torch.Tensor.mm, (x, W), {})]
        made += [(torch.Tensor.__matmul__, (x, W), {}), (torch.addmm, (weight(8), x, W), {})]
        made += [(torch.addmm, (weight(4, 8), x, W), {"alpha": 2, "beta": 0.5})]
    for x in batches(3, 4, 8):
        made += [(torch.bmm, (x, x.mT), {}), (torch.Tensor.bmm, (x, x.mT), {})]
    for dims, shape in POOLS.items():
        conv = getattr(torch, f"conv{dims}d")
        transposed = getattr(torch, f"conv_transpose{dims}d")
        for x in batches(*shape):
            for w in (weight(6, 4, *[3] * dims), weight(6, 4, *[1] * dims)):
                made += [(conv, (x, w), {}), (conv, (x, w, weight(6), 2, 1), {})]
                made += [(conv, (x, w, None, 1, "same"), {})]
            made += [(conv, (x, weight(4, 1, *[3] * dims)), {"groups": 4})]
            made += [(transposed, (x, weight(4, 6, *[3] * dims), None, 2, 1), {})]
            for pool in ("avg_pool", "max_pool"):
                made += [(getattr(F, f"{pool}{dims}d"), (x, 2), {"ceil_mode": True})]
            made += [(getattr(F, f"adaptive_avg_pool{dims}d"), (x, 2), {})]
    for shape in ONES.values():
        for x in batches(*shape):
            made += [(torch.conv2d, (x, weight(5, shape[1], 1, 1)), {})]
            made += [(F.adaptive_avg_pool2d, (x, 1), {}), (F.relu, (x,), {})]
    for x in (*batches(4, 8), *batches(2, 3, 5, 8), torch.randn(())):
        for func in BATCHED_CALLS:
            name = getattr(func, "__name__", "")
            if name in ("softmax", "log_softmax"):
                made += [(func, (x, dim), {}) for dim in (0, -1) if x.dim()]
                made += [(func, (x, -1), {"dtype": torch.float64})] * bool(x.dim())
            elif "pool" not in name and name.rstrip("_") in (
                *("relu", "gelu", "silu", "sigmoid", "tanh", "relu6", "hardtanh", "hardswish"),
                *("hardsigmoid", "leaky_relu", "elu", "mish", "softplus"),
            ):
                made += [(func, (x,), {})]
    made += [(F.relu, (x.clone(),), {"inplace": True}) for x in batches(4, 8)]
    made += [(F.linear, (weight(4, 8, dtype=d), weight(6, 8, dtype=d)), {}) for d in DTYPES]
    made += [(torch.conv2d, (weight(2, 3, 6, 6, dtype=d), weight(4, 3, 3, 3, dtype=d)), {})
             for d in DTYPES]  # fmt: skip
    return made


DTYPES = (torch.float16, torch.bfloat16, torch.float64)


def test_what_stands_for_results_lies_in_memory_as_they_do():
    unrun, seen = 0, set()
    for func, args, kwargs in calls():
        mode = unrun_calls.UnrunCalls(unrun_calls.OutputRecord(), ())
        found = {}

        def recorded(x, func=func, args=args, kwargs=kwargs, mode=mode, found=found):
            if mode.changes(func, args, kwargs):
                found["result"] = mode.__torch_function__(func, (), args, kwargs)
            return x + 1

        with torch.no_grad():
            torch._C._create_graph_by_tracing(recorded, [X], lambda _: "", False, False)
            if not found:
                continue
            expected = func(*args, **kwargs)
        unrun += 1
        seen.add(func)
        result = found["result"]
        label = f"{func} {[(a.shape, a.stride()) for a in args if isinstance(a, torch.Tensor)]}"
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype), label
        assert result.stride() == expected.stride(), label
        assert result.storage_offset() == expected.storage_offset() == 0, label
        assert not result._is_view(), label
        is_argument = any(result is a for a in args)
        assert is_argument == any(expected is a for a in args), label
        if not is_argument:
            assert not any(
                _torch_private.memory_address(result) == _torch_private.memory_address(a)
                for a in args
                if isinstance(a, torch.Tensor)
            ), label
    assert unrun > 200
    assert seen == set(BATCHED_CALLS)
