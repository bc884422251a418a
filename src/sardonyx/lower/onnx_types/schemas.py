"""The schemas of `onnx.defs`, as the builder and the legality check use them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import onnx.defs
import onnx_ir as ir
import torch

from sardonyx.errors import InternalError
from sardonyx.lower.values import TORCH_TO_ONNX

NEWEST_OPSET: int = onnx.defs.onnx_opset_version()

_DTYPES = {kind.name.lower(): dtype for dtype, kind in TORCH_TO_ONNX.items()}
"""By the names that schemas have for them."""


class Formal(NamedTuple):
    """One formal input or output: its type variable and the types allowed for it."""

    name: str
    type_name: str
    types: frozenset[str]
    """As schemas spell them: `tensor(float)`."""
    dtypes: frozenset[torch.dtype]
    """Those of tensors that PyTorch has, and of what sequences of them hold."""
    variadic: bool
    homogeneous: bool
    optional: bool
    is_sequence: bool


class OpSchema(NamedTuple):
    name: str
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: dict[str, ir.AttributeType]
    required_attributes: tuple[str, ...]
    min_input: int
    max_input: int
    raw: onnx.defs.OpSchema

    @property
    def since_version(self) -> int:
        return self.raw.since_version

    def input_formal(self, position: int) -> Formal:
        last = self.inputs[-1]
        return last if last.variadic and position >= len(self.inputs) else self.inputs[position]

    def output_formal(self, position: int) -> Formal:
        last = self.outputs[-1]
        return last if last.variadic and position >= len(self.outputs) else self.outputs[position]


@cache
def op_schema(name: str, opset: int = NEWEST_OPSET) -> OpSchema:
    try:
        schema = onnx.defs.get_schema(name, opset)
    except onnx.defs.SchemaError:
        raise InternalError(f"ONNX has no operator {name!r} at opset {opset}") from None
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}

    def formal(parameter: onnx.defs.OpSchema.FormalParameter) -> Formal:
        names = allowed.get(parameter.type_str, [parameter.type_str])
        option = onnx.defs.OpSchema.FormalParameterOption
        return Formal(
            parameter.name,
            parameter.type_str,
            frozenset(names),
            frozenset(dtype for n in names if (dtype := _dtype_of(n)) is not None),
            parameter.option == option.Variadic,
            parameter.is_homogeneous,
            parameter.option == option.Optional,
            all(n.startswith("seq(") for n in names),
        )

    return OpSchema(
        name,
        tuple(map(formal, schema.inputs)),
        tuple(map(formal, schema.outputs)),
        {k: _attribute_type(a.type) for k, a in schema.attributes.items()},
        tuple(k for k, a in schema.attributes.items() if a.required),
        schema.min_input,
        schema.max_input,
        schema,
    )


def _attribute_type(kind: onnx.defs.OpSchema.AttrType) -> ir.AttributeType:
    return ir.AttributeType[str(kind).rsplit(".", 1)[-1]]


def _dtype_of(type_name: str) -> torch.dtype | None:
    type_name = type_name.removeprefix("seq(")
    if not type_name.startswith("tensor("):
        return None
    return _DTYPES.get(type_name.rstrip(")")[len("tensor(") :])


def onnx_dtype(dtype: torch.dtype) -> ir.DataType:
    if dtype not in TORCH_TO_ONNX:
        raise InternalError(f"ONNX has no dtype for {dtype}")
    return TORCH_TO_ONNX[dtype]
