import json

import onnx
import pytest
import torch
from typer.testing import CliRunner

from sardonyx.cli import app

MODELS = """
import itertools

import torch

numbers = itertools.count(1)

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.linear(x)).unsqueeze(1)

class Gate(torch.nn.SiLU):
    pass

class Embed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 4)

    def forward(self, ids, scale):
        return self.table(ids) * scale

class Count(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x / self.seen

class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x

class AnotherFactor(torch.nn.Module):
    def forward(self, x):
        return x * next(numbers)

class Wide(torch.nn.Linear):
    def __init__(self):
        super().__init__(64, 64)

def inputs():
    return (torch.randn(2, 4),)

def broken():
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.mark.parametrize(
    ("target", "op_types"), [("onnx", ["Swish"]), ("onnxruntime", ["Sigmoid", "Mul"])]
)
def test_the_runtime_that_a_file_is_for(models, target, op_types):
    options = ("--opset", "25", "--target", target, "--no-verify", "-o", "gate.onnx")
    result = run("export", "models.py:Gate", "--input", "2x4", *options)
    assert result.exit_code == 0
    assert [node.op_type for node in onnx.load("gate.onnx").graph.node] == op_types


def test_export_writes_verifies_and_sums_up(models):
    result = run("export", "models.py:Scale", "--input", "2x4", "-o", "scale.onnx")
    assert result.exit_code == 0, result.output
    onnx.checker.check_model("scale.onnx")
    assert "equal to PyTorch at example" in result.stdout
    assert "largest absolute error" in result.stdout
    assert "capture" in result.stdout
    assert "1/6 capture" in result.stderr
    assert "6/6 verify" in result.stderr


def test_json_is_all_that_is_printed(models):
    result = run(
        *("export", "models.py:Scale", "--inputs", "models.py:inputs", "--json"),
        *("--dynamic", "x:0=batch", "--opset", "17", "--output-names", "y"),
    )
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["ok"] is True
    assert summary["path"] == "Scale.onnx"
    assert summary["opset"] == 17
    assert summary["inputs"] == [{"name": "x", "dtype": "FLOAT", "dims": ["batch", 4]}]
    assert summary["outputs"][0]["name"] == "y"
    assert summary["weight_bytes"] >= 15 * 4
    assert summary["verification"]["runs"] == ["example", "batch=3", "batch=1"]
    assert set(summary["stage_seconds"]) >= {"capture", "lower", "serialize", "verify"}


def test_named_inputs_are_keyword_arguments(models):
    result = run(
        *("export", "models.py:Embed", "--input", "ids=2x5:int64:0..50", "--input", "scale=1"),
        *("-o", "embed.onnx"),
    )
    assert result.exit_code == 0, result.output
    assert [i.name for i in onnx.load("embed.onnx").graph.input] == ["ids", "scale"]


def test_verification_can_be_left_out(models):
    result = run("export", "models.py:Scale", "--input", "2x4", "--no-verify", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verification"] is None


def test_weights_can_go_into_a_second_file(models):
    result = run("export", "models.py:Wide", "--input", "1x64", "--external-data", "--no-verify")
    assert result.exit_code == 0, result.output
    assert (models / "Wide.onnx.data").stat().st_size >= 64 * 64 * 4


def test_stored_programs_bring_their_inputs(models):
    program = torch.export.export(torch.nn.ReLU(), (torch.randn(2, 3),))
    torch.export.save(program, "relu.pt2")
    result = run("export", "relu.pt2")
    assert result.exit_code == 0, result.output
    onnx.checker.check_model("relu.onnx")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nothing"], "MODULE:CALLABLE"),
        (["models.py:Missing"], "has no 'Missing'"),
        (["models.py:Scale"], "the model takes x"),
        (["models.py:Scale", "--input", "axb"], "not of the form"),
        (["models.py:Scale", "--input", "2x4", "--inputs", "models.py:inputs"], "exclude"),
        (["models.py:Scale", "--input", "2x4", "--dynamic", "x"], "x:0=batch"),
        (["models.py:Scale", "--input", "2x4", "--capture", "guess"], "one of auto"),
        (["models.py:Scale", "--input", "2x4", "--target", "tpu"], "--target tpu is not known"),
        (["models.py:Scale", "--input", "2x4", "--opset", "3"], "opset"),
        (["models.py:Scale", "--input", "2x4", "--input-names", "a,b"], "the model has 1 inputs"),
        (["models.py:Scale", "--no-such-option"], "--no-such-option"),
    ],
)
def test_bad_usage_is_status_2(models, arguments, reason):
    result = run("export", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert not list(models.glob("*.onnx"))


def test_a_failed_export_is_status_1(models):
    assert run("export", "models.py:broken", "--input", "2x4").exit_code == 1
    result = run("export", "models.py:Branch", "--input", "2x4", "--capture", "export")
    assert result.exit_code == 1
    assert "DataDependentError: " in result.stderr and "models.py:" in result.stderr
    assert not list(models.glob("*.onnx"))


def test_a_failed_verification_is_status_3(models):
    result = run("export", "models.py:AnotherFactor", "--input", "2x4", "--json")
    assert result.exit_code == 3
    report = json.loads(result.stdout)
    assert report["ok"] is False
    assert report["error"] == "VerificationError"


def test_a_model_that_the_runtime_does_not_run_is_status_4(models):
    command = ("export", "models.py:Scale", "--input", "2x4", "--opset", "28")
    result = run(*command)
    assert result.exit_code == 4
    assert "cannot load the model" in result.stderr and "--no-verify" in result.stderr
    assert run(*command, "--no-verify").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["models.py:Scale", "--input", "2x4:float64"], "the model itself fails"),
        (["models.py:Embed", "--input", "2x5:int64:60..90", "--input", "1"], "IndexError"),
    ],
)
def test_a_model_that_fails_on_its_inputs_is_status_1(models, arguments, reason):
    result = run("export", *arguments)
    assert result.exit_code == 1
    assert reason in result.stderr and "Traceback" not in result.stderr


def test_state_and_tolerances_can_be_asked_for(models):
    result = run(
        *("export", "models.py:Count", "--input", "2", "--state-outputs"),
        *("--rtol", "1e-3", "--atol", "1e-5"),
    )
    assert result.exit_code == 0, result.output
    assert [o.name for o in onnx.load("Count.onnx").graph.output] == ["output", "seen.out"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--input", "foo=9x9"], "exported  input"),
        (["--input", "9x9"], "the file takes float32[2, 3]"),
        (["--capture", "trace"], "recorded already"),
        (["--input-names", "a,b"], "2 names, the model has 1 inputs"),
    ],
)
def test_options_that_a_stored_program_cannot_follow_are_status_2(models, arguments, reason):
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.randn(2, 3),)), "relu.pt2")
    result = run("export", "relu.pt2", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert run("export", "relu.pt2", "--input", "2x3").exit_code == 0


def test_modules_can_become_functions(models):
    result = run(
        "export",
        "models.py:Scale",
        "--input",
        "2x4",
        "--export-modules-as-functions",
        "-o",
        "f.onnx",
    )
    assert result.exit_code == 0, result.output
    assert "Linear" in [f.name for f in onnx.load("f.onnx").functions]
    run("export", "models.py:Scale", "--input", "2x4", "-o", "plain.onnx")
    assert not onnx.load("plain.onnx").functions


def test_the_help_tells_of_inputs_without_dims(models):
    assert "scalar" in " ".join(run("export", "--help").output.split())
    arguments = ("--input", "ids=2x3:int64:0..50", "--input", "scale=scalar")
    result = run("export", "models.py:Embed", *arguments, "-o", "embed.onnx")
    assert result.exit_code == 0, result.output
    assert not onnx.load("embed.onnx").graph.input[1].type.tensor_type.shape.dim


def test_show_prints_the_graph(models):
    assert run("export", "models.py:Scale", "--input", "2x4", "-o", "s.onnx").exit_code == 0
    result = run("show", "s.onnx")
    assert result.exit_code == 0
    assert "onnx::Relu" in result.stdout
    assert run("show", "missing.onnx").exit_code == 2
    (models / "broken.onnx").write_bytes(b"\xff\xff no model")
    assert run("show", "broken.onnx").exit_code == 1


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("sardonyx ")


def test_what_follows_a_script_is_the_scripts(models):
    (models / "script.py").write_text("import sys\nprint('given', sys.argv[1:])\n")
    assert "given ['--help', '-x']" in run("run", "script.py", "--help", "-x").output
    assert "SCRIPT.py" in run("run", "--help").output


def test_a_node_that_pytorch_cannot_compute_is_no_disagreement(models):
    (models / "asks.py").write_text(
        "import torch, sardonyx\n"
        "class Asks(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return sardonyx.ops.symbolic('Relu', [x], dtype=x.dtype, shape=x.shape)\n"
    )
    result = run("export", "asks.py:Asks", "--input", "2x4", "-o", "asks.onnx")
    assert result.exit_code == 0, result.output
    assert "PyTorch has zeros for Relu" in " ".join(result.output.replace("│", " ").split())
