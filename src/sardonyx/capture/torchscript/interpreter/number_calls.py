"""Operators on Python numbers, and on lists of them, that have no ATen operator of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import Argument
from sardonyx.capture.torchscript.refusals import NotHere, ScriptRefusal
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicItems,
    ScriptList,
    is_constant,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader


class NumberCalls:
    """Each method is one operator; the table below names them."""

    def __init__(self, reader: GraphReader) -> None:
        self._numbers = reader.numbers

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


def _reduction(name: str, op: Any, *start: Argument) -> Callable[..., Argument]:
    return lambda calls, items, *rest: calls.reduced(items, rest, name, op, *start)


_NUMBER_CALLS: dict[str, Callable[..., Any]] = {
    "aten::__derive_index": NumberCalls.derive_index,
    "aten::__range_length": NumberCalls.range_length,
    "aten::all": _reduction("aten::__and__", torch.ops.aten.all.default, True),
    "aten::any": _reduction("aten::__or__", torch.ops.aten.any.default, False),
    "aten::divmod": NumberCalls.divided,
    "aten::sum": _reduction("aten::add", torch.ops.aten.sum.default, 0),
    "prim::max": _reduction("prim::max", torch.ops.aten.amax.default),
    "prim::min": _reduction("prim::min", torch.ops.aten.amin.default),
}
