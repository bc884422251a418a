"""`torch.onnx.ops` and `torch.onnx.operators`, by which models say what they want in the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch.onnx.operators import reshape_from_tensor_shape, shape_as_tensor

import sardonyx

X = torch.randn(2, 3)
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


def nodes(program: sardonyx.ONNXProgram) -> list[onnx.NodeProto]:
    return [n for n in program.model_proto.graph.node if n.op_type != "Constant"]


class CustomOp(torch.nn.Module):
    """The example of PyTorch's own documentation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        val = torch.onnx.ops.symbolic(
            "custom_domain::CustomOp",
            (x, None, x),
            {"attr_key": "attr_value", "n": 3, "flag": True, "scales": [1.0, 2], "axes": [0, 1]},
            dtype=x.dtype,
            shape=x.shape,
            version=2,
            metadata_props={"author": "me"},
        )
        return torch.nn.functional.relu(val)


@CAPTURES
@pytest.mark.parametrize("is_installed", [False, True])
def test_a_node_of_a_domain_of_ones_own(is_installed: bool, capture: str) -> None:
    asked: dict[str, Any] = {"dynamic_axes": {"x": {0: "n"}}, "capture": capture}
    if is_installed:
        with sardonyx.installed():
            program = torch.onnx.export(CustomOp(), X, **asked)
    else:
        program = sardonyx.export(CustomOp(), X, **asked)
    _, node, relu = nodes(program)
    assert (node.domain, node.op_type, relu.op_type) == ("custom_domain", "CustomOp", "Relu")
    assert [bool(name) for name in node.input] == [True, False, True]
    assert {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} == {
        "attr_key": b"attr_value",
        "n": 3,
        "flag": 1,
        "scales": [1.0, 2.0],
        "axes": [0, 1],
    }
    assert {p.key: p.value for p in node.metadata_props}["author"] == "me"
    assert program.model.opset_imports["custom_domain"] == 2
    assert program.model.graph.outputs[0].shape == ("n", 3)


@CAPTURES
def test_by_the_name_of_this_package(capture: str) -> None:
    class Own(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            top, places = sardonyx.ops.symbolic_multi_out(
                "TopK",
                (x, torch.tensor([2])),
                {"axis": 1, "largest": 0},
                dtypes=(x.dtype, torch.int64),
                shapes=((x.shape[0], 2), (x.shape[0], 2)),
            )
            shape = sardonyx.operators.shape_as_tensor(x)
            top = top * places + sardonyx.operators.reshape_from_tensor_shape(x, shape)[:, :2]
            options = {"dtype": x.dtype, "shape": top.shape, "version": 16}
            return sardonyx.ops.symbolic("LeakyRelu", (top,), {"alpha": 0.25}, **options)

    program = sardonyx.export(Own(), X, dynamic_axes={"x": {0: "n"}}, capture=capture)
    for n in (0, 1, 2, 7):
        x = torch.randn(n, 3)
        values, places = x.topk(2, largest=False)
        expected = torch.nn.functional.leaky_relu(values * places + x[:, :2], 0.25)
        torch.testing.assert_close(program(x), expected)


def test_attributes_of_every_kind() -> None:
    attributes = {"i": 1, "f": 0.5, "s": "a", "b": True, "is": [1, 2], "fs": [1, 2.5], "ss": ["x"]}

    def model(x: torch.Tensor) -> torch.Tensor:
        return sardonyx.ops.symbolic(
            "my::Op",
            (x, None, x),
            attributes,
            dtype=1,
            shape=[3],
            version=4,
            metadata_props={"author": "me"},
        )

    assert model(X).shape == (3,)
    program = sardonyx.export(model, X)
    (node,) = nodes(program)
    held = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert held == {**attributes, "s": b"a", "b": 1, "ss": [b"x"]}
    assert {p.key: p.value for p in node.metadata_props}["author"] == "me"
    assert program.model.opset_imports["my"] == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attrs": {"axes": []}}, "the attribute axes must be a number"),
        ({"attrs": {"axes": [1, "x"]}}, "the attribute axes must be a number"),
        ({"dtype": 99}, "99 is no dtype"),
        ({"dtype": torch.quint8}, "quint8 is no dtype"),
        ({"domain_op": "my::"}, "'my::' is no node"),
    ],
)
def test_calls_that_say_no_node(given: dict[str, Any], message: str) -> None:
    asked = {"domain_op": "my::Op", "dtype": torch.float32, "shape": (3,), **given}
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        sardonyx.ops.symbolic(asked.pop("domain_op"), (X,), **asked)


