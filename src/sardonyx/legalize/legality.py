"""Is a node valid at an opset? Computed from `onnx.defs`, with the reason when it is not."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

_STANDARD_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class Parameter:
    """A formal input or output of an operator."""

    name: str
    type_variable: str
    types: frozenset[str]
    optional: bool
    homogeneous: bool


@dataclass(frozen=True)
class Signature:
    """What one version of an operator accepts: its `onnx.defs` schema, read once."""

    since_version: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    input_counts: tuple[int, int]
    outputs: tuple[Parameter, ...]
    output_counts: tuple[int, int]
    attributes: frozenset[str]
    required_attributes: frozenset[str]


def newest_opset() -> int:
    """The newest opset that the installed `onnx` package knows."""
    return onnx.defs.onnx_opset_version()


@functools.cache
def schema_of(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    """The schema that `op_type` has at `opset`, or None if it has none there."""
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


@functools.cache
def signature_of(op_type: str, opset: int) -> Signature | None:
    schema = schema_of(op_type, opset)
    if schema is None:
        return None
    return Signature(
        since_version=schema.since_version,
        deprecated=schema.deprecated,
        inputs=_parameters(schema.inputs),
        input_counts=(schema.min_input, schema.max_input),
        outputs=_parameters(schema.outputs),
        output_counts=(schema.min_output, schema.max_output),
        attributes=frozenset(schema.attributes),
        required_attributes=frozenset(
            name for name, attribute in schema.attributes.items() if attribute.required
        ),
    )


def _parameters(
    formals: Sequence[onnx.defs.OpSchema.FormalParameter],
) -> tuple[Parameter, ...]:
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return tuple(
        Parameter(
            name=formal.name,
            type_variable=formal.type_str,
            types=frozenset(formal.types),
            optional=formal.option == optional,
            homogeneous=formal.is_homogeneous,
        )
        for formal in formals
    )


@functools.cache
def ops_changed_by(opset: int) -> frozenset[str]:
    """The operators that opset `opset` added or gave a new version."""
    return frozenset(
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.since_version == opset
    )


def is_standard(node: ir.Node) -> bool:
    return node.domain in _STANDARD_DOMAINS


def lowest_opset_for(node: ir.Node, above: int) -> int | None:
    """The lowest opset greater than `above` at which `node` is valid as it stands."""
    candidates = range(above + 1, newest_opset() + 1)
    return next((opset for opset in candidates if why_illegal(node, opset) is None), None)


def why_illegal(node: ir.Node, opset: int) -> str | None:
    """The reason why `node` is not valid at `opset`, or None if it is valid.

    Operators of other domains have no schema here and are taken as they are.
    """
    if not is_standard(node):
        return None
    signature = signature_of(node.op_type, opset)
    if signature is None:
        return "the operator does not exist there"
    if signature.deprecated:
        return "the operator is deprecated there"
    return (
        _attribute_fault(node, signature)
        or _count_fault("input", node.inputs, signature.inputs, signature.input_counts)
        or _count_fault("output", node.outputs, signature.outputs, signature.output_counts)
        or _type_fault(node, signature)
    )


# Where an operator got another meaning and nodes written for the old one still look valid.
_OTHER_MEANINGS: dict[str, tuple[int, str]] = {
    "DFT": (20, "its axis is an input, and another one by default"),
    "GridSample": (20, "its modes have other names"),
    "GroupNormalization": (21, "scale and bias are per channel"),
    "Hardmax": (13, "it takes one axis, where it took all from that axis on"),
    "LogSoftmax": (13, "it takes one axis, where it took all from that axis on"),
    "Resize": (11, "its second input is another one"),
    "RoiAlign": (16, "it shifts the boxes by half a pixel by default"),
    "Softmax": (13, "it takes one axis, where it took all from that axis on"),
    "Split": (18, "it has to be told the sizes or the number of its parts"),
}


def means_another_thing(node: ir.Node, written_at: int, opset: int) -> str | None:
    """Why a node written for opset `written_at` cannot be read as one of a later opset."""
    if not is_standard(node) or node.op_type not in _OTHER_MEANINGS:
        return None
    changed, how = _OTHER_MEANINGS[node.op_type]
    if not written_at < changed <= opset:
        return None
    if node.op_type == "Split" and len(node.inputs) > 1:
        return None
    if node.op_type == "GridSample" and "mode" not in node.attributes:
        return None
    return f"it was written for opset {written_at}, and since opset {changed} {how}"


def _attribute_fault(node: ir.Node, signature: Signature) -> str | None:
    for name in node.attributes:
        if name not in signature.attributes:
            return f"attribute {name} does not exist there"
    for name in signature.required_attributes:
        if name not in node.attributes:
            return f"attribute {name} is required there"
    return None


def _count_fault(
    kind: str,
    values: Sequence[ir.Value | None],
    parameters: Sequence[Parameter],
    counts: tuple[int, int],
) -> str | None:
    fewest, most = counts
    given = len(values)
    while given and values[given - 1] is None:
        given -= 1
    if given < fewest:
        return f"it has {given} {kind}s and needs {fewest} there"
    if given > most:
        return f"it has {given} {kind}s and may have {most} there"
    for index, value in enumerate(values[:given]):
        parameter = parameters[min(index, len(parameters) - 1)]
        if value is None and not parameter.optional:
            return f"{kind} {parameter.name} is required there"
    return None


def parameters_given(
    values: Sequence[ir.Value | None], parameters: Sequence[Parameter]
) -> Iterator[tuple[ir.Value, Parameter]]:
    """Each given value beside the formal parameter it stands for."""
    for index, value in enumerate(values):
        if value is not None and parameters:
            yield value, parameters[min(index, len(parameters) - 1)]


_TENSOR_TYPES: dict[ir.DataType, str] = {
    dtype: f"tensor({dtype.name.lower()})"
    for dtype in ir.DataType
    if dtype != ir.DataType.UNDEFINED
}


def type_string(value: ir.Value) -> str | None:
    """The type of a value as schemas spell it, e.g. `tensor(float)`, or None if unknown."""
    return None if value.type is None else _spelled(value.type)


def type_string_of(dtype: ir.DataType) -> str | None:
    """A tensor type as schemas spell it."""
    return _TENSOR_TYPES.get(dtype)


def _spelled(type_: ir.TypeProtocol) -> str | None:
    if isinstance(type_, ir.TensorType):
        return _TENSOR_TYPES.get(type_.dtype)
    if isinstance(type_, ir.SequenceType | ir.OptionalType):
        container = "seq" if isinstance(type_, ir.SequenceType) else "optional"
        inner = _spelled(type_.elem_type)
        return None if inner is None else f"{container}({inner})"
    return None


def _type_fault(node: ir.Node, signature: Signature) -> str | None:
    """A type that the signature does not take; an unknown type is never a fault."""
    bound: dict[str, tuple[str, str]] = {}
    for values, parameters in (
        (node.inputs, signature.inputs),
        (node.outputs, signature.outputs),
    ):
        for value, parameter in parameters_given(values, parameters):
            given = type_string(value)
            if given is None:
                continue
            if given not in parameter.types:
                return f"{parameter.name} may not be {given} there"
            if parameter.homogeneous:
                first, name = bound.setdefault(parameter.type_variable, (given, parameter.name))
                if first != given:
                    return f"{parameter.name} is {given} but {name} is {first}"
    return None
