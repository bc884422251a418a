"""Symbolic numbers as a model has them: they compute as Python's do, and are of its classes."""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from sardonyx._torch_private.paths import OWN_FOLDER, TORCH_FOLDER
from sardonyx._torch_private.symbolic_shapes.sizes import is_large


class UnreadConditions:
    """Comparisons in the model's code whose result nothing has read yet: what is left at the end
    can only have been compared by `is`."""

    def __init__(self, place_of: Callable[[FrameType], Any]) -> None:
        self._place_of = place_of
        self._found: dict[int, tuple[Any, Any]] = {}
        """By id: the condition, which keeps the id from being used again, and its place."""

    def made(self, condition: Any, frame: FrameType) -> None:
        self._found[id(condition)] = condition, self._place_of(frame)

    def read(self, condition: Any) -> None:
        self._found.pop(id(condition), None)

    def read_expression(self, expression: Any) -> None:
        """The same where only the expression is known."""
        for key, (condition, _) in list(self._found.items()):
            if condition.node.expr == expression:
                del self._found[key]

    def pop_all(self) -> list[tuple[Any, Any]]:
        """The expressions that are left, and their places."""
        found = [(condition.node.expr, place) for condition, place in self._found.values()]
        self._found.clear()
        return found


@dataclass(frozen=True, slots=True)
class NumberObserver:
    """What a recording notes about the symbolic numbers that the model's code computes with."""

    text_made: Callable[[Any, FrameType], None]
    """Called where the model's code formats a number: with its expression."""
    simplified: Callable[[Any], Any]
    """Returns a symbol for a number whose expression has become large."""
    unread: UnreadConditions
    numbers: list[weakref.ref[Any]]
    """All that the model's code was given."""
    calls_cached_function: Callable[[FrameType], bool]
    """Whether a frame is calling a function of functools.lru_cache."""


def _observer_of(number: Any) -> NumberObserver | None:
    env = getattr(number.node, "shape_env", None)
    observer: NumberObserver | None = getattr(env, "observer", None)
    return observer


def as_model_number(value: Any) -> Any:
    """A symbolic number, or those in a shape, in the form for models."""
    kind = _FORMS.get(type(value))
    if kind is not None:
        number = kind(value.node)
        observer = _observer_of(value)
        if observer is not None:
            observer.numbers.append(weakref.ref(number))
        return number
    if type(value) is torch.Size and any(type(size) in _FORMS for size in value):
        return torch.Size([as_model_number(size) for size in value])
    return value


def _is_code_of_model(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith((TORCH_FOLDER, OWN_FOLDER)) and _SYMPY not in file


_SYMPY = "/sympy/"


class _Number:
    """What the three kinds share."""

    eager: type
    node: Any

    def __repr__(self) -> str:
        observer, frame = _observer_of(self), sys._getframe(1)
        if observer is not None and _is_code_of_model(frame):
            observer.text_made(self.node.expr, frame)
        return str(self.node.expr)

    def __reduce__(self) -> Any:
        raise TypeError("a size that is only known at run time cannot be pickled")


def _note_read(number: Any) -> None:
    observer = _observer_of(number)
    if observer is not None:
        observer.unread.read(number)


def _class_of(self: Any) -> type:
    if not _is_code_of_model(sys._getframe(1)):
        return type(self)
    _note_read(self)
    eager: type = self.eager
    return eager


class Size(_Number, torch.SymInt):
    eager = int
    __class__ = property(_class_of)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


class Real(_Number, torch.SymFloat):
    eager = float
    __class__ = property(_class_of)


class Condition(_Number, torch.SymBool):
    eager = bool
    __class__ = property(_class_of)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, bool):
            return bool(self) == other
        return as_model_number(torch.SymBool.__eq__(self, other))

    __hash__ = torch.SymBool.__hash__

    def __bool__(self) -> bool:
        _note_read(self)
        return bool(torch.SymBool.__bool__(self))  # type: ignore[no-untyped-call]

    def __index__(self) -> int:
        return int(bool(self))


