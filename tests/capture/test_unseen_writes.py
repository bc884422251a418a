"""Memory of tensors that is written from outside of PyTorch: never silently, never for good."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import sardonyx
from sardonyx.errors import CaptureError


class Writer(torch.nn.Module):
    def __init__(self, write):
        super().__init__()
        self.array = np.zeros(4, dtype=np.float32)
        self.weight = torch.nn.Parameter(torch.zeros(4))
        self.plain = torch.zeros(4)
        self.register_buffer("buffer", torch.zeros(4))
        self.register_buffer("shared", torch.from_numpy(self.array))
        self.write = write

    def forward(self, x):
        self.write(self, x)
        return x + self.weight + self.plain + self.buffer + self.shared

    def state(self):
        return torch.cat([self.weight.detach(), self.plain, self.buffer, self.shared])


def by_pointer(m, x):
    ctypes.cast(m.buffer.data_ptr(), ctypes.POINTER(ctypes.c_float))[0] = 9.0


WRITES = {
    "buffer": lambda m, x: m.buffer.numpy().__setitem__(0, 9.0),
    "parameter": lambda m, x: m.weight.detach().numpy().__setitem__(0, 9.0),
    "attribute": lambda m, x: m.plain.numpy().__setitem__(0, 9.0),
    "asarray": lambda m, x: np.asarray(m.buffer).__setitem__(0, 9.0),
    "shared array": lambda m, x: m.array.__setitem__(0, 9.0),
    "pointer": by_pointer,
    "storage": lambda m, x: m.buffer.untyped_storage().fill_(1),
    "input": lambda m, x: x.numpy().__setitem__(0, 9.0),
    "before PyTorch writes": lambda m, x: (
        m.buffer.numpy().__setitem__(0, 9.0),
        m.buffer.fill_(1.0),
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_trace_refuses_them_and_puts_the_memory_back(write):
    model, x = Writer(write), torch.zeros(3, 4)
    with pytest.raises(CaptureError, match="written from outside of PyTorch") as refusal:
        sardonyx.export(model, (x,), capture="trace")
    assert "test_unseen_writes.py:" in str(refusal.value) or "an array of NumPy" in str(
        refusal.value
    )
    assert not model.state().any()
    assert not x.any()


@pytest.mark.parametrize("name", ["buffer", "parameter", "attribute", "asarray"])
@pytest.mark.parametrize("capture", ["export", "auto"])
def test_an_export_records_them_and_leaves_the_memory_as_it_was(name, capture):
    model, x = Writer(WRITES[name]), torch.randn(3, 4)
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    assert not model.state().any()
    torch.testing.assert_close(program(x), model(x))


def test_an_export_refuses_what_it_cannot_see():
    model, x = Writer(WRITES["shared array"]), torch.randn(3, 4)
    with pytest.raises(CaptureError, match="written from outside of PyTorch"):
        sardonyx.export(model, (x,), capture="export")
    assert not model.state().any()


def test_reading_by_numpy_beside_writes_of_pytorch_is_no_write_from_outside():
    def write(m, x):
        m.buffer.numpy().sum()
        m.buffer.add_(2.0)
        m.buffer.numpy().max()

    model, x = Writer(write), torch.randn(3, 4)
    program = sardonyx.export(model, (x,), capture="trace")
    assert not model.state().any()
    torch.testing.assert_close(program(x), model(x))
