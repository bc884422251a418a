"""ONNXProgram and its verification, on models made by hand."""

import io

import onnx
import onnx_ir as ir
import pytest
import torch
from rich.console import Console

import sardonyx
from sardonyx.aten import pytree
from sardonyx.aten.signature import ConstantLeaf, DynamicDim, InputSpec, OutputSpec, Signature
from sardonyx.errors import CaptureError, InvalidOptionError, VerificationError
from sardonyx.options import Options
from sardonyx.program import ONNXProgram
from sardonyx.report.summary import summary_table
from sardonyx.verify.eager import EagerModel

WEIGHT = torch.tensor([2.0, 3.0])


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", WEIGHT.clone())

    def forward(self, x, *, shift):
        return {"scaled": x * self.weight + shift, "mode": "plain", "size": x.shape[0]}


def scale_program(
    graph_body, *, model=None, dims=("batch", 2), dynamic=None, path=None, argument_names=()
):
    onnx_model = onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["": 21]>
        scale (float[batch, 2] x, float shift) => (float[batch, 2] scaled, int64 size)
        <float[2] weight = {{2.0, 3.0}}, int64 zero = {{0}}> {{ {graph_body} }}
        """
    )
    x = InputSpec("x", "x", "tensor", torch.float32, dims, dynamic or {})
    shift = InputSpec("shift", "shift", "float", torch.float32, ())
    scaled, size = OutputSpec("scaled", "scaled"), OutputSpec("size", "size")
    signature = Signature(
        inputs=(x, shift),
        outputs=(scaled, size),
        input_structure=pytree.flatten(((0,), {"shift": 0}))[1],
        input_leaves=(x, shift),
        output_structure=pytree.flatten({"scaled": 0, "mode": 0, "size": 0})[1],
        output_leaves=(scaled, ConstantLeaf("plain"), size),
        keyword_names=("shift",),
        argument_names=argument_names,
    )
    example = torch.tensor([[1.0, -1.0], [0.5, 2.0]])
    return ONNXProgram(
        ir.from_proto(onnx_model),
        signature=signature,
        options=Options(),
        verifier_context=EagerModel(model or Scale(), (example,), {"shift": 0.5}),
        notes=("a <note>",),
        stage_seconds={"capture": 0.25, "lower": 0.5},
        path=path,
    )


BATCH = "shape = Shape (x) size = Gather (shape, zero)"
RIGHT = f"product = Mul (x, weight) scaled = Add (product, shift) {BATCH}"


def test_a_call_takes_and_returns_what_the_model_does():
    x = torch.randn(5, 2)
    result = scale_program(RIGHT)(x, shift=1.0)
    assert list(result) == ["scaled", "mode", "size"]
    torch.testing.assert_close(result["scaled"], x * WEIGHT + 1)
    assert (result["mode"], int(result["size"])) == ("plain", 5)


def test_arguments_of_another_structure_are_refused():
    with pytest.raises(InvalidOptionError, match="structure"):
        scale_program(RIGHT)(torch.ones(1, 2))


def test_verification_runs_at_the_example_and_at_other_sizes():
    program = scale_program(RIGHT)
    report = program.verify()
    assert program.verification is report
    assert [run.label for run in report.runs] == ["example", "batch=3", "batch=1"]
    assert [o.name for o in report.runs[1].outputs] == ["scaled", "size"]
    assert [run.outputs[0].shape for run in report.runs] == [(2, 2), (3, 2), (1, 2)]
    assert report.largest_absolute <= 1e-6
    assert report.skipped == ()
    assert "example; batch=3" in str(report)


def test_static_models_run_at_other_values_too():
    report = scale_program(RIGHT, dims=(2, 2)).verify()
    assert [run.label for run in report.runs] == ["example", "other values"]


def test_a_value_baked_into_the_graph_shows_at_other_values():
    body = f"scaled = Constant <value = float[2,2] {{2.5, -2.5, 1.5, 6.5}}> () {BATCH}"
    with pytest.raises(VerificationError, match=r"disagree on scaled[\s\S]*other values"):
        scale_program(body, dims=(2, 2)).verify()


def test_values_that_pytorch_rejects_are_skipped_with_the_reason():
    class OnlyTheExample(Scale):
        def forward(self, x, *, shift):
            if x[0, 0] != 1:
                raise ValueError("one first, please")
            return super().forward(x, shift=shift)

    report = scale_program(RIGHT, model=OnlyTheExample(), dims=(2, 2)).verify()
    assert [run.label for run in report.runs] == ["example"]
    assert report.skipped == ("other values: PyTorch rejects it: ValueError: one first, please",)


@pytest.mark.parametrize("name", ["batch size", "seq-len", "2x"])
def test_dims_of_any_name_get_other_sizes(name):
    report = scale_program(RIGHT, dims=(name, 2)).verify()
    assert [run.label for run in report.runs] == ["example", f"{name}=3", f"{name}=1"]


def test_sizes_that_cannot_be_drawn_are_recorded():
    double = DynamicDim("2*n", roots=("n",), derive=lambda n: 2 * n)
    report = scale_program(RIGHT, dims=("2*n", 2), dynamic={0: double}).verify()
    assert [run.label for run in report.runs] == ["example", "other values"]
    assert report.skipped == ("other sizes: none can be drawn for 2*n",)


def test_other_inputs_can_be_given():
    program = scale_program(RIGHT)
    report = program.verify((torch.ones(7, 2),), {"shift": 3.0})
    assert [run.label for run in report.runs] == ["example", "batch=8", "batch=6"]
    assert report.runs[0].outputs[0].shape == (7, 2)


def test_a_difference_names_the_output_and_the_errors():
    body = f"product = Mul (x, weight) scaled = Sub (product, shift) {BATCH}"
    with pytest.raises(VerificationError) as caught:
        scale_program(body).verify()
    message = str(caught.value)
    assert "disagree on scaled (1 of 2 outputs)" in message
    assert "example" in message
    assert "float32[2, 2]" in message
    assert "4 of 4 elements differ" in message
    assert "largest absolute error 1," in message


def test_a_size_baked_into_the_graph_shows_at_the_second_size():
    body = (
        "product = Mul (x, weight) scaled = Add (product, shift) size = Constant <value_int=2> ()"
    )
    with pytest.raises(VerificationError, match=r"disagree on size[\s\S]*batch=3"):
        scale_program(body).verify()


def test_tolerances_are_passed_on():
    body = f"product = Mul (x, weight) scaled = Sub (product, shift) {BATCH}"
    assert scale_program(body).verify(atol=1.5).largest_absolute == 1.0


def test_sizes_that_pytorch_rejects_are_skipped_with_the_reason():
    class OnlyTwo(Scale):
        def forward(self, x, *, shift):
            if x.shape[0] != 2:
                raise ValueError("two rows, please")
            return super().forward(x, shift=shift)

    report = scale_program(RIGHT, model=OnlyTwo()).verify()
    assert [run.label for run in report.runs] == ["example", "other values"]
    assert report.skipped == ("batch=3: PyTorch rejects it: ValueError: two rows, please",)


def test_sizes_are_tried_until_pytorch_accepts_one():
    class OnlyEven(Scale):
        def forward(self, x, *, shift):
            assert x.shape[0] % 2 == 0
            return super().forward(x, shift=shift)

    report = scale_program(RIGHT, model=OnlyEven()).verify()
    assert [run.label for run in report.runs] == ["example", "batch=4"]


class Noisy(Scale):
    def forward(self, x, *, shift):
        return super().forward(x + torch.randn_like(x), shift=shift)


NOISE = "noise = RandomNormalLike <seed = 1.0> (x) y = Add (x, noise) "


def test_values_that_the_graph_draws_are_not_compared():
    body = f"{NOISE} product = Mul (y, weight) scaled = Add (product, shift) {BATCH}"
    report = scale_program(body, model=Noisy()).verify()
    assert [o.name for o in report.runs[0].outputs] == ["size"]
    assert report.skipped == ("scaled is random: only its dtype and its shape are compared",)
    assert str(report).startswith("equal to PyTorch at example; batch=3; batch=1")


def test_a_random_model_in_a_file_that_draws_nothing_is_a_difference():
    with pytest.raises(VerificationError, match="disagree on scaled"):
        scale_program(RIGHT, model=Noisy()).verify()


def test_the_shape_of_random_values_is_compared():
    body = f"{NOISE} wide = Concat <axis = 1> (y, y) scaled = Add (wide, shift) {BATCH}"
    with pytest.raises(VerificationError, match=r"shape \[2, 4\], PyTorch gives \[2, 2\]"):
        scale_program(body, model=Noisy()).verify()


def test_a_difference_comes_with_the_notes_of_the_export():
    body = f"product = Mul (x, weight) scaled = Sub (product, shift) {BATCH}"
    with pytest.raises(VerificationError, match="a <note>"):
        scale_program(body).verify()


def test_arguments_may_go_by_the_names_of_forward():
    program = scale_program(RIGHT, argument_names=("x",))
    x = torch.ones(2, 2)
    assert torch.equal(program(shift=1.0, x=x)["scaled"], program(x, shift=1.0)["scaled"])
    with pytest.raises(InvalidOptionError, match=r"exported  x, shift\s+given     shift"):
        program(shift=1.0)
    with pytest.raises(InvalidOptionError, match=r"exported  x, shift\s+given     nothing"):
        program.verify(())


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (torch.ones(3, 2), r'float32\[3, 2\].*float32\[2, 2\]\n.*dynamic_axes={"x": {0: "..."}}'),
        (torch.ones(2, 2, dtype=torch.float64), r"x is float64\[2, 2\], the file takes float32"),
        (torch.ones(2), r"x is float32\[2\], the file takes float32\[2, 2\]$"),
        (None, "x is None, not a tensor"),
        (torch.ones(2, 2, device="meta"), "x is on the meta device"),
    ],
)
def test_inputs_that_the_file_does_not_take_are_refused(x, reason):
    with pytest.raises(InvalidOptionError, match=reason):
        scale_program(RIGHT, dims=(2, 2))(x, shift=1.0)


def test_a_model_that_fails_on_the_inputs_given_is_not_blamed_on_the_file():
    class Picky(Scale):
        def forward(self, x, *, shift):
            raise IndexError("out of range")

    with pytest.raises(CaptureError, match=r"the model itself fails .*IndexError: out of range"):
        scale_program(RIGHT, model=Picky()).verify()


def test_a_structure_that_changes_with_the_size_is_a_difference():
    class Changing(Scale):
        def forward(self, x, *, shift):
            result = super().forward(x, shift=shift)
            return result if x.shape[0] == 2 else result["scaled"]

    with pytest.raises(VerificationError, match="another structure"):
        scale_program(RIGHT, model=Changing()).verify()


def test_saving_writes_a_model_that_runs(tmp_path):
    program = scale_program(RIGHT)
    program.save(tmp_path / "scale.onnx")
    stream = io.BytesIO()
    program.save(stream)
    assert (tmp_path / "scale.onnx").read_bytes() == stream.getvalue()
    onnx.checker.check_model(str(tmp_path / "scale.onnx"))


def test_saving_with_initializers_as_inputs_leaves_the_program_alone(tmp_path):
    program = scale_program(RIGHT)
    program.save(tmp_path / "scale.onnx", keep_initializers_as_inputs=True)
    saved = onnx.load(tmp_path / "scale.onnx")
    assert [i.name for i in saved.graph.input] == ["x", "shift", "weight", "zero"]
    assert {i.name for i in saved.graph.initializer} == {"weight", "zero"}
    assert [i.name for i in program.model.graph.inputs] == ["x", "shift"]


def test_a_file_changed_since_the_export_is_not_run(tmp_path):
    path = tmp_path / "scale.onnx"
    scale_program(RIGHT).save(path)
    program = scale_program(RIGHT, path=path)
    path.write_bytes(b"something else")
    assert int(program(torch.ones(4, 2), shift=0.0)["size"]) == 4


def test_optimizing_keeps_the_results():
    program = scale_program(
        f"y = Identity (x) product = Mul (y, weight) {BATCH} scaled = Add (product, shift)"
    )
    program.verify()
    nodes = len(program.model.graph)
    program.optimize()
    assert len(program.model.graph) < nodes
    program.verify()


def test_displays_name_inputs_outputs_and_operators():
    program = scale_program(RIGHT)
    assert repr(program) == (
        "ONNXProgram(opset 21, 4 nodes, (x: float32[batch, 2], shift: float32[]) -> "
        "(scaled: float32[batch, 2], size: int64[]))"
    )
    report = program.report()
    assert "1  Mul" in report
    assert "0.750 s" in report
    assert "not run" in report
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table(program))
    assert "x: float32[batch, 2]" in console.file.getvalue()
    page = program._repr_html_()
    assert "a &lt;note&gt;" in page
    assert "<table>" in page
    assert "onnx::Mul" in program.to_text()
    assert program.model_proto.graph.name == "scale"


def test_without_the_pytorch_model_there_is_nothing_to_verify():
    program = scale_program(RIGHT)
    alone = ONNXProgram(
        program.model,
        signature=program.signature,
        options=Options(),
        verifier_context=None,
    )
    with pytest.raises(VerificationError, match="no PyTorch model"):
        alone.verify()


@pytest.mark.parametrize("to_file", [False, True])
def test_a_run_has_the_weights_that_save_writes(tmp_path, to_file):
    model = torch.nn.Linear(3, 2)
    x, path = torch.randn(4, 3), tmp_path / "model.onnx"
    program = sardonyx.export(model, x, path if to_file else None)
    torch.testing.assert_close(program(x), model(x))
    with torch.no_grad():
        model.weight.mul_(2)
    torch.testing.assert_close(program(x), model(x))
    program.verify()
    program.save(path)
    torch.testing.assert_close(program(x), model(x))
