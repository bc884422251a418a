"""Asks ONNX Runtime which types it runs each ONNX operator in, and writes down what it says.

python -m tools.onnxruntime_kernels

A model of one node is loaded for every version of an operator and every choice of its types: what
loads is run, be it by a kernel, by the operator's definition as a function, or in a type that the
runtime itself casts to. A few kernels load and give up later: those are run.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from sardonyx.legalize.runtime_kernels import OLDEST_OPSET, TABLE
from sardonyx.legalize.type_widening import TYPE_ATTRIBUTES
from sardonyx.lower.onnx_types.legality import signature_of
from sardonyx.lower.onnx_types.schemas import OpSchema

Types = dict[str, str]
"""The type each type variable of an operator stands for."""
Row = dict[str, list[str]]

DTYPES = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
}
"""The types PyTorch computes in."""

NEWEST_OPSET = 26
"""The newest that this runtime loads."""

WITHOUT_CHOICE = ("Constant", "BitCast")
"""Operators whose types are what they do."""

VARIANTS = {
    "ScatterElements": ("reduction", ("add", "mul", "max", "min")),
    "ScatterND": ("reduction", ("add", "mul", "max", "min")),
}
"""Values of an attribute that other kernels, or parts of one, are for."""

SHAPES: Mapping[str, Sequence[Sequence[int]]] = {
    "GRU": ([1, 1, 1], [1, 3, 1], [1, 3, 1], [1, 6], [1], [1, 1, 1]),
    "LSTM": (
        *([1, 1, 1], [1, 4, 1], [1, 4, 1], [1, 8], [1]),
        *([1, 1, 1], [1, 1, 1], [1, 3]),
    ),
    "ScatterElements": ([1], [1], [1]),
    "ScatterND": ([1], [1, 1], [1]),
}
"""Inputs of operators that have to be run, as their kernels load in types that they then refuse."""

ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Attention": {"q_num_heads": 1, "kv_num_heads": 1},
    "BitShift": {"direction": "LEFT"},
    "CenterCropPad": {"axes": [0]},
    "Einsum": {"equation": "i,i->i"},
    "GRU": {"hidden_size": 1},
    "LSTM": {"hidden_size": 1},
    "RNN": {"hidden_size": 1},
}
"""What an operator needs beside the attributes that its schema requires."""


@dataclass(frozen=True)
class Form:
    """A version of an operator, and the attribute that makes it a variant."""

    op_type: str
    signature: OpSchema
    variant: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As in the table."""
        named = "".join(f"[{name}={value}]" for name, value in self.variant.items())
        return self.op_type + named

    @property
    def variables(self) -> dict[str, list[str]]:
        """The tensor types that each type variable may stand for, of those PyTorch computes in."""
        return {
            parameter.type_name: [n for n in DTYPES if f"tensor({n})" in parameter.types]
            for parameter in (*self.signature.inputs, *self.signature.outputs)
            if not parameter.type_name.startswith("tensor(")
        }

    @property
    def choices(self) -> Iterator[Types]:
        variables = self.variables
        for chosen in itertools.product(*variables.values()):
            yield dict(zip(variables, chosen, strict=True))


def forms() -> Iterator[Form]:
    """Every version of every operator that an opset of ours uses and the runtime may know."""
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    for name in sorted(names.difference(WITHOUT_CHOICE)):
        versions = {
            signature.since_version: signature
            for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1)
            if (signature := signature_of(name, opset)) is not None
        }
        attribute, values = VARIANTS.get(name, ("", ()))
        for variant in ({}, *({attribute: value} for value in values)):
            for signature in versions.values():
                if signature.raw.deprecated:
                    continue
                form = Form(name, signature, variant)
                if not (_has_bodies(form) or _has_strings(form)) and all(form.variables.values()):
                    yield form


def _has_strings(form: Form) -> bool:
    return any(parameter.type_name == "tensor(string)" for parameter in form.signature.inputs)


def _has_bodies(form: Form) -> bool:
    attributes = _schema(form).attributes.values()
    return any(attribute.type == onnx.defs.OpSchema.AttrType.GRAPH for attribute in attributes)


def _schema(form: Form) -> onnx.defs.OpSchema:
    return form.signature.raw


def runs(form: Form, types: Types) -> bool:
    """Whether the runtime runs the operator in these types, in each opset that has this version."""
    opsets = [
        opset
        for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1)
        if (signature := signature_of(form.op_type, opset)) is not None
        and signature.since_version == form.signature.since_version
    ]
    # A definition as a function may be written in operators that changed in between.
    return all(_runs_at(opset, form, types) for opset in {opsets[0], opsets[-1]})


def _runs_at(opset: int, form: Form, types: Types) -> bool:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    model = single_node(opset, form, types).SerializeToString()
    providers = ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(model, options, providers=providers)
    except runtime.NotImplemented:
        return False
    except Exception:  # it wants other attributes or shapes: its list of kernels must do
        return _has_kernel(form, types)
    if form.op_type in SHAPES:
        try:
            session.run_with_ort_values(None, {})
        except runtime.RuntimeException:
            return False
    return True


