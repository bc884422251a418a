"""torch-onnx-2.1.rst: "Tracing vs Scripting", "Avoiding Pitfalls", "Types", and the questions.

Where the reference says that something does not work, a test has both: what a plain trace makes of
it, and what comes out here.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.reference import ReferenceEvaluator

import sardonyx

ALL_CAPTURES = pytest.mark.parametrize("capture", ["trace", "export", "script"])
RECORDINGS = pytest.mark.parametrize("capture", ["trace", "export"])


def operators(program):
    return [node.op_type for node in program.model.graph]


# Tracing vs Scripting


def doubled_or_lowered(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def steps(x, n: int):
    for i in range(n):
        x = x * 2 + i
    return x


def test_tracing_executes_the_model_once_with_the_given_args():
    """'executes the model once with the given args and records all operations'."""
    seen = []

    def model(x):
        seen.append(tuple(x.shape))
        return torch.relu(x) + 1

    program = sardonyx.export(model, torch.randn(2, 3), capture="trace")
    assert seen == [(2, 3)]
    assert operators(program) == ["Relu", "Constant", "Add"]


def test_a_trace_does_not_capture_behaviour_that_depends_on_data():
    """'if your model is dynamic ... the exported model will not capture this dynamic behavior'.

    A trace that was asked for says what it took; nobody gets one without asking."""
    program = sardonyx.export(doubled_or_lowered, torch.ones(3), capture="trace")
    x = torch.full((3,), -3.0)
    torch.testing.assert_close(program(x), x * 2)  # the wrong branch: x - 1 is right
    (note,) = program.notes
    assert "bakes a value" in note and "x.sum() > 0" in note
    program = sardonyx.export(doubled_or_lowered, torch.ones(3))
    torch.testing.assert_close(program(x), x - 1)


def test_a_model_need_not_be_examined():
    """'We recommend examining the exported model and making sure the operators look reasonable':
    the verification does, and names the line that is to blame."""
    with pytest.raises(sardonyx.VerificationError, match=r"x\.sum\(\) > 0"):
        sardonyx.export(
            doubled_or_lowered, torch.tensor([3.0, -2.0, -0.5]), capture="trace", verify=True
        )


def test_tracing_unrolls_loops():
    """'Tracing will unroll loops and if statements, exporting a static graph'."""
    program = sardonyx.export(lambda x: steps(x, 3), torch.randn(2), capture="trace")
    assert operators(program).count("Mul") == 3
    assert not {"Loop", "If"} & set(operators(program))


def test_scripting_preserves_dynamic_control_flow():
    """'preserves dynamic control flow and is valid for inputs of different sizes'."""
    program = sardonyx.export(
        torch.jit.script(doubled_or_lowered), torch.ones(3), dynamic_axes={"x": [0]}
    )
    assert "If" in operators(program)
    for x in (torch.ones(3), torch.full((5,), -3.0)):
        torch.testing.assert_close(program(x), doubled_or_lowered(x))
    program = sardonyx.export(torch.jit.script(steps), (torch.ones(3), 2))
    assert "Loop" in operators(program)
    for n in (2, 5, 0):
        torch.testing.assert_close(program(torch.ones(3), n), steps(torch.ones(3), n))


def test_dynamic_control_flow_without_a_script():
    """'you will need to use scripting': torch.export's operators for it do as well."""

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    program = sardonyx.export(Model(), torch.ones(3))
    for x in (torch.ones(3), torch.full((3,), -3.0)):
        torch.testing.assert_close(program(x), doubled_or_lowered(x))


def test_no_tracing_is_performed_for_a_script_module():
    """'The args are still required, but they will be used ... only to produce example outputs'."""

    class Model(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] > 2:
                return torch.relu(x)
            return torch.sigmoid(x)

    model = Model()
    program = sardonyx.export(torch.jit.script(model), torch.ones(2), dynamic_axes={"x": [0]})
    assert "If" in operators(program), "the branch that the example does not take is there"
    torch.testing.assert_close(program(-torch.ones(4)), model(-torch.ones(4)))
    with pytest.raises(sardonyx.InvalidOptionError, match="takes 'x', which was not given"):
        sardonyx.export(torch.jit.script(model))


