"""verify looks at both sides of the conditions on sizes that a recording turns on."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch.export import Dim
from torch.nn import functional as F

import sardonyx
from sardonyx.aten.signature import InputSpec
from sardonyx.capture.symbolic_shapes.guard_boundaries import sizes_across
from sardonyx.verify.drawn_sizes import DrawnSizes

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
TABLE = torch.randn(16, 3)


def labels(model, capture, example=8):
    program = sardonyx.export(
        model,
        (torch.randn(example, 3),),
        capture=capture,
        dynamic_axes={"x": {0: "n"}},
        input_names=["x"],
        verify=True,
    )
    assert program.verification is not None
    return [run.label for run in program.verification.runs]


@BOTH
def test_a_slice_is_compared_beyond_the_end_of_its_table(capture):
    assert "n=17" in labels(lambda x: TABLE[: x.shape[0]].sum(0) + x.sum(0), capture)


@BOTH
def test_padding_that_only_short_inputs_get(capture):
    def model(x):
        return F.max_pool1d(F.pad(x.t(), (0, max(0, 5 - x.shape[0]))), 5)

    assert "n=4" in labels(model, capture)


@BOTH
def test_an_input_whose_piece_is_empty(capture):
    assert "n=1" in labels(lambda x: x[1:] - x[:-1], capture)


def test_both_branches_of_a_script():
    @torch.jit.script
    def model(x):
        if x.size(0) > 12:
            return x * 2
        return x * 3

    assert "n=13" in labels(model, "auto")


def decided(x):
    return x * 2 if x.shape[0] > 12 else x * 3


def test_sizes_for_which_a_recording_does_not_hold_are_left_out():
    with pytest.warns(sardonyx.NarrowedDimWarning, match="the recording holds where n <= 12"):
        program = sardonyx.export(
            decided,
            (torch.randn(8, 3),),
            dynamic_axes={"x": {0: "n"}},
            input_names=["x"],
            verify=True,
        )
    assert program.verification is not None
    assert list(program.verification.left_out.values()) == [["n=13"]]
    assert [run.label for run in program.verification.runs] == ["example", "n=9", "n=7"]
    with pytest.warns(sardonyx.NarrowedDimWarning, match="n <= 12"):
        program(torch.randn(20, 3))
    with pytest.raises(sardonyx.VerificationError, match=r"broken .* n <= 12"):
        program.verify((torch.randn(20, 3),))


@BOTH
def test_sizes_are_drawn_where_a_recording_holds(capture):
    with pytest.warns(sardonyx.NarrowedDimWarning):
        found = labels(lambda x: x * 2 if x.shape[0] % 4 == 0 else x * 3, capture)
    assert found == ["example", "n=12", "n=4"]


def test_sizes_that_the_caller_does_not_allow_are_not_tried():
    program = sardonyx.export(
        decided,
        (torch.randn(8, 3),),
        capture="export",
        dynamic_shapes=({0: Dim("n", max=12)},),
        verify=True,
    )
    assert program.verification is not None
    assert all(run.label != "n=13" for run in program.verification.runs)


@BOTH
def test_sizes_that_pytorch_rejects_are_no_error(capture):
    assert labels(lambda x: x + TABLE[: x.shape[0]], capture)[0] == "example"


n, m = sympy.symbols("n m", integer=True, nonnegative=True)


def test_the_nearest_sizes_on_the_other_side():
    assert list(sizes_across(n > 8, {"n": 5, "m": 2}, 20)) == [{"n": 9, "m": 2}]
    assert list(sizes_across(sympy.Eq(n, 5), {"n": 5, "m": 2}, 20)) == [
        {"n": 4, "m": 2},
        {"n": 6, "m": 2},
    ]
    assert list(sizes_across(n > 8, {"n": 5}, 8)) == []
    assert list(sizes_across(n > m, {"n": 5}, 8)) == []
    both = list(sizes_across(n > m, {"n": 5, "m": 2}, 8))
    assert sorted(both, key=str) == [{"n": 2, "m": 2}, {"n": 5, "m": 5}]


def test_no_sizes_that_are_much_larger():
    assert list(DrawnSizes((), {"n": 5}, ()).beyond([n > 1000])) == []
    assert list(DrawnSizes((), {"n": 5}, ()).beyond([n > 30])) == [{"n": 31}]


def test_no_inputs_of_many_more_elements():
    spec = InputSpec("x", "x", "tensor", torch.float32, ("n", 2**19))
    drawn = DrawnSizes((spec,), {"n": 2}, ())
    assert list(drawn.beyond([n > 7, n > 6])) == [{"n": 8}, {"n": 7}]
    assert list(drawn.beyond([n > 8])) == []
    assert drawn.too_large == ["n=9"]
    assert list(DrawnSizes((spec,), {"n": 6}, ()).beyond([n > 8])) == [{"n": 9}]
