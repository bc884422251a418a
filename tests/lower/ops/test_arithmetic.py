"""Arithmetic against eager PyTorch: promotion, integer semantics, NaN, broadcasting, scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

NAN, INF = math.nan, math.inf
SHORT = torch.tensor([[1.5, -2.0, 0.0], [3.25, NAN, -0.5]])
OTHER = torch.tensor([[0.5, 2.0, -1.0], [NAN, 1.0, -0.75]])
INTS = torch.tensor([7, -7, 7, -7, 0, 1])
DIVISORS = torch.tensor([2, 2, -2, -2, 3, -1])
BYTES = torch.tensor([0, 1, 200, 255], dtype=torch.uint8)
TINY = torch.tensor([-128, -7, 3, 127], dtype=torch.int8)
MASK = torch.tensor([True, False, True, False])
HUGE = torch.tensor([2**62 + 1, -(2**62) - 5, -(2**62) - 5, 2**62 + 3])
EVERY_FLOAT = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 2.5, -2.5, 3e38])

CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("add", lambda x, y: x + y, (SHORT, OTHER)),
    ("add_alpha", lambda x, y: torch.add(x, y, alpha=2.5), (SHORT, OTHER)),
    ("add_int_alpha", lambda x, y: torch.add(x, y, alpha=-3), (INTS, DIVISORS)),
    ("add_scalar", lambda x: x + 2, (SHORT,)),
    ("add_float_to_int", lambda x: x + 0.5, (INTS,)),
    ("add_broadcast", lambda x, y: x + y, (SHORT, torch.tensor([1.0, 2.0, 3.0]))),
    ("add_mixed", lambda x, y: x + y, (INTS, torch.linspace(0, 1, 6))),
    ("add_bools", lambda x, y: x + y, (MASK, ~MASK)),
    ("add_wraps", lambda x: x + 100, (BYTES,)),
    ("add_wrapped_scalar", lambda x: x + 300, (BYTES,)),
    ("sub", lambda x, y: x - y, (SHORT, OTHER)),
    ("sub_alpha", lambda x, y: torch.sub(x, y, alpha=0.5), (SHORT, OTHER)),
    ("rsub", lambda x: 1 - x, (SHORT,)),
    ("rsub_alpha", lambda x, y: torch.rsub(x, y, alpha=3), (INTS, DIVISORS)),
    ("mul", lambda x, y: x * y, (SHORT, OTHER)),
    ("mul_bools", lambda x, y: x * y, (MASK, torch.tensor([True, True, False, False]))),
    ("mul_bool_scalar", lambda x: x * 3, (MASK,)),
    ("mul_zero_dim", lambda x, y: x * y, (INTS, torch.tensor(0.5))),
    ("div", lambda x, y: x / y, (SHORT, OTHER)),
    ("div_ints", lambda x, y: x / y, (INTS, DIVISORS)),
    ("div_scalar", lambda x: x / 3, (BYTES,)),
    ("div_trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), (INTS, DIVISORS)),
    ("div_floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), (INTS, DIVISORS)),
    ("div_trunc_float", lambda x: torch.div(x, 0.7, rounding_mode="trunc"), (SHORT,)),
    ("div_none", lambda x: torch.div(x, 0.7, rounding_mode=None), (SHORT,)),
    ("floor_divide", lambda x, y: x // y, (INTS, DIVISORS)),
    ("floor_divide_narrow", lambda x: x // 3, (TINY,)),
    ("floor_divide_bytes", lambda x: x // 7, (BYTES,)),
    ("floor_divide_float", lambda x, y: x // y, (
        torch.tensor([1.0, -1.0, 7.5, -7.5, 2.0, 0.3, INF, 5.0, -5.0]),
        torch.tensor([0.1, 0.1, 2.0, 2.0, -0.7, 0.1, 2.0, INF, INF]),
    )),
    ("floor_divide_by_zero", lambda x: x // 0.0, (SHORT,)),
    ("remainder", lambda x, y: x % y, (INTS, DIVISORS)),
    ("remainder_float", lambda x: x % -0.75, (SHORT,)),
    ("remainder_scalar_tensor", lambda x: torch.remainder(10, x), (DIVISORS,)),
    ("fmod", torch.fmod, (INTS, DIVISORS)),
    ("fmod_huge", torch.fmod, (HUGE, torch.tensor([7, 5, -7, 2]))),
    ("floor_divide_huge", torch.floor_divide, (HUGE, torch.tensor([7, 2**62 + 1, -7, 2]))),
    ("gcd", torch.gcd, (torch.tensor([12, -18, 0, 0, 2**40]), torch.tensor([8, 27, 5, 0, 6]))),
    ("gcd_bytes", torch.gcd, (BYTES, torch.tensor([4, 6, 75, 85], dtype=torch.uint8))),
    ("lcm", torch.lcm, (torch.tensor([4, -6, 0, 0, 7]), torch.tensor([6, 4, 5, 0, 7]))),
    ("fmod_float", lambda x: torch.fmod(x, 0.75), (SHORT,)),
    ("pow", lambda x, y: x**y, (SHORT.abs(), OTHER)),
    *((f"pow_{e}", lambda x, e=e: x**e, (SHORT,)) for e in (0, 1, 2, 3, -1, -2, 2.0)),
    *((f"pow_root_{e}", lambda x, e=e: x**e, (SHORT.abs(),)) for e in (0.5, -0.5, 1.7)),
    *((f"pow_ints_{e}", lambda x, e=e: x**e, (INTS,)) for e in (0, 1, 2, 3, 5, 31)),
    ("pow_exact", lambda x: x**39, (torch.tensor([3, -3, 5]),)),
    ("pow_bytes", lambda x: x**3, (BYTES,)),
    ("pow_int_tensors", lambda x, y: x**y, (INTS, torch.tensor([2, 3, 0, 1, 4, 9]))),
    ("pow_negative_tensors", lambda x, y: x**y, (
        torch.tensor([0, 1, -1, -1, 2, -3, 0]), torch.tensor([-1, -5, -2, -3, -1, -2, 0]),
    )),
    ("pow_narrow_tensors", lambda x: x**x, (torch.tensor([1, 2, 3], dtype=torch.int8),)),
    ("pow_scalar_base", lambda x: 2**x, (SHORT,)),
    ("pow_int_tensors_wrap", lambda x, y: x**y, (
        torch.tensor([2, 3, -3, 2, -1, 7]), torch.tensor([64, 63, 101, 63, 2**62 + 1, 0]))),
    ("pow_of_two", lambda x: 2**x, (torch.tensor([0, 1, 62, 63, 64]),)),
    ("pow_int_float", lambda x: x**1.5, (torch.tensor([1, 2, 3]),)),
    ("float_power", lambda x: torch.float_power(x, 2), (INTS,)),
    ("neg", torch.neg, (SHORT,)),
    ("neg_bytes", torch.neg, (BYTES,)),
    ("abs", torch.abs, (SHORT,)),
    ("abs_ints", torch.abs, (INTS,)),
    ("abs_bytes", torch.abs, (BYTES,)),
    ("square", torch.square, (SHORT,)),
    ("square_ints", torch.square, (INTS,)),
    ("reciprocal", torch.reciprocal, (SHORT,)),
    ("reciprocal_ints", torch.reciprocal, (DIVISORS,)),
    ("addcmul", lambda x, y: torch.addcmul(x, x, y, value=0.5), (SHORT, OTHER)),
    ("addcmul_ints", lambda x, y: torch.addcmul(x, x, y, value=3), (INTS, DIVISORS)),
    ("addcdiv", lambda x, y: torch.addcdiv(x, x, y, value=-2), (SHORT, OTHER)),
    ("lerp", lambda x, y: torch.lerp(x, y, 0.3), (SHORT, OTHER)),
    ("lerp_far", lambda x, y: torch.lerp(x, y, 0.8), (EVERY_FLOAT, EVERY_FLOAT.flip(0))),
    ("lerp_tensor", lambda x, y: torch.lerp(x, y, y), (SHORT, OTHER)),
    ("maximum", torch.maximum, (SHORT, OTHER)),
    ("minimum", torch.minimum, (SHORT, OTHER)),
    ("maximum_ints", torch.maximum, (INTS, DIVISORS)),
    ("maximum_bools", torch.maximum, (MASK, ~MASK)),
    ("minimum_bools", torch.minimum, (MASK, ~MASK)),
    ("maximum_mixed", torch.maximum, (INTS, torch.linspace(-1, 3, 6))),
    ("minimum_short", torch.minimum, (INTS.short(), DIVISORS.short())),
    ("fmax", torch.fmax, (SHORT, OTHER)),
    ("fmin", torch.fmin, (SHORT, OTHER)),
    ("clamp", lambda x: x.clamp(-1, 1), (SHORT,)),
    ("clamp_low", lambda x: x.clamp(min=0.25), (SHORT,)),
    ("clamp_high", lambda x: x.clamp(max=0.25), (SHORT,)),
    ("clamp_crossed", lambda x: x.clamp(2, -2), (SHORT,)),
    ("clamp_nan", lambda x: x.clamp(min=NAN), (SHORT,)),
    ("clamp_int_by_float", lambda x: x.clamp(-0.5, 2.5), (INTS,)),
    ("clamp_ints", lambda x: x.clamp(-1, 3), (INTS,)),
    ("clamp_tensor", lambda x, y: x.clamp(min=y), (SHORT, OTHER)),
    ("clamp_tensors", lambda x, y: torch.clamp(x, y, y + 1), (SHORT, OTHER)),
    ("clamp_broadcast", lambda x, y: torch.clip(x, max=y), (SHORT, torch.tensor([0.0, 1, 2]))),
    ("clamp_infinite", lambda x: (x.clamp(min=-1), x.clamp(max=1)), (EVERY_FLOAT,)),
    ("clamp_min", lambda x: torch.clamp_min(x, 0.5), (SHORT,)),
    ("clamp_max_tensor", torch.clamp_max, (SHORT, OTHER)),
    ("where", torch.where, (SHORT > 0, SHORT, OTHER)),
    ("where_scalar", lambda c, x: torch.where(c, x, 2.5), (SHORT > 0, SHORT)),
    ("where_self_scalar", lambda c, x: torch.where(c, 1, x), (INTS > 0, INTS)),
    ("where_scalars", lambda c: torch.where(c, 1.0, 0.0), (SHORT > 0,)),
    ("where_mixed", torch.where, (INTS > 0, INTS, torch.linspace(0, 1, 6))),
    ("where_bools", torch.where, (MASK, ~MASK, MASK)),
    ("where_short", lambda c, x: torch.where(c, x, -x), (INTS > 0, INTS.short())),
    ("where_broadcast", torch.where, (SHORT > 0, torch.tensor(1.0), torch.ones(4, 1, 3))),
    ("hypot_nan", torch.hypot, (torch.tensor([NAN, INF, NAN]), torch.tensor([-INF, NAN, 1.0]))),
    ("hypot", torch.hypot, (SHORT, OTHER)),
    ("hypot_extreme", torch.hypot, (
        torch.tensor([3e30, 0.0, INF, 1e-30, INF]), torch.tensor([4e30, 0.0, 1.0, 1e-30, -INF]),
    )),
    ("copysign", torch.copysign, (SHORT, torch.tensor([[-0.0, 0.0, -1.0], [1.0, 2.0, -INF]]))),
    ("copysign_scalar", lambda x: torch.copysign(x, -0.0), (INTS,)),
    ("heaviside", torch.heaviside, (SHORT, OTHER)),
    ("heaviside_ints", torch.heaviside, (INTS, DIVISORS)),
    ("heaviside_bools", torch.heaviside, (MASK, torch.tensor([True, True, False, False]))),
    ("sign", torch.sign, (SHORT,)),
    ("sgn_ints", torch.sgn, (INTS,)),
    ("sign_bools", torch.sign, (MASK,)),
    ("signbit", torch.signbit, (torch.tensor([0.0, -0.0, -1.0, 2.0, -INF, INF]),)),
    ("signbit_ints", torch.signbit, (INTS,)),
    ("nan_to_num", torch.nan_to_num, (torch.tensor([NAN, INF, -INF, 1.0]),)),
    ("nan_to_num_given", lambda x: torch.nan_to_num(x, 1.5, 9.0, -9.0), (
        torch.tensor([NAN, INF, -INF, 1.0]),
    )),
    ("nan_to_num_ints", torch.nan_to_num, (INTS,)),
    ("ldexp", torch.ldexp, (SHORT, torch.tensor([1, -2, 3]))),
    ("size_zero", lambda x, y: x * 2 + y, (torch.ones(0, 3), torch.ones(3))),
    ("rank_zero", lambda x, y: (x + y) / 2, (torch.tensor(1.5), torch.tensor(2))),
]  # fmt: skip


@pytest.mark.parametrize("function, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_agrees_with_eager(function: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> None:
    check(function, *args)


BY_DTYPE: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, x / y),
    "bounds": lambda x, y: (torch.maximum(x, y), x.clamp(1, 2), torch.where(x > y, x, y)),
    "remainders": lambda x, y: (x % y, torch.fmod(x, y), x // y),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("name", BY_DTYPE)
def test_dtypes(name: str, dtype: torch.dtype) -> None:
    x, y = torch.tensor([1, 2, 3, 4, 5, 9]).to(dtype), torch.tensor([3, 2, 1, 2, 7, 4]).to(dtype)
    check(BY_DTYPE[name], x, y)


def test_symbolic_sizes_as_operands() -> None:
    def scaled_by_size(x: torch.Tensor) -> torch.Tensor:
        return (x * x.shape[0] + x.shape[1]) / x.shape[1] ** 0.5 - (x.shape[0] - 2) // 3

    others = [(torch.randn(5, 7),), (torch.randn(1, 2),)]
    check(scaled_by_size, torch.randn(4, 3), dynamic={0: [0, 1]}, others=others)


def test_dynamic_broadcast() -> None:
    others = [(torch.randn(5, 1, 3), torch.randn(6, 3))]
    check(
        lambda x, y: torch.where(x > y, x, y) * 2,
        torch.randn(2, 1, 3),
        torch.randn(4, 3),
        dynamic={0: [0], 1: [0]},
        others=others,
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_one_divided_by_integers_and_multiplied(dtype: torch.dtype) -> None:
    """ONNX Runtime would take (1 / y) * z for z / y."""
    y = torch.tensor([5, 1, -1, 2, 127, -128, 7]).to(dtype)
    check(lambda y: torch.fmod(torch.tensor(1, dtype=y.dtype), y), y)
    check(lambda y: torch.div(1, y, rounding_mode="trunc") * (y + 3), y)
    check(lambda y: torch.div(1, y, rounding_mode="floor") * (y + 3), y)
    check(lambda y: (1 // y) * (y + 3), y)
