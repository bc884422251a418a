"""Branches and loops of scripted programs, against eager."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import Tensor

import sardonyx
from tests.capture.torchscript.control_flow import programs_flow as programs
from tests.capture.torchscript.running import assert_equal_to_eager, exported


@pytest.mark.parametrize(
    ("program", "inputs"),
    programs.FLOW,
    ids=[f"{program.__name__}-{len(inputs)}" for program, inputs in programs.FLOW],
)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


def _operators(program: sardonyx.ONNXProgram) -> list[str]:
    found: list[str] = []

    def walk(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            found.append(node.op_type)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    walk(attribute.g)

    walk(program.model_proto.graph)
    return found


@pytest.mark.parametrize("program", [programs.for_over_range, programs.three_deep])
def test_a_loop_does_not_grow_with_its_count(program) -> None:
    small = exported(program, [(programs.ROWS, 3), (programs.ROWS, 4)])
    large = exported(program, [(programs.ROWS, 300), (programs.ROWS, 4)])
    assert _operators(small) == _operators(large)
    assert _operators(small).count("Loop") == (1 if program is programs.for_over_range else 3)


def test_an_output_of_two_ranks_has_no_shape() -> None:
    made = exported(programs.branches_of_two_ranks_returned, programs.SIGNS)
    (output,) = made.model_proto.graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert not output.type.tensor_type.HasField("shape")


def test_a_check_that_is_dropped_is_noted_with_its_line() -> None:
    made = exported(programs.raises_in_one_branch, programs.SIZES)
    assert any("too large" in note and "programs_flow.py" in note for note in made.notes)
    assert any("too long" in note for note in made.notes)


def two_dtypes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x > 0
    return y


def dtype_that_changes(x, n: int):
    total = torch.zeros(3, 2, dtype=torch.int64)
    for _i in range(n):
        total = total + x
    return total


def none_or_a_tensor(x) -> Tensor | None:
    if x.sum() > 0:
        return x
    return None


@pytest.mark.parametrize(
    ("program", "inputs", "message"),
    [
        (two_dtypes, programs.SIGNS, "float32 here and bool there"),
        (dtype_that_changes, programs.COUNTS, "int64 here and float32 there"),
        (none_or_a_tensor, programs.SIGNS, "None for some inputs"),
    ],
)
def test_refused_with_the_line(program, inputs, message) -> None:
    with pytest.raises(sardonyx.CaptureError, match=message) as refusal:
        exported(program, inputs)
    if program is not none_or_a_tensor:
        assert "test_blocks.py" in str(refusal.value)
