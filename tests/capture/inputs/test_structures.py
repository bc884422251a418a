"""Nested inputs and outputs, numbers, keyword arguments, and every kind of model."""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
from typing import NamedTuple

import pytest
import torch
from torch.export import Dim

import sardonyx
from sardonyx.errors import InvalidOptionError

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
r = torch.randn


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclasses.dataclass
class Scores:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class Box:
    """A container that only the pytree registry knows."""

    def __init__(self, items):
        self.items = items


torch.utils._pytree.register_pytree_node(
    Box,
    lambda box: (box.items, None),
    lambda items, _: Box(list(items)),
    serialized_type_name="tests.Box",
)


def names(program):
    graph = program.model.graph
    return [v.name for v in graph.inputs], [v.name for v in graph.outputs]


def check(model, args, capture, kwargs=None, others=()):
    program = sardonyx.export(model, args, kwargs=kwargs or {}, capture=capture)
    for inputs in (args, *others):
        same(program(*inputs, **(kwargs or {})), model(*inputs, **(kwargs or {})))
    return program


def same(actual, expected):
    assert type(actual) is type(expected) or not isinstance(actual, (tuple, list, dict))
    if dataclasses.is_dataclass(expected):
        actual, expected = vars(actual), vars(expected)
    if isinstance(expected, Box):
        actual, expected = actual.items, expected.items
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        actual, expected = list(actual.values()), list(expected.values())
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
    elif isinstance(expected, (torch.Tensor, int, float)) and not isinstance(expected, bool):
        torch.testing.assert_close(torch.as_tensor(actual), torch.as_tensor(expected))
    else:
        assert actual == expected


# -- inputs --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("nested", "read", "expected"),
    [
        ((r(2), r(2)), lambda p: p[0] + p[1], ["p.0", "p.1"]),
        ([r(2), [r(2)]], lambda p: p[0] + p[1][0], ["p.0", "p.1.0"]),
        ({"a": r(2), "b": (r(2),)}, lambda p: p["a"] + p["b"][0], ["p.a", "p.b.0"]),
        ({0: r(2), 1: r(2)}, lambda p: p[0] + p[1], ["p.0", "p.1"]),
        (Pair(r(2), r(2)), lambda p: p.first + p.second, ["p.first", "p.second"]),
        (Scores(r(2), r(2)), lambda p: p.logits + p.loss, ["p.logits", "p.loss"]),
        (Scores(r(2)), lambda p: p.logits * 2, ["p.logits"]),
        (Box([r(2), r(2)]), lambda p: p.items[0] + p.items[1], ["p.0", "p.1"]),
        (
            collections.OrderedDict(b=r(2), a=r(2)),
            lambda p: p["a"] - p["b"],
            ["p.b", "p.a"],
        ),
    ],
    ids=lambda v: type(v).__name__,
)
def test_nested_inputs(nested, read, expected, capture):
    def model(p, scale):
        return read(p) * scale

    program = check(model, (nested, r(2)), capture)
    assert names(program)[0] == [*expected, "scale"]


@BOTH
def test_keyword_arguments_defaults_and_constants(capture):
    def model(x, y=None, *, scale=2.0, flag=True, mode="add"):
        x = x * scale if flag else x
        return x if y is None else (x + y if mode == "add" else x - y)

    x, y = r(3), r(3)
    program = sardonyx.export(model, (x,), kwargs={"mode": "sub", "y": y}, capture=capture)
    assert names(program)[0] == ["x", "y"]
    same(program(x, y=y, mode="sub"), model(x, y, mode="sub"))
    same(program(x, mode="sub", y=y), model(x, y, mode="sub"))
    with pytest.raises(InvalidOptionError, match="mode is 'add', but it was 'sub' when"):
        program(x, y=y, mode="add")
    with pytest.raises(InvalidOptionError, match="structure the model was exported with"):
        program(x)
    same(sardonyx.export(model, (x, None), capture=capture)(x, None), model(x))
    flagged = sardonyx.export(model, (x,), kwargs={"flag": False}, capture=capture)
    same(flagged(x, flag=False), x)


