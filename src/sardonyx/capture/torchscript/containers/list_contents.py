"""Lists in the graph: tensors that have the items stacked, or sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten import sequences
from sardonyx.aten.graph import Argument, TensorType, Value
from sardonyx.capture.torchscript.control_flow.joined_types import (
    DynamicListOf,
    DynamicPattern,
    DynamicRowsOf,
    OpenDims,
    as_dynamic,
    state_pattern,
)
from sardonyx.capture.torchscript.errors import CannotJoin, ScriptRefusal
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    Dynamic,
    DynamicItems,
    DynamicRows,
    ListItems,
    ScriptList,
    columns_of,
    dtype_name,
    is_number,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_aten = torch.ops.aten
_SPLIT_BY_ONNXRUNTIME = frozenset(
    {torch.float16, torch.float32, torch.float64, torch.bool, torch.int32, torch.int64}
)
"""The dtypes that ONNX Runtime splits into a sequence."""


class ListContents:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader

    def new(self, items: ListItems | Sequence[Argument]) -> ScriptList:
        made: ScriptList = self._reader.heap.new(ScriptList(items))
        return made

    def as_dynamic(self, items: ListItems, like: Argument = None) -> Dynamic:
        """A list of known length as one that takes a computed index, and an item `like` this."""
        if not isinstance(items, tuple):
            return items
        try:
            alike = items if like is None else (*items, like)
            pattern = as_dynamic(state_pattern(alike, is_any_known))
        except CannotJoin as reason:
            raise ScriptRefusal(
                f"the index of a list is computed at run time: {reason}", reason.hint
            ) from reason
        return self.converted(items, _stacked_where_possible(pattern, len(items)))

    def converted(self, items: ListItems, pattern: DynamicPattern) -> Dynamic:
        if isinstance(pattern, DynamicRowsOf):
            pairs = zip(columns_of(items, len(pattern.columns)), pattern.columns, strict=True)
            return DynamicRows(tuple(self.converted(*pair) for pair in pairs))
        return DynamicItems(self.dynamic_content(items, pattern), pattern.of_numbers)

    def dynamic_content(self, items: ListItems, pattern: DynamicListOf) -> Value:
        """The tensor or sequence of a list that fits the pattern."""
        if isinstance(items, DynamicItems):
            return self.as_sequence(items) if pattern.is_sequence else items.content
        assert isinstance(items, tuple)
        if pattern.of_numbers:
            return self.numbers_tensor(items, pattern.dtype)
        if pattern.is_sequence:
            _check_sequence_of(pattern.dtype)
            op: Any = sequences.SEQUENCE if items else sequences.SEQUENCE_EMPTY
            arguments = [list(items)] if items else [pattern.dtype]
            return self.sequence(op, arguments, pattern.dtype, pattern.dims)
        if not items:
            sizes = [0, *pattern.dims]
            return self._reader.call(_aten.zeros.default, sizes, dtype=pattern.dtype)
        return self.stack(items, pattern)

    def stack(self, items: Sequence[Argument], like: DynamicItems | DynamicListOf) -> Value:
        if like.of_numbers:
            dtype = like.dtype if isinstance(like, DynamicListOf) else like.content.dtype
            numbers = [self._reader.numbers.as_tensor(item, dtype) for item in items]
            ones = [self._reader.call(_aten.reshape.default, n, [1]) for n in numbers]
            return ones[0] if len(ones) == 1 else self._reader.call(_aten.cat.default, ones, 0)
        dims = (len(items), *items[0].shape)
        return self._reader.emit_typed(sequences.ITEMS_STACK, [list(items)], items[0].dtype, dims)

    def cat(self, parts: list[Value], like: DynamicItems) -> DynamicItems:
        if like.of_numbers:
            content = self._reader.call(_aten.cat.default, parts, 0)
            return DynamicItems(content, of_numbers=True)
        length = sum(part.shape[0] for part in parts)
        dims = (length, *parts[0].shape[1:])
        made = self._reader.emit_typed(sequences.ITEMS_JOIN, [parts], parts[0].dtype, dims)
        return DynamicItems(made, of_numbers=False)

    def numbers_tensor(self, items: Sequence[Argument], dtype: torch.dtype | None = None) -> Value:
        """The 1-D tensor of numbers."""
        if dtype is None:
            kinds = {number_dtype(item) for item in items}
            dtype = next(
                (d for d in (torch.float64, torch.int64, torch.bool) if d in kinds), torch.int64
            )
        if all(not isinstance(i, (ComputedNumber, sympy.Basic)) for i in items):
            tensor = torch.tensor(list(items), dtype=dtype)
            return Value("numbers", TensorType(dtype, tuple(tensor.shape)), constant=tensor)
        parts = [self._reader.numbers.as_tensor(item, dtype) for item in items]
        return self._reader.call(_aten.stack.default, parts, 0)

    def as_sequence(self, items: DynamicItems) -> Value:
        content = items.content
        if items.is_sequence:
            return content
        check_can_be_split(content.dtype)
        op = sequences.SEQUENCE_UNSTACK
        return self.sequence(op, [content], content.dtype, content.shape[1:])

    def sequence(
        self, op: Any, arguments: list[Argument], dtype: torch.dtype, dims: OpenDims
    ) -> Value:
        """The result of an operator that gives a sequence of items of these dims."""
        return self._reader.emit_typed(op, arguments, dtype, dims, is_sequence=True)


def known_length(items: ListItems) -> int | None:
    if isinstance(items, DynamicRows):
        return known_length(items.columns[0])
    return len(items) if isinstance(items, tuple) else items.known_length


def is_list_of_numbers(items: ListItems) -> bool:
    if isinstance(items, tuple):
        return all(map(is_number, items))
    return isinstance(items, DynamicItems) and items.of_numbers


def is_any_known(size: sympy.Basic) -> bool:
    """Every size is, where no block is left."""
    return True


def _stacked_where_possible(pattern: DynamicPattern, length: int) -> DynamicPattern:
    if isinstance(pattern, DynamicRowsOf):
        columns = (_stacked_where_possible(c, length) for c in pattern.columns)
        return DynamicRowsOf(tuple(columns))
    if pattern.is_sequence and None not in pattern.dims:
        return replace(pattern, is_sequence=False, length=length)
    return pattern


def _check_sequence_of(dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 or dtype.is_complex:
        name = dtype_name(dtype)
        raise ScriptRefusal(
            f"the length of a list of {name} tensors is computed at run time, and ONNX has no"
            f" sequences of {name}",
            "stack items of one shape, or use float32",
        )


def check_can_be_split(dtype: torch.dtype) -> None:
    _check_sequence_of(dtype)
    if dtype not in _SPLIT_BY_ONNXRUNTIME:
        raise ScriptRefusal(
            f"ONNX Runtime does not split a tensor of {dtype_name(dtype)} into a list",
            "to(torch.int32) before",
        )
