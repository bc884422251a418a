"""Is a node valid at an opset? Computed from `onnx.defs`, with the reason when it is not."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence

import onnx
import onnx_ir as ir

from sardonyx.lower.onnx_types.schemas import Formal, OpSchema, op_schema

_STANDARD_DOMAINS = ("", "ai.onnx")


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


def signature_of(op_type: str, opset: int) -> OpSchema | None:
    """What `op_type` accepts at `opset`, or None if it does not exist there."""
    return None if schema_of(op_type, opset) is None else op_schema(op_type, opset)


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


def form_of(node: ir.Node) -> Hashable:
    """All that decides whether a node is valid at an opset."""
    values = (*node.inputs, *node.outputs)
    types = [None if value is None else (type(value.type), value.dtype) for value in values]
    return (node.op_type, len(node.inputs), *types, *node.attributes)


def why_illegal(node: ir.Node, opset: int) -> str | None:
    """The reason why `node` is not valid at `opset`, or None if it is valid.

    Operators of other domains have no schema here and are taken as they are.
    """
    if not is_standard(node):
        return None
    form, valid = form_of(node), _valid_forms(opset)
    if form in valid:
        return None
    reason = _fault(node, opset)
    if reason is None:
        valid.add(form)
    return reason


@functools.cache
def _valid_forms(opset: int) -> set[Hashable]:
    """Those that were found valid: most nodes of a model have one of a few."""
    return set()


def _fault(node: ir.Node, opset: int) -> str | None:
    signature = signature_of(node.op_type, opset)
    if signature is None:
        return "the operator does not exist there"
    raw = signature.raw
    if raw.deprecated:
        return "the operator is deprecated there"
    return (
        _attribute_fault(node, signature)
        or _count_fault("input", node.inputs, signature.inputs, raw.min_input, raw.max_input)
        or _count_fault("output", node.outputs, signature.outputs, raw.min_output, raw.max_output)
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
    "Split": (18, "it requires the sizes or the number of its parts"),
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


def _attribute_fault(node: ir.Node, signature: OpSchema) -> str | None:
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
    parameters: Sequence[Formal],
    fewest: int,
    most: int,
) -> str | None:
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
    values: Sequence[ir.Value | None], parameters: Sequence[Formal]
) -> Iterator[tuple[ir.Value, Formal]]:
    """Each given value beside the formal parameter it stands for."""
    for index, value in enumerate(values):
        if value is not None and parameters:
            yield value, parameters[min(index, len(parameters) - 1)]


def all_parameters_given(node: ir.Node, signature: OpSchema) -> Iterator[tuple[ir.Value, Formal]]:
    """The same for the inputs of a node and then its outputs."""
    yield from parameters_given(node.inputs, signature.inputs)
    yield from parameters_given(node.outputs, signature.outputs)


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


def _type_fault(node: ir.Node, signature: OpSchema) -> str | None:
    """A type that the signature does not take; an unknown type is never a fault."""
    bound: dict[str, tuple[str, str]] = {}
    for value, parameter in all_parameters_given(node, signature):
        given = type_string(value)
        if given is None:
            continue
        if given not in parameter.types:
            return f"{parameter.name} may not be {given} there"
        if parameter.homogeneous:
            first, name = bound.setdefault(parameter.type_name, (given, parameter.name))
            if first != given:
                return f"{parameter.name} is {given} but {name} is {first}"
    return None
