import numpy as np
import onnx_ir as ir
import pytest

from sardonyx.optimize.fold_shapes import FoldShapes
from sardonyx.optimize.pipeline import optimize
from tests.optimize.comparison import check, floats, parse


def test_shape_of_a_static_value():
    model = parse("g (float[2, 3] x) => (int64[2] y, int64 n) { y = Shape(x) n = Size(x) }")
    assert not check(FoldShapes(), model, {"x": floats(2, 3)})


def test_static_dim_among_symbolic_ones():
    model = parse(
        """g (float[N, 3, 4] x) => (int64 y, int64[1] z) {
            s = Shape(x) i = Constant <value_int = 1> () y = Gather(s, i)
            z = Shape <start = 2> (x) }"""
    )
    assert check(optimize, model, {"x": floats(5, 3, 4)}) == {}


def test_symbolic_dim_is_not_a_constant():
    model = parse(
        """g (float[N, 3] x) => (int64 y) {
            s = Shape(x) i = Constant <value_int = 0> () y = Gather(s, i) }"""
    )
    runs = [{"x": floats(n, 3)} for n in (2, 7)]
    assert check(optimize, model, *runs) == {"Shape": 1, "Gather": 1}


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("Add(a, b)", 2),
        ("Sub(a, b)", 2),
        ("Mul(a, b)", 2),
        ("Div(a, b)", 2),
        ("Mod(a, b)", 2),
        ("Mod <fmod = 1> (a, b)", 2),
        ("Max(a, b)", 2),
        ("Min(a, b)", 2),
        ("Neg(a)", 1),
        ("Abs(a)", 1),
        ("Where(c, a, b)", 3),
        ("Concat <axis = 0> (a, b)", 2),
        ("Gather(a, i)", 2),
        ("ReduceProd(a)", 1),
        ("ReduceProd <keepdims = 1> (a, zero)", 2),
        ("Slice(a, i, j)", 3),
        ("Slice(a, j, low, zero, minus)", 3),
        ("Cast <to = 7> (d)", 1),
        ("Cast <to = 7> (c)", 1),
    ],
)
def test_arithmetic_is_what_onnx_says(expression, inputs):
    constants = {
        "a": [7, -7, 5],
        "b": [2, 2, -3],
        "i": [1],
        "j": [2],
        "zero": [0],
        "low": [-(2**63)],
        "minus": [-1],
    }
    model = parse(
        f"g (float[1] x) => (int64[K] y) {{ y = {expression} }}",
        initializers={
            **{name: np.array(values, np.int64) for name, values in constants.items()},
            "c": np.array([True, False, True]),
            "d": np.array([1, -2, 3], np.int32),
        },
        infer=False,
    )
    assert not check(FoldShapes(), model, {"x": floats(1)})
    assert inputs


