"""Conversions of dtype, copies and overwriting, against eager PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import CAPTURES, check

X = torch.tensor([[-1.7, -0.5, 0.0], [0.5, 2.9, 200.0]])
DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
]


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_every_pair_of_dtypes(source: torch.dtype) -> None:
    values = torch.tensor([0.0, 1.0, 2.5, 100.0]).to(source)
    if source.is_signed:
        values = torch.cat([values, -values])
    check(lambda x: tuple(x.to(dtype) for dtype in DTYPES if dtype != source), values)


CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("float_to_int_truncates", lambda x: (x.int(), x.long(), x.to(torch.int16)), (X,)),
    ("float_to_byte_wraps", lambda x: x.to(torch.uint8), (torch.tensor([-1.5, 255.0, 300.7]),)),
    ("int_to_byte_wraps", lambda x: x.to(torch.uint8), (torch.tensor([-1, 300, 256]),)),
    ("to_bool", lambda x: x.bool(), (torch.tensor([0.0, -0.0, 0.1, math.nan]),)),
    ("to_bool_half", lambda x: x.bool(), (torch.tensor([0.0, 1e-7, 2.0]).half(),)),
    ("to_other", lambda x, y: (x.to(y), x.type_as(y)), (X, torch.tensor([1]))),
    ("to_device", lambda x: x.to("cpu") + x.to("cpu", torch.float64), (X,)),
    ("to_copy", lambda x: x.to(torch.float32, copy=True) * 2, (X,)),
    ("clone", lambda x: (x.clone(), x.contiguous(), x.detach()), (X,)),
    ("output_is_input", lambda x: x, (X,)),
    ("positive", lambda x: +x, (X,)),
    ("copy", lambda x, y: torch.ops.aten.copy(x, y), (X, torch.tensor([1, 2, 3]))),
    ("copy_in_place", lambda x, y: x.clone().copy_(y), (X, torch.tensor(7))),
    ("fill", lambda x: torch.ops.aten.fill(x, 2.5), (X,)),
    ("fill_tensor", lambda x, y: torch.ops.aten.fill(x, y), (X, torch.tensor(3))),
    ("fill_ints", lambda x: x.clone().fill_(2.9), (torch.arange(3),)),
    ("zero", lambda x: torch.ops.aten.zero(x), (X,)),
    ("real", lambda x: (torch.real(x), torch.conj(x)), (X,)),
]


NOT_FOR_THE_TRACER = {"fill", "fill_tensor", "zero"}
"""torch.jit.trace itself fails on these."""


@pytest.mark.parametrize("name, function, args", CASES, ids=[c[0] for c in CASES])
def test_agrees_with_eager(
    name: str, function: Callable[..., Any], args: tuple[torch.Tensor, ...]
) -> None:
    check(function, *args, captures=("export",) if name in NOT_FOR_THE_TRACER else CAPTURES)


def test_dynamic_sizes() -> None:
    check(
        lambda x, y: (x.half(), torch.ops.aten.copy(x, y), x.clone().fill_(4)),
        torch.randn(2, 3),
        torch.arange(3),
        dynamic={0: [0]},
        others=[(torch.randn(5, 3), torch.arange(3))],
    )