def test_tracing_and_scripting_compose():
    """'how to compose tracing and scripting to suit ... different models'."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scripted = torch.jit.script(doubled_or_lowered)

        def forward(self, x):
            return self.scripted(torch.neg(x))

    program = sardonyx.export(Model(), torch.ones(3), capture="trace")
    assert "If" in operators(program)
    for x in (torch.ones(3), torch.full((3,), -3.0)):
        torch.testing.assert_close(program(x), doubled_or_lowered(-x))


# Avoid NumPy and built-in Python types


class Joined(torch.nn.Module):
    """The reference's two lines, on the model's own input."""

    def forward(self, x, y):
        return torch.from_numpy(np.concatenate((x.numpy(), y.numpy()), axis=1))


def test_numpy_values_become_constants_in_a_trace():
    """'any variables of NumPy or Python types ... are converted to constants'."""
    x, y = torch.randn(1, 2), torch.randn(1, 2)
    program = sardonyx.export(Joined(), (x, y), capture="trace")
    assert operators(program) == ["Constant"]
    assert "becomes a NumPy array" in program.notes[0] and "x.numpy()" in program.notes[0]


def test_numpy_functions_of_tensors_are_recorded():
    """The same lines without asking for a trace: torch.export records them."""
    x, y = torch.randn(1, 2), torch.randn(1, 2)
    program = sardonyx.export(Joined(), (x, y), verify=True)
    assert operators(program) == ["Concat"]


def test_bad_numpy_example():
    """'Bad! Will be replaced with constants': the verification sees that the results differ."""

    class Bad(torch.nn.Module):
        def forward(self, input):
            # Bad! Will be replaced with constants during tracing.
            x, y = np.random.rand(1, 2), np.random.rand(1, 2)
            return input + torch.from_numpy(np.concatenate((x, y), axis=1))

    program = sardonyx.export(Bad(), torch.randn(1, 4))
    assert torch.equal(program(torch.ones(1, 4)), program(torch.ones(1, 4)))
    with pytest.raises(sardonyx.VerificationError, match="disagree"):
        program.verify()


@RECORDINGS
def test_good_torch_example(capture):
    """'Good! Tensor operations will be captured during tracing': a draw stays one."""

    class Good(torch.nn.Module):
        def forward(self, input):
            # Good! Tensor operations will be captured during tracing.
            x, y = torch.randn(1, 2), torch.randn(1, 2)
            return input + torch.cat((x, y), dim=1)

    program = sardonyx.export(Good(), torch.randn(1, 4), capture=capture)
    assert operators(program).count("RandomNormal") == 2 and "Concat" in operators(program)
    assert not torch.equal(program(torch.ones(1, 4)), program(torch.ones(1, 4)))


class ReshapedByItem(torch.nn.Module):
    # Bad in the reference: y.item() will be replaced with a constant during tracing.
    def forward(self, x, y):
        return x.reshape(y.item(), -1)


class ReshapedByTensor(torch.nn.Module):
    # Good! y will be preserved as a variable during tracing.
    def forward(self, x, y):
        return x.reshape(y, -1)


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
def test_item_is_a_variable_here(capture):
    """'y.item() will be replaced with a constant during tracing': here it is followed."""
    model = ReshapedByItem()
    program = sardonyx.export(model, (torch.randn(12), torch.tensor(3)), capture=capture)
    assert not program.notes
    for y in (3, 4, 12):
        given = torch.randn(12), torch.tensor(y)
        torch.testing.assert_close(program(*given), model(*given))


@RECORDINGS
def test_single_element_tensors_are_cast_implicitly(capture):
    """'y will be preserved as a variable during tracing'."""
    program = sardonyx.export(
        ReshapedByTensor(), (torch.randn(12), torch.tensor(3)), capture=capture
    )
    assert program(torch.randn(12), torch.tensor(4)).shape == (4, 3)


# Avoid Tensor.data


def written_through_data(x):
    y = x * 2
    y.data.add_(1)
    return y + x


def written_through_detach(x):
    y = x * 2
    y.detach().add_(1)
    return y + x


@RECORDINGS
@pytest.mark.parametrize("model", [written_through_data, written_through_detach])
def test_data_and_detach(capture, model):
    """'Using the Tensor.data field can produce an incorrect trace': both are right here."""
    sardonyx.export(model, torch.randn(4), capture=capture, verify=True)


def test_data_loses_the_write_in_a_plain_trace():
    """What the reference warns of: PyTorch's own trace loses the 1."""
    traced = torch.jit.trace(written_through_data, torch.ones(2), check_trace=False)
    x = torch.full((2,), 5.0)
    assert not torch.equal(traced(x), written_through_data(x))


def test_memory_exchanged_through_data():
    """Traces of torch.jit lose this one."""

    def model(x):
        y = x * 2
        y.data = y.data + 1
        return y + x

    program = sardonyx.export(model, torch.ones(2))
    torch.testing.assert_close(program(torch.full((2,), 3.0)), torch.full((2,), 10.0))


# Avoid in-place operations when using tensor.shape in tracing mode


class Model(torch.nn.Module):
    def forward(self, states):
        batch_size, seq_length = states.shape[:2]  # noqa: RUF059
        real_seq_length = seq_length
        real_seq_length += 2
        return real_seq_length + seq_length


