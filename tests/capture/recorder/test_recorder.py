"""The recorder: what it leaves alone, what it notices, and how its time grows."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch
from torch import nn
from torch.testing._internal.logging_tensor import LoggingTensorMode
from torch.utils import _python_dispatch

import sardonyx
from sardonyx._torch_private import patches
from tests.cost import function_calls

CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


def assert_right(model, program, *inputs):
    for given in inputs:
        expected = model(*copy.deepcopy(given))
        torch.testing.assert_close(program(*given), expected, rtol=1e-4, atol=1e-5)


# -- patches


def table():
    groups = (
        patches.PATCHES,
        patches.PYTHON_PATCHES,
        patches._AUTOGRAD_PATCHES,
        patches._EXPORT_PATCHES,
        patches._EXPORTING_PATCHES,
    )
    return [patch for group in groups for patch in group]


def test_patches_are_few_and_each_says_why():
    assert len(table()) <= 25
    for patch in table():
        assert patch.why and patch.torch
        module = patch.owner.partition(":")[0]
        assert not module.startswith("sardonyx") and "__main__" not in module


def state_of_patched():
    found = []
    for patch in table():
        owner, value = patches._found(patch)
        found.append((patch.owner, patch.name, id(value) if owner is not None else None))
    return found


@CAPTURES
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_patched_afterwards(capture, fails):
    def model(x):
        if fails:
            raise ValueError("no")
        return x * max(x.shape[0], 2)

    before = state_of_patched()
    try:
        sardonyx.export(model, (torch.randn(3, 2),), capture=capture, dynamic_axes={"x": [0]})
    except sardonyx.CaptureError:
        assert fails
    assert state_of_patched() == before


@CAPTURES
def test_functions_of_python_are_replaced_for_models_with_symbols_only(capture):
    own = (max, math.sqrt)
    met = []

    def model(x):
        met.append([f is g for f, g in zip((max, math.sqrt), own, strict=True)] == [True] * 2)
        rows = x[x > 0].shape[0]
        met.append([f is g for f, g in zip((max, math.sqrt), own, strict=True)] == [True] * 2)
        return x * max(rows, 2)

    x = torch.randn(3, 2)
    program = sardonyx.export(model, (x,), capture=capture)
    assert (
        met == [True, False]
        and [f is g for f, g in zip((max, math.sqrt), own, strict=True)] == [True] * 2
    )
    assert_right(model, program, (x,), (-x,))


def test_an_interrupt_leaves_nothing_patched():
    script = """
        import signal, sys, threading, time, torch, sardonyx
        from sardonyx._torch_private import patches
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
        table = (*patches.PATCHES, *patches.PYTHON_PATCHES, *patches._AUTOGRAD_PATCHES)
        def state():
            return [id(patches._found(p)[1]) for p in table], signal.getsignal(signal.SIGINT)
        model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(8)))
        x = torch.randn(2, 4)
        sardonyx.export(model, (x,), dynamic_axes={"input": [0]})
        began = time.perf_counter()
        sardonyx.export(model, (x,), dynamic_axes={"input": [0]})
        took = time.perf_counter() - began
        before, interrupted, main = state(), 0, threading.get_ident()
        for attempt in range(120):
            def interrupt():
                time.sleep(took * attempt / 120)
                signal.pthread_kill(main, signal.SIGINT)
            sender = threading.Thread(target=interrupt)
            finished = False
            try:
                sender.start()
                sardonyx.export(model, (x,), dynamic_axes={"input": [0]})
                finished = True
                sender.join()
                time.sleep(0.01)
            except KeyboardInterrupt:
                interrupted += not finished
            assert state() == before, attempt
        print(interrupted)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 20


