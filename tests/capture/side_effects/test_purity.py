"""An export leaves the model and the process as they were, whether it succeeds or fails."""

from __future__ import annotations

import builtins
import math
import random
import threading
import warnings

import numpy
import pytest
import torch
from torch import nn

import sardonyx

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
FATE = pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])


class Restless(torch.nn.Module):
    """Touches everything that a forward can touch."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.drop = torch.nn.Dropout()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.cache = None
        self.calls = []
        self.fails = False

    def forward(self, x):
        self.count += 1
        self.calls.append("forward")
        h = self.linear(self.drop(self.norm(x)))
        self.cache = h
        self.made_by_forward = h.sum()
        torch.rand(1), random.random(), numpy.random.rand()
        if self.fails:
            raise ValueError("no more")
        return h


def state_of(model):
    return {
        "modes": [m.training for m in model.modules()],
        "parameters": [
            (id(p), p.detach().clone(), p.requires_grad, p.grad) for p in model.parameters()
        ],
        "buffers": [(id(b), b.clone()) for b in model.buffers()],
        "attributes": [sorted(m.__dict__) for m in model.modules()],
        "cache": model.cache,
        "calls": list(model.calls),
        "hooks": [list(m._forward_hooks) for m in model.modules()],
    }


def process_state():
    return {
        "rng": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": numpy.random.get_state()[1].tolist(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "dtype": torch.get_default_dtype(),
        "fastpath": torch.backends.mha.get_fastpath_enabled(),
        "filters": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "exporting": torch.onnx.is_in_onnx_export(),
    }


def assert_same(before, after):
    assert before.keys() == after.keys()
    for key in before:
        flat_before, _ = torch.utils._pytree.tree_flatten(before[key])
        flat_after, _ = torch.utils._pytree.tree_flatten(after[key])
        assert len(flat_before) == len(flat_after), key
        for b, a in zip(flat_before, flat_after, strict=True):
            assert torch.equal(b, a) if isinstance(b, torch.Tensor) else b == a, key


@BOTH
@FATE
@pytest.mark.parametrize("training", list(sardonyx.TrainingMode))
def test_the_model_is_as_before(training, fails, capture):
    model = Restless()
    model.fails = fails
    model.drop.eval()
    model.linear.bias.requires_grad_(False)
    model.linear.register_forward_hook(lambda m, args, out: out * 2)
    before, process = state_of(model), process_state()
    if fails:
        with pytest.raises(sardonyx.errors.CaptureError):
            sardonyx.export(model, (torch.randn(4, 3),), capture=capture, training=training)
    else:
        x = torch.randn(4, 3)
        process = process_state()
        sardonyx.export(model, (x,), capture=capture, training=training)
    assert_same(before, state_of(model))
    if not fails:
        assert_same(process, process_state())


@BOTH
def test_the_process_is_as_before_a_failure(capture):
    model = Restless()
    model.fails = True
    x = torch.randn(4, 3)
    torch.backends.mha.set_fastpath_enabled(True)
    before = process_state()
    with pytest.raises(sardonyx.errors.CaptureError):
        sardonyx.export(model, (x,), capture=capture)
    assert_same(before, process_state())


@BOTH
@pytest.mark.parametrize(
    "mode", [torch.no_grad, torch.inference_mode, torch.enable_grad], ids=lambda m: m.__name__
)
def test_the_callers_grad_mode_does_not_matter(mode, capture):
    model = torch.nn.Sequential(
        torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3), torch.nn.TransformerEncoderLayer(3, 1, 8)
    ).eval()
    x = torch.randn(4, 3)
    expected = sardonyx.export(model, (x,), capture=capture).to_text()
    with mode():
        own = torch.randn(4, 3)
        assert sardonyx.export(model, (x,), capture=capture).to_text() == expected
        assert sardonyx.export(model, (own,), capture=capture).to_text() == expected
    wanted = x.clone().requires_grad_()
    assert sardonyx.export(model, (wanted,), capture=capture).to_text() == expected
    assert wanted.requires_grad and wanted.grad is None


@BOTH
def test_a_model_made_in_inference_mode(capture):
    with torch.inference_mode():
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).eval()
    x = torch.randn(4, 3)
    program = sardonyx.export(model, (x,), capture=capture)
    with torch.no_grad():
        torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)


@BOTH
def test_inputs_are_as_before(capture):
    x = torch.randn(4, 3)
    before = x.clone()
    sardonyx.export(lambda x: x.add_(1) * 2, (x,), capture=capture)
    assert torch.equal(x, before)


@BOTH
def test_no_warning_of_the_capture_reaches_the_user(capture):
    def model(x):
        if x.sum() > 1e9 and capture == "trace":
            return x
        return x + torch.tensor([1.0])

    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        if capture == "export":
            sardonyx.export(torch.nn.Linear(2, 2), (torch.randn(2, 2),), capture=capture)
        else:
            program = sardonyx.export(model, (torch.randn(2, 2),), capture=capture)
            assert any("decides a Python branch" in note for note in program.notes)


def test_only_the_model_prints(capfd):
    def model(x):
        print("the model was here")
        return x * float(x.max())

    sardonyx.export(model, (torch.randn(2, 4),))
    printed = capfd.readouterr()
    assert "the model was here" in printed.out
    assert printed.err == ""


@BOTH
def test_a_float_argument_is_of_the_default_dtype(capture):
    def model(x, factor):
        return x * factor, torch.ones(2) * factor

    x, factor = torch.randn(2), 1 / 3
    torch.set_default_dtype(torch.float64)
    try:
        program = sardonyx.export(model, (x, factor), capture=capture)
        expected, actual = model(x, factor), program(x, factor)
    finally:
        torch.set_default_dtype(torch.float32)
    assert program.model.graph.inputs[1].dtype.name == "DOUBLE"
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=0)


@BOTH
def test_the_same_export_twice_gives_the_same_bytes(capture, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    for name in ("a", "b"):
        sardonyx.export(
            model,
            (torch.ones(2, 3),),
            tmp_path / name,
            capture=capture,
            dynamic_axes={"input": [0]},
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_tensor_that_torch_nn_init_fills_is_as_before(capture):
    class Filled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = torch.zeros(3)

        def forward(self, x):
            return x + torch.nn.init.constant_(self.cache, 4.0)

    model = Filled()
    program = sardonyx.export(model, (torch.zeros(3),), capture=capture)
    assert model.cache.tolist() == [0, 0, 0]
    assert program(torch.zeros(3)).tolist() == [4, 4, 4]


def test_exports_of_several_threads_leave_python_and_torch_as_they_were():
    def watched():
        return builtins.max, builtins.len, math.sqrt, torch.SymInt.__sym_max__

    def export():
        for capture in ("trace", "export"):
            sardonyx.export(
                lambda x: torch.relu(x) * x.shape[0],
                (torch.randn(3),),
                capture=capture,
                dynamic_axes={"x": [0]},
            )

    before = watched()
    threads = [threading.Thread(target=export) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watched() == before


class KeepsTraining(nn.Module):
    """Its own `train()` keeps a part in training mode, as MC dropout and some adapters do."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5)

    def train(self, mode=True):
        super().train(mode)
        self.norm.train(True)
        return self

    def forward(self, x):
        return self.norm(x)


