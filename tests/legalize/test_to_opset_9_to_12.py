"""Rules for what opsets 10 to 13 brought."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize, newest_opset
from tests.legalize.single_op import check, model_of, run_lowered

RNG = np.random.default_rng(0)
INT64_MAX = (1 << 63) - 1


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def refused(match: str, opset: int, op_type: str, inputs: Any, **options: Any) -> None:
    model = model_of(op_type, inputs, **options)
    with pytest.raises(UnsupportedOpsetError, match=match):
        legalize(model, opset)


@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("axes", [[1], [-1, 1]])
def test_squeeze(op_type: str, axes: list[int]) -> None:
    inputs = {"x": floats(2, 1, 3, 1), "axes": np.array(axes)}
    check(op_type, inputs, since=13, constants=["axes"])


def test_axes_that_the_model_computes_are_refused() -> None:
    inputs = {"x": floats(2, 1), "axes": np.array([1])}
    refused(r"Unsqueeze.*computed by the model; needs opset 13", 12, "Unsqueeze", inputs)


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
@pytest.mark.parametrize("axes", [None, [], [0, -1], [1]])
@pytest.mark.parametrize("noop", [0, 1])
def test_reductions(op_type: str, axes: list[int] | None, noop: int) -> None:
    given = None if axes is None else np.array(axes, dtype=np.int64)
    inputs = {"x": floats(2, 3, 4), "axes": given}
    options = {"constants": ["axes"], "noop_with_empty_axes": noop, "keepdims": 1}
    if not axes and noop and op_type == "ReduceL2":
        options["expected"] = [np.abs(inputs["x"])]
    check(op_type, inputs, since=13, atol=1e-5, **options)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("axis", [1, -1])
def test_split(constant: bool, axis: int) -> None:
    inputs = {"x": floats(2, 6), "sizes": np.array([1, 3, 2])}
    constants = ["sizes"] if constant else []
    check("Split", inputs, since=13, constants=constants, axis=axis, outputs=3)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_one_axis_only(op_type: str, axis: int) -> None:
    check(op_type, {"x": floats(2, 3, 4)}, since=13, axis=axis)
    check(op_type, {"x": floats(4)}, since=13, axis=0)


MODES = [
    *itertools.product(["nearest"], ["asymmetric"], ["floor", "ceil", "round_prefer_ceil"]),
    *itertools.product(
        ["linear", "cubic"],
        ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"],
        ["floor"],
    ),
    ("nearest", "half_pixel", "round_prefer_floor"),
]


@pytest.mark.parametrize(("mode", "coordinates", "nearest_mode"), MODES)
@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_resize(mode: str, coordinates: str, nearest_mode: str, by: str) -> None:
    scales = np.array([1, 1, 2, 0.6], np.float32)
    inputs = {
        "x": floats(2, 2, 3, 5),
        "roi": None,
        "scales": scales if by == "scales" else None,
        "sizes": np.array([2, 2, 7, 3]) if by == "sizes" else None,
    }
    check(
        "Resize",
        inputs,
        since=13,
        lowest=11 if mode == "cubic" else 9,
        constants=[by],
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest_mode,
        atol=1e-5,
    )


def test_resize_by_whole_factors_is_one_node() -> None:
    for sizes, opset, expected in (
        ([2, 2, 6, 10], 10, "Resize"),
        ([2, 2, 6, 10], 9, "Upsample"),
    ):
        inputs = {"x": floats(2, 2, 3, 5), "r": None, "s": None, "sizes": np.array(sizes)}
        options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        model = model_of("Resize", inputs, constants=["sizes"], **options)
        legalize(model, opset)
        assert [node.op_type for node in model.graph if node.op_type != "Constant"] == [expected]
        check("Resize", inputs, since=13, constants=["sizes"], opsets=[opset], **options)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantization(per_channel: bool, dtype: type) -> None:
    x = np.array([[-300, -1.5, -0.5, 0.5, 1.5, 2.5, 300], [0, 1, 2, 3, 4.5, 5.5, -7]], np.float32)
    scale = np.array([1, 0.5], np.float32) if per_channel else np.float32(0.5)
    zero = np.array([3, 1], dtype) if per_channel else np.array(3, dtype)
    inputs = {"x": x, "scale": np.asarray(scale), "zero": zero}
    check("QuantizeLinear", inputs, since=13, axis=0)
    inputs["x"] = RNG.integers(0, 100, (2, 5)).astype(dtype)
    check("DequantizeLinear", inputs, since=13, axis=0)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64])
def test_extremes_of_integers(op_type: str, dtype: type) -> None:
    largest = np.iinfo(dtype).max
    values = {name: RNG.integers(0, largest, (2, 3), dtype=dtype, endpoint=True) for name in "abc"}
    check(op_type, values, since=12)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(-2, 3), (None, 1), (-1, None), (3, -2)])
@pytest.mark.parametrize("constant", [True, False])
def test_clip(dtype: type, low: float | None, high: float | None, constant: bool) -> None:
    inputs = {
        "x": (floats(10) * 5).astype(dtype),
        "low": None if low is None else np.array(low, dtype),
        "high": None if high is None else np.array(high, dtype),
    }
    check("Clip", inputs, since=12, constants=["low", "high"] if constant else [])


@pytest.mark.parametrize("op_type", ["GreaterOrEqual", "LessOrEqual", "Equal", "Greater", "Less"])
def test_comparisons(op_type: str) -> None:
    special = np.array([0, 1, -1, np.inf, -np.inf, np.nan], np.float32)
    x, y = (part.copy() for part in np.meshgrid(special, special))
    for dtype in (np.float32, np.float64, np.float16):
        check(op_type, {"x": x.astype(dtype), "y": y.astype(dtype)}, since=12)
    whole = np.array([0, 5, -3, INT64_MAX, INT64_MAX - 1])
    x, y = (part.copy() for part in np.meshgrid(whole, whole))
    for dtype in (np.int64, np.int32, np.uint64, np.uint8):
        check(op_type, {"x": x.astype(dtype), "y": y.astype(dtype)}, since=12)


def test_celu() -> None:
    check("Celu", {"x": floats(4, 3) * 3}, since=12, alpha=1.7)


@pytest.mark.parametrize(
    "attributes",
    [{"value_int": 3}, {"value_ints": [3, 4]}, {"value_float": 0.5}, {"value_floats": [1.0, 2.0]}],
)
def test_constants(attributes: Any) -> None:
    check("Constant", {}, since=12, dynamic=[False], **attributes)


def test_constants_of_strings_are_refused() -> None:
    refused("Constant.*needs opset 12", 11, "Constant", {}, value_string="a")


def test_dropout_at_inference() -> None:
    inputs = {"x": floats(3, 4), "ratio": np.array(0.3, np.float32)}
    check("Dropout", inputs, since=12, constants=["ratio"], outputs=2)


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_dropout_in_training(opset: int) -> None:
    inputs = {
        "x": np.ones((50, 80), np.float32),
        "ratio": np.array(0.25, np.float32),
        "training": np.array(True),
    }
    model = model_of("Dropout", inputs, constants=["ratio", "training"], outputs=2)
    legalize(model, opset)
    out, mask = run_lowered(model, {"x": inputs["x"]})
    assert mask.dtype == np.bool_
    assert 0.7 < mask.mean() < 0.8
    np.testing.assert_allclose(out, np.where(mask, 1 / 0.75, 0), rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (np.int64, np.int64),
        (np.int32, np.float32),
        (np.float32, np.int64),
        (np.float32, np.float64),
    ],
)
@pytest.mark.parametrize("constant", [True, False])
def test_powers(base: type, exponent: type, constant: bool) -> None:
    inputs = {"x": np.array([1, 2, -3, 7]).astype(base), "y": np.array(3).astype(exponent)}
    check("Pow", inputs, since=12, constants=["y"] if constant else [])


def test_einsum_is_refused() -> None:
    inputs = {"x": floats(2, 3), "y": floats(3, 2)}
    refused(r"Einsum.*needs opset 12", 11, "Einsum", inputs, equation="ij,jk->ik")


@pytest.mark.parametrize("op_type", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore", [None, -100, 1])
def test_losses(op_type: str, reduction: str, weighted: bool, ignore: int | None) -> None:
    scores, classes = floats(3, 4, 2), np.array([[0, 1], [3, 1], [2, 2]])
    if ignore == -100:
        classes[0, 1] = -100
    weight = np.abs(floats(4)) if weighted else None
    loss = {
        "NegativeLogLikelihoodLoss": torch.nn.functional.nll_loss,
        "SoftmaxCrossEntropyLoss": torch.nn.functional.cross_entropy,
    }[op_type]
    expected = loss(
        torch.from_numpy(scores),
        torch.from_numpy(classes),
        None if weight is None else torch.from_numpy(weight),
        reduction=reduction,
        ignore_index=-1000 if ignore is None else ignore,
    ).numpy()
    attributes = {"reduction": reduction} | ({} if ignore is None else {"ignore_index": ignore})
    inputs = {"scores": scores, "classes": classes, "weight": weight}
    check(
        op_type, inputs, since=12, opsets=[9, 10, 11], expected=[expected], atol=1e-5, **attributes
    )


def test_choosing_the_last_is_refused() -> None:
    inputs = {"x": floats(2, 3)}
    refused(r"ArgMax.*opset 12", 11, "ArgMax", inputs, select_last_index=1)


def test_batched_gathering_is_refused() -> None:
    inputs = {"x": floats(2, 3), "indices": np.array([[0], [1]])}
    refused(r"GatherND.*batch_dims.*opset 12", 11, "GatherND", inputs, batch_dims=1)


@pytest.mark.parametrize("op_type", ["ArgMax", "Flatten", "Softmax", "Concat"])
def test_axes_from_the_end(op_type: str) -> None:
    inputs = {"x": floats(2, 3, 4)} | ({"y": floats(2, 3, 5)} if op_type == "Concat" else {})
    check(op_type, inputs, since=11, axis=-1)


def test_compress_along_an_axis_from_the_end() -> None:
    inputs = {"x": floats(2, 4), "condition": np.array([True, False, True, True])}
    check("Compress", inputs, since=11, axis=-1)


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_one_hot(axis: int) -> None:
    inputs = {
        "indices": np.array([[0, 3], [-1, -4]]),
        "depth": np.array(4),
        "values": np.array([2, 5], np.float32),
    }
    check("OneHot", inputs, since=11, constants=["depth"], axis=axis)


@pytest.mark.parametrize("constant", [True, False])
def test_gather_with_indices_from_the_end(constant: bool) -> None:
    inputs = {"x": floats(3, 4), "indices": np.array([[0, -1], [-3, 2]])}
    check("Gather", inputs, since=11, constants=["indices"] if constant else [], axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    indices = np.array([[[0, -1], [1, 0]], [[-2, 1], [0, 0]]])
    x = floats(2, 3, 4)
    there = np.where(indices < 0, indices + x.shape[axis], indices)
    # Of the other axes the indices need not go to the end.
    covered = x[tuple(slice(None if a == axis % 3 else 2) for a in range(3))]
    expected = np.take_along_axis(covered, there, axis)
    inputs = {"x": x, "indices": indices}
    check("GatherElements", inputs, since=11, axis=axis, expected=[expected])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd(depth: int) -> None:
    indices = np.array([[[0, 1, 2], [1, -1, 0]], [[-1, 0, 0], [0, 0, -4]]])[..., :depth]
    check("GatherND", {"x": floats(2, 3, 4), "indices": indices}, since=11, dynamic=[False])


def test_scatter_elements() -> None:
    inputs = {"x": floats(3, 4), "indices": np.array([[1, -1, 0, 2]]), "updates": floats(1, 4)}
    check("ScatterElements", inputs, since=11, axis=0)


SLICES = [
    ([1], [3], [0], None),
    ([1, 0], [INT64_MAX, -1], [0, -1], None),
    ([-2], [INT64_MAX], [0], None),
    ([0], [INT64_MAX], [1], [2]),
    ([-1], [-INT64_MAX], [1], [-1]),
    ([4, 1], [0, 3], [1, 0], [-2, 1]),
    ([3], [1], [1], None),
    ([10], [20], [1], None),
    ([-10], [-1], [1], [3]),
    ([5], [-10], [1], [-3]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
@pytest.mark.parametrize("constant", [True, False])
def test_slice(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None, constant: bool
) -> None:
    inputs = {
        "x": floats(3, 5),
        "starts": np.array(starts),
        "ends": np.array(ends),
        "axes": np.array(axes),
        "steps": None if steps is None else np.array(steps),
    }
    constants = ["axes", "steps", *(["starts", "ends"] if constant else [])]
    where = [slice(None)] * 2
    for index, axis in enumerate(axes):
        where[axis] = slice(starts[index], ends[index], steps[index] if steps else 1)
    # Not all inputs lose their sizes: how many bounds there are has to be known.
    check(
        "Slice",
        inputs,
        since=13,
        opsets=[9, 10, 11],
        constants=constants,
        dynamic=[False, True] if constant else [False],
        expected=[inputs["x"][tuple(where)]],
    )


def test_slice_of_a_named_dim_at_bounds_that_the_model_computes() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {newest_opset()}]>
        agraph (float[N, M] x, int64[1] start, int64[1] end) => (float[N, K] y) {{
            axis = Constant <value = int64[1] {{1}}> ()
            step = Constant <value = int64[1] {{2}}> ()
            y = Slice(x, start, end, axis, step)
        }}"""
    x = floats(2, 7)
    for opset in (9, 10, 11):
        model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
        legalize(model, opset)
        for start, end in ((0, 7), (-5, -1), (3, 100), (6, 2)):
            feeds = {"x": x, "start": np.array([start]), "end": np.array([end])}
            np.testing.assert_array_equal(run_lowered(model, feeds)[0], x[:, start:end:2])


