"""Layers of torch.nn whose own code decides by data, in scripts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sardonyx


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        self.layers = nn.TransformerDecoder(layer, 2)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        decoded: torch.Tensor = self.layers(x, memory, tgt_mask=mask)
        return decoded


@pytest.fixture(scope="module")
def exported() -> tuple[nn.Module, sardonyx.ONNXProgram]:
    torch.manual_seed(0)
    model = Decoder().eval()
    program = sardonyx.export(
        torch.jit.script(model),
        inputs(4, causal=True),
        dynamic_shapes=({1: "t"}, None, {0: "t", 1: "t"}),
    )
    return model, program


def inputs(length: int, *, causal: bool) -> tuple[torch.Tensor, ...]:
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    if not causal:
        mask = torch.randn(length, length)
    return torch.randn(2, length, 8), torch.randn(2, 5, 8), mask


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_a_decoder_that_asks_whether_its_mask_is_causal(
    exported: tuple[nn.Module, sardonyx.ONNXProgram], length: int, causal: bool
) -> None:
    model, program = exported
    given = inputs(length, causal=causal)
    with torch.no_grad():
        expected = model(*given)
    torch.testing.assert_close(program(*given), expected, atol=1e-5, rtol=1e-4)
