"""Compares what ONNX Runtime computed with what PyTorch computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class Tolerance:
    """`|onnx - torch| <= atol + rtol * max(|torch|, the output's typical magnitude)`."""

    rtol: float
    atol: float


EXACT = Tolerance(0.0, 0.0)
_ROUNDED_UP = 1.001
"""Of a step, whose ends are rounded themselves."""

# Room for the rounding of a deep model computed in another order, a few hundred units in the last
# place; the float8 types get one step of their grid.
DEFAULT_TOLERANCES: dict[torch.dtype, Tolerance] = {
    torch.float64: Tolerance(1e-7, 1e-9),
    torch.float32: Tolerance(1e-4, 1e-6),
    torch.float16: Tolerance(1e-2, 1e-3),
    torch.bfloat16: Tolerance(5e-2, 1e-2),
    torch.float8_e4m3fn: Tolerance(0.13, 0.01),
    torch.float8_e4m3fnuz: Tolerance(0.13, 0.01),
    torch.float8_e5m2: Tolerance(0.26, 0.01),
    torch.float8_e5m2fnuz: Tolerance(0.26, 0.01),
    torch.complex128: Tolerance(1e-7, 1e-9),
    torch.complex64: Tolerance(1e-4, 1e-6),
}


@dataclass(frozen=True)
class OutputComparison:
    """How one output compares. `max_rel` is measured against the larger of the element and the
    output's typical magnitude, as the tolerance is; `problem` is None where they agree."""

    name: str
    path: str
    max_abs: float
    max_rel: float
    dtype: torch.dtype
    shape: tuple[int, ...]
    problem: str | None = None
    differing: int = 0
    """How many elements are too far apart, where that is the problem."""


def compare_output(
    name: str,
    path: str,
    expected: torch.Tensor,
    actual: torch.Tensor,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    step: float = 0.0,
) -> OutputComparison:
    """Compare one output of PyTorch (`expected`) with ONNX Runtime's (`actual`). `step`: values of
    a quantized model lie that far apart, and one halfway between two may be rounded to either."""
    shape = tuple(expected.shape)
    mismatched = OutputComparison(name, path, math.inf, math.inf, expected.dtype, shape)
    if expected.device.type == "meta":
        return replace(mismatched, problem="PyTorch's is on the meta device, without values")
    expected = expected.detach().cpu()
    actual = actual.detach().cpu()
    if (problem := form_problem(expected, actual)) is not None:
        return replace(mismatched, problem=problem)
    tolerance = _tolerance(expected, rtol, atol)
    if step and atol is None:
        tolerance = replace(tolerance, atol=max(tolerance.atol, _ROUNDED_UP * step))
    want, got = _as_float64(expected), _as_float64(actual)
    if not torch.equal(want.isnan(), got.isnan()):
        problem = f"{_count(got.isnan())} NaN, PyTorch gives {_count(want.isnan())}"
        if _count(got.isnan()) == _count(want.isnan()):
            problem = "NaN at other places than PyTorch"
        return replace(mismatched, problem=problem)
    infinite = want.isinf() | got.isinf()
    if not torch.equal(want[infinite], got[infinite]):
        return replace(mismatched, problem="infinities at other places than PyTorch")

    finite = want.isfinite()
    want, got = want[finite], got[finite]
    difference = (got - want).abs()
    magnitude = want.abs().clamp_min(typical_magnitude(want))
    max_abs = _largest(difference)
    max_rel = _largest(torch.where(difference == 0, 0.0, difference / magnitude))
    comparison = OutputComparison(name, path, max_abs, max_rel, expected.dtype, shape)
    # Integers beyond 2**53 can only be compared in their own type.
    if tolerance is EXACT:
        wrong = int((_bits(expected) != _bits(actual)).sum())
    else:
        wrong = _count(difference > tolerance.atol + tolerance.rtol * magnitude)
    if wrong:
        total = expected.numel()
        problem = f"{wrong} of {total} {'element differs' if total == 1 else 'elements differ'}"
        return replace(comparison, problem=problem, differing=wrong)
    return comparison


def form_problem(expected: torch.Tensor, actual: torch.Tensor) -> str | None:
    """How dtype or shape differ; None where they are the same."""
    if actual.dtype != expected.dtype:
        return f"dtype {_name(actual.dtype)}, PyTorch gives {_name(expected.dtype)}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, PyTorch gives {list(expected.shape)}"
    return None


def typical_magnitude(values: torch.Tensor) -> float:
    """The lower median of the finite magnitudes other than zero.

    Unlike the maximum it is not drowned by a mask's -1e9, under which any error would pass.
    """
    magnitudes = values.abs()
    magnitudes = magnitudes[magnitudes.isfinite() & (magnitudes > 0)]
    return float(magnitudes.median()) if magnitudes.numel() else 0.0


def _tolerance(expected: torch.Tensor, rtol: float | None, atol: float | None) -> Tolerance:
    default = DEFAULT_TOLERANCES.get(expected.dtype)
    if default is None:
        return EXACT
    if atol is None:
        # An output whose values are all tiny must still be right: atol may not excuse all of it.
        largest = _largest(_as_float64(expected).abs().nan_to_num(0.0, 0.0, 0.0))
        atol = min(default.atol, 0.01 * largest) if largest > 0 else default.atol
    return Tolerance(default.rtol if rtol is None else rtol, atol)


def _as_float64(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float64)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    # Unsigned integers have few kernels in PyTorch; equality of bits is equality.
    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(signed[tensor.element_size()])


def _largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _count(mask: torch.Tensor) -> int:
    return int(mask.sum())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
