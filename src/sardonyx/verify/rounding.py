"""Whether two results are apart by rounding alone: both against the model run in float64."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from sardonyx.aten.pytree import map_leaves
from sardonyx.verify.eager import EagerModel, EagerRun

_MOST_BYTES = 2**31
"""Of weights that are copied in float64."""
_OF_RMS, _OF_LARGEST = 2.0, 4.0
"""How much further than PyTorch's own result the file's may be from float64's."""
_OF_VALUES = 0.01
"""Of the values: further apart, the model computes something else in float64."""


@dataclass(frozen=True)
class RoundingErrors:
    """How far PyTorch's result and the file's are from the model in float64."""

    torch_largest: float
    file_largest: float
    torch_rms: float
    file_rms: float
    values_rms: float

    @property
    def are_alike(self) -> bool:
        return (
            self.torch_rms <= _OF_VALUES * self.values_rms
            and self.file_rms <= _OF_RMS * self.torch_rms
            and self.file_largest <= _OF_LARGEST * self.torch_largest
        )

    def __str__(self) -> str:
        return (
            f"from the model in float64, PyTorch is {self.torch_largest:.3g} away,"
            f" the file {self.file_largest:.3g}"
        )


def rounding_errors(
    reference: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor
) -> RoundingErrors | None:
    """None where the model in float64 gives no values to compare with."""
    if not expected.is_floating_point() or reference.shape != expected.shape:
        return None
    exact = reference.double().cpu()
    errors = [(result.double().cpu() - exact).abs() for result in (expected, actual)]
    finite = errors[0].isfinite()
    if not finite.any() or not finite.equal(errors[1].isfinite()):
        return None
    largest = [float(error[finite].max()) for error in errors]
    rms = [float(each[finite].square().mean().sqrt()) for each in (*errors, exact)]
    return RoundingErrors(*largest, *rms)


def run_in_float64(
    eager: EagerModel, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> EagerRun | None:
    """A copy of the model on the same inputs; None for what is no module, is too large to be
    copied, or computes in fixed dtypes."""
    module = eager.model
    if not isinstance(module, torch.nn.Module):
        return None
    if sum(p.numel() * p.element_size() for p in module.parameters()) > _MOST_BYTES:
        return None
    try:
        exact = replace(eager, model=copy.deepcopy(module).double())
        return exact.run(*map_leaves(_as_float64, (args, dict(kwargs))))
    except Exception:
        return None


def _as_float64(leaf: Any) -> Any:
    is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    return leaf.double() if is_float else leaf
