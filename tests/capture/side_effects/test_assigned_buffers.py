"""Buffers that forward assigns, by every capture: told, and returned on demand."""

from __future__ import annotations

import copy

import onnxruntime
import pytest
import torch

import sardonyx

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export", "auto", "script"])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.arange(4.0))
        self.register_buffer("other", torch.ones(4))


class Sum(Model):
    def forward(self, x):
        self.h = self.h + x.sum(0)
        return x * self.h


class Before(Model):
    def forward(self, x):
        before = self.h
        self.h = before * 2 + x.sum(0)
        return before, self.h


class Swapped(Model):
    def forward(self, x):
        h = self.h
        self.h = self.other
        self.other = h
        return x + self.h


class Rolled(Model):
    def forward(self, x):
        self.h = torch.roll(self.h, 1)
        self.h[0] = x.sum()
        self.other.add_(1)
        return x + self.h


class Inside(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Sum()

    def forward(self, x):
        return self.inner(x) + self.inner.h


MODELS = {kind.__name__: kind for kind in (Sum, Before, Swapped, Rolled, Inside)}


@CAPTURES
@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_returned_on_demand(kind, capture):
    model = kind()
    before = copy.deepcopy(model.state_dict())
    given = torch.jit.script(model) if capture == "script" else model
    program = sardonyx.export(
        given,
        (torch.randn(3, 4),),
        capture=capture,
        dynamic_axes={"x": {0: "n"}},
        state_outputs=True,
    )
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    for n in (1, 3, 5):
        x, eager = torch.randn(n, 4), kind()
        expected = eager(x)
        expected = [*expected] if isinstance(expected, tuple) else [expected]
        results = session.run(None, {"x": x.numpy()})
        for got, value in zip(results, expected, strict=False):
            torch.testing.assert_close(torch.from_numpy(got), value)
        kept = dict(zip(names[len(expected) :], results[len(expected) :], strict=True))
        for name, value in eager.state_dict().items():
            if not torch.equal(value, before[name]):
                torch.testing.assert_close(torch.from_numpy(kept.pop(f"{name}.out")), value)
        assert not kept


@CAPTURES
def test_told(capture):
    given = torch.jit.script(Sum()) if capture == "script" else Sum()
    program = sardonyx.export(given, (torch.randn(3, 4),), capture=capture)
    assert any("buffer h" in note and "does not keep" in note for note in program.notes)


class Grows(Model):
    def forward(self, x):
        self.h = torch.cat([self.h, x[0]])
        return self.h.sum()


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_another_shape_is_told(capture):
    model = Grows()
    program = sardonyx.export(model, (torch.randn(3, 4),), capture=capture)
    assert any("buffer h" in note and "another shape" in note for note in program.notes)
    assert model.h.shape == (4,)
