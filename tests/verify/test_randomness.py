"""Models that draw: verification knows by the graph, whatever a run happens to give."""

import onnx
import onnx_ir as ir
import pytest
import torch

import sardonyx
from sardonyx.verify.randomness import random_outputs

TRAINING = sardonyx.TrainingMode.TRAINING


@pytest.mark.parametrize("seed", range(8))
def test_two_draws_may_be_equal_by_chance(seed):
    torch.manual_seed(seed)
    x = torch.randn(1, 2)
    program = sardonyx.export(lambda x: torch.bernoulli(x.sigmoid()), (x,), verify=True)
    assert program.verification.runs[0].outputs == ()


@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Dropout(0.5),
        lambda x: torch.multinomial(x.exp(), 1, replacement=True),
        lambda x: torch.multinomial(x.exp(), 2),
        lambda x: x + torch.rand_like(x),
    ],
    ids=["dropout", "multinomial", "without replacement", "rand_like"],
)
def test_random_models_verify_and_say_that_no_values_were_compared(model):
    program = sardonyx.export(model, (torch.randn(2, 4),), verify=True, training=TRAINING)
    assert "no values could be compared" in program.report()
    assert "equal to PyTorch" not in program.report()
    assert "output is random" in program.report()


def test_the_outputs_that_are_not_random_are_compared():
    def model(x):
        return x + torch.rand_like(x), x * 2

    report = sardonyx.export(model, (torch.randn(2, 4),), verify=True).verification
    assert [o.name for o in report.runs[0].outputs] == ["output_1"]
    assert "equal to PyTorch at example" in str(report)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Relu (x) b = RandomUniformLike (a)", {"b"}),
        ("a = Bernoulli (x) b = Relu (a)", {"a", "b"}),
        ("a = Dropout (x) b = Relu (a)", set()),
        ("a = Dropout (x, , on) b = Relu (x)", {"a"}),
        ("a = Dropout (x, , off) b = Relu (a)", set()),
        (
            "a = If (on) <then_branch = t () => (float[2] d) { d = Bernoulli (x) },"
            " else_branch = e () => (float[2] c) { c = Relu (x) }> b = Relu (x)",
            {"a"},
        ),
        ("y = Bernoulli (x) a = If (on) <then_branch = t () => (float[2] d) { d = Relu (y) },"
         " else_branch = e () => (float[2] c) { c = Relu (x) }> b = Relu (x)", {"a"}),
    ],
)  # fmt: skip
def test_random_outputs(body, expected):
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["": 21]>
        g (float[2] x) => (float[2] a, float[2] b)
        <bool on = {{1}}, bool off = {{0}}> {{ {body} }}
        """
    )
    assert random_outputs(ir.from_proto(model)) == expected
