"""Attention 23 to 25 below the opset that has it, against its specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize
from tests.legalize.single_op import check, model_of, run_lowered

RNG = np.random.default_rng(0)
BATCH, HEADS, QUERIES, KEYS, SIZE, V_SIZE = 2, 4, 3, 5, 8, 6


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def qkv(kv_heads: int = HEADS, keys: int = KEYS) -> dict[str, np.ndarray | None]:
    return {
        "q": floats(BATCH, HEADS, QUERIES, SIZE),
        "k": floats(BATCH, kv_heads, keys, SIZE),
        "v": floats(BATCH, kv_heads, keys, V_SIZE),
    }


def compare(inputs: dict[str, np.ndarray | None], since: int = 23, **attributes: Any) -> None:
    # Heads are equal or not by number: with symbols for all dims this is not known.
    check(
        "Attention",
        inputs,
        since=since,
        opsets=[17, 20, since - 1],
        dynamic=[False],
        rtol=1e-4,
        atol=1e-5,
        **attributes,
    )


@pytest.mark.parametrize("scale", [None, 1.0, 0.3])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_scale_and_softcap(scale: float | None, softcap: float) -> None:
    compare(qkv(), scale=scale, softcap=softcap)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("packed", [False, True])
def test_grouped_heads(kv_heads: int, packed: bool) -> None:
    inputs = qkv(kv_heads)
    attributes = {}
    if packed:
        inputs = {
            name: data.transpose(0, 2, 1, 3).reshape(BATCH, data.shape[2], -1)
            for name, data in inputs.items()
            if data is not None
        }
        attributes = {"q_num_heads": HEADS, "kv_num_heads": kv_heads}
    compare(inputs, is_causal=1, **attributes)


@pytest.mark.parametrize("shape", [(QUERIES, KEYS), (HEADS, 1, KEYS), (BATCH, 1, QUERIES, KEYS)])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_masks(shape: tuple[int, ...], kind: str, is_causal: int) -> None:
    if is_causal and shape[-2] == 1:
        # onnx.reference takes the query length from the mask here, so give it the whole mask.
        shape = (*shape[:-2], QUERIES, KEYS)
    allowed = RNG.random(shape) < 0.7
    allowed[..., 0] = True
    bias = np.where(allowed, floats(*shape), -np.inf).astype(np.float32)
    mask = allowed if kind == "bool" else bias
    compare({**qkv(), "mask": mask}, is_causal=is_causal)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_short_mask_allows_none_of_the_rest(kind: str) -> None:
    allowed = np.ones((QUERIES, KEYS - 2), dtype=bool)
    mask = allowed if kind == "bool" else np.zeros_like(allowed, dtype=np.float32)
    compare({**qkv(), "mask": mask})


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("outputs", [1, 4])
def test_a_fully_masked_row_gives_zeros(kind: str, outputs: int) -> None:
    allowed = np.ones((QUERIES, KEYS), dtype=bool)
    allowed[1] = False
    mask = allowed if kind == "bool" else np.where(allowed, 0, -np.inf).astype(np.float32)
    inputs = {**qkv(), "mask": mask}
    if outputs == 1:
        compare(inputs)
    else:
        compare(inputs, outputs=outputs, qk_matmul_output_mode=3)
    model = model_of("Attention", inputs)
    legalize(model, 20)
    assert not run_lowered(model, {k: v for k, v in inputs.items() if v is not None})[0][
        :, :, 1
    ].any()


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_past_and_present(is_causal: int, mode: int) -> None:
    inputs = {
        **qkv(kv_heads=2),
        "mask": None,
        "past_key": floats(BATCH, 2, 4, SIZE),
        "past_value": floats(BATCH, 2, 4, V_SIZE),
    }
    compare(inputs, outputs=4, is_causal=is_causal, qk_matmul_output_mode=mode)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("with_mask", [False, True])
def test_nonpad_kv_seqlen(is_causal: int, with_mask: bool) -> None:
    mask = RNG.random((HEADS, QUERIES, KEYS)) < 0.8 if with_mask else None
    lengths = np.array([4, 2], dtype=np.int64)
    inputs = {**qkv(), "mask": mask, "past_key": None, "past_value": None, "nonpad": lengths}
    compare(inputs, since=24, is_causal=is_causal)


@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 1), (2, 0), (0, 0)])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("cache", ["none", "past", "nonpad"])
def test_windows(left: int, right: int, is_causal: int, cache: str) -> None:
    inputs = qkv()
    if cache == "past":
        past = {"past_key": floats(BATCH, HEADS, 4, SIZE), "past_value": floats(BATCH, HEADS, 4, 6)}
        inputs |= {"mask": None, **past}
    elif cache == "nonpad":
        inputs |= dict.fromkeys(("mask", "past_key", "past_value"))
        inputs["nonpad"] = np.array([5, 3], dtype=np.int64)
    compare(inputs, since=25, is_causal=is_causal, left_window_size=left, right_window_size=right)


def test_float16_with_float32_softmax() -> None:
    inputs = {name: data.astype(np.float16) for name, data in qkv().items() if data is not None}
    tensors = [torch.from_numpy(data).float() for data in inputs.values()]
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors).half().numpy()
    check(
        "Attention",
        inputs,
        since=23,
        softmax_precision=1,
        expected=[expected],
        dynamic=[False],
        rtol=1e-2,
        atol=3e-3,
    )


def test_symbolic_dims_that_agree() -> None:
    inputs = {**qkv(), "mask": RNG.random((BATCH, 1, QUERIES, KEYS)) < 0.8}
    model = model_of("Attention", inputs, is_causal=1)
    dims = {"q": ["b", "h", "s", None], "k": ["b", "h", "t", None], "v": ["b", "h", "t", "d"]}
    for value in model.graph.inputs:
        for axis, dim in enumerate(dims.get(str(value.name), ["b", 1, "s", "t"])):
            value.shape[axis] = dim
    expected = run_lowered(model_at_26(inputs), feeds := dict(inputs))
    legalize(model, 17)
    np.testing.assert_allclose(run_lowered(model, feeds)[0], expected[0], rtol=1e-4, atol=1e-5)
    assert "Pad" not in [node.op_type for node in model.graph]


def model_at_26(inputs: dict[str, Any]) -> Any:
    model = model_of("Attention", inputs, is_causal=1)
    legalize(model, 26)
    assert [node.op_type for node in model.graph] == ["Attention"]
    return model


@pytest.mark.parametrize("kv_heads", [2, 4])
def test_head_counts_that_are_not_known(kv_heads: int) -> None:
    check(
        "Attention",
        qkv(kv_heads),
        since=23,
        opsets=[17, 20, 22],
        dynamic=[True],
        rtol=1e-4,
        atol=1e-5,
    )


def test_an_unknown_type_is_refused() -> None:
    model = model_of("Attention", qkv(), softcap=2.0)
    model.graph.inputs[0].type = None
    with pytest.raises(UnsupportedOpsetError, match="Attention"):
        legalize(model, 20)
