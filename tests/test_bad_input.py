"""What a caller can get wrong: a clear error, nothing written, the model as it was."""

from __future__ import annotations

import errno
import io
import os

import onnxruntime
import pytest
import torch

import sardonyx
from sardonyx.errors import (
    CaptureError,
    InvalidOptionError,
    SerializeError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
)

r = torch.randn


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x, y=None):
        return self.linear(x) if y is None else self.linear(x) + y


@pytest.fixture
def refused(tmp_path):
    """Exports and expects an error that says each of `messages`; nothing may be left behind."""

    def check(error, *messages, model=None, args=None, **options):
        args = (r(2, 3),) if args is None else args
        model = Model() if model is None else model
        is_module = isinstance(model, torch.nn.Module)
        before = {k: v.clone() for k, v in model.state_dict().items()} if is_module else {}
        mode = [m.training for m in model.modules()] if is_module else []
        options.setdefault("f", tmp_path / "model.onnx")
        with pytest.raises(error) as caught:
            sardonyx.export(model, args, **options)
        for message in messages:
            assert message in str(caught.value)
        assert os.listdir(tmp_path) == []
        if is_module:
            assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
            assert mode == [m.training for m in model.modules()]
        return caught.value

    return check


CAPTURES = pytest.mark.parametrize("capture", ["auto", "trace", "export"])


@CAPTURES
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "missing a required argument: 'x'"),
        ((r(2, 3), r(2, 3), r(2, 3)), "too many positional arguments"),
        ((r(2, 3), {"z": r(2)}), "got an unexpected keyword argument 'z'"),
        ((r(2, 3), {"x": r(2)}), "multiple values for argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit(args, message, refused, capture):
    error = refused(InvalidOptionError, message, "do not fit the model", args=args, capture=capture)
    assert "(x, y=None)" in str(error)


def test_no_arguments_at_all(refused):
    with pytest.raises(InvalidOptionError, match="missing a required argument: 'x'"):
        sardonyx.export(Model())


@pytest.mark.parametrize("model", ["resnet18", None, 3, {"weight": r(2)}, r(2)])
def test_what_is_no_model(model):
    with pytest.raises(InvalidOptionError, match="is no model"):
        sardonyx.export(model, (r(2, 3),))


def test_a_class_instead_of_a_model():
    with pytest.raises(InvalidOptionError, match="give an instance"):
        sardonyx.export(Model, (r(2, 3),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capture": "nonsense"}, "capture='nonsense' is not known: auto, export, trace"),
        ({"target": "tensorrt"}, "target='tensorrt' is not known: onnxruntime, onnx"),
        ({"opset_version": 5}, "opset_version=5 is not supported"),
        ({"opset_version": 99}, "opset_version=99 is not supported"),
        ({"dynamic_axes": {"x": [7]}}, "dynamic axis 7 of 'x' does not exist: the example has 2"),
        ({"dynamic_axes": {"x": {-3: "b"}}}, "dynamic axis -3 of 'x' does not exist"),
        ({"dynamic_axes": {"x": 0}}, "must be a list of axes or a dict"),
        ({"dynamic_axes": {"x": ["batch"]}}, "must have integers as axes"),
        ({"dynamic_axes": {"image": [0]}}, "dynamic_axes names 'image', which is neither"),
        ({"dynamic_axes": {"x": [0]}, "dynamic_shapes": ({0: "b"},)}, "not both"),
        ({"input_names": ["a", "b"], "output_names": ["a"]}, "'a' is also the name of an input"),
        ({"input_names": [1]}, "input_names must hold names, not 1"),
        ({"input_names": "x"}, "input_names must be a list of names, not 'x'"),
        ({"output_names": 5}, "output_names must be a list of names, not 5"),
        ({"verify": "yes"}, "verify must be True or False, not 'yes'"),
        ({"rtol": -1.0}, "rtol must be a number and not negative"),
        ({"external_data": "w.bin"}, "external_data must be True, False, None or a sardonyx.Ext"),
        ({"training": "eval"}, "training='eval' is no mode: give one of TrainingMode.EVAL"),
        ({"training": 7}, "training=7 is no mode"),
        ({"opset_version": "20"}, "opset_version='20' is not supported"),
        ({"progress": 3}, "progress must be a function, not 3"),
        ({"kwargs": [1]}, "kwargs must be a dict of arguments by name"),
        ({"f": ""}, "f is an empty path"),
        ({"dynamic_axes": [{0: "batch"}]}, "dynamic_axes must be a dict of input names"),
        ({"dynamic_axes": {"x": {0: 3}}}, "dim 0 has 3 for a name"),
        ({"dynamic_axes": {"x": {0: "a", -2: "b"}}}, "dynamic_axes['x'] has dim 0 twice"),
        ({"dynamic_shapes": ({0: 5},)}, "says that dim 0 of 'x' is 5, in the example it is 2"),
        ({"dynamic_shapes": ({"b": "a"},)}, "the dims of 'x' go by their axes, which 'b' is not"),
        (
            {"dynamic_shapes": ({0: torch.export.Dim("b", min=3, max=9)},)},
            "allows 3..9 for dim 0 of 'x' ('b'), in the example it is 2",
        ),
    ],
)
def test_options_that_cannot_be_honoured(options, message, refused):
    refused(InvalidOptionError, message, **options)


def test_a_derived_dim_that_the_example_contradicts(refused):
    dim = torch.export.Dim("b", min=2, max=9)
    refused(
        InvalidOptionError,
        "dim 0 of 'y' is called '2*b' and is 5, but 'b' is 2",
        model=lambda x, y: x.sum() + y.sum(),
        args=(r(2, 3), r(5, 3)),
        dynamic_shapes=({0: dim}, {0: 2 * dim}),
    )


def test_a_dict_that_is_taken_for_keyword_arguments(refused):
    def model(batch):
        return batch["a"] + batch["b"]

    batch = {"a": r(2), "b": r(2)}
    refused(InvalidOptionError, "(..., batch, {})", "kwargs={}", model=model, args=(batch,))
    program = sardonyx.export(model, (batch, {}))
    assert [value.name for value in program.model.graph.inputs] == ["batch.a", "batch.b"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: torch.zeros(2, 3, dtype=torch.complex32),
            UnsupportedDtypeError,
            "torch.complex32",
        ),
        (lambda: torch.eye(3).to_sparse(), UnsupportedDtypeError, "torch.sparse_coo"),
        (lambda: torch.eye(3).to_sparse_csr(), UnsupportedDtypeError, "torch.sparse_csr"),
        (object, InvalidOptionError, "input 'x' is a builtins.object"),
        (set, InvalidOptionError, "input 'x' is a builtins.set"),
    ],
    ids=["complex32", "sparse", "csr", "object", "set"],
)
@CAPTURES
@pytest.mark.filterwarnings("ignore:.*[Ss]parse.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*ComplexHalf.*:UserWarning")
def test_inputs_that_onnx_does_not_have(make, error, message, refused, capture):
    refused(error, message, args=(make(),), capture=capture)


