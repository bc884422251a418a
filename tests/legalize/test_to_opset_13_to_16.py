"""Rules for what opsets 14 to 17 brought."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize
from tests.legalize.single_op import check, model_of, run_lowered

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("axis", [-1, 1, -3])
@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_normalization(axis: int, outputs: int) -> None:
    x = floats(2, 3, 4)
    shape = x.shape[axis:]
    inputs = {"x": x, "scale": floats(*shape), "bias": floats(*shape)}
    check("LayerNormalization", inputs, since=17, axis=axis, outputs=outputs, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_layer_normalization_in_other_types(dtype: type) -> None:
    x, scale = floats(4, 6, dtype=dtype), floats(6, dtype=dtype)
    expected = torch.nn.functional.layer_norm(
        torch.from_numpy(x).double(), (6,), torch.from_numpy(scale).double()
    )
    tolerance = 5e-3 if dtype == np.float16 else 1e-9
    check(
        "LayerNormalization",
        {"x": x, "scale": scale},
        since=17,
        expected=[expected.numpy().astype(dtype)],
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("op_type", ["DFT", "STFT"])
def test_fourier_transforms_are_refused(op_type: str) -> None:
    inputs = {"x": floats(2, 6, 1), "step": np.array(2), "axis": np.array(1)}
    model = model_of(op_type, inputs, constants=["axis"])
    with pytest.raises(UnsupportedOpsetError, match=rf"{op_type}.*needs opset 17"):
        legalize(model, 16)


def test_windows_are_refused() -> None:
    model = model_of("HannWindow", {"size": np.array(8)})
    with pytest.raises(UnsupportedOpsetError, match=r"HannWindow.*opset 17; needs opset 17"):
        legalize(model, 16)


@pytest.mark.parametrize("reduction", ["add", "mul"])
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements_with_arithmetic(reduction: str, axis: int) -> None:
    inputs = {
        "data": floats(3, 4),
        "indices": np.array([[0, 1, 1, 0], [-1, 1, 0, 0]]),
        "updates": floats(2, 4),
    }
    check("ScatterElements", inputs, since=16, reduction=reduction, axis=axis, atol=1e-5)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_scattering_of_nothing(op_type: str, reduction: str) -> None:
    """ONNX Runtime would end with the process at a Scan over nothing."""
    for dtype in (np.float32, np.int64):
        data = (floats(3) * 5).astype(dtype)
        shape = (0,) if op_type == "ScatterElements" else (0, 1)
        inputs = {"x": data, "i": np.zeros(shape, np.int64), "u": np.zeros(0, dtype)}
        model = model_of(op_type, inputs, reduction=reduction, dynamic=True)
        if op_type == "ScatterND":
            model.graph.inputs[1].shape = ir.Shape(["n", 1])
        legalize(model, 15)
        np.testing.assert_array_equal(run_lowered(model, inputs)[0], data)
        into_nothing = inputs | {"x": np.zeros(0, dtype)}
        assert run_lowered(model, into_nothing)[0].shape == (0,)


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
@pytest.mark.parametrize("depth", [1, 2])
def test_scatter_nd_with_arithmetic(reduction: str, depth: int) -> None:
    indices = np.array([[[0, 1], [2, 3], [0, 1]], [[-1, 0], [1, 1], [0, -2]]])[..., :depth]
    if reduction == "none":
        indices = indices[:1, 1:]
    updates = floats(*indices.shape[:-1], *(3, 4, 2)[depth:])
    inputs = {"data": floats(3, 4, 2), "indices": indices, "updates": updates}
    check("ScatterND", inputs, since=16, reduction=reduction, dynamic=[False], atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_volumetric_grid_sample(mode: str, padding_mode: str, align_corners: int) -> None:
    x = floats(2, 2, 3, 4, 5)
    grid = RNG.uniform(-1.4, 1.4, (2, 2, 3, 2, 3)).astype(np.float32)
    expected = torch.nn.functional.grid_sample(
        torch.from_numpy(x),
        torch.from_numpy(grid),
        mode="bilinear" if mode == "linear" else mode,
        padding_mode=padding_mode,
        align_corners=bool(align_corners),
    ).numpy()
    check(
        "GridSample",
        {"x": x, "grid": grid},
        since=20,
        opsets=[9, 13, 19],
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        expected=[expected],
        atol=1e-5,
    )


@pytest.mark.parametrize("mode", ["output_half_pixel", "half_pixel"])
def test_roi_align(mode: str) -> None:
    inputs = {
        "x": floats(1, 2, 6, 6),
        "rois": np.array([[0, 0, 4, 5], [1, 1, 3, 3]], np.float32),
        "batch": np.array([0, 0]),
    }
    options = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    if mode == "output_half_pixel":
        check(
            "RoiAlign",
            inputs,
            since=16,
            lowest=10,
            coordinate_transformation_mode=mode,
            atol=1e-5,
            **options,
        )
    else:
        model = model_of("RoiAlign", inputs, coordinate_transformation_mode=mode, **options)
        with pytest.raises(UnsupportedOpsetError, match=r"RoiAlign.*half a pixel.*opset 16"):
            legalize(model, 15)


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, None), (-2, None), (0, -1), (1, 3)])
def test_shape(start: int, end: int | None) -> None:
    attributes = {"start": start} | ({} if end is None else {"end": end})
    check("Shape", {"x": floats(2, 3, 4)}, since=15, **attributes)


def test_cast_like() -> None:
    check("CastLike", {"x": floats(3) * 5, "like": np.array([1], np.int32)}, since=15)


def test_bernoulli() -> None:
    chance = np.array([0, 0.3, 1], np.float32).repeat(500)
    model = model_of("Bernoulli", {"x": chance}, dtype=7)
    legalize(model, 9)
    (drawn,) = run_lowered(model, {"x": chance})
    assert drawn.dtype == np.int64
    never, sometimes, always = drawn.reshape(3, 500).mean(1)
    assert (never, always) == (0, 1)
    assert 0.2 < sometimes < 0.4


@pytest.mark.parametrize(("training", "half"), [(0, False), (0, True), (1, False)])
def test_batch_normalization(training: int, half: bool) -> None:
    dtype = np.float16 if half else np.float32
    inputs: dict[str, Any] = {
        "x": floats(3, 2, 4, dtype=dtype),
        "scale": floats(2),
        "bias": floats(2),
        "mean": floats(2),
        "variance": np.abs(floats(2)),
    }
    check(
        "BatchNormalization",
        inputs,
        since=15,
        training_mode=training,
        momentum=0.7,
        outputs=3 if training else 1,
        rtol=1e-2 if half else 1e-4,
        atol=1e-2 if half else 1e-5,
    )


def test_hard_swish() -> None:
    check("HardSwish", {"x": floats(3, 4) * 4}, since=14)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_relu_of_integers(dtype: type) -> None:
    x = np.array([-3, 0, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    check("Relu", {"x": x}, since=14)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_small_integers_wrap(op_type: str, dtype: type) -> None:
    x, y = (RNG.integers(-100, 100, 20).astype(dtype) for _ in range(2))
    y = np.where(y == 0, 1, y).astype(dtype)
    expected = {"Add": x + y, "Sub": x - y, "Mul": x * y}.get(op_type)
    if expected is None:
        expected = np.trunc(x.astype(np.float64) / y).astype(dtype)
    check(op_type, {"x": x, "y": y}, since=14, expected=[expected])


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("offset", [None, -1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_trilu(upper: int, offset: int | None, dtype: type) -> None:
    x = (floats(2, 3, 4) * 3).astype(dtype)
    k = None if offset is None else np.array(offset)
    check("Trilu", {"x": x, "k": k}, since=14, upper=upper)


@pytest.mark.parametrize(
    ("shape", "target"),
    [((2, 6), (3, 4)), ((0, 3), (3, 0)), ((0, 3), (2, 0, 5, 1)), ((4, 0, 2), (0,)), ((3,), (1, 3))],
)
@pytest.mark.parametrize("constant", [True, False])
def test_reshape_to_nothing(
    shape: tuple[int, ...], target: tuple[int, ...], constant: bool
) -> None:
    inputs = {"x": floats(*shape), "shape": np.array(target)}
    constants = ["shape"] if constant else []
    check(
        "Reshape",
        inputs,
        since=14,
        constants=constants,
        allowzero=1,
        dynamic=[False, True] if constant else [False],
        expected=[inputs["x"].reshape(target)],
    )


def test_reshape_keeps_one_node_where_the_result_is_known() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", "m", 4]))
    shape = ir.Value(name="s", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([4]))
    out = ir.Value(
        name="y", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", "m", 2, 2])
    )
    node = ir.node("Reshape", [x, shape], {"allowzero": 1}, outputs=[out])
    graph = ir.Graph([x, shape], [out], nodes=[node], opset_imports={"": 14}, name="reshape")
    model = ir.Model(graph, ir_version=8)
    legalize(model, 13)
    constant, reshape = model.graph
    assert (constant.op_type, reshape.op_type) == ("Constant", "Reshape")
    assert constant.attributes["value"].as_tensor().numpy().tolist() == [0, 0, 2, 2]


def test_recurrent_layers_with_the_batch_first_are_refused() -> None:
    inputs = {"x": floats(2, 5, 3), "w": floats(1, 16, 3), "r": floats(1, 16, 4)}
    model = model_of("LSTM", inputs, hidden_size=4, layout=1)
    with pytest.raises(UnsupportedOpsetError, match=r"LSTM.*layout.*needs opset 14"):
        legalize(model, 13)
