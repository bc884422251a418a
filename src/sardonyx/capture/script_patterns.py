"""What a variable may hold after a branch, or in any iteration of a loop.

A pattern says which parts of a value are tensors of the graph (its leaves) and which are always
the same. Patterns of the branches, or of one iteration and the next, are joined: a dim that differs
becomes unknown, a list whose length differs one of dynamic length, None and a value an optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx.capture.graph import Argument, Dim, SequenceType, TensorType, Value
from sardonyx.capture.script_values import (
    ComputedNumber,
    DynamicItems,
    MaybeNone,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    Uninitialized,
    is_number,
    number_dtype,
)

OpenDims: TypeAlias = tuple[Dim | None, ...]
"""Dims of which None is unknown."""


class CannotJoin(Exception):
    """The values have no type in common that ONNX has."""


@dataclass(frozen=True, slots=True)
class Same:
    argument: Argument


@dataclass(frozen=True, slots=True)
class Nothing:
    """Never read."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    dtype: torch.dtype
    dims: OpenDims


@dataclass(frozen=True, slots=True)
class NumberLeaf:
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Maybe:
    content: Pattern


@dataclass(frozen=True, slots=True)
class TupleOf:
    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class DynamicListOf:
    dtype: torch.dtype
    dims: OpenDims
    """Of one item."""
    of_numbers: bool
    is_sequence: bool


@dataclass(frozen=True, slots=True)
class DictOf:
    keys: tuple[Any, ...]
    items: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class InstanceOf:
    class_name: str
    keys: tuple[str, ...]
    items: tuple[Pattern, ...]


Pattern: TypeAlias = (
    Same
    | Nothing
    | TensorLeaf
    | NumberLeaf
    | Maybe
    | TupleOf
    | ListOf
    | DynamicListOf
    | DictOf
    | InstanceOf
)
IsKnown = Callable[[sympy.Basic], bool]
"""Whether a size is known outside the block."""


def pattern_of(argument: Argument, is_known: IsKnown) -> Pattern:
    if isinstance(argument, Uninitialized):
        return Nothing()
    if isinstance(argument, Value):
        return TensorLeaf(argument.dtype, _dims(argument.shape, is_known))
    if is_number(argument):
        return NumberLeaf(number_dtype(argument))
    if isinstance(argument, MaybeNone):
        return Maybe(pattern_of(argument.content, is_known))
    if isinstance(argument, tuple):
        return TupleOf(tuple(pattern_of(a, is_known) for a in argument))
    if isinstance(argument, ScriptList):
        return state_pattern(argument.state, is_known)
    if isinstance(argument, ScriptDict):
        return _entries_pattern(argument.state, is_known)
    if isinstance(argument, ScriptInstance):
        entries = _entries_pattern(argument.state, is_known)
        return InstanceOf(argument.class_name, entries.keys, entries.items)
    return Same(argument)


def state_pattern(state: Any, is_known: IsKnown) -> Pattern:
    """Of what a list, a dict or an object holds."""
    if isinstance(state, DynamicItems):
        content = state.content
        dims = content.shape if state.is_sequence else content.shape[1:]
        return DynamicListOf(
            content.dtype, _dims(dims, is_known), state.of_numbers, state.is_sequence
        )
    if isinstance(state, dict):
        return _entries_pattern(state, is_known)
    return ListOf(tuple(pattern_of(a, is_known) for a in state))


def _entries_pattern(entries: dict[Any, Argument], is_known: IsKnown) -> DictOf:
    return DictOf(tuple(entries), tuple(pattern_of(a, is_known) for a in entries.values()))


def _dims(shape: Sequence[Dim | None], is_known: IsKnown) -> OpenDims:
    return tuple(
        d if isinstance(d, int) or (d is not None and is_known(d)) else None for d in shape
    )


def join(left: Pattern, right: Pattern) -> Pattern:
    if left == right or isinstance(right, Nothing):
        return left
    if isinstance(left, Nothing):
        return right
    if isinstance(left, Same) or isinstance(right, Same):
        return _join_with_constant(left, right)
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        return Maybe(join(_content(left), _content(right)))
    if isinstance(left, TensorLeaf) and isinstance(right, TensorLeaf):
        _check_types(left.dtype, right.dtype, left.dims, right.dims)
        return TensorLeaf(left.dtype, _join_dims(left.dims, right.dims))
    if isinstance(left, (ListOf, DynamicListOf)) and isinstance(right, (ListOf, DynamicListOf)):
        return _join_lists(left, right)
    if isinstance(left, NumberLeaf) and isinstance(right, NumberLeaf):
        raise CannotJoin(f"a number is {_name(left.dtype)} here and {_name(right.dtype)} there")
    if (
        isinstance(left, (TupleOf, DictOf, InstanceOf))
        and isinstance(right, type(left))
        and len(left.items) == len(right.items)
        and getattr(left, "keys", None) == getattr(right, "keys", None)
    ):
        return type(left)(**{**_fields(left), "items": _join_each(left.items, right.items)})
    raise CannotJoin(f"{_describe(left)} here and {_describe(right)} there")


