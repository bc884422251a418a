"""`legalize` as a whole: subgraphs, functions, names, versions, errors."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import InternalError, UnsupportedOpsetError
from sardonyx.legalize import SUPPORTED_OPSETS, legalize, newest_opset
from tests.legalize.single_op import model_of, run_lowered

NEWEST = newest_opset()
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def parsed(text: str) -> ir.Model:
    model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        node.metadata_props["sardonyx.module"] = "block.0"
        node.metadata_props["sardonyx.source"] = "net.py:12"
        node.metadata_props["sardonyx.code"] = "y = f(x)"
    return model


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("opset", "ir_version"),
    [(9, 4), (11, 6), (13, 7), (17, 8), (18, 8), (19, 9), (20, 9), (21, 10), (23, 11), (26, 13)],
)
def test_opset_and_ir_version(opset: int, ir_version: int) -> None:
    model = model_of("Relu", {"x": X})
    legalize(model, opset)
    assert model.opset_imports[""] == opset
    assert model.ir_version == ir_version
    np.testing.assert_array_equal(run_lowered(model, {"x": X})[0], np.maximum(X, 0))


@pytest.mark.parametrize("opset", [SUPPORTED_OPSETS[0] - 1, NEWEST + 1])
def test_opsets_out_of_range(opset: int) -> None:
    with pytest.raises(UnsupportedOpsetError, match=f"opset {opset} is not supported: choose"):
        legalize(model_of("Relu", {"x": X}), opset)


def test_a_model_is_never_raised() -> None:
    model = model_of("Relu", {"x": X})
    legalize(model, 18)
    with pytest.raises(InternalError):
        legalize(model, 20)


def test_bodies_of_if_and_loop() -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (float[N, 3] x, bool c, int64 trips) => (float[N, 3] y) {{
            y = If <
                then_branch = t () => (float[N, 3] a) {{ a = SwiGLU(x, x) }},
                else_branch = e () => (float[N, 3] b) {{
                    b = Loop <body = l (int64 i, bool go, float[N, 3] s)
                              => (bool stay, float[N, 3] n) {{
                        stay = Identity(go)
                        n = Gelu(s)
                    }}> (trips, , x)
                }}> (c)
        }}"""
    )
    legalize(model, 17)
    onnx.checker.check_model(ir.to_proto(model))
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    assert not {"SwiGLU", "Swish", "Gelu"} & {node.op_type for node in nodes}
    assert all(node.metadata_props["sardonyx.module"] == "block.0" for node in nodes)
    names = [value.name for node in nodes for value in node.outputs]
    assert len(names) == len(set(names))
    trips = np.array(2)
    swiglu = run_lowered(model, {"x": X, "c": np.array(True), "trips": trips})[0]
    np.testing.assert_allclose(swiglu, X * sigmoid(X) * X, rtol=1e-5)
    gelu = torch.nn.functional.gelu
    twice = run_lowered(model, {"x": X, "c": np.array(False), "trips": trips})[0]
    np.testing.assert_allclose(twice, gelu(gelu(torch.from_numpy(X))), rtol=1e-4, atol=1e-6)


def test_functions() -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}, "local" : 1]>
        agraph (float[N, 3] x) => (float[N, 3] y) {{ y = local.gate(x) }}
        <domain: "local", opset_import: ["" : {NEWEST}]>
        gate (a) => (b) {{ b = Swish(a) }}"""
    )
    legalize(model, 17)
    (function,) = model.functions.values()
    assert function.opset_imports[""] == 17
    assert [node.op_type for node in function] == ["Sigmoid", "Mul"]
    np.testing.assert_allclose(run_lowered(model, {"x": X})[0], X * sigmoid(X), rtol=1e-5)


def test_graph_outputs_keep_their_names_and_types() -> None:
    model = model_of("Gelu", {"x": X}, dynamic=True)
    shape, type_ = model.graph.outputs[0].shape, model.graph.outputs[0].type
    legalize(model, 17)
    (out,) = model.graph.outputs
    assert (out.name, out.shape, out.type) == ("out0", shape, type_)


def test_ranks_that_the_model_does_not_state() -> None:
    """An old form of GatherElements has to know how many axes there are."""
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (float[N, 3] x, int64[N, M] i) => (float[N, M] y) {{
            s = Shape(x)
            e = Expand(x, s)
            n = Neg(e)
            y = GatherElements <axis = 1> (n, i)
        }}"""
    )
    legalize(model, 9)
    index = np.array([[0, 2], [1, 1]])
    (got,) = run_lowered(model, {"x": X, "i": index})
    np.testing.assert_array_equal(got, -np.take_along_axis(X, index, 1))


def test_an_output_that_becomes_an_input_is_an_identity() -> None:
    model = model_of("BitCast", {"x": X}, to=ir.DataType.FLOAT.value)
    legalize(model, 25)
    assert [node.op_type for node in model.graph] == ["Identity"]


def test_intermediate_values_have_types_and_shapes() -> None:
    model = model_of("Gelu", {"x": X}, dynamic=True)
    legalize(model, 17)
    for node in model.graph:
        for value in node.outputs:
            assert value.dtype == ir.DataType.FLOAT
            assert value.shape is not None


def test_legalizing_is_deterministic() -> None:
    texts = []
    for _ in range(2):
        model = model_of("Attention", {name: X.reshape(1, 2, 3, 1) for name in "qkv"}, is_causal=1)
        legalize(model, 17)
        texts.append(ir.to_proto(model).SerializeToString(deterministic=True))
    assert texts[0] == texts[1]


