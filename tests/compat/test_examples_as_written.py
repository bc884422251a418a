"""The examples' own text, taken from the documents and run: with `sardonyx` for `torch.onnx`, and
without any change where Sardonyx is installed behind it.

What an example takes for granted is given to it: names that it does not define, and stand-ins for
torchvision, Caffe2 and a GPU where there are none.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import sardonyx
from examples.models import MODELS
from sardonyx.symbolic_helper import _scalar, _unimplemented
from tests.compat import foo_operator
from tests.compat.test_word_for_word import REFERENCE, example_texts

assert foo_operator.LIBRARY is not None  # it defines torch.ops.custom_ops
pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the reference's documents are not here"
)
OF_1_X, OF_2_1 = "torch-onnx-1.x.rst", "torch-onnx-2.1.rst"
ADDING, CHINESE = "adding-an-operator.md", "custom-operators-zh.md"

Names = dict[str, Any]
Run = Callable[..., Names]


@pytest.fixture(params=["sardonyx", "torch.onnx"])
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """Runs the example that begins or goes on with a text, in the names of those before it."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("example")  # onnxscript looks for the module and its source
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    names.update(torch=torch, np=np)

    def run_example(
        document: str, part: str, slip: tuple[str, str] = ("", ""), **given: Any
    ) -> Names:
        (text,) = [t for t in example_texts(REFERENCE / document) if part in t]
        text = text.replace("torch.onnx", request.param).replace(*slip)
        if request.param == "sardonyx":
            names["sardonyx"] = sardonyx
        path = tmp_path / "example.py"
        # Types that the examples annotate with, as torch.Value, are gone from PyTorch.
        path.write_text(f"from __future__ import annotations\n{text}")
        names.update(given)
        exec(compile(path.read_text(), path, "exec"), names)
        return names

    if request.param == "sardonyx":
        yield run_example
    else:
        with sardonyx.installed():
            yield run_example


# AlexNet


@pytest.fixture
def machine_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision: Any = types.ModuleType("torchvision")
    torchvision.models = types.SimpleNamespace(
        alexnet=lambda pretrained: MODELS["alexnet"].make() if pretrained else None
    )
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    if not torch.cuda.is_available():
        drawn = torch.randn
        monkeypatch.setattr(torch.nn.Module, "cuda", lambda self: self)
        monkeypatch.setattr(torch, "randn", lambda *size, device: drawn(*size))


@pytest.mark.usefixtures("machine_of_the_examples")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_alexnet(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(OF_2_1, "import torchvision")
    assert "%output1 : Float(10, 1000) = onnx::Gemm" in capsys.readouterr().out
    run(OF_2_1, "onnx.checker.check_model(model)")
    assert "%actual_input_1[FLOAT, 10x3x224x224]" in capsys.readouterr().out
    assert run(OF_2_1, "import onnxruntime as ort")["outputs"][0].shape == (10, 1000)


@pytest.mark.parametrize("run", ["torch.onnx"], indirect=True)
@pytest.mark.usefixtures("machine_of_the_examples")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_alexnet_and_caffe2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime.backend as of_onnxruntime

    backend: Any = types.ModuleType("caffe2.python.onnx.backend")
    backend.prepare = lambda model, device: of_onnxruntime.prepare(model, device="CPU")
    packages = ("caffe2", "caffe2.python", "caffe2.python.onnx")
    for name, module in (
        *((p, types.ModuleType(p)) for p in packages),
        (backend.__name__, backend),
    ):
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    run(OF_1_X, "import torchvision")
    run(OF_1_X, "onnx.checker.check_model(model)")
    assert run(OF_1_X, "backend.prepare")["outputs"][0].shape == (10, 1000)


# Avoiding Pitfalls


def test_numpy_and_torch(run: Run) -> None:
    for part in ("np.concatenate", "torch.cat("):
        assert tuple(run(OF_2_1, part)["x"].shape) == (1, 2)


@pytest.mark.parametrize("part", ["y.item()", "x.reshape(y, -1)"])
def test_reshapes(run: Run, part: str) -> None:
    forward = run(OF_2_1, part)["forward"]
    model = type("Reshaped", (torch.nn.Module,), {"forward": forward})()
    program = sardonyx.export(model, (torch.randn(12), torch.tensor(3)))
    assert program(torch.randn(12), torch.tensor(4)).shape == (4, 3)


def test_sizes_in_place(run: Run) -> None:
    model = run(OF_2_1, "real_seq_length += 2")["Model"]()
    program = sardonyx.export(model, torch.randn(2, 5), dynamic_axes={"states": [0, 1]})
    assert program(torch.randn(3, 7)).item() == 7 + 2 + 7
    assert run(OF_2_1, "real_seq_length + 2\n", real_seq_length=5)["real_seq_length"] == 7


# Unsupported Tensor Indexing Patterns

SHAPES = [((4, 4, 5), (5,)), ((4, 4, 5), (2, 4)), ((4, 4, 5), (2, 5)), ((3, 4, 5), (5,))]


def indexing_model(statement: ast.stmt) -> Callable[..., torch.Tensor]:
    names: Names = {"torch": torch}
    text = ast.unparse(statement)
    is_read = isinstance(statement, ast.Expr)
    lines = ["data = data.clone()", f"data = {text}" if is_read else text, "return data"]
    exec("\n    ".join(["def model(data, new_data):", *lines]), names)
    model: Callable[..., torch.Tensor] = names["model"]
    return model


@pytest.mark.parametrize("part", ["When", "= new_data"])
def test_indexing(part: str) -> None:
    texts = [t for t in example_texts(REFERENCE / OF_2_1) if "data[torch" in t]
    (text,) = [t for t in texts if ("= new_data" in t) == (part == "= new_data")]
    for statement, shapes in zip(ast.parse(text).body, SHAPES, strict=False):
        args = tuple(map(torch.randn, shapes))
        sardonyx.export(indexing_model(statement), args, verify=True)


# Symbolic functions


@pytest.mark.parametrize("document", [OF_2_1, CHINESE])
def test_foo(run: Run, document: str) -> None:
    foo = run(document, "def foo(")["foo"]
    sardonyx.register_custom_op_symbolic("custom_ops::foo", foo, 9)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="custom_ops::foo"):
        sardonyx.export(torch.ops.custom_ops.foo, (torch.randn(2), torch.randn(2)))


