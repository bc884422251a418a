import numpy as np

from sardonyx.optimize.remove_unused import RemoveUnused
from tests.optimize.comparison import check, floats, parse


def test_dead_chain_and_its_initializers_go():
    model = parse(
        "g (float[2, 3] x) => (float[2, 3] y) { a = Mul(x, w)  b = Exp(a)  y = Add(x, v) }",
        initializers={"w": floats(3), "v": floats(3, seed=1)},
    )
    assert check(RemoveUnused(), model, {"x": floats(2, 3)}) == {"Add": 1}
    assert list(model.graph.initializers) == ["v"]


def test_unused_inputs_and_initializers_that_are_inputs_stay():
    model = parse(
        "g (float[3] x, float[3] unused, float[3] w) => (float[3] y) { y = Relu(x) }",
        initializers={"w": floats(3)},
    )
    check(RemoveUnused(), model, {"x": floats(3), "unused": floats(3)})
    assert list(model.graph.initializers) == ["w"]


def test_values_that_only_a_removed_branch_used_go_too():
    model = parse(
        """g (float[3] x, bool c) => (float[3] y) {
            a = Exp(x)
            unused = If (c) <
                then_branch = t () => (float[3] t_out) { t_out = Mul(a, w) },
                else_branch = e () => (float[3] e_out) { e_out = Neg(a) }>
            y = Relu(x)
        }""",
        initializers={"w": floats(3)},
    )
    assert check(RemoveUnused(), model, {"x": floats(3), "c": np.array(True)}) == {"Relu": 1}
    assert not model.graph.initializers


def test_dead_nodes_in_bodies_go():
    model = parse(
        """g (float[3] x, bool c) => (float[3] y) {
            y = If (c) <
                then_branch = t () => (float[3] t_out) { dead = Exp(x)  t_out = Relu(x) },
                else_branch = e () => (float[3] e_out) { e_out = Neg(x) }>
        }""",
    )
    runs = [{"x": floats(3), "c": np.array(value)} for value in (True, False)]
    assert check(RemoveUnused(), model, *runs) == {"If": 1, "Relu": 1, "Neg": 1}


def test_unused_trailing_outputs_go_and_required_ones_stay():
    model = parse(
        """g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y, float[1, 1, 4, 4] s) {
            y, indices = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            both = Concat <axis = 0> (x, x)
            s, t = Split <axis = 0, num_outputs = 2> (both)
        }"""
    )
    check(RemoveUnused(), model, {"x": floats(1, 1, 4, 4)})
    outputs = {node.op_type: len(node.outputs) for node in model.graph}
    assert outputs == {"MaxPool": 1, "Concat": 1, "Split": 2}


def test_functions_nobody_calls_go():
    model = parse(
        "g (float[3] x) => (float[3] y) { y = local.used(x) }",
        functions="""
            <domain: "local", opset_import: ["": 20]> used (a) => (b) { dead = Exp(a) b = Relu(a) }
            <domain: "local", opset_import: ["": 20]> other (a) => (b) { b = Neg(a) }""",
        infer=False,
    )
    check(RemoveUnused(), model, {"x": floats(3)})
    assert [identifier[1] for identifier in model.functions] == ["used"]
    assert len(model.functions["local", "used", ""]) == 1


def test_nothing_to_do_is_reported():
    model = parse("g (float[3] x) => (float[3] y) { y = Relu(x) }")
    assert not RemoveUnused()(model).modified