@pytest.mark.parametrize("step", [2, -2])
def test_slice_with_a_step_that_the_model_computes(step: int) -> None:
    bounds = {
        "starts": np.array([-1 if step < 0 else 1]),
        "ends": np.array([-100 if step < 0 else 9]),
    }
    inputs = {"x": floats(2, 7), **bounds, "axes": np.array([1]), "steps": np.array([step])}
    expected = inputs["x"][:, bounds["starts"][0] : None : step]
    check(
        "Slice",
        inputs,
        since=13,
        opsets=[9, 10, 11],
        constants=["axes", "starts", "ends"],
        expected=[expected],
    )


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sum_of_nothing(shape: tuple[int, int], axis: int) -> None:
    """ONNX Runtime would end with the process at a Scan over nothing."""
    x = np.zeros(shape, np.float32)
    check("CumSum", {"x": x, "axis": np.array(axis)}, since=11, constants=["axis"])


def test_one_divided_by_integers() -> None:
    """ONNX Runtime takes (1 / y) * z for z / y where it can."""
    inputs = {"x": np.array(1), "y": np.array([5, 1, -1, 2, -128])}
    check("Mod", inputs, since=10, constants=["x"], expected=[np.mod(1, inputs["y"])])


def test_gemm_without_bias() -> None:
    check("Gemm", {"a": floats(2, 3), "b": floats(4, 3)}, since=11, transB=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round(dtype: type) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 2.3, -2.7, 1e20, np.inf, -np.inf, np.nan])
    check("Round", {"x": x.astype(dtype)}, since=11)


