"""Small onnx-ir models for the tests of this folder."""

from __future__ import annotations

import onnx_ir as ir
import torch

from sardonyx.lower.weights import TorchTensor


def initializer(graph: ir.Graph, name: str, tensor: torch.Tensor) -> ir.Value:
    constant = TorchTensor(tensor, name)
    value = ir.Value(
        name=name,
        type=ir.TensorType(constant.dtype),
        shape=ir.Shape(constant.shape),
        const_value=constant,
    )
    graph.register_initializer(value)
    return value


def tensor_value(name: str | None, *dims: int | str, dtype=ir.DataType.FLOAT) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(dims))


def model_of(graph: ir.Graph, **fields) -> ir.Model:
    return ir.Model(graph, ir_version=10, **fields)


def linear(weight: torch.Tensor, bias: torch.Tensor) -> ir.Model:
    """Gemm(x, weight^T) + bias, with provenance on its node."""
    x = tensor_value("x", "N", weight.shape[1])
    y = tensor_value("y", "N", weight.shape[0])
    graph = ir.Graph([x], [y], nodes=[], opset_imports={"": 20}, name="main")
    weights = [initializer(graph, "fc.weight", weight), initializer(graph, "fc.bias", bias)]
    node = ir.Node("", "Gemm", [x, *weights], [ir.AttrInt64("transB", 1)], outputs=[y])
    node.metadata_props.update(
        {
            "sardonyx.module": "fc",
            "sardonyx.scope": "Net/Linear[fc]",
            "sardonyx.source": "my_model.py:57",
            "sardonyx.code": "return self.fc(x)",
        }
    )
    graph.append(node)
    return model_of(graph, producer_name="test")


def weights_only(**tensors: torch.Tensor) -> ir.Model:
    """Every initializer is an output, under the name `<name>_out`."""
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 25}, name="main")
    for name, tensor in tensors.items():
        value = initializer(graph, name, tensor)
        out = ir.Value(name=f"{name}_out", type=value.type, shape=value.shape)
        graph.append(ir.Node("", "Identity", [value], outputs=[out]))
        graph.outputs.append(out)
    return model_of(graph)
