"""What torch.jit.trace itself refuses is recorded all the same."""

import pytest
import torch
import torch.nn.functional as F

import sardonyx

CALLS = {
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
    "gradient": lambda x: torch.gradient(x.float().expand(4, 3), spacing=[2.0, 0.5]),
    "gradient of dims": lambda x: torch.gradient(x.float().expand(4, 3), spacing=(2,), dim=(1,)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_recorded(call):
    x = torch.tensor([True, False, True])
    program = sardonyx.export(call, (x,), capture="trace")
    for given in (x, ~x):
        expected = call(given)
        expected = expected if isinstance(expected, (tuple, list)) else (expected,)
        found = program(given)
        found = found if isinstance(found, (tuple, list)) else (found,)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)
