"""write_model: what it writes is what onnx and ONNX Runtime read, and weights are never held."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from sardonyx.errors import InvalidOptionError, SerializeError
from sardonyx.lower.values import TORCH_TO_ONNX
from sardonyx.lower.weights import TorchTensor
from sardonyx.serialize import writer
from sardonyx.serialize.external_data_layout import (
    PROTOBUF_LIMIT,
    ExternalData,
    place,
    resolve_external_data,
)
from sardonyx.serialize.writer import write_model
from tests.serialize.models import (
    initializer,
    linear,
    model_of,
    tensor_value,
    weights_only,
)


def run(model: str | bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def small_linear() -> tuple[ir.Model, torch.nn.Linear]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 4)
    return linear(layer.weight, layer.bias), layer


@pytest.mark.parametrize("external_data", [None, True, ExternalData(0), ExternalData(40)])
def test_round_trip_through_onnx_runtime(tmp_path, external_data):
    model, layer = small_linear()
    path = tmp_path / "model.onnx"
    result = write_model(model, path, external_data=external_data)
    onnx.checker.check_model(str(path), full_check=True)
    x = torch.randn(2, 3)
    [y] = run(str(path), x.numpy())
    np.testing.assert_allclose(y, layer(x).detach().numpy(), rtol=1e-6)
    assert result.path == str(path)
    assert result.model_bytes == path.stat().st_size
    data_path = tmp_path / "model.onnx.data"
    assert data_path.exists() == isinstance(external_data, ExternalData)
    assert result.data_bytes == (data_path.stat().st_size if data_path.exists() else 0)


def test_same_content_as_protobuf_writes(tmp_path):
    model, _ = small_linear()
    model.doc_string = "doc"
    model.metadata_props["a"] = "b"
    stream = io.BytesIO()
    write_model(model, stream)
    ours = onnx.load_from_string(stream.getvalue())
    theirs = ir.to_proto(model)
    # onnx-ir repeats each initializer's type as value_info; the tensor already says it.
    del theirs.graph.value_info[:]
    assert ours == theirs


def test_nodes_keep_their_provenance(tmp_path):
    model, _ = small_linear()
    write_model(model, tmp_path / "m.onnx")
    [node] = onnx.load(tmp_path / "m.onnx").graph.node
    props = {entry.key: entry.value for entry in node.metadata_props}
    assert props["sardonyx.source"] == "my_model.py:57"


@pytest.mark.parametrize("external_data", [None, ExternalData(0)])
def test_every_dtype_is_read_back(tmp_path, external_data):
    tensors = {
        str(dtype).removeprefix("torch."): torch.tensor([[1, 0, 1], [0, 1, 1]], dtype=torch.uint8)
        .repeat(1, dtype.itemsize)
        .view(dtype)
        for dtype in TORCH_TO_ONNX
    }
    model = weights_only(**tensors)
    path = tmp_path / "all.onnx"
    write_model(model, path, external_data=external_data)
    loaded = onnx.load(path)
    assert len(loaded.graph.initializer) == len(tensors)
    for proto in loaded.graph.initializer:
        expected = TorchTensor(tensors[proto.name])
        assert proto.data_type == expected.dtype.value
        got = onnx.numpy_helper.to_array(proto)
        assert got.shape == tuple(expected.shape)
        assert got.tobytes() == np.ascontiguousarray(expected.numpy()).tobytes()


def test_odd_shapes_and_layouts(tmp_path):
    tensors = {
        "scalar": torch.tensor(3.5),
        "empty": torch.empty(0, 4),
        "transposed": torch.randn(3, 4).t(),
        "strided": torch.randn(6, 6)[::2, 1::3],
        "expanded": torch.randn(1, 4).expand(3, 4),
    }
    for external_data in (False, ExternalData(0)):
        path = tmp_path / "odd.onnx"
        write_model(weights_only(**tensors), path, external_data=external_data)
        for got, expected in zip(run(str(path)), tensors.values(), strict=True):
            np.testing.assert_array_equal(got, expected.numpy())


def test_string_and_numpy_initializers():
    model = weights_only(w=torch.ones(2))
    strings = ir.Value(
        name="s",
        type=ir.TensorType(ir.DataType.STRING),
        shape=ir.Shape([2]),
        const_value=ir.StringTensor([b"a", b"b"], shape=ir.Shape([2])),
    )
    array = ir.Value(name="n", const_value=ir.tensor(np.arange(3, dtype=np.int64)))
    model.graph.register_initializer(strings)
    model.graph.register_initializer(array)
    stream = io.BytesIO()
    write_model(model, stream)
    protos = {p.name: p for p in onnx.load_from_string(stream.getvalue()).graph.initializer}
    assert list(protos["s"].string_data) == [b"a", b"b"]
    assert onnx.numpy_helper.to_array(protos["n"]).tolist() == [0, 1, 2]


def test_subgraph_initializers_and_functions_survive(tmp_path):
    graph = ir.Graph(
        [cond := tensor_value("c", dtype=ir.DataType.BOOL)],
        [y := tensor_value("y", 2)],
        nodes=[],
        opset_imports={"": 20, "local": 1},
        name="main",
    )
    branches = []
    for name, number in (("then_branch", 1.0), ("else_branch", 2.0)):
        out = tensor_value(f"{name}_out", 2)
        branch = ir.Graph([], [out], nodes=[], name=name)
        weight = initializer(branch, f"{name}_w", torch.full((2,), number))
        branch.append(ir.Node("local", "Twice", [weight], outputs=[out]))
        branches.append(ir.AttrGraph(name, branch))
    graph.append(ir.Node("", "If", [cond], branches, outputs=[y]))
    a, b = ir.Value(name="a"), ir.Value(name="b")
    twice = ir.Function(
        "local",
        "Twice",
        graph=ir.Graph(
            [a],
            [b],
            nodes=[ir.Node("", "Add", [a, a], outputs=[b])],
            opset_imports={"": 20},
        ),
        attributes=[],
    )
    path = tmp_path / "if.onnx"
    write_model(model_of(graph, functions=[twice]), path)
    assert run(str(path), np.array(True))[0].tolist() == [2.0, 2.0]
    assert run(str(path), np.array(False))[0].tolist() == [4.0, 4.0]


@pytest.mark.parametrize("external_data", [None, ExternalData(0)])
def test_same_model_same_bytes(tmp_path, external_data):
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_model(small_linear()[0], tmp_path / name / "m.onnx", external_data=external_data)
        written.append({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0].values())


def test_writing_leaves_the_model_as_it_was(tmp_path):
    model, _ = small_linear()
    before = ir.to_proto(model)
    write_model(model, tmp_path / "m.onnx", external_data=ExternalData(0))
    assert ir.to_proto(model) == before


def test_tied_weights_share_their_place_in_the_data_file(tmp_path):
    weight = torch.randn(512, 8)
    model = weights_only(a=weight, b=weight, c=weight.clone(), tail=torch.ones(4))
    path = tmp_path / "tied.onnx"
    result = write_model(model, path, external_data=ExternalData(0))
    entries = {
        proto.name: {entry.key: entry.value for entry in proto.external_data}
        for proto in onnx.load(path, load_external_data=False).graph.initializer
    }
    assert entries["a"] == entries["b"] != entries["c"]
    assert result.data_bytes == 2 * weight.nbytes + 16
    for got, expected in zip(run(str(path))[:3], [weight, weight, weight], strict=True):
        np.testing.assert_array_equal(got, expected.numpy())


def test_placements_are_aligned_and_small_tensors_stay_inside(tmp_path):
    big = torch.zeros(2**18 + 1)
    places = place([TorchTensor(t) for t in (torch.ones(3), torch.ones(3), big, torch.ones(1))])
    assert [p.offset for p in places] == [0, 64, 4096, 4096 + -(-big.nbytes // 64) * 64]
    path = tmp_path / "m.onnx"
    model = weights_only(small=torch.ones(255), large=torch.ones(256))
    write_model(model, path, external_data=True)
    protos = {p.name: p for p in onnx.load(path, load_external_data=False).graph.initializer}
    assert protos["small"].raw_data and not protos["small"].external_data
    assert {e.key: e.value for e in protos["large"].external_data} == {
        "location": "m.onnx.data",
        "offset": "0",
        "length": "1024",
    }


def test_location_is_a_plain_name_beside_the_model(tmp_path):
    model, _ = small_linear()
    write_model(model, tmp_path / "m.onnx", external_data=ExternalData(0, "weights.bin"))
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "weights.bin"]
    for bad in ("", "..", "a/b", "/tmp/x", "c:x"):
        with pytest.raises(InvalidOptionError, match="plain file name"):
            ExternalData(location=bad)
    with pytest.raises(InvalidOptionError, match="negative"):
        ExternalData(-1)
    with pytest.raises(InvalidOptionError, match="model file itself"):
        write_model(model, tmp_path / "m.onnx", external_data=ExternalData(0, "m.onnx"))


def test_when_weights_leave_the_model_file():
    large, custom = PROTOBUF_LIMIT, ExternalData(7)
    assert resolve_external_data(None, large - 1, has_path=True) is None
    assert resolve_external_data(None, large, has_path=True) == ExternalData()
    assert resolve_external_data(True, 10, has_path=True) == ExternalData()
    assert resolve_external_data(custom, 10, has_path=True) is custom
    assert resolve_external_data(False, 10, has_path=True) is None
    assert resolve_external_data(None, 10, has_path=False) is None
    with pytest.raises(SerializeError, match=r"2\.00 GiB.*external_data=False"):
        resolve_external_data(False, large, has_path=True)
    with pytest.raises(SerializeError, match="give f as a path"):
        resolve_external_data(None, large, has_path=False)
    for option in (True, custom):
        with pytest.raises(SerializeError, match="needs a path"):
            resolve_external_data(option, 10, has_path=False)


class Discard(io.RawIOBase):
    """Takes everything, keeps nothing; `position` as a file would have."""

    position = 0

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self.position += len(data)
        return len(data)


def three_gigabytes() -> ir.Model:
    return weights_only(huge=torch.ones(1).expand(3 * 2**28), small=torch.ones(2))


def test_more_than_two_gigabytes_is_decided_before_a_byte_is_written(tmp_path):
    stream = Discard()
    with pytest.raises(SerializeError, match=r"3\.00 GiB"):
        write_model(three_gigabytes(), stream)
    assert stream.position == 0
    with pytest.raises(SerializeError, match=r"3\.00 GiB"):
        write_model(three_gigabytes(), tmp_path / "m.onnx", external_data=False)
    with pytest.raises(SerializeError, match="size_threshold"):
        write_model(three_gigabytes(), tmp_path / "m.onnx", external_data=ExternalData(2**33))
    assert os.listdir(tmp_path) == []


def test_more_than_two_gigabytes_goes_to_a_second_file(tmp_path, monkeypatch):
    streamed = []

    real = writer._stream

    def count_what_is_huge(tensor: ir.TensorProtocol, sink: writer.Sink) -> None:
        streamed.append(tensor.nbytes)
        if tensor.nbytes < 100:
            real(tensor, sink)
        else:
            sink.written += tensor.nbytes

    monkeypatch.setattr(writer, "_stream", count_what_is_huge)
    result = write_model(three_gigabytes(), tmp_path / "m.onnx")
    assert result.data_bytes == 3 * 2**30
    assert streamed == [3 * 2**30, 8]
    huge, small = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer
    assert huge.external_data[2].value == str(3 * 2**30)
    assert not small.external_data


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("make", ["contiguous", "transposed"])
@pytest.mark.parametrize("external_data", [False, True])
def test_weights_are_never_held_in_memory(tmp_path, make, external_data):
    """The growth of the peak of a fresh process while it writes 200 MB."""
    code = f"""
import torch
from tests.serialize.models import weights_only
from sardonyx.serialize.writer import write_model

def peak_kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

w = torch.ones(50, 1000, 1000)
if {make!r} == "transposed":
    w = w.transpose(0, 1)
write_model(weights_only(w=torch.ones(9, 9).t()), {str(tmp_path / "warm.onnx")!r})
model = weights_only(w=w, bias=torch.ones(3))
before = peak_kilobytes()
write_model(model, {str(tmp_path / "m.onnx")!r}, external_data={external_data})
print(peak_kilobytes() - before)
"""
    grown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(grown) < 20 * 1024
    written = sum(p.stat().st_size for p in tmp_path.glob("m.onnx*"))
    assert written > 200_000_000


def test_a_stream_gets_bounded_pieces():
    model = weights_only(w=torch.ones(2**23))
    pieces = []

    class Remote:
        def write(self, data: bytes) -> None:
            assert type(data) is bytes
            pieces.append(len(data))

    gc.collect()
    tracemalloc.start()
    write_model(model, Remote())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(pieces) > 2**25
    assert max(pieces) <= 2**20
    assert peak < 2**22
