"""Dims that a size, or the number of iterations, decides on: in branches, each of known rank."""

from __future__ import annotations

import onnx
import pytest
import torch

from tests.capture.torchscript.running import assert_equal_to_eager, exported
from tests.capture.torchscript.types import programs_ranks as programs

CASES = [
    *programs.SQUEEZED,
    *programs.TWICE_SQUEEZED,
    *programs.IN_MODELS,
    *programs.OF_DATA,
    *programs.BEFORE_A_LOOP,
    *programs.CHANGING,
    *programs.DOWN,
    *programs.DOWN_TO_NONE,
]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[p.__name__ for p, _ in CASES])
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


def test_a_squeezed_output_has_no_shape() -> None:
    made = exported(programs.out_squeezed, programs.SIZES)
    (output,) = made.model_proto.graph.output
    assert not output.type.tensor_type.HasField("shape")


def test_one_size_is_asked_once() -> None:
    made = exported(programs.eight_squeezed, programs.SIZES)
    kinds = [node.op_type for node in made.model_proto.graph.node]
    assert kinds.count("If") == 1


def even(x):
    return torch.cat([x, x]).squeeze(0) + 1


def test_a_size_that_cannot_be_one_is_not_asked() -> None:
    made = assert_equal_to_eager(even, programs.SIZES)
    assert "If" not in [node.op_type for node in made.model_proto.graph.node]
    assert made.model_proto.graph.output[0].type.tensor_type.HasField("shape")


def second_dim_after_squeeze(x):
    return x.squeeze(0).sum(1)


def test_where_pytorch_raises_is_noted_with_its_line() -> None:
    made = exported(second_dim_after_squeeze, programs.SIZES)
    assert any("Dimension out of range" in n and "test_ranks.py" in n for n in made.notes)
    x = torch.randn(5, 3)
    torch.testing.assert_close(made(x), x.sum(1))


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        y = self.linear(x).squeeze()
        if y.dim() == 1:
            y = y.unsqueeze(0)
        return torch.cat([y, y], 1)


def test_a_rank_that_the_model_asks_for() -> None:
    made = assert_equal_to_eager(Classifier(), programs.SIZES[:1] + programs.SIZES[2:])
    assert made.model_proto.graph.output[0].type.tensor_type.HasField("shape")
    onnx.checker.check_model(made.model_proto)


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


def beyond_the_example(x):
    if x.size(0) > 5:
        return x[5] * 2
    return x[0]


def written_beyond_the_example(x):
    y = x.clone()
    if x.size(0) > 5:
        y[5] += 2
    return y


@pytest.mark.parametrize("program", [beyond_the_example, written_beyond_the_example])
def test_an_index_beyond_the_size_of_the_example(program) -> None:
    assert_equal_to_eager(program, [(torch.randn(size, 2),) for size in (3, 7, 6, 1)])


class SqueezedSizes(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(x.squeeze(0).shape) + 1


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_a_recording_notes_the_size_that_it_does_not_hold_for(capture) -> None:
    made = exported(SqueezedSizes(), programs.SIZES, capture=capture)
    assert any("dim 0 is not 1" in note and "test_ranks.py" in note for note in made.notes)
    assert made(torch.ones(5, 3)).shape == (5, 3)
