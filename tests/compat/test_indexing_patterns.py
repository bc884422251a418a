"""torch-onnx-2.1.rst, "Unsupported Tensor Indexing Patterns": every pattern listed there as
impossible, as it stands there and by its workaround, in every capture."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.compat.documented_exporter import documented_export, outputs_of

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export", "script"])


def negative_indices_read(data):
    # Tensor indices that includes negative values.
    return data[torch.tensor([[1, 2], [2, -3]]), torch.tensor([-2, 3])]


def positive_indices_read(data):
    # Workarounds: use positive index values.
    return data[torch.tensor([[1, 2], [2, 1]]), torch.tensor([2, 3])]


def indices_of_rank_2(data, new_data):
    # Multiple tensor indices if any has rank >= 2
    data = data.clone()
    data[torch.tensor([[1, 2], [2, 3]]), torch.tensor([2, 3])] = new_data
    return data


def single_index_of_rank_2(data, new_data):
    # Workarounds: use single tensor index with rank >= 2,
    data = data.clone()
    data[torch.tensor([[1, 2], [0, 3]])] = new_data
    return data


def consecutive_indices_of_rank_1(data, new_data):
    #              or multiple consecutive tensor indices with rank == 1.
    data = data.clone()
    data[torch.tensor([1, 2]), torch.tensor([2, 3])] = new_data
    return data


def indices_that_are_not_consecutive(data, new_data):
    # Multiple tensor indices that are not consecutive
    data = data.clone()
    data[torch.tensor([2, 3]), :, torch.tensor([1, 2])] = new_data
    return data


def indices_made_consecutive(data, new_data):
    # Workarounds: transpose `data` such that tensor indices are consecutive.
    data = data.clone()
    data.transpose(1, 2)[torch.tensor([2, 3]), torch.tensor([1, 2])] = new_data
    return data


def negative_indices_written(data, new_data):
    # Tensor indices that includes negative values.
    data = data.clone()
    data[torch.tensor([1, -2]), torch.tensor([-2, 3])] = new_data
    return data


def positive_indices_written(data, new_data):
    # Workarounds: use positive index values.
    data = data.clone()
    data[torch.tensor([1, 2]), torch.tensor([2, 3])] = new_data
    return data


def implicit_broadcast(data, new_data):
    # Implicit broadcasting required for new_data.
    data = data.clone()
    data[torch.tensor([[0, 2], [1, 1]]), 1:3] = new_data
    return data


def explicit_broadcast(data, new_data):
    # Workarounds: expand new_data explicitly.
    #   expected new_data shape after broadcasting: [2, 2, 2, 5]
    data = data.clone()
    data[torch.tensor([[0, 2], [1, 1]]), 1:3] = new_data.expand(2, 2, 2, 5)
    return data


PATTERNS = {
    negative_indices_read: [(4, 4, 5)],
    positive_indices_read: [(4, 4, 5)],
    indices_of_rank_2: [(4, 4, 5), (5,)],
    single_index_of_rank_2: [(4, 4, 5), (5,)],
    consecutive_indices_of_rank_1: [(4, 4, 5), (5,)],
    indices_that_are_not_consecutive: [(4, 4, 5), (2, 4)],
    indices_made_consecutive: [(4, 4, 5), (2, 4)],
    negative_indices_written: [(4, 4, 5), (2, 5)],
    positive_indices_written: [(4, 4, 5), (2, 5)],
    implicit_broadcast: [(3, 4, 5), (5,)],
    explicit_broadcast: [(3, 4, 5), (5,)],
}


@CAPTURES
@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_pattern(pattern, opset, capture):
    """'the following patterns are not supported': they are."""
    torch.manual_seed(0)
    args = tuple(torch.randn(shape) for shape in PATTERNS[pattern])
    model = torch.jit.script(pattern) if capture == "script" else pattern
    sardonyx.export(
        model,
        args,
        opset_version=opset,
        capture="auto" if capture == "script" else capture,
        verify=True,
    )


@pytest.mark.parametrize(
    "pattern",
    [
        negative_indices_read,
        indices_of_rank_2,
        indices_that_are_not_consecutive,
        implicit_broadcast,
    ],
    ids=lambda pattern: pattern.__name__,
)
def test_limitation(pattern):
    """'patterns that cannot be exported': they fail, or give other numbers, to this day. Negative
    indices are written rightly by now."""
    torch.manual_seed(0)
    args = tuple(torch.randn(shape) for shape in PATTERNS[pattern])
    try:
        (found,) = outputs_of(documented_export(pattern, args), *args)
    except Exception as refused:
        assert "consecutive" in str(refused) or "Reshape" in str(refused)
    else:
        assert not torch.allclose(found, pattern(*args))


@CAPTURES
def test_indices_that_are_inputs(capture):
    """Negative ones among them, which nobody can make positive beforehand."""

    def model(data, rows, columns, new_data):
        data = data.clone()
        data[rows, :, columns] = new_data
        return data, data[rows, columns]

    first = (
        torch.randn(4, 4, 5),
        torch.tensor([0, 1]),
        torch.tensor([2, 3]),
        torch.randn(4),
    )
    other = (torch.randn(4, 4, 5), torch.tensor([-1, 2]), torch.tensor([1, -4]), torch.randn(4))
    program = sardonyx.export(
        torch.jit.script(model) if capture == "script" else model,
        first,
        capture="auto" if capture == "script" else capture,
    )
    torch.testing.assert_close(program(*other), model(*other))
