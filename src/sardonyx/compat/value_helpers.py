"""What values of a symbolic function hold, under the names that published functions know."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.values import SymbolicValue


def _is_value(x: Any) -> bool:
    return isinstance(x, SymbolicValue)


def _is_none(x: Any) -> bool:
    return x is None or (_is_value(x) and x.node().mustBeNone())


_DESCRIPTORS = {
    "v": "a value",
    "i": "an integer",
    "is": "a list of integers",
    "f": "a number",
    "fs": "a list of numbers",
    "b": "True or False",
    "s": "a string",
    "t": "a tensor",
    "none": "None",
}


def _parse_arg(value: Any, desc: str, arg_name: str = "") -> Any:
    """What a value holds, as the letter `desc` says; raises where that is not known now."""
    if desc == "v" or not _is_value(value):
        return value
    if desc == "none" or value.node().mustBeNone():
        return None
    held = _held(value)
    name = f"argument {arg_name!r}" if arg_name else "an argument"
    if held is _UNKNOWN:
        raise SymbolicFunctionError(
            f"{name} must be {_DESCRIPTORS[desc]} that is known at export time, but {value!r} is"
            " computed"
        )
    try:
        return _CONVERTERS[desc](held)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SymbolicFunctionError(f"{name} is not {_DESCRIPTORS[desc]}: {held!r}") from error


_UNKNOWN = object()


def _held(value: SymbolicValue) -> Any:
    """The Python value or the tensor that a value is known to be."""
    if value.is_python:
        return value.content
    if value.is_list:
        items = [_held(item) for item in value.content]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    return _UNKNOWN if value.const is None else value.const


def _number(held: Any, kind: type) -> Any:
    if isinstance(held, torch.Tensor):
        held = held.item()
    if kind is int and isinstance(held, float) and not held.is_integer():
        raise ValueError(f"{held} has a fraction")
    if isinstance(held, (list, str)):
        raise TypeError(f"{held!r} is no number")
    return kind(held)


def _numbers(held: Any, kind: type) -> list[Any]:
    items = held.reshape(-1).tolist() if isinstance(held, torch.Tensor) else held
    return [_number(item, kind) for item in items]


def _string(held: Any) -> str:
    if isinstance(held, torch.device):
        return str(held)
    if not isinstance(held, str):
        raise TypeError(f"{held!r} is no string")
    return held


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "i": functools.partial(_number, kind=int),
    "f": functools.partial(_number, kind=float),
    "b": functools.partial(_number, kind=bool),
    "is": functools.partial(_numbers, kind=int),
    "fs": functools.partial(_numbers, kind=float),
    "s": _string,
    "t": torch.as_tensor,
}


_get_const = _parse_arg


def _maybe_get_const(value: Any, descriptor: str) -> Any:
    """What a value holds; the value itself where it is computed."""
    if _is_value(value) and _held(value) is not _UNKNOWN:
        return _parse_arg(value, descriptor)
    return value
