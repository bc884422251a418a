"""`sardonyx.symbolic_opset9` and its kin: symbolic functions that build on the library's forms."""

from __future__ import annotations

import importlib.util
import pickle

import pytest
import torch
from torch import nn

import sardonyx
import sardonyx.symbolic_opset9 as opset9  # type: ignore[import-not-found]
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions import registration

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


def exported(model, name, symbolic, *inputs, **options):
    sardonyx.register_custom_op_symbolic(name, symbolic, 9)
    program = sardonyx.export(model, inputs or (X,), verify=True, **options)
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


def gelu(g, self, approximate):
    root = g.op("Constant", value_t=torch.tensor(2.0).sqrt())
    normal = opset9.add(g, opset9.erf(g, opset9.div(g, self, root)), 1)
    return opset9.mul(g, opset9.mul(g, self, normal), torch.tensor(0.5))


def moved_and_back(g, self, approximate):
    moved = opset9.unsqueeze(g, self, g.op("Constant", value_t=torch.tensor(0)))
    moved = opset9.transpose(g, opset9.squeeze(g, moved, 0), 1, 2)
    moved = opset9.reshape(g, opset9.permute(g, moved, [0, 2, 1]), [2, 3, 4])
    return opset9.gelu(g, opset9._cast_Float(g, moved, False), approximate)


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("symbolic", [gelu, moved_and_back])
def test_forms_of_the_library(symbolic, capture):
    assert exported(nn.GELU(), "aten::gelu", symbolic, capture=capture)


def test_an_override_ends_in_the_form_that_it_overrides():
    def layer_norm(g, input, normalized_shape, weight, bias, eps, cudnn_enable):
        return opset9.layer_norm(g, input, normalized_shape, weight, bias, eps, cudnn_enable)

    assert exported(nn.LayerNorm(4), "aten::layer_norm", layer_norm) == ["LayerNormalization"]


def test_lists_and_several_results():
    assert exported(
        lambda x: torch.cat([x, x], 1), "aten::cat", lambda g, ts, dim: opset9.cat(g, ts, dim)
    ) == ["Concat"]

    def topk(g, self, k, dim, largest, sorted):
        return opset9.topk(g, self, k, dim, largest, sorted)

    assert exported(lambda x: x.topk(2, 1), "aten::topk", topk) == ["TopK"]


def test_sizes_that_are_computed():
    def expand(g, self, size, implicit):
        return opset9.expand(g, self, size, implicit)

    program = exported(
        lambda x: x[:, :1].expand(x.shape[0], 5, 4),
        "aten::expand",
        expand,
        input_names=["x"],
        dynamic_axes={"x": {0: "n"}},
    )
    assert "Expand" in program


def test_arguments_that_fit_no_overload():
    with pytest.raises(
        SymbolicFunctionError, match=r"transpose does not take .*int dim0, int dim1"
    ):
        exported(nn.ReLU(), "aten::relu", lambda g, self: opset9.transpose(g, self))


def test_a_name_that_is_no_operator():
    with pytest.raises(AttributeError, match="no ONNX form of aten::nosuch"):
        _ = opset9.nosuch


def test_a_function_is_put_into_a_module_and_taken_back():
    """By unregistering it, by putting the library's back, by deleting it."""
    ours = opset9.elu

    def elu(g, input, alpha, scale, input_scale):
        return g.op("Elu", input, alpha_f=alpha)

    def taken_back(take_back):
        opset9.elu = elu
        assert opset9.elu is elu and sardonyx.symbolic_opset13.elu is not elu
        take_back()
        assert type(opset9.elu) is type(ours)
        assert not sardonyx.extend.symbolic_functions.registration.registered_names()

    taken_back(lambda: sardonyx.unregister_custom_op_symbolic("aten::elu", 9))
    taken_back(lambda: setattr(opset9, "elu", ours))
    taken_back(lambda: delattr(opset9, "elu"))
    taken_back(lambda: sardonyx.symbolic_registry.unregister_op("elu", "", 9))


def test_another_that_is_registered_later_does_not_stay_in_the_module():
    def elu(g, input, alpha, scale, input_scale):
        return g.op("Elu", input, alpha_f=alpha)

    opset9.elu = elu
    sardonyx.register_custom_op_symbolic("aten::elu", lambda g, *args: opset9.elu(g, *args), 9)
    program = sardonyx.export(nn.ELU(0.5), X, verify=True)
    assert [node.op_type for node in program.model.graph] == ["Elu"]


def test_another_function_of_the_library_takes_its_place():
    before = opset9.relu
    opset9.relu = opset9.leaky_relu
    try:
        program = sardonyx.export(nn.ReLU(), X)
        assert [node.op_type for node in program.model.graph] == ["LeakyRelu"]
        assert opset9.relu is opset9.leaky_relu is sardonyx.symbolic.relu
    finally:
        opset9.relu = before
    assert opset9.relu is before
    program = sardonyx.export(nn.ReLU(), X)
    assert [node.op_type for node in program.model.graph] == ["Relu"]


def test_functions_that_are_not_of_operators_are_put_back():
    before = opset9.size
    opset9.size = lambda g, self, dim=None: before(g, self, dim)
    assert "aten::size" in registration.registered_names()
    opset9.size = before
    assert not registration.registered_names()


def test_a_class_is_no_function():
    opset9.table = dict
    try:
        assert opset9.table is dict
        assert not registration.registered_names()
    finally:
        del opset9.table


def test_all_names_are_imported():
    names: dict[str, object] = {}
    exec("from sardonyx.symbolic_opset9 import *", names)
    assert names["relu"] is opset9.relu
    assert "size" in names
    assert not any(name.startswith("_") for name in opset9.__all__)


def test_they_are_modules_and_functions_like_others():
    assert importlib.util.find_spec("sardonyx.symbolic_opset9") is not None
    assert pickle.loads(pickle.dumps(opset9.elu)) is opset9.elu
    with pytest.raises(AttributeError, match=r"a\.b"):
        getattr(sardonyx, "a.b")


def test_a_list_of_sizes_finds_its_overload():
    def split(g, self, sizes, dim):
        return opset9.split(g, self, [1, 3], dim)

    model = lambda x: x.split([1, 3], 2)  # noqa: E731
    assert exported(model, "aten::split_with_sizes", split) == ["Split"]
