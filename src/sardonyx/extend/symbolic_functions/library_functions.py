"""The library's operators for symbolic functions to call: `symbolic_opset9.unsqueeze(g, x, 0)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import operator_name
from sardonyx.aten.schema import bind, default_arguments, parameters_of
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.lower import call_lowering
from sardonyx.lower.registry import LIBRARY
from sardonyx.lower.values import Tensor


class LibraryFunction:
    """`function(g, *arguments)`, which writes an operator in the form that the library has, at any
    opset, whatever function is registered."""

    def __init__(self, name: str, overloads: Sequence[OpOverload]) -> None:
        self.__name__ = self.__qualname__ = name
        self._overloads = overloads

    def __reduce__(self) -> tuple[Any, ...]:
        return library_function, (self.__name__,)

    def __call__(self, g: GraphContext, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_outputs", None)  # how many results of a list are read, once
        for takes_numbers_as_tensors in (False, True):
            for op in self._overloads:
                bound = _bound(g, op, args, kwargs, takes_numbers_as_tensors)
                if bound is not None:
                    return _written(g, op, bound)
        given = ", ".join(map(repr, (*args, *kwargs.values())))
        schemas = "; ".join(str(op._schema) for op in self._overloads)
        raise SymbolicFunctionError(
            f"aten::{self.__name__} does not take ({given}): it is {schemas}"
        )


def library_function(name: str) -> LibraryFunction | None:
    """What writes the operator `aten::<name>`; None where the library has none of that name."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = [] if packet is None else [getattr(packet, o) for o in packet.overloads()]
    known = tuple(op for op in overloads if operator_name(op) in LIBRARY)
    return _function(name, known) if known else None


@cache
def _function(name: str, overloads: tuple[OpOverload, ...]) -> LibraryFunction:
    return LibraryFunction(name, overloads)


def library_function_names() -> set[str]:
    """Those that `library_function` has a function for."""
    names = (name.removeprefix("aten::") for name in LIBRARY.names() if name.startswith("aten::"))
    return {name.partition(".")[0] for name in names}


def _bound(
    g: GraphContext,
    op: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    takes_numbers_as_tensors: bool,
) -> dict[str, Any] | None:
    """The arguments as lowerings have them; None where they are not those of this overload."""
    parameters = parameters_of(op)
    names = [p.name for p in parameters]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    needed = {p.name for p in parameters if not p.has_default}
    if len(args) > len(names) or not needed <= given.keys() <= set(names):
        return None
    tensors = {a.name: str(a.type) for a in op._schema.arguments}
    made: dict[str, Any] = {}
    for name, argument in given.items():
        plain = _plain(g, argument, known_now="Tensor" not in tensors[name])
        if not _fits(plain, tensors[name], takes_numbers_as_tensors):
            return None
        made[name] = plain
    return bind(op, [], made)


def _plain(g: GraphContext, argument: Any, *, known_now: bool) -> Any:
    """An argument as lowerings have it; what must be known now as a Python value, if it is."""
    if isinstance(argument, (list, tuple)):
        return [_plain(g, item, known_now=known_now) for item in argument]
    if isinstance(argument, torch.Tensor):
        return argument.tolist() if known_now else g.builder.const(argument)
    if not isinstance(argument, SymbolicValue):
        return argument
    if argument.is_list:
        return _plain(g, argument.content, known_now=known_now)
    if not argument.is_tensor:
        return argument.content
    if known_now and argument.const is not None:
        return argument.const.tolist()
    return g.as_tensor(argument)


def _fits(argument: Any, type_: str, takes_numbers_as_tensors: bool) -> bool:
    if argument is None:
        return type_.startswith("Optional")
    items = argument if isinstance(argument, list) else [argument]
    are_tensors = all(isinstance(item, Tensor) or item is None for item in items)
    if "Tensor" not in type_:
        return (
            not any(isinstance(item, Tensor) for item in items)
            and (not isinstance(argument, str) or "str" in type_)
            and (not isinstance(argument, list) or "List" in type_)
        )
    if isinstance(argument, list) != ("List" in type_):
        return False
    numbers = all(isinstance(item, (bool, int, float)) for item in items)
    return are_tensors or (takes_numbers_as_tensors and numbers)


def _written(g: GraphContext, op: OpOverload, arguments: dict[str, Any]) -> Any:
    lowering = LIBRARY.get(operator_name(op))
    assert lowering is not None
    with g.writing():
        results = call_lowering(g.builder, lowering, arguments, default_arguments(op))
    return _values(g, results)


def _values(g: GraphContext, results: Any) -> Any:
    if isinstance(results, (list, tuple)):
        return tuple(_values(g, item) for item in results)
    return results if results is None else g.values.of_tensor(results)
