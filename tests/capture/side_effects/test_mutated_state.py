"""Buffers, parameters and inputs that the model writes."""

import contextlib
import copy

import onnxruntime
import pytest
import torch

import sardonyx
from tests.capture.agreement import CAPTURES
from tests.lower.ops.harness import compare

TRAINING = sardonyx.TrainingMode.TRAINING
both_captures = pytest.mark.parametrize("capture", CAPTURES)


def x():
    return torch.arange(1.0, 13.0).reshape(3, 4)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.count += 1
        self.total.add_(x.sum(0))
        return x * self.count + self.total


class Cache(torch.nn.Module):
    """A KV cache written at a position that is an input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(3, 5, 4))

    def forward(self, x, position):
        self.cache[:, position] = x[:, None]
        return self.cache.sum(1), self.cache[:, 0]


class FixedSlot(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.ones(3, 5, 4))

    def forward(self, x):
        self.cache[:, 2] = x
        self.cache[:, 3:].mul_(2)
        return self.cache * 2


class OwnPosition(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("position", torch.tensor([1]))
        self.register_buffer("cache", torch.zeros(5, 4))

    def forward(self, x):
        self.cache.index_copy_(0, self.position, x[:1])
        self.position += 1
        self.cache.index_copy_(0, self.position, x[1:2])
        return self.cache * 1


class Overlapping(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(3, 4))
        self.register_buffer("row", self.cache[1])
        self.register_buffer("column", self.cache.t()[2])

    def forward(self, x):
        self.cache.add_(x)
        self.row.mul_(2)
        self.column[0] = 100
        return self.cache + 0, self.row * 2, self.column + 1


class Entangled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        memory = torch.zeros(6)
        self.register_buffer("left", memory[:4])
        self.register_buffer("right", memory[2:])

    def forward(self, x):
        self.left.add_(1)
        return x + self.right


class PlainAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = torch.ones(3, 4)

    def forward(self, x):
        self.memory += x
        return self.memory * 2


class WritesParameter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(max=1.5)
            self.weight.data[0] = 0.5
        return x * self.weight


class Reshaped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("row", torch.arange(4.0))

    def forward(self, x):
        self.row.unsqueeze_(0)
        return x + self.row.t().sum()


class WritesInputs(torch.nn.Module):
    def forward(self, x, y):
        x += 1
        y[0] = x.sum()
        return x * y[1]


class Swap(torch.nn.Module):
    """A buffer that is assigned, not written: an attribute of the module, no state of the file."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x):
        before = self.last.clone()
        self.last.copy_(x)
        return before - x


def normalized(layer, shape):
    def make():
        torch.manual_seed(0)
        return torch.nn.Sequential(layer())

    return make, (torch.randn(shape, generator=torch.Generator().manual_seed(1)),)


CASES = {
    "counter": (Counter, (x(),), ["count.out", "total.out"]),
    "cache": (FixedSlot, (x(),), ["cache.out"]),
    "own position": (OwnPosition, (x(),), ["position.out", "cache.out"]),
    "plain attribute": (PlainAttribute, (x(),), ["memory.out"]),
    "parameter": (WritesParameter, (x(),), ["weight.out"]),
    "inputs": (WritesInputs, (x(), x() * 2), ["x.out", "y.out"]),
    "read before it is written": (Swap, (x(),), ["last.out"]),
}


def state_after(model, inputs):
    found = {f"{name}.out": t for name, t in model.state_dict().items()}
    found |= {f"{name}.out": t for name, t in vars(model).items() if isinstance(t, torch.Tensor)}
    return found | dict(zip(("x.out", "y.out"), inputs, strict=False))


def run_session(program, inputs):
    tensors = program.signature.flatten(tuple(inputs), {})
    return program._run(tensors)


@both_captures
@pytest.mark.parametrize("case", CASES)
def test_written_state_is_an_output(case, capture):
    make, inputs, names = CASES[case]
    program = sardonyx.export(make(), inputs, capture=capture, state_outputs=True)
    assert list(program.signature.state_outputs) == names
    assert program.notes == ()
    for given in (inputs, tuple(i * 3 - 1 for i in inputs)):
        eager, copies = make(), [i.clone() for i in given]
        with torch.no_grad():
            expected = eager(*copies)
        compare(expected, program(*given), case)
        outputs = run_session(program, given)
        after = state_after(eager, copies)
        for name in names:
            compare(after[name], outputs[name], f"{case}: {name}")


@both_captures
@pytest.mark.parametrize("case", CASES)
def test_what_is_not_kept_is_said(case, capture):
    make, inputs, names = CASES[case]
    program = sardonyx.export(make(), inputs, capture=capture)
    (note,) = program.notes
    for name in names:
        kind = "input" if case == "inputs" else "buffer"
        assert f"{kind} {name.removesuffix('.out')}" in note
    assert "does not keep them from run to run" in note and "option state_outputs" in note
    assert program.signature.state_outputs == ()
    with torch.no_grad():
        compare(make()(*(i.clone() for i in inputs)), program(*inputs), case)


@both_captures
@pytest.mark.parametrize("case", CASES)
def test_export_changes_nothing(case, capture):
    make, inputs, _ = CASES[case]
    model = make()
    state = copy.deepcopy(state_after(model, ()))
    addresses = {k: v.data_ptr() for k, v in state_after(model, ()).items()}
    copies = [i.clone() for i in inputs]
    sardonyx.export(model, tuple(copies), capture=capture, state_outputs=True)
    for name, tensor in state_after(model, ()).items():
        assert torch.equal(tensor, state[name]), name
        assert tensor.data_ptr() == addresses[name], name
    assert all(torch.equal(a, b) for a, b in zip(copies, inputs, strict=True))


