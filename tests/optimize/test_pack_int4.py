"""Weights of four bits become INT4, and only where that is the same and smaller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import sardonyx


class Dequantized(torch.nn.Module):
    def __init__(
        self, integers: torch.Tensor, scale: torch.Tensor, formula: Callable[..., Any]
    ) -> None:
        super().__init__()
        self.register_buffer("integers", integers)
        self.register_buffer("scale", scale)
        self._formula = formula

    def forward(self, x: torch.Tensor) -> Any:
        return self._formula(x, self.integers, self.scale)


def by_blocks(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ ((q.to(x.dtype).view(64, 4, 32) - 3) * scale.unsqueeze(-1)).view(64, 128).T


def apart(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Of blocks that are not put together again."""
    return (scale.unsqueeze(-1) * q.to(x.dtype).view(64, 4, 32)).sum((0, 1)) + x[0, :32]


def by_row(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ (q * scale[:, :1]).T


def twice(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return by_row(x.relu(), q, scale) + by_row(-x, q, scale)


def nibbles(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Two in each byte."""
    low, high = (q & 15).to(torch.int8) - 8, (q >> 4).to(torch.int8) - 8
    return x @ (torch.stack([low, high], -1).view(64, 4, 64) * scale.unsqueeze(-1)).view(64, 256).T


def zeros_of_their_own(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ ((q.to(x.dtype) - torch.arange(64).view(64, 1) % 7) * scale[:, :1]).T


def also_as_integers(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> Any:
    return by_row(x, q, scale), q + 1


def by_column(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """ONNX Runtime would fuse it into a product of less precision."""
    return x[:, :64] @ (q.to(x.dtype).view(2, 32, 128) * scale.view(2, 1, 128)).view(64, 128)


def half_zero(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ ((q.to(x.dtype) - 0.5) * scale[:, :1]).T


def exported(
    formula: Callable[..., Any], path: Path, low: int, high: int, opset: int, half: bool = False
) -> dict[str, Any]:
    torch.manual_seed(0)
    dtype = torch.uint8 if low == 0 else torch.int8
    real = torch.float16 if half else torch.float32
    integers = torch.randint(low, high + 1, (64, 128), dtype=dtype)
    model = Dequantized(integers, torch.rand(64, 4).to(real) / 10, formula)
    x = torch.randn(3, 256 if formula is nibbles else 128).to(real)
    program = sardonyx.export(
        model, (x,), path, dynamic_axes={"x": {0: "batch"}}, opset_version=opset, verify=True
    )
    kinds = {n.op_type: n for n in program.model.graph}
    found = {v.name: v.dtype.name for v in program.model.graph.initializers.values()}
    sizes = {v.name: v.const_value.nbytes for v in program.model.graph.initializers.values()}
    integers_size = sizes.pop("integers")
    assert integers_size == integers.numel() // (2 if "INT4" in found["integers"] else 1) * (
        2 if formula is nibbles else 1
    )
    assert path.stat().st_size < integers_size + sum(sizes.values()) + 5000
    assert max(sizes.values(), default=0) <= 1024  # no copy in real numbers
    return {"stored": found["integers"], "node": kinds.get("DequantizeLinear")}


@pytest.mark.parametrize(
    ("formula", "low", "stored", "axis", "block"),
    [
        (by_blocks, -8, "INT4", 1, 32),
        (by_blocks, 0, "UINT4", 1, 32),
        (apart, -8, "INT4", 2, 32),
        (by_row, -8, "INT4", 1, 128),
        (twice, -8, "INT4", 1, 128),
    ],
)
@pytest.mark.parametrize("opset", [21, 24])
def test_integers_of_four_bits(
    formula: Any, low: int, stored: str, axis: int, block: int, opset: int, tmp_path: Path
) -> None:
    made = exported(formula, tmp_path / "m.onnx", low, low + 15, opset)
    assert made["stored"] == stored
    attributes = made["node"].attributes
    assert attributes.get_int("axis", 1) == axis
    assert attributes.get_int("block_size", 0) == block


def test_two_in_a_byte(tmp_path: Path) -> None:
    made = exported(nibbles, tmp_path / "m.onnx", 0, 255, 21)
    assert made["stored"] == "INT4"
    assert made["node"].attributes.get_int("block_size") == 64


def test_half_precision(tmp_path: Path) -> None:
    assert exported(by_blocks, tmp_path / "m.onnx", -8, 7, 21, half=True)["stored"] == "INT4"


def test_a_zero_point_for_each_row(tmp_path: Path) -> None:
    made = exported(zeros_of_their_own, tmp_path / "m.onnx", 0, 7, 21)
    assert made["stored"] == "INT4"
    assert len(made["node"].inputs) == 3


@pytest.mark.parametrize(
    ("formula", "low", "high", "opset"),
    [
        (by_blocks, -8, 7, 20),  # no INT4 there
        (by_blocks, -9, 7, 21),
        (by_blocks, -128, 127, 21),
        (also_as_integers, -8, 7, 21),  # the bytes are read elsewhere
        (by_column, -8, 7, 21),
        (half_zero, -8, 7, 21),
    ],
)
def test_a_byte_each(formula: Any, low: int, high: int, opset: int, tmp_path: Path) -> None:
    made = exported(formula, tmp_path / "m.onnx", low, high, opset)
    assert made["stored"] == "INT8"
    assert made["node"] is None
