from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

torch.manual_seed(0)
TABLE = torch.randn(7, 4) * 3


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0])
def test_rows_are_shortened(norm_type):
    def read(indices, table):
        rows = F.embedding(indices, table, max_norm=2.0, norm_type=norm_type)
        return rows, table

    check(
        read,
        torch.tensor([[0, 2, 2], [5, 6, 0]]),
        TABLE,
        dynamic={0: (0,)},
        others=[(torch.tensor([[1, 1, 3]]), TABLE)],
    )


def test_bags():
    bags = torch.tensor([[0, 2, 2], [5, 6, 0]])
    check(lambda i, t: F.embedding_bag(i, t, max_norm=1.5, mode="sum"), bags, TABLE)
