"""Rules for what opsets 26 to 28 brought."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize
from tests.legalize.single_op import check, model_of, run_reference

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_swiglu(alpha: float) -> None:
    check("SwiGLU", {"a": floats(2, 5), "b": floats(2, 5)}, since=28, alpha=alpha)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth(mode: str) -> None:
    check("SpaceToDepth", {"x": floats(2, 3, 4, 6)}, since=28, blocksize=2, mode=mode)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_float_mod_has_the_sign_of_the_divisor(dtype: type) -> None:
    a = np.array([5, -5, 5, -5, 0, 3, -3, 2.5, np.inf, 1], dtype=dtype)
    b = np.array([3, 3, -3, -3, 3, np.inf, np.inf, -0.7, 2, 0], dtype=dtype)
    expected = torch.remainder(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    check(
        "Mod",
        {"a": a, "b": b},
        since=28,
        lowest=10,
        expected=[expected],
        rtol=1e-2 if dtype == np.float16 else 1e-6,
    )


def test_integer_mod_and_fmod_stay() -> None:
    check("Mod", {"a": np.array([5, -5]), "b": np.array([3, 3])}, since=28)
    check("Mod", {"a": floats(4), "b": floats(4)}, since=28, lowest=10, fmod=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_celu(dtype: type) -> None:
    x = floats(3, 4, dtype=dtype)
    expected = torch.celu(torch.from_numpy(x), 0.7).numpy()
    tolerance = {np.float32: 1e-6, np.float64: 1e-7, np.float16: 1e-3}[dtype]
    check("Celu", {"x": x}, since=28, alpha=0.7, expected=[expected], rtol=tolerance)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("constant_amount", [False, True])
def test_signed_bit_shift(dtype: type, direction: str, constant_amount: bool) -> None:
    low = np.iinfo(dtype).min
    x = np.array([0, 1, -1, 5, -6, 100, low, np.iinfo(dtype).max], dtype=dtype)
    amounts = [0, 3, 1, 7] if constant_amount else [0, 3, 7, np.iinfo(dtype).bits, -1]
    y = np.array(amounts, dtype=dtype)[:, None]
    bits = np.iinfo(dtype).bits
    in_range = (y >= 0) & (y < bits)
    safe = np.where(in_range, y, 0).astype(dtype)
    if direction == "LEFT":
        expected = np.where(in_range, x << safe, 0).astype(dtype)
    else:
        expected = np.where(in_range, x >> safe, np.where(x < 0, -1, 0)).astype(dtype)
    check(
        "BitShift",
        {"x": x, "y": y},
        since=28,
        lowest=11,
        direction=direction,
        constants=["y"] if constant_amount else [],
        expected=[expected],
    )


def test_unsigned_bit_shift_stays() -> None:
    x = np.array([1, 200], dtype=np.uint8)
    inputs = {"x": x, "y": np.array([1, 2], np.uint8)}
    check("BitShift", inputs, since=28, lowest=11, direction="RIGHT")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_range(dtype: type) -> None:
    bounds = {"start": 1, "limit": 9, "delta": 2}
    inputs = {name: np.array(value, dtype=dtype) for name, value in bounds.items()}
    check("Range", inputs, since=27, expected=[np.arange(1, 9, 2, dtype=dtype)], stash_type=1)


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_causal_conv_with_state(with_state: bool, activation: str, kernel: int) -> None:
    check(
        "CausalConvWithState",
        {
            "x": floats(2, 4, 5),
            "weight": floats(4, 1, kernel),
            "bias": floats(4),
            "past": floats(2, 4, kernel - 1) if with_state else None,
        },
        since=27,
        constants=["weight", "bias"],
        outputs=2,
        activation=activation,
        rtol=1e-4,
    )


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_linear_attention(rule: str, with_state: bool, kv_heads: int) -> None:
    batch, time, heads, key_size, value_size = 2, 5, 4, 3, 6
    check(
        "LinearAttention",
        {
            "q": floats(batch, time, heads * key_size),
            "k": floats(batch, time, kv_heads * key_size) / 3,
            "v": floats(batch, time, kv_heads * value_size),
            "past": floats(batch, kv_heads, key_size, value_size) if with_state else None,
            "decay": -np.abs(floats(batch, time, kv_heads)) if "gated" in rule else None,
            "beta": np.abs(floats(batch, time, kv_heads)) if "delta" in rule else None,
        },
        since=27,
        outputs=2,
        q_num_heads=heads,
        kv_num_heads=kv_heads,
        update_rule=rule,
        dynamic=[False],
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_cum_prod(axis: int, reverse: int, exclusive: int, dtype: type) -> None:
    x = (floats(2, 3, 4) * 3).astype(dtype)
    check(
        "CumProd",
        {"x": x, "axis": np.array(axis)},
        since=26,
        constants=["axis"],
        reverse=reverse,
        exclusive=exclusive,
    )


def test_cum_prod_of_a_vector() -> None:
    check("CumProd", {"x": floats(5), "axis": np.array(0)}, since=26, constants=["axis"])


@pytest.mark.parametrize(
    ("dtype", "to"), [(np.int32, ir.DataType.UINT32), (np.uint8, ir.DataType.INT8)]
)
def test_bit_cast_between_integers(dtype: type, to: ir.DataType) -> None:
    x = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype=dtype)
    check("BitCast", {"x": x}, since=26, to=int(to), output_dtypes=[to])


def test_bit_cast_of_floats_is_refused() -> None:
    model = model_of("BitCast", {"x": floats(3)}, to=6, output_dtypes=[ir.DataType.INT32])
    with pytest.raises(UnsupportedOpsetError, match=r"BitCast.*integer types only; needs opset 26"):
        legalize(model, 25)


def test_opset_27_runs_in_the_reference_evaluator() -> None:
    inputs = {"a": floats(2, 5), "b": floats(2, 5)}
    expected = run_reference(model_of("SwiGLU", inputs), inputs)
    model = model_of("SwiGLU", inputs)
    legalize(model, 27)
    np.testing.assert_allclose(run_reference(model, inputs)[0], expected[0], rtol=1e-5)
    assert [node.op_type for node in model.graph] == ["Swish", "Mul"]