class Rewritten(torch.nn.Module):
    def forward(self, states):
        batch_size, seq_length = states.shape[:2]  # noqa: RUF059
        real_seq_length = seq_length
        real_seq_length = real_seq_length + 2
        return real_seq_length + seq_length


@ALL_CAPTURES
@pytest.mark.parametrize("model", [Model(), Rewritten()], ids=["in place", "rewritten"])
def test_sizes_do_not_share_memory(capture, model):
    """'real_seq_length and seq_length share the same memory in tracing mode': not here."""
    given = torch.jit.script(model) if capture == "script" else model
    program = sardonyx.export(
        given,
        torch.randn(2, 5),
        capture="auto" if capture == "script" else capture,
        dynamic_axes={"states": [0, 1]},
    )
    assert program(torch.randn(3, 7)).item() == 7 + 2 + 7


def test_sizes_share_memory_in_a_plain_trace():
    """What the reference warns of: PyTorch's trace adds the 2 twice."""
    traced = torch.jit.trace(Model(), torch.randn(2, 5))
    assert int(traced(torch.randn(3, 7))) == 7 + 2 + 7 + 2


# Types


@RECORDINGS
def test_tuples_lists_and_numbers_go_in_and_out(capture):
    """'torch.Tensors, numeric types ... and tuples and lists of those types are supported'."""

    def model(pair, items, i: int, f: float):
        return [pair[0] + items[0], (pair[1] * i, items[1] * f)]

    args = ((torch.ones(2), torch.ones(3)), [torch.ones(2), torch.ones(4)], 3, 0.5)
    program = sardonyx.export(model, args, capture=capture, verify=True)
    other = ((torch.randn(2), torch.randn(3)), [torch.randn(2), torch.randn(4)], 5, 1.25)
    found, expected = program(*other), model(*other)
    assert type(found) is list and type(found[1]) is tuple
    torch.testing.assert_close(found, expected)


@RECORDINGS
def test_dict_inputs_are_inputs(capture):
    """'Any computation that depends on the value of a dict ... input will be replaced with the
    constant value': here each tensor in it is an input of the file."""

    def model(features):
        return features["x"] + features["y"]

    args = ({"x": torch.ones(2), "y": torch.ones(2)}, {})
    program = sardonyx.export(model, args, capture=capture)
    assert [i.name for i in program.model.graph.inputs] == ["features.x", "features.y"]
    other = {"x": torch.randn(2), "y": torch.randn(2)}
    torch.testing.assert_close(program(other), other["x"] + other["y"])


@RECORDINGS
def test_what_depends_on_a_str_is_constant(capture):
    """'depends on the value of a ... str input will be replaced with the constant value': ONNX has
    no Python strings. Another string than the one exported is refused, not ignored."""

    def model(x, mode: str):
        return torch.relu(x) if mode == "relu" else torch.sigmoid(x)

    program = sardonyx.export(model, (torch.randn(3), "relu"), capture=capture)
    assert operators(program) == ["Relu"]
    assert [i.name for i in program.model.graph.inputs] == ["x"]
    program(torch.randn(3), "relu")
    with pytest.raises(sardonyx.SardonyxError, match="mode"):
        program(torch.randn(3), "sigmoid")


@RECORDINGS
def test_dict_outputs_keep_their_keys(capture):
    """'silently replaced with a flattened sequence of its values (keys will be removed)': the keys
    are the outputs' names, and the program gives the dict back."""

    def model(x):
        return {"foo": x + 1, "bar": x + 2}

    program = sardonyx.export(model, torch.zeros(2), capture=capture)
    assert [o.name for o in program.model.graph.outputs] == ["foo", "bar"]
    found = program(torch.zeros(2))
    assert list(found) == ["foo", "bar"]
    assert [v[0].item() for v in found.values()] == [1, 2]


@RECORDINGS
def test_str_outputs_come_back(capture):
    """'Any output that is a str will be silently removed': from the file, not from the program."""

    def model(x):
        return x + 1, "a label"

    program = sardonyx.export(model, torch.zeros(2), capture=capture)
    assert len(program.model.graph.outputs) == 1
    assert program(torch.zeros(2))[1] == "a label"


@RECORDINGS
def test_nested_sequences_are_flattened(capture):
    """'In tracing mode, the nested sequences will be flattened automatically'."""

    def model(x):
        return [(x + 1, [x + 2]), x + 3]

    program = sardonyx.export(model, torch.zeros(2), capture=capture)
    assert len(program.model.graph.outputs) == 3
    found = program(torch.zeros(2))
    torch.testing.assert_close(found, model(torch.zeros(2)))


def test_appending_a_tuple_to_a_list_in_a_script():
    """'appending a tuple to a list is not supported' in scripting mode: it is here."""

    def model(x, n: int):
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i in range(n):
            pairs.append((x + i, x * i))
        total = torch.zeros_like(x)
        for first, second in pairs:
            total = total + first * second
        return total

    program = sardonyx.export(torch.jit.script(model), (torch.ones(3), 2))
    for n in (2, 4, 0):
        torch.testing.assert_close(program(torch.ones(3), n), model(torch.ones(3), n))


