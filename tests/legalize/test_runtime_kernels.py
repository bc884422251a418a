"""Types that ONNX Runtime has no kernel for: computed in another, with the same results."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx
from sardonyx.legalize import legalize, newest_opset, use_available_kernels
from sardonyx.legalize.runtime_kernels import TABLE
from sardonyx.verify.onnxruntime_session import Session
from tests.legalize.single_op import model_of
from tools.onnxruntime_kernels import Form, forms, supported_rows

FORMS = [form for form in forms() if len(list(form.choices)) <= 200]


@pytest.mark.parametrize(
    "form",
    random.Random(3).sample(FORMS, 25),
    ids=lambda form: f"{form.title}-{form.signature.since_version}",
)
def test_the_table_is_what_the_runtime_says(form: Form) -> None:
    table = json.loads(TABLE.read_text())
    if table["onnxruntime"] != onnxruntime.__version__:
        pytest.skip("another ONNX Runtime: python -m tools.onnxruntime_kernels asks it")
    versions = table["operators"].get(form.title, {})
    assert versions.get(str(form.signature.since_version)) == supported_rows(form)


class Case(NamedTuple):
    op_type: str
    inputs: list[torch.Tensor]
    expected: list[torch.Tensor]
    computed_in: str | None
    """The type that inputs are cast to; None if the node is left alone."""
    attributes: Mapping[str, Any] = MappingProxyType({})


def bools(*values: bool) -> torch.Tensor:
    return torch.tensor(values)


def of(dtype: torch.dtype, *values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def int64(*values: int) -> torch.Tensor:
    return torch.tensor(values)


FLOAT16, BFLOAT16, FLOAT64 = torch.float16, torch.bfloat16, torch.float64
INT16, INT32, UINT16, UINT32 = torch.int16, torch.int32, torch.uint16, torch.uint32
BLOCKS = torch.tensor([2**31 - 1, -5, 3, 16_777_217], dtype=INT32).reshape(1, 4, 1, 1)
SQUARE = torch.arange(16, dtype=FLOAT64).reshape(1, 1, 4, 4)
CASES = [
    Case("Max", [of(INT16, 5, -9), of(INT16, 2, 4)], [of(INT16, 5, 4)], "INT32"),
    Case(
        "Where",
        [bools(True, False), bools(True, True), bools(False, False)],
        [bools(True, False)],
        "UINT8",
    ),
    Case(
        "MatMul",
        [of(BFLOAT16, 1.5, 2).reshape(1, 2), of(BFLOAT16, 2, 4).reshape(2, 1)],
        [of(BFLOAT16, 11).reshape(1, 1)],
        "FLOAT",
    ),
    Case(
        "ScatterND",
        [of(FLOAT16, 1, 2), int64(1, 1).reshape(2, 1), of(FLOAT16, 10, 20)],
        [of(FLOAT16, 1, 32)],
        "FLOAT",
        {"reduction": "add"},
    ),
    Case(
        "ScatterND",
        [of(FLOAT16, 1, 2), int64(1).reshape(1, 1), of(FLOAT16, 10)],
        [of(FLOAT16, 1, 10)],
        None,
    ),
    Case(  # the sum wraps
        "CumSum",
        [of(UINT32, 2**31, 2**31, 7), torch.tensor(0)],
        [of(UINT32, 2**31, 0, 7)],
        "INT64",
    ),
    Case(  # no integer type will do, and float64 holds an int32
        "DepthToSpace", [BLOCKS], [BLOCKS.reshape(1, 1, 2, 2)], "DOUBLE", {"blocksize": 2}
    ),
    Case(
        "TopK",
        [of(UINT16, 3, 60000, 4), int64(2)],
        [of(UINT16, 60000, 4), int64(1, 2)],
        "INT32",
        {"outputs": 2},
    ),
    Case(
        "AveragePool",
        [SQUARE],
        [F.avg_pool2d(SQUARE, 2)],
        "FLOAT",
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    Case("Add", [of(torch.float32, 1), of(torch.float32, 2)], [of(torch.float32, 3)], None),
    # The runtime casts float16 itself.
    Case("Add", [of(FLOAT16, 1), of(FLOAT16, 2)], [of(FLOAT16, 3)], None),
]


def single(case: Case, opset: int = 20) -> ir.Model:
    inputs = {f"in{i}": ir.tensor(x).numpy() for i, x in enumerate(case.inputs)}
    model = model_of(case.op_type, inputs, **case.attributes)
    legalize(model, opset)
    return model


def casts(model: ir.Model) -> list[str]:
    """The types that values are cast to, in order."""
    return [
        ir.DataType(node.attributes["to"].as_int()).name
        for node in ir.traversal.RecursiveGraphIterator(model.graph)
        if node.op_type == "Cast"
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.op_type}-{c.inputs[-1].dtype}")
@pytest.mark.parametrize("opset", [17, 20])
def test_results_are_those_of_the_type_asked_for(case: Case, opset: int) -> None:
    model = single(case, opset)
    use_available_kernels(model)
    assert set(casts(model)) == (
        set() if case.computed_in is None else {case.computed_in, model.graph.outputs[0].dtype.name}
    )
    inputs = {f"in{i}": x for i, x in enumerate(case.inputs)}
    results = Session(model).run(inputs)
    assert list(results) == [f"out{i}" for i in range(len(case.expected))]
    for result, expected in zip(results.values(), case.expected, strict=True):
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)


def test_casts_say_where_they_come_from() -> None:
    model = single(CASES[0])
    use_available_kernels(model)
    for node in model.graph:
        assert node.metadata_props["sardonyx.source"] == "model.py:7"


def test_only_a_loss_of_digits_is_noted() -> None:
    notes = {case.op_type: use_available_kernels(single(case)) for case in CASES}
    noted = {op_type: note for op_type, note in notes.items() if note}
    assert list(noted) == ["AveragePool"]
    (note,) = noted["AveragePool"]
    assert note == (
        "float64 computed in float32, where ONNX Runtime has no float64 kernel: AveragePool"
    )


def elementwise(op_type: str, expected: Callable[[torch.Tensor], torch.Tensor], **options: Any):
    return pytest.param(op_type, expected, options, id=op_type)


WIDE_RANGE = of(FLOAT64, -1e200, -710, -50, -3.1, -0.7, -1e-3, 0, 1e-3, 0.7, 3.1, 50, 710, 1e200)
FLOAT64_CASES = [
    elementwise("Acos", torch.acos),
    elementwise("Acosh", torch.acosh),
    elementwise("Asin", torch.asin),
    elementwise("Asinh", torch.asinh),
    elementwise("Atan", torch.atan),
    elementwise("Atanh", torch.atanh),
    elementwise("Cosh", torch.cosh),
    elementwise("Elu", lambda x: F.elu(x, 0.5), alpha=0.5),
    elementwise("HardSigmoid", lambda x: (x / 4 + 0.5).clamp(0, 1), alpha=0.25),
    elementwise("HardSwish", F.hardswish),
    elementwise("LeakyRelu", lambda x: F.leaky_relu(x, 0.25), alpha=0.25),
    elementwise("Mish", F.mish),
    elementwise("Selu", lambda x: 0.5 * F.elu(x, 2.0), alpha=2.0, gamma=0.5),
    elementwise("Sinh", torch.sinh),
    elementwise("Softplus", F.softplus),
    elementwise("Softsign", F.softsign),
    elementwise("Tan", torch.tan),
    elementwise("ThresholdedRelu", lambda x: torch.where(x > 0.5, x, 0.0), alpha=0.5),
]


@pytest.mark.parametrize(("op_type", "expected", "options"), FLOAT64_CASES)
def test_float64_keeps_its_digits(
    op_type: str, expected: Callable[[torch.Tensor], torch.Tensor], options: dict[str, Any]
) -> None:
    for x in (WIDE_RANGE, of(FLOAT64, torch.nan), WIDE_RANGE[:0]):
        model = single(Case(op_type, [x], [], None, options))
        assert use_available_kernels(model) == ()
        result = Session(model).run({"in0": x})["out0"]
        torch.testing.assert_close(result, expected(x), rtol=1e-11, atol=1e-14, equal_nan=True)


NEAR_ZERO = of(FLOAT64, -1e-3, -1e-10, -1e-17, -1e-200, 1e-200, 1e-17, 1e-10, 1e-3)


@pytest.mark.parametrize(
    ("op_type", "function", "x"),
    [
        ("Acosh", torch.acosh, of(FLOAT64, 1 + 1e-15, 1 + 1e-10, 1.001, 1e300)),
        ("Asinh", torch.asinh, NEAR_ZERO),
        ("Atanh", torch.atanh, torch.cat([NEAR_ZERO, of(FLOAT64, 1e-12 - 1, 1 - 1e-12, -1, 1)])),
        ("Elu", F.elu, NEAR_ZERO),
        ("Mish", F.mish, of(FLOAT64, -600, -40, -20, -1e-17, 1e-17)),
        ("Selu", lambda x: 0.5 * F.elu(x, 2.0), NEAR_ZERO),
        ("Sinh", torch.sinh, NEAR_ZERO),
        ("Softplus", F.softplus, of(FLOAT64, -600, -40, -20, 0, 10)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_float64_keeps_its_digits_where_results_are_small(
    op_type: str, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> None:
    options = {"alpha": 2.0, "gamma": 0.5} if op_type == "Selu" else {}
    model = single(Case(op_type, [x], [], None, options))
    assert use_available_kernels(model) == ()
    result = Session(model).run({"in0": x})["out0"]
    torch.testing.assert_close(result, function(x), rtol=1e-14, atol=0)


def test_what_has_no_exact_type_is_left_alone() -> None:
    """An int64 is held by nothing wider: ONNX Runtime says itself that it cannot run this."""
    model = single(Case("DepthToSpace", [BLOCKS.long()], [], None, {"blocksize": 2}))
    assert use_available_kernels(model) == ()
    assert casts(model) == []


def test_an_opset_that_the_runtime_does_not_know_is_left_alone() -> None:
    mod = Case("Mod", [of(BFLOAT16, 5), of(BFLOAT16, 2)], [], None, {"fmod": 1})
    model = single(mod, newest_opset())
    use_available_kernels(model)
    assert casts(model) == []


def test_bodies_are_seen_to() -> None:
    model = ir.from_onnx_text(
        """
        <ir_version: 10, opset_import: ["": 20]>
        branches (bool positive, bfloat16[2] x) => (bfloat16[2] y) {
            y = If (positive) <
                then_branch = squared () => (bfloat16[2] square) { square = Mul (x, x) },
                else_branch = kept () => (bfloat16[2] same) { same = Identity (x) }
            >
        }
        """
    )
    use_available_kernels(model)
    x = of(BFLOAT16, 1.5, 3)
    for positive, expected in ((True, x * x), (False, x)):
        results = Session(model).run({"positive": torch.tensor(positive), "x": x})
        assert torch.equal(results["y"], expected)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_every_operator_still_rounds(capture: str) -> None:
    """Between two nodes in float32 the value is one of bfloat16, as in PyTorch."""

    class Rounding(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return (x + y - y) * 3 + 0.1

    x, y = torch.randn(64, dtype=BFLOAT16), 50 * torch.randn(64, dtype=BFLOAT16)
    program = sardonyx.export(Rounding(), (x, y), capture=capture)
    assert torch.equal(program(x, y), Rounding()(x, y))


def test_a_model_in_bfloat16_runs() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(144, 5)
    )
    program = sardonyx.export(model.to(BFLOAT16).eval(), torch.randn(1, 3, 8, 8, dtype=BFLOAT16))
    program.verify()
    assert program.notes == ()


def test_a_model_in_float64_says_what_it_lost() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3), nn.ReLU()).double()
    program = sardonyx.export(model, SQUARE.new_ones(1, 1, 6, 6))
    program.verify(rtol=1e-5, atol=1e-6)
    (note,) = program.notes
    assert note.endswith("no float64 kernel: Conv (2 uses)")
    # The digits lost once are not cast back and forth between the two.
    assert casts(program.model).count("FLOAT") == 5


PADDED_POOLS = {
    "largest": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2),
    "and where": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, return_indices=True),
    "rounded up": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, ceil_mode=True),
    "padded twice": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, padding=1),
    "average": lambda x: F.avg_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, count_include_pad=False),
    "times 1": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)) * 1.0, 3),
    "turned twice": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)).mT.double().float().mT, 3),
    "1-D": lambda x: F.max_pool1d(F.pad(x[0], (0, 2)), 2),
}


@pytest.mark.parametrize("model", PADDED_POOLS.values(), ids=PADDED_POOLS)
@pytest.mark.parametrize("opset", [11, 20])
def test_padding_by_zeros_stays_apart_from_the_pool(
    model: Callable[[torch.Tensor], Any], opset: int
) -> None:
    """ONNX Runtime makes them one pool, which pads with -inf."""
    axes = {"x": {2: "height"}}
    x = -torch.rand(1, 2, 6, 6) - 1
    sardonyx.export(model, (x,), opset_version=opset, dynamic_axes=axes, verify=True)
