"""Parameters as inputs of the graph: `export_params=False`, `keep_initializers_as_inputs=True`."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from sardonyx.errors import InternalError


def parameters_as_inputs(
    model: ir.Model, keep_data: bool, names: Iterable[str] | None = None
) -> None:
    """Lists initializers as graph inputs too, after the model's own, in the order of `names`.

    `names` defaults to all initializers. Without `keep_data` they stop being initializers: whoever
    runs the model must feed them.
    """
    graph = model.graph
    for name in list(graph.initializers) if names is None else names:
        value = graph.initializers.get(name)
        if value is None:
            raise InternalError(f"{name} is not an initializer of the graph")
        tensor = value.const_value
        if tensor is not None:
            value.dtype = tensor.dtype
            value.shape = ir.Shape(tensor.shape.numpy())
        if not value.is_graph_input():
            graph.inputs.append(value)
        if not keep_data:
            del graph.initializers[name]
            value.const_value = None