def _fields(pattern: Any) -> dict[str, Any]:
    return {name: getattr(pattern, name) for name in pattern.__dataclass_fields__}


def _join_each(left: Sequence[Pattern], right: Sequence[Pattern]) -> tuple[Pattern, ...]:
    return tuple(join(a, b) for a, b in zip(left, right, strict=True))


def _content(pattern: Pattern) -> Pattern:
    return pattern.content if isinstance(pattern, Maybe) else pattern


def _join_with_constant(left: Pattern, right: Pattern) -> Pattern:
    if isinstance(left, Same) and isinstance(right, Same):
        if type(left.argument) is type(right.argument) and left.argument == right.argument:
            return left
    elif Same(None) in (left, right):
        other = right if left == Same(None) else left
        return other if isinstance(other, Maybe) else Maybe(other)
    raise CannotJoin(f"{_describe(left)} here and {_describe(right)} there")


def _join_lists(left: ListOf | DynamicListOf, right: ListOf | DynamicListOf) -> Pattern:
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        if len(left.items) == len(right.items):
            return ListOf(_join_each(left.items, right.items))
        if not left.items or not right.items:
            return as_dynamic(left if left.items else right)
    first, second = (p if isinstance(p, DynamicListOf) else None for p in (left, right))
    if first is None:
        if isinstance(left, ListOf) and not left.items:
            return right
        first = as_dynamic(left)
    if second is None:
        if isinstance(right, ListOf) and not right.items:
            return first
        second = as_dynamic(right)
    if first.of_numbers != second.of_numbers:
        raise CannotJoin("a list of numbers here and one of tensors there")
    _check_types(first.dtype, second.dtype, first.dims, second.dims)
    dims = _join_dims(first.dims, second.dims)
    # Only items of one shape can be stacked.
    stacked = not (first.is_sequence or second.is_sequence) and None not in dims
    return DynamicListOf(first.dtype, dims, first.of_numbers, not (stacked or first.of_numbers))


def as_dynamic(pattern: Pattern) -> DynamicListOf:
    """The pattern of a list with any number of items like these."""
    if isinstance(pattern, DynamicListOf):
        return pattern
    assert isinstance(pattern, ListOf)
    if not pattern.items:
        raise CannotJoin("an empty list, of which nothing says what it would hold")
    item = pattern.items[0]
    for other in pattern.items[1:]:
        item = join(item, other)
    if isinstance(item, TensorLeaf):
        return DynamicListOf(item.dtype, item.dims, of_numbers=False, is_sequence=True)
    if isinstance(item, NumberLeaf):
        return DynamicListOf(item.dtype, (), of_numbers=True, is_sequence=False)
    raise CannotJoin(
        f"a list of {_describe(item)}, and its length differs: ONNX has lists of tensors"
    )


def _check_types(
    left: torch.dtype, right: torch.dtype, left_dims: OpenDims, right_dims: OpenDims
) -> None:
    if left != right:
        raise CannotJoin(f"a tensor is {_name(left)} here and {_name(right)} there")
    if len(left_dims) != len(right_dims):
        raise CannotJoin(f"a tensor has {len(left_dims)} dims here and {len(right_dims)} there")


def _join_dims(left: OpenDims, right: OpenDims) -> OpenDims:
    return tuple(a if a == b else None for a, b in zip(left, right, strict=True))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _describe(pattern: Pattern) -> str:
    if isinstance(pattern, Same):
        return repr(pattern.argument)
    names: dict[type, str] = {
        TensorLeaf: "a tensor", NumberLeaf: "a number", Maybe: "an optional", TupleOf: "a tuple",
        ListOf: "a list", DynamicListOf: "a list", DictOf: "a dict", InstanceOf: "an object",
    }  # fmt: skip
    return names.get(type(pattern), "nothing")


# -- from patterns to values ----------------------------------------------------------------------

NewLeaf = Callable[[torch.dtype, OpenDims, bool], Value]
"""Makes the tensor, or the sequence (if the last argument says so), of a leaf."""


