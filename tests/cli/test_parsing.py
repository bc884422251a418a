import pytest
import torch
from torch import nn

from sardonyx.cli.parsing import (
    InputText,
    ModelError,
    UsageError,
    drawn_inputs,
    dynamic_axes,
    inputs_from,
    load_model,
    load_object,
    names,
    required_inputs,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1x3x224x224", InputText(None, (1, 3, 224, 224), torch.float32)),
        ("1x3:float16", InputText(None, (1, 3), torch.float16)),
        ("x=7:bool", InputText("x", (7,), torch.bool)),
        ("scalar:int64", InputText(None, (), torch.int64)),
        ("ids=1x16:int64:0..1000", InputText("ids", (1, 16), torch.int64, 0, 1000)),
        ("2:float32:-1.5..0.5", InputText(None, (2,), torch.float32, -1.5, 0.5)),
    ],
)
def test_inputs_are_read(text, expected):
    assert InputText.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1x3x", "not of the form"),
        ("1,3,224", "not of the form"),
        ("1x3:float33", "no dtype 'float33'"),
        ("1x3:nn", "no dtype 'nn'"),
        ("2:int64:5..5", "empty"),
        ("2:int64:1.2.3..5", "numbers"),
    ],
)
def test_inputs_that_make_no_sense_are_refused(text, reason):
    with pytest.raises(UsageError, match=reason):
        InputText.parse(text)


def test_inputs_are_drawn_alike_in_every_run():
    texts = ["4x5", "ids=100:int64:3..6", "mask=50:bool", "p=100:float64:0..1"]
    args, kwargs = drawn_inputs(texts)
    again, _ = drawn_inputs(texts)
    assert torch.equal(args[0], again[0])
    assert args[0].shape == (4, 5)
    assert set(kwargs["ids"].tolist()) == {3, 4, 5}
    assert kwargs["mask"].any()
    assert not kwargs["mask"].all()
    assert 0 <= kwargs["p"].min() < kwargs["p"].max() <= 1
    with pytest.raises(UsageError, match="twice"):
        drawn_inputs(["x=1", "x=2"])


def test_both_parts_of_complex_inputs_are_drawn():
    (drawn, ranged), _ = drawn_inputs(["50:complex64", "50:complex128:2..3"])
    assert (drawn.dtype, ranged.dtype) == (torch.complex64, torch.complex128)
    assert drawn.real.std() > 0.5
    assert drawn.imag.std() > 0.5
    assert 2 <= ranged.imag.min() < ranged.imag.max() <= 3


def test_dynamic_axes_are_read():
    assert dynamic_axes(["x:0=batch", "x:2=time", "y:0=batch"]) == {
        "x": {0: "batch", 2: "time"},
        "y": {0: "batch"},
    }
    assert dynamic_axes([]) is None
    with pytest.raises(UsageError, match="x:0=batch"):
        dynamic_axes(["x0=batch"])


def test_names_are_separated_by_commas():
    assert names("a, b,c") == ["a", "b", "c"]
    assert names(None) is None
    with pytest.raises(UsageError, match="empty"):
        names("a,,b")


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "tiny_models.py"
    path.write_text(
        "import torch\n"
        "class Tiny(torch.nn.Linear):\n"
        "    def __init__(self): super().__init__(2, 3)\n"
        "instance = Tiny()\n"
        "number = 3\n"
        "def broken(): raise RuntimeError('no weights')\n"
        "def tensor(): return torch.ones(2)\n"
        "def with_keywords(): return torch.ones(2), {'scale': 3}\n"
        "def keywords(): return {'scale': 3}\n"
    )
    return path


def test_models_come_from_files_and_modules(model_file, monkeypatch):
    assert isinstance(load_model(f"{model_file}:Tiny"), nn.Linear)
    instance = load_model(f"{model_file}:instance")
    assert isinstance(instance, nn.Linear)
    assert isinstance(load_model("torch.nn:Identity"), nn.Identity)
    monkeypatch.chdir(model_file.parent)
    assert isinstance(load_model("tiny_models:Tiny"), nn.Linear)


def test_models_come_from_stored_files(tmp_path):
    torch.jit.script(nn.ReLU()).save(str(tmp_path / "relu.pt"))
    torch.export.save(torch.export.export(nn.ReLU(), (torch.ones(2),)), tmp_path / "relu.pt2")
    assert isinstance(load_model(str(tmp_path / "relu.pt")), torch.jit.ScriptModule)
    assert isinstance(load_model(str(tmp_path / "relu.pt2")), torch.export.ExportedProgram)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("saved", [nn.Linear(2, 2).state_dict(), nn.ReLU()], ids=["state", "model"])
def test_pickles_are_told_from_torchscript(tmp_path, saved, zipped):
    torch.save(saved, tmp_path / "weights.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(ModelError, match=r"torch.save wrote, a pickle[\s\S]*FILE.py:CALLABLE"):
        load_model(str(tmp_path / "weights.pt"))
    (tmp_path / "text.pt").write_text("no model")
    with pytest.raises(ModelError, match="cannot be read as a TorchScript model"):
        load_model(str(tmp_path / "text.pt"))


@pytest.mark.parametrize(
    ("target", "error", "reason"),
    [
        ("nothing", UsageError, "neither MODULE:CALLABLE"),
        ("no_such_module_here:make", UsageError, "no module 'no_such_module_here'"),
        ("no_such_file.py:make", UsageError, "no file no_such_file.py"),
        ("no_such_file.pt2", UsageError, "no file no_such_file.pt2"),
        ("torch.nn:NoSuchLayer", UsageError, "has no 'NoSuchLayer'"),
        ("FILE:number", UsageError, "int, not a callable"),
        ("FILE:broken", ModelError, "no weights"),
    ],
)
def test_targets_that_lead_nowhere_say_why(model_file, target, error, reason):
    with pytest.raises(error, match=reason):
        load_model(target.replace("FILE", str(model_file)))


def test_inputs_come_from_functions(model_file):
    args, kwargs = inputs_from(f"{model_file}:tensor")
    assert (len(args), kwargs) == (1, {})
    args, kwargs = inputs_from(f"{model_file}:with_keywords")
    assert (len(args), kwargs) == (1, {"scale": 3})
    assert inputs_from(f"{model_file}:keywords") == ((), {"scale": 3})


def test_required_inputs_are_known_before_the_export():
    assert required_inputs(nn.ReLU()) == ["input"]
    assert required_inputs(nn.LSTM(2, 2)) == ["input"]
    assert required_inputs(torch.jit.script(nn.ReLU())) == ["input"]
    assert required_inputs(load_object("torch.nn:Sequential")()) == ["input"]
    assert required_inputs(torch.sin) == []


def test_dynamic_dims_have_ranges():
    axes = dynamic_axes(["x:0=batch[2..64]", "x:1=width[..8]", "y:0=batch"])
    assert (axes["x"][0].__name__, axes["x"][0].min, axes["x"][0].max) == ("batch", 2, 64)
    assert axes["x"][1].max == 8 and axes["y"] == {0: "batch"}
    for text in ("x:0=batch[2-64]", "x:0=batch[9..3]"):
        with pytest.raises(UsageError, match="--dynamic 'x:0=batch"):
            dynamic_axes([text])
