"""Arguments bound by the schema: positional, keyword and default arguments all get names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch

from sardonyx._torch_private import OpOverload, schema_arguments
from sardonyx.aten.graph import Argument, operator_name
from sardonyx.errors import InternalError

SCALAR_TYPES: tuple[torch.dtype | None, ...] = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
    torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8,
    torch.quint8, torch.qint32, torch.bfloat16, torch.quint4x2, torch.quint2x4, None, None, None,
    None, None, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e5m2fnuz,
    torch.float8_e4m3fnuz, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip
"""ATen's ScalarType numbers, the form in which TorchScript writes a dtype."""


class Parameter(NamedTuple):
    """What binding needs of one schema argument, cached: reading the schema is slow."""

    name: str
    is_dtype: bool
    fixed_length: int | None
    is_float: bool
    has_default: bool
    default: Argument
    is_written: bool
    is_out: bool


@cache
def parameters_of(op: OpOverload) -> tuple[Parameter, ...]:
    found = []
    for argument in op._schema.arguments:
        real = str(argument.real_type)
        is_list = "List[" in real
        found.append(
            Parameter(
                name=argument.name,
                is_dtype="ScalarType" in real,
                fixed_length=getattr(argument, "N", None)
                if is_list and "Tensor" not in real
                else None,
                is_float=real in ("float", "Optional[float]"),
                has_default=argument.has_default_value(),
                default=argument.default_value,
                is_written=argument.alias_info is not None and argument.alias_info.is_write,
                is_out=argument.is_out,
            )
        )
    return tuple(found)


def bind(
    op: OpOverload,
    args: Sequence[Argument],
    kwargs: Mapping[str, Argument] | None = None,
) -> dict[str, Argument]:
    """Every argument of the schema by name, defaults filled in."""
    parameters = parameters_of(op)
    if len(args) > len(parameters):
        raise InternalError(f"{operator_name(op)} got {len(args)} arguments: {op._schema}")
    bound: dict[str, Argument] = {}
    for position, parameter in enumerate(parameters):
        if position < len(args):
            argument = args[position]
        elif kwargs and parameter.name in kwargs:
            argument = kwargs[parameter.name]
        elif parameter.has_default:
            argument = parameter.default
        else:
            raise InternalError(f"{operator_name(op)} lacks {parameter.name}: {op._schema}")
        bound[parameter.name] = _normalize(parameter, argument)
    return bound


def call_by_name(op: OpOverload, arguments: Mapping[str, Any]) -> Any:
    """The result of an operator for all of its arguments by name."""
    args, kwargs = schema_arguments(op, arguments)
    return op(*args, **kwargs)


def default_arguments(op: OpOverload) -> dict[str, Argument]:
    return {p.name: _normalize(p, p.default) for p in parameters_of(op) if p.has_default}


def _normalize(parameter: Parameter, argument: Argument) -> Argument:
    if argument is None:
        return None
    if parameter.is_dtype and isinstance(argument, int):
        return dtype_from_number(argument)
    if isinstance(argument, (list, tuple)):
        return list(argument)
    if parameter.fixed_length is not None:
        return [argument] * parameter.fixed_length
    if parameter.is_float and isinstance(argument, int):
        return float(argument)
    return argument


def dtype_from_number(number: int) -> torch.dtype:
    dtype = SCALAR_TYPES[number] if 0 <= number < len(SCALAR_TYPES) else None
    if dtype is None:
        raise InternalError(f"ATen scalar type {number} is not known")
    return dtype


_SWITCHES = frozenset({"unsafe"})
"""Arguments that only enable checks."""


def argument_kinds(op: Any) -> list[tuple[str, str]]:
    """The names and types of its arguments, without `out` and switches."""
    arguments = [a for a in op._schema.arguments if not a.is_out and a.name not in _SWITCHES]
    return [(a.name, str(a.type)) for a in arguments]


@cache
def functional_overload(name: str, written: Any) -> Any:
    """The functional overload that takes the arguments of one that writes, without `out`."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return None
    same_name = written._schema.overload_name or "default"
    overloads = sorted(packet.overloads(), key=lambda overload: overload != same_name)
    kinds = argument_kinds(written)
    for overload in overloads:
        op = getattr(packet, overload)
        own = argument_kinds(op)
        added = {name for name, _ in own[len(kinds) :]}
        is_optional = all(p.has_default for p in parameters_of(op) if p.name in added)
        if not op._schema.is_mutable and set(own[: len(kinds)]) == set(kinds) and is_optional:
            return op
    return None


METADATA_WRITES: dict[str, Callable[[Any], Any]] = {
    f"aten::{name}_": partial(functional_overload, name)
    for name in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "as_strided")
}
"""In-place operators that change the shape of their argument -> the view operator."""
