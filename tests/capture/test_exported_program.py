"""ExportedPrograms that the caller made: what they write and what they return."""

from __future__ import annotations

import copy

import pytest
import torch

import sardonyx

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own


class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x, y):
        self.count.add_(1)
        y.mul_(2)
        return {"sum": x + self.count, "rest": [None, (y - x, 3)]}


@pytest.mark.parametrize("decomposed", [False, True])
def test_writes_are_told_and_returned_on_demand(decomposed):
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    exported = torch.export.export(Writes(), (x, y.clone()))
    if decomposed:
        exported = exported.run_decompositions()
    program = sardonyx.export(exported, input_names=["left", "right"])
    (note,) = program.notes
    assert "buffer count" in note and "input right" in note
    expected, actual = Writes()(x, y.clone()), program(x, y)
    torch.testing.assert_close(actual["sum"], expected["sum"])
    assert actual["rest"][0] is None
    torch.testing.assert_close(actual["rest"][1][0], expected["rest"][1][0])
    assert actual["rest"][1][1] == 3
    stateful = sardonyx.export(exported, input_names=["left", "right"], state_outputs=True)
    names = [output.name for output in stateful.model.graph.outputs]
    assert names[:3] == ["sum", "rest.1.0", "rest.1.1"]
    assert sorted(names[3:]) == ["count.out", "right.out"]


def test_training_statistics_of_a_decomposed_program():
    model, x = torch.nn.BatchNorm1d(3).train(), torch.randn(4, 3)
    exported = torch.export.export(copy.deepcopy(model), (x,)).run_decompositions()
    program = sardonyx.export(exported, state_outputs=True)
    names = [output.name for output in program.model.graph.outputs]
    assert names[1:] == ["running_mean.out", "running_var.out", "num_batches_tracked.out"]
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)


class Nothing(torch.nn.Module):
    def forward(self, x):
        return None


@pytest.mark.parametrize("given", [False, True])
def test_a_model_that_returns_no_tensor_is_refused(given):
    x = torch.randn(2)
    model = torch.export.export(Nothing(), (x,)) if given else Nothing()
    with pytest.raises(sardonyx.errors.CaptureError, match="returns no tensor"):
        sardonyx.export(model, () if given else (x,))


def test_arguments_are_the_example_that_is_verified():
    exported = torch.export.export(torch.nn.Linear(4, 3), (torch.randn(2, 4),))
    exported.example_inputs = None
    assert sardonyx.export(exported, (torch.randn(2, 4),), verify=True).verification is not None
    with pytest.raises(sardonyx.InvalidOptionError, match=r"exported  input\s+given     foo"):
        sardonyx.export(exported, kwargs={"foo": torch.randn(2, 4)})
    with pytest.raises(sardonyx.InvalidOptionError, match=r"float32\[9, 9\], the file takes"):
        sardonyx.export(exported, (torch.randn(9, 9),))


@pytest.mark.parametrize(
    "option", [{"capture": "trace"}, {"training": sardonyx.TrainingMode.TRAINING}]
)
def test_what_the_program_decided_cannot_be_asked_for(option):
    exported = torch.export.export(torch.nn.ReLU(), (torch.randn(2),))
    with pytest.raises(sardonyx.InvalidOptionError, match="ExportedProgram"):
        sardonyx.export(exported, **option)


TABLE = torch.randn(16, 3)


class OfSizes(torch.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.compute = compute
        self.register_buffer("table", TABLE)

    def forward(self, x):
        return self.compute(self.table, x)


def written(x):
    y = x.clone()
    y[1:] = 3.0
    return y


SIZES = {
    "without_ends": lambda t, x: torch.ones_like(x[2:-1]),
    "first": lambda t, x: x[:1] + 1,
    "table": lambda t, x: torch.ones_like(t[: x.shape[0]]),
    "float_factors": lambda t, x: torch.ones(torch.sym_int(x.shape[0] * 0.29 * 100)),
    "write": lambda t, x: written(x),
    "of_data": lambda t, x: torch.ones_like(x[x[:, 0] > 0][1:]),
}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_that_the_operators_give(name, decomposed):
    model = OfSizes(SIZES[name])
    dynamic = ({0: torch.export.Dim.DYNAMIC},)
    exported = torch.export.export(model, (torch.randn(8, 3),), dynamic_shapes=dynamic)
    if decomposed:
        exported = exported.run_decompositions()
    text = str(exported)
    program = sardonyx.export(exported)
    assert str(exported) == text
    assert program.notes == ()
    for n in (0, 1, 2, 7, 8, 17, 25):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), model(x))


def test_sizes_in_regions_are_those_that_the_operators_give():
    def compute(table, x):
        rest = x[1:]
        return torch.cond(x.shape[0] > 5, lambda r: r.sum(0), lambda r: r.mean(0), (rest,))

    dynamic = ({0: torch.export.Dim.DYNAMIC},)
    model = OfSizes(compute)
    exported = torch.export.export(model, (torch.randn(8, 3),), dynamic_shapes=dynamic)
    program = sardonyx.export(exported)
    assert program.notes == ()
    for n in (0, 1, 2, 5, 6, 8, 17):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), model(x), equal_nan=True)


@pytest.mark.parametrize("name", ["input", "id", "max"])
def test_an_argument_with_the_name_of_a_builtin(name):
    scope = {}
    exec(f"def forward(self, {name}): return {name} * 2 + 1", {}, scope)
    model = type("Model", (torch.nn.Module,), scope)()
    dynamic = {name: {0: torch.export.Dim.DYNAMIC}}
    exported = torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=dynamic)
    program = sardonyx.export(exported)
    x = torch.randn(5, 4)
    torch.testing.assert_close(program(x), x * 2 + 1)
