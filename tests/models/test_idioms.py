"""What published models do and small examples do not, each as small as it gets."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn

import sardonyx
from tests.lower.ops.harness import check, compare


class _DoubleGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, shift):
        flat = x.view(x.shape[0] * 2, -1)
        return x * torch.tanh(x) * factor + shift, flat.sum(1) + x.shape[1]

    @staticmethod
    def backward(ctx, *grads):
        return grads[0], None, None


class _ClearsFirst(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[:, 0] = 5
        return y.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad


class _BakesItsSize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * int(x.shape[0])

    @staticmethod
    def backward(ctx, grad):
        return grad


class _WithAutogradFunctions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, total = _DoubleGelu.apply(self.linear(x), 2.0, self.linear.bias)
        second, _ = _DoubleGelu.apply(first, 3.0, x)
        return second, total, _ClearsFirst.apply(x)


def test_autograd_functions_are_exported_as_what_they_run() -> None:
    x, other = torch.randn(2, 4), torch.randn(5, 4)
    check(_WithAutogradFunctions(), x, dynamic={0: [0]}, others=[(other,)])


def test_a_size_baked_inside_an_autograd_function_is_refused() -> None:
    fixed = r"the model fixes it to 2\n.*return x \* int\(x\.shape\[0\]\)"
    with pytest.raises(sardonyx.DynamicDimError, match=fixed):
        sardonyx.export(
            lambda x: _BakesItsSize.apply(x),
            (torch.randn(2, 4),),
            capture="trace",
            dynamic_shapes=({0: "batch"},),
        )


@torch.jit.script
def _scaled(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * 2) + torch.tensor([1, 2, 3])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torch_tensor_in_a_scripted_function() -> None:
    check(
        lambda x: _scaled(x),
        torch.randn(2, 3),
        dynamic={0: [0]},
        others=[(torch.randn(4, 3),)],
        captures=["trace"],
    )


def test_a_number_written_where_lengths_point() -> None:
    def last_of_each(mask: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        ends = torch.zeros_like(mask)
        ends[(torch.arange(mask.shape[0]), lengths.to(torch.long) - 1)] = 1
        return ends.flip([-1]).cumsum(-1).flip([-1]).bool()

    check(
        last_of_each,
        torch.ones(2, 5, dtype=torch.int64),
        torch.tensor([2, 5]),
        dynamic={0: [0, 1], 1: [0]},
        others=[(torch.ones(3, 7, dtype=torch.int64), torch.tensor([1, 4, 7]))],
    )


@pytest.mark.parametrize("indexing", [None, "ij", "xy"])
@pytest.mark.filterwarnings("ignore:torch.meshgrid")
def test_grids_beside_writes(indexing: str | None) -> None:
    def boxes(x: torch.Tensor) -> torch.Tensor:
        y = x.sigmoid()
        rows, columns = torch.arange(x.shape[1]), torch.arange(x.shape[2])
        named = {} if indexing is None else {"indexing": indexing}
        vertical, horizontal = torch.meshgrid(rows, columns, **named)
        if indexing == "xy":
            vertical, horizontal = vertical.t(), horizontal.t()
        y[..., 0] += horizontal
        y[..., 1] += vertical
        return y

    check(
        boxes,
        torch.randn(2, 3, 4, 2),
        dynamic={0: [0, 1, 2]},
        others=[(torch.randn(1, 5, 6, 2),)],
    )


def test_a_region_without_autocast() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            y = x.float() @ x.float().t()
        return y + 1

    check(model, torch.randn(3, 4))


def test_dims_of_one_name_are_one_size_in_conditions() -> None:
    def model(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x + 1 if mask.shape[1] > x.shape[1] else x * mask

    sizes = {0: "batch", 1: "seq"}
    args = (torch.randn(2, 3), torch.randn(2, 3))
    program = sardonyx.export(model, args, capture="export", dynamic_shapes=(sizes, sizes))
    assert not [note for note in program.notes if "holds where" in note]


class _CachedAttention(nn.Module):
    """Pads the mask where it is too short, as language models do: a relation of three sizes."""

    def forward(self, x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        missing = past.shape[1] + x.shape[1] - mask.shape[1]
        if missing > 0:
            mask = nn.functional.pad(mask, (0, missing))
        return torch.cat([past, x], 1) * mask[:, : past.shape[1] + x.shape[1]]


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_branch_on_three_sizes_is_noted(capture: str) -> None:
    def args(batch: int, new: int, past: int, more: int = 0) -> tuple[torch.Tensor, ...]:
        total = new + past + more
        return torch.randn(batch, new), torch.randn(batch, past), torch.randn(batch, total)

    program = sardonyx.export(
        _CachedAttention(),
        args(2, 3, 5),
        capture=capture,
        dynamic_shapes=(
            {0: "batch", 1: "new"},
            {0: "batch", 1: "past"},
            {0: "batch", 1: "total"},
        ),
    )
    (note,) = program.notes
    assert "the recording holds where new + past - total <= 0: the model decides by it at" in note
    assert "test_idioms.py:" in note and "if missing > 0:" in note
    for other in (args(3, 4, 9), args(1, 1, 1), args(2, 3, 2, more=4)):
        compare(_CachedAttention()(*other), program(*other), "another sum")


class DynamicLayer:
    """Like the one of Transformers."""

    def __init__(self) -> None:
        self.keys = self.values = None
        self.is_initialized = False

    def update(self, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        held = self.is_initialized
        self.keys = torch.cat([self.keys, keys], 1) if held else keys
        self.values = torch.cat([self.values, values], 1) if held else values
        self.is_initialized = True
        return self.keys + self.values


class Cache:
    pass


class DynamicCache(Cache):
    def __init__(self, layers: int) -> None:
        self.layers = [DynamicLayer() for _ in range(layers)]


class EncoderDecoderCache(Cache):
    def __init__(self, own: DynamicCache, cross: DynamicCache) -> None:
        self.self_attention_cache, self.cross_attention_cache = own, cross


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library with the caches of Transformers, which is not among the test dependencies."""
    library = types.ModuleType("transformers.cache_utils")
    library.Cache = Cache
    monkeypatch.setitem(sys.modules, "transformers.cache_utils", library)