def test_bit_shift_is_refused() -> None:
    inputs = {"x": np.array([8], np.uint8), "amount": np.array([1], np.uint8)}
    refused(r"BitShift.*needs opset 11", 10, "BitShift", inputs, direction="LEFT")


@pytest.mark.parametrize(
    ("start", "limit", "delta", "dtype"),
    [
        (0, 5, 1, np.int64),
        (3, -4, -2, np.int64),
        (2, 11, 3, np.int32),
        (5, 2, 1, np.int64),
        (0, 1, 0.3, np.float32),
        (1, -1, -0.5, np.float64),
    ],
)
def test_range(start: float, limit: float, delta: float, dtype: type) -> None:
    inputs = {n: np.array(v, dtype) for n, v in zip("abc", (start, limit, delta), strict=True)}
    check("Range", inputs, since=11)
    check("Range", inputs, since=11, constants=["a", "c"])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumulative_sum(axis: int, exclusive: int, reverse: int) -> None:
    for x in (floats(3, 4), np.arange(6).reshape(2, 3)):
        check(
            "CumSum",
            {"x": x, "axis": np.array(axis)},
            since=11,
            constants=["axis"],
            exclusive=exclusive,
            reverse=reverse,
        )


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check("DepthToSpace", {"x": floats(2, 8, 3, 2)}, since=11, blocksize=2, mode=mode)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("constant", [True, False])
def test_top_k(largest: int, dtype: type, constant: bool) -> None:
    x = RNG.permutation(24).reshape(4, 6).astype(dtype)
    inputs = {"x": x, "k": np.array([3])}
    check(
        "TopK",
        inputs,
        since=11,
        constants=["k"] if constant else [],
        largest=largest,
        outputs=2,
        dynamic=[False, True] if constant else [False],
    )


