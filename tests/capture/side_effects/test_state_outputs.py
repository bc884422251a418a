"""Buffers and inputs that the model writes, returned by the file as extra outputs."""

import dataclasses

import onnx
import onnx_ir as ir
import pytest
import torch

from sardonyx.aten import pytree
from sardonyx.aten.signature import InputSpec, OutputSpec, Signature
from sardonyx.errors import VerificationError
from sardonyx.options import Options
from sardonyx.program import ONNXProgram
from sardonyx.verify.eager import EagerModel


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(2))

    def forward(self, x):
        self.count += 1
        x.mul_(2)
        return x + self.count


def counter_program(step):
    onnx_model = onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["": 21]>
        counter (float[2] x) => (float[2] y, float[2] "count.out", float[2] "x.out")
        <float[2] count = {{1.0, 1.0}}, float two = {{2.0}}, float step = {{{step}}}>
        {{ "count.out" = Add (count, step) "x.out" = Mul (x, two) y = Add ("x.out", "count.out") }}
        """.replace('"count.out"', "count_out").replace('"x.out"', "x_out")
    )
    model = ir.from_proto(onnx_model)
    for value in model.graph.outputs:
        value.name = value.name.replace("_out", ".out")
    x, y = InputSpec("x", "x", "tensor", torch.float32, (2,)), OutputSpec("y", "")
    signature = Signature(
        inputs=(x,),
        outputs=(y,),
        input_structure=pytree.flatten(((0,), {}))[1],
        input_leaves=(x,),
        output_structure=pytree.flatten(0)[1],
        output_leaves=(y,),
        state_outputs=("count.out", "x.out"),
    )
    eager = EagerModel(Counter(), (torch.tensor([1.0, -3.0]),))
    return ONNXProgram(model, signature=signature, options=Options(), verifier_context=eager)


def test_what_the_model_writes_is_compared():
    report = counter_program(1.0).verify()
    assert [o.name for o in report.runs[0].outputs] == ["y", "count.out", "x.out"]
    assert report.skipped == ()


def test_a_wrong_write_is_a_difference():
    with pytest.raises(VerificationError, match=r"disagree on y, count\.out \(2 of 3 outputs\)"):
        counter_program(5.0).verify()


def test_a_write_without_a_counterpart_is_reported():
    program = counter_program(1.0)
    renamed = dataclasses.replace(program.signature, state_outputs=("elsewhere.out",))
    program.signature = renamed
    assert "elsewhere.out has no counterpart" in program.verify().skipped[0]