class _Decoder(nn.Module):
    def forward(self, x: torch.Tensor, past: DynamicCache) -> dict[str, object]:
        hidden = x
        for layer in past.layers:
            hidden = layer.update(hidden, hidden * 2)[:, -x.shape[1] :]
        cross = DynamicCache(1)
        cross.layers[0].update(x, x)
        return {"hidden": hidden, "past": EncoderDecoderCache(past, cross)}


def _filled(batch: int, length: int) -> DynamicCache:
    cache = DynamicCache(2)
    for layer in cache.layers:
        layer.update(torch.randn(batch, length, 3), torch.randn(batch, length, 3))
    return cache


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_key_value_caches_as_inputs_and_outputs(transformers: None, capture: str) -> None:
    held = {0: "batch", 1: "past"}
    example = _filled(2, 4)
    before = example.layers[0].keys
    program = sardonyx.export(
        _Decoder(),
        (torch.randn(2, 2, 3), example),
        capture=capture,
        dynamic_shapes=({0: "batch", 1: "new"}, [[held, held], [held, held]]),
    )
    assert example.layers[0].keys is before
    assert [v.name for v in program.model.graph.inputs] == [
        "x", "past.0.key", "past.0.value", "past.1.key", "past.1.value"
    ]  # fmt: skip
    x, cache = torch.randn(3, 5, 3), _filled(3, 6)
    actual = program(x, cache)
    expected = _Decoder()(x, cache)
    compare(expected["hidden"], actual["hidden"], capture)
    assert type(actual["past"]) is EncoderDecoderCache
    for name in ("self_attention_cache", "cross_attention_cache"):
        pairs = zip(
            getattr(expected["past"], name).layers,
            getattr(actual["past"], name).layers,
            strict=True,
        )
        for wanted, got in pairs:
            compare((wanted.keys, wanted.values), (got.keys, got.values), capture)
            assert got.is_initialized
