"""find_mismatch: the operators whose ONNX form differs are found, and those alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

import sardonyx
from sardonyx.verification import OnnxBackend, VerificationOptions, find_mismatch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 5)
        self.second = torch.nn.Linear(5, 3)

    def forward(self, x):
        h = self.first(x)
        h = torch.nn.functional.gelu(h)
        return self.second(h).sigmoid()


@pytest.fixture(autouse=True)
def _weights_of_one_seed():
    torch.manual_seed(0)


@pytest.fixture
def wrong_gelu():
    sardonyx.register_custom_op_symbolic("aten::gelu", lambda g, x, approximate: g.op("Relu", x), 9)
    yield
    sardonyx.unregister_custom_op_symbolic("aten::gelu", 9)


@pytest.fixture
def x():
    return torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


def kinds(info):
    return [leaf.essential_node_kinds() for leaf in info.all_mismatch_leaf_graph_info()]


@pytest.mark.parametrize("opset", [17, 20])
def test_a_model_without_a_difference(x, capsys, opset):
    info = find_mismatch(Model(), (x,), opset_version=opset)
    assert not info.has_mismatch()
    assert info.upper_graph_info is None
    assert info.lower_graph_info is None
    assert info.all_mismatch_leaf_graph_info() == []
    assert info.essential_node_count() == 4
    assert info.input_args[0] is x
    info.pretty_print_tree()
    info.pretty_print_mismatch()
    assert capsys.readouterr().out.splitlines() == [
        "✓ 4 operators  id: ''",
        "differ: none",
        "part '': no difference in 4 operators",
    ]


def test_the_operator_and_its_line(wrong_gelu, x, capsys):
    model = Model()
    info = find_mismatch(model, x)
    assert info.has_mismatch()
    (leaf,) = info.all_mismatch_leaf_graph_info()
    assert leaf.essential_node_count() == 1
    assert leaf.essential_node_kinds() == {"aten::gelu"}
    assert info.find_partition(leaf.id) is leaf
    assert info.find_partition("0101") is None
    torch.testing.assert_close(leaf.input_args[0], model.first(x))
    torch.testing.assert_close(leaf.pt_outs[0], torch.nn.functional.gelu(model.first(x)))
    leaf.pretty_print_mismatch(graph=True)
    printed = capsys.readouterr().out
    assert "differ in aten::gelu" in printed
    assert "test_find_mismatch.py:26   h = torch.nn.functional.gelu(h)" in printed
    assert "onnx::Relu" in printed
    assert isinstance(leaf.mismatch_error, sardonyx.VerificationError)


def test_verbose_prints_the_tree(wrong_gelu, x, capsys):
    find_mismatch(Model(), (x,), verbose=True)
    printed = capsys.readouterr().out
    assert printed.startswith("✗ 4 operators  id: ''\n  ✗ 2 operators  id: '0'\n")
    assert "    ✗ aten::gelu  id: '01'" in printed
    assert "differ: aten::gelu (1)" in printed


def test_the_search_can_be_repeated_and_cleared(wrong_gelu, x):
    info = find_mismatch(Model(), (x,))
    assert kinds(info) == [{"aten::gelu"}]
    info.find_mismatch(VerificationOptions(atol=10.0))
    assert not info.has_mismatch()
    info.find_mismatch(VerificationOptions(acceptable_error_percentage=1.0))
    assert not info.has_mismatch()
    info.find_mismatch()
    assert kinds(info) == [{"aten::gelu"}]
    info.clear()
    assert not info.has_mismatch()
    assert info.pt_outs is None


def test_the_reference_backend(wrong_gelu, x):
    options = VerificationOptions(backend=OnnxBackend.REFERENCE)
    assert kinds(find_mismatch(Model(), (x,), options=options)) == [{"aten::gelu"}]


def test_the_part_as_a_backend_test(wrong_gelu, x, tmp_path: Path):
    (leaf,) = find_mismatch(Model(), (x,)).all_mismatch_leaf_graph_info()
    folder = Path(leaf.export_repro(tmp_path, "gelu"))
    assert folder == tmp_path / "test_gelu"
    data = folder / "test_data_set_0"
    given, wanted = (
        numpy_helper.to_array(onnx.load_tensor(data / f"{kind}_0.pb"))
        for kind in ("input", "output")
    )
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    (actual,) = session.run(None, {session.get_inputs()[0].name: given})
    np.testing.assert_array_equal(actual, np.maximum(given, 0))
    np.testing.assert_array_equal(wanted, leaf.pt_outs[0].detach().numpy())
    assert [node.op_type for node in onnx.load(folder / "model.onnx").graph.node] == ["Relu"]


def test_the_repro_of_a_whole_model_holds_its_weights(x, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = Model()
    folder = Path(find_mismatch(model, (x,)).export_repro())
    assert folder == tmp_path / "onnx_debug" / "test_mismatch"
    graph = onnx.load(folder / "model.onnx").graph
    assert {i.name for i in graph.initializer} >= set(model.state_dict())
    assert {i.name for i in graph.input} >= {"x", *model.state_dict()}  # kept as inputs


def sizes_from_data(x):
    positive = x[x > 0]
    zeros = torch.zeros(positive.shape[0] + 1)
    return torch.nn.functional.gelu(positive) + zeros[1:], x.nonzero()


def complex_numbers(x):
    return torch.fft.fft(torch.nn.functional.gelu(x)).abs() + 1


def several(x):
    return torch.cat([torch.nn.functional.gelu(part) for part in x.split(1)])


@pytest.mark.parametrize("function", [sizes_from_data, complex_numbers])
def test_what_parts_hand_to_each_other(wrong_gelu, x, function):
    assert kinds(find_mismatch(function, (x,))) == [{"aten::gelu"}]


def test_an_autograd_function_has_its_own_name(x, capsys):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            return input.abs()

        @staticmethod
        def symbolic(g, input):
            return g.op("Neg", input)

    class Model(torch.nn.Module):
        def forward(self, input):
            return torch.relu(Wrong.apply(input) + 1)

    find_mismatch(Model(), (x,)).pretty_print_tree()
    assert "differ: Wrong (1)" in capsys.readouterr().out


def test_every_use_is_found(wrong_gelu, x):
    assert kinds(find_mismatch(several, (x,))) == [{"aten::gelu"}] * 2


class Loop(torch.nn.Module):
    def forward(self, x, n: int):
        parts = []
        for _ in range(n):
            x = torch.nn.functional.gelu(x)
            if bool(x.sum() > 3):
                x = x - 1
            parts.append(x)
        return torch.stack(parts) * 2, parts


def test_control_flow_is_one_operator(x):
    scripted = torch.jit.script(Loop())
    assert not find_mismatch(scripted, (x, 3)).has_mismatch()


def test_control_flow_that_differs(wrong_gelu, x):
    assert kinds(find_mismatch(torch.jit.script(Loop()), (x, 3))) == [{"sardonyx::loop"}]


def test_training_changes_nothing_and_random_values_are_not_compared():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout()
    )
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    image = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    info = find_mismatch(model, (image,), training=sardonyx.TrainingMode.TRAINING)
    assert not info.has_mismatch()
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it is there"
)
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_backend_that_is_not_there(x):
    options = VerificationOptions(backend=OnnxBackend.ONNX_RUNTIME_CUDA)
    with pytest.raises(sardonyx.InvalidOptionError, match="has no CUDAExecutionProvider"):
        find_mismatch(Model(), (x,), options=options)


def test_what_cannot_be_asked_for(x):
    with pytest.raises(sardonyx.InvalidOptionError, match="opset_version=3"):
        find_mismatch(Model(), (x,), opset_version=3)
    with pytest.raises(sardonyx.InvalidOptionError, match="VerificationOptions"):
        find_mismatch(Model(), (x,), options={"rtol": 1})
    with pytest.raises(sardonyx.InvalidOptionError, match="acceptable_error_percentage"):
        VerificationOptions(acceptable_error_percentage=30)
    with pytest.raises(sardonyx.InvalidOptionError, match="OnnxBackend"):
        VerificationOptions(backend="CPUExecutionProvider")
