"""The sizes of a recording: the conditions on them that it assumes, and symbols for large
expressions."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import sympy
import torch
from sympy.logic.boolalg import Boolean

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.location import Place, innermost_user_place, place_text
from sardonyx.capture.function_overrides.data_checks import (
    answer_that_does_not_raise,
    is_either_branch_right,
    may_be_caught,
)
from sardonyx.errors import FinalCaptureError
from sardonyx.notes import error_at

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


_MOST_NESTED = 2


class SizeGuards:
    """Evaluates sizes and conditions on sizes, and notes what the recording assumes by that."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.conditions: list[SizeCondition] = []
        """What the run assumed."""
        self.zero_one_answers: dict[sympy.Basic, Place] = {}
        """Answers to the model's own code without a guard: they hold for sizes from 2 on."""
        self.unread = _torch_private.UnreadConditions(innermost_user_place)
        self._answered: list[tuple[sympy.Basic, Any]] = []
        """Answers to the running operator without a guard."""
        self.in_operator = False
        """Whether an operator is running, whose shape rule is what evaluates."""

    def begin_operator(self) -> int:
        """How many conditions are known."""
        self._answered.clear()
        self.in_operator = True
        return len(self.conditions)

    def note_failure(self, known: int) -> None:
        """An operator raised after this many conditions: a model that continues depends on those
        that it added, and on the answers without a guard."""
        self.conditions[known:] = [replace(c, in_model_code=True) for c in self.conditions[known:]]
        for expression, answer in self._answered:
            self.zero_one_answers.setdefault(_holds(expression, answer), self._recorder.place())

    def _whole(self, expression: sympy.Basic) -> sympy.Basic:
        """Without symbols that stand for large expressions, where they do not nest too deep: to
        look at one is to look at the sizes that it is made of."""
        for _ in range(_MOST_NESTED):
            large = self._recorder.large_sizes.expressions
            if expression.free_symbols.isdisjoint(large):
                return expression
            expression = expression.xreplace(large)
        raise error_at(
            FinalCaptureError,
            self._recorder.place(),
            "the model's code looks at a size that is computed in too many steps",
            "a fixed dim, or a condition on the dim itself",
        )

    def evaluate(
        self, expression: sympy.Basic, frame: FrameType, is_check: bool, evaluate: Any
    ) -> Any:
        """A size or a condition that Python, or the shape rule of an operator, needs. `is_check`:
        nothing depends on the answer."""
        if not self.in_operator and not is_check:
            expression = self._whole(expression)
        known = _torch_private.guard_count(self._recorder.mode)
        if is_check:
            self.unread.read_expression(expression)
        try:
            answer = evaluate(expression)
        except Exception as error:
            if not _torch_private.is_data_dependent_error(error, expression):
                raise
            answer = self._answer_for_all_data(expression, frame)
            if answer is not None:
                return sympy.sympify(answer)
            error.may_be_caught = may_be_caught(frame)  # type: ignore[attr-defined]
            if not self._recorder.example.follows and not self.in_operator:
                self._recorder.refuse(error)
            return self._recorder.example.answer(expression, error, frame)
        is_models = not (self.in_operator or is_check)
        is_models = is_models and _torch_private.is_code_of_models(frame)
        found = _torch_private.guard_expressions(self._recorder.mode)[known:]
        if found:
            place = self._recorder.place(frame)
            self.conditions += [SizeCondition(guard, place, is_models) for guard in found]
        elif self.in_operator:
            self._answered.append((expression, answer))
        elif is_models:
            self.zero_one_answers.setdefault(
                _holds(expression, answer), innermost_user_place(frame)
            )
        return answer

    def _answer_for_all_data(self, expression: sympy.Basic, frame: FrameType) -> bool | None:
        """Of a condition that data decides, where the other answer gives nothing else."""
        if self.in_operator or not isinstance(expression, Boolean):
            return None
        if is_either_branch_right(frame):
            return False
        answer = answer_that_does_not_raise(frame)
        if answer is None or self._recorder.example.fails(expression, answer):
            return None
        place = place_text(innermost_user_place(frame))
        note = f"the file does not raise what the model raises for some data at {place}"
        self._recorder.notes[note] = None
        return answer


def _holds(expression: sympy.Basic, answer: Any) -> sympy.Basic:
    """The condition that an answer stands for."""
    if answer in (sympy.true, sympy.false):
        return expression if answer else sympy.Not(expression)
    return sympy.Eq(expression, answer, evaluate=False)  # a number, as of range(min(n, 2))


class LargeExpressions:
    """Expressions of sizes that have grown large: a symbol stands for each, which the graph
    computes once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._symbols: dict[tuple[sympy.Basic, int], Any] = {}
        """By expression, and the block it is computed in."""
        self.expressions: dict[sympy.Basic, sympy.Basic] = {}
        """By symbol, what it stands for."""

    def replaced_in(self, result: Any) -> Any:
        """The result of an operator, its sizes symbols where their expressions are large."""
        if isinstance(result, (list, tuple)):
            return type(result)(map(self.replaced_in, result))
        if not isinstance(result, torch.Tensor) or not result._has_symbolic_sizes_strides:
            return result
        sizes: list[Any] = list(result.shape)
        expressions = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
        large = [e for e in expressions if _torch_private.is_large(e)]
        if not large or not _torch_private.is_plain(result):
            return result
        symbols = {}
        for expression in large:
            symbols[expression] = self._known(expression)
            if symbols[expression] is None:
                mode = self._recorder.mode
                symbols[expression] = _torch_private.new_data_dependent_length(mode)
                self._note(expression, symbols[expression])
        return _torch_private.with_other_sizes(result, symbols)

    def symbol_for(self, number: Any) -> Any:
        """A symbol for a number whose expression is large."""
        recorder, expression = self._recorder, number.node.expr
        symbol = self._known(expression)
        if symbol is None:
            dtype = torch.int64 if isinstance(number, torch.SymInt) else torch.float64
            with recorder.dispatch.outside(), _torch_private.no_modes(), torch.no_grad():
                op = torch.ops.aten.scalar_tensor.default
                symbol = recorder.number_of(recorder.record_plain(op, (number,), {"dtype": dtype}))
            if expression.is_nonnegative and isinstance(number, torch.SymInt):
                _torch_private.limit_size(symbol, 0, None)
            self._note(expression, symbol)
        return symbol

    def _known(self, expression: sympy.Basic) -> Any:
        return self._symbols.get((expression, self._recorder.blocks_met))

    def _note(self, expression: sympy.Basic, symbol: Any) -> None:
        self._symbols[expression, self._recorder.blocks_met] = symbol
        self.expressions[symbol.node.expr] = expression