def leaky(x: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch.onnx.ops.symbolic(
        "LeakyRelu", (x,), {"alpha": 0.25}, dtype=x.dtype, shape=x.shape, **options
    )


@CAPTURES
@pytest.mark.parametrize("version", [None, 16, 20])
def test_a_node_of_onnx(version: int | None, capture: str) -> None:
    program = sardonyx.export(lambda x: leaky(x, version=version), X, capture=capture)
    assert [n.op_type for n in nodes(program)] == ["LeakyRelu"]
    torch.testing.assert_close(program(X), torch.nn.functional.leaky_relu(X, 0.25))


@CAPTURES
def test_several_results(capture: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        values, places = torch.onnx.ops.symbolic_multi_out(
            "TopK",
            (x, torch.tensor([2])),
            {"axis": 1, "largest": 0},
            dtypes=(x.dtype, torch.int64),
            shapes=((x.shape[0], 2), (x.shape[0], 2)),
        )
        return values * places

    program = sardonyx.export(model, X, dynamic_axes={"x": {0: "n"}}, capture=capture)
    for n in (0, 1, 2, 7):
        x = torch.randn(n, 3)
        values, places = x.topk(2, largest=False)
        torch.testing.assert_close(program(x), values * places)


@CAPTURES
def test_sizes_that_are_computed(capture: str) -> None:
    """Two calls of one form, and one whose result has other sizes than any input."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        shape = (x.shape[0] * 2, x.shape[1] + 0)
        options = {"dtype": x.dtype, "shape": shape}
        return torch.onnx.ops.symbolic("Concat", (x, x), {"axis": 0}, **options)

    def model(x: torch.Tensor) -> torch.Tensor:
        return leaky(leaky(twice(twice(x)))).reshape(x.shape[0], -1)

    axes = {"x": {0: "n", 1: "m"}}
    program = sardonyx.export(model, X, dynamic_axes=axes, capture=capture, optimize=False)
    operators = [n.op_type for n in nodes(program)]
    assert operators.count("LeakyRelu") == operators.count("Concat") - 1 == 2
    assert "Expand" not in operators
    for n, m in ((1, 1), (2, 3), (7, 2)):
        x = torch.randn(n, m)
        expected = torch.nn.functional.leaky_relu(x.repeat(4, 1), 0.0625).reshape(n, -1)
        torch.testing.assert_close(program(x), expected)


def scripted(x: torch.Tensor) -> torch.Tensor:
    texts: list[str] = []
    return torch.ops.onnx_symbolic._symbolic(
        torch.jit.annotate(list[torch.Tensor | None], [x]),
        "LeakyRelu",
        1,
        shape=[x.size(0), x.size(1)],
        attr_keys=["alpha"],
        attr_types=["f"],
        attr_pos=[[0, 1]],
        attr_ints=torch.jit.annotate(list[int], []),
        attr_floats=[0.25],
        attr_strs=texts,
        metadata_props_keys=texts,
        metadata_props_values=texts,
    )


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_in_a_script_by_the_operator_alone() -> None:
    """TorchScript does not compile the function; what is behind it it does."""
    program = sardonyx.export(
        torch.jit.script(scripted), X, dynamic_axes={"x": {0: "n"}}, capture="script"
    )
    for n in (0, 1, 2, 7):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), torch.nn.functional.leaky_relu(x, 0.25))
    with pytest.raises(sardonyx.CaptureError, match='capture="export"'):
        sardonyx.export(CustomOp(), X, capture="script")


def test_a_form_of_a_later_opset_is_spelled_out() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic("Gelu", (x,), dtype=x.dtype, shape=x.shape, version=20)

    program = sardonyx.export(model, X, opset_version=17)
    assert "Gelu" not in [n.op_type for n in nodes(program)]
    torch.testing.assert_close(program(X), torch.nn.functional.gelu(X))


def test_what_cannot_be_written_is_refused() -> None:
    def former(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic(
            "Split", (x,), {"axis": 1}, dtype=x.dtype, shape=x.shape, version=11
        )

    def misspelled(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic("Elu", (x,), {"alfa": 1.0}, dtype=x.dtype, shape=x.shape)

    def twice(x: torch.Tensor) -> torch.Tensor:
        for version in (1, 2):
            x = torch.onnx.ops.symbolic(
                "my::Op", (x,), dtype=x.dtype, shape=x.shape, version=version
            )
        return x

    for model, reason in (
        (former, "as opset 11 has it"),
        (misspelled, "alfa"),
        (twice, "version 2 of the domain my"),
    ):
        with pytest.raises(sardonyx.UnsupportedOperatorError, match=reason):
            sardonyx.export(model, X)


def test_a_symbolic_function_comes_before() -> None:
    def negated(g: Any, inputs: Any, *rest: Any) -> Any:
        return g.op("Neg", *sardonyx.symbolic_helper._unpack_list(inputs))

    sardonyx.register_custom_op_symbolic("onnx_symbolic::_symbolic", negated, 9)
    program = sardonyx.export(leaky, X)
    torch.testing.assert_close(program(X), -X)


ROTATED = {
    "": ((2, 4, 3, 8), {}),
    "interleaved": ((2, 4, 3, 8), {"interleaved": True}),
    "heads in the last dim": ((2, 3, 32), {"num_heads": 4}),
    "a part": ((2, 4, 3, 12), {"rotary_embedding_dim": 8}),
}


@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("name", ROTATED)
def test_rotary_embedding(name: str, opset: int) -> None:
    shape, options = ROTATED[name]
    args = (torch.randn(shape), torch.randn(5, 4), torch.randn(5, 4), torch.tensor([[0, 4, 2]] * 2))
    program = sardonyx.export(
        lambda x, cos, sin, ids: torch.onnx.ops.rotary_embedding(x, cos, sin, ids, **options),
        args,
        opset_version=opset,
        verify=True,
    )
    assert ([n.op_type for n in nodes(program)] == ["RotaryEmbedding"]) == (opset == 23)


def random(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(map(torch.randn, shapes))


ATTENTIONS: dict[str, tuple[tuple[torch.Tensor, ...], dict[str, Any]]] = {
    "": (random(*[(2, 4, 3, 8)] * 3), {}),
    "grouped, causal, scaled": (
        random((2, 4, 3, 8), (2, 2, 3, 8), (2, 2, 3, 8)),
        {"is_causal": True, "scale": 0.3},
    ),
    "heads in the last dim": (
        random((2, 3, 32), (2, 5, 16), (2, 5, 16)),
        {"q_num_heads": 4, "kv_num_heads": 2},
    ),
    "mask and past": (
        random((2, 4, 3, 8), *[(2, 4, 2, 8)] * 2, (3, 6), *[(2, 4, 4, 8)] * 2),
        {},
    ),
    "capped": (random(*[(2, 4, 3, 8)] * 3), {"softcap": 2.0, "softmax_precision": 1}),
    "weights": (random(*[(2, 4, 3, 8)] * 3), {"qk_matmul_output_mode": 3}),
}


@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str, opset: int) -> None:
    args, options = ATTENTIONS[name]
    program = sardonyx.export(
        lambda *tensors: torch.onnx.ops.attention(*tensors, **options),
        args,
        opset_version=opset,
        verify=True,
    )
    assert ("Attention" in [n.op_type for n in nodes(program)]) == (opset == 23)


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"qk_matmul_output_mode": 1}, "qk_matmul_output_mode=1"),
        ({"softcap": 2.0, "is_causal": True}, "caps the scores"),
    ],
)
def test_attention_that_onnx_computes_otherwise(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match=reason):
        sardonyx.export(
            lambda q, k, v: torch.onnx.ops.attention(q, k, v, **options)[0], ATTENTIONS[""][0]
        )


@CAPTURES
def test_shapes_as_tensors(capture: str) -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = shape_as_tensor(x)
        turned = torch.cat([shape[1:], shape[:1]])
        return shape * 2, reshape_from_tensor_shape(x, turned) + 1

    program = sardonyx.export(model, X, capture=capture, dynamic_axes={"x": {0: "n"}}, verify=True)
    found, expected = program(torch.ones(7, 3)), model(torch.ones(7, 3))
    torch.testing.assert_close(found, expected)


@CAPTURES
def test_a_shape_that_is_an_input(capture: str) -> None:
    args = (torch.arange(6.0), torch.tensor([3, 2]))
    program = sardonyx.export(reshape_from_tensor_shape, args, capture=capture)
    assert program(torch.arange(6.0), torch.tensor([2, -1])).shape == (2, 3)


@CAPTURES
def test_a_write_to_the_reshaped(capture: str) -> None:
    """Of a contiguous tensor it is a view."""

    def model(x: torch.Tensor, shape: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.clone()
        return x, reshape_from_tensor_shape(x, shape).add_(1)

    args = (torch.randn(2, 3), torch.tensor([3, 2]))
    sardonyx.export(model, args, capture=capture, verify=True)


@CAPTURES
def test_a_reshape_of_what_data_sizes(capture: str) -> None:
    def model(x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
        return reshape_from_tensor_shape(x[x > 0], shape) * 2

    x = torch.tensor([1.0, -1, 2, 3, 4, -2])
    program = sardonyx.export(model, (x, torch.tensor([2, 2])), capture=capture)
    args = (x + 2, torch.tensor([5, -1]))
    torch.testing.assert_close(program(*args), model(*args))


@CAPTURES
def test_a_node_that_cannot_be_written_is_refused_with_the_reason(capture: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        pair = torch.complex(x, x)
        return torch.onnx.ops.symbolic("my::A", (pair,), dtype=torch.float32, shape=x.shape)

    with pytest.raises(sardonyx.SardonyxError, match="not given complex tensors"):
        sardonyx.export(model, (torch.randn(3),), capture=capture)


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"past_key": torch.randn(1, 2, 3, 4)}])
def test_attention_that_onnx_runtime_does_not_take_is_refused(options: dict[str, Any]) -> None:
    def model(x: torch.Tensor) -> Any:
        return torch.onnx.ops.attention(x, x, x, **options)[0]

    with pytest.raises(sardonyx.SardonyxError, match=r"scale=0|come together"):
        sardonyx.export(model, (torch.randn(1, 2, 3, 4),), opset_version=23, capture="export")


@CAPTURES
def test_sizes_that_the_node_does_not_give_are_refused(capture: str) -> None:
    class Turned(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            turned = sardonyx.ops.symbolic(
                "Transpose", [x], {"perm": [1, 0]}, dtype=x.dtype, shape=x.shape
            )
            return turned.sum(0) / turned.shape[0]

    class Listed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return sardonyx.ops.symbolic("SequenceConstruct", [x, x], dtype=x.dtype, shape=x.shape)

    refused = pytest.raises(sardonyx.UnsupportedOperatorError, match=r"gives sizes \[3, 2\] where")
    with refused as raised:
        sardonyx.export(Turned(), X, capture=capture)
    assert "turned = sardonyx.ops.symbolic(" in str(raised.value)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="gives a list where float32"):
        sardonyx.export(Listed(), X, capture=capture)


@CAPTURES
def test_sizes_that_a_function_does_not_give_are_refused(capture: str) -> None:
    turn = lambda g, x: g.op("Transpose", x, perm_i=[1, 0])  # noqa: E731
    sardonyx.register_custom_op_symbolic("aten::relu", turn, 9)
    with pytest.raises(sardonyx.SymbolicFunctionError, match=r"gives sizes \[3, 2\] where"):
        sardonyx.export(torch.nn.ReLU(), X, capture=capture)
    sardonyx.register_custom_op_symbolic("aten::relu", lambda g, x: torch.zeros(5), 9)
    with pytest.raises(sardonyx.SymbolicFunctionError, match="gives a tensor of 1 dims"):
        sardonyx.export(torch.nn.ReLU(), X, capture=capture)


def test_numbers_of_any_kind_are_attributes() -> None:
    class Asks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            leaky = {"alpha": 2}
            first = {"axis": np.int64(1), "keepdims": False}
            return (
                sardonyx.ops.symbolic("LeakyRelu", [x], leaky, dtype=x.dtype, shape=x.shape),
                sardonyx.ops.symbolic("ArgMax", [x], first, dtype=torch.int64, shape=x.shape[:1]),
            )

    leaky, first = sardonyx.export(Asks(), X)(X)
    torch.testing.assert_close(leaky, torch.nn.functional.leaky_relu(X, 2.0))
    assert torch.equal(first, X.argmax(1))


def _relu_of(library: Any) -> torch.nn.Module:
    class Asks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            asked = library.symbolic("Relu", [x], dtype=x.dtype, shape=x.shape)
            return asked * 2, x + 1

    return Asks()


@CAPTURES
@pytest.mark.parametrize("library", [sardonyx.ops, torch.onnx.ops], ids=["ours", "torch"])
def test_verification_says_where_pytorch_has_zeros(library: Any, capture: str) -> None:
    model = _relu_of(library)
    axes = {"x": {0: "n"}}
    program = sardonyx.export(model, X, capture=capture, dynamic_axes=axes, verify=True)
    report = program.verification
    assert report is not None
    (skipped,) = report.skipped
    assert "only its dtype and its shape are compared, as PyTorch has zeros for Relu" in skipped
    assert 'asked = library.symbolic("Relu"' in skipped
    assert all([o.name for o in run.outputs] == ["output_1"] for run in report.runs)
    torch.testing.assert_close(program(X)[0], X.relu() * 2)


def test_verification_compares_what_stands_on_no_zeros() -> None:
    """A wrong form elsewhere in the model is found as before."""
    sardonyx.register_custom_op_symbolic("aten::add", lambda g, x, y, a: g.op("Sub", x, y), 9)
    with pytest.raises(sardonyx.VerificationError, match=r"disagree on output_1 \(1 of 2"):
        sardonyx.export(_relu_of(sardonyx.ops), X, verify=True)
