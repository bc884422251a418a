"""The parameters that a model's file will, as far as one can tell, have as they lie in memory."""

from __future__ import annotations

import torch

from sardonyx.capture.control_flow import all_nodes
from sardonyx.capture.graph import AtenGraph, Value
from sardonyx.capture.storage import holds_memory

_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_PLAIN_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_REORDER_WEIGHTS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def expected_to_be_kept(graph: AtenGraph) -> dict[str, torch.Tensor]:
    """By name, in the order of the graph's parameters. What is computed of constants alone is
    folded, batch norms into convolutions, and ONNX has the gates of recurrent layers in another
    order."""
    nodes = list(all_nodes(graph.nodes))
    folds_convolutions = any("batch_norm" in node.name for node in nodes)
    read: set[Value] = set()
    changed: set[Value] = set()
    folded: set[Value] = set()
    for node in nodes:
        inputs = list(node.inputs())
        read.update(inputs)
        if all(value.constant is not None or value in folded for value in inputs):
            changed.update(inputs)
            folded.update(node.outputs)
        elif (folds_convolutions and "conv" in node.name) or any(
            name in node.name for name in _REORDER_WEIGHTS
        ):
            changed.update(inputs)
    return {
        name: value.constant
        for name, value in graph.parameters.items()
        if value in read
        and value not in changed
        and value.constant is not None
        and _is_plain(value.constant)
    }


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its memory, on the host, is what the file has."""
    return (
        type(tensor) in _PLAIN_TYPES
        and tensor.dtype in _PLAIN_DTYPES
        and tensor.device.type == "cpu"
        and not tensor.is_inference()
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and holds_memory(tensor)
    )
