"""What torch.export alone refuses: numbers and sizes that data decides."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import check

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
NAN = torch.tensor([[1.0, float("nan")], [3.0, 4.0]])
COMPARISONS = {
    "equal": torch.equal,
    "equal_method": lambda x, y: x.equal(y),
    "other_shape": lambda x, y: torch.equal(x, y[0]),
    "allclose": torch.allclose,
    "allclose_tolerance": lambda x, y: torch.allclose(x, y, rtol=0.0, atol=0.5),
    "allclose_nan": lambda x, y: x.allclose(y, equal_nan=True),
    "read_bool": lambda x, y: (x == y).any().item(),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_is_computed_by_the_file(name: str) -> None:
    others = [(X, X + 0.25), (NAN, NAN), (X, NAN), (X, -X)]
    check(COMPARISONS[name], X, X, captures=("export",), others=others)


def test_numbers_that_are_read_have_the_dtype_of_torch_tensor() -> None:
    def model(x: torch.Tensor) -> tuple[object, ...]:
        return x.sum().item(), x.double().sum().item(), x.argmax().item(), (x > 3).all().item()

    program = check(model, X, captures=("export",), others=[(X + 5,)])
    dtypes = [output.dtype for output in program.model.graph.outputs]
    assert [str(d) for d in dtypes] == ["FLOAT", "FLOAT", "INT64", "BOOL"]


def test_one_hot_counts_the_classes() -> None:
    x = torch.tensor([0, 2, 1])
    others = [(torch.tensor([4, 0, 0]),)]
    check(lambda x: torch.nn.functional.one_hot(x), x, others=others)
    check(lambda x: torch.nn.functional.one_hot(x[1], 5), x, others=[(torch.tensor([0, 4, 0]),)])


def test_narrow_from_a_tensor() -> None:
    def model(x: torch.Tensor, start: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.narrow(x, 1, start, 1), x.narrow(0, start, 1)

    check(model, X, torch.tensor(0), others=[(X, torch.tensor(1)), (X, torch.tensor(-2))])


def test_tensor_split_at_a_tensor() -> None:
    def model(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.tensor_split(x, at, dim=1)

    x, at = torch.arange(12.0).reshape(2, 6), torch.tensor([1, 4])
    check(model, x, at, others=[(x, torch.tensor([0, -2])), (x, torch.tensor([5, 2]))])


@pytest.mark.parametrize("with_replacement", [False, True])
@pytest.mark.parametrize("r", [0, 1, 2, 3])
def test_combinations(r: int, with_replacement: bool) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.combinations(x, r, with_replacement)

    x = torch.tensor([3, 1, 2, 5])
    check(model, x)
    if r:
        others = [(torch.arange(6),), (torch.arange(3),)]
        check(model, x, dynamic={0: [0]}, others=others, captures=("export",))


def test_the_largest_element_by_pythons_own_functions():
    def extremes(x):
        return max(x[:, 0]), min(x[:, 1])

    program = sardonyx.export(extremes, (torch.randn(4, 3),), capture="export")
    for seed in range(3):
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
        assert program(x) == extremes(x)
