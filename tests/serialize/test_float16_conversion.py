"""ONNX Runtime's converter to float16 takes our files: by their names and types it places casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn
from torch.nn import functional as F

import sardonyx


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3)
        )
        self.floor = nn.Parameter(torch.zeros(4))
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = F.interpolate(self.features(x), scale_factor=2.0, mode="bilinear")
        pooled = torch.maximum(maps.mean((2, 3)), self.floor)  # Max stays in float32
        return self.head(pooled), pooled.cumsum(1).topk(2).values


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        heads = x.unflatten(-1, (2, 8)).transpose(1, 2)
        bias = torch.where(mask[:, None, None] == 0, torch.finfo(x.dtype).min, 0.0)
        attended = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias)
        x = x + attended.transpose(1, 2).flatten(2)
        return self.layer(x, src_key_padding_mask=mask == 0)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.gru(self.lstm(x)[0])


class Branching(nn.Module):
    """Both branches and the loop have weights and constants of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            y = self.first(x) * 2.5 + torch.full([4], 0.25)
        else:
            y = self.second(x) * 2.5 - torch.full([4], 0.25)
        for _ in range(int((x > 0).sum())):
            if bool(y.mean() > 0):
                y = torch.tanh(self.first(y)) + 0.25
            else:
                y = torch.tanh(self.second(y)) * 0.75
        return y + x


class Similarities(nn.Module):
    """Several Max and Min, which stay in float32, of one number and of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.bound = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bounded = torch.maximum(x, self.bound) + torch.minimum(x * 2, self.bound)
        alike = F.cosine_similarity(x, bounded) + F.cosine_similarity(x + 2, x * x)
        return bounded.mean(1) + alike


IDS = (torch.arange(12).reshape(2, 6), torch.tensor([[1] * 6, [1, 1, 1, 1, 0, 0]]))


@pytest.mark.parametrize("opset", [17, 25])
@pytest.mark.parametrize(
    ("kind", "args", "capture"),
    [
        (Convolutions, (torch.rand(2, 3, 16, 16),), "export"),
        (Masked, IDS, "export"),
        (Recurrent, (torch.rand(2, 5, 4),), "export"),
        (Similarities, (torch.rand(2, 4),), "export"),
        (Branching, (torch.rand(2, 4),), "script"),
        (Branching, (-torch.rand(2, 4),), "script"),
    ],
    ids=[
        "convolutions",
        "attention mask",
        "recurrent",
        "shared constants",
        "loop and branch",
        "other branch",
    ],
)
def test_converted_files_run(
    kind: type[nn.Module],
    args: tuple[torch.Tensor, ...],
    capture: str,
    opset: int,
) -> None:
    torch.manual_seed(0)
    model = kind().eval()
    program = sardonyx.export(model, args, capture=capture, opset_version=opset)
    expected = model(*args)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}
    for keep_io_types in (False, True):
        half = convert_float_to_float16(program.model_proto, keep_io_types=keep_io_types)
        session = onnxruntime.InferenceSession(half.SerializeToString())
        given = zip(session.get_inputs(), args, strict=True)
        results = session.run(None, {i.name: x.numpy().astype(kinds[i.type]) for i, x in given})
        for result, value in zip(results, wanted, strict=True):
            assert result.dtype == (np.float32 if keep_io_types else np.float16)
            np.testing.assert_allclose(result, value.detach().numpy(), rtol=2e-2, atol=2e-2)
