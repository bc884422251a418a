"""The arguments of a symbolic function: those of the operator's schema, by name or in order."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from sardonyx.aten.scalar_types import scalar_type_number
from sardonyx.lower.registry import HAVE_NO_MEANING_IN_ONNX, Refusal

_SYNONYMS = {"input": "self", "self": "input"}
"""`torch.nn.functional` has the one name where ATen's schemas have the other."""


def arguments_for(
    parameters: Sequence[inspect.Parameter],
    arguments: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """What to call a function of these `parameters` with: in order as far as possible, and by name.

    By name, where every argument that it requires has a name of the schema; else in the schema's
    order. What it does not take must hold its default.
    """
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return [torchscript_argument(a) for a in arguments.values()], {}
    named = {p.name: n for p in parameters if (n := _schema_name(p.name, arguments)) is not None}
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    takes_rest = inspect.Parameter.VAR_KEYWORD in kinds
    if all(p.name in named for p in required) and parameters:
        if not takes_rest:
            _check_left_out(arguments, set(named.values()), defaults)
        given = {p: torchscript_argument(arguments[n]) for p, n in named.items()}
        if takes_rest:
            rest = {n: a for n, a in arguments.items() if n not in set(named.values())}
            given |= {n: torchscript_argument(a) for n, a in rest.items()}
        in_order = []
        for parameter in parameters:
            if parameter.name not in given or parameter.kind is parameter.KEYWORD_ONLY:
                break
            in_order.append(given.pop(parameter.name))
        return in_order, given
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = list(arguments)[: len(positional)]
    if len(required) > len(arguments):
        names = ", ".join(arguments)
        raise Refusal(
            f"its symbolic function takes {len(required)} arguments, the operator has"
            f" {len(arguments)}: {names}"
        )
    _check_left_out(arguments, set(taken), defaults)
    return [torchscript_argument(arguments[name]) for name in taken], {}


def _schema_name(parameter: str, arguments: Mapping[str, Any]) -> str | None:
    plain = parameter.removesuffix("_") if keyword.iskeyword(parameter[:-1]) else parameter
    for name in (plain, _SYNONYMS.get(plain, plain)):
        if name in arguments:
            return name
    return None


def _check_left_out(
    arguments: Mapping[str, Any], taken: set[str], defaults: Mapping[str, Any]
) -> None:
    for name, argument in arguments.items():
        if name in taken or name in HAVE_NO_MEANING_IN_ONNX:
            continue
        if name not in defaults or not _same(argument, defaults[name]):
            raise Refusal(f"its symbolic function does not take {name}, which is {argument}")


def _same(left: Any, right: Any) -> bool:
    plain = (int, float)
    if type(left) in plain and type(right) in plain:  # a Scalar of 1 arrives as 1.0
        return bool(left == right)
    return bool(type(left) is type(right) and left == right)


def torchscript_argument(argument: Any) -> Any:
    """As TorchScript's graphs have it: a dtype is its number."""
    if isinstance(argument, torch.dtype):
        return scalar_type_number(argument)
    if isinstance(argument, torch.layout):
        return 0
    if isinstance(argument, torch.memory_format):
        return _MEMORY_FORMATS.get(argument, 0)
    return argument


_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