@both_captures
def test_the_state_goes_round(capture):
    """The extra outputs, fed back as the initial values, continue as the model does."""
    model = Counter()
    program = sardonyx.export(
        model,
        (x(),),
        capture=capture,
        state_outputs=True,
        keep_initializers_as_inputs=True,
        optimize=False,
    )
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    state = {"count": model.count.numpy().copy(), "total": model.total.numpy().copy()}
    _, *rest = [o.name for o in session.get_outputs()]
    for step in range(3):
        given = x() + step
        results = session.run(None, {session.get_inputs()[0].name: given.numpy(), **state})
        compare(model(given), torch.from_numpy(results[0]), f"step {step}")
        state = {n.removesuffix(".out"): r for n, r in zip(rest, results[1:], strict=True)}
    assert int(state["count"]) == 6


@both_captures
def test_a_position_that_is_an_input(capture):
    position = torch.tensor([2])
    program = sardonyx.export(Cache(), (x(), position), capture=capture, state_outputs=True)
    for place in (2, 0, 4):
        eager, given = Cache(), torch.tensor([place])
        compare(eager(x(), given), program(x(), given), f"position {place}")
        compare(eager.cache, run_session(program, (x(), given))["cache.out"], f"position {place}")


def test_a_buffer_as_a_position():
    class Positioned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("position", torch.tensor(1))
            self.register_buffer("cache", torch.zeros(5, 4))

        def forward(self, x):
            self.cache[self.position] = x[0]
            self.position += 1
            self.cache[self.position] = x[1]
            self.cache[:, self.position] = 5
            return self.cache * 2, self.cache[: self.position]

    program = sardonyx.export(Positioned(), (x(),), capture="trace", state_outputs=True)
    assert program.signature.state_outputs == ("position.out", "cache.out")
    compare(Positioned()(x()), program(x()), "position")


NORMS = {
    "BatchNorm1d": (lambda: torch.nn.BatchNorm1d(4), (5, 4)),
    "BatchNorm2d": (lambda: torch.nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "BatchNorm1d momentum": (lambda: torch.nn.BatchNorm1d(4, momentum=0.7, affine=False), (5, 4)),
    "InstanceNorm1d": (
        lambda: torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        (2, 3, 6),
    ),
}


@both_captures
@pytest.mark.parametrize("norm", NORMS)
def test_running_statistics(norm, capture):
    make, inputs = normalized(*NORMS[norm])
    model = make()
    state = copy.deepcopy(model.state_dict())
    program = sardonyx.export(model, inputs, capture=capture, training=TRAINING, state_outputs=True)
    assert all(torch.equal(t, state[n]) for n, t in model.state_dict().items())
    names = ["0.running_mean.out", "0.running_var.out"]
    if norm.startswith("BatchNorm"):
        names.append("0.num_batches_tracked.out")
    assert sorted(program.signature.state_outputs) == sorted(names)
    given = inputs[0] * 2 + 1
    eager = make().train()
    compare(eager(given), program(given), norm)
    outputs = run_session(program, (given,))
    for name, tensor in eager.state_dict().items():
        if f"{name}.out" in names:
            compare(tensor, outputs[f"{name}.out"], name)


@both_captures
def test_spectral_norm(capture):
    def make():
        torch.manual_seed(0)
        return torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3))

    program = sardonyx.export(
        make(), (x(),), capture=capture, training=TRAINING, state_outputs=True
    )
    assert program.signature.state_outputs == ("weight_u.out", "weight_v.out")
    eager = make().train()
    compare(eager(x()), program(x()), "spectral norm")
    outputs = run_session(program, (x(),))
    compare(eager.weight_u, outputs["weight_u.out"], "weight_u")


@both_captures
def test_evaluation_writes_nothing(capture):
    make, inputs = normalized(*NORMS["BatchNorm1d"])
    program = sardonyx.export(make(), inputs, capture=capture, state_outputs=True)
    assert program.signature.state_outputs == () and program.notes == ()


@both_captures
def test_a_shape_changed_in_place_is_reported(capture):
    program = sardonyx.export(Reshaped(), (x(),), capture=capture)
    assert "buffer row" in program.notes[0]

    def transposed(x):
        return x.t_() * 2

    program = sardonyx.export(transposed, (x(),), capture=capture, state_outputs=True)
    assert program.signature.state_outputs == ("x.out",)
    compare(x().t() * 2, program(x()), "t_")


@both_captures
@pytest.mark.parametrize("model", [Entangled, Overlapping])
def test_writes_to_overlapping_buffers_are_refused(model, capture):
    with pytest.raises(sardonyx.CaptureError, match="parts of its memory belong to other"):
        sardonyx.export(model(), (x(),), capture=capture)


def test_a_failed_trace_restores_the_state():
    class Fails(Counter):
        def forward(self, x):
            super().forward(x)
            raise ValueError("no")

    model = Fails()
    with pytest.raises(sardonyx.CaptureError, match="no"):
        sardonyx.export(model, (x(),), capture="trace")
    assert int(model.count) == 3 and not model.total.any()


@both_captures
def test_a_write_inside_a_function_of_torch_changes_nothing(capture):
    model = torch.nn.Embedding(5, 3, max_norm=0.5)
    weight = model.weight.detach().clone()
    with contextlib.suppress(sardonyx.UnsupportedOperatorError):
        sardonyx.export(model, (torch.tensor([1, 2]),), capture=capture)
    assert torch.equal(model.weight, weight)
