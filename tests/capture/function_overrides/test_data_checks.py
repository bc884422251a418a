"""Where torch.nn looks at the data of its inputs, both captures record what holds for all data."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.lower.ops.harness import check


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_mask_stays_an_input_where_the_example_is_causal(capture):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 5, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    other = torch.zeros(5, 5)
    check(model.eval(), x, causal, others=[(x, other)], captures=(capture,))


def test_variances_are_not_looked_at():
    x, y, variance = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)
    check(nn.GaussianNLLLoss(full=True), x, y, variance, others=[(y, x, variance * 0)])
