"""TorchTensor: every dtype, every layout, bytes read where they lie."""

from __future__ import annotations

import io
import math

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import sardonyx
from sardonyx.aten.storage import storage_key
from sardonyx.errors import SerializeError, UnsupportedDtypeError
from sardonyx.lower import weights
from sardonyx.lower.values import TORCH_TO_ONNX
from sardonyx.lower.weights import JoinedTensor, TorchTensor

ONE_BYTE_PER_ELEMENT = {torch.int4, torch.uint4}


def random_bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    count = math.prod(shape) * dtype.itemsize
    data = torch.randint(
        0, 16 if dtype in ONE_BYTE_PER_ELEMENT else 256, (count,), generator=generator
    )
    return data.to(torch.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", TORCH_TO_ONNX, ids=str)
def test_bytes_and_values_of_every_dtype(dtype):
    tensor = random_bits(dtype, 3, 5)
    lazy = TorchTensor(tensor, "w")
    data = lazy.tobytes()
    assert lazy.dtype == TORCH_TO_ONNX[dtype]
    assert len(data) == lazy.nbytes
    if dtype in ONE_BYTE_PER_ELEMENT:
        bits = [*tensor.view(torch.uint8).reshape(-1).tolist(), 0]
        assert data == bytes(
            low | high << 4 for low, high in zip(bits[::2], bits[1::2], strict=True)
        )
    else:
        assert data == bytes(tensor.view(torch.uint8).reshape(-1).tolist())
    # onnx-ir's own tensor over the same values encodes to the same bytes.
    assert ir.Tensor(lazy.numpy(), dtype=lazy.dtype).tobytes() == data
    assert lazy.numpy().shape == tuple(lazy.shape)


def test_float4_pairs_are_unpacked_low_nibble_first():
    packed = torch.tensor([[0x21, 0x7F]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    lazy = TorchTensor(packed)
    assert lazy.shape == (1, 4)
    assert lazy.numpy().dtype == ml_dtypes.float4_e2m1fn
    assert lazy.numpy().astype(np.float32).tolist() == [[0.5, 1.0, -6.0, 6.0]]
    with pytest.raises(UnsupportedDtypeError, match="two values"):
        TorchTensor(torch.empty((), dtype=torch.uint8).view(torch.float4_e2m1fn_x2))


def test_contiguous_memory_is_not_copied():
    tensor = torch.nn.Parameter(torch.randn(4, 4))
    [block] = TorchTensor(tensor).blocks()
    assert np.frombuffer(block, np.float32).ctypes.data == tensor.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_joined_tensors_are_written_one_by_one(dtype, monkeypatch):
    first, second = torch.randn(2, 3, dtype=dtype), torch.randn(3, 4, dtype=dtype).t()[:, :3]
    joined = JoinedTensor([first, second], (2, 3, 3), "w")
    assert joined.shape == (2, 3, 3)
    whole = torch.cat([first, second]).view(2, 3, 3)
    assert joined.numpy().astype(np.float32).tolist() == whole.float().tolist()
    monkeypatch.setattr(torch, "cat", lambda *_: pytest.fail("made as a whole"))
    file = io.BytesIO()
    joined.tofile(file)
    assert file.getvalue() == TorchTensor(whole).tobytes()


@pytest.mark.parametrize("limit", [8, 100, 2**20])
@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.t(),
        lambda t: t[::2, 1:],
        lambda t: t.reshape(2, 3, 4, 1).permute(2, 3, 0, 1),
        lambda t: t[:1].expand(5, 4),
        lambda t: t.to(torch.bfloat16).t(),
        lambda t: t.to(torch.float8_e4m3fn).t(),
        lambda t: torch.complex(t, t + 1).t().conj(),
        lambda t: torch.complex(t, t + 1).conj().imag,
        lambda t: t[0, 0],
        lambda t: t[:0].t(),
    ],
)
def test_blocks_of_what_cannot_be_read_in_place(make, limit, monkeypatch):
    monkeypatch.setattr(weights, "COPY_LIMIT", limit)
    tensor = make(torch.arange(24.0).reshape(6, 4))
    lazy = TorchTensor(tensor)
    expected = tensor.resolve_conj().resolve_neg().contiguous()
    assert lazy.tobytes() == bytes(expected.reshape(-1).view(torch.uint8).tolist())
    assert lazy.tobytes() == ir.Tensor(lazy.numpy(), dtype=lazy.dtype).tobytes()
    storage = tensor.untyped_storage()
    own_memory = range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
    for block in lazy.blocks():
        in_place = np.frombuffer(block, np.uint8).ctypes.data in own_memory
        assert in_place or len(block) <= max(limit, tensor.element_size())
    sink = io.BytesIO()
    lazy.tofile(sink)
    assert sink.getvalue() == lazy.tobytes()


def no_memory_tensors():
    with FakeTensorMode():
        fake = torch.empty(2, 3)
    freed = torch.nn.Parameter(torch.ones(2, 3))
    freed.data.untyped_storage().resize_(0)
    return {"meta": torch.empty(2, 3, device="meta"), "fake": fake, "freed": freed}


@pytest.mark.parametrize("kind", ["meta", "fake", "freed"])
def test_tensors_without_values_have_a_type_and_refuse_to_be_written(kind):
    lazy = TorchTensor(no_memory_tensors()[kind], "encoder.weight")
    assert (lazy.dtype, lazy.shape, lazy.nbytes) == (ir.DataType.FLOAT, (2, 3), 24)
    assert not lazy.has_data
    for read in (lazy.numpy, lazy.tobytes):
        with pytest.raises(SerializeError, match=r"weights are missing: encoder\.weight"):
            read()


def test_what_onnx_does_not_have_is_refused():
    with pytest.raises(UnsupportedDtypeError, match=r"torch\.bits8 of w"):
        TorchTensor(torch.empty(2, dtype=torch.bits8), "w")
    with pytest.raises(UnsupportedDtypeError, match="to_dense"):
        TorchTensor(torch.eye(2).to_sparse())


def test_storage_key_is_equal_for_tied_weights_only():
    weight = torch.nn.Parameter(torch.randn(4, 4))
    assert storage_key(weight) == storage_key(weight.data)
    assert storage_key(weight) == storage_key(weight.detach().view(4, 4))
    others = [weight.t(), weight[1:], weight[:, 1:], weight.view(16), weight.clone()]
    assert len({storage_key(tensor) for tensor in [weight, *others]}) == 6
    complex_ = torch.ones(2, dtype=torch.complex64)
    assert storage_key(complex_) != storage_key(complex_.conj())
    first, second = torch.empty(2, device="meta"), torch.empty(2, device="meta")
    assert storage_key(first) == storage_key(first)
    assert storage_key(first) != storage_key(second)


def test_memory_that_was_read_can_be_resized(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).eval()
    x = torch.randn(2, 4)
    sardonyx.export(model, (x,), tmp_path / "m.onnx", verify=True)
    for tensor in (*model.parameters(), *model.buffers(), x):
        assert tensor.untyped_storage().resizable()
