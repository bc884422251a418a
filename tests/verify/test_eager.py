import contextlib

import torch
from torch import nn

from sardonyx.options import TrainingMode
from sardonyx.verify.eager import EagerModel


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3))
        self.register_buffer("scale", torch.ones(2).to(torch.float8_e4m3fn))
        self.register_buffer("hidden", torch.tensor([float("nan"), 1.0]))
        self.calls = 0

    def forward(self, x):
        x.mul_(2)
        self.count += 1
        self.last = x.sum(0)
        self.calls += 1
        self.hidden.data.fill_(5)
        self.seen = x
        return self.dropout(self.norm(x)), self.count


def test_running_the_model_leaves_no_trace():
    torch.manual_seed(0)
    model = Stateful().eval()
    model.norm.train()
    x = torch.randn(4, 3)
    x_before = x.clone()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    buffers = dict(model.named_buffers())
    rng = torch.get_rng_state()

    result = EagerModel(model, (x,), training=TrainingMode.TRAINING).run((x,), {})

    assert torch.equal(x, x_before)
    assert torch.equal(torch.get_rng_state(), rng)
    assert [m.training for m in (model, model.norm, model.dropout)] == [False, True, False]
    for name, value in model.state_dict().items():
        assert torch.equal(value.float().nan_to_num(-1), before[name].float().nan_to_num(-1)), name
    assert all(value is buffers[name] for name, value in model.named_buffers())
    assert model.calls == 0
    assert not hasattr(model, "seen")
    # The result is the model's, not its restored state's.
    assert result.output[1] == 1
    assert result.buffers["count"] == 1
    assert torch.equal(result.buffers["last"], x_before.mul(2).sum(0))
    assert (result.output[0] == 0).any()


def test_the_mode_is_the_one_of_the_export():
    model = nn.Sequential(nn.Dropout(0.9)).train()
    x = torch.ones(100)
    assert torch.equal(EagerModel(model, (x,), training=TrainingMode.EVAL).run((x,), {}).output, x)
    assert not torch.equal(
        EagerModel(model, (x,), training=TrainingMode.PRESERVE).run((x,), {}).output, x
    )


def test_a_model_that_raises_is_restored_too():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            raise ValueError("no")

    model = Failing()
    with contextlib.suppress(ValueError):
        EagerModel(model, ()).run((torch.ones(1),), {})
    assert model.count == 0


def test_tensors_that_are_no_buffers_are_restored_too():
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))
            self.plain = torch.zeros(2)
            self.listed = [torch.zeros(2)]
            self.cache = {}

        def forward(self, x):
            self.weight.add_(x)
            self.plain += x
            self.listed[0].mul_(2).add_(x)
            self.listed.append(x)
            self.cache["x"] = x
            return self.weight + self.plain + self.listed[0]

    model = Writing()
    x = torch.ones(2)
    result = EagerModel(model, (x,)).run((x,), {})
    assert torch.equal(result.output, 3 * x)
    assert len(model.listed) == 1
    assert model.cache == {}
    for tensor in (model.weight, model.plain, model.listed[0]):
        assert not tensor.any()


def test_plain_functions_and_script_modules_run():
    x = torch.ones(2)
    assert EagerModel(torch.sin, (x,)).run((x,), {}).output.equal(x.sin())
    scripted = torch.jit.script(nn.BatchNorm1d(2).train())
    mean = scripted.running_mean.clone()
    EagerModel(scripted, (x,), training=TrainingMode.TRAINING).run((torch.randn(4, 2),), {})
    assert torch.equal(scripted.running_mean, mean)


def test_a_model_with_torch_cond_runs():
    class Conditional(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 3, (x,))

    x = torch.ones(2)
    assert torch.equal(EagerModel(Conditional(), (x,)).run((x,), {}).output, 2 * x)
