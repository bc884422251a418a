"""What a running model asks of sizes, and what the recording takes for granted then."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import sympy

from sardonyx import _torch_private
from sardonyx.capture.location import Place, innermost_user_place
from sardonyx.capture.size_conditions import SizeCondition

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


class SizeLooks:
    """Every look at a size, or at a condition on sizes."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.conditions: list[SizeCondition] = []
        """What the run took for granted."""
        self.small_sizes_aside: dict[sympy.Basic, Place] = {}
        """What the model's own code was told, which holds for sizes from 2 on."""
        self.unread = _torch_private.UnreadConditions(innermost_user_place)
        self.is_by_operator = False
        """Whether an operator runs, whose shape rule it is that looks."""

    def note_failure(self, known: int) -> None:
        """An operator raised after this many conditions: a model that goes on decides by those that
        it added."""
        self.conditions[known:] = [replace(c, in_model_code=True) for c in self.conditions[known:]]

    def look(self, expression: sympy.Basic, frame: FrameType, is_check: bool, evaluate: Any) -> Any:
        """Python, or the shape rule of an operator, wants to know a size or a condition.
        `is_check`: nothing is decided by it."""
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
        elif is_models:
            if answer in (sympy.true, sympy.false):
                holds = expression if answer else sympy.Not(expression)
            else:  # a number, as of range(min(n, 2))
                holds = sympy.Eq(expression, answer, evaluate=False)
            if holds not in self.small_sizes_aside:
                self.small_sizes_aside[holds] = innermost_user_place(frame)
        return answer
