import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.simplify_casts import SimplifyCasts, is_lossless
from tests.optimize.comparison import check, op_counts, parse

TYPES = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "int8": np.int8,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
}
VALUES = np.array([0, 1, 3, 100, 127, 2.5, 0.1, 65, 7.75, 99.9])


def chain(types: list[str]) -> ir.Model:
    casts = "".join(
        f"v{i + 1} = Cast <to = {onnx.TensorProto.DataType.Value(name.upper())}> (v{i}) "
        for i, name in enumerate(types[1:])
    )
    last = f"v{len(types) - 1}"
    return parse(f"g ({types[0]}[10] v0) => ({types[-1]}[10] y) {{ {casts} y = Identity({last}) }}")


@pytest.mark.parametrize(
    ("types", "casts"),
    [
        (["float", "float"], 0),
        (["float16", "float", "double"], 1),
        (["float16", "float", "float16"], 0),
        (["int8", "int64", "float"], 1),
        (["uint8", "float16", "uint8"], 0),
        (["bool", "int64", "bool"], 0),
        (["int32", "double", "float"], 1),
        (["float", "int64", "float"], 2),
        (["float", "float16", "float"], 2),
        (["double", "float", "int32"], 2),
        (["int64", "double", "int64"], 2),
        (["int32", "float", "int64"], 2),
        (["int8", "uint8", "int64"], 2),
        (["float16", "bfloat16", "float"], 2),
        (["bfloat16", "float16", "float"], 2),
        (["int64", "bool", "int64"], 2),
    ],
)
def test_chains(types, casts):
    model = chain(types)
    feeds = {"v0": VALUES.astype(TYPES[types[0]])}
    if "bfloat16" in (types[0], types[-1]):
        optimize(model)
        assert op_counts(model)["Cast"] == casts
    else:
        assert check(optimize, model, feeds)["Cast"] == casts


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([t for t in TYPES if t != "bfloat16"]), min_size=2, max_size=5))
def test_random_chains_give_the_same_bits(types):
    check(optimize, chain(types), {"v0": VALUES.astype(TYPES[types[0]])})


def test_lossless_agrees_with_numpy():
    for source, source_type in TYPES.items():
        for target, target_type in TYPES.items():
            ours = is_lossless(ir.DataType[source.upper()], ir.DataType[target.upper()])
            kinds = np.dtype(source_type).kind + np.dtype(target_type).kind
            if source == "int64" and target == "double":
                assert not ours  # numpy calls it safe although 2**53 + 1 is lost
            elif "V" not in kinds:
                assert ours == np.can_cast(source_type, target_type), (source, target)


def test_cast_like():
    model = parse(
        """g (float[3] x, float[1] f, int64[1] i) => (float[3] y, int64[3] z) {
            a = CastLike(x, f) y = Relu(a) z = CastLike(x, i) }"""
    )
    feeds = {
        "x": np.array([1.5, -2, 3], np.float32),
        "f": np.zeros(1, np.float32),
        "i": np.zeros(1, np.int64),
    }
    assert check(SimplifyCasts(), model, feeds) == {"Relu": 1, "CastLike": 1}


def test_unknown_types_are_left_alone():
    model = parse(
        "g (float[3] x) => (float[3] y) { a = Neg(x) b = Cast <to = 1> (a) y = Relu(b) }",
        infer=False,
    )
    assert not SimplifyCasts()(model).modified
