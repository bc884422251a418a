"""Sizes in a trace: followed into whatever is computed of them, noted, or refused with the line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import sardonyx
from sardonyx.errors import DynamicDimError, InternalError
from tests.lower.ops.harness import compare

EXAMPLE, OTHERS = 4, (1, 2, 3, 5, 9, 17)


def shares_no_memory(x):
    """The pitfall that the documentation of earlier exporters describes."""
    seq_length, width = x.shape[:2]
    real_seq_length = seq_length
    real_seq_length += 2
    return real_seq_length + seq_length, x.new_zeros(seq_length, width), x.new_ones(real_seq_length)


def doubled_size(x):
    n = x.size(0)
    m = n
    m *= 2
    return x.new_zeros(n), x.new_zeros(m)


def counted_up(x):
    a = b = x.shape[0]
    for _ in range(3):
        a += 1
    return x.new_ones(a), x.new_ones(b)


def every_change_in_place(x):
    a = b = c = d = e = f = g = x.shape[0]
    a -= 1
    b //= 2
    c %= 3
    d **= 2
    e <<= 1
    f /= 4
    g |= 1
    return torch.tensor([a, b, c, d, e, g]), x * f, x.shape[0]


def written_shape_tensor(x):
    shape = torch.tensor(x.shape)
    kept = shape.clone()
    shape[0] *= 2
    return shape, kept, x.new_zeros(x.shape)


def tensors_of_sizes_do_share(x):
    n = torch.tensor(x.shape[0])
    m = n
    m += 1
    return n, m, x.shape[0]


def list_of_sizes(x):
    sizes = list(x.shape)
    sizes[0] += 1
    return x.new_zeros(sizes), x.new_zeros(x.shape)


FOLLOWED = {
    "as_tensor of two": lambda x: torch.as_tensor([x.shape[0], x.shape[1]]),
    "as_tensor of one": lambda x: torch.as_tensor(x.shape[0]),
    "asarray": lambda x: torch.asarray([x.shape[0]]),
    "tensor of one": lambda x: torch.tensor(x.shape[0]),
    "tensor with a number": lambda x: torch.tensor([x.shape[0], 1]),
    "tensor with a float": lambda x: torch.tensor([x.shape[0], 1.5]),
    "tensor of bools too": lambda x: torch.tensor([x.shape[0], True]),
    "tensor of the shape": lambda x: torch.tensor(x.shape),
    "tensor of a list": lambda x: torch.tensor(list(x.shape)),
    "tensor of a nested list": lambda x: torch.tensor([[x.shape[0], 2], [3, x.shape[1]]]),
    "tensor of a dtype": lambda x: torch.tensor(x.shape, dtype=torch.float32),
    "tensor of a quotient": lambda x: torch.tensor([x.shape[0] / 3, 2.0]),
    "tensor in float64": lambda x: torch.tensor(x.shape[0] / 3, dtype=torch.float64),
    "tensor on a device": lambda x: torch.tensor([x.shape[0]], device=x.device, dtype=x.dtype),
    "tensor of values": lambda x: torch.tensor([x[0, 0], x.shape[0], 1.0]),
    "new_tensor": lambda x: x.new_tensor([x.shape[0]]),
    "new_tensor of one": lambda x: x.new_tensor(x.shape[0]),
    "arange": lambda x: torch.arange(x.shape[0]),
    "full": lambda x: torch.full((), x.shape[0]),
    "full of a quotient": lambda x: torch.full((2,), x.shape[0] / 3),
    "sum of shapes": lambda x: x.new_zeros(x.shape[:1] + torch.Size([2])),
    "repeated shape": lambda x: x.new_zeros(x.shape[:1] * 2),
    "prod": lambda x: x.new_zeros(math.prod(x.shape)),
    "sum": lambda x: x.new_zeros(sum(x.shape)),
    "len": lambda x: x.new_zeros(len(x)),
    "len in arithmetic": lambda x: x.sum(0) / len(x),
    "arange of len": lambda x: torch.arange(len(x)),
    "item": lambda x: torch.arange(torch.tensor(x.shape[0]).item()),
    "max": lambda x: x.new_zeros(max(x.shape[0], x.shape[1])),
    "max of a number": lambda x: x.new_zeros(max(5, x.shape[0])),
    "max of a shape": lambda x: x.new_zeros(max(x.shape)),
    "max of many": lambda x: x.new_zeros(max([2, x.shape[0], 7, x.shape[1]])),
    "max of a generator": lambda x: x.new_zeros(max((s for s in x.shape), default=1)),
    "max of floats": lambda x: x * max(x.shape[0] / 3, 2.0),
    "min": lambda x: x.new_zeros(min(x.shape[0], 6, x.shape[1])),
    "half": lambda x: x[: x.shape[0] // 2],
    "rounded up": lambda x: x.new_zeros(-(-x.shape[0] // 8)),
    "ceil": lambda x: x.new_zeros(math.ceil(x.shape[0] / 2)),
    "floor": lambda x: x.new_zeros(math.floor(x.shape[0] * 0.5)),
    "trunc": lambda x: x.new_zeros(math.trunc(x.shape[0] / 3)),
    "round": lambda x: x.new_zeros(round(x.shape[0] / 2)),
    "round of a size": lambda x: x.new_zeros(round(x.shape[0])),
    "divmod": lambda x: torch.tensor(divmod(x.shape[0], 3)),
    "divmod by a size": lambda x: torch.tensor(divmod(20, x.shape[0])),
    "steps that round": lambda x: x.new_zeros(math.floor(x.shape[0] * 0.29 * 100)),
    "ceil of a sum": lambda x: x.new_zeros(math.ceil((x.shape[0] + 3) * 0.1)),
    "ceil of an inner size": lambda x: x.new_zeros(math.ceil(torch.cat([x] * 3).shape[0] * 0.1)),
    "sqrt": lambda x: x / math.sqrt(x.shape[0]),
    "log2": lambda x: x * math.log2(x.shape[0]),
    "square": lambda x: x * x.shape[0] ** 2,
    "power of two": lambda x: x * 2 ** x.shape[0],
    "negative power": lambda x: x * x.shape[0] ** -1,
    "root": lambda x: x * x.shape[0] ** -0.5,
    "reciprocal": lambda x: x * (1 / x.shape[0]),
    "remainder": lambda x: x.new_zeros(x.shape[0] % 3),
    "negative remainder": lambda x: x * (-x.shape[0] % 8),
    "from a number": lambda x: x * (7 - x.shape[0]) * (7 // x.shape[0]) * (20 % x.shape[0]),
    "bits": lambda x: x * ((x.shape[0] & 5) + (x.shape[0] << 1) + (x.shape[0] >> 1)),
    "abs": lambda x: x.new_zeros(abs(2 - x.shape[0])),
    "float64 factor": lambda x: x.double() * (x.shape[0] / 3),
    "float64 root": lambda x: x.double() / math.sqrt(x.shape[0]),
    "float64 clamp": lambda x: x.double().clamp(max=x.shape[0] / 7),
    "integers times a quotient": lambda x: x.int() * (x.shape[0] / 3),
    "bools times a size": lambda x: (x > 3) * x.shape[0],
    "where": lambda x: torch.where(x > 3, x.shape[0] / 3, 0.0),
    "NumPy number": lambda x: x * (x.shape[0] * np.float64(0.5)),
    "NumPy arange": lambda x: x + torch.from_numpy(np.arange(x.shape[0]))[0:1] * x.shape[0],
    "isinstance": lambda x: x * (2 if isinstance(x.shape[0], int) else 3),
    "interpolate": lambda x: F.interpolate(x[None, None], size=(math.ceil(x.shape[0] / 2), 5)),
    "returned": lambda x: (x.shape[0], x.shape[0] / 3, x),
    "no shared memory": shares_no_memory,
    "doubled size": doubled_size,
    "counted up": counted_up,
    "every change in place": every_change_in_place,
    "written shape tensor": written_shape_tensor,
    "tensors of sizes share": tensors_of_sizes_do_share,
    "list of sizes": list_of_sizes,
}


def of_size(n: int) -> torch.Tensor:
    return torch.arange(n * 3.0).reshape(n, 3) + 1


def assert_equal(found, expected, label):
    found = found if isinstance(found, (tuple, list)) else (found,)
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        theirs = theirs if isinstance(theirs, torch.Tensor) else torch.tensor(theirs)
        assert ours.dtype == theirs.dtype
        if theirs.dtype == torch.float64:
            torch.testing.assert_close(ours, theirs, rtol=1e-14, atol=0)
        else:
            compare(theirs, ours, label)


@pytest.mark.parametrize("model", FOLLOWED.values(), ids=FOLLOWED)
def test_a_size_is_followed(model):
    program = sardonyx.export(
        model, (of_size(EXAMPLE),), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    assert program.notes == ()
    for n in (EXAMPLE, *OTHERS):
        assert_equal(program(of_size(n)), model(of_size(n)), f"n = {n}")


def unrolled(x):
    total = x.sum(0)
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


def over_rows(x):
    total = 0
    for row in x:
        total = total * 2 + row
    return total


FIXED = {
    "int": (lambda x: x.new_zeros(int(x.shape[0] * 0.5)), "int(x.shape[0] * 0.5)"),
    "float": (lambda x: x * float(x.shape[0]), "float(x.shape[0])"),
    "range": (unrolled, "for i in range(x.shape[0]):"),
    "rows": (over_rows, "for row in x:"),
    "shapes": (lambda x: x + 1 if x.shape == (4, 3) else x - 1, "x.shape == (4, 3)"),
    "contained": (lambda x: x + 1 if x.shape[0] in (4, 5) else x, "in (4, 5)"),
    "repeated list": (lambda x: torch.tensor([1.0] * x.shape[0]), "[1.0] * x.shape[0]"),
    "numel of the shape": (lambda x: x.new_zeros(x.shape.numel()), "x.shape.numel()"),
}
REFUSED = {
    "digits": (lambda x: x * round(x.shape[0] / 3, 1), "round(x.shape[0] / 3, 1)"),
    "key": (lambda x: x + {4: 1.0}.get(x.shape[0], 2.0), "get(x.shape[0], 2.0)"),
    "format": (lambda x: x + len(f"{x.shape[0]:b}"), "x.shape[0]:b"),
    "NumPy array": (lambda x: torch.as_tensor(np.array(x.shape)), "np.array(x.shape)"),
}
READ_BY_PYTHON = {name: row[0] for name, row in (FIXED | REFUSED).items()}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(("model", "line"), FIXED.values(), ids=FIXED)
def test_a_dynamic_size_that_the_model_fixes_is_refused_with_the_line(model, line, capture):
    with pytest.raises(DynamicDimError) as refusal:
        sardonyx.export(model, (of_size(EXAMPLE),), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert "is declared dynamic" in str(refusal.value)
    assert "test_trace_sizes.py:" in str(refusal.value)
    assert line in str(refusal.value)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(("model", "line"), REFUSED.values(), ids=REFUSED)
def test_a_size_that_cannot_be_followed_is_refused_with_the_line(model, line, capture):
    with pytest.raises(sardonyx.SardonyxError) as refusal:
        sardonyx.export(model, (of_size(EXAMPLE),), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert not isinstance(refusal.value, InternalError)
    assert "test_trace_sizes.py:" in str(refusal.value)
    assert line in str(refusal.value)


@pytest.mark.parametrize("model", READ_BY_PYTHON.values(), ids=READ_BY_PYTHON)
def test_where_sizes_are_fixed_nothing_is_said_of_them(model):
    x = of_size(EXAMPLE)
    program = sardonyx.export(model, (x,), capture="trace")
    assert program.notes == ()
    assert_equal(program(x), model(x), "example")


def text_decides(x):
    return x + {"4": 1}.get(str(x.shape[0]), 0)


def test_text_of_a_size_is_noted():
    program = sardonyx.export(
        text_decides, (of_size(EXAMPLE),), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    (note,) = program.notes
    assert "the model makes text of n at" in note
    assert "test_trace_sizes.py:" in note and "str(x.shape[0])" in note
    for n in OTHERS:
        assert_equal(program(of_size(n)), text_decides(of_size(n)), f"n = {n}")


BRANCHES = {
    "at the example": (lambda x: x + 1 if x.shape[0] > 4 else x - 1, "n <= 4", (1, 2, 3, 4)),
    "above": (lambda x: x + 1 if x.shape[0] > 100 else x - 1, "n <= 100", (2, 4, 90, 100)),
    "of a half": (
        lambda x: x + 1 if x.shape[0] // 2 >= 100 else x - 1,
        "((n//2)) < 100",
        (2, 4, 90, 199),
    ),
}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(("model", "condition", "sizes"), BRANCHES.values(), ids=BRANCHES)
def test_a_branch_on_a_size_is_noted_and_holds_where_it_says(model, condition, sizes, capture):
    program = sardonyx.export(
        model, (of_size(EXAMPLE),), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    (note,) = program.notes
    assert f"the recording holds where {condition}: the model decides by it at" in note
    assert "test_trace_sizes.py:" in note
    for n in sizes:
        assert_equal(program(of_size(n)), model(of_size(n)), f"n = {n}")


def checked(x):
    torch._check(x.shape[0] >= 1, lambda: f"{x.shape[0]} rows")
    torch._check(x.shape[0] * 2 <= 1000)
    return x[: x.shape[0] // 2] * 2


def test_checks_of_sizes_give_no_note():
    program = sardonyx.export(
        checked, (torch.randn(EXAMPLE, 2),), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    assert program.notes == ()
    for size in OTHERS:
        x = torch.randn(size, 2)
        compare(checked(x), program(x), f"{size} rows")


def test_a_check_that_fails_is_the_models():
    with pytest.raises(sardonyx.SardonyxError, match=r"the model itself fails.* 4 rows"):
        sardonyx.export(
            lambda x: torch._check(x.shape[0] > 9, lambda: "4 rows"),
            (torch.randn(EXAMPLE, 2),),
            capture="trace",
            dynamic_axes={"x": {0: "n"}},
        )


def test_what_python_computes_with_is_put_back():
    before = len, max, min, math.sqrt
    with pytest.raises(DynamicDimError):
        test = FIXED["int"][0]
        sardonyx.export(test, (of_size(4),), capture="trace", dynamic_axes={"x": [0]})
    sardonyx.export(lambda x: x * len(x), (of_size(4),), capture="trace")
    assert before == (len, max, min, math.sqrt)


def test_the_length_of_what_data_selects():
    def model(x):
        return x.sum() + len(x[x > 5])

    followed = sardonyx.export(model, (of_size(4),), capture="export", dynamic_axes={"x": [0]})
    for n in (4, 1, 9):
        assert_equal(followed(of_size(n)), model(of_size(n)), f"n = {n}")
    (note,) = sardonyx.export(model, (of_size(4),), capture="trace").notes
    assert "bakes a value" in note and "len(x[x > 5])" in note
