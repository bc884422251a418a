"""Both captures, and the automatic choice between them, give models that compute the same."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import sardonyx
from sardonyx.errors import CaptureError, DynamicDimError

r = torch.randn


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(8, 24)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x, mask=None):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + h.transpose(1, 2).reshape(b, t, d)


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        h = F.interpolate(h, size=x.shape[2:], mode="bilinear", align_corners=False)
        return {"map": h, "vector": F.adaptive_avg_pool2d(h, 1).flatten(1)}


class Windows(torch.nn.Module):
    """Pads to a multiple, splits into windows, and puts them together again."""

    def forward(self, x):
        b, h, c = x.shape
        padded = F.pad(x, (0, 0, 0, (4 - h % 4) % 4))
        windows = padded.view(b, -1, 4, c).mean(2, keepdim=True)
        return (padded.view(b, -1, 4, c) - windows).reshape(b, -1, c)[:, :h]


MODELS = {
    "attention": (Attention, (r(2, 5, 8),), {"x": [0, 1]}, (r(3, 7, 8),)),
    "convolutions": (Convolutions, (r(2, 3, 8, 10),), {"x": [0, 2, 3]}, (r(1, 3, 13, 9),)),
    "windows": (Windows, (r(2, 6, 3),), {"x": [0, 1]}, (r(3, 9, 3),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_captures_agree(name):
    make, example, axes, other = MODELS[name]
    model = make().eval()
    programs = [
        sardonyx.export(model, example, capture=capture, dynamic_axes=axes)
        for capture in ("trace", "export", "auto")
    ]
    for inputs in (example, other):
        with torch.no_grad():
            expected = model(*inputs)
        for program in programs:
            torch.testing.assert_close(program(*inputs), expected, rtol=1e-4, atol=1e-5)
    described = [
        [(v.name, str(v.shape)) for v in (*p.model.graph.inputs, *p.model.graph.outputs)]
        for p in programs
    ]
    assert described[0] == described[1] == described[2]
    assert [set(p.model.graph.initializers) for p in programs[1:]] == [
        set(programs[0].model.graph.initializers)
    ] * 2


def test_auto_takes_the_capture_that_can():
    assert sardonyx.export(lambda x: x + 1, (r(2),)).notes == ()


def reads_a_value(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def test_auto_refuses_what_tracing_would_bake():
    def with_options(x, **options):
        return reads_a_value(x)

    with pytest.raises(CaptureError) as caught:
        sardonyx.export(with_options, (torch.ones(3),))
    message = str(caught.value)
    assert "cannot be recorded faithfully" in message
    assert "a tensor decides a Python branch (True) at" in message
    assert "if x.sum() > 0:" in message
    program = sardonyx.export(reads_a_value, (torch.ones(3),), capture="trace")
    assert any("if x.sum() > 0:" in note for note in program.notes)


def test_auto_refuses_an_index_that_tracing_bakes_in_silence():
    def model(x, n):
        for _ in range(n):
            x = x * 2
        return x

    with pytest.raises(CaptureError, match=r"a tensor becomes a Python index \(3\) at"):
        sardonyx.export(model, (r(2), torch.tensor(3)))


def test_auto_does_not_hide_a_fixed_dim():
    with pytest.raises(DynamicDimError, match="the model fixes it to 4"):
        sardonyx.export(lambda x: x.view(4, -1), (r(4, 2),), dynamic_axes={"x": [0]})
