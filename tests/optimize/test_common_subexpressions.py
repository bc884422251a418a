import numpy as np
import pytest

from sardonyx.optimize.common_subexpressions import CommonSubexpressions
from sardonyx.optimize.pipeline import optimize
from tests.optimize.comparison import check, floats, parse


def test_equal_chains_merge():
    model = parse(
        """g (float[3] x) => (float[3] y) {
            a = Exp(x) b = Neg(a) c = Exp(x) d = Neg(c) y = Add(b, d) }"""
    )
    assert check(CommonSubexpressions(), model, {"x": floats(3)}) == {"Exp": 1, "Neg": 1, "Add": 1}


def test_equal_constants_merge_and_types_and_signs_keep_them_apart():
    model = parse(
        """g (float[1] x) => (float[1] y, int64[1] z) {
            a = Constant <value = float[1] {0.0}> () b = Constant <value = float[1] {0.0}> ()
            c = Constant <value = float[1] {-0.0}> () d = Constant <value = int64[1] {0}> ()
            p = Add(x, a) q = Add(p, b) y = Add(q, c) z = Add(d, d) }"""
    )
    check(CommonSubexpressions(), model, {"x": floats(1)})
    assert sum(node.op_type == "Constant" for node in model.graph) == 3


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Sub(x, w)", "Sub(w, x)"),
        ("Softmax <axis = 0> (x)", "Softmax <axis = 1> (x)"),
        ("LeakyRelu <alpha = 0.0> (x)", "LeakyRelu <alpha = -0.0> (x)"),
        ("Relu(x)", "Neg(x)"),
    ],
)
def test_different_nodes_stay_apart(left, right):
    model = parse(
        f"""g (float[2, 3] x, float[2, 3] w) => (float[2, 3] y) {{
            a = {left} b = {right} y = Add(a, b) }}"""
    )
    check(CommonSubexpressions(), model, {"x": floats(2, 3), "w": floats(2, 3, seed=1)})
    assert len(model.graph) == 3


def test_two_outputs_of_equal_value_keep_both_names():
    model = parse(
        """g (float[3] x) => (float[3] y, float[3] z, float[3] u) {
            y = Exp(x) z = Exp(x) u = Neg(z) }"""
    )
    assert check(optimize, model, {"x": floats(3)}) == {"Exp": 1, "Identity": 1, "Neg": 1}


def test_nodes_with_several_outputs():
    model = parse(
        """g (float[2, 4] x) => (float[2, 2] y, float[2, 2] q) {
            a, b = Split <axis = 1, num_outputs = 2> (x)
            p, q = Split <axis = 1, num_outputs = 2> (x)
            y = Add(a, p) }"""
    )
    assert check(CommonSubexpressions(), model, {"x": floats(2, 4)}) == {"Split": 1, "Add": 1}


def test_the_same_output_twice_over_an_input():
    model = parse("g (float[3] x) => (float[3] y, float[3] z) { y = Identity(x) z = Identity(x) }")
    assert check(optimize, model, {"x": floats(3)}) == {"Identity": 2}


@pytest.mark.parametrize(
    "draw",
    [
        "RandomNormalLike(x)",
        "RandomUniformLike(x)",
        "RandomNormal <shape = [3]> ()",
        "RandomUniform <shape = [3]> ()",
        "Bernoulli(p)",
        "Dropout(x, ratio, on)",
    ],
)
def test_random_draws_stay_apart(draw):
    model = parse(
        f"""g (float[3] x, float[3] p) => (float[3] y) {{
            ratio = Constant <value_float = 0.5> () on = Constant <value = bool {{1}}> ()
            a = {draw} b = {draw} y = Add(a, b) }}"""
    )
    optimize(model)
    assert sum(node.op_type == draw.split("(")[0].split(" ")[0] for node in model.graph) == 2


def test_multinomial_stays_apart():
    model = parse(
        """g (float[1, 3] x) => (int32[1, 1] y) {
            a = Multinomial(x) b = Multinomial(x) y = Add(a, b) }"""
    )
    optimize(model)
    assert len(model.graph) == 3


def test_operators_of_unknown_domains_stay_apart():
    model = parse("g (float[3] x) => (float[3] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }")
    model.graph.opset_imports["custom"] = 1
    for node in list(model.graph)[:2]:
        node.domain = "custom"
    assert not CommonSubexpressions()(model).modified


def test_bodies_reuse_what_was_computed_before_them_but_not_each_other():
    model = parse(
        """g (float[3] x, bool c) => (float[3] y, float[3] z) {
            a = Exp(x)
            y = If (c) <
                then_branch = t () => (float[3] t_out) { b = Exp(x) n = Neg(x) t_out = Add(b, n) },
                else_branch = e () => (float[3] e_out) { m = Neg(x) e_out = Mul(m, m) }>
            o = Neg(x)
            z = Add(a, o)
        }"""
    )
    runs = [{"x": floats(3), "c": np.array(value)} for value in (True, False)]
    counts = check(CommonSubexpressions(), model, *runs)
    assert counts == {"Exp": 1, "If": 1, "Neg": 3, "Add": 2, "Mul": 1}


def test_calls_of_functions_merge_unless_something_in_them_is_random():
    model = parse(
        """g (float[3] x) => (float[3] y, float[3] z) {
            a = local.pure(x) b = local.pure(x) y = Add(a, b)
            c = local.outer(x) d = local.outer(x) z = Add(c, d) }""",
        functions="""
            <domain: "local", opset_import: ["": 20]> pure (a) => (b) { b = Exp(a) }
            <domain: "local", opset_import: ["": 20, "local": 1]>
                outer (a) => (b) { b = local.noise(a) }
            <domain: "local", opset_import: ["": 20]>
                noise (a) => (b) { b = RandomNormalLike(a) }""",
        infer=False,
    )
    CommonSubexpressions()(model)
    calls = [node.op_type for node in model.graph]
    assert sorted(calls) == ["Add", "Add", "outer", "outer", "pure"]