def instantiate(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Argument:
    """A value that fits the pattern, its leaves made by `new`; `keep` registers mutable objects."""
    if isinstance(pattern, Same):
        return pattern.argument
    if isinstance(pattern, Nothing):
        return Uninitialized()
    if isinstance(pattern, TensorLeaf):
        return new(pattern.dtype, pattern.dims, False)
    if isinstance(pattern, NumberLeaf):
        return ComputedNumber(new(pattern.dtype, (), False))
    if isinstance(pattern, Maybe):
        present = ComputedNumber(new(torch.bool, (), False))
        return MaybeNone(present, instantiate(pattern.content, new, keep))
    if isinstance(pattern, TupleOf):
        return tuple(instantiate(p, new, keep) for p in pattern.items)
    if isinstance(pattern, InstanceOf):
        made = ScriptInstance(pattern.class_name)
        made.state = instantiate_state(DictOf(pattern.keys, pattern.items), new, keep)
        return keep(made)
    state = instantiate_state(pattern, new, keep)
    return keep(ScriptDict(state) if isinstance(pattern, DictOf) else ScriptList(state))


def instantiate_state(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Any:
    if isinstance(pattern, DynamicListOf):
        dims = pattern.dims if pattern.is_sequence else (None, *pattern.dims)
        return DynamicItems(new(pattern.dtype, dims, pattern.is_sequence), pattern.of_numbers)
    if isinstance(pattern, DictOf):
        items = (instantiate(p, new, keep) for p in pattern.items)
        return dict(zip(pattern.keys, items, strict=True))
    assert isinstance(pattern, ListOf)
    return tuple(instantiate(p, new, keep) for p in pattern.items)


class Conform:
    """Takes a value apart into the leaves of a pattern that it fits."""

    def __init__(
        self,
        as_tensor: Callable[[Argument, torch.dtype], Value],
        as_dynamic_items: Callable[[Any, DynamicListOf], Value],
        filler: Callable[[TensorLeaf], Value],
    ) -> None:
        self._as_tensor = as_tensor
        self._as_dynamic_items = as_dynamic_items
        self._filler = filler

    def leaves(self, argument: Argument, pattern: Pattern) -> Iterator[Value]:
        if isinstance(pattern, (Same, Nothing)):
            return
        if isinstance(argument, Uninitialized):
            yield from self._fillers(pattern)
        elif isinstance(pattern, TensorLeaf):
            yield argument
        elif isinstance(pattern, NumberLeaf):
            yield self._as_tensor(argument, pattern.dtype)
        elif isinstance(pattern, Maybe):
            present: Argument = argument is not None
            if isinstance(argument, MaybeNone):
                present, argument = argument.present, argument.content
            yield self._as_tensor(present, torch.bool)
            if argument is None:
                yield from self._fillers(pattern.content)
            else:
                yield from self.leaves(argument, pattern.content)
        elif isinstance(pattern, TupleOf):
            for item, inner in zip(argument, pattern.items, strict=True):
                yield from self.leaves(item, inner)
        else:
            yield from self.state_leaves(argument.state, pattern)

    def state_leaves(self, state: Any, pattern: Pattern) -> Iterator[Value]:
        if isinstance(pattern, DynamicListOf):
            yield self._as_dynamic_items(state, pattern)
        elif isinstance(pattern, (DictOf, InstanceOf)):
            for key, inner in zip(pattern.keys, pattern.items, strict=True):
                yield from self.leaves(state[key], inner)
        elif isinstance(pattern, ListOf):
            for item, inner in zip(state, pattern.items, strict=True):
                yield from self.leaves(item, inner)

    def _fillers(self, pattern: Pattern) -> Iterator[Value]:
        """Leaves that nothing reads."""
        if isinstance(pattern, TensorLeaf):
            yield self._filler(pattern)
        elif isinstance(pattern, NumberLeaf):
            yield self._as_tensor(0, pattern.dtype)
        elif isinstance(pattern, DynamicListOf):
            yield self._as_dynamic_items((), pattern)
        elif isinstance(pattern, Maybe):
            yield self._as_tensor(False, torch.bool)
            yield from self._fillers(pattern.content)
        elif isinstance(pattern, (TupleOf, ListOf, DictOf, InstanceOf)):
            for inner in pattern.items:
                yield from self._fillers(inner)


def leaf_type(dtype: torch.dtype, dims: tuple[Any, ...], is_sequence: bool) -> TensorType:
    return SequenceType(dtype, dims) if is_sequence else TensorType(dtype, dims)