_FORMS: dict[type, Any] = {torch.SymInt: Size, torch.SymFloat: Real, torch.SymBool: Condition}
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_METHODS = (
    *(f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r")),
    *(f"__{name}__" for name in ("lshift", "rshift", "rlshift", "rrshift", "neg", "pos", "abs")),
    *(f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne", "invert")),
    *(f"__{name}__" for name in ("floor", "ceil", "trunc", "round", "sym_max", "sym_min")),
    *(f"__{name}__" for name in ("sym_float", "sym_not", "sym_ite")),
    "is_integer",
    "conjugate",
)
_PLAINER = (torch.SymInt, torch.SymFloat)
_ROUNDED = frozenset(
    f"__{prefix}{name}__" for name in ("add", "sub", "mul") for prefix in ("", "r")
)


def _for_models(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute)
    def computed(self: Any, *others: Any) -> Any:
        result = compute(self, *others)
        if name in _ROUNDED and type(result) is torch.SymFloat:
            result = _rounded_once(result)
        observer = _observer_of(self)
        if observer is None:
            return as_model_number(result)
        if type(result) in _PLAINER and is_large(result.node.expr):
            result = observer.simplified(result)
        number = as_model_number(result)
        for operand in (self, *others):
            if isinstance(operand, torch.SymBool):
                observer.unread.read(operand)
        frame = sys._getframe(1)
        if type(number) is Condition and _is_code_of_model(frame):
            observer.unread.made(number, frame)
        return number

    return computed


def _hash_in_model(number: Any) -> int:
    """That of the number, as a key of a dict is found by it; but a cached function is called again
    for each other expression."""
    observer = _observer_of(number)
    if observer is not None and observer.calls_cached_function(sys._getframe(1)):
        return hash(number.node.expr)
    return hash(number.eager(number))


def _rounded_once(number: Any) -> Any:
    """Sums and products are rounded one by one, as Python does it; sympy would multiply the numbers
    of h * 0.29 * 100 first."""
    node = number.node
    expression = node._expr
    if expression.free_symbols and not isinstance(expression, _rounded_kind()):
        node._expr = _rounded_kind()(expression)
        node._optimized_summation = False
    return number


def _whole_quotient(of_integers: Callable[[Any, Any], Any], *, is_reversed: bool) -> Any:
    """4 // 0.1 is 39.0, what is left over by the remainder; PyTorch rounds the quotient 40.0."""

    def quotient(self: Any, other: Any) -> Any:
        is_float = any(isinstance(number, (float, torch.SymFloat)) for number in (self, other))
        if not is_float or not isinstance(other, (int, float, torch.SymInt, torch.SymFloat)):
            return as_model_number(of_integers(self, other))
        left, right = (other, self) if is_reversed else (self, other)
        to_float: Callable[[Any], Any] = torch.sym_float
        left, right = as_model_number(to_float(left)), as_model_number(to_float(right))
        nearly_whole = (left - left % right) / right
        return as_model_number(to_float(math.floor(nearly_whole + 0.5)))

    return quotient


@functools.cache
def _rounded_kind() -> Any:
    """What keeps sympy from taking an expression apart; of a number, it is that number."""
    from torch.utils._sympy.functions import Identity

    class Rounded(Identity):
        _torch_handler_name = "identity"

        @classmethod
        def eval(cls, number: Any) -> Any:
            return number if number.is_Number else None

    Rounded.__name__ = "Identity"  # as PyTorch's printers and ours know it
    return Rounded


for _kind, _form in _FORMS.items():
    for _name in _METHODS:
        _own = getattr(_kind, _name, None)
        if _own is not None and _name not in vars(_form) and _own is not getattr(object, _name, 0):
            setattr(_form, _name, _for_models(_name, _own))
for _form, _kind in ((Size, torch.SymInt), (Real, torch.SymFloat)):
    for _name in ("__floordiv__", "__rfloordiv__"):
        _is_reversed = _name == "__rfloordiv__"
        setattr(_form, _name, _whole_quotient(getattr(_kind, _name), is_reversed=_is_reversed))
    _form.__hash__ = _hash_in_model  # type: ignore[method-assign]
