"""What the tracer itself refuses, or records wrongly, is recorded all the same."""

import copy

import pytest
import torch
import torch.nn.functional as F

import sardonyx


def writes_where_a_number_says(x):
    z = x.float()
    z[x[0]] = 9.0
    return z


def copies_twice(x):
    left, right = copy.deepcopy([x, x])
    left.logical_not_()
    return left, right


CALLS = {
    "equal": lambda x: x == True,  # noqa: E712
    "not equal": lambda x: torch.ne(x, other=True),
    "less": lambda x: x.float() < True,
    "or": lambda x: x | True,
    "or of a bool": lambda x: True | x,
    "xor": lambda x: x ^ True,
    "bitwise and": lambda x: torch.bitwise_and(x, False),
    "xor of integers": lambda x: x.long() ^ True,
    "power": lambda x: (x.float() + 2) ** True,
    "power of a bool": lambda x: True ** (x.float() + 2),
    "where of bools": lambda x: torch.where(x, True, False),
    "where of a tensor": lambda x: torch.where(x, x.float() * 3, True),
    "where of numbers": lambda x: torch.where(x, True, 2.5),
    "where as a method": lambda x: x.where(x, other=True),
    "clamp": lambda x: (x.float() * 3 - 1).clamp(False, True),
    "clamp from below": lambda x: (x.float() * 3 - 1).clamp(min=False),
    "clamp_max_": lambda x: (x.float() * 3 - 1).clamp_max_(True),
    "addcmul": lambda x: torch.addcmul(x.float(), x.float(), x.float(), value=True),
    "fill by names": lambda x: torch.fill(input=x, value=3),
    "fill with a tensor": lambda x: torch.fill(x.clone(), x[0]),
    "fill_": lambda x: x.clone().fill_(True),
    "deepcopy": lambda x: copy.deepcopy(x) ^ x,
    "deepcopy of one tensor twice": copies_twice,
    "mask without dims": lambda x: x[x[0]],
    "mask without dims in a tuple": lambda x: x[(x[0],)],
    "write by a mask without dims": writes_where_a_number_says,
    "roll by a tensor": lambda x: x.roll(x[0].long()),
    "roll of dims": lambda x: torch.roll(x.float(), x[0].long(), 0),
    "roll by a number": lambda x: torch.roll(x, 1),
    "fill": lambda x: torch.fill(x, True),
    "fill with a number": lambda x: torch.fill(x.float(), 2.5),
    "full": lambda x: (torch.full((2,), True), x),
    "full of a dtype": lambda x: torch.full((3,), True, dtype=torch.float32) + x,
    "full_like": lambda x: torch.full_like(x, True),
    "new_full": lambda x: x.new_full((2,), fill_value=True),
    "masked_fill": lambda x: x.float().masked_fill(x, True),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), True),
    "alpha": lambda x: torch.add(x, x, alpha=True),
    "pad": lambda x: F.pad(x, (1, 1), value=True),
    "hardtanh": lambda x: F.hardtanh(x.float() * 4 - 2, False, True),
    "gradient": lambda x: torch.gradient(x.float().expand(4, 3), spacing=[2.0, 0.5]),
    "gradient of dims": lambda x: torch.gradient(x.float().expand(4, 3), spacing=(2,), dim=(1,)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_recorded(call):
    x = torch.tensor([True, False, True])
    program = sardonyx.export(call, (x,), capture="trace")
    assert program.notes == ()
    for given in (x, ~x):
        expected = call(given)
        expected = expected if isinstance(expected, (tuple, list)) else (expected,)
        found = program(given)
        found = found if isinstance(found, (tuple, list)) else (found,)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        ((slice(None), slice(-1, None)), (1,)),
        (0, (1, 5)),
        ((Ellipsis, slice(1, 3)), (2,)),
        ((None, slice(None), 0), (1, 1)),
    ],
)
def test_a_value_is_broadcast_to_the_rows_that_there_are(index, value):
    def write(x, value):
        x = x.clone()
        x[index] = value
        return x

    assigned = torch.randn(value)
    program = sardonyx.export(
        write, (torch.randn(4, 5), assigned), capture="trace", dynamic_axes={"x": {0: "rows"}}
    )
    for rows in (1, 4, 7):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(program(x, assigned), write(x, assigned))


def test_a_value_that_does_not_fit_is_refused():
    def write(x):
        x = x.clone()
        x[0] = torch.ones(2, 3)
        return x

    with pytest.raises(sardonyx.SardonyxError, match="the model itself fails"):
        sardonyx.export(write, (torch.randn(4, 3),), capture="trace")