def test_default_attributes_are_dropped() -> None:
    model = model_of("Cast", {"x": X}, to=7, saturate=1, round_mode="up")
    legalize(model, 23)
    assert set(model.graph[0].attributes) == {"to", "saturate"}
    legalize(model, 18)
    assert set(model.graph[0].attributes) == {"to"}


def test_all_refusals_come_in_one_error() -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (float[3] x, int64[1] i, float[1, 1, 4, 4] v, float[1, 1, 2, 2] w,
                float[1, 8, 3, 3] o) => (float[1] y, float[1, 1, 3, 3] z) {{
            m = ReduceMax <keepdims = 1> (x, i)
            y = Gelu(m)
            z = DeformConv(v, w, o)
        }}"""
    )
    with pytest.raises(UnsupportedOpsetError) as caught:
        legalize(model, 17)
    message = str(caught.value)
    assert message.splitlines()[0] == "opset 17 cannot express 2 operators of this model"
    assert "its axes are computed by the model; needs opset 18" in message
    assert "it came with opset 19; needs opset 19" in message
    assert message.count("block.0 · net.py:12   y = f(x)") == 2
    assert message.splitlines()[-1].split() == ["try", "opset_version=19"]


def test_an_unknown_operator_is_refused_at_the_newest_opset_too() -> None:
    model = model_of("NoSuchOperator", {"x": X})
    with pytest.raises(UnsupportedOpsetError, match=r"NoSuchOperator.*no newer opset has it"):
        legalize(model, NEWEST)


def test_refused_types_name_the_lowest_opset() -> None:
    model = model_of("Identity", {"x": X})
    model.graph.inputs[0].type = ir.TensorType(ir.DataType.FLOAT8E4M3FN)
    model.graph.outputs[0].type = ir.TensorType(ir.DataType.FLOAT8E4M3FN)
    with pytest.raises(
        UnsupportedOpsetError, match=r"tensor\(float8e4m3fn\) there; needs opset 19"
    ):
        legalize(model, 18)


def test_bfloat16_is_refused_where_nothing_takes_it() -> None:
    model = model_of("Unsqueeze", {"x": X, "axes": np.array([0])}, constants=["axes"])
    for value in (model.graph.inputs[0], model.graph.outputs[0]):
        value.type = ir.TensorType(ir.DataType.BFLOAT16)
    message = r"Unsqueeze +bfloat16 came with opset 13; needs opset 13"
    with pytest.raises(UnsupportedOpsetError, match=message):
        legalize(model, 9)


@pytest.mark.parametrize("op", ["Cos(h)", "Softplus(h)", "HardSwish(h)", "GlobalAveragePool(h)"])
def test_bfloat16_runs_in_float32_where_the_operator_lacks_it(op: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (float[N, 3, 1] x) => (float[N, 3, 1] y) {{
            h = Cast <to = 16> (x)
            r = {op}
            y = Cast <to = 1> (r)
        }}"""
    model = parsed(text)
    for name in ("h", "r"):
        value = next(v for n in model.graph for v in n.outputs if v.name == name)
        value.type, value.shape = ir.TensorType(ir.DataType.BFLOAT16), ir.Shape(["N", 3, 1])
    legalize(model, 17)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    feeds = {"x": X[..., None]}
    got = run_lowered(model, feeds)[0]
    wide = parsed(text.replace("to = 16", "to = 1"))
    legalize(wide, 26)
    np.testing.assert_allclose(got, run_lowered(wide, feeds)[0], rtol=1e-2, atol=1e-2)


def test_float16_is_inf() -> None:
    x = np.array([1, np.inf, -np.inf, np.nan], dtype=np.float16)
    model = model_of("IsInf", {"x": x})
    legalize(model, 19)
    assert run_lowered(model, {"x": x})[0].tolist() == [False, True, True, False]


def test_bfloat16_random_normal_asks_for_float32() -> None:
    model = model_of("RandomNormal", {}, dtype=16, shape=[2, 3])
    legalize(model, 20)
    assert [node.op_type for node in model.graph] == ["RandomNormal", "Cast"]
    assert model.graph[0].attributes["dtype"].as_int() == 1


def test_omitted_outputs_stay_omitted() -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (float[1, 2, 3, 4] q) => (float[1, 2, 3, 4] y, float[1, 2, 3, 3] s) {{
            y, , , s = Attention(q, q, q)
        }}"""
    )
    legalize(model, 20)
    onnx.checker.check_model(ir.to_proto(model))
    q = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4) / 24
    product = run_lowered(model, {"q": q})[1]
    np.testing.assert_allclose(product, q @ q.swapaxes(2, 3) / 2, rtol=1e-5)

    model = parsed(
        f"""<ir_version: 10, opset_import: ["" : {NEWEST}]>
        agraph (bfloat16[5, 1, 2] x, bfloat16[1, 12, 2] w, bfloat16[1, 12, 3] r)
            => (bfloat16[1, 1, 3] c) {{
            , , c = LSTM <hidden_size = 3> (x, w, r)
        }}"""
    )
    legalize(model, 21)
    (lstm,) = (node for node in model.graph if node.op_type == "LSTM")
    assert [value.name for value in lstm.outputs[:2]] == ["", ""]
    assert [node.op_type for node in model.graph] == ["Cast", "Cast", "Cast", "LSTM", "Cast"]


def test_a_replacement_that_is_refused_names_its_origin() -> None:
    model = model_of("Mod", {name: X.astype(np.float16) for name in "ab"})
    for value in [*model.graph.inputs, *model.graph.outputs]:
        value.type = ir.TensorType(ir.DataType.FLOAT8E5M2)
    with pytest.raises(UnsupportedOpsetError, match=r"\(of Mod\)"):
        legalize(model, 27)
