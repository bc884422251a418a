"""Code that asks what a Python number is and not which value it has, as `c is True` and
`type(n) is int`: nothing is called for it that could be watched."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.capture.location import is_users, users_frames
from sardonyx.capture.watched_calls import ChangingMode

KindOf: TypeAlias = Callable[[Any], type | None]
"""The class of what an object stands for in eager PyTorch; None where it is what it is."""


def are_booleans_identified(frame: FrameType | None) -> bool:
    """Whether the model's code that runs, or what called it, tells booleans by `is`."""
    return any(_identifies_booleans(running.f_code) for running in users_frames(frame))


@lru_cache(maxsize=4096)
def _identifies_booleans(code: CodeType) -> bool:
    steps = list(dis.get_instructions(code))
    for index, step in enumerate(steps):
        if step.opname == "IS_OP":
            left, right = (steps[max(index - before, 0)] for before in (2, 1))
            if _is_boolean(right) or (_is_boolean(left) and right.opname.startswith("LOAD_")):
                return True
    return False


def _is_boolean(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_CONST" and isinstance(step.argval, bool)


class TypesOfNumbers:
    """Where a model's code asks for the type of a number, it gets that of eager PyTorch's."""

    def __init__(self, kind_of: KindOf, **others: Any) -> None:
        """`others`: further names that the model's code finds."""
        self._answers: dict[str, Any] = {
            "type": _type_of(kind_of),
            "isinstance": _isinstance_of(kind_of),
            **others,
        }
        self._changed: list[dict[str, Any]] = []

    def answered_for(self, model: Any) -> None:
        """In the files that the model's modules are in."""
        if isinstance(model, torch.nn.Module):
            forwards = {getattr(type(module), "forward", None) for module in model.modules()}
        else:
            forwards = {model, getattr(type(model), "__call__", None)}  # noqa: B004
        for forward in forwards:
            if isinstance(forward, FunctionType) and is_users(forward.__code__.co_filename):
                self._answer(forward.__globals__)

    def answered_in(self, frame: FrameType | None) -> None:
        """In the file of the code that runs, to which numbers are given."""
        running = next(users_frames(frame), None)
        if running is not None:
            self._answer(running.f_globals)

    def _answer(self, names: dict[str, Any]) -> None:
        if self._answers.keys().isdisjoint(names):
            names.update(self._answers)
            self._changed.append(names)

    def restore(self) -> None:
        while self._changed:
            names = self._changed.pop()
            for name in self._answers:
                names.pop(name, None)


class Answered:
    """While it is entered, the model's code is answered so."""

    def __init__(self, types: TypesOfNumbers, model: Any) -> None:
        self._types = types
        self._model = model

    def __enter__(self) -> None:
        self._types.answered_for(self._model)
        self._comparisons = _torch_private.comparisons_answered(_wants_boolean)
        self._comparisons.__enter__()

    def __exit__(self, *error: object) -> None:
        self._comparisons.__exit__(None, None, None)
        self._types.restore()


def _wants_boolean(frame: FrameType) -> bool:
    return is_users(frame.f_code.co_filename) and are_booleans_identified(frame)


def _type_of(kind_of: KindOf) -> type:
    """Python's `type`, but for objects that stand for others."""

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            kind = kind_of(args[0]) if len(args) == 1 else None
            return type(*args, **kwargs) if kind is None else kind

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, type)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, type)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is type

        def __hash__(cls) -> int:
            return hash(type)

    class Type(type, metaclass=Meta):
        pass

    return Type


def _isinstance_of(kind_of: KindOf) -> Callable[[Any, Any], bool]:
    def is_instance(instance: Any, kinds: Any, /) -> bool:
        if isinstance(instance, kinds):
            return True
        kind = kind_of(instance)
        return kind is not None and issubclass(kind, kinds)

    return is_instance


class KindsOfSizes(ChangingMode):
    """Under torch.export, where a dynamic size is no int, and a tensor none of torch.Tensor."""

    def __init__(self) -> None:
        super().__init__()
        self._types = TypesOfNumbers(_kind_under_export, len=_length)

    def answered(self, model: Any) -> Answered:
        return Answered(self._types, model)

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if func in GIVES_SIZES:
            self._types.answered_in(sys._getframe(1))
        return False

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _kind_under_export(value: Any) -> type | None:
    if _torch_private.stands_for_tensor(value):
        return torch.nn.Parameter if isinstance(value, torch.nn.Parameter) else torch.Tensor
    return _OF_SYMBOLS.get(type(value))


def _length(value: Any, /) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else len(value)


_OF_SYMBOLS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
GIVES_SIZES = frozenset(
    (
        torch.Tensor.shape.__get__,  # type: ignore[attr-defined]
        torch.Tensor.size,
        torch.Tensor.numel,
        torch.Tensor.nelement,
        torch.numel,
    )
)