@CAPTURES
def test_modes_that_an_interrupt_left_active_are_removed(capture):
    class Wrong(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 2

    def model(x):
        Wrong().__enter__()
        LoggingTensorMode().__enter__()
        torch._C._set_grad_enabled(not torch.is_grad_enabled())
        raise KeyboardInterrupt

    x = torch.ones(3)
    with pytest.raises(KeyboardInterrupt):
        sardonyx.export(model, (x,), capture=capture)
    assert torch.is_grad_enabled() and not _python_dispatch.is_in_torch_dispatch_mode()
    assert torch._C._len_torch_dispatch_stack() == torch._C._len_torch_function_stack() == 0
    assert (x + 1).tolist() == [2, 2, 2]


def test_a_thread_that_runs_meanwhile_notices_nothing():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    own = nn.Linear(3, 3)
    x = torch.randn(5, 3)
    expected = own(x)
    stop, failures, rounds = threading.Event(), [], []

    def work():
        optimizer = torch.optim.SGD(own.parameters(), lr=0.0)
        while not stop.is_set():
            try:
                result = own(x)
                result.sum().backward()
                optimizer.step()
                assert type(result) is torch.Tensor and torch.equal(result, expected)
                assert max([3, 1, 2]) == 3 and min(4, 2) == 2 and math.sqrt(16.0) == 4.0
                assert pickle.loads(pickle.dumps((own.state_dict(), max))) is not None
                rounds.append(1)
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for capture in ("export", "trace") * 4:
            sardonyx.export(
                model, (torch.randn(2, 4),), capture=capture, dynamic_axes={"input": [0]}
            )
    finally:
        stop.set()
        thread.join()
    assert not failures and rounds


def test_a_plain_module_needs_no_torchscript():
    script = """
        import torch, sardonyx
        def unusable(*args, **kwargs):
            raise AssertionError("torch.jit is not to be used")
        for name in ("trace", "script", "trace_module", "freeze", "optimize_for_inference"):
            setattr(torch.jit, name, unusable)
        torch._C._create_graph_by_tracing = unusable
        torch.export.export = unusable
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
        for capture in ("auto", "export", "trace"):
            x = torch.randn(2, 3, 5, 5)
            program = sardonyx.export(model, (x,), capture=capture, dynamic_axes={"input": [0]})
            y = torch.randn(3, 3, 5, 5)
            torch.testing.assert_close(program(y), model(y), rtol=1e-4, atol=1e-5)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


# -- what forward can reach


@functools.cache
def unbounded_table(n):
    return torch.arange(n).float()


@functools.lru_cache(maxsize=4)
def bounded_table(n):
    return torch.arange(n).float() * 2


GLOBALS: dict[str, object] = {}


def remembering():
    seen = []

    def model(x):
        seen.append(x.sum())
        GLOBALS.setdefault("table", torch.ones(3) * 2)
        return x + unbounded_table(3) + bounded_table(3) + GLOBALS["table"]

    return model, seen


@CAPTURES
def test_caches_globals_and_closures_hold_real_tensors(capture):
    model, seen = remembering()
    GLOBALS.clear()
    unbounded_table.cache_clear()
    bounded_table.cache_clear()
    x = torch.randn(2, 3)
    program = sardonyx.export(model, (x,), capture=capture)
    held = [unbounded_table(3), bounded_table(3), GLOBALS["table"], *seen]
    assert {type(tensor) for tensor in held} == {torch.Tensor}
    assert torch.equal(GLOBALS["table"], torch.full((3,), 2.0))
    torch.testing.assert_close(seen[0], x.sum())
    assert_right(model, program, (x,), (torch.randn(2, 3),))


@CAPTURES
def test_a_holder_that_cannot_be_given_values_is_named(capture):
    kept = set()

    def model(x):
        kept.add(x * 2)
        return x + 1

    with pytest.raises(sardonyx.CaptureError, match=r"builtins\.set"):
        sardonyx.export(model, (torch.randn(3),), capture=capture)


# -- copies, memory and failed calls


def copied(x):
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    shallow.add_(1)
    deep.mul_(3)
    return x, shallow, deep


def recovered(x):
    try:
        return x.view(2, -1)
    except RuntimeError:
        return x * 2


def mapped(x):
    rows = torch.vmap(lambda row: row[1:].flip(0))(x)
    return rows, rows.sum().item() * x


def chosen_by_rows(x):
    return x[x[:, 0] > -100, torch.zeros(1, dtype=torch.long)]


def padded(x):
    return nn.utils.rnn.pad_sequence([x, x[1:]])


@CAPTURES
@pytest.mark.parametrize("model", [copied, recovered, mapped, chosen_by_rows, padded])
def test_equal_to_eager(model, capture):
    x = torch.randn(3, 5)
    program = sardonyx.export(model, (x,), capture=capture)
    assert_right(model, program, (x,), (torch.randn(3, 5),))


@CAPTURES
@pytest.mark.parametrize("model", [copied, chosen_by_rows, padded])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_equal_to_eager_at_other_sizes(model, size, capture):
    example = (torch.randn(size, 5),)
    program = sardonyx.export(model, example, capture=capture, dynamic_axes={"x": {0: "n"}})
    assert_right(model, program, *((torch.randn(n, 5),) for n in (1, 2, 3, 6)))


# -- computed sizes that are 0 or 1 in the example


def inner_filled(x):
    y = x.clone()
    y[1:-1].fill_(3)
    return y


def all_but_the_first_zeroed(x):
    y = x.clone()
    y[1:] = 0
    return y


def narrowed(x):
    y = x.clone()
    y.narrow(0, 1, y.shape[0] - 1).add_(2)
    return y


def split_and_written(x):
    y = x.clone()
    _, rest = y.split([1, y.shape[0] - 1])
    rest.mul_(2)
    return y, rest


def added_in_place(x):
    y = x.clone()
    y[1:] += 1
    return y


def masked(x):
    y = x.clone()
    y[1:][y[1:] > 0] = 5
    return y


def shifted(x):
    y = x.clone()
    y[1:].copy_(x[:-1] * 2)
    return y, x[1:] + x[:-1], x[1:] @ x[1:].t()


SMALL = [
    inner_filled, all_but_the_first_zeroed, narrowed, split_and_written, added_in_place, masked,
    shifted,
]  # fmt: skip


@CAPTURES
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("model", SMALL, ids=lambda model: model.__name__)
def test_small_computed_sizes_stay_dynamic(model, size, capture):
    example = (torch.randn(size, 4),)
    program = sardonyx.export(model, example, capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    assert_right(model, program, *((torch.randn(n, 4),) for n in (1, 2, 3, 5, 9)))


@CAPTURES
@pytest.mark.parametrize(
    "model",
    [
        lambda x: sum(x * i for i in range(min(x.shape[0], 2))) + x,
        lambda x: x * int(min(3, x.shape[0]) / 2),
    ],
    ids=["range", "int"],
)
def test_a_number_that_only_small_sizes_change_is_noted(model, capture):
    program = sardonyx.export(
        model, (torch.randn(4, 2),), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    (note,) = program.notes
    assert "the recording holds where" in note and "test_recorder.py" in note
    assert_right(model, program, *((torch.randn(n, 2),) for n in (3, 4, 9)))


# -- gradients


def gradient(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        (found,) = torch.autograd.grad((x.sin() + (x + 1).sin()).sum(), x)
    return found


@CAPTURES
@pytest.mark.parametrize("axes", [None, {"x": {0: "n"}}], ids=["fixed", "dynamic"])
def test_gradients_inside_a_model(axes, capture):
    program = sardonyx.export(gradient, (torch.randn(3, 4),), capture=capture, dynamic_axes=axes)
    assert_right(gradient, program, (torch.randn(5 if axes else 3, 4),))


# -- time


def calls(model, *args, **options):
    return function_calls(lambda: sardonyx.export(model, args, **options))


def written(count):
    def model(x):
        y = x.clone()
        for i in range(count):
            y[i % 7] += i
        return y

    return model


def summed(*tensors):
    return sum(t.sum() for t in tensors)


def test_twice_the_operators_are_twice_the_work():
    layers = [nn.Linear(4, 4) for _ in range(160)]
    short, long = nn.Sequential(*layers[:80]), nn.Sequential(*layers)
    assert calls(long, torch.randn(2, 4)) < 2.2 * calls(short, torch.randn(2, 4))


@CAPTURES
def test_twice_the_writes_are_twice_the_work(capture):
    x = torch.randn(7, 2)
    assert calls(written(80), x, capture=capture) < 2.2 * calls(written(40), x, capture=capture)


def test_twice_the_inputs_are_twice_the_work():
    def of_inputs(count):
        tensors = [torch.randn(3, 2) for _ in range(count)]
        shapes = {"tensors": tuple({0: "n"} for _ in tensors)}
        return calls(summed, *tensors, dynamic_shapes=shapes)

    assert of_inputs(160) < 2.2 * of_inputs(80)


def nested_modules(depth):
    model = nn.Linear(4, 4)
    for _ in range(depth):
        model = nn.Sequential(model, nn.ReLU())
    return model


@CAPTURES
def test_modules_nested_as_deep_as_eager_takes_them(capture):
    model, x, limit = nested_modules(160), torch.randn(2, 4), sys.getrecursionlimit()
    assert_right(model, sardonyx.export(model, (x,), capture=capture), (x,))
    assert sys.getrecursionlimit() == limit


def nested(step):
    def model(x):
        n = x.shape[0]
        for _ in range(20):
            n = step(n)
        return x.sum() + torch.ones(n % 7 + 1).sum() + n % 5, x[: n % 3]

    return model


STEPS = {
    "once": lambda n: (n * 3 + 1) // 2,
    "twice": lambda n: n + n // 2,
    "remainder": lambda n: n + n % 3,
    "largest": lambda n: max(n, n // 2 + 1),
    "mixed": lambda n: (n + 3) // 2 + max(n, 2) % 5,
}


@CAPTURES
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_arithmetic_of_sizes_twenty_deep_takes_seconds(step, capture):
    model, x = nested(step), torch.randn(9, 2)
    start = time.perf_counter()
    program = sardonyx.export(model, (x,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert time.perf_counter() - start < 20
    assert_right(model, program, (x,), (torch.randn(4, 2),), (torch.randn(1, 2),))


@CAPTURES
def test_sizes_that_operators_nest_take_seconds(capture):
    def model(x):
        for _ in range(12):
            x = torch.cat([x, x[::3]])[:400] + 1
        return x, x.sum() * x.shape[0]

    x = torch.randn(5, 2)
    start = time.perf_counter()
    program = sardonyx.export(model, (x,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert time.perf_counter() - start < 30
    assert_right(model, program, (x,), (torch.randn(4, 2),), (torch.randn(40, 2),))


# -- random numbers and modes


def seeded(x):
    torch.manual_seed(0)
    return x + torch.rand(3)


def of_a_generator(x):
    return x + torch.rand(3, generator=torch.Generator().manual_seed(0))


@CAPTURES
@pytest.mark.parametrize("model", [seeded, of_a_generator])
def test_random_numbers_that_are_the_same_in_every_run_are_refused(model, capture):
    x = torch.randn(3)
    before = torch.get_rng_state()
    with pytest.raises(sardonyx.CaptureError, match="random numbers"):
        sardonyx.export(model, (x,), capture=capture)
    assert torch.equal(torch.get_rng_state(), before)


def test_random_numbers_are_drawn_anew():
    program = sardonyx.export(lambda x: x + torch.rand(3), (torch.zeros(3),))
    assert not torch.equal(program(torch.zeros(3)), program(torch.zeros(3)))


def test_a_layer_that_chance_drops_is_noted():
    def model(x):
        return x * 2 if torch.rand(1) < 0.5 else x

    with pytest.raises(sardonyx.CaptureError):
        sardonyx.export(model, (torch.randn(3),), capture="export")
    program = sardonyx.export(model, (torch.ones(3),))
    assert {program(torch.ones(3)).sum().item() for _ in range(60)} == {3.0, 6.0}
    (note,) = sardonyx.export(model, (torch.randn(3),), capture="trace").notes
    assert "a tensor decides a Python branch" in note and "torch.rand(1) < 0.5" in note


NET = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9))


@CAPTURES
@pytest.mark.parametrize(
    "model",
    [lambda x: NET(x), functools.partial(NET.forward)],
    ids=["lambda", "partial"],
)
def test_modules_that_the_model_only_refers_to_must_be_in_the_mode(model, capture):
    x = torch.randn(2, 3)
    NET.train()
    with pytest.raises(sardonyx.CaptureError, match=r"Dropout that is not one of its modules"):
        sardonyx.export(model, (x,), capture=capture)
    NET.eval()
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    assert "Dropout" not in program.to_text()


@CAPTURES
def test_the_mode_is_that_of_the_module_of_a_method(capture):
    NET.train()
    program = sardonyx.export(NET.forward, (torch.randn(2, 3),), capture=capture, verify=True)
    assert "Dropout" not in program.to_text()
    assert NET.training and NET[1].training


# -- values that are read between writes


def halved_in_a_loop(x):
    y, count = x.sum(), 0
    while y.item() > 1:
        y.div_(2)
        count += 1
    return x * count


def read_before_and_after(x):
    y = x * 1
    before = y[0, 0].item()
    y.add_(1)
    after = y[0, 0].item()
    return (x * 10 if after > before else x), x * (after - before)


def read_before_a_write_decides_later(x):
    y = x * 1
    first = y[0, 0].item()
    y.mul_(0)
    return x * 2 if first > 0 else x


@pytest.mark.parametrize(
    "model", [halved_in_a_loop, read_before_and_after, read_before_a_write_decides_later]
)
def test_a_number_is_what_the_tensor_held_when_it_was_read(model):
    x = torch.arange(1.0, 13).reshape(3, 4)
    program = sardonyx.export(model, (x,), capture="trace")
    assert_right(model, program, (x,))
    assert not program.model.graph.initializers
