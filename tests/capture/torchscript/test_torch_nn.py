"""Layers of torch.nn, and what models return, in scripts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional

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


def attends_what_grows(x: torch.Tensor, n: int) -> torch.Tensor:
    grown = x
    for _ in range(n):
        attended = functional.scaled_dot_product_attention(x, grown, grown)
        grown = torch.cat([grown, attended], 2)
    return grown


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_attention_over_what_a_loop_grows(turns: int) -> None:
    x = torch.randn(2, 2, 3, 4)
    program = sardonyx.export(torch.jit.script(attends_what_grows), (torch.randn(2, 2, 3, 4), 2))
    torch.testing.assert_close(program(x, turns), attends_what_grows(x, turns))


class Attends(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = x[mask][None, None].expand(1, 4, -1, -1)
        few = x[mask][None, None].expand(1, 2, -1, -1)
        return functional.scaled_dot_product_attention(
            kept, few, few, is_causal=True, enable_gqa=True
        )


class Encodes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        encoded: torch.Tensor = self.layer(x[mask][None])
        return encoded


@pytest.mark.parametrize("capture", ["export", "trace", "script"])
@pytest.mark.parametrize("kind", [Attends, Encodes])
def test_attention_over_what_a_mask_keeps(kind: Any, capture: str) -> None:
    model = kind().eval()
    program = sardonyx.export(model, (torch.randn(6, 8), torch.arange(6) < 3), capture=capture)
    for count in (1, 2, 6):
        given = torch.randn(6, 8), torch.arange(6) < count
        with torch.no_grad():
            torch.testing.assert_close(program(*given), model(*given), atol=1e-5, rtol=1e-4)


class Parts(NamedTuple):
    whole: torch.Tensor
    pair: tuple[torch.Tensor, int]
    items: list[torch.Tensor]


class Named(nn.Module):
    def forward(self, x: torch.Tensor) -> Parts:
        return Parts(x + 1, (x * 2, 3), [x, x])


@pytest.mark.parametrize("scripted", [True, False])
def test_a_named_tuple_keeps_its_names(scripted: bool) -> None:
    model = torch.jit.script(Named()) if scripted else Named()
    x = torch.randn(2)
    program = sardonyx.export(model, (x,), capture="script", verify=True)
    result = program(x)
    assert result._fields == Parts._fields
    assert torch.equal(result.pair[0], x * 2) and result.pair[1] == 3
    names = [output.name for output in program.model_proto.graph.output]
    assert names == ["whole", "pair.0", "pair.1", "items.0", "items.1"]
