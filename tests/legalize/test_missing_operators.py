"""Operators that ONNX Runtime does not run at an opset: written in others that it runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx
from sardonyx.legalize import use_available_kernels
from sardonyx.legalize.runtime_kernels import TABLE
from sardonyx.lower.onnx_types.legality import signature_of
from sardonyx.lower.onnx_types.verifier import verify_onnx
from sardonyx.verify.onnxruntime_session import Session
from tools.onnxruntime_kernels import DTYPES, Form, forms, runs, single_node

OPERATORS = json.loads(TABLE.read_text())["operators"]
WITHOUT_ANOTHER_FORM = {"GlobalLpPool", "ImageDecoder", "MaxRoiPool", "RoiAlign"}


def typed(opset: int, form: Form, types: dict[str, str]) -> ir.Model:
    """The operator alone, with the types and ranks that an exported model says of its values."""
    model = single_node(opset, form, types)
    for value in model.graph.input:
        for axis in range(2):
            value.type.tensor_type.shape.dim.add().dim_param = f"{value.name}_{axis}"
    for value, parameter in zip(model.graph.output, form.signature.outputs, strict=True):
        dtype = types.get(parameter.type_name, "uint8")
        value.type.tensor_type.elem_type = DTYPES[dtype]
    return ir.from_proto(model)


@pytest.mark.parametrize("opset", [23, 24, 25, 26])
def test_every_operator_is_run_in_some_form(opset: int) -> None:
    """In one type that the table has; what it has none for, in others at each opset."""
    left = set()
    for form in forms():
        version = form.signature.since_version
        current = signature_of(form.op_type, opset)
        if form.variant or current is None or current.since_version != version:
            continue
        rows = OPERATORS.get(form.op_type, {}).get(str(version))
        if rows != []:
            kept = {variable: names[-1] for variable, names in (rows or [{}])[0].items()}
            assert runs(form, kept or list(form.choices)[-1]), form.op_type
            continue
        choices = list(form.choices)
        for types in choices[opset % len(choices) :: 12]:
            model = typed(opset, form, types)
            if notes := use_available_kernels(model):
                about = f"operators that ONNX Runtime does not run at opset {opset}"
                assert notes == (f"{about}: {form.op_type}",)
                left.add(form.op_type)
                continue
            verify_onnx(model, "legalize", opset)
            Session(model)
    assert left == WITHOUT_ANOTHER_FORM


@pytest.mark.parametrize("opset", [24, 25, 26])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
def test_swish_is_spelled_out(opset: int, dtype: torch.dtype) -> None:
    x = torch.tensor([[-90.0, -3, -0.1, 0, 0.7, 90]]).to(dtype)
    program = sardonyx.export(
        F.silu, (x,), opset_version=opset, dynamic_axes={"input": {1: "n"}}, verify=True
    )
    assert "Swish" not in {node.op_type for node in program.model.graph}
    assert program.model.opset_imports[""] == opset


def test_bodies_are_seen_to() -> None:
    def halved(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: F.silu(x), lambda x: F.silu(x) / 2, (x,))

    x = torch.rand(3)
    program = sardonyx.export(halved, (x,), opset_version=25)
    for values in (x, -x):
        torch.testing.assert_close(program(values), halved(values))


def normal_values(x: torch.Tensor) -> torch.Tensor:
    return torch.erf(x / math.sqrt(2)) / 2 + 0.5


DISTRIBUTIONS: Sequence[Callable[[torch.Tensor], torch.Tensor]] = [
    normal_values,
    normal_values,
    lambda u: u,
    lambda u: u,
    lambda u: (u + 3) / 8,
    lambda z: normal_values((z - 2) * 2),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_random_numbers_have_their_distribution(dtype: torch.dtype) -> None:
    class Draws(nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [
                torch.randn(200, 50, dtype=dtype),
                torch.randn_like(x),
                torch.rand(200, 50, dtype=dtype),
                torch.rand_like(x),
                torch.empty_like(x).uniform_(-3, 5),
                torch.empty_like(x).normal_(2, 0.5),
            ]

    x = torch.zeros(200, 50, dtype=dtype)
    program = sardonyx.export(Draws(), (x,), opset_version=25, dynamic_axes={"x": {0: "n"}})
    runs = list(zip(program(x), program(x), strict=True))
    for both, distribution in zip(runs, DISTRIBUTIONS, strict=True):
        drawn = torch.cat(both).flatten()
        assert drawn.dtype == dtype
        quantiles = distribution(drawn.sort().values.double())
        # The test of Kolmogorov and Smirnov, at a level of one in ten million.
        expected = torch.arange(len(quantiles)) / len(quantiles)
        assert (quantiles - expected).abs().max() * math.sqrt(len(quantiles)) < 2.9
    columns = [each.flatten() for both in runs for each in both]
    columns += [column.roll(1) for column in columns]
    correlation = torch.corrcoef(torch.stack(columns)) - torch.eye(len(columns))
    assert correlation.abs().max() < 0.07


def test_random_choices() -> None:
    class Chosen(nn.Module):
        def forward(self, p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.multinomial(p, 5000, replacement=True), torch.bernoulli(p.expand(900, -1))

    p = torch.tensor([0.1, 0.0, 0.6, 0.3])
    program = sardonyx.export(Chosen(), (p,), opset_version=25)
    indices, tosses = program(p)
    frequencies = indices.bincount(minlength=4) / 5000
    assert indices.dtype == torch.int64
    assert frequencies[1] == 0
    torch.testing.assert_close(frequencies, p, atol=0.05, rtol=0)
    torch.testing.assert_close(tosses.mean(0), p, atol=0.1, rtol=0)


def test_random_numbers_of_no_elements_and_of_one() -> None:
    class Sized(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.randn_like(x), torch.randn(())

    program = sardonyx.export(
        Sized(), (torch.ones(3, 4),), opset_version=25, dynamic_axes={"x": {0: "n", 1: "m"}}
    )
    for shape in ((0, 4), (2, 0), (1, 1)):
        like, scalar = program(torch.ones(shape))
        assert like.shape == shape
        assert scalar.shape == ()
        assert scalar.isfinite()


def test_a_seed_is_kept() -> None:
    def first_run() -> torch.Tensor:
        model = ir.from_onnx_text(
            """
            <ir_version: 10, opset_import: ["": 25]>
            seeded () => (float[20] y) { y = RandomNormal<shape = [20], seed = 7.0>() }
            """
        )
        use_available_kernels(model)
        return Session(model).run({})["y"]

    assert torch.equal(first_run(), first_run())


def test_a_parameter_of_a_function_is_left_to_the_runtime() -> None:
    model = ir.from_onnx_text(
        """
        <ir_version: 10, opset_import: ["": 25, "own": 1]>
        calls (float[2] x) => (float[2] y) { y = own.gated<alpha = 2.0>(x) }
        <opset_import: ["": 25], domain: "own">
        gated<alpha>(x) => (y) { y = Swish<alpha: float = @alpha>(x) }
        """
    )
    notes = use_available_kernels(model)
    assert notes == ("operators that ONNX Runtime does not run at opset 25: Swish",)
    onnx.checker.check_model(ir.to_proto(model))


def op_types(target: str, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, opset):
    program = sardonyx.export(function, (x,), opset_version=opset, target=target)
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


@pytest.mark.parametrize(
    ("function", "x", "opset", "plain"),
    [
        (F.silu, torch.rand(2), 25, ["Swish"]),
        (torch.rand_like, torch.rand(2), 25, ["RandomUniform"]),
        (torch.relu, torch.rand(2).bfloat16(), 20, ["Relu"]),
        (lambda x: torch.maximum(x, x + x), torch.ones(2, dtype=torch.int16), 20, ["Add", "Max"]),
        (torch.sinh, torch.rand(2, dtype=torch.float64), 20, ["Sinh"]),
    ],
    ids=["operator", "random", "bfloat16", "int16", "float64"],
)
def test_the_plain_standard(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, opset: int, plain: list[str]
) -> None:
    assert op_types("onnx", function, x, opset) == plain
    assert op_types("onnxruntime", function, x, opset) != plain