@pytest.mark.parametrize("op", ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
def test_comparisons(op):
    model = parse(
        f"""g (float[1] x) => (bool[3] y, bool[3] z) {{
            y = {op}(a, b) n = Not(y) o = Or(n, c) z = And(o, c) }}""",
        initializers={
            "a": np.array([1, 2, 3]),
            "b": np.array([3, 2, 1]),
            "c": np.array([True, False, True]),
        },
    )
    assert not check(FoldShapes(), model, {"x": floats(1)})


def test_division_by_zero_and_overflow_are_left_to_the_runtime():
    model = parse(
        "g (float[1] x) => (int64[1] y, int64[1] z) { y = Div(a, b) z = Mul(a, a) }",
        initializers={"a": np.array([2**40]), "b": np.array([0])},
        infer=False,
    )
    assert not FoldShapes()(model).modified


def test_floats_large_and_two_dimensional_constants_are_left_alone():
    model = parse(
        """g (float[1] x) => (float[1] f, int64[65] n, int64[1, 2] m) {
            f = Add(a, a) n = Add(b, b) m = Add(c, c) }""",
        initializers={
            "a": floats(1),
            "b": np.arange(65),
            "c": np.array([[1, 2]]),
        },
    )
    assert not FoldShapes()(model).modified


VIEW = """g (float[{source}] x) => (float[{result}] y) {{
    s = Shape(x)
    zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
    d0 = Gather(s, zero) d1 = Gather(s, one)
    {body} y = Relu(r) }}"""


def view(source: str, result: str, body: str) -> ir.Model:
    return parse(VIEW.format(source=source, result=result, body=body))


def test_reshape_with_one_symbolic_size():
    model = view(
        "N, 3, 4",
        "N, 12",
        "k = Constant <value_ints = [12]> () t = Concat <axis = 0> (d0, k) r = Reshape(x, t)",
    )
    runs = [{"x": floats(n, 3, 4)} for n in (2, 0, 5)]
    assert check(optimize, model, *runs) == {"Reshape": 1, "Relu": 1}


def test_reshape_with_a_computed_size():
    model = view(
        "N, 3, 4",
        "M, 4",
        """k = Constant <value_ints = [4]> () m = Mul(d0, d1)
        t = Concat <axis = 0> (m, k) r = Reshape <allowzero = 1> (x, t)""",
    )
    runs = [{"x": floats(n, 3, 4)} for n in (2, 0, 5)]
    assert check(optimize, model, *runs) == {"Reshape": 1, "Relu": 1}


def test_reshape_that_keeps_leading_symbolic_sizes():
    model = view(
        "N, S, 6",
        "N, S, 2, 3",
        """k = Constant <value_ints = [2, 3]> ()
        t = Concat <axis = 0> (d0, d1, k) r = Reshape(x, t)""",
    )
    runs = [{"x": floats(*dims)} for dims in ((2, 5, 6), (0, 5, 6), (2, 0, 6))]
    assert check(optimize, model, *runs) == {"Reshape": 1, "Relu": 1}


def test_reshape_that_swaps_symbolic_sizes_is_still_computed():
    model = view("N, S", "S, N", "t = Concat <axis = 0> (d1, d0) r = Reshape(x, t)")
    runs = [{"x": floats(*dims)} for dims in ((2, 5), (3, 4))]
    assert check(optimize, model, *runs)["Shape"] == 1


def test_expand_that_keeps_a_symbolic_size():
    model = view(
        "N, 1",
        "N, 7",
        "k = Constant <value_ints = [7]> () t = Concat <axis = 0> (d0, k) r = Expand(x, t)",
    )
    runs = [{"x": floats(n, 1)} for n in (1, 3)]
    assert check(optimize, model, *runs) == {"Expand": 1, "Relu": 1}


def test_expand_to_a_size_of_another_value_is_still_computed():
    model = parse(
        """g (float[1, 3] x, float[N, 3] like) => (float[N, 3] y) {
            s = Shape(like) y = Expand(x, s) }"""
    )
    runs = [{"x": floats(1, 3), "like": floats(n, 3)} for n in (1, 4)]
    assert check(optimize, model, *runs) == {"Shape": 1, "Expand": 1}


def test_bodies_know_the_sizes_outside_them():
    model = parse(
        """g (float[2, 3] x, bool c) => (float[6] y) {
            s = Shape(x)
            y = If (c) <
                then_branch = t () => (float[6] t_out) {
                    n = ReduceProd(s) t_out = Reshape(x, n) },
                else_branch = e () => (float[6] e_out) {
                    m = ReduceProd(s) neg = Neg(x) e_out = Reshape(neg, m) }>
        }"""
    )
    runs = [{"x": floats(2, 3), "c": np.array(value)} for value in (True, False)]
    assert check(optimize, model, *runs) == {"If": 1, "Reshape": 2, "Neg": 1}


def test_constant_keeps_the_provenance_of_what_it_replaces():
    model = parse("g (float[2, 3] x) => (int64[2] y) { y = Shape(x) }")
    next(iter(model.graph)).metadata_props["sardonyx.source"] = "model.py:3"
    FoldShapes()(model)
    (node,) = model.graph
    assert (node.op_type, node.metadata_props) == ("Constant", {"sardonyx.source": "model.py:3"})


def test_initializers_that_may_be_replaced_are_no_constants():
    def optimized(**options):
        graph = "g (float[4] x) => (float[N] y) { b = Add(a, a) y = Slice(x, zero, b, zero) }"
        initializers = {"a": np.array([1]), "zero": np.array([0])}
        model = parse(graph, initializers=initializers)
        optimize(model, **options)
        return [node.op_type for node in model.graph]

    assert optimized() == ["Constant", "Slice"]
    assert optimized(fold_parameters=False) == ["Add", "Slice"]