@BOTH
def test_the_mode_is_what_the_model_s_own_train_sets(capture):
    model, x = KeepsTraining().eval(), torch.randn(6, 5)
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    torch.testing.assert_close(program(x), model(x))


class InAPlainList(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(5, 5), nn.BatchNorm1d(5)]

    def forward(self, x):
        return self.parts[1](self.parts[0](x))


@BOTH
def test_a_module_that_train_does_not_reach_is_named(capture):
    model, x = InAPlainList().eval(), torch.randn(6, 5)
    with pytest.raises(sardonyx.CaptureError, match="BatchNorm1d that is not one of its modules"):
        sardonyx.export(model, (x,), capture=capture)
    assert model.parts[1].training
    model.parts[1].eval()
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    torch.testing.assert_close(program(x), model(x))


@BOTH
def test_modules_made_in_forward(capture):
    def activations(x):
        return nn.Softmax(-1)(nn.ReLU()(x)) + nn.Upsample(scale_factor=1)(x[None])[0]

    def dropped(x):
        return nn.Dropout()(x)

    x = torch.randn(2, 3)
    program = sardonyx.export(activations, (x,), capture=capture, verify=True)
    assert not program.notes
    with pytest.raises(sardonyx.CaptureError, match="not in evaluation mode") as refusal:
        sardonyx.export(dropped, (x,), capture=capture)
    assert "return nn.Dropout()(x)" in str(refusal.value)


class Merges(nn.Module):
    """As adapters do that add their weights to those of the model in eval mode."""

    def __init__(self):
        super().__init__()
        self.weight, self.delta = nn.Parameter(torch.eye(2)), nn.Parameter(torch.ones(2, 2))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            self.weight.data += -self.delta if mode else self.delta
            self.merged = not mode
        return self

    def forward(self, x):
        return x @ (self.weight if self.merged else self.weight + self.delta)


def test_a_mode_that_changes_the_weights_is_set_by_the_user():
    model, x = Merges(), torch.randn(2, 2)
    weight = model.weight.clone()
    with pytest.raises(sardonyx.CaptureError, match=r"call model\.eval\(\) before the export"):
        sardonyx.export(model, (x,))
    assert torch.equal(model.weight, weight) and model.training and not model.merged
    model.eval()
    torch.testing.assert_close(sardonyx.export(model, (x,), verify=True)(x), model(x))


class NoticesEval(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 1

    def eval(self):
        self.factor = 2
        return super().eval()

    def forward(self, x):
        return x * self.factor


@BOTH
def test_eval_of_the_model_s_own(capture):
    model, x = NoticesEval(), torch.randn(2, 2)
    assert torch.equal(sardonyx.export(model, (x,), capture=capture)(x), x * 2)
    assert model.factor == 1 and model.training


def test_models_whose_mode_cannot_be_set():
    x = torch.randn(2, 2)
    frozen = torch.jit.freeze(torch.jit.script(nn.Linear(2, 2).eval()))
    program = torch.export.export(nn.Linear(2, 2), (x,)).module()
    for model in (frozen, program):
        torch.testing.assert_close(sardonyx.export(model, (x,), verify=True)(x), model(x))


def test_a_generator_goes_on_after_a_refused_run():
    saved = []

    def numbers():
        try:
            raise IndexError
        except IndexError as error:
            saved.append(error)
        yield 1
        yield 2

    def fails(x):
        raise saved[0]

    generator = numbers()
    next(generator)
    with pytest.raises(sardonyx.CaptureError):
        sardonyx.export(fails, (torch.randn(2),))
    assert next(generator) == 2
