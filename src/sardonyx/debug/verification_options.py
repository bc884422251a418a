"""How closely the search for differences compares, in the words of earlier exporters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.debug.backends import OnnxBackend
from sardonyx.errors import InvalidOptionError
from sardonyx.verify.compare import DEFAULT_TOLERANCES, compare_output, form_problem


@dataclass
class VerificationOptions:
    """How `find_mismatch` compares."""

    flatten: bool = True
    """Accepted; inputs of a file are tensors, and nested ones always taken apart."""
    ignore_none: bool = True
    """Accepted; None is no output of a file."""
    check_shape: bool = True
    """False compares what can be broadcast."""
    check_dtype: bool = True
    """False compares in the dtype of PyTorch's value."""
    backend: OnnxBackend = OnnxBackend.ONNX_RUNTIME_CPU
    """What runs the ONNX model."""
    rtol: float = 1e-3
    """The relative error that is accepted; below float32 at least what suits the dtype."""
    atol: float = 1e-7
    """The absolute error that is accepted; below float32 at least what suits the dtype."""
    remained_onnx_input_idx: Sequence[int] | None = None
    """Accepted; inputs that nothing reads stay inputs of the file."""
    acceptable_error_percentage: float | None = None
    """The share of the elements, from 0.0 to 1.0, that may differ by more."""

    def __post_init__(self) -> None:
        if not isinstance(self.backend, OnnxBackend):
            raise InvalidOptionError(f"backend={self.backend!r} is none: give an OnnxBackend")
        for name in ("rtol", "atol"):
            if not getattr(self, name) >= 0:
                raise InvalidOptionError(f"{name} must not be negative: {getattr(self, name)!r}")
        share = self.acceptable_error_percentage
        if share is not None and not 0.0 <= share <= 1.0:
            raise InvalidOptionError(
                f"acceptable_error_percentage={share!r} is not between 0.0 and 1.0"
            )


def differences(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    options: VerificationOptions,
    random: Collection[str] = (),
) -> list[str]:
    """A message for each output that differs; of `random` ones dtype and shape are compared."""
    found: list[str] = []
    for name, want in expected.items():
        got = actual[name]
        if not isinstance(want, list):
            found += _difference(name, want, got, options, name in random)
        elif not isinstance(got, list) or len(got) != len(want):
            given = f"{len(got)} items" if isinstance(got, list) else "a tensor"
            found.append(f"{name}: {given}, PyTorch gives {len(want)} items")
        else:
            for index, items in enumerate(zip(want, got, strict=True)):
                found += _difference(f"{name}[{index}]", *items, options, name in random)
    return found


def _difference(
    name: str,
    want: torch.Tensor,
    got: torch.Tensor,
    options: VerificationOptions,
    is_random: bool,
) -> list[str]:
    want, got = want.detach().cpu(), got.detach().cpu()
    if want.is_complex() and not got.is_complex():
        got = torch.view_as_complex(got.contiguous())
    if not options.check_dtype:
        got = got.to(want.dtype)
    if not options.check_shape and want.shape != got.shape:
        try:
            want, got = torch.broadcast_tensors(want, got)  # type: ignore[no-untyped-call]
        except RuntimeError:
            return [f"{name}: {form_problem(want, got)}"]
    if is_random and form_problem(want, got) is None:
        return []
    rtol, atol = options.rtol, options.atol
    if (own := DEFAULT_TOLERANCES.get(want.dtype)) is not None and want.element_size() < 4:
        rtol, atol = max(rtol, own.rtol), max(atol, own.atol)
    compared = compare_output(name, "", want, got, rtol=rtol, atol=atol)
    if compared.problem is None:
        return []
    share = options.acceptable_error_percentage
    if share is not None and 0 < compared.differing <= share * want.numel():
        return []
    by = f", by up to {compared.max_abs:.3g}" if compared.differing else ""
    return [f"{name}: {compared.problem}{by}"]
