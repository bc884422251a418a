"""Regions of torch.export that change how operators run, or only mark them: autocast, torch.vmap,
gradient modes, checkpoints, flex attention."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.out_dtype import out_dtype
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint

import sardonyx
from tests.lower.ops.harness import check, compare


def X(*sizes):
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes)


# -- autocast ------------------------------------------------------------------------------------


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.norm = nn.LayerNorm(6)
        self.convolution = nn.Conv1d(6, 6, 3, padding=1)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            z = self.norm(y)
            w = self.convolution(z.transpose(-1, -2))
            return y, F.gelu(z), w.softmax(-1), w + x.mT.sum()


def autocast_products(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.mT
        return (
            y,
            torch.einsum("bij,bkj->bik", x, x),
            torch.bmm(x, x.mT),
            y + 1,
            x[..., :2] + y,
            x * 2.5,
        )


def autocast_float16(x):
    with torch.autocast("cpu", dtype=torch.float16):
        return x @ x.mT


def autocast_attention(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.scaled_dot_product_attention(x[None], x[None], x[None])


def autocast_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.mT
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ x
        w = z @ x.mT
    return y, z, w, w.float() @ x


def autocast_branches(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.cond(
            x.sum() > 0,
            lambda x: x @ x.transpose(1, 2),
            lambda x: (x + 1) @ x.transpose(1, 2),
            (x,),
        )


def autocast_around_data_dependent_sizes(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = x[x[:, 0, 0] > 0]
        return rows @ rows.mT, rows.shape[0]


class AutocastWrites(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x.clone()
            y[..., 0] = 3
            y.mul_(2)
            self.seen.fill_(1)
            return (y @ y.mT) * 2 + self.seen.sum()


def autocast_cuts(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x[:3] @ x[:3].mT
        return y.reshape(y.shape[0], -1), torch.cat([x[:2], x[-2:]]).reshape(-1, 4)


def autocast_disabled(x):
    with torch.autocast("cpu", enabled=False):
        return x @ x.mT


@torch.autocast("cpu", dtype=torch.bfloat16)
def autocast_decorator(x):
    return x @ x.mT


BATCHES = (X(3, 2, 4), X(1, 2, 4), X(6, 2, 4), -X(4, 2, 4).abs())
AUTOCAST = [
    Layers(),
    autocast_products,
    autocast_float16,
    autocast_attention,
    autocast_nested,
    autocast_branches,
    autocast_around_data_dependent_sizes,
    AutocastWrites(),
    autocast_cuts,
    autocast_disabled,
    autocast_decorator,
]


def _name(model):
    return getattr(model, "__name__", type(model).__name__)


@pytest.mark.parametrize("model", AUTOCAST, ids=_name)
def test_autocast_casts_as_in_eager(model):
    first, *others = [(batch,) for batch in BATCHES]
    # Below 17, ONNX Runtime makes a LayerNormalization of its parts, and has none of bfloat16.
    check(model, *first, dynamic={0: [0]}, others=others, captures=("export",), opsets=(26, 20, 17))


# -- torch.vmap ----------------------------------------------------------------------------------


class MappedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.vmap(lambda row: self.linear(row).softmax(-1) + F.gelu(row))(x)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 5))
        self.bias = nn.Parameter(torch.randn(3, 5))

    def forward(self, x):
        return torch.vmap(lambda w, b: x @ w + b)(self.weight, self.bias)


def mapped_twice(x):
    return torch.vmap(lambda a: torch.vmap(lambda b: (a * b).sum())(x))(x)


def mapped_columns(x):
    return torch.vmap(lambda r: (r.cumsum(0), r.sum(0)), in_dims=1)(x)


def mapped_writes(x):
    def f(row):
        y = row.clone()
        y[0] = 5
        return y * 2

    return torch.vmap(f)(x)


def mapped_mask(x):
    n = x.shape[0]
    rows = torch.arange(n)
    return torch.vmap(torch.vmap(lambda i, j: i >= j, (None, 0)), (0, None))(rows, rows)


def mapped_index(x):
    return torch.vmap(lambda r, i: r[i], in_dims=(0, 0))(x, x.argmax(-1))


def mapped_and_not(x):
    y = torch.vmap(torch.dot)(x, x)
    return F.scaled_dot_product_attention(x[None], x[None], x[None]) * y.sum()


ROWS = (X(3, 4), X(2, 4), X(7, 4), -X(5, 4))


@pytest.mark.parametrize(
    "model",
    [
        MappedLayer(),
        Ensemble(),
        mapped_twice,
        mapped_columns,
        mapped_writes,
        mapped_mask,
        mapped_index,
        mapped_and_not,
    ],
    ids=_name,
)
def test_vmap(model):
    first, *others = ROWS
    check(model, first, dynamic={0: [0]}, others=[(o,) for o in others], captures=("export",))


# -- flex attention ------------------------------------------------------------------------------


class RelativeBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(2))
        self.table = nn.Parameter(torch.randn(2, 16))

    def forward(self, q):
        def score(score, batch, head, i, j):
            return score + self.bias[head] * (i - j) + self.table[head][(i - j).abs()]

        return flex_attention(q, q, q, score_mod=score)


def plain_flex(q):
    return flex_attention(q, q, q)


def soft_cap(q):
    return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: 2 * torch.tanh(s / 2))


def scaled_flex(q):
    return flex_attention(q, q, q * 2, scale=0.3)


def flex_with_lse(q):
    return flex_attention(q, q, q, return_lse=True)


def fewer_key_heads(q):
    return flex_attention(q, q[:, :1], q[:, :1], enable_gqa=True)


def causal_flex(q):
    return flex_attention(
        q,
        q,
        q,
        score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")),
    )


@pytest.mark.parametrize(
    "model",
    [
        plain_flex,
        RelativeBias(),
        soft_cap,
        scaled_flex,
        flex_with_lse,
        fewer_key_heads,
        causal_flex,
    ],
    ids=_name,
)
def test_flex_attention(model):
    first, *others = X(1, 2, 5, 8), X(3, 2, 7, 8), X(2, 2, 3, 8)
    check(
        model,
        first,
        dynamic={0: [0, 2]},
        others=[(o,) for o in others],
        captures=("export",),
    )


def test_flex_attention_of_three_tensors():
    def model(q, k, v):
        def score(score, batch, head, i, j):
            return torch.where(i >= j, score - (i - j) * 0.1 * (head + 1), -float("inf"))

        return flex_attention(q, k, v, score_mod=score)

    def given(length):
        return tuple(X(1, 2, length, 8) for _ in range(3))

    program = sardonyx.export(
        model, given(3), dynamic_axes={name: {2: "length"} for name in "qkv"}, capture="export"
    )
    for length in (3, 1, 2, 7):
        inputs = given(length)
        torch.testing.assert_close(program(*inputs), model(*inputs))


def test_flex_attention_under_block_masks():
    outside = create_block_mask(lambda b, h, i, j: i >= j, None, None, 5, 5, device="cpu")

    def model(q, lengths):
        inside = create_block_mask(
            lambda b, h, i, j: (j < lengths[b]) & ((i - j).abs() < 3), 2, None, 5, 5, device="cpu"
        )
        return (
            flex_attention(q, q, q, block_mask=outside),
            flex_attention(q, q, q, block_mask=inside),
        )

    check(
        model,
        X(2, 2, 5, 8),
        torch.tensor([3, 5]),
        others=[(X(2, 2, 5, 8) * 3, torch.tensor([1, 2])), (-X(2, 2, 5, 8), torch.tensor([0, 4]))],
        captures=("export",),
    )


# -- regions that only mark their body -------------------------------------------------------------


class GradientModes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
            with torch.enable_grad():
                z = y * 2
        with torch.inference_mode():
            w = x + 1
        with torch.set_grad_enabled(False):
            rows = x[x[:, 0] > 0]
        return z + w, rows.sum(), rows


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x):
        x = checkpoint(self.block, x, use_reentrant=False)
        return checkpoint(lambda x: x[x[:, 0] > 0].sum(0), x, use_reentrant=False)


@torch.compiler.nested_compile_region
def shared_region(x, y):
    return x.sin() + y


def regions_used_twice(x):
    return shared_region(x, x * 2) + shared_region(x + 1, x)


def hinted(x):
    return hints_wrapper(lambda x, y: x @ y.T, (x, x + 1), {}, hints={"level": 1})


def wide_product(x):
    y = (x * 10).to(torch.int8)
    return out_dtype(torch.ops.aten.mm.default, torch.int32, y, y.T)


def printing(x):
    torch._higher_order_ops.print("sum {}", x.sum())
    return x * 2


@pytest.mark.parametrize(
    "model",
    [GradientModes(), Checkpointed(), regions_used_twice, hinted, wide_product, printing],
    ids=_name,
)
def test_marked_regions(model):
    first, *others = ROWS
    check(model, first, dynamic={0: [0]}, others=[(o,) for o in others], captures=("export",))


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


@torch.compiler.nested_compile_region
def positive(x):
    return x[x > 0] * 2


def region_with_sizes_of_its_own(x):
    y, z = positive(x), positive(-x)
    return y.sum(), z.shape[0], torch.cat([y, z]), torch.ones(y.shape[0])


@pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])
@pytest.mark.parametrize(
    "model",
    [
        GradientModes(),
        regions_used_twice,
        region_with_sizes_of_its_own,
        hinted,
        wide_product,
        branches,
        Layers(),
        mapped_twice,
    ],
    ids=_name,
)
def test_programs_of_the_caller(model, strict):
    module = model if isinstance(model, nn.Module) else Of(model)
    first, *others = ROWS
    if isinstance(model, Layers):
        first, *others = BATCHES
    rows = torch.export.Dim("rows", min=1)
    exported = torch.export.export(
        module.eval(), (first,), dynamic_shapes=({0: rows},), strict=strict
    )
    with warnings.catch_warnings(action="ignore"):
        decomposed = exported.run_decompositions({})
    for given in (exported, decomposed):
        program = sardonyx.export(given)
        for x in (first, *others):
            with torch.no_grad():
                compare(module(x), program(x), f"{_name(model)} {tuple(x.shape)}")
