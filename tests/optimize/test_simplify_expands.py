import numpy as np
import pytest

from sardonyx.optimize.simplify_expands import SimplifyExpands
from tests.optimize.comparison import check, floats, parse


@pytest.mark.parametrize(
    ("op", "sizes", "stays"),
    [
        ("Expand", [2, 1, 4], False),
        ("Expand", [1, 1, 1], False),
        ("Expand", [4], False),
        ("Expand", [1], False),
        ("Expand", [2, 3, 4], True),
        ("Expand", [1, 2, 1, 4], True),
        ("Tile", [1, 1, 1], False),
        ("Tile", [1, 2, 1], True),
    ],
)
def test_static(op, sizes, stays):
    rank = max(3, len(sizes))
    dims = ", ".join(f"d{axis}" for axis in range(rank))
    model = parse(
        f"g (float[2, 1, 4] x) => (float[{dims}] y) {{ a = {op}(x, s) y = Relu(a) }}",
        initializers={"s": np.array(sizes)},
    )
    assert (check(SimplifyExpands(), model, {"x": floats(2, 1, 4)})[op] == 1) == stays


def test_symbolic_dim_is_kept_by_one_and_not_by_a_number():
    model = parse(
        """g (float[N, 4] x) => (float[N, 4] y, float[A, 4] z) {
            a = Expand(x, s) y = Relu(a) b = Expand(x, t) z = Relu(b) }""",
        initializers={"s": np.array([1, 4]), "t": np.array([3, 4])},
        infer=False,
    )
    runs = [{"x": floats(n, 4)} for n in (1, 3)]
    assert check(SimplifyExpands(), model, *runs) == {"Expand": 1, "Relu": 2}
