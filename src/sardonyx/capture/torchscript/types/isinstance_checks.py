"""`isinstance` in a TorchScript program."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.types.values import (
    NUMBERS,
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    MaybeNone,
    RuntimeString,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    is_number,
    number_dtype,
)


def is_instance(argument: Argument, types: list[Any]) -> bool:
    """Of one of the types; an optional counts as its content."""
    return any(_is_of(argument, each) for each in types)


def _is_of(argument: Argument, kind: Any) -> bool:
    name = kind.kind()
    if name in ("OptionalType", "UnionType"):
        members = [kind.getElementType()] if name == "OptionalType" else kind.containedTypes()
        return (name == "OptionalType" and argument is None) or is_instance(argument, members)
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
