"""Tensors that are carried with a number of dims that no iteration settles."""

from __future__ import annotations

import onnx
import pytest
import torch

import sardonyx
from tests.script import programs_any_rank as programs
from tests.script.running import assert_equal_to_eager, exported

NAMES = [program.__name__ for program, _ in programs.PROGRAMS]


@pytest.mark.parametrize(("program", "inputs"), programs.PROGRAMS, ids=NAMES)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize("opset", [9, 13, 17])
@pytest.mark.parametrize(
    "program",
    [
        programs.alternating,
        programs.growing_added_to_the_first,
        programs.growing_squeezed,
        programs.growing_to_where_it_is_known,
        programs.in_a_branch,
    ],
)
def test_at_older_opsets(program, opset) -> None:
    assert_equal_to_eager(program, programs.COUNTED, opset_version=opset)


def test_the_output_has_no_shape_and_the_loop_none_that_is_wrong() -> None:
    made = exported(programs.growing, programs.SIZED)
    (output,) = made.model_proto.graph.output
    assert not output.type.tensor_type.HasField("shape")
    onnx.shape_inference.infer_shapes(made.model_proto, check_type=True, strict_mode=True)
    kinds = [node.op_type for node in made.model_proto.graph.node]
    assert kinds.count("Loop") == 1
    assert "If" not in kinds


def transposed(x, n: int):
    for _ in range(n):
        x = x.unsqueeze(0)
    y = x.relu()
    return y.transpose(0, 1)


def convolved(x, n: int):
    for _ in range(n):
        x = x.unsqueeze(0)
    return torch.nn.functional.conv1d(x, torch.ones(1, 1, 1))


def concatenated(x, n: int):
    for _ in range(n):
        x = x.unsqueeze(0)
    return torch.cat([x, x], 1)


def told_equal(x, n: int):
    for _ in range(n):
        x = x.unsqueeze(0)
    return torch.equal(x, x + 1)


def promoted(x, n: int):
    y = x.sum()
    for _ in range(n):
        y = y.unsqueeze(0)
    return y + torch.ones((), dtype=torch.float64)


@pytest.mark.parametrize(
    ("program", "operator"),
    [
        (transposed, "aten::transpose"),
        (convolved, "aten::conv1d"),
        (concatenated, "aten::cat"),
        (told_equal, "aten::equal"),
        (promoted, "aten::add"),
    ],
)
def test_what_needs_the_number_of_dims_is_refused_with_both_lines(program, operator) -> None:
    with pytest.raises(sardonyx.CaptureError) as refusal:
        exported(program, programs.COUNTED)
    text = str(refusal.value)
    assert f"{operator} needs to know how many dims" in text
    first = program.__code__.co_firstlineno
    assert any(f"test_any_rank.py:{first + line}" in text for line in (3, 4)), text
    assert f"test_any_rank.py:{first + (2 if program is promoted else 1)}" in text
    assert "if x.dim() == 3" in text


def refused_twice(x, n: int):
    for _ in range(n):
        x = x.unsqueeze(0)
    return x.transpose(0, 1), x.permute(0, 1)


def test_all_such_places_are_told_at_once() -> None:
    with pytest.raises(sardonyx.CaptureError, match="2 places") as refusal:
        exported(refused_twice, programs.COUNTED)
    assert "aten::transpose" in str(refusal.value)
    assert "aten::permute" in str(refusal.value)


def transposed_and_written(x, n: int):
    y = x.clone()
    z = y.t()
    for _ in range(n):
        z = z.unsqueeze(0)
    z.add_(1)
    return y, z


def test_a_write_of_memory_in_another_order_is_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"contiguous\(\) before[\s\S]*test_any_rank"):
        exported(transposed_and_written, programs.COUNTED)


def expanded_before_a_write(x, n: int):
    y = x.clone()
    for i in range(n):
        y = y.unsqueeze(0) if i % 2 == 0 else y.sum(0)
    z = y.expand_as(y.clone())
    y.add_(1)
    return z


def written_expanded(x, n: int):
    y = x.clone()
    for i in range(n):
        y = y.unsqueeze(0) if i % 2 == 0 else y.sum(0)
    z = y.expand_as(y.clone())
    z.add_(1)
    return y


@pytest.mark.parametrize("program", [expanded_before_a_write, written_expanded])
def test_a_write_that_an_expanded_tensor_shares_is_refused(program) -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"may share its memory[\s\S]*test_any_rank"):
        exported(program, programs.COUNTED)


@torch.jit.script
def alternated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(y.size(0)):
        x = x.unsqueeze(0) if x.dim() == 2 else x[0]
    return x * 2


class Traced(torch.nn.Module):
    def forward(self, x, y):
        return alternated(x, y).sum(-1) + 1, x


def test_a_scripted_function_that_gives_any_rank_to_a_recorded_model_is_refused() -> None:
    given = torch.randn(3, 4), torch.randn(2)
    with pytest.raises(sardonyx.CaptureError, match="a scripted function returns"):
        sardonyx.export(Traced(), given, capture="trace", dynamic_axes={"y": {0: "n"}})


def two_sizes(x):
    if bool(x.sum() > 0):
        y = x[:2]
    else:
        y = x[:3] * 2
    return y, y.sum(0)


def two_ranks(x):
    if bool(x.sum() > 0):
        return x.sum()
    return x * 2


@pytest.mark.parametrize("opset", [9, 10, 11])
@pytest.mark.parametrize("program", [two_sizes, two_ranks])
def test_branches_of_other_shapes_are_loaded_at_older_opsets(program, opset) -> None:
    inputs = [(torch.ones(4, 2),), (-torch.ones(4, 2),)]
    assert_equal_to_eager(program, inputs, opset_version=opset)
