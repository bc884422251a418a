"""Attributes of ONNX nodes, of the type that an operator's schema declares."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from sardonyx.errors import InternalError
from sardonyx.lower.onnx_types.schemas import OpSchema, onnx_dtype
from sardonyx.lower.weights import TorchTensor


def attribute(schema: OpSchema, name: str, value: Any) -> ir.Attr:
    kind = schema.attributes[name]
    if isinstance(value, torch.dtype):
        return ir.AttrInt64(name, int(onnx_dtype(value)))
    if isinstance(value, torch.Tensor):
        return ir.AttrTensor(name, TorchTensor(value.detach(), name))
    if isinstance(value, ir.Graph):
        return ir.AttrGraph(name, value)
    if kind == ir.AttributeType.FLOAT:
        return ir.AttrFloat32(name, float(value))
    if kind == ir.AttributeType.INT:
        return ir.AttrInt64(name, int(value))
    if kind == ir.AttributeType.STRING:
        return ir.AttrString(name, value)
    if kind == ir.AttributeType.INTS:
        return ir.AttrInt64s(name, [int(v) for v in value])
    if kind == ir.AttributeType.FLOATS:
        return ir.AttrFloat32s(name, [float(v) for v in value])
    if kind == ir.AttributeType.STRINGS:
        return ir.AttrStrings(name, list(value))
    raise InternalError(f"{schema.name}.{name} cannot hold {value!r}")