# Differences in Operator Implementations


def test_differences_between_runtimes_are_small_and_measured():
    """'Normally these differences are numerically small': the verification says how small."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))
    report = sardonyx.export(model, torch.randn(8, 64)).verify()
    assert report.largest_absolute < 1e-5
    assert any("largest absolute error" in finding for finding in report.findings)


# Frequently Asked Questions


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 8)

    def forward(self, x):
        return self.lstm(x)[0]


@RECORDINGS
def test_the_input_size_of_an_lstm(capture):
    """'its input size seems to be fixed? ... set dynamic_axes'."""
    torch.manual_seed(0)
    model = Tagger().eval()
    fixed = sardonyx.export(model, torch.randn(5, 2, 4), capture=capture)
    assert fixed.model.graph.inputs[0].shape == (5, 2, 4)
    with pytest.raises(sardonyx.InvalidOptionError, match=r"export with dynamic_axes=.*0: "):
        fixed(torch.randn(9, 3, 4))
    dynamic = sardonyx.export(
        model, torch.randn(5, 2, 4), capture=capture, dynamic_axes={"x": {0: "time", 1: "batch"}}
    )
    x = torch.randn(9, 3, 4)
    torch.testing.assert_close(dynamic(x), model(x).detach())


@ALL_CAPTURES
def test_primitive_inputs(capture):
    """'Support for primitive numeric type inputs': int and float are inputs of the file."""

    def model(x, i: int, f: float):
        return x * i + f

    given = torch.jit.script(model) if capture == "script" else model
    program = sardonyx.export(
        given, (torch.randn(2), 3, 0.5), capture="auto" if capture == "script" else capture
    )
    assert [i.name for i in program.model.graph.inputs] == ["x", "i", "f"]
    torch.testing.assert_close(program(torch.ones(2), 7, 1.5), torch.full((2,), 8.5))


def test_a_script_with_a_str_input():
    """'the exporter does not support models with str inputs': the string is a constant here."""

    def model(x, mode: str):
        if mode == "relu":
            return torch.relu(x)
        return torch.sigmoid(x)

    program = sardonyx.export(torch.jit.script(model), (torch.randn(3), "relu"))
    assert operators(program) == ["Relu"]


@ALL_CAPTURES
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.int64])
def test_scalars_get_the_right_type(capture, dtype):
    """'Scalars are exported as constant tensors. The exporter will figure out the right data
    type': PyTorch's promotion, without dtype=."""

    def model(x):
        return x * 2 + 1, x * 0.5, 2 - x

    given = torch.jit.script(model) if capture == "script" else model
    x = torch.arange(4).to(dtype)
    program = sardonyx.export(given, x, capture="auto" if capture == "script" else capture)
    for found, expected in zip(program(x), model(x), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("opset", [11, 20])
def test_lists_of_tensors_by_opset(opset):
    """'Yes, for opset_version >= 11, since ONNX introduced the Sequence type in opset 11.'"""

    def model(x, n: int):
        return x.split(n)

    program = sardonyx.export(torch.jit.script(model), (torch.arange(9.0), 2), opset_version=opset)
    torch.testing.assert_close(program(torch.arange(9.0), 4), list(model(torch.arange(9.0), 4)))
    with pytest.raises(sardonyx.UnsupportedOpsetError, match="opset 11"):
        sardonyx.export(torch.jit.script(model), (torch.arange(9.0), 2), opset_version=10)


def test_lists_of_tensors():
    """'Are lists of Tensors exportable? Yes': as sequences where the length varies."""

    def model(x, n: int):
        items: list[torch.Tensor] = []
        for i in range(n):
            items.append(x[: i + 1])
        return items

    program = sardonyx.export(torch.jit.script(model), (torch.arange(9.0), 2))
    (output,) = program.model_proto.graph.output
    assert output.type.WhichOneof("value") == "sequence_type"
    for n in (2, 4):
        found, expected = program(torch.arange(9.0), n), model(torch.arange(9.0), n)
        assert len(found) == n
        for each, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(each, wanted)


def test_the_file_is_onnx(tmp_path):
    """'The model can then be consumed by any of the many runtimes that support ONNX'."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GELU())
    x = torch.randn(2, 4)
    sardonyx.export(model, x, tmp_path / "model.onnx", input_names=["x"])
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    inputs = {"x": x.numpy()}
    for runtime in (ReferenceEvaluator, onnxruntime.InferenceSession):
        (found,) = runtime(str(tmp_path / "model.onnx")).run(None, inputs)
        torch.testing.assert_close(torch.from_numpy(found), model(x).detach())
