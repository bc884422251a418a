"""Fold an inference BatchNormalization into the convolution before it.

The folded weight is computed when it is written, one at a time, and thrown away again: peak memory
does not grow with the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
import torch

from sardonyx.lower.weights import TorchTensor
from sardonyx.optimize.facts import constant_tensor, int_attribute
from sardonyx.optimize.rewrite import NodePass, remove_node, replace_value
from sardonyx.optimize.tensor_identity import has_data

_FOLDABLE_TYPES = {
    ir.DataType.FLOAT16: torch.float16,
    ir.DataType.BFLOAT16: torch.bfloat16,
    ir.DataType.FLOAT: torch.float32,
    ir.DataType.DOUBLE: torch.float64,
}


@dataclasses.dataclass(frozen=True)
class _Fold:
    """The tensors of one convolution and the normalization after it."""

    weight: ir.TensorProtocol
    scale: ir.TensorProtocol
    shift: ir.TensorProtocol
    mean: ir.TensorProtocol
    variance: ir.TensorProtocol
    _: dataclasses.KW_ONLY
    bias: ir.TensorProtocol | None
    epsilon: float
    groups: int
    is_transposed: bool

    def _factor(self) -> torch.Tensor:
        return _float64(self.scale) / torch.sqrt(_float64(self.variance) + self.epsilon)

    def folded_weight(self) -> torch.Tensor:
        weight, factor = _host_tensor(self.weight), self._factor()
        if weight.dtype != torch.float64:
            factor = factor.to(torch.float32)
        if self.is_transposed:
            # (inputs, outputs / groups, ...): each group of inputs has its own outputs.
            factor = factor.reshape(self.groups, -1)
            factor = factor.repeat_interleave(len(weight) // self.groups, dim=0)
        factor = factor.reshape(*factor.shape, *(1,) * (weight.dim() - factor.dim()))
        return torch.mul(weight, factor, out=torch.empty(weight.shape, dtype=weight.dtype))

    def folded_bias(self) -> torch.Tensor:
        mean, shift = _float64(self.mean), _float64(self.shift)
        bias = torch.zeros_like(mean) if self.bias is None else _float64(self.bias)
        folded = (bias - mean) * self._factor() + shift
        return folded.to(_FOLDABLE_TYPES[self.weight.dtype])


class FoldBatchNorm(NodePass):
    op_types = frozenset({"BatchNormalization"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        conv = source.producer()
        if conv is None or not _feeds_only(conv, node) or not _is_inference(node):
            return False
        fold = _fold_of(conv, node)
        if fold is None or not _is_representable(fold):
            return False
        weight = conv.inputs[1]
        assert weight is not None and weight.graph is not None
        bias = conv.inputs[2] if len(conv.inputs) > 2 else None
        if bias is None or not _is_private(bias):
            bias = ir.Value(name=_bias_name(weight, weight.graph))
            conv.resize_inputs(3)
            conv.replace_input_with(2, bias)
        set_contents(weight, fold.weight.dtype, fold.weight.shape.numpy(), fold.folded_weight)
        set_contents(bias, fold.weight.dtype, fold.mean.shape.numpy(), fold.folded_bias)
        if not bias.is_initializer():
            weight.graph.register_initializer(bias)
        replace_value(node.outputs[0], conv.outputs[0])
        remove_node(node)
        return True


def set_contents(
    value: ir.Value, dtype: ir.DataType, size: Sequence[int], compute: Callable[[], torch.Tensor]
) -> None:
    value.type, value.shape = ir.TensorType(dtype), ir.Shape(size)
    value.const_value = ir.LazyTensor(
        lambda: TorchTensor(compute(), value.name), dtype, value.shape, name=value.name
    )


def _bias_name(weight: ir.Value, graph: ir.Graph) -> str:
    """The name PyTorch would have given to a bias beside this weight."""
    assert weight.name is not None
    stem = weight.name.removesuffix("weight")
    name = f"{stem}bias" if stem != weight.name else f"{weight.name}.bias"
    taken = {*graph.initializers, *(value.name for value in graph.inputs)}
    while name in taken:
        name += "_folded"
    return name


def _feeds_only(conv: ir.Node, norm: ir.Node) -> bool:
    output = conv.outputs[0]
    return (
        conv.op_type in ("Conv", "ConvTranspose")
        and conv.domain == ""
        and conv.graph is norm.graph
        and not output.is_graph_output()
        and len(output.uses()) == 1
    )


def _is_inference(norm: ir.Node) -> bool:
    # "spatial" (opset 7, 8) could ask for statistics per position.
    return (
        int_attribute(norm, "training_mode", 0) == 0
        and "spatial" not in norm.attributes
        and not any(o.uses() or o.is_graph_output() for o in norm.outputs[1:])
    )


def _fold_of(conv: ir.Node, norm: ir.Node) -> _Fold | None:
    weight_value = conv.inputs[1]
    if weight_value is None or not _is_private(weight_value):
        return None
    tensors = [_readable_floats(value) for value in (weight_value, *norm.inputs[1:5])]
    known = [tensor for tensor in tensors if tensor is not None]
    bias_value = conv.inputs[2] if len(conv.inputs) > 2 else None
    bias = _readable_floats(bias_value)
    groups = int_attribute(conv, "group", 1)
    epsilon = norm.attributes.get("epsilon")
    if len(known) < len(tensors) or groups is None or (bias is None and bias_value is not None):
        return None
    if epsilon is not None and epsilon.is_ref():
        return None
    return _Fold(
        *known,
        bias=bias,
        epsilon=1e-5 if epsilon is None else epsilon.as_float(),
        groups=groups,
        is_transposed=conv.op_type == "ConvTranspose",
    )


def _is_private(value: ir.Value) -> bool:
    """Whether only one node reads this initializer, so that its contents may change."""
    return value.is_initializer() and len(value.uses()) == 1


def _readable_floats(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The constant no caller can see or override and whose data is at hand."""
    tensor = constant_tensor(value)
    if value is None or tensor is None or value.is_graph_output():
        return None
    return tensor if tensor.dtype in _FOLDABLE_TYPES and has_data(tensor) else None


def _is_representable(fold: _Fold) -> bool:
    """Whether folding keeps float16 finite; the wider types have room for any real scale."""
    if fold.weight.dtype != ir.DataType.FLOAT16:
        return True
    largest = torch.finfo(torch.float16).max
    return bool(
        (fold.folded_weight().abs() <= largest).all()
        and (fold.folded_bias().abs() <= largest).all()
    )


def _float64(tensor: ir.TensorProtocol) -> torch.Tensor:
    return _host_tensor(tensor).to(torch.float64)


def _host_tensor(tensor: ir.TensorProtocol) -> torch.Tensor:
    raw = tensor.raw
    if isinstance(raw, torch.Tensor):
        return raw.detach().cpu()
    widest = torch.from_numpy(tensor.numpy().astype(np.float64))  # numpy's bfloat16 is not torch's
    return widest.to(_FOLDABLE_TYPES[tensor.dtype])
