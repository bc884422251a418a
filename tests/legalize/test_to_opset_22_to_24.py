"""Rules for what opsets 23 to 25 brought, except Attention."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch

from tests.legalize.single_op import check

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("alpha", [1.0, 1.702])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_swish(alpha: float, dtype: type) -> None:
    x = floats(3, 4, dtype=dtype)
    wide = x.astype(np.float64)
    expected = (wide / (1 + np.exp(-alpha * wide))).astype(dtype)
    tolerance = 2e-3 if dtype == np.float16 else 1e-5
    check("Swish", {"x": x}, since=24, alpha=alpha, expected=[expected], rtol=tolerance)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
@pytest.mark.parametrize("with_indices", [True, False])
def test_tensor_scatter(mode: str, axis: int, with_indices: bool) -> None:
    cache, update = floats(2, 3, 6, 4), floats(2, 3, 2, 4)
    if axis == 1:
        update = floats(2, 2, 6, 4)
    start = np.array([1, 0] if mode == "linear" else [5, 2], dtype=np.int64)
    check(
        "TensorScatter",
        {"cache": cache, "update": update, "indices": start if with_indices else None},
        since=24,
        mode=mode,
        axis=axis,
    )


@pytest.mark.parametrize("axis", [-1, -2, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rms_normalization(axis: int, dtype: type) -> None:
    x = floats(2, 3, 4, dtype=dtype)
    scale = floats(*x.shape[axis:], dtype=dtype)
    check("RMSNormalization", {"x": x, "scale": scale}, since=23, axis=axis, epsilon=1e-3)


def test_rms_normalization_of_float16_is_computed_in_float32() -> None:
    # The squares overflow float16.
    x = np.array([[300.0, 400.0, -500.0]], dtype=np.float16)
    scale = np.ones(3, dtype=np.float16)
    wide = torch.from_numpy(x).float()
    expected = torch.nn.functional.rms_norm(wide, (3,), eps=1e-5).half().numpy()
    check("RMSNormalization", {"x": x, "scale": scale}, since=23, expected=[expected], rtol=1e-3)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rotary_dim", [0, 4])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_rotary_embedding(
    interleaved: int, rotary_dim: int, with_positions: bool, packed: bool
) -> None:
    batch, heads, length, size = 2, 3, 5, 8
    half = (rotary_dim or size) // 2
    x = floats(batch, length, heads * size) if packed else floats(batch, heads, length, size)
    cache = (7, half) if with_positions else (batch, length, half)
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": rotary_dim}
    if packed:
        attributes["num_heads"] = heads
    check(
        "RotaryEmbedding",
        {
            "x": x,
            "cos": floats(*cache),
            "sin": floats(*cache),
            "positions": RNG.integers(0, 7, (batch, length)) if with_positions else None,
        },
        since=23,
        **attributes,
    )


@pytest.mark.parametrize("precision", [0, 1])
@pytest.mark.parametrize("axis", [None, 1])
def test_quantize_linear(precision: int, axis: int | None) -> None:
    x = (floats(2, 3) * 10).astype(np.float16)
    scale = np.array([0.1, 0.2, 0.4] if axis else 0.25, dtype=np.float32)
    zero = np.array([1, 2, 3] if axis else 3, dtype=np.int8)
    wide = x.astype(np.float32)
    expected = np.clip(np.rint(wide / scale) + zero, -128, 127).astype(np.int8)
    check(
        "QuantizeLinear",
        {"x": x, "scale": scale, "zero": zero},
        since=23,
        constants=["scale", "zero"],
        precision=precision,
        axis=axis,
        saturate=1,
        expected=[expected],
    )


def test_quantize_linear_without_zero_point() -> None:
    x = floats(2, 3) * 10
    check(
        "QuantizeLinear",
        {"x": x, "scale": np.array(0.1, np.float32)},
        since=23,
        output_dtype=int(ir.DataType.INT8),
        output_dtypes=[ir.DataType.INT8],
    )


@pytest.mark.parametrize("scale_dtype", [np.float32, np.float16])
@pytest.mark.parametrize("output_dtype", [0, 1])
def test_dequantize_linear(scale_dtype: type, output_dtype: int) -> None:
    x = RNG.integers(-128, 127, (2, 3)).astype(np.int8)
    scale = np.array(0.25, scale_dtype)
    result = np.float32 if output_dtype else scale_dtype
    check(
        "DequantizeLinear",
        {"x": x, "scale": scale, "zero": np.array(3, np.int8)},
        since=23,
        output_dtype=output_dtype,
        expected=[((x.astype(np.int32) - 3) * 0.25).astype(result)],
        output_dtypes=[ir.tensor(np.zeros((), result)).dtype],
    )
