import numpy as np
import onnx_ir as ir
import pytest

from sardonyx.optimize.pipeline import optimize
from tests.cost import function_calls
from tests.optimize.comparison import check, floats, parse

BLOCKS = 300


def large_model(blocks: int = BLOCKS) -> ir.Model:
    """3000 nodes: sizes, views, casts and arithmetic, as an unoptimized export has them."""
    block = """
        s{i} = Shape(v{i}) d{i} = Gather(s{i}, zero) t{i} = Concat <axis = 0> (d{i}, k)
        r{i} = Reshape(v{i}, t{i}) a{i} = Transpose <perm = [1, 0]> (r{i})
        b{i} = Transpose <perm = [1, 0]> (a{i}) c{i} = Cast <to = 1> (b{i})
        e{i} = Identity(c{i}) m{i} = Mul(e{i}, w) v{j} = Tanh(m{i})"""
    body = "".join(block.format(i=i, j=i + 1) for i in range(blocks))
    return parse(
        f"g (float[N, 4] v0) => (float[N, 4] y) {{ {body} y = Identity(v{blocks}) }}",
        initializers={"zero": np.array([0]), "k": np.array([4]), "w": floats(4)},
    )


def test_large_model_is_the_same():
    model = large_model()
    assert len(model.graph) > 3000
    counts = check(optimize, model, {"v0": floats(3, 4)}, rtol=1e-6)
    assert counts == {"Mul": BLOCKS, "Tanh": BLOCKS}


def test_twice_the_nodes_are_twice_the_work():
    # The first of two runs in a count is left out, and each needs a model of its own.
    short, long = (iter([large_model(n), large_model(n)]) for n in (BLOCKS // 2, BLOCKS))
    work = function_calls(lambda: optimize(next(long)))
    assert work < 2.2 * function_calls(lambda: optimize(next(short)))


def test_second_run_changes_nothing():
    model = large_model()
    optimize(model)
    once = ir.to_proto(model).SerializeToString(deterministic=True)
    optimize(model)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == once


def test_same_model_gives_the_same_bytes():
    first, second = large_model(), large_model()
    optimize(first)
    optimize(second)
    assert ir.to_proto(first).SerializeToString(deterministic=True) == ir.to_proto(
        second
    ).SerializeToString(deterministic=True)


def test_body_of_a_loop():
    model = parse(
        """g (float[2, 3] x, int64 n) => (float[2, 3] y) {
            go = Constant <value = bool {1}> ()
            y = Loop (n, go, x) <
              body = b (int64 i, bool c, float[2, 3] v) => (bool o, float[2, 3] r) {
                o = Identity(c)
                s = Shape(v) u = Reshape(v, s) t = Transpose <perm = [1, 0]> (u)
                w = Transpose <perm = [1, 0]> (t) d = Cast <to = 1> (w) r = Add(d, x) }>
        }"""
    )
    runs = [{"x": floats(2, 3), "n": np.array(n)} for n in (0, 1, 4)]
    assert check(optimize, model, *runs) == {"Loop": 1, "Identity": 1, "Add": 1}


def test_bodies_of_functions():
    model = parse(
        "g (float[3] x) => (float[3] y) { y = local.f(x) }",
        functions="""<domain: "local", opset_import: ["": 20]> f (a) => (b) {
            c = Identity(a) d = Exp(c) e = Exp(c) u = Neg(d) b = Add(d, e) }""",
        infer=False,
    )
    check(optimize, model, {"x": floats(3)})
    (function,) = model.functions.values()
    assert [node.op_type for node in function] == ["Exp", "Add"]


@pytest.mark.parametrize("opset", [13, 17, 21, 23])
def test_every_opset(opset):
    model = parse(
        """g (float[N, 4] x) => (float[N, 2, 2] y, float[N, 4] z) {
            s = Shape(x) first = Constant <value_ints = [0]> () n = Gather(s, first)
            k = Constant <value_ints = [2, 2]> () t = Concat <axis = 0> (n, k)
            r = Reshape(x, t) u = Unsqueeze(r, first) q = Squeeze(u, first) y = Tanh(q)
            d = Dropout(x) c = Cast <to = 11> (d) f = Cast <to = 1> (c) z = Tanh(f) }""",
        opset=opset,
    )
    runs = [{"x": floats(n, 4)} for n in (1, 3)]
    assert check(optimize, model, *runs) == {"Reshape": 1, "Tanh": 2}
