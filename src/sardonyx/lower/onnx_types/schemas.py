"""The schemas of `onnx.defs`, as the builder and the legality check use them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import onnx.defs
import onnx_ir as ir
import torch

from sardonyx.errors import InternalError
from sardonyx.lower.values import ONNX_TO_TORCH, TORCH_TO_ONNX

NEWEST_OPSET: int = onnx.defs.onnx_opset_version()

_TYPE_NAMES = {
    "float": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE, "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16, "bool": ir.DataType.BOOL, "uint8": ir.DataType.UINT8,
    "int8": ir.DataType.INT8, "uint16": ir.DataType.UINT16, "int16": ir.DataType.INT16,
    "uint32": ir.DataType.UINT32, "int32": ir.DataType.INT32, "uint64": ir.DataType.UINT64,
    "int64": ir.DataType.INT64, "complex64": ir.DataType.COMPLEX64,
    "complex128": ir.DataType.COMPLEX128, "float8e4m3fn": ir.DataType.FLOAT8E4M3FN,
    "float8e4m3fnuz": ir.DataType.FLOAT8E4M3FNUZ, "float8e5m2": ir.DataType.FLOAT8E5M2,
    "float8e5m2fnuz": ir.DataType.FLOAT8E5M2FNUZ, "float8e8m0": ir.DataType.FLOAT8E8M0,
    "float4e2m1": ir.DataType.FLOAT4E2M1, "int4": ir.DataType.INT4, "uint4": ir.DataType.UINT4,
}  # fmt: skip


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
    data_type = _TYPE_NAMES.get(type_name.rstrip(")")[len("tensor(") :])
    return None if data_type is None else ONNX_TO_TORCH[data_type]


def onnx_dtype(dtype: torch.dtype) -> ir.DataType:
    if dtype not in TORCH_TO_ONNX:
        raise InternalError(f"ONNX has no dtype for {dtype}")
    return TORCH_TO_ONNX[dtype]
