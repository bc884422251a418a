"""Models that catch refusals, share memory between buffers, or keep what they return."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.export import Dim

import sardonyx

CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])
X = torch.arange(1.0, 13).reshape(3, 4)
FEATURES: dict[str, torch.Tensor] = {}
KEPT: list[torch.Tensor] = []


class Hooked(nn.Module):
    """The pattern of feature extractors: a hook keeps what a layer gives."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)
        self.first.register_forward_hook(lambda m, args, out: FEATURES.__setitem__("first", out))

    def forward(self, x):
        return self.second(self.first(x)), FEATURES["first"]


def returns_what_it_keeps(x):
    y = x * 2
    KEPT.append(y)
    KEPT.append(x)
    return {"doubled": y, "given": x}


def by_backward(x):
    with torch.enable_grad():
        y = x.detach().clone().requires_grad_()
        (y**2).sum().backward()
        return y.grad


@CAPTURES
@pytest.mark.parametrize("model", [Hooked(), returns_what_it_keeps, by_backward])
def test_what_is_returned_and_kept_is_no_constant(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    for x in (X, X + 1, torch.randn(5, 4)):
        torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    assert {type(tensor) for tensor in (*KEPT, *FEATURES.values())} <= {torch.Tensor}
    KEPT.clear()


def catches(look):
    def model(x):
        try:
            return x + 1 if look(x) else x - 1
        except Exception:
            return x * 100

    return model


LOOKS = {
    "branch": lambda x: x.sum() > 0,
    "int": lambda x: int(x.sum()),
    "numpy": lambda x: x.numpy().sum() > 0,
    "range": lambda x: list(range(x[0, 0].long())),
    "assertion": lambda x: bool((x > 0).all()),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_refusal_that_the_model_catches_is_one_all_the_same(look):
    with pytest.raises(sardonyx.CaptureError):
        sardonyx.export(catches(look), (X,), capture="auto")
    program = sardonyx.export(catches(look), (X,), capture="trace")
    torch.testing.assert_close(program(X), catches(look)(X))


class SharedBuffers(nn.Module):
    def __init__(self, read):
        super().__init__()
        memory = torch.zeros(4)
        self.register_buffer("whole", memory)
        self.register_buffer("part", memory[1:3])
        self.read = read

    def forward(self, x):
        self.whole.copy_(x[0])
        return self.read(self, x)


READS = {
    "item": lambda m, x: x * m.part[0].item(),
    "branch": lambda m, x: x * 2 if m.part[0] > 0 else x,
    "list": lambda m, x: x * m.part.tolist()[0],
    "array": lambda m, x: x * float(m.part.numpy()[0]),
}


@CAPTURES
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_buffers_that_share_memory_are_right_or_refused(read, capture):
    model = SharedBuffers(read)
    try:
        program = sardonyx.export(model, (X,), capture=capture)
    except sardonyx.SardonyxError:
        return
    expected = SharedBuffers(read)(X)
    torch.testing.assert_close(program(X), expected)


CACHE: dict[str, torch.Tensor] = {}


def fills_a_cache_and_is_refused(x):
    CACHE.setdefault("table", torch.arange(4.0))
    return x * CACHE["table"] if x.sum() > 0 else x


def test_a_refused_export_leaves_no_fake_tensor():
    CACHE.clear()
    with pytest.raises(sardonyx.CaptureError):
        sardonyx.export(fills_a_cache_and_is_refused, (X,), capture="export")
    assert all(type(tensor) is torch.Tensor for tensor in CACHE.values())
    torch.testing.assert_close(fills_a_cache_and_is_refused(X), X * torch.arange(4.0))


def counts_in_branches(x):
    counted = torch.cond(
        x.sum() > 0,
        lambda a: a.nonzero().sum(),
        lambda a: (a < 0).nonzero().sum() + 1,
        (x,),
    )
    return counted, x.nonzero()


@CAPTURES
def test_sizes_that_data_decides_inside_and_outside_of_branches(capture):
    program = sardonyx.export(counts_in_branches, (X,), capture=capture)
    for x in (X, -X, X - 6):
        torch.testing.assert_close(program(x), counts_in_branches(x))


def number_of_a_written_tensor(x):
    y = x.clone()
    y.mul_(2)
    z = torch.ones(2) * y[0, 0].item()
    return x * 2 if z.sum() > 0 else x


def test_a_value_that_follows_from_a_number():
    program = sardonyx.export(number_of_a_written_tensor, (X,), capture="trace")
    torch.testing.assert_close(program(X), number_of_a_written_tensor(X))


def array_before_a_write(x):
    y = x.clone()
    array = y.numpy()
    y.add_(1)
    return x * float(array[0, 0])


class ArrayOfBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        array = self.count.numpy()
        self.count.add_(1)
        return x * float(array[0])


@CAPTURES
@pytest.mark.parametrize("kind", [lambda: array_before_a_write, ArrayOfBuffer])
def test_an_array_shows_the_writes_that_follow_or_is_refused(kind, capture):
    try:
        program = sardonyx.export(kind(), (X,), capture=capture)
    except sardonyx.CaptureError as error:
        assert "after its memory was given" in str(error)
    else:
        torch.testing.assert_close(program(X), kind()(X))


def swapped(x):
    left, right = x + 1, x * 2
    torch.utils.swap_tensors(left, right)
    return left - 3 * right


@CAPTURES
def test_swapped_tensors_are_refused(capture):
    with pytest.raises(sardonyx.CaptureError, match="swap_tensors"):
        sardonyx.export(swapped, (X,), capture=capture)


class Slots:
    __slots__ = ("size", "tensor")


class Plain:
    pass


SLOTS, PLAIN, TABLE, SEEN = Slots(), Plain(), {}, []


@functools.lru_cache
def doubled(n):
    return n * 2


def keeps_sizes(x):
    rows = x.shape[0]
    SLOTS.tensor, SLOTS.size = x * 2, rows
    PLAIN.tensor, PLAIN.size, PLAIN.sizes = x * 3, rows, [rows + 1, (rows, "rows")]
    TABLE["shape"] = x.shape
    SEEN.append(rows)
    return SLOTS.tensor + PLAIN.tensor + rows


def by_sizes(x):
    TABLE[x.shape[0]] = 1
    return x * doubled(x.shape[0])


@CAPTURES
def test_what_outlives_the_run_holds_tensors_and_numbers_of_eager(capture):
    program = sardonyx.export(keeps_sizes, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert {type(SLOTS.tensor), type(PLAIN.tensor)} == {torch.Tensor}
    assert type(SLOTS.size) is type(PLAIN.size) is int and PLAIN.sizes == [4, (3, "rows")]
    assert type(PLAIN.sizes[1][0]) is int and {*map(type, TABLE["shape"])} == {int}
    assert {*map(type, SEEN)} == {int}
    torch.testing.assert_close(SLOTS.tensor, X * 2)
    torch.testing.assert_close(program(torch.ones(5, 4)), keeps_sizes(torch.ones(5, 4)))
    TABLE.clear()


@CAPTURES
def test_a_refused_export_leaves_no_symbol_in_a_key(capture):
    with pytest.raises(sardonyx.DynamicDimError):
        sardonyx.export(by_sizes, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert {*map(type, TABLE)} == {int} and TABLE[3] == 1
    assert type(doubled(3)) is int
    TABLE.clear()


class Holder:
    size = 0
    last = None


def keeps_in_a_class(x):
    Holder.size, Holder.last = x.shape[0], x * 2
    return Holder.last + Holder.size


@CAPTURES
def test_attributes_of_classes_are_those_of_eager(capture):
    program = sardonyx.export(keeps_in_a_class, (X,), capture=capture, dynamic_axes={"x": [0]})
    assert Holder.size == 3 and type(Holder.size) is int
    torch.testing.assert_close(Holder.last, X * 2)
    torch.testing.assert_close(program(X[:2]), keeps_in_a_class(X[:2]))


@CAPTURES
def test_what_outlives_the_run_has_the_sizes_of_the_example(capture):
    def model(x):
        TABLE["previous"] = x * 2
        return x + 1

    sardonyx.export(model, (X[:1],), capture=capture, dynamic_axes={"x": [0]})
    torch.testing.assert_close(TABLE.pop("previous"), X[:1] * 2)


# -- an example of size 1, which is recorded with another one


def by_an_error(x):
    try:
        return x.view(4) * 2
    except RuntimeError:
        return x.view(-1) * 3


def by_a_value(x):
    return x * 2 if x.sum() > 5 else x * 3


def by_a_value_and_a_number(x, k: int):
    return x * 2 if x.sum() > 2 * k else x * 3


def times_a_value(x):
    return x * int(x.sum())


@pytest.mark.parametrize("model", [by_an_error, by_a_value, times_a_value])
def test_what_is_otherwise_at_the_example_is_refused(model):
    with pytest.raises(sardonyx.DynamicDimError, match=r"size 1 of 'n' specially[\s\S]*hostile"):
        sardonyx.export(model, (torch.ones(1, 4),), capture="trace", dynamic_axes={"x": {0: "n"}})


def test_a_branch_by_a_value_and_a_number_is_that_of_the_example():
    given = 0.6 * torch.ones(1, 4), 1
    program = sardonyx.export(by_a_value_and_a_number, given, capture="trace")
    torch.testing.assert_close(program(*given), by_a_value_and_a_number(*given))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@CAPTURES
def test_dims_that_follow_from_a_small_one_stay_dynamic(size, capture):
    dim = 2 * Dim("b") + size % 2
    shapes = {"x": {0: dim}}
    x = torch.randn(size, 4)
    program = sardonyx.export(lambda x: x * 3, (x,), capture=capture, dynamic_shapes=shapes)
    for given in (x, torch.randn(size + 4, 4)):
        torch.testing.assert_close(program(given), given * 3)


# -- sizes that are computed in many steps


def computed(n, steps=14):
    for _ in range(steps):
        n = n + n % 3
    return n


def in_branches(x):
    rows = x.shape[0]
    branch = torch.cond(x.sum() > 0, lambda x: x * computed(rows), lambda x: x - 1, (x,))
    return branch + computed(rows)


@CAPTURES
def test_large_sizes_inside_and_outside_of_branches(capture):
    program = sardonyx.export(in_branches, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    for x in (X, -X, torch.ones(5, 4), -torch.ones(2, 4)):
        torch.testing.assert_close(program(x), in_branches(x))


@CAPTURES
def test_a_branch_by_a_large_size_is_told(capture):
    def model(x, steps=9):
        return x * 2 if computed(x.shape[0], steps) > 20 else x

    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    (note,) = program.notes
    assert "the model decides by it" in note and len(note) < 500
    with pytest.raises(sardonyx.CaptureError, match="computed in too many steps"):
        sardonyx.export(lambda x: model(x, 14), (X,), capture=capture, dynamic_axes={"x": {0: "n"}})


def computes_with_a_size(x):
    return x.sum() + x.shape[0] * x.shape[0]


def looks_at_a_value(x):
    return x + complex(x[0, 0]).real


@pytest.mark.parametrize("model", [computes_with_a_size, looks_at_a_value])
def test_what_only_the_recording_holds_is_not_searched_for(model, monkeypatch):
    def searched(*_):
        raise AssertionError("a search of the whole heap, which takes a tenth of a second")

    monkeypatch.setattr("gc.get_referrers", searched)
    program = sardonyx.export(model, (X,), capture="trace", dynamic_axes={"x": [0]})
    torch.testing.assert_close(program(X), model(X))
