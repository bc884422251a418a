import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.simplify_transposes import SimplifyTransposes
from tests.optimize.comparison import check, floats, parse


def chain(perms: list[list[int]]) -> ir.Model:
    nodes = "".join(
        f"v{i + 1} = Transpose <perm = {list(perm)}> (v{i}) " for i, perm in enumerate(perms)
    )
    return parse(
        f"g (float[2, 3, 4, 5] v0) => (float[a, b, c, d] y) {{ {nodes} y = Relu(v{len(perms)}) }}"
    )


def test_a_transpose_and_its_inverse():
    model = chain([[0, 2, 3, 1], [0, 3, 1, 2]])
    assert check(optimize, model, {"v0": floats(2, 3, 4, 5)}) == {"Relu": 1}


def test_default_perm_reverses():
    model = parse(
        """g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
            a = Transpose(x) b = Transpose(a) y = Neg(b) }"""
    )
    assert check(optimize, model, {"x": floats(2, 3, 4)}) == {"Neg": 1}


def test_default_perm_of_unknown_rank_is_left_alone():
    model = parse(
        """g (float[2, 3] x) => (float[2, 3] y) {
            n = Neg(x) a = Transpose(n) b = Transpose(a) y = Neg(b) }""",
        infer=False,
    )
    assert not SimplifyTransposes()(model).modified


def test_first_transpose_stays_for_its_other_user():
    model = parse(
        """g (float[2, 3, 4] x) => (float[3, 4, 2] y, float[4, 2, 3] z) {
            a = Transpose <perm = [1, 2, 0]> (x) y = Neg(a)
            b = Transpose <perm = [1, 2, 0]> (a) z = Neg(b) }"""
    )
    assert check(optimize, model, {"x": floats(2, 3, 4)}) == {"Transpose": 2, "Neg": 2}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.permutations([0, 1, 2, 3]), min_size=1, max_size=4))
def test_any_chain_becomes_one_or_none(perms):
    assert check(optimize, chain(perms), {"v0": floats(2, 3, 4, 5)})["Transpose"] <= 1
