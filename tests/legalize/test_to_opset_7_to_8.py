"""Rules for what opsets 8 and 9 brought."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from sardonyx.errors import UnsupportedOpsetError
from sardonyx.legalize import legalize, newest_opset, store_constants
from tests.legalize.single_op import check, model_of, run_lowered

RNG = np.random.default_rng(0)
OPSETS = [7, 8]


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def refused(match: str, opset: int, op_type: str, inputs: Any, **options: Any) -> None:
    model = model_of(op_type, inputs, **options)
    with pytest.raises(UnsupportedOpsetError, match=match):
        legalize(model, opset)


def test_batch_normalization() -> None:
    inputs = {"x": floats(2, 3, 4), **{name: floats(3) for name in "sbm"}}
    inputs["v"] = np.abs(floats(3))
    check("BatchNormalization", inputs, since=9, opsets=OPSETS, atol=1e-5)


def test_is_nan() -> None:
    x = np.array([0, 0.5, 1, -1, np.inf, -np.inf, np.nan], np.float32)
    check("IsNaN", {"x": x}, since=9, opsets=OPSETS)


def test_resize_by_whole_factors() -> None:
    inputs = {"x": floats(1, 2, 3, 4), "roi": None, "scales": np.array([1, 1, 2, 3], np.float32)}
    check(
        "Resize",
        inputs,
        since=9,
        opsets=OPSETS,
        constants=["scales"],
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_constant_of_shape(dtype: type) -> None:
    value = ir.tensor(np.array([1], dtype))
    shape = np.array([2, 3])
    check("ConstantOfShape", {"shape": shape}, since=9, opsets=OPSETS, dynamic=[False], value=value)


@pytest.mark.parametrize("axis", [0, 1])
def test_flatten_of_integers(axis: int) -> None:
    x = RNG.integers(0, 9, (2, 3, 4))
    check("Flatten", {"x": x}, since=9, opsets=OPSETS, axis=axis)


@pytest.mark.parametrize("op_type", ["Greater", "Less"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_comparison_of_integers(op_type: str, dtype: type) -> None:
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, 0, 1, 7, limits.max - 1, limits.max]
    numbers = np.array(edges, dtype)
    x, y = (part.copy() for part in np.meshgrid(numbers, numbers))
    expected = x > y if op_type == "Greater" else x < y
    check(op_type, {"x": x, "y": y}, since=9, opsets=OPSETS, expected=[expected])


@pytest.mark.parametrize("op_type", ["Greater", "Less"])
def test_comparison_of_large_integers_is_refused(op_type: str) -> None:
    inputs = {"x": np.array([1]), "y": np.array([2])}
    refused(r"may not be tensor\(int64\).*needs opset 9", 8, op_type, inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_where(dtype: type) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype)
    inputs = {"c": np.array([[True], [False]]), "x": x, "y": np.array(9).astype(dtype)}
    if dtype == np.float32:
        inputs["x"][0, 1], inputs["y"] = np.inf, np.array(np.nan, dtype)
    check("Where", inputs, since=9, opsets=OPSETS, dynamic=[False])


def test_where_there_is_nothing() -> None:
    inputs = {"c": np.ones((0, 1), np.bool_), "x": floats(1, 3), "y": floats(3)}
    check("Where", inputs, since=9, opsets=OPSETS, dynamic=[False])


def test_a_choice_of_unknown_size_is_refused() -> None:
    inputs = {"c": np.array([True]), "x": floats(1), "y": floats(1)}
    refused(r"Where.*dynamic size came with opset 9", 8, "Where", inputs, dynamic=True)


@pytest.mark.parametrize(
    ("shape", "target"), [((3, 1), (2, 3, 4)), ((1, 3), (2, 3)), ((3,), (3,)), ((), (2,))]
)
def test_expand(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    inputs = {"x": floats(*shape), "shape": np.array(target)}
    check(
        "Expand", inputs, since=8, opsets=[7], constants=["shape"], dynamic=[False], rtol=0, atol=0
    )
    check("Expand", inputs, since=8, opsets=[7], dynamic=[False], rtol=0, atol=0)


def test_expanding_what_may_be_one_is_refused() -> None:
    inputs = {"x": floats(1), "shape": np.array([3])}
    model = model_of("Expand", inputs, constants=["shape"], dynamic=True)
    with pytest.raises(UnsupportedOpsetError, match=r"Expand.*may be 1 at run time.*opset 8"):
        legalize(model, 7)


@pytest.mark.parametrize("op_type", ["Sum", "Mean"])
def test_sums_broadcast(op_type: str) -> None:
    check(op_type, {"a": floats(2, 3), "b": floats(3), "c": floats(2, 1)}, since=8, opsets=[7])


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_extremes(op_type: str) -> None:
    check(op_type, {"a": floats(2, 3), "b": floats(2, 3)}, since=8, opsets=[7], dynamic=[False])
    bounded = {"a": floats(2, 3), "b": np.array(0.25, np.float32)}
    check(op_type, bounded, since=8, opsets=[7], constants=["b"])
    check(op_type, dict(reversed(bounded.items())), since=8, opsets=[7], constants=["b"])
    refused(f"{op_type} with broadcasting came", 7, op_type, {"a": floats(2, 3), "b": floats(3)})


def test_extremes_of_doubles_run() -> None:
    """ONNX Runtime has the oldest form in float32 only: it is computed there, with a note."""
    values = {"a": floats(2, 3, dtype=np.float64), "b": floats(2, 3, dtype=np.float64)}
    check("Max", values, since=8, opsets=[7], dynamic=[False], rtol=1e-6)


def test_places_of_maxima_are_refused() -> None:
    inputs = {"x": floats(1, 1, 4, 4)}
    refused("MaxPool.*2 outputs", 7, "MaxPool", inputs, outputs=2, kernel_shape=[2, 2])


def test_constants_of_integers_are_stored() -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {newest_opset()}]>
        agraph (float[N, 3] x, bool c) => (float[M] y) {{
            y = If <
                then_branch = t () => (float[M] a) {{
                    s = Constant <value = int64[1] {{-1}}> ()
                    a = Reshape(x, s)
                }},
                else_branch = e () => (float[M] b) {{
                    s2 = Constant <value = int64[1] {{-1}}> ()
                    n = Neg(x)
                    b = Reshape(n, s2)
                }}> (c)
        }}"""
    model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    legalize(model, 7)
    store_constants(model)  # once more changes nothing
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    assert "Constant" not in {node.op_type for node in nodes}
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    x = floats(2, 3)
    for choice, expected in ((True, x), (False, -x)):
        (got,) = run_lowered(model, {"x": x, "c": np.array(choice)})
        np.testing.assert_array_equal(got, expected.reshape(-1))
