import numpy as np
import pytest

from sardonyx.optimize.cancel_squeezes import CancelSqueezes
from sardonyx.optimize.pipeline import optimize
from tests.optimize.comparison import check, floats, parse


@pytest.mark.parametrize(
    ("first", "first_axes", "second", "second_axes", "cancels"),
    [
        ("Unsqueeze", [0], "Squeeze", [0], True),
        ("Unsqueeze", [-1], "Squeeze", [3], True),
        ("Unsqueeze", [2, 0], "Squeeze", [-5, 2], True),
        ("Squeeze", [1], "Unsqueeze", [1], True),
        ("Squeeze", [-2], "Unsqueeze", [1], True),
        ("Unsqueeze", [0], "Squeeze", [2], False),
        ("Squeeze", [1], "Unsqueeze", [0], False),
        ("Unsqueeze", [0, 1], "Squeeze", [0], False),
    ],
)
def test_pairs(first, first_axes, second, second_axes, cancels):
    change = len(first_axes) if first == "Unsqueeze" else -1
    rank = 3 + change + (len(second_axes) if second == "Unsqueeze" else -len(second_axes))
    dims = ", ".join(f"d{axis}" for axis in range(rank))
    model = parse(
        f"""g (float[N, 1, 4] x) => (float[{dims}] y) {{
            a = {first}(x, i) b = {second}(a, j) y = Relu(b) }}""",
        initializers={"i": np.array(first_axes), "j": np.array(second_axes)},
    )
    counts = check(CancelSqueezes(), model, {"x": floats(2, 1, 4)})
    assert (counts[second] == 0) == cancels


def test_squeeze_without_axes_is_left_alone():
    model = parse(
        "g (float[1, 4] x) => (float[4] y) { a = Unsqueeze(x, i) b = Squeeze(a) y = Relu(b) }",
        initializers={"i": np.array([0])},
    )
    assert check(CancelSqueezes(), model, {"x": floats(1, 4)})["Squeeze"] == 1


def test_unsqueeze_is_removed_once_unused():
    model = parse(
        "g (float[2] x) => (float[2] y) { a = Unsqueeze(x, i) b = Squeeze(a, i) y = Relu(b) }",
        initializers={"i": np.array([0])},
    )
    assert check(optimize, model, {"x": floats(2)}) == {"Relu": 1}


def test_axes_as_attributes_of_old_opsets():
    model = parse(
        """g (float[2] x) => (float[2] y) {
            a = Unsqueeze <axes = [0]> (x) b = Squeeze <axes = [0]> (a) y = Relu(b) }""",
        opset=11,
    )
    assert check(optimize, model, {"x": floats(2)}) == {"Relu": 1}