def test_top_k_of_large_integers_is_refused() -> None:
    inputs = {"x": np.arange(4), "k": np.array([2])}
    refused(r"TopK.*64-bit integers came with opset 11", 10, "TopK", inputs, outputs=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("pads", [[1, 0, 2, 1], [0, 3, 0, 0], [-1, 1, 0, -2]])
@pytest.mark.parametrize("constant", [True, False])
def test_constant_padding(dtype: type, pads: list[int], constant: bool) -> None:
    inputs = {
        "x": (floats(3, 4) * 3).astype(dtype),
        "pads": np.array(pads),
        "value": np.array(0.1 if dtype == np.float64 else 1, dtype),
    }
    widths = list(zip(np.maximum(pads[:2], 0), np.maximum(pads[2:], 0), strict=True))
    first, last = np.maximum(np.negative(pads[:2]), 0), np.maximum(np.negative(pads[2:]), 0)
    kept = inputs["x"][first[0] : 3 - last[0], first[1] : 4 - last[1]]
    check(
        "Pad",
        inputs,
        since=13,
        opsets=[9, 10, 11, 12],
        constants=["value", *(["pads"] if constant else [])],
        dynamic=[False, True] if constant else [False],
        expected=[np.pad(kept, widths, constant_values=inputs["value"])],
    )


@pytest.mark.parametrize("mode", ["reflect", "edge"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("constant", [True, False])
def test_other_padding(mode: str, dtype: type, constant: bool) -> None:
    inputs = {"x": (floats(3, 4) * 3).astype(dtype), "pads": np.array([1, 0, 2, 3])}
    by_attributes = constant and dtype == np.float32
    if not by_attributes:
        refused(r"Pad.*came with opset 11", 10, "Pad", inputs, mode=mode)
    check(
        "Pad",
        inputs,
        since=13,
        opsets=[9, 10, 11, 12] if by_attributes else [11, 12],
        mode=mode,
        constants=["pads"] if constant else [],
        dynamic=[False, True] if constant else [False],
        expected=[np.pad(inputs["x"], [(1, 2), (0, 3)], mode=mode)],
    )


@pytest.mark.parametrize(("negative", "positive"), [(1, 1), (0, 1), (1, 0)])
def test_is_inf(negative: int, positive: int) -> None:
    x = np.array([0, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)
    check("IsInf", {"x": x}, since=10, detect_negative=negative, detect_positive=positive)


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8])
def test_integer_mod(fmod: int, dtype: type) -> None:
    x, y = np.meshgrid([7, -7, 0, 5, 100, -100], [3, -3, 5, -7])
    x, y = x.astype(dtype), y.astype(dtype)
    expected = np.fmod(x, y) if fmod else np.mod(x, y)
    check("Mod", {"x": x, "y": y}, since=10, fmod=fmod, expected=[expected])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_of_floats_are_refused(dtype: type) -> None:
    inputs = {"x": floats(2).astype(dtype), "y": floats(2).astype(dtype)}
    refused(r"Mod.*remainders of floats came with opset 10", 9, "Mod", inputs, fmod=1)


def test_thresholded_relu() -> None:
    check("ThresholdedRelu", {"x": floats(3, 4) * 2}, since=10, alpha=0.5)


def test_integer_matrix_product_is_refused() -> None:
    inputs = {"a": np.ones((2, 3), np.uint8), "b": np.ones((3, 4), np.int8)}
    refused(r"MatMulInteger.*needs opset 10", 9, "MatMulInteger", inputs)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("size", [6, 7, 8])
def test_pooling_that_rounds_up(op_type: str, size: int) -> None:
    x = floats(1, 2, size, size + 1)
    pool = {
        "MaxPool": torch.nn.functional.max_pool2d,
        "AveragePool": torch.nn.functional.avg_pool2d,
    }[op_type]
    options = {} if op_type == "MaxPool" else {"count_include_pad": False}
    expected = pool(torch.from_numpy(x), 3, 2, 1, ceil_mode=True, **options).numpy()
    check(
        op_type,
        {"x": x},
        since=10,
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        ceil_mode=1,
        dynamic=[False],
        expected=[expected],
    )


def test_dilated_pooling_is_refused() -> None:
    options = {"kernel_shape": [2, 2], "dilations": [2, 2]}
    refused(r"MaxPool.*dilated.*opset 10", 9, "MaxPool", {"x": floats(1, 1, 5, 5)}, **options)


def test_a_loop_that_carries_nothing_is_refused() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {newest_opset()}]>
        agraph (int64 trips, bool go_on) => (int64[N] squares) {{
            squares = Loop <body = b (int64 i, bool go) => (bool stay, int64 square) {{
                stay = Identity(go)
                square = Mul(i, i)
            }}> (trips, go_on)
        }}"""
    model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    with pytest.raises(UnsupportedOpsetError, match=r"Loop.*needs opset 11"):
        legalize(model, 10)


def test_sequences_are_refused_with_their_opset() -> None:
    refused(r"SequenceConstruct.*came with opset 11", 10, "SequenceConstruct", {"x": floats(2)})