class Failing(torch.nn.Module):
    def forward(self, x):
        return x @ x  # cannot


@CAPTURES
def test_a_model_that_raises(refused, capture):
    error = refused(
        CaptureError,
        "the model itself fails on these inputs: RuntimeError",
        model=Failing(),
        capture=capture,
    )
    assert "test_bad_input.py:" in str(error) and "return x @ x  # cannot" in str(error)
    assert isinstance(error.__cause__, RuntimeError)


@CAPTURES
@pytest.mark.parametrize(
    ("model", "x"),
    [
        (Model(), r(2, 3).double()),
        (Model().double(), r(2, 3)),
        (Model(), torch.ones(2, 3, dtype=torch.int64)),
    ],
    ids=["float64", "float64 model", "int64"],
)
def test_dtypes_that_the_model_itself_refuses(model, x, refused, capture):
    refused(
        CaptureError,
        "the model itself fails on these inputs: RuntimeError",
        "dtype",
        "return self.linear(x) if y is None",
        model=model,
        args=(x,),
        capture=capture,
    )


def test_an_index_that_the_model_itself_refuses(refused):
    model, ids = torch.nn.Embedding(5, 3), torch.full((2, 3), 9)
    refused(CaptureError, "IndexError: index out of", model=model, args=(ids,), verify=True)


@pytest.mark.parametrize(
    ("model_device", "input_device", "export_params", "messages"),
    [
        ("meta", "meta", True, ["'linear.weight' is on the meta", "load_state_dict", "=False"]),
        ("meta", "cpu", True, ["'linear.weight' is on the meta", "load_state_dict", "=False"]),
        ("meta", "cpu", False, ["'linear.weight' is on the meta device", 'x.to("meta")']),
        ("cpu", "meta", True, ["the input 'x' is on the meta device"]),
    ],
)
@CAPTURES
def test_tensors_without_values(capture, model_device, input_device, export_params, messages):
    model, x = Model().to(model_device), r(2, 3).to(input_device)
    with pytest.raises(CaptureError) as caught:
        sardonyx.export(model, (x,), capture=capture, export_params=export_params)
    assert all(message in str(caught.value) for message in messages)


