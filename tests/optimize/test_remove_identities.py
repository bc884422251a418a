import numpy as np

from sardonyx.optimize.remove_identities import RemoveIdentities
from tests.optimize.comparison import check, floats, parse


def test_identity_between_nodes():
    model = parse("g (float[3] x) => (float[3] y) { a = Identity(x) b = Relu(a) y = Identity(b) }")
    assert check(RemoveIdentities(), model, {"x": floats(3)}) == {"Relu": 1}
    assert model.graph.outputs[0].producer().op_type == "Relu"


def test_output_that_is_an_input_keeps_its_identity():
    model = parse("g (float[3] x) => (float[3] y, float[3] z) { y = Identity(x) z = Relu(y) }")
    assert check(RemoveIdentities(), model, {"x": floats(3)}) == {"Identity": 1, "Relu": 1}
    assert not RemoveIdentities()(model).modified
    assert model.graph.outputs[1].producer().inputs[0].name == "x"


def test_output_that_is_an_initializer_keeps_its_identity():
    model = parse(
        "g (float[3] x) => (float[3] y, float[3] z) { y = Identity(w) z = Add(x, y) }",
        initializers={"w": floats(3)},
    )
    assert check(RemoveIdentities(), model, {"x": floats(3)}) == {"Identity": 1, "Add": 1}


def test_one_value_under_two_output_names():
    model = parse(
        """g (float[3] x) => (float[3] y, float[3] z, float[3] u) {
            y = Relu(x) z = Identity(y) u = Identity(z) }"""
    )
    assert check(RemoveIdentities(), model, {"x": floats(3)}) == {"Relu": 1, "Identity": 2}


def test_outer_value_as_the_result_of_a_branch_keeps_its_identity():
    model = parse(
        """g (float[3] x, bool c) => (float[3] y) {
            a = Exp(x)
            y = If (c) <
                then_branch = t () => (float[3] t_out) { t_out = Identity(a) },
                else_branch = e () => (float[3] e_out) { b = Identity(a) e_out = Neg(b) }>
        }"""
    )
    runs = [{"x": floats(3), "c": np.array(value)} for value in (True, False)]
    counts = check(RemoveIdentities(), model, *runs)
    assert counts == {"Exp": 1, "If": 1, "Identity": 1, "Neg": 1}


def test_dropout_at_inference_and_concat_of_one():
    model = parse(
        """g (float[3] x) => (float[3] y) {
            ratio = Constant <value_float = 0.5> ()
            off = Constant <value = bool {0}> ()
            a = Dropout(x, ratio) b = Dropout(a, ratio, off)
            c = Concat <axis = 0> (b) y = Relu(c) }"""
    )
    assert check(RemoveIdentities(), model, {"x": floats(3)}) == {"Relu": 1}


def test_dropout_that_may_drop_or_whose_mask_is_used_stays():
    model = parse(
        """g (float[3] x, bool training) => (float[3] y, bool[3] m) {
            ratio = Constant <value_float = 0.0> ()
            a = Dropout(x, ratio, training) b, m = Dropout(a) y = Concat <axis = 0> (b) }"""
    )
    counts = check(RemoveIdentities(), model, {"x": floats(3), "training": np.array(True)})
    assert counts == {"Dropout": 2}


def test_surviving_output_keeps_the_declared_shape_and_the_provenance():
    model = parse("g (float[N] x) => (float[M] y) { a = Relu(x) y = Identity(a) }", infer=False)
    next(iter(model.graph)).metadata_props["sardonyx.module"] = "act"
    RemoveIdentities()(model)
    (node,) = model.graph
    assert node.metadata_props == {"sardonyx.module": "act"}
    assert [dim.value for dim in model.graph.outputs[0].shape] == ["M"]