@pytest.mark.parametrize("document", [OF_2_1, CHINESE])
def test_the_graph_of_elu(run: Run, document: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(document, "torch.nn.ELU()")
    assert "aten::elu" in capsys.readouterr().out


@pytest.mark.parametrize("document", [OF_1_X, OF_2_1, ADDING])
def test_elu(run: Run, document: str) -> None:
    elu = run(document, "def elu(g", _scalar=_scalar)["elu"]
    sardonyx.register_custom_op_symbolic("aten::elu", elu, 9)
    program = sardonyx.export(torch.nn.ELU(0.5), torch.randn(3), verify=True)
    assert [node.op_type for node in program.model.graph] == ["Elu"]


# torch.autograd.Functions


@pytest.mark.parametrize("document", [OF_2_1, CHINESE])
def test_static_symbolic_method(run: Run, document: str) -> None:
    function = run(document, "def symbolic(g")["MyRelu"]
    program = sardonyx.export(lambda x: function.apply(x), torch.randn(3), verify=True)
    assert "Clip" in [node.op_type for node in program.model.graph]


@pytest.mark.parametrize(
    "document, slip",
    [
        (OF_2_1, ("symbolic_python_op(g:", "symbolic_python_op(ctx, g:")),  # as its text has it
        (CHINESE, ("", "")),
    ],
)
def test_python_op_symbolic(
    run: Run, document: str, slip: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    names = run(document, "class MyClip", slip, _unimplemented=_unimplemented)

    def model(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = names["MyRelu"].apply(names["MyClip"].apply(x, -0.5))
        return result

    program = sardonyx.export(model, torch.randn(3), verify=True)
    assert [node.op_type for node in program.model.graph][-2:] == ["Clip", "Relu"]
    assert "arg 1: -0.5, requires grad: False" in capsys.readouterr().out


def test_inline_autograd_function(run: Run) -> None:
    function = run(OF_2_1, "class MyLogExp")["MyLogExp"]
    program = sardonyx.export(lambda x: function.apply(x), torch.tensor([2.0]), verify=True)
    assert [node.op_type for node in program.model.graph] == ["Exp", "Log", "Log"]


# Custom operators


def test_onnx_script_functions(run: Run) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript functions need onnxscript")
    run(OF_2_1, "import onnxscript")
    written = onnx.load("model.onnx")
    assert {o.domain: o.version for o in written.opset_import} == {"": 15, "onnx-script": 2}
    x = torch.randn(1, 2, 3, 4)
    session = onnxruntime.InferenceSession("model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), torch.selu(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("document", [OF_2_1, CHINESE])
def test_cpp_operators(run: Run, document: str) -> None:
    run(
        document,
        "custom_domain::Foo",
        slip=("super(FooModule,", "super(FooModel,"),
        attr1=0.5,
        attr2=3,
        example_input1=torch.randn(2, 3),
    )
    written = onnx.load("model.onnx")
    assert {o.domain: o.version for o in written.opset_import}["custom_domain"] == 2
    assert [(n.domain, n.op_type) for n in written.graph.node] == [("custom_domain", "Foo")]


def test_unconvertible_ops(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        OF_2_1,
        "utils.unconvertible_ops",
        model=torch.ops.custom_ops.foo,
        args=(torch.randn(2), torch.randn(2)),
        opset_version=20,
    )
    assert capsys.readouterr().out == "{'custom_ops::foo'}\n"
