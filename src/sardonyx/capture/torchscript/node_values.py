"""What a TorchScript node takes and gives.

The iterators that PyTorch has for both cost as much as reading the node.
"""

from __future__ import annotations

from typing import Any


def inputs(node: Any) -> list[Any]:
    return [node.inputsAt(index) for index in range(node.inputsSize())]


def outputs(node: Any) -> list[Any]:
    return [node.outputsAt(index) for index in range(node.outputsSize())]
