"""Memory of tensors that is written outside of PyTorch: never silently, never for good."""

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


CAPTURES = pytest.mark.parametrize("capture", ["trace", "export", "auto"])
UNSEEN = {
    "shared array": r"made of a NumPy array is written outside of PyTorch",
    "pointer": r"written outside of PyTorch[\s\S]*m\.buffer\.data_ptr",
    "storage": r"m\.buffer\.untyped_storage",
}


@CAPTURES
@pytest.mark.parametrize("name", UNSEEN)
def test_a_write_that_nothing_sees_is_refused_and_undone(name, capture):
    model, x = Writer(WRITES[name]), torch.zeros(3, 4)
    with pytest.raises(CaptureError, match=UNSEEN[name]):
        sardonyx.export(model, (x,), capture=capture)
    assert not model.state().any()
    assert not x.any()


@CAPTURES
@pytest.mark.parametrize("name", sorted(WRITES.keys() - UNSEEN.keys()))
def test_a_write_by_numpy_is_recorded_and_the_memory_left_as_it_was(name, capture):
    model, x = Writer(WRITES[name]), torch.randn(3, 4)
    before = x.clone()
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    assert not model.state().any()
    assert torch.equal(x, before)
    for given in (x, torch.randn(3, 4)):
        expected = Writer(WRITES[name])(given.clone())
        torch.testing.assert_close(program(given), expected)


def test_reading_by_numpy_beside_writes_of_pytorch_is_no_write_from_outside():
    def write(m, x):
        m.buffer.numpy().sum()
        m.buffer.add_(2.0)
        m.buffer.numpy().max()

    model, x = Writer(write), torch.randn(3, 4)
    program = sardonyx.export(model, (x,), capture="trace")
    assert not model.state().any()
    torch.testing.assert_close(program(x), model(x))
