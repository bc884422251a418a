"""The types that a variable may have after a branch, or in any iteration of a loop.

A pattern says which parts of a value are tensors of the graph (its leaves) and which are always
the same. The patterns of two branches, or of one iteration and the next, are joined: a dim that
differs becomes unknown, a list whose length differs one of dynamic length, and None and a value an
optional.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx.aten.graph import Argument, Dim, SequenceType, TensorType, UnrankedType, Value
from sardonyx.capture.torchscript.errors import CannotJoin
from sardonyx.capture.torchscript.types.values import (
    Dynamic,
    DynamicItems,
    DynamicRows,
    MaybeNone,
    RuntimeString,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    Uninitialized,
    dtype_name,
    is_number,
    number_dtype,
)

OpenDims: TypeAlias = tuple[Dim | None, ...]
"""Dims of which None is unknown."""


@dataclass(frozen=True, slots=True)
class Same:
    argument: Argument


@dataclass(frozen=True, slots=True)
class Nothing:
    """Never read."""


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    dtype: torch.dtype
    dims: OpenDims | None
    """None where the rank is unknown."""

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)


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
    number: torch.dtype | None = None
    """The dtype of the items that an empty list of numbers would have."""


@dataclass(frozen=True, slots=True)
class DynamicListOf:
    dtype: torch.dtype
    dims: OpenDims
    """Of one item."""
    of_numbers: bool
    is_sequence: bool
    length: Dim | None = None


@dataclass(frozen=True, slots=True)
class DynamicRowsOf:
    columns: tuple[DynamicListOf | DynamicRowsOf, ...]


@dataclass(frozen=True, slots=True)
class DictOf:
    keys: tuple[Any, ...]
    items: tuple[Pattern, ...]
    class_name: str = ""
    """Of the object whose attributes they are; none for a dict."""


DynamicPattern: TypeAlias = DynamicListOf | DynamicRowsOf
Pattern: TypeAlias = (
    Same | Nothing | TensorLeaf | NumberLeaf | Maybe | TupleOf | ListOf | DynamicPattern | DictOf
)
IsKnown = Callable[[sympy.Basic], bool]
"""Whether a size is known outside the block."""


def pattern_of(argument: Argument, is_known: IsKnown) -> Pattern:
    if isinstance(argument, Uninitialized):
        return Nothing()
    if isinstance(argument, Value):
        dims = _dims(argument.shape, is_known) if argument.has_shape else None
        return TensorLeaf(argument.dtype, dims)
    if is_number(argument):
        return NumberLeaf(number_dtype(argument))
    if isinstance(argument, MaybeNone):
        return Maybe(pattern_of(argument.content, is_known))
    if isinstance(argument, tuple):
        return TupleOf(tuple(pattern_of(a, is_known) for a in argument))
    if isinstance(argument, ScriptList):
        return state_pattern(argument.state, is_known, argument.number)
    if isinstance(argument, (ScriptDict, ScriptInstance)):
        entries = state_pattern(argument.state, is_known)
        assert isinstance(entries, DictOf)
        return replace(entries, class_name=getattr(argument, "class_name", ""))
    return Same(argument)


def state_pattern(state: Any, is_known: IsKnown, number: torch.dtype | None = None) -> Pattern:
    """The pattern of the state of a list, a dict or an object."""
    if isinstance(state, (DynamicItems, DynamicRows)):
        return dynamic_pattern(state, is_known)
    if isinstance(state, dict):
        return DictOf(tuple(state), tuple(pattern_of(a, is_known) for a in state.values()))
    return ListOf(tuple(pattern_of(a, is_known) for a in state), None if state else number)


def dynamic_pattern(state: Dynamic, is_known: IsKnown) -> DynamicPattern:
    if isinstance(state, DynamicRows):
        return DynamicRowsOf(tuple(dynamic_pattern(c, is_known) for c in state.columns))
    content = state.content
    dims = _dims(content.shape, is_known)
    if state.is_sequence:
        return DynamicListOf(content.dtype, dims, of_numbers=False, is_sequence=True)
    return DynamicListOf(content.dtype, dims[1:], state.of_numbers, False, dims[0])


def _dims(shape: Sequence[Dim | None], is_known: IsKnown) -> OpenDims:
    return tuple(
        d if isinstance(d, int) or (d is not None and is_known(d)) else None for d in shape
    )


# -- joins -----------------------------------------------------------------------------------------


def join(left: Pattern, right: Pattern, *, any_rank: bool = False) -> Pattern:
    """The pattern that values of both have. `any_rank`: nothing reads them, as the program returns
    them, so that tensors may have another rank in the other pattern."""
    each = partial(join, any_rank=any_rank)
    if left == right or isinstance(right, Nothing):
        return left
    if isinstance(left, Nothing):
        return right
    if isinstance(left, Same) or isinstance(right, Same):
        return _join_with_constant(left, right)
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        return Maybe(each(_content(left), _content(right)))
    if isinstance(left, TensorLeaf) and isinstance(right, TensorLeaf):
        if any_rank and left.dtype == right.dtype and left.rank != right.rank:
            return TensorLeaf(left.dtype, None)
        return TensorLeaf(left.dtype, _join_tensors(left.dtype, right.dtype, left.dims, right.dims))
    if (
        isinstance(left, (TupleOf, ListOf, DictOf))
        and isinstance(right, type(left))
        and len(left.items) == len(right.items)
        and (not isinstance(left, DictOf) or left == replace(right, items=left.items))
    ):
        return replace(left, items=tuple(map(each, left.items, right.items)))
    if isinstance(left, _LISTS) and isinstance(right, _LISTS):
        return _join_lists(left, right)
    if isinstance(left, NumberLeaf) and isinstance(right, NumberLeaf):
        raise CannotJoin(
            f"a number is {dtype_name(left.dtype)} here and {dtype_name(right.dtype)} there",
            "float() or int() of one of them",
        )
    raise _no_common_type(left, right)


def _content(pattern: Pattern) -> Pattern:
    return pattern.content if isinstance(pattern, Maybe) else pattern


def _join_with_constant(left: Pattern, right: Pattern) -> Pattern:
    if isinstance(left, Same) and isinstance(right, Same):
        if type(left.argument) is type(right.argument) and left.argument == right.argument:
            return left
    elif Same(None) in (left, right):
        other = right if left == Same(None) else left
        return other if isinstance(other, Maybe) else Maybe(other)
    raise _no_common_type(left, right)


_LISTS = (ListOf, DynamicListOf, DynamicRowsOf)


def _join_lists(left: ListOf | DynamicPattern, right: ListOf | DynamicPattern) -> Pattern:
    if isinstance(right, ListOf) and not isinstance(left, ListOf):
        left, right = right, left
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ListOf) and not one.items:
            return _without_length(as_dynamic(other))
    return join_dynamic(as_dynamic(left, like=right), as_dynamic(right))


def _without_length(pattern: DynamicPattern) -> DynamicPattern:
    if isinstance(pattern, DynamicRowsOf):
        return DynamicRowsOf(tuple(map(_without_length, pattern.columns)))
    return replace(pattern, length=None)


def join_dynamic(first: DynamicPattern, second: DynamicPattern) -> DynamicPattern:
    if isinstance(first, DynamicRowsOf) and isinstance(second, DynamicRowsOf):
        if len(first.columns) == len(second.columns):
            pairs = zip(first.columns, second.columns, strict=True)
            return DynamicRowsOf(tuple(join_dynamic(a, b) for a, b in pairs))
        raise CannotJoin(
            f"a list of tuples of {len(first.columns)} here and of {len(second.columns)} there"
        )
    if isinstance(first, DynamicRowsOf) or isinstance(second, DynamicRowsOf):
        raise CannotJoin("a list of tuples here and one of other items there")
    if first.of_numbers != second.of_numbers:
        raise CannotJoin("a list of numbers here and one of tensors there")
    dims = _join_tensors(first.dtype, second.dtype, first.dims, second.dims)
    # Only items of one shape can be stacked.
    if first.is_sequence or second.is_sequence or None in dims:
        return DynamicListOf(first.dtype, dims, of_numbers=False, is_sequence=True)
    length = first.length if first.length == second.length else None
    return DynamicListOf(first.dtype, dims, first.of_numbers, False, length)


def as_dynamic(pattern: Pattern, like: Pattern | None = None) -> DynamicPattern:
    """The pattern of a list with any number of items like these; stacked, if the items of `like`
    are."""
    if isinstance(pattern, (DynamicListOf, DynamicRowsOf)):
        return pattern
    assert isinstance(pattern, ListOf)
    if not pattern.items and pattern.number is not None:
        return DynamicListOf(pattern.number, (), True, False, 0)
    if not pattern.items:
        raise CannotJoin("an empty list, whose items have no known type")
    item = pattern.items[0]
    for other in pattern.items[1:]:
        item = join(item, other)
    length = len(pattern.items)
    if isinstance(item, TensorLeaf) and item.dims is not None:
        stacked = isinstance(like, DynamicListOf) and not like.is_sequence
        if stacked and None not in item.dims:
            return DynamicListOf(item.dtype, item.dims, False, False, length)
        return DynamicListOf(item.dtype, item.dims, of_numbers=False, is_sequence=True)
    if isinstance(item, NumberLeaf):
        return DynamicListOf(item.dtype, (), True, False, length)
    if isinstance(item, TupleOf) and item.items:
        rows = [row.items for row in pattern.items if isinstance(row, TupleOf)]
        columns: Sequence[Pattern | None] = [None] * len(item.items)
        if isinstance(like, DynamicRowsOf) and len(like.columns) == len(columns):
            columns = like.columns
        return DynamicRowsOf(
            tuple(
                as_dynamic(ListOf(tuple(row[place] for row in rows)), column)
                for place, column in enumerate(columns)
            )
        )
    raise _no_dynamic_list(item)


def _no_dynamic_list(item: Pattern) -> CannotJoin:
    hints: dict[type, str] = {
        DictOf: "a list of tensors for each key of the dicts, or for each attribute of the objects",
        ListOf: "a list of tuples, or one tensor that has the lists stacked",
        DynamicListOf: "one list of all items, and one of the lengths",
        DynamicRowsOf: "one list of all items, and one of the lengths",
        Maybe: "a list of the items that are not None, and one of their indices",
        Same: "a list of numbers",
    }
    if item == Same(None):
        item = Maybe(Nothing())
    return CannotJoin(
        f"the length of a list of {_describe(item, plural=True)} is computed at run time, and ONNX"
        " has lists of tensors only",
        hints.get(type(item), ""),
    )


def _join_tensors(
    left: torch.dtype, right: torch.dtype, left_dims: OpenDims | None, right_dims: OpenDims | None
) -> OpenDims:
    if left != right:
        raise CannotJoin(f"a tensor is {dtype_name(left)} here and {dtype_name(right)} there")
    if left_dims is None or right_dims is None or len(left_dims) != len(right_dims):
        counts = ["any number of" if d is None else len(d) for d in (left_dims, right_dims)]
        raise CannotJoin(
            f"a tensor has {counts[0]} dims here and {counts[1]} there",
            "unsqueeze() or reshape() to one number of dims",
        )
    return tuple(a if a == b else None for a, b in zip(left_dims, right_dims, strict=True))


def _no_common_type(left: Pattern, right: Pattern) -> CannotJoin:
    hint = ""
    if isinstance(left, DictOf) and isinstance(right, DictOf):
        hint = "set all keys before, and use None for what is not there yet"
    elif isinstance(left, Same) and isinstance(right, Same):
        hint = "a number instead, and an if for each of its values"
    return CannotJoin(f"{_describe(left)} here and {_describe(right)} there", hint)


def _describe(pattern: Pattern, *, plural: bool = False) -> str:
    if isinstance(pattern, Same):
        if isinstance(pattern.argument, RuntimeString) or plural:
            return "strings or constants" if plural else "a string that is made at run time"
        return repr(pattern.argument)
    if isinstance(pattern, DictOf) and not plural and not pattern.class_name:
        return f"a dict with the keys {list(pattern.keys)}"
    names: dict[type, str] = {
        TensorLeaf: "tensor", NumberLeaf: "number", Maybe: "optional", TupleOf: "tuple",
        ListOf: "list", DynamicListOf: "list", DynamicRowsOf: "list", DictOf: "dict",
    }  # fmt: skip
    is_object = isinstance(pattern, DictOf) and pattern.class_name
    name = "object" if is_object else names.get(type(pattern), "value")
    article = "an" if name[0] in "aeiou" else "a"
    return f"{name}s" if plural else f"{article} {name}"


def leaf_type(dtype: torch.dtype, dims: tuple[Any, ...] | None, is_sequence: bool) -> TensorType:
    if dims is None:
        return UnrankedType(dtype, ())
    return SequenceType(dtype, dims) if is_sequence else TensorType(dtype, dims)
