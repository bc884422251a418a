"""Nodes that construct or unpack values, check types, or exist in TorchScript alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.aten.schema import dtype_from_number
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.torchscript.errors import ModelRaises, ScriptRefusal, no_form
from sardonyx.capture.torchscript.interpreter.nodes import node_outputs
from sardonyx.capture.torchscript.types.values import (
    NUMBERS,
    UNINITIALIZED,
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    MaybeNone,
    RuntimeString,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    as_python,
    is_constant,
    is_number,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader


def _of_inputs(result: Callable[..., Argument]) -> Callable[[GraphReader, Any], None]:
    """A construct whose result is a function of its inputs."""
    return lambda reader, node: reader.set(node, result(*reader.inputs_of(node)))


def _construct_list(reader: GraphReader, node: Any) -> None:
    made = reader.lists.new(reader.inputs_of(node))
    made.number = NUMBERS.get(node.output().type().getElementType().kind())
    reader.set(node, made)


def _construct_dict(reader: GraphReader, node: Any) -> None:
    inputs = reader.inputs_of(node)
    entries = zip(inputs[::2], inputs[1::2], strict=True)
    reader.set(node, reader.calls.dicts.new(entries))


def _create_object(reader: GraphReader, node: Any) -> None:
    reader.set(node, reader.heap.new(ScriptInstance(node.output().type().qualified_name())))


def _unpack(reader: GraphReader, node: Any) -> None:
    (items,) = reader.inputs_of(node)
    outputs = node_outputs(node)
    if isinstance(items, ScriptList):
        items = items.state
    if not isinstance(items, tuple):
        items = tuple(reader.lists.at(items, index) for index in range(len(outputs)))
    if len(items) != len(outputs):
        raise ScriptRefusal(f"{len(items)} values are unpacked into {len(outputs)} names")
    reader.set_outputs(node, items)


def _tuple_slice(reader: GraphReader, node: Any) -> None:
    (items,) = reader.inputs_of(node)
    reader.set(node, items[node.i("beg") : node.i("end")])


def _raise(reader: GraphReader, node: Any) -> None:
    message = reader.inputs_of(node)[0]
    text = message if isinstance(message, str) else "an exception"
    raise ModelRaises(text, reader.here)


def _is_parameter(reader: GraphReader, node: Any) -> None:
    (tensor,) = reader.inputs_of(node)
    reader.set(node, reader.graph.parameters.get(tensor.name) is tensor)


def _is_contiguous(reader: GraphReader, node: Any) -> None:
    reader.note(f"the file knows no strides: is_contiguous() at {reader.here.describe()} is true")
    reader.set(node, True)


def _is_instance(reader: GraphReader, node: Any) -> None:
    (argument,) = reader.inputs_of(node)
    types = node.tys("types")
    holds = _is_any_of(argument, types)
    if isinstance(argument, MaybeNone) and holds != _is_any_of(None, types):
        present = argument.present
        reader.set(node, present if holds else reader.calls.negated(present))
        return
    reader.set(node, holds)


def _is_any_of(argument: Argument, types: list[Any]) -> bool:
    """`isinstance`; an optional counts as its content."""
    return any(_is_of(argument, each) for each in types)


def _is_of(argument: Argument, kind: Any) -> bool:
    name = kind.kind()
    if name in ("OptionalType", "UnionType"):
        members = [kind.getElementType()] if name == "OptionalType" else kind.containedTypes()
        return (name == "OptionalType" and argument is None) or _is_any_of(argument, members)
    if isinstance(argument, MaybeNone):
        return _is_of(argument.content, kind)
    if name in NUMBERS:
        return is_number(argument) and number_dtype(argument) == NUMBERS[name]
    if name == "ListType":
        return isinstance(argument, ScriptList) and _holds(argument, kind.getElementType())
    if name == "TupleType":
        members = kind.elements()
        return (
            isinstance(argument, tuple)
            and len(argument) == len(members)
            and all(map(_is_of, argument, members))
        )
    if name == "DictType":
        return isinstance(argument, ScriptDict) and all(
            _is_of(key, kind.getKeyType()) and _is_of(item, kind.getValueType())
            for key, item in argument.state.items()
        )
    if name == "ClassType":
        return isinstance(argument, ScriptInstance) and argument.class_name == kind.qualified_name()
    plain: dict[str, Any] = {
        "TensorType": Value, "StringType": (str, RuntimeString), "NoneType": type(None),
        "AnyListType": ScriptList, "AnyTupleType": tuple, "DeviceObjType": torch.device,
    }  # fmt: skip
    if name == "NumberType":
        return is_number(argument)
    return name == "AnyType" or isinstance(argument, plain.get(name, ()))


def _holds(items: ScriptList, kind: Any) -> bool:
    held = items.state
    if isinstance(held, DynamicRows):
        return kind.kind() in ("TupleType", "AnyTupleType")
    if not isinstance(held, DynamicItems):
        return all(_is_of(item, kind) for item in held)
    return _is_of(ComputedNumber(held.content) if held.of_numbers else held.content, kind)


def _enter(reader: GraphReader, node: Any) -> None:
    """A context that changes how PyTorch computes, not what."""
    (context,) = reader.inputs_of(node)
    if context.class_name not in _CONTEXTS_WITHOUT_EFFECT:
        raise ScriptRefusal(f"`with` of {context.class_name} has no ONNX form")
    reader.set(node, None)


def _number_to_tensor(reader: GraphReader, node: Any) -> None:
    number = reader.inputs_of(node)[0]
    if isinstance(number, ComputedNumber):
        reader.set(node, number.value)
        return
    dtype = number_dtype(number)
    dtype = torch.get_default_dtype() if dtype == torch.float64 else dtype
    reader.set(node, reader.call(torch.ops.aten.scalar_tensor.default, number, dtype=dtype))


def _new_tensor(reader: GraphReader, node: Any) -> None:
    """torch.tensor() in a scripted function: an operator that exists in TorchScript alone."""
    data, dtype = reader.inputs_of(node)[:2]
    wanted = None if dtype is None else dtype_of(dtype)
    if isinstance(data, Value):
        made = reader.call(torch.ops.aten.clone.default, data)
    elif isinstance(data, (ScriptList, tuple)):
        made = _tensor_of_list(reader, data, wanted)
    elif is_number(data):
        made = reader.numbers.as_tensor(data)
        if isinstance(data, ComputedNumber):
            # A write to the tensor must not change the number.
            made = reader.call(torch.ops.aten.clone.default, made)
    else:
        raise no_form(node.kind(), reader.here)
    if wanted is None and made.dtype == torch.float64 and not isinstance(data, Value):
        wanted = torch.get_default_dtype()
    if wanted is not None and made.dtype != wanted:
        made = reader.call(torch.ops.aten._to_copy.default, made, dtype=wanted)
    reader.set(node, made)


def _as_tensor_of(reader: GraphReader, node: Any) -> None:
    """torch.as_tensor(): a tensor of the wanted dtype is returned as it is."""
    data, dtype = reader.inputs_of(node)[:2]
    if isinstance(data, Value) and (dtype is None or dtype_of(dtype) == data.dtype):
        reader.set(node, data)
    else:
        _new_tensor(reader, node)


def _tensor_of_list(reader: GraphReader, data: Argument, dtype: torch.dtype | None) -> Value:
    items = data.state if isinstance(data, ScriptList) else data
    if isinstance(items, DynamicItems):
        return reader.call(torch.ops.aten.clone.default, items.content)
    if is_constant(data):
        tensor = torch.tensor(as_python(data), dtype=dtype)
        return Value("numbers", type_of(tensor), constant=tensor)
    if any(isinstance(item, (ScriptList, tuple)) for item in items):
        rows = [_tensor_of_list(reader, item, dtype) for item in items]
        return reader.call(torch.ops.aten.stack.default, rows, 0)
    return reader.lists.numbers_tensor(items)


def dtype_of(dtype: Any) -> torch.dtype:
    return dtype if isinstance(dtype, torch.dtype) else dtype_from_number(dtype)


_CONTEXTS_WITHOUT_EFFECT = frozenset(
    f"__torch__.torch.autograd.{name}"
    for name in ("grad_mode.no_grad", "grad_mode.enable_grad", "profiler.record_function")
)
CONSTRUCTS: dict[str, Callable[[GraphReader, Any], None]] = {
    "prim::ListConstruct": _construct_list,
    "prim::TupleConstruct": _of_inputs(lambda *items: items),
    "prim::DictConstruct": _construct_dict,
    "prim::CreateObject": _create_object,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::TupleSlice": _tuple_slice,
    "prim::Uninitialized": _of_inputs(lambda: UNINITIALIZED),
    "prim::RaiseException": _raise,
    "prim::isinstance": _is_instance,
    "prim::Enter": _enter,
    "prim::Exit": _enter,
    "aten::wait": _of_inputs(lambda itself, *rest: itself),
    "aten::cpu": _of_inputs(lambda itself, *rest: itself),
    "aten::cuda": _of_inputs(lambda itself, *rest: itself),
    "aten::is_contiguous": _is_contiguous,
    "prim::dtype": _of_inputs(lambda tensor: tensor.dtype),
    "prim::device": _of_inputs(lambda tensor: torch.device("cpu")),
    "prim::layout": _of_inputs(lambda tensor: torch.strided),
    "prim::requires_grad": _is_parameter,
    # As in training: torch.nn uses its fused kernels, which ONNX does not have, without gradients.
    "aten::is_grad_enabled": _of_inputs(lambda: True),
    "prim::data": _of_inputs(lambda itself, *rest: itself),
    "prim::NumToTensor": _number_to_tensor,
    "aten::tensor": _new_tensor,
    "aten::as_tensor": _as_tensor_of,
}
