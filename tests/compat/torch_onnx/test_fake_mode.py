"""enable_fake_mode: models built and exported without weights, which are given when they are
saved."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest
import torch

import sardonyx
from sardonyx import ExportOptions


class Model(torch.nn.Module):
    """Tied weights, statistics, and a buffer that no state_dict holds."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.layers = torch.nn.ModuleList(copy.deepcopy(torch.nn.Linear(16, 16)) for _ in range(2))
        self.head = torch.nn.Linear(16, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.arange(16.0) / 3, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) * self.scale
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(self.norm(x))


@pytest.fixture
def real() -> torch.nn.Module:
    torch.manual_seed(0)
    model = Model().eval()
    model.norm.running_mean.normal_()
    model.norm.running_var.uniform_(0.5, 2)
    return model


@pytest.fixture
def program() -> sardonyx.ONNXProgram:
    with sardonyx.enable_fake_mode():
        model = Model()
        ids = torch.zeros(3, dtype=torch.int64)
    return sardonyx.export(model, ids, dynamic_axes={"ids": {0: "n"}})


def save_safetensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    names = {torch.float32: "F32", torch.float16: "F16", torch.int64: "I64"}
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    data = b"".join(tensor.detach().numpy().tobytes() for tensor in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def agrees(program: sardonyx.ONNXProgram, real: torch.nn.Module) -> bool:
    ids = torch.randint(0, 50, (5,))
    return torch.allclose(program(ids), real(ids), atol=1e-5)


def test_nothing_has_memory_but_what_no_state_dict_holds() -> None:
    with sardonyx.enable_fake_mode():
        model = Model()
        large = torch.nn.Linear(1_000_000, 1_000_000)
    assert large.weight.shape == (1_000_000, 1_000_000)
    assert model.head.weight is model.embedding.weight
    assert model.norm.running_mean.untyped_storage().device.type == "meta"
    assert torch.equal(model.scale, torch.arange(16.0) / 3)
    assert torch.nn.Linear(2, 2).weight.data_ptr(), "outside everything is as before"
    model.half().to(torch.float32)
    assert model.embedding.weight.dtype is torch.float32


@pytest.mark.parametrize("external", [False, True])
def test_weights_from_a_state_dict(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path, external: bool
) -> None:
    program.save(tmp_path / "model.onnx", model_state=real.state_dict(), external_data=external)
    assert agrees(program, real)
    assert (tmp_path / "model.onnx.data").exists() == external
    model = onnx.load(tmp_path / "model.onnx")
    assert [i.name for i in model.graph.initializer].count("head.weight") == 0, "tied"


@pytest.mark.parametrize("zip_format", [True, False])
def test_weights_from_a_pt_file(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path, zip_format: bool
) -> None:
    path = tmp_path / "weights.pt"
    checkpoint = {"epoch": 3, "state_dict": real.state_dict()}
    torch.save(checkpoint, path, _use_new_zipfile_serialization=zip_format)
    for _ in range(2):  # pages are given back once they are read, and can be read again
        program.save(tmp_path / "model.onnx", model_state=path)
        assert agrees(program, real)


def test_weights_from_a_safetensors_file_that_has_tied_ones_once(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path
) -> None:
    state = {k: v for k, v in real.state_dict().items() if k != "embedding.weight"}
    save_safetensors(state, tmp_path / "model.safetensors")
    for given in (tmp_path / "model.safetensors", str(tmp_path)):
        program.save(tmp_path / "model.onnx", model_state=given)
        assert agrees(program, real)


def test_weights_from_shards(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path
) -> None:
    shards: dict[str, dict[str, torch.Tensor]] = {"a.safetensors": {}, "b.safetensors": {}}
    for index, (name, tensor) in enumerate(real.state_dict().items()):
        shards["ab"[index % 2] + ".safetensors"][name] = tensor
    for file, tensors in shards.items():
        save_safetensors(tensors, tmp_path / file)
    index_file = tmp_path / "model.safetensors.index.json"
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    index_file.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    program.save(tmp_path / "model.onnx", model_state=index_file)
    assert agrees(program, real)


def test_weights_of_another_dtype_are_cast_as_load_state_dict_does(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path
) -> None:
    half = copy.deepcopy(real).half()
    save_safetensors(half.state_dict(), tmp_path / "model.safetensors")
    program.save(tmp_path / "model.onnx", model_state=tmp_path / "model.safetensors")
    loaded = copy.deepcopy(real)
    loaded.load_state_dict(half.state_dict())
    assert agrees(program, loaded)


def test_checkpoints_loaded_inside_are_where_the_weights_come_from(
    real: torch.nn.Module, tmp_path: Path
) -> None:
    torch.save(real.state_dict(), tmp_path / "weights.pt")
    with sardonyx.enable_fake_mode() as fake_context:
        model = Model()
        model.load_state_dict(torch.load(tmp_path / "weights.pt"))
    ids = torch.zeros(3, dtype=torch.int64)
    options = ExportOptions(fake_context=fake_context, dynamic_shapes=True)
    output = sardonyx.dynamo_export(model, ids, export_options=options)
    assert output.fake_context is fake_context
    output.save(tmp_path / "model.onnx")
    assert agrees(output.program, real)
    output.save(tmp_path / "model.onnx", model_state=real.state_dict())
    assert agrees(output.program, real)


def test_states_that_do_not_fit(
    program: sardonyx.ONNXProgram, real: torch.nn.Module, tmp_path: Path
) -> None:
    def refusal(state: object) -> str:
        with pytest.raises(sardonyx.InvalidExportOptionsError) as caught:
            program.save(tmp_path / "model.onnx", model_state=state)
        assert not (tmp_path / "model.onnx").exists()
        return str(caught.value)

    state = real.state_dict()
    assert "norm.weight" in refusal({k: v for k, v in state.items() if k != "norm.weight"})
    assert "[3]" in refusal({**state, "norm.weight": torch.ones(3)})
    assert "no file" in refusal(tmp_path / "missing.safetensors")
    assert "no checkpoint" in refusal(tmp_path)
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 20)
    assert "header" in refusal(tmp_path / "broken.safetensors")
    (tmp_path / "index.json").write_text("{}")
    assert "weight_map" in refusal(tmp_path / "index.json")
    torch.save(real, tmp_path / "whole.pt")
    assert "state_dict" in refusal(tmp_path / "whole.pt")


def test_what_needs_weights_says_so(program: sardonyx.ONNXProgram, tmp_path: Path) -> None:
    with pytest.raises(sardonyx.SerializeError, match="model_state"):
        program.save(tmp_path / "model.onnx")
    with pytest.raises(sardonyx.VerificationError):
        program.verify()
    with sardonyx.enable_fake_mode():
        model = torch.nn.Linear(2, 2)
    for option in ({"capture": "trace"}, {"verify": True}):
        with pytest.raises(sardonyx.InvalidExportOptionsError, match="weights"):
            sardonyx.export(model, torch.ones(1, 2), **option)
    real = sardonyx.export(torch.nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(sardonyx.InvalidExportOptionsError, match="has its weights"):
        real.save(tmp_path / "model.onnx", model_state={})
