"""Keep one initializer for each piece of memory, and one for each small constant."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable

import onnx_ir as ir
import torch

from sardonyx.lower.onnx_types.subgraphs import roots_of, subgraphs_of
from sardonyx.optimize.tensor_identity import content_key, memory_key


class DeduplicateConstants(ir.passes.InPlacePass):
    """Torch tensors are parameters and buffers: they merge when tied.

    Equal contents are no reason for one of them to lose its state_dict name.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        modified = False
        for root in roots_of(model):
            modified |= _deduplicate(root, ChainMap())
        return ir.passes.PassResult(model, modified=modified)


def _deduplicate(graph: ir.Graph, kept: ChainMap[Hashable, ir.Value]) -> bool:
    modified = False
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or value.is_graph_input() or value.is_graph_output():
            continue
        key = _key(tensor)
        first = kept.setdefault(key, value)
        if first is not value:
            value.replace_all_uses_with(first)
            del graph.initializers[name]
            modified = True
    for node in graph:
        for body in subgraphs_of(node):
            modified |= _deduplicate(body, kept.new_child())
    return modified


def _key(tensor: ir.TensorProtocol) -> Hashable:
    if isinstance(tensor.raw, torch.Tensor):
        return memory_key(tensor)
    contents = content_key(tensor)
    return memory_key(tensor) if contents is None else contents
