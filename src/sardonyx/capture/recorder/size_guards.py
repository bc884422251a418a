"""What a running model asks of sizes, and what the recording takes for granted then."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import sympy

from sardonyx import _torch_private
from sardonyx.aten.location import Place, innermost_user_place, place_text
from sardonyx.capture.flat_model import SizeCondition
from sardonyx.errors import CaptureError, format_message

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


_MOST_NESTED = 2


class SizeLooks:
    """Every look at a size, or at a condition on sizes."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.conditions: list[SizeCondition] = []
        """What the run took for granted."""
        self.small_sizes_aside: dict[sympy.Basic, Place] = {}
        """What the model's own code was told, which holds for sizes from 2 on."""
        self.unread = _torch_private.UnreadConditions(innermost_user_place)
        self.stands_for: dict[sympy.Basic, sympy.Basic] = {}
        """By symbols that stand for large expressions, those."""
        self._answered: list[tuple[sympy.Basic, Any]] = []
        """What the operator that runs was told without a condition."""
        self.is_by_operator = False
        """Whether an operator runs, whose shape rule it is that looks."""

    def begin_operator(self) -> int:
        """How many conditions are known."""
        self._answered.clear()
        self.is_by_operator = True
        return len(self.conditions)

    def note_failure(self, known: int) -> None:
        """An operator raised after this many conditions: a model that goes on decides by those that
        it added, and by what it was told."""
        self.conditions[known:] = [replace(c, in_model_code=True) for c in self.conditions[known:]]
        for expression, answer in self._answered:
            self.small_sizes_aside.setdefault(_holds(expression, answer), self._recorder.place())

    def _whole(self, expression: sympy.Basic) -> sympy.Basic:
        """Without symbols that stand for large expressions, where they do not nest too deep: to
        look at one is to look at the sizes that it is made of."""
        for _ in range(_MOST_NESTED):
            if expression.free_symbols.isdisjoint(self.stands_for):
                return expression
            expression = expression.xreplace(self.stands_for)
        raise CaptureError(
            format_message(
                "the model's code looks at a size that is computed in too many steps",
                [("at", place_text(self._recorder.place()))],
            )
        )

    def look(self, expression: sympy.Basic, frame: FrameType, is_check: bool, evaluate: Any) -> Any:
        """Python, or the shape rule of an operator, wants to know a size or a condition.
        `is_check`: nothing is decided by it."""
        if not self.is_by_operator and not is_check:
            expression = self._whole(expression)
        known = _torch_private.guard_count(self._recorder.mode)
        if is_check:
            self.unread.read_expression(expression)
        try:
            answer = evaluate(expression)
        except Exception as error:
            if not _torch_private.is_data_dependent_error(error, expression):
                raise
            if not self._recorder.example.follows and not self.is_by_operator:
                self._recorder.refuse(error)
            return self._recorder.example.answer(expression, error, frame)
        is_models = not (self.is_by_operator or is_check)
        is_models = is_models and _torch_private.is_code_of_models(frame)
        found = _torch_private.guard_expressions(self._recorder.mode)[known:]
        if found:
            place = self._recorder.place(frame)
            self.conditions += [SizeCondition(guard, place, is_models) for guard in found]
        elif self.is_by_operator:
            self._answered.append((expression, answer))
        elif is_models:
            self.small_sizes_aside.setdefault(
                _holds(expression, answer), innermost_user_place(frame)
            )
        return answer


def _holds(expression: sympy.Basic, answer: Any) -> sympy.Basic:
    """The condition that an answer stands for."""
    if answer in (sympy.true, sympy.false):
        return expression if answer else sympy.Not(expression)
    return sympy.Eq(expression, answer, evaluate=False)  # a number, as of range(min(n, 2))