@BOTH
def test_variadic_forward(capture):
    class Sum(torch.nn.Module):
        def forward(self, first, *rest, **named):
            return first + sum(rest) + named["b"] - named["a"]

    args = (r(2), r(2), r(2))
    program = sardonyx.export(Sum(), args, kwargs={"b": r(2), "a": r(2)}, capture=capture)
    assert names(program)[0] == ["first", "rest.0", "rest.1", "b", "a"]
    kwargs = {"a": r(2), "b": r(2)}
    same(program(*args, **kwargs), Sum()(*args, **kwargs))


@BOTH
def test_a_dict_at_the_end_of_args_holds_keyword_arguments(capture):
    def model(x, y):
        return x - y

    x, y = r(2), r(2)
    program = sardonyx.export(model, (x, {"y": y}), capture=capture)
    same(program(x, y=y), x - y)
    assert names(sardonyx.export(lambda x: x + 1, (x, {}), capture=capture))[0] == ["x"]
    program = sardonyx.export(lambda x, d: x - d["a"], (x, {"a": y}, {}), capture=capture)
    assert names(program)[0] == ["x", "d.a"]
    same(program(x, {"a": y}), x - y)


@BOTH
def test_numbers_are_inputs_that_have_effect(capture):
    def model(x, n, f):
        return x * n + f, x[:n]

    program = check(
        model, (r(6, 2), 3, 0.5), capture, others=[(r(6, 2), 5, 2.5), (r(6, 2), 1, -1.0)]
    )
    assert [(i.name, i.dtype.name) for i in program.model.graph.inputs[1:]] == [
        ("n", "INT64"),
        ("f", "DOUBLE"),
    ]


@BOTH
@pytest.mark.parametrize("number", [0, 1])
def test_the_numbers_zero_and_one_have_effect_too(number, capture):
    check(lambda x, n: x * n, (r(6, 2), number), capture, others=[(r(6, 2), 7)])


@BOTH
def test_a_number_that_the_model_fixes_is_part_of_the_graph(capture):
    def model(x, steps):
        for _ in range(steps):
            x = x * 2
        return x

    x = r(3)
    program = sardonyx.export(model, (x, 1), kwargs={}, capture=capture)
    assert names(program)[0] == ["x"]
    assert any(note.startswith("steps is a Python number") for note in program.notes)
    same(program(x, 1), model(x, 1))
    with pytest.raises(InvalidOptionError, match="steps is 2, but it was 1 when"):
        program(x, 2)


@BOTH
def test_a_number_that_only_python_can_read(capture):
    table = {3: 10.0, 4: 20.0}
    program = check(lambda x, key: x * table[key], (r(2), 3), capture)
    assert names(program)[0] == ["x"]


@BOTH
def test_an_input_without_use_stays(capture):
    program = check(lambda x, unused: x + 1, (r(2), r(3)), capture)
    assert names(program)[0] == ["x", "unused"]


# -- outputs -------------------------------------------------------------------------------------

OUTPUTS = {
    "tensor": (lambda x: x + 1, ["output"]),
    "tuple": (lambda x: (x + 1, x + 2), ["output_0", "output_1"]),
    "list": (lambda x: [x + 1, [x + 2]], ["output_0", "output_1.0"]),
    "dict": (
        lambda x: {"logits": x + 1, "past": [{"key": x + 2, "value": x + 3}]},
        ["logits", "past.0.key", "past.0.value"],
    ),
    "named_tuple": (lambda x: Pair(x + 1, x + 2), ["first", "second"]),
    "dataclass": (lambda x: Scores(x + 1), ["logits"]),
    "registered": (lambda x: Box([x + 1, x + 2]), ["output_0", "output_1"]),
    "ordered_dict": (lambda x: collections.OrderedDict(b=x + 1, a=x + 2), ["b", "a"]),
    "constants": (lambda x: (x + 1, None, "text"), ["output_0"]),
    "numbers": (lambda x: (x + 1, 3, 2.5), ["output_0", "output_1", "output_2"]),
    "the_input": (lambda x: (x, x), ["output_0", "output_1"]),
    "same_twice": (lambda x: [x + 1] * 2, ["output_0", "output_1"]),
    "key_of_an_input": (lambda x: {"x": x + 1}, ["x_out"]),
}


