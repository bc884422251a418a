"""Checks of data in Python code, answered so that the recording holds for all valid inputs."""

from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import transformer

from sardonyx.aten.graph import SourceLocation
from sardonyx.aten.location import model_frames, running_model_code
from sardonyx.capture.function_overrides.function_mode import FunctionOverride, FunctionOverrides
from sardonyx.capture.function_overrides.source_statements import statements_of

_ANSWERED_NO = {
    (functional.__file__, "gaussian_nll_loss"),
    (transformer.__file__, "_detect_is_causal_mask"),
}
"""Is a variance negative: an error, which a file cannot raise. Is this mask the causal one: then
PyTorch would drop it and build its own, so "no" is right for every mask."""


_EQUAL_BRANCHES = {
    ("torchvision/ops/boxes.py", "batched_nms"),
    ("torchvision/ops/boxes.py", "_batched_nms_coordinate_trick"),
}
"""Functions that branch on the number of boxes where both branches give the same: one is faster for
many boxes, or for none."""


def is_either_branch_right(frame: FrameType) -> bool:
    """Whether a condition on sizes that data decides may be taken as false."""
    code = frame.f_code
    return any(
        code.co_name == name and code.co_filename.endswith(file) for file, name in _EQUAL_BRANCHES
    )


def answer_that_does_not_raise(frame: FrameType) -> bool | None:
    """What a condition is where the model's code goes on, if all that it does for the other answer
    is to raise: `assert ok`, `if not ok: raise ValueError`. None for other conditions, and where an
    error may be caught."""
    frames = list(model_frames(frame))
    sources = [statements_of(f.f_code.co_filename) for f in frames]
    for running, source in zip(frames, sources, strict=True):
        if source is None or running.f_lineno in source.guarded_lines:
            return None
    if not frames or sources[0] is None:
        return None
    answers = sources[0].answers
    return next((answers[p] for p in _evaluated(frames[0]) if p in answers), None)


def may_be_caught(frame: FrameType) -> bool:
    """Whether the model's code is where it may catch an error."""
    sources = ((f.f_lineno, statements_of(f.f_code.co_filename)) for f in model_frames(frame))
    return any(source is not None and line in source.guarded_lines for line, source in sources)


def _evaluated(frame: FrameType) -> Iterator[Any]:
    """Where the expression is whose truth a frame asks for, if it does: it ends right before the
    running instruction, which has its position or that of the statement."""
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    if "JUMP" in instruction or instruction in ("UNARY_NOT", "TO_BOOL"):
        *before, running = list(frame.f_code.co_positions())[: frame.f_lasti // 2 + 1]
        yield from itertools.islice((p for p in reversed(before) if p != running), 1)
        yield running


_ASKED_OF_MASK = "(mask == causal_comparison).all()"


def is_answered_no(place: SourceLocation) -> bool:
    """Whether a script has such a check at a place."""
    return _ASKED_OF_MASK in place.text and place.file.endswith("torch/nn/modules/transformer.py")


def seen_from_within(function: Any) -> Any:
    """`function` without its own look for modes, which leaves none of them for its body."""
    looks = dict.fromkeys(("has_torch_function", "has_torch_function_variadic"), lambda *_: False)
    names = {**function.__globals__, **looks}
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


_GAUSSIAN_NLL_LOSS = seen_from_within(functional.gaussian_nll_loss)


_ASKING = frozenset((torch.Tensor.__bool__, functional.gaussian_nll_loss))


class DataCheckOverride(FunctionOverride):
    """Answers where torch.nn itself turns a tensor into a Python bool, which data decides."""

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in _ASKING

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func == torch.Tensor.__bool__:
            asking = running_model_code(sys._getframe(1))
            if asking is not None and (asking.co_filename, asking.co_name) in _ANSWERED_NO:
                return False
        if func == functional.gaussian_nll_loss:
            with FunctionOverrides([self]):
                return _GAUSSIAN_NLL_LOSS(*args, **kwargs)
        return func(*args, **kwargs)
