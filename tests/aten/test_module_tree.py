"""The walks over a model's modules: as PyTorch's, in time that grows with the depth alone."""

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx.aten.module_tree import named_buffers, named_modules, named_parameters
from tests.cost import function_calls


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        self.none = None
        self.register_module("absent", None)
        self.again = self.first
        self.tied = nn.Linear(2, 2, bias=False)
        self.tied.weight = self.first[0].weight


def test_the_walks_over_a_script_are_those_of_pytorch():
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    for ours, theirs in _walks(model):
        assert [path for path, _ in ours] == [path for path, _ in theirs]


def test_what_is_shared_comes_once():
    for ours, theirs in _walks(Shared()):
        assert [(path, id(found)) for path, found in ours] == [
            (path, id(found)) for path, found in theirs
        ]
    twice = list(named_modules(Shared(), each_once=False))
    assert [p for p, _ in twice] == [p for p, _ in Shared().named_modules(remove_duplicate=False)]


def _walks(model):
    yield list(named_modules(model)), list(model.named_modules())
    yield list(named_parameters(model)), list(model.named_parameters())
    yield list(named_buffers(model)), list(model.named_buffers())


def test_what_is_no_module_has_none():
    assert not list(named_modules(torch.relu))
    assert not list(named_parameters(None))


@pytest.mark.parametrize("axes", [None, {"x": {0: "batch"}}], ids=["fixed", "dynamic"])
def test_an_export_takes_time_in_proportion_to_the_nesting(axes):
    def calls(depth):
        model = nn.Linear(4, 4)
        for _ in range(depth):
            model = nn.Sequential(model)
        x = torch.ones(3, 4)
        return function_calls(
            lambda: sardonyx.export(model.eval(), (x,), input_names=["x"], dynamic_axes=axes)
        )

    assert calls(160) < 2.2 * calls(80)