def single_node(opset: int, form: Form, types: Types) -> onnx.ModelProto:
    signature, name = form.signature, form.op_type
    dtypes = {
        parameter.name: DTYPES[
            types.get(parameter.type_name) or parameter.type_name[len("tensor(") : -1]
        ]
        for parameter in signature.inputs
    }
    inputs, initializers = [], []
    if name in SHAPES:
        for (given, dtype), shape in zip(dtypes.items(), SHAPES[name], strict=True):
            width = helper.tensor_dtype_to_np_dtype(dtype).itemsize
            zeros = bytes(width * int(np.prod(shape)))
            initializers.append(helper.make_tensor(given, dtype, shape, zeros, raw=True))
    else:
        inputs = [
            helper.make_value_info(given, helper.make_tensor_type_proto(dtype, None))
            for given, dtype in dtypes.items()
        ]
    outputs = [onnx.ValueInfoProto(name=f"{parameter.name}_out") for parameter in signature.outputs]
    if name == "BatchNormalization":  # the others are for training
        del outputs[1:]
    node = helper.make_node(
        name, list(dtypes), [o.name for o in outputs], **_attributes(form, types)
    )
    graph = helper.make_graph([node], "single", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _attributes(form: Form, types: Types) -> dict[str, Any]:
    attributes = {**ATTRIBUTES.get(form.op_type, {}), **form.variant}
    known = _schema(form).attributes
    for attribute in known.values():
        if attribute.required and attribute.name not in attributes:
            attributes[attribute.name] = _any_value(attribute)
    from_inputs = {parameter.type_name for parameter in form.signature.inputs}
    for variable, dtype in types.items():
        if variable in from_inputs:
            continue
        if form.op_type == "ConstantOfShape":
            attributes["value"] = helper.make_tensor("value", DTYPES[dtype], [1], [0])
        attributes |= {a: DTYPES[dtype] for a in ("to", *TYPE_ATTRIBUTES) if a in known}
    return attributes


def _any_value(attribute: onnx.defs.OpSchema.Attribute) -> Any:
    kinds = onnx.defs.OpSchema.AttrType
    values: dict[Any, Any] = {
        kinds.INT: 1,
        kinds.INTS: [1],
        kinds.FLOAT: 1.0,
        kinds.FLOATS: [1.0],
        kinds.STRING: "",
    }
    return values[attribute.type]


_OPEN_END = 2**31 - 1
"""A kernel without a last version is for its first version alone: a newer form may differ."""


def _has_kernel(form: Form, types: Types) -> bool:
    version = form.signature.since_version
    for kernel in _kernels().get(form.op_type, ()):
        first, last = kernel.version_range
        constraints = kernel.type_constraints
        if (first == version or first < version <= last != _OPEN_END) and all(
            variable not in constraints or f"tensor({dtype})" in constraints[variable]
            for variable, dtype in types.items()
        ):
            return True
    return False


@cache
def _kernels() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for kernel in runtime.get_all_opkernel_def():
        if kernel.domain == "" and kernel.provider == "CPUExecutionProvider":
            found.setdefault(kernel.op_name, []).append(kernel)
    return found


def rows(variables: Sequence[str], supported: Sequence[Types]) -> list[Row]:
    """The supported choices as few products of lists of types."""
    if not variables:
        return [{}]
    variable, *rest = variables
    alike: dict[str, tuple[list[str], list[Row]]] = {}
    for dtype in DTYPES:
        others = [types for types in supported if types[variable] == dtype]
        if others:
            beneath = rows(rest, others)
            alike.setdefault(json.dumps(beneath), ([], beneath))[0].append(dtype)
    return [{variable: dtypes, **row} for dtypes, beneath in alike.values() for row in beneath]


def supported_rows(form: Form) -> list[Row] | None:
    """The types that run, an empty list if none does; None if all do."""
    every = list(form.choices)
    supported = [types for types in every if runs(form, types)]
    if len(supported) == len(every):
        return None
    return rows(list(form.variables), supported) if supported else []


def main() -> None:
    operators: dict[str, dict[int, list[Row]]] = {}
    for form in forms():
        found = supported_rows(form)
        if found is not None:
            operators.setdefault(form.title, {})[form.signature.since_version] = found
    lines = [f'    "{title}": {json.dumps(versions)}' for title, versions in operators.items()]
    head = {"onnxruntime": onnxruntime.__version__, "provider": "CPUExecutionProvider"}
    TABLE.write_text(
        "{\n"
        + "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in head.items())
        + '  "operators": {\n'
        + ",\n".join(lines)
        + "\n  }\n}\n"
    )


if __name__ == "__main__":
    main()
