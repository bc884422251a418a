import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.simplify_reshapes import SimplifyReshapes
from tests.optimize.comparison import check, floats, parse


@pytest.mark.parametrize(
    ("target", "allow_zero", "reshapes"),
    [
        ([2, 3, 4], 0, 0),
        ([0, 0, 0], 0, 0),
        ([-1, 3, 4], 0, 0),
        ([0, -1, 4], 0, 0),
        ([3, 2, 4], 0, 1),
        ([6, 4], 0, 1),
        ([-1], 0, 1),
    ],
)
def test_reshape_to_the_same_shape(target, allow_zero, reshapes):
    model = parse(
        f"""g (float[2, 3, 4] x) => (float{["d" + str(i) for i in range(len(target))]} y) {{
            a = Reshape <allowzero = {allow_zero}> (x, s) y = Relu(a) }}""".replace("'", ""),
        initializers={"s": np.array(target)},
    )
    counts = check(SimplifyReshapes(), model, {"x": floats(2, 3, 4)})
    assert counts == {"Reshape": reshapes, "Relu": 1} if reshapes else {"Relu": 1}


def test_same_symbol_is_the_same_size():
    model = parse(
        "g (float[N, 4] x) => (float[N, 4] y) { a = Reshape(x, s) y = Relu(a) }",
        initializers={"s": np.array([-1, 4])},
    )
    assert check(SimplifyReshapes(), model, {"x": floats(5, 4)}) == {"Relu": 1}


def test_unknown_dims_are_not_the_same_size():
    model = parse(
        "g (float[?, ?] x, int64[2] s) => (float[?, ?] y) { a = Reshape(x, s) y = Relu(a) }"
    )
    feeds = {"x": floats(2, 6), "s": np.array([4, 3])}
    assert check(SimplifyReshapes(), model, feeds) == {"Reshape": 1, "Relu": 1}


def test_target_that_a_caller_can_override_is_not_constant():
    model = parse(
        "g (float[2, 6] x, int64[2] s) => (float[A, B] y) { a = Reshape(x, s) y = Relu(a) }",
        initializers={"s": np.array([2, 6])},
        infer=False,
    )
    feeds = {"x": floats(2, 6), "s": np.array([4, 3])}
    assert check(SimplifyReshapes(), model, feeds) == {"Reshape": 1, "Relu": 1}


def test_copied_dim_of_the_shape_between_blocks_the_chain():
    model = parse(
        "g (float[6, 4] x) => (float[A, B] y) { a = Reshape(x, s) b = Reshape(a, t) y = Relu(b) }",
        initializers={"s": np.array([3, 8]), "t": np.array([0, 8])},
        infer=False,
    )
    assert check(SimplifyReshapes(), model, {"x": floats(6, 4)})["Reshape"] == 2


def test_copied_dim_that_is_the_same_in_both_does_not():
    model = parse(
        """g (float[N, 2, 6] x) => (float[N, 3, 4] y) {
            a = Reshape(x, s) b = Reshape(a, t) y = Relu(b) }""",
        initializers={"s": np.array([0, 12]), "t": np.array([0, 3, 4])},
    )
    assert check(optimize, model, {"x": floats(5, 2, 6)})["Reshape"] == 1


def test_flatten_and_unsqueeze_before_a_reshape():
    model = parse(
        """g (float[2, 3, 4] x) => (float[8, 3] y, float[2, 12] z) {
            f = Flatten(x) u = Unsqueeze(f, axis) r = Reshape(u, t) y = Relu(r)
            g = Flatten(f) z = Relu(g) }""",
        initializers={"axis": np.array([0]), "t": np.array([8, 3])},
    )
    counts = check(optimize, model, {"x": floats(2, 3, 4)})
    assert counts == {"Reshape": 1, "Flatten": 1, "Relu": 2}


SHAPES = [[24], [2, 12], [2, 3, 4], [4, 6], [1, 24, 1], [-1, 4], [0, -1], [-1], [24, 1]]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
def test_any_chain_becomes_at_most_one_reshape(targets):
    nodes = "".join(f"v{i + 1} = Reshape(v{i}, s{i}) " for i in range(len(targets)))
    shape = (2, 3, 4)
    for target in targets:
        kept = [shape[axis] if size == 0 else size for axis, size in enumerate(target)]
        shape = tuple(-24 // math.prod(kept) if size == -1 else size for size in kept)
    dims = ", ".join(map(str, shape))
    model = parse(
        f"g (float[2, 3, 4] v0) => (float[{dims}] y) {{ {nodes} y = Relu(v{len(targets)}) }}",
        initializers={f"s{i}": np.array(target) for i, target in enumerate(targets)},
    )
    counts = check(optimize, model, {"v0": floats(2, 3, 4)})
    assert counts["Reshape"] <= (1 if [0, -1] not in targets else len(targets))
