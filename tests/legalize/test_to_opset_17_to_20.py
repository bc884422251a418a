"""Rules for what opsets 18 to 21 brought."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize
from tests.legalize.single_op import check, model_of

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def refused(match: str, opset: int, op_type: str, inputs: dict[str, Any], **options: Any) -> None:
    model = model_of(op_type, inputs, **options)
    with pytest.raises(UnsupportedOpsetError, match=match):
        legalize(model, opset)


@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (2, 6, 5), (3, 6)])
@pytest.mark.parametrize("groups", [1, 3])
def test_group_normalization(shape: tuple[int, ...], groups: int) -> None:
    x, scale, bias = floats(*shape), floats(6), floats(6)
    tensors = [torch.from_numpy(data) for data in (scale, bias)]
    expected = torch.nn.functional.group_norm(torch.from_numpy(x), groups, *tensors).numpy()
    inputs = {"x": x, "scale": scale, "bias": bias}
    check(
        "GroupNormalization",
        inputs,
        since=21,
        num_groups=groups,
        stash_type=1,
        expected=[expected],
        rtol=1e-4,
        atol=1e-5,
    )


def test_group_normalization_of_float16_is_computed_in_float32() -> None:
    x = (floats(1, 4, 8) * 1000).astype(np.float16)
    ones, zeros = np.ones(4, np.float16), np.zeros(4, np.float16)
    expected = torch.nn.functional.group_norm(torch.from_numpy(x).float(), 2).half().numpy()
    inputs = {"x": x, "scale": ones, "bias": zeros}
    check("GroupNormalization", inputs, since=21, num_groups=2, expected=[expected], rtol=2e-3)


def test_blocked_quantization_is_refused() -> None:
    inputs = {"x": floats(4, 4), "scale": np.ones((2, 4), np.float32)}
    options = {"axis": 0, "block_size": 2}
    refused("QuantizeLinear.*blocked", 20, "QuantizeLinear", inputs, **options)
    inputs["x"] = np.ones((4, 4), np.int8)
    refused("DequantizeLinear.*block_size", 20, "DequantizeLinear", inputs, **options)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_gelu(approximate: str, dtype: type) -> None:
    x = floats(4, 5, dtype=dtype) * 3
    expected = torch.nn.functional.gelu(torch.from_numpy(x), approximate=approximate).numpy()
    tolerance = 2e-3 if dtype == np.float16 else 1e-5
    check(
        "Gelu",
        {"x": x},
        since=20,
        approximate=approximate,
        expected=[expected],
        rtol=tolerance,
        atol=1e-4 if dtype == np.float16 else 1e-6,
    )


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 1, 5), (2, 3, 3, 4, 5)])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_affine_grid(size: tuple[int, ...], align_corners: int) -> None:
    spatial = len(size) - 2
    theta = floats(2, spatial, spatial + 1)
    with warnings.catch_warnings():  # about grids of one position
        warnings.simplefilter("ignore")
        expected = torch.nn.functional.affine_grid(
            torch.from_numpy(theta), list(size), bool(align_corners)
        ).numpy()
    check(
        "AffineGrid",
        {"theta": theta, "size": np.array(size)},
        since=20,
        constants=["size"],
        align_corners=align_corners,
        expected=[expected],
        atol=1e-5,
    )


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding_mode: str) -> None:
    x, grid = floats(1, 2, 5, 6), RNG.uniform(-1.2, 1.2, (1, 3, 4, 2)).astype(np.float32)
    names = {"linear": "bilinear", "cubic": "bicubic"}
    expected = torch.nn.functional.grid_sample(
        torch.from_numpy(x),
        torch.from_numpy(grid),
        mode=names.get(mode, mode),
        padding_mode=padding_mode,
        align_corners=False,
    ).numpy()
    check(
        "GridSample",
        {"x": x, "grid": grid},
        since=20,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=0,
        expected=[expected],
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("axis", [None, 1, -2])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft"])
def test_dft(axis: int | None, kind: str) -> None:
    x = floats(2, 4, 6, 1 if kind == "rfft" else 2)
    signal = x[..., 0] if kind == "rfft" else x[..., 0] + 1j * x[..., 1]
    transformed = getattr(np.fft, kind)(signal, axis=1 if axis == 1 else 2)
    expected = np.stack([transformed.real, transformed.imag], axis=-1).astype(np.float32)
    check(
        "DFT",
        {"x": x, "length": None, "axis": None if axis is None else np.array(axis)},
        lowest=17,  # below, it has to be known whether the input is complex
        since=20,
        constants=["axis"],
        onesided=int(kind == "rfft"),
        inverse=int(kind == "ifft"),
        expected=[expected],
        rtol=1e-4,
        atol=1e-5,
    )


def test_dft_with_a_computed_axis_is_refused() -> None:
    inputs = {"x": floats(2, 4, 6, 2), "length": None, "axis": np.array(1)}
    refused("DFT.*axis is computed", 19, "DFT", inputs)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_reduction_of_bools(op_type: str) -> None:
    x = RNG.random((3, 4)) < 0.5
    check(op_type, {"x": x, "axes": np.array([1])}, since=20, constants=["axes"], keepdims=0)


def test_constant_of_shape_in_bfloat16() -> None:
    value = ir.tensor([2.5], dtype=ir.DataType.BFLOAT16)
    model = model_of("ConstantOfShape", {"shape": np.array([2, 3])}, value=value)
    legalize(model, 19)
    assert [node.op_type for node in model.graph] == ["ConstantOfShape", "Cast"]
    assert model.graph.outputs[0].dtype == ir.DataType.BFLOAT16


def test_strings_are_refused() -> None:
    inputs = {"x": np.array(["a"]), "y": np.array(["b"])}
    refused("StringConcat.*opset 20", 19, "StringConcat", inputs)


@pytest.mark.parametrize("pads", [[0, 1, 2, 0, 3, 1], [0, 0, 7, 0, 0, 9]])
@pytest.mark.parametrize("constant", [False, True])
def test_wrapping_pad(pads: list[int], constant: bool) -> None:
    x = floats(2, 3, 4)
    widths = list(zip(pads[:3], pads[3:], strict=True))
    check(
        "Pad",
        {"x": x, "pads": np.array(pads)},
        since=19,
        constants=["pads"] if constant else [],
        mode="wrap",
        expected=[np.pad(x, widths, mode="wrap")],
    )


def test_wrapping_pad_of_some_axes() -> None:
    x = floats(2, 3, 4)
    inputs = {"x": x, "pads": np.array([1, 2]), "value": None, "axes": np.array([-1])}
    expected = np.pad(x, [(0, 0), (0, 0), (1, 2)], mode="wrap")
    check("Pad", inputs, since=19, constants=["axes"], mode="wrap", expected=[expected])


def test_symmetric_half_pixels_are_refused() -> None:
    inputs = {"x": floats(1, 1, 4, 4), "roi": None, "scales": np.ones(4, np.float32)}
    options = {"coordinate_transformation_mode": "half_pixel_symmetric"}
    refused("Resize.*half_pixel_symmetric", 18, "Resize", inputs, **options)


def test_dilated_average_pool_is_refused_and_plain_is_not() -> None:
    x = floats(1, 2, 8, 8)
    options = {"kernel_shape": [2, 2]}
    refused("AveragePool.*dilations", 18, "AveragePool", {"x": x}, dilations=[2, 2], **options)
    check("AveragePool", {"x": x}, since=22, **options)


def test_deform_conv_is_refused() -> None:
    inputs = {"x": floats(1, 1, 3, 3), "w": floats(1, 1, 2, 2), "offset": floats(1, 8, 2, 2)}
    refused("DeformConv.*needs opset 19", 18, "DeformConv", inputs)


REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
]


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, [1], [0, -1]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(op_type: str, axes: list[int] | None, keepdims: int) -> None:
    x = np.abs(floats(2, 3, 4)) + 0.1
    given = None if axes is None else np.array(axes)
    inputs = {"x": x, "axes": given}
    check(op_type, inputs, since=18, constants=["axes"], keepdims=keepdims)


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reduction_over_no_axis(op_type: str) -> None:
    x = np.abs(floats(2, 3)) + 0.1
    elementwise = {"ReduceLogSum": np.log, "ReduceSumSquare": np.square}.get(op_type, np.array)
    check(op_type, {"x": x}, since=18, noop_with_empty_axes=1, expected=[elementwise(x)])


def test_reduction_over_computed_axes_is_refused() -> None:
    inputs = {"x": floats(2, 3), "axes": np.array([1])}
    refused("ReduceMean.*axes are computed", 17, "ReduceMean", inputs)


@pytest.mark.parametrize(("size", "parts"), [(6, 3), (7, 3), (5, 2)])
@pytest.mark.parametrize("axis", [0, -1])
def test_split(size: int, parts: int, axis: int) -> None:
    x = floats(size, size)
    check("Split", {"x": x}, since=18, outputs=parts, num_outputs=parts, axis=axis)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("constant", [False, True])
def test_pad_of_some_axes(mode: str, constant: bool) -> None:
    inputs = {
        "x": floats(2, 3, 4),
        "pads": np.array([1, 2, 0, 1]),
        "value": np.array(7, np.float32) if mode == "constant" else None,
        "axes": np.array([-1, 1]),
    }
    constants = ["axes", "pads", "value"] if constant else ["axes"]
    opsets = None if constant or mode == "constant" else [13, 17]
    check("Pad", inputs, since=18, constants=constants, mode=mode, opsets=opsets)


@pytest.mark.parametrize("by", ["scales", "sizes"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("constant", [False, True])
def test_resize_of_some_axes(by: str, mode: str, constant: bool) -> None:
    inputs = {
        "x": floats(1, 2, 4, 6),
        "roi": None,
        "scales": np.array([2, 1.5], np.float32) if by == "scales" else None,
        "sizes": np.array([3, 9]) if by == "sizes" else None,
    }
    check(
        "Resize",
        inputs,
        since=18,
        opsets=[13, 17] if mode == "cubic" else None,
        constants=[by] if constant else [],
        axes=[2, 3],
        mode=mode,
        antialias=0,
        keep_aspect_ratio_policy="stretch",
        coordinate_transformation_mode="half_pixel",
        rtol=1e-4,
        atol=1e-5,
    )


def test_antialias_is_refused_only_where_it_matters() -> None:
    inputs = {"x": floats(1, 1, 4, 4), "roi": None, "scales": None, "sizes": np.array([2, 2])}
    options: dict[str, Any] = {"axes": [2, 3], "mode": "linear", "antialias": 1}
    refused("Resize.*antialiasing", 17, "Resize", inputs, constants=["sizes"], **options)
    inputs["sizes"] = np.array([8, 6])
    check(
        "Resize",
        inputs,
        since=18,
        constants=["sizes"],
        dynamic=[False],
        rtol=1e-4,
        atol=1e-5,
        **options,
    )


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_scatter_elements_of_extremes(reduction: str, axis: int, dtype: type) -> None:
    inputs = {
        "x": (floats(4, 5) * 5).astype(dtype),
        "i": RNG.integers(-4, 4, (3, 4)),  # with repetitions
        "u": (floats(3, 4) * 5).astype(dtype),
    }
    expected = torch.from_numpy(inputs["x"]).scatter_reduce(
        axis,
        torch.from_numpy(inputs["i"] % (4 if axis == 0 else 5)),
        torch.from_numpy(inputs["u"]),
        f"a{reduction}",
    )
    check(
        "ScatterElements",
        inputs,
        since=18,
        reduction=reduction,
        axis=axis,
        expected=[expected.numpy()],
    )


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("depth", [1, 2])
def test_scatter_nd_of_extremes(reduction: str, depth: int) -> None:
    inputs = {
        "x": floats(4, 4, 2),
        "i": RNG.integers(0, 4, (3, 2, depth)),
        "u": floats(3, 2, *(4, 4, 2)[depth:]),
    }
    check("ScatterND", inputs, since=18, constants=["i"], reduction=reduction)


def test_scatter_add_stays() -> None:
    inputs = {"x": floats(3), "i": np.array([0, 0]), "u": floats(2)}
    check("ScatterElements", inputs, since=18, reduction="add")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mish(dtype: type) -> None:
    x = floats(3, 4, dtype=dtype)
    expected = torch.nn.functional.mish(torch.from_numpy(x)).numpy()
    check("Mish", {"x": x}, since=18, expected=[expected])


INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64]


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(op_type: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, (3, 4), dtype=dtype, endpoint=True)
    y = RNG.integers(info.min, info.max, (4,), dtype=dtype, endpoint=True)
    check(op_type, {"x": x, "y": y}, since=18, lowest=11)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise_not(dtype: type) -> None:
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (5,), dtype=dtype)
    check("BitwiseNot", {"x": x}, since=18)


@pytest.mark.parametrize("target", [[3, 8], [7, 7], [4, 5]])
@pytest.mark.parametrize("constant", [False, True])
def test_center_crop_pad(target: list[int], constant: bool) -> None:
    inputs = {"x": floats(2, 6, 5), "shape": np.array(target)}
    constants = ["shape"] if constant else []
    check("CenterCropPad", inputs, since=18, constants=constants, axes=[1, 2])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("constant_image", [False, True])
def test_col2im(stride: int, dilation: int, padding: int, constant_image: bool) -> None:
    geometry = {"kernel_size": (2, 3), "stride": stride, "dilation": dilation, "padding": padding}
    columns = torch.nn.functional.unfold(torch.randn(2, 3, 6, 8), **geometry)
    expected = torch.nn.functional.fold(columns, (6, 8), **geometry).numpy()
    check(
        "Col2Im",
        {"x": columns.numpy(), "image": np.array([6, 8]), "block": np.array([2, 3])},
        since=18,
        constants=["block", "image"] if constant_image else ["block"],
        strides=[stride] * 2,
        dilations=[dilation] * 2,
        pads=[padding] * 4,
        expected=[expected],
    )


def test_optional_of_a_tensor() -> None:
    refused("OptionalGetElement.*needs opset 18", 17, "OptionalGetElement", {"x": floats(2)})
    refused("OptionalHasElement.*needs opset 18", 17, "OptionalHasElement", {"x": floats(2)})


def test_lp_pool_with_ceil_mode_is_refused_and_plain_is_not() -> None:
    x = np.abs(floats(1, 2, 5, 5))
    refused("LpPool.*ceil_mode", 17, "LpPool", {"x": x}, kernel_shape=[2, 2], ceil_mode=1)
    check("LpPool", {"x": x}, since=18, kernel_shape=[2, 2], ceil_mode=0, dilations=None)
