"""Operators on Python numbers, and on lists of them, that have no ATen operator of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.errors import NotHere, ScriptRefusal
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicItems,
    ListItems,
    ScriptList,
    is_constant,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_aten = torch.ops.aten


class NumberCalls:
    """Each method is one operator; the table below names them."""

    def __init__(self, reader: GraphReader) -> None:
        self._numbers = reader.numbers
        self._lists = reader.lists

    def call(self, kind: str, arguments: list[Argument]) -> Argument:
        operator = _NUMBER_CALLS.get(kind)
        if operator is None:
            raise NotHere
        return operator(self, *arguments)

    def reduced(
        self, given: Argument, rest: tuple[Argument, ...], name: str, op: Any, *start: Argument
    ) -> Argument:
        """A list of numbers to one, by an operator on two, or by one on the tensor of them."""
        if rest or not isinstance(given, ScriptList) or is_constant(given):
            raise NotHere
        items = given.state
        if isinstance(items, DynamicItems):
            return ComputedNumber(self._numbers.call(op, items.content))
        is_logical = isinstance(start[0] if start else 0, bool)
        found, *others = start + tuple(items)
        for item in others:
            kinds = (number_dtype(found), number_dtype(item))
            wanted = torch.float64 if torch.float64 in kinds else torch.int64
            if is_logical:
                wanted = torch.bool
                item = item if number_dtype(item) == wanted else self._is_true(item)
            found = self._numbers.compute(name, [found, item], wanted)
        return found

    def _is_true(self, number: Argument) -> Argument:
        return self._numbers.compute("aten::ne", [number, 0], torch.bool)

    def divided(self, left: Argument, right: Argument) -> Argument:
        """`divmod`."""
        if is_constant(left) and is_constant(right):
            raise NotHere
        if torch.float64 in (number_dtype(left), number_dtype(right)):
            raise ScriptRefusal("divmod() of floats has no ONNX form", "// and math.fmod()")
        return tuple(
            self._numbers.compute(name, [left, right], torch.int64)
            for name in ("aten::floordiv", "aten::remainder")
        )

    def range_length(self, start: Argument, end: Argument, step: Argument) -> Argument:
        if all(isinstance(a, int) for a in (start, end, step)):
            return len(range(start, end, step))
        numbers = self._numbers
        if not isinstance(step, int):
            # Rounded up, whatever the sign of the step.
            span = numbers.compute("aten::sub", [start, end], torch.int64)
            span = numbers.compute("aten::floordiv", [span, step], torch.int64)
            count = numbers.compute("aten::neg", [span], torch.int64)
            return numbers.compute("prim::max", [count, 0], torch.int64)
        first, last = (start, end) if step > 0 else (end, start)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        if abs(step) > 1:
            span = numbers.divided_up(span, abs(step))
        if start == 0 and isinstance(span, sympy.Expr) and span.is_nonnegative:
            return span
        return numbers.compute("prim::max", [span, 0], torch.int64)

    def derive_index(self, index: Argument, start: Argument, step: Argument) -> Argument:
        moved = self._numbers.compute("aten::mul", [index, step], torch.int64)
        return self._numbers.compute("aten::add", [start, moved], torch.int64)

    # -- lists of numbers ------------------------------------------------------------------------

    def contains(self, items: ListItems, number: Argument) -> Argument:
        if isinstance(items, tuple):
            found: Argument = False
            for held in items:
                same = self._numbers.compute("aten::eq", [held, number], torch.bool)
                found = self._numbers.compute("aten::__or__", [found, same], torch.bool)
            return found
        return ComputedNumber(self._numbers.call(_aten.any.default, self._equal(items, number)))

    def count(self, items: ListItems, number: Argument) -> Argument:
        return ComputedNumber(self._numbers.call(_aten.sum.default, self._equal(items, number)))

    def index(self, items: ListItems, number: Argument) -> Argument:
        """The first of its places; PyTorch raises where it has none."""
        equal = self._equal(items, number)
        length = equal.shape[0]
        places = self._numbers.call(_aten.arange.default, length, dtype=torch.int64)
        beyond = self._numbers.as_tensor(length, torch.int64)
        found = self._numbers.call(_aten.where.self, equal, places, beyond)
        return ComputedNumber(self._numbers.call(_aten.amin.default, found))

    def ordered(self, items: ListItems, reverse: Argument = False) -> ListItems:
        content = self._numbers.call(_aten.sort.default, self._content(items), 0, reverse)
        return DynamicItems(content, of_numbers=True)

    def _equal(self, items: ListItems, number: Argument) -> Value:
        return self._numbers.call(
            _aten.eq.Tensor, self._content(items), self._numbers.as_tensor(number)
        )

    def _content(self, items: ListItems) -> Value:
        if isinstance(items, tuple):
            return self._lists.numbers_tensor(items)
        assert isinstance(items, DynamicItems)
        return items.content


def _reduction(name: str, op: Any, *start: Argument) -> Callable[..., Argument]:
    return lambda calls, items, *rest: calls.reduced(items, rest, name, op, *start)


_NUMBER_CALLS: dict[str, Callable[..., Any]] = {
    "aten::__derive_index": NumberCalls.derive_index,
    "aten::__range_length": NumberCalls.range_length,
    "aten::all": _reduction("aten::__and__", _aten.all.default, True),
    "aten::any": _reduction("aten::__or__", _aten.any.default, False),
    "aten::divmod": NumberCalls.divided,
    "aten::sum": _reduction("aten::add", _aten.sum.default, 0),
    "prim::max": _reduction("prim::max", _aten.amax.default),
    "prim::min": _reduction("prim::min", _aten.amin.default),
}