@BOTH
@pytest.mark.parametrize("name", OUTPUTS)
def test_nested_outputs(name, capture):
    model, expected = OUTPUTS[name]
    program = check(model, (r(2, 3),), capture)
    assert names(program)[1] == expected


@BOTH
def test_a_size_as_output(capture):
    program = sardonyx.export(
        lambda x: {"y": x + 1, "rows": x.shape[0]},
        (r(4, 3),),
        capture=capture,
        dynamic_axes={"x": [0]},
    )
    assert program(r(7, 3))["rows"] == 7


# -- kinds of models -----------------------------------------------------------------------------


@BOTH
def test_functions_partials_and_modules_with_hooks(capture):
    def scaled(x, factor, *, shift):
        return x * factor + shift

    x = r(3)
    same(sardonyx.export(lambda x: x.sin(), (x,), capture=capture)(x), x.sin())
    partial = functools.partial(scaled, shift=1.0)
    same(sardonyx.export(partial, (x, r(3)), capture=capture)(x, x), x * x + 1)
    module = torch.nn.Linear(3, 3)
    handles = [
        module.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        module.register_forward_hook(lambda m, args, out: out + 1),
    ]
    program = sardonyx.export(module, (x,), capture=capture)
    same(program(x), module(x))
    for handle in handles:
        handle.remove()
    assert not torch.allclose(program(x), module(x))


class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())

    def forward(self, x, n, *, y=None):
        h = self.body(x) * n
        if y is not None:
            h = h + y["a"]
        return {"logits": h, "past": [(h + 1, h.shape[0])]}


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch about itself
@pytest.mark.parametrize("way", ["plain", "saved", "decomposed"])
def test_an_exported_program_is_taken_as_it_is(way):
    model, args, kwargs = Tower().eval(), (r(2, 4), 3), {"y": {"a": r(2, 3)}}
    batch = Dim("batch")
    shapes = {"x": {0: batch}, "n": Dim.DYNAMIC, "y": {"a": {0: batch}}}
    exported = torch.export.export(model, args, kwargs, dynamic_shapes=shapes)
    if way == "saved":
        stream = io.BytesIO()
        torch.export.save(exported, stream)
        stream.seek(0)
        exported = torch.export.load(stream)
    elif way == "decomposed":
        exported = exported.run_decompositions()
    program = sardonyx.export(exported)
    assert names(program) == (["x", "n", "y_a"], ["logits", "past.0.0", "past.0.1"])
    same(program(*args, **kwargs), model(*args, **kwargs))
    other = (r(5, 4), 2), {"y": {"a": r(5, 3)}}
    same(program(*other[0], **other[1]), model(*other[0], **other[1]))
    scopes = {node.metadata_props.get("sardonyx.scope") for node in program.model.graph}
    assert "Tower/Sequential[body]/Linear[0]" in scopes


def test_an_exported_program_with_names_for_its_dims():
    exported = torch.export.export(
        Tower().eval(), (r(2, 4), 3), dynamic_shapes=({0: Dim("b")}, None)
    )
    program = sardonyx.export(
        exported,
        input_names=["image"],
        output_names=["scores"],
        dynamic_axes={"image": {0: "batch"}, "scores": {0: "rows"}},
    )
    assert names(program) == (["image"], ["scores", "past.0.0", "past.0.1"])
    assert str(program.model.graph.inputs[0].shape) == "[batch,4]"
    assert str(program.model.graph.outputs[0].shape) == "[rows,3]"
    with pytest.raises(
        sardonyx.errors.DynamicDimError, match="was exported with a fixed size there"
    ):
        sardonyx.export(exported, dynamic_axes={"x": [1]})
    with pytest.raises(InvalidOptionError, match=r"give them to torch\.export\.export"):
        sardonyx.export(exported, dynamic_shapes=({0: "b"},))
