"""The shapes that the builder knows of what layers and slices give."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor

N, S = sympy.symbols("n s", integer=True, positive=True)


def given(*dims: Any) -> Tensor:
    return Tensor(ir.Value(name="x"), torch.float32, dims)


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values)


CASES: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "conv": (
        "Conv",
        [(2, 3, 9, 8), (5, 3, 3, 2)],
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        [(2, 5, 5, 8)],
    ),
    "conv dilated, grouped": (
        "Conv",
        [(2, 4, 9), (8, 2, 3)],
        {"dilations": [2], "group": 2, "pads": [0, 0]},
        [(2, 8, 5)],
    ),
    "conv of any batch": ("Conv", [(N, 3, 9), (5, 3, 3)], {"pads": [1, 1]}, [(N, 5, 9)]),
    "max pool": (
        "MaxPool",
        [(2, 3, 9, 8)],
        {"kernel_shape": [3, 2], "strides": [2, 2]},
        [(2, 3, 4, 4)],
    ),
    "max pool, places": (
        "MaxPool",
        [(2, 3, 9)],
        {"kernel_shape": [3], "pads": [1, 1]},
        [(2, 3, 9), (2, 3, 9)],
    ),
    "max pool, rounded up": (
        "MaxPool",
        [(2, 3, 10)],
        {"kernel_shape": [3], "strides": [2], "ceil_mode": 1},
        [(2, 3, 5)],
    ),
    "average pool": (
        "AveragePool",
        [(N, 3, 9)],
        {"kernel_shape": [4], "pads": [2, 1], "dilations": [2]},
        [(N, 3, 6)],
    ),
    "transposed": (
        "ConvTranspose",
        [(2, 4, 9, 5), (4, 3, 3, 4)],
        {"pads": [1, 0, 1, 1], "strides": [2, 3], "output_padding": [1, 0], "group": 2},
        [(2, 6, 18, 15)],
    ),
    "transposed, dilated": (
        "ConvTranspose",
        [(N, 4, 9), (4, 3, 3)],
        {"dilations": [3]},
        [(N, 3, 15)],
    ),
    "gemm": ("Gemm", [(2, 3), (3, 4)], {}, [(2, 4)]),
    "gemm of transposes": ("Gemm", [(3, N), (4, 3), (4,)], {"transA": 1, "transB": 1}, [(N, 4)]),
    "lstm": (
        "LSTM",
        [(7, N, 4), (2, 24, 4), (2, 24, 6)],
        {"hidden_size": 6, "direction": "bidirectional"},
        [(7, 2, N, 6), (2, N, 6), (2, N, 6)],
    ),
    "gru": (
        "GRU",
        [(S, 2, 4), (1, 18, 4), (1, 18, 6)],
        {"hidden_size": 6},
        [(S, 1, 2, 6), (1, 2, 6)],
    ),
    "rnn": (
        "RNN",
        [(7, 2, 4), (1, 6, 4), (1, 6, 6)],
        {"hidden_size": 6},
        [(7, 1, 2, 6), (1, 2, 6)],
    ),
    "attention": ("Attention", [(N, 4, 5, 8), (N, 2, 7, 8), (N, 2, 7, 6)], {}, [(N, 4, 5, 6)]),
    "attention, scores": (
        "Attention",
        [(2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)],
        {},
        [(2, 4, 5, 6), None, None, (2, 4, 5, 7)],
    ),
    "attention of three dims": (
        "Attention",
        [(2, 5, 8), (2, 7, 8), (2, 7, 8)],
        {"q_num_heads": 2, "kv_num_heads": 2},
        [(2, 5, 8)],
    ),
    "slice": ("Slice", [(7, N, 5), ints(1, -3), ints(6, 9), ints(0, -1)], {}, [(5, N, 3)]),
    "slice back": ("Slice", [(7, 5), ints(-1), ints(-(2**63)), ints(0), ints(-2)], {}, [(4, 5)]),
    "slice of nothing": (
        "Slice",
        [(7, 5), ints(4, 9), ints(2, 12), ints(0, 1), ints(1, 3)],
        {},
        [(0, 0)],
    ),
    "slice of the first axes": ("Slice", [(7, 5), ints(2), ints(4)], {}, [(2, 5)]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_builder_knows_the_shape(case: str) -> None:
    op_type, taken, attributes, expected = CASES[case]
    b = Builder({}, {}, lambda value: pytest.fail("no value is read"))
    inputs = [given(*t) if isinstance(t, tuple) else b.const(t) for t in taken]
    results = b.op(op_type, *inputs, outputs=len(expected), **attributes)
    assert [t.shape for t in results] == expected
