"""Dynamic dims by both captures: exported once, run at other sizes against eager."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

import sardonyx
from sardonyx.errors import DynamicDimError, InvalidOptionError

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
r = torch.randn


def check(model, args, others, capture, **options):
    """`model` agrees with its export at the example and at every other input."""
    program = sardonyx.export(model, args, kwargs={}, capture=capture, **options)
    for inputs in (args, *others):
        torch.testing.assert_close(program(*inputs), model(*inputs))
    return program


def dims(program, name):
    values = (*program.model.graph.inputs, *program.model.graph.outputs)
    shape = next(v.shape for v in values if v.name == name)
    return [d if isinstance(d, int) else d.value for d in shape]


TOKEN = torch.randn(1, 3, 2)
SIZE_ARITHMETIC = {
    "half_plus_one": lambda x: x[:, : x.shape[1] // 2 + 1],
    "slice_half": lambda x: x[:, : x.shape[1] // 2],
    "pad_to_multiple": lambda x: F.pad(x, (0, (8 - x.shape[1] % 8) % 8)),
    "view": lambda x: x.view(x.shape[0], -1),
    "view_minus_one": lambda x: x.view(-1),
    "arange": lambda x: x + torch.arange(x.shape[1]),
    "zeros": lambda x: torch.zeros(x.shape[0], 3) + x[:, :1],
    "new_zeros": lambda x: x.new_zeros(x.shape[1], 2) + 1,
    "expand": lambda x: TOKEN.expand(x.shape[0], -1, -1) + x[:, :1, None],
    "divide_by_size": lambda x: x / x.shape[1],
    "product_of_sizes": lambda x: x.reshape(x.shape[0] * x.shape[1]) * x.numel(),
    "flip_and_roll": lambda x: x.flip(1) + x.roll(1, 0),
    "mask": lambda x: torch.ones(x.shape[1], x.shape[1]).tril() @ x.t(),
    "cat_own_size": lambda x: torch.cat([x, x.new_ones(x.shape[0], 1)], 1),
}


@BOTH
@pytest.mark.parametrize("name", SIZE_ARITHMETIC)
def test_arithmetic_on_sizes(name, capture):
    check(
        SIZE_ARITHMETIC[name],
        (r(4, 6),),
        [(r(3, 9),), (r(2, 16),), (r(5, 2),)],
        capture,
        dynamic_axes={"x": [0, 1]},
    )


def test_float_arithmetic_on_sizes():
    check(
        lambda x: torch.zeros(torch.sym_int(x.shape[1] * 1.5)) + 1,
        (r(4, 6),),
        [(r(3, 9),), (r(2, 16),)],
        "export",
        dynamic_axes={"x": [0, 1]},
    )


@BOTH
def test_interpolate_to_twice_the_size(capture):
    program = check(
        lambda x: F.interpolate(x, scale_factor=2.0),
        (r(1, 2, 6, 5),),
        [(r(1, 2, 9, 3),), (r(1, 2, 4, 7),)],
        capture,
        dynamic_axes={"x": {2: "h", 3: "w"}},
    )
    assert dims(program, "x") == [1, 2, "h", "w"]


@BOTH
@pytest.mark.parametrize("axes", [[0, 1], (0, -1), {0, 1}])
def test_axes_as_a_list(axes, capture):
    program = check(lambda x: x * 2, (r(2, 6),), [(r(3, 9),)], capture, dynamic_axes={"x": axes})
    assert dims(program, "x") == ["x_dim_0", "x_dim_1"]


@BOTH
def test_axes_by_name(capture):
    program = check(
        lambda x: x * 2, (r(2, 6),), [(r(3, 9),)], capture, dynamic_axes={"x": {0: "n", -1: "t"}}
    )
    assert dims(program, "x") == ["n", "t"]
    assert dims(program, "output") == ["n", "t"]


@BOTH
def test_output_axes_have_the_names_asked_for(capture):
    program = check(
        lambda x: x * 2,
        (r(2, 6),),
        [(r(3, 6),)],
        capture,
        output_names=["y"],
        dynamic_axes={"x": {0: "n"}, "y": {-2: "rows"}},
    )
    assert dims(program, "y") == ["rows", 6]


@BOTH
def test_an_output_axis_that_is_fixed_is_refused(capture):
    with pytest.raises(DynamicDimError, match="output 'output' was asked to be dynamic"):
        sardonyx.export(
            lambda x: x.sum(0), (r(2, 6),), capture=capture, dynamic_axes={"x": [0], "output": [0]}
        )


@BOTH
def test_input_names_are_the_keys(capture):
    program = check(
        lambda x: x * 2,
        (r(2, 6),),
        [(r(3, 6),)],
        capture,
        input_names=["image"],
        dynamic_axes={"image": [0]},
    )
    assert dims(program, "image") == ["image_dim_0", 6]


@BOTH
@pytest.mark.parametrize("size", [0, 1])
def test_an_example_of_size_zero_or_one(size, capture):
    check(
        lambda x: (x * 2, x.sum(0), x.reshape(-1)),
        (r(size, 6),),
        [(r(3, 6),), (r(1, 6),), (r(0, 6),)],
        capture,
        dynamic_axes={"x": [0]},
    )


@BOTH
@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_size_of_the_example_that_another_one_follows_from(size, capture):
    def model(past, mask):
        return torch.cat([past, past.new_ones(1)]) * mask

    others = [(r(n), r(n + 1)) for n in (0, 1, 2, 7)]
    axes = {"past": [0], "mask": [0]}
    check(model, (r(size), r(size + 1)), others, capture, dynamic_axes=axes)


@BOTH
def test_an_example_of_size_one_that_another_size_breaks(capture):
    def model(x, squared):
        return (x[:, None] * x).flatten() + squared.view(x.shape[0] * x.shape[0])

    axes = {"x": [0], "squared": [0]}
    with pytest.raises(DynamicDimError, match="an example in which every dynamic dim is 2 or more"):
        sardonyx.export(model, (r(1), r(1)), capture=capture, dynamic_axes=axes)
    check(model, (r(4), r(16)), [(r(2), r(4))], capture, dynamic_axes=axes)


@BOTH
def test_one_name_for_two_inputs(capture):
    axes = {"x": {0: "b"}, "y": {0: "b"}}
    program = check(
        lambda x, y: (x.sum(1), y * 2),
        (r(4, 6), r(4)),
        [(r(3, 6), r(3))],
        capture,
        dynamic_axes=axes,
    )
    assert dims(program, "y") == ["b"]
    with pytest.raises(InvalidOptionError, match="is called 'b' and is 5"):
        sardonyx.export(
            lambda x, y: x.sum() + y.sum(), (r(4), r(5)), capture=capture, dynamic_axes=axes
        )


@BOTH
def test_two_names_that_the_model_requires_equal(capture):
    program = check(
        lambda x, y: x + y,
        (r(4, 6), r(4, 6)),
        [(r(3, 9), r(3, 9))],
        capture,
        dynamic_axes={"x": [0, 1], "y": [0, 1]},
    )
    assert dims(program, "x") == ["x_dim_0", "x_dim_1"]
    assert dims(program, "y") == ["y_dim_0", "y_dim_1"]


# -- dynamic_shapes ------------------------------------------------------------------------------

D = Dim("d", min=2, max=100)
SHAPES = {
    "dim": ({"x": {0: D}}, ["d", 6]),
    "auto": ({"x": {0: Dim.AUTO, 1: Dim.STATIC}}, ["x_dim_0", 6]),
    "dynamic": ({"x": {0: Dim.DYNAMIC}}, ["x_dim_0", 6]),
    "string": (({0: "b"},), ["b", 6]),
    "tuple": ((("b", None),), ["b", 6]),
    "list": ([[D, None]], ["d", 6]),
    "negative": ({"x": {-2: "b"}}, ["b", 6]),
}


@BOTH
@pytest.mark.parametrize("name", SHAPES)
def test_dynamic_shapes(name, capture):
    shapes, expected = SHAPES[name]
    program = check(
        lambda x: x * 2, (r(4, 6),), [(r(3, 6),), (r(7, 6),)], capture, dynamic_shapes=shapes
    )
    assert dims(program, "x") == expected


@BOTH
def test_dynamic_shapes_nested_like_the_inputs(capture):
    program = check(
        lambda x, y: (x["a"] + 1, x["b"][0] * y),
        ({"a": r(8, 6), "b": [r(3)]}, r(3)),
        [({"a": r(7, 6), "b": [r(4)]}, r(4))],
        capture,
        dynamic_shapes=({"a": {0: "n"}, "b": [{0: "m"}]}, {0: "m"}),
    )
    assert dims(program, "x.a") == ["n", 6]
    assert dims(program, "x.b.0") == ["m"]


@BOTH
@pytest.mark.parametrize("size", [4, 1])
def test_derived_dim(size, capture):
    d = Dim("d")
    program = check(
        lambda x, y: torch.cat([x, x]) + y,
        (r(size, 6), r(2 * size, 6)),
        [(r(3, 6), r(6, 6)), (r(5, 6), r(10, 6))],
        capture,
        dynamic_shapes={"x": {0: d}, "y": {0: 2 * d}},
    )
    assert dims(program, "x") == ["d", 6]
    assert dims(program, "y") == ["2*d", 6]


@BOTH
def test_an_optional_dim_that_the_model_fixes_is_fixed_in_the_file(capture):
    for size in (4, 1):
        program = check(
            lambda x: x + torch.zeros(int(x.shape[0]), 1),
            (r(size, 6),),
            [],
            capture,
            dynamic_shapes=({0: Dim.AUTO},),
        )
        assert dims(program, "x") == [size, 6]
        assert program.signature.inputs[0].dims == (size, 6)


@BOTH
def test_dynamic_shapes_that_do_not_fit(capture):
    def refused(shapes, message):
        with pytest.raises(InvalidOptionError, match=message):
            sardonyx.export(lambda x: x * 2, (r(4, 6),), capture=capture, dynamic_shapes=shapes)

    refused({"z": {0: "b"}}, "dynamic_shapes names 'z', but the inputs are x")
    refused(({0: "b"}, {0: "b"}), "2 entries for 1 inputs")
    refused((("b",),), "has 1 dims, the example has 2")
    refused(({5: "b"},), "dynamic axis 5 of 'x' does not exist")
    refused("b", "must be a tuple or a dict")


# -- a dim that the model fixes ------------------------------------------------------------------


def view_of_four(x):
    return x.view(4, -1)  # here


def branch_on_equality(x):
    if x.shape[0] == 4:  # here
        return x + 1
    return x - 1


def python_int(x):
    return torch.zeros(int(x.shape[0]))  # here


def loop_over_rows(x):
    return sum(x[i] for i in range(x.shape[0]))  # here


def number_of_pieces(x):
    return torch.stack(x.split(2))  # here


def int_of_float(x):
    return torch.zeros(int(x.shape[0] * 1.5))  # here


FIXING = [
    view_of_four, branch_on_equality, python_int, loop_over_rows, number_of_pieces, int_of_float,
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("model", FIXING, ids=lambda m: m.__name__)
def test_a_dim_that_the_model_fixes_is_refused_with_its_line(model, capture):
    with pytest.raises(DynamicDimError, match=r"test_dynamic_dims\.py:\d+ .*# here"):
        sardonyx.export(model, (r(4, 6),), capture=capture, dynamic_axes={"x": [0]})


@BOTH
@pytest.mark.parametrize("model", FIXING, ids=lambda m: m.__name__)
def test_the_same_models_export_where_the_dim_is_fixed(model, capture):
    check(model, (r(4, 6),), [], capture)


def branch_on_order(x):
    if x.shape[0] > 3:  # here
        return x + 1
    return x - 1


@BOTH
def test_a_branch_on_a_size_is_noted_with_its_line(capture):
    program = check(
        branch_on_order, (r(5, 6),), [(r(4, 6),)], capture, dynamic_axes={"x": {0: "batch"}}
    )
    (note,) = program.notes
    assert "the recording holds where batch > 3: the model decides by it at" in note
    assert "test_dynamic_dims.py:" in note and "# here" in note


def test_an_operators_own_conditions_are_not_noted():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1)
    )
    program = sardonyx.export(
        model, (r(2, 3, 16, 16),), capture="export", dynamic_shapes=({0: "n", 2: "h", 3: "w"},)
    )
    assert program.notes == ()
    other = r(3, 3, 21, 13)
    torch.testing.assert_close(program(other), model(other), rtol=1e-4, atol=1e-5)


def test_values_that_a_trace_bakes_are_noted_not_taken_for_sizes():
    def model(x):
        return x * float(x.max())

    x = r(4, 6)
    program = sardonyx.export(model, (x,), capture="trace", dynamic_axes={"x": [0]})
    (note,) = program.notes
    assert f"becomes a Python float ({x.max():.6g}) at" in note


@BOTH
def test_size_checks_of_torch_nn_are_not_noted(capture):
    model = torch.nn.LSTM(4, 5, batch_first=True)
    program = sardonyx.export(model, (r(2, 6, 4),), capture=capture, dynamic_axes={"input": [0, 1]})
    assert program.notes == ()
    other = r(3, 9, 4)
    torch.testing.assert_close(program(other), model(other), rtol=1e-4, atol=1e-5)


@BOTH
def test_dynamic_shapes_of_variadic_arguments(capture):
    def model(*parts):
        return parts[0] + parts[1]

    shapes = {"parts": ({0: "b"}, {0: "b"})}
    program = check(model, (r(4), r(4)), [(r(3), r(3))], capture, dynamic_shapes=shapes)
    assert dims(program, "parts.1") == ["b"]


# -- pieces of a dynamic dim ---------------------------------------------------------------------


def _cleared(x, at):
    y = x.clone()
    y[at] = 0.0
    return y


PIECES = {
    "mean_of_first": lambda x: x[:5].sum(0) / x[:5].shape[0],
    "deviation_of_last": lambda x: x[-5:].std(0),
    "zeros_like": lambda x: torch.zeros_like(x[:5]),
    "arange": lambda x: torch.arange(x[:5].shape[0]),
    "middle": lambda x: torch.zeros_like(x[1:5]),
    "from_the_end": lambda x: torch.zeros_like(x[-4:-1]),
    "without_ends": lambda x: torch.zeros_like(x[2:-2]),
    "from_the_end_to_a_number": lambda x: torch.zeros_like(x[-4:5]),
    "step": lambda x: torch.zeros_like(x[1:6:2]),
    "write": lambda x: _cleared(x, slice(1, 5)),
    "write_last": lambda x: _cleared(x, slice(-3, None)),
    "write_step": lambda x: _cleared(x, slice(0, 5, 2)),
    "split_in_three": lambda x: [torch.zeros_like(piece) for piece in x.tensor_split(3)],
}


@BOTH
@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_as_long_as_the_dim_allows(name, capture):
    program = check(
        PIECES[name],
        (r(8, 6),),
        [(r(n, 6),) for n in (2, 3, 4, 6, 13)],
        capture,
        dynamic_axes={"x": [0]},
    )
    assert program.notes == ()


@BOTH
def test_a_piece_taken_apart(capture):
    def model(x):
        first, second = x[:2]
        return first - second, torch.cat([p * 2 for p in x[:4].split(2)])

    check(model, (r(8, 6),), [(r(4, 6),)], capture, dynamic_axes={"x": [0]})


@BOTH
@pytest.mark.parametrize("bounds", [lambda n: slice(n, None), lambda n: slice(None, n)])
def test_a_write_to_a_slice_with_a_bound_from_the_caller(bounds, capture):
    check(
        lambda x, n: (_cleared(x, bounds(n)), torch.zeros_like(x[bounds(n)])),
        (r(5, 2), 2),
        [(r(5, 2), n) for n in (-9, -5, -2, 0, 4, 5, 9)],
        capture,
    )


@BOTH
def test_what_the_model_takes_for_granted_of_a_buffer_is_not_noted(capture):
    table = r(20, 6)
    program = check(
        lambda x: x + table[: x.shape[0]],
        (r(8, 6),),
        [(r(3, 6),)],
        capture,
        dynamic_axes={"x": [0]},
    )
    assert program.notes == ()
    assert dims(program, "output") == ["x_dim_0", 6]


@BOTH
@pytest.mark.parametrize("arguments", [(3, 2), (3, 2, 1), (2, 3)])
def test_max_pool1d_with_a_last_window_that_juts_out(arguments, capture):
    check(
        lambda x: torch.zeros_like(F.max_pool1d(x, *arguments, ceil_mode=True)),
        (r(2, 3, 12),),
        [(r(2, 3, n),) for n in (6, 7, 8, 9, 10, 11, 13)],
        capture,
        dynamic_axes={"x": [2]},
    )


# -- a size that the model treats as special -----------------------------------------------------


def branch_above_one(x):
    if x.shape[0] > 1:  # here
        return x - x.mean(0)
    return x


def branch_on_one(x):
    if x.shape[0] == 1:  # here
        return x * 100
    return x


def factor_by_size(x):
    return x * (100.0 if x.shape[0] == 1 else 2.0)  # here


SPECIAL = [branch_above_one, branch_on_one, factor_by_size]


@BOTH
@pytest.mark.parametrize("model", SPECIAL, ids=lambda m: m.__name__)
def test_a_size_one_that_the_model_treats_specially_is_refused(model, capture):
    with pytest.raises(DynamicDimError, match="size 1 of 'n' specially") as info:
        sardonyx.export(model, (r(1, 6),), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert "test_dynamic_dims.py:" in str(info.value) and "# here" in str(info.value)
    program = check(model, (r(1, 6),), [], capture, dynamic_shapes=({0: Dim.AUTO},))
    assert dims(program, "x") == [1, 6]


@BOTH
def test_one_of_two_results_by_size_is_refused(capture):
    with pytest.raises(DynamicDimError, match="specially"):
        sardonyx.export(
            lambda x, y: x if x.shape[0] == 1 else y,
            (r(1, 6), r(1, 6)),
            capture=capture,
            dynamic_axes={"x": [0], "y": [0]},
        )


@BOTH
def test_a_number_zero_that_decides_is_part_of_the_graph(capture):
    def model(x, n):
        return x * 2 if n > 0 else x + 10

    program = check(model, (r(2, 6), 0), [], capture)
    assert [spec.name for spec in program.signature.inputs] == ["x"]


def test_a_number_one_that_does_not_decide_stays_an_input():
    check(
        lambda x, n: (x.roll(n, 0), x[:n].sum(0) + n),
        (r(5, 6), 1),
        [(r(5, 6), 3), (r(5, 6), 0)],
        "export",
    )


def test_a_decision_at_size_one_that_changes_nothing_is_not_special():
    weight = torch.randn(1, 3)

    def model(x, always=True):
        other = weight.shape[0] != x.shape[0]
        return (weight.expand(x.shape[0], -1) if other or always else weight) + x

    options = {"dynamic_axes": {"x": [0]}, "input_names": ["x"]}
    program = sardonyx.export(model, (torch.randn(1, 3),), **options)
    (note,) = program.notes
    assert "at other sizes" in note and "other or always" in note
    for size in (1, 4):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x), model(x))


@BOTH
def test_layers_at_size_one_are_not_special(capture):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    program = sardonyx.export(layer, (r(1, 1, 8),), capture=capture, dynamic_axes={"src": [0, 1]})
    for shape in ((1, 1, 8), (3, 5, 8)):
        x = r(*shape)
        torch.testing.assert_close(program(x), layer(x), rtol=1e-4, atol=1e-5)


# -- what tracing bakes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [lambda x, n: x.flip(n - 3), lambda x, n: x.sum(n - 3)], ids=["flip", "sum"]
)
def test_a_number_that_a_trace_bakes_without_a_warning_is_part_of_the_graph(model):
    program = check(model, (r(4, 6), 3), [], "trace")
    assert any("it is 3 in the file, not an input" in note for note in program.notes)


def test_a_baked_size_that_shows_only_far_from_the_example_is_refused():
    with pytest.raises(DynamicDimError, match=r"the model fixes it to 12\n.*int\(x.shape\[0\]\)"):
        sardonyx.export(
            lambda x: x * (int(x.shape[0]) // 10 + 1),
            (r(12, 6),),
            capture="trace",
            dynamic_axes={"x": [0]},
        )


@BOTH
def test_float_arguments_have_the_default_dtype(capture):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        program = check(lambda x, a: x * a, (r(4), 0.1), [(r(4), 1 / 3)], capture)
    finally:
        torch.set_default_dtype(before)
    assert program.signature.inputs[1].dtype == torch.float64


REGRESSIONS = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss]


@BOTH
@pytest.mark.parametrize("loss", REGRESSIONS)
def test_losses_of_inputs_with_sizes_of_one_name(loss, capture):
    axes = {name: {0: "n", 1: "m"} for name in ("x", "y")}
    others = [(r(5, 2), r(5, 2)), (r(1, 4), r(1, 4))]
    example = r(3, 4), r(3, 4)
    check(loss, example, others, capture, input_names=["x", "y"], dynamic_axes=axes)


def test_sizes_of_two_names_broadcast_where_one_is_1():
    axes = {"x": {0: "n"}, "y": {0: "k"}}
    others = [(r(5, 4), r(5, 4)), (r(5, 4), r(1, 4)), (r(1, 4), r(5, 4))]

    def both(x, y):
        first, second = torch.broadcast_tensors(x, y)
        return first - second

    example = r(3, 4), r(3, 4)
    check(both, example, others, "trace", input_names=["x", "y"], dynamic_axes=axes)


@BOTH
def test_a_size_of_one_name_is_one_size_in_three_inputs(capture):
    names = ["x", "y", "z"]
    axes = {name: {0: "n", 1: "n"} for name in names}

    def model(x, y, z):
        return torch.stack(torch.broadcast_tensors(x, y, z)).reshape(3, -1)

    others = [tuple(r(5, 5) for _ in names), tuple(r(1, 1) for _ in names)]
    check(model, (r(3, 3), r(3, 3), r(3, 3)), others, capture, input_names=names, dynamic_axes=axes)


def test_dynamic_axes_take_dims_with_ranges():
    dim = torch.export.Dim("batch", min=3, max=8)
    program = sardonyx.export(
        lambda x: x * 2 if x.shape[0] > 2 else x, torch.randn(4, 3), dynamic_axes={"x": {0: dim}}
    )
    assert program.notes == () and program.signature.inputs[0].dims == ("batch", 3)
    with pytest.raises(sardonyx.InvalidOptionError, match=r"allows 3\.\.8 for dim 0 of 'x'"):
        sardonyx.export(lambda x: x, torch.randn(2, 3), dynamic_axes={"x": {0: dim}})
