"""Names of inputs, outputs and parameters: the caller's first, then ours, never two alike."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import InvalidOptionError

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
r = torch.randn


class Affine(torch.nn.Module):
    """An input that is called as its parameter is."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(r(3))
        self.bias = torch.nn.Parameter(r(3))

    def forward(self, x, weight):
        return x * self.weight + self.bias + weight


def export(capture, **options):
    return sardonyx.export(Affine(), (r(2, 3), r(3)), capture=capture, **options)


def inputs(program):
    return [v.name for v in program.model.graph.inputs]


def outputs(program):
    return [v.name for v in program.model.graph.outputs]


@BOTH
def test_default_names_never_clash(capture):
    program = export(capture)
    assert inputs(program) == ["x", "weight_input"]
    assert list(program.model.graph.initializers) == ["weight", "bias"]
    x, weight = r(2, 3), r(3)
    torch.testing.assert_close(program(x, weight), program._eager.model(x, weight))


@BOTH
def test_default_names_step_aside_for_given_ones(capture):
    program = sardonyx.export(
        lambda x, y: {"z": x + y, "w": x}, (r(2), r(2)), capture=capture, input_names=["y"]
    )
    assert inputs(program) == ["y", "y_input"]
    program = sardonyx.export(
        lambda x: {"z": x + 1, "w": x}, (r(2),), capture=capture, output_names=["w"]
    )
    assert outputs(program) == ["w", "w_out"]


@BOTH
def test_names_for_some_inputs_and_outputs(capture):
    program = sardonyx.export(
        lambda x, y: (x + y, x - y),
        (r(2), r(2)),
        capture=capture,
        input_names=["left"],
        output_names=["sum"],
    )
    assert inputs(program) == ["left", "y"]
    assert outputs(program) == ["sum", "output_1"]
    x, y = r(2), r(2)
    torch.testing.assert_close(program(x, y), (x + y, x - y))


@BOTH
def test_names_beyond_the_inputs_are_the_parameters_in_order(capture, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    file = tmp_path / "model.onnx"
    program = sardonyx.export(
        model,
        (r(2, 3),),
        file,
        capture=capture,
        input_names=["actual_input", *(f"learned_{i}" for i in range(3))],
        output_names=["scores"],
    )
    assert list(program.model.graph.initializers) == [
        "learned_0",
        "learned_1",
        "learned_2",
        "2.bias",
    ]
    initializers = program.model.graph.initializers
    for name, parameter in zip(initializers, model.state_dict().values(), strict=True):
        torch.testing.assert_close(torch.tensor(initializers[name].const_value.numpy()), parameter)
    x = r(5, 3)[:2]
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)


@BOTH
def test_a_parameter_that_is_renamed_leaves_its_name_free(capture):
    program = export(capture, input_names=["x", "weight", "scale"])
    assert inputs(program) == ["x", "weight"]
    assert list(program.model.graph.initializers) == ["scale", "bias"]


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_names": ["a", "a"]}, "input_names has 'a' twice"),
        ({"input_names": ["a", ""]}, "an input name is empty"),
        ({"input_names": "ab"}, "input_names must be a list"),
        ({"input_names": ["a", "weight"]}, "'weight' is also the name of a parameter"),
        ({"input_names": ["a", "b", "c", "d", "e"]}, "there are only 2 parameters"),
        ({"input_names": ["a", "b", "a"]}, "'a', which is taken"),
        ({"input_names": ["a", "b", "c", "c"]}, "'c', which is taken"),
        ({"output_names": ["a", "b"]}, "2 names for 1 outputs"),
        ({"output_names": [""]}, "an output name is empty"),
        ({"output_names": ["x"]}, "'x' is also the name of an input or parameter"),
        ({"output_names": ["bias"]}, "'bias' is also the name of an input or parameter"),
        ({"input_names": ["a"], "output_names": ["a"]}, "'a' is also the name of an input"),
    ],
)
def test_names_that_clash(options, message, capture):
    with pytest.raises(InvalidOptionError, match=message):
        export(capture, **options)


@BOTH
def test_two_outputs_of_one_name(capture):
    with pytest.raises(InvalidOptionError, match="output_names has 'a' twice"):
        sardonyx.export(lambda x: (x, x), (r(2),), capture=capture, output_names=["a", "a"])


@BOTH
def test_input_names_count_a_number_that_turned_into_a_constant(capture):
    class Repeat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(r(3))

        def forward(self, x, steps):
            for _ in range(steps):
                x = x * self.scale
            return x

    program = sardonyx.export(
        Repeat(), (r(3), 2), capture=capture, input_names=["image", "count", "learned"]
    )
    assert inputs(program) == ["image"]
    assert list(program.model.graph.initializers) == ["learned"]
