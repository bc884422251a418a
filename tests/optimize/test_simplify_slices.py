import numpy as np
import pytest

from sardonyx.optimize.simplify_slices import SimplifySlices
from tests.optimize.comparison import check, floats, parse

INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("start", "end", "axis", "step", "stays"),
    [
        (0, INT64_MAX, 0, 1, False),
        (0, INT64_MAX, -1, 1, False),
        (0, 4, 1, 1, False),
        (0, 9, -1, 1, False),
        (0, 3, 1, 1, True),
        (1, INT64_MAX, 1, 1, True),
        (0, INT64_MAX, 1, 2, True),
        (-1, -INT64_MAX, 1, -1, True),
        (0, 4, 0, 1, True),
    ],
)
def test_slice(start, end, axis, step, stays):
    model = parse(
        "g (float[N, 4] x) => (float[A, B] y) { a = Slice(x, s, e, axis, step) y = Relu(a) }",
        initializers={
            "s": np.array([start]),
            "e": np.array([end]),
            "axis": np.array([axis]),
            "step": np.array([step]),
        },
        infer=False,
    )
    runs = [{"x": floats(n, 4)} for n in (2, 6)]
    assert (check(SimplifySlices(), model, *runs)["Slice"] == 1) == stays


def test_slice_of_equal_length_with_unknown_bounds():
    model = parse(
        """g (float[4] x, int64[1] s, int64[1] e, int64[1] axis, int64[1] step)
            => (float[4] y, float[4] z) {
            a = Slice(x, s, e) b = Relu(a) y = Neg(b)
            c = Slice(x, s, e, axis, step) d = Relu(c) z = Neg(d) }""",
        infer=False,
    )
    for node in model.graph:
        node.outputs[0].shape = model.graph.outputs[0].shape
    feeds = {
        "x": floats(4),
        "s": np.array([0]),
        "e": np.array([4]),
        "axis": np.array([0]),
        "step": np.array([1]),
    }
    assert check(SimplifySlices(), model, feeds)["Slice"] == 1


def test_pad():
    model = parse(
        """g (float[2, 4] x) => (float[A, B] y, float[C, D] z) {
            a = Pad(x, none) y = Relu(a) b = Pad <mode = "reflect"> (x, shift) z = Relu(b) }""",
        initializers={"none": np.zeros(4, np.int64), "shift": np.array([0, 1, 0, -1])},
    )
    assert check(SimplifySlices(), model, {"x": floats(2, 4)}) == {"Pad": 1, "Relu": 2}