@CAPTURES
def test_weights_without_values_may_be_left_out(capture):
    model, x = Model(), r(2, 3)
    program = sardonyx.export(
        Model().to("meta"), (x.to("meta"),), capture=capture, export_params=False
    )
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    (result,) = session.run(None, {"x": x.numpy(), **weights})
    torch.testing.assert_close(torch.from_numpy(result), model(x).detach())


@CAPTURES
def test_a_model_that_returns_what_is_no_output(refused, capture):
    refused(
        CaptureError, "the model returns a object at 0", model=lambda x: [object()], capture=capture
    )


@torch.library.custom_op("sardonyx_tests::twist", mutates_args=())
def twist(x: torch.Tensor) -> torch.Tensor:
    return x.flip(0)


@torch.library.custom_op("sardonyx_tests::turn", mutates_args=())
def turn(x: torch.Tensor) -> torch.Tensor:
    return x.flip(1)


twist.register_fake(torch.empty_like)
turn.register_fake(torch.empty_like)


class Unsupported(torch.nn.Module):
    def forward(self, x):
        a = twist(x)  # first
        b = twist(x + 1)
        c = turn(x)  # another
        return a + b + c


@CAPTURES
def test_all_unsupported_operators_are_listed_with_their_lines(refused, capture):
    error = refused(
        UnsupportedOperatorError,
        "no ONNX form for",
        "sardonyx_tests::twist (2 uses)",
        "sardonyx_tests::turn (1 use)",
        "float32[3, 3]",
        model=Unsupported(),
        args=(r(3, 3),),
        capture=capture,
    )
    assert "# first" in str(error) and "# another" in str(error)


# -- where the file goes -------------------------------------------------------------------------


def test_a_folder_that_is_missing(tmp_path, refused):
    refused(SerializeError, "missing", f=tmp_path / "missing" / "model.onnx")


def test_a_folder_instead_of_a_file(tmp_path):
    with pytest.raises(SerializeError, match=str(tmp_path)):
        sardonyx.export(Model(), (r(2, 3),), tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, refused):
    real = os.access

    def access(path, mode, **kwargs):
        denied = mode & os.W_OK and os.fspath(path) == os.fspath(tmp_path)
        return False if denied else real(path, mode, **kwargs)

    monkeypatch.setattr(os, "access", access)
    refused(SerializeError, str(tmp_path))


def test_the_model_is_not_run_before_the_destination_is_known_to_be_good(tmp_path):
    class Counting(torch.nn.Module):
        runs = 0

        def forward(self, x):
            Counting.runs += 1
            return x

    with pytest.raises(SerializeError):
        sardonyx.export(Counting(), (r(2),), tmp_path / "missing" / "model.onnx")
    assert Counting.runs == 0


class FullDisk(io.RawIOBase):
    """Takes a few bytes, then says what a full disk says."""

    def __init__(self):
        self.written = 0

    def writable(self):
        return True

    def write(self, data):
        self.written += len(data)
        if self.written > 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)


def test_a_full_disk(refused):
    refused(OSError, "No space left on device", f=FullDisk())


def test_what_cannot_be_written_to(refused):
    refused(InvalidOptionError, "f", f=io.BytesIO(b"").getvalue)
    with open(os.devnull, "rb") as read_only:
        refused((InvalidOptionError, SerializeError), f=read_only)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_the_values_of_a_sparse_tensor(capture: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"aten::_to_sparse .*aten::values"):
        sardonyx.export(lambda x: x.to_sparse().values(), (torch.eye(3),), capture=capture)


def test_a_null_character_in_a_path_is_refused() -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match="null character"):
        sardonyx.export(torch.nn.ReLU(), (torch.ones(2),), "a\0b.onnx")


def test_autocast_around_an_export_is_refused() -> None:
    with torch.autocast("cpu"), pytest.raises(sardonyx.InvalidOptionError, match="autocast"):
        sardonyx.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))


@CAPTURES
def test_one_element_of_a_weight(capture: str) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight[1:2, 2]

    program = sardonyx.export(Scaled(), (torch.ones(2, 3),), capture=capture)
    torch.testing.assert_close(program(torch.ones(2, 3)), torch.full((2, 3), 6.0))
