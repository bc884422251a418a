"""Sizes while tracing: numbers that the record follows, and that behave as Python's do."""

from __future__ import annotations

import builtins
import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.capture.identity_checks import (
    GIVES_SIZES,
    TypesOfNumbers,
    are_booleans_identified,
)
from sardonyx.capture.location import Place, innermost_user_place, is_asked_by_torch
from sardonyx.capture.watched_calls import ChangingMode, tensors_in

Compute: TypeAlias = Callable[..., torch.Tensor]


class TracedSize(torch.Tensor):
    """A tensor that stands where eager PyTorch has a Python number: int64, float64 for what is
    computed by a division and the like, bool for how two numbers compare.

    The tracer gives a size as a tensor. Unlike a tensor, a number is never changed in place, has
    digits to round, and is a key that equal numbers find.
    """

    __torch_function__ = _torch_private.WITHOUT_TORCH_FUNCTION

    is_exact: bool = True
    """Whether no digit was lost in computing it, so that the order of the steps is the same."""
    is_one_quotient: bool = False
    """Whether it is one integer divided by another."""

    @property
    def __class__(self) -> type:
        """What isinstance() finds, next to the class that it is."""
        if self.dtype == torch.bool:
            return bool
        return float if self.is_floating_point() else int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise AttributeError("a traced size stays one")

    def __ceil__(self) -> torch.Tensor:
        return torch.ceil(self)

    def __floor__(self) -> torch.Tensor:
        return torch.floor(self)

    def __trunc__(self) -> torch.Tensor:
        return torch.trunc(self)

    def __round__(self, digits: int | None = None) -> Any:
        # To some digit, Python rounds the decimal number that is meant.
        return torch.round(self) if digits is None else round(_value(self), digits)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __hash__(self) -> int:
        return hash(_value(self))

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(_value(self))

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(_value(self), form)


def _kind_of(value: Any) -> type | None:
    return value.__class__ if type(value) is TracedSize else None


class _RestoresForDynamo:
    """A finder of modules that finds none: where torch._dynamo is first imported while a model runs
    (`torch.cond`), Python's own functions must be there, for it learns them by heart."""

    def __init__(self, replaced: contextlib.ExitStack) -> None:
        self._replaced = replaced

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch._dynamo":
            self._replaced.close()


class TracedSizes(ChangingMode):
    """Makes the sizes that the tracer gives numbers that compute as Python's do, and follows them
    into tensors that are made of them; only those that data decides where it does not follow all,
    the others are Python's own numbers."""

    def __init__(self, *, follows_all: bool) -> None:
        super().__init__()
        self._follows_all = follows_all
        self.gave_numbers = False
        self._replaced = contextlib.ExitStack()
        self._restores = _RestoresForDynamo(self._replaced)
        self._origins = _torch_private.TracedOrigins()
        self._types = TypesOfNumbers(_kind_of)
        self._answers: dict[int, tuple[torch.Tensor, Place]] = {}
        """What comparisons gave that no call has taken yet, and where."""
        self.compared: set[float] = set()
        """With what sizes are compared, by how many times the size it is."""

    @contextlib.contextmanager
    def followed_by_python(self, model: Any) -> Iterator[None]:
        """`len`, `max`, `min` and the functions of `math`, which ask a tensor for its value, and
        `type` are others as long as the model's code runs."""
        self._types.answered_for(model)
        self._origins = _torch_private.TracedOrigins()  # of the graph that is begun
        for owner, functions in ((builtins, _BUILTINS), (math, _MATH)):
            for name, function in functions.items():
                original = getattr(owner, name)
                setattr(owner, name, function(original))
                self._replaced.callback(setattr, owner, name, original)
        self._replaced.enter_context(_torch_private.checks_answered(self._checked))
        if not self._follows_all:
            self._replaced.enter_context(_torch_private.sizes_as_numbers(self._gives_numbers))
        sys.meta_path.insert(0, self._restores)
        try:
            yield
        finally:
            sys.meta_path.remove(self._restores)
            self._replaced.close()
            self._types.restore()

    def unread_answers(self, results: Iterable[Any]) -> list[Place]:
        """Where sizes are compared and what comes of it is in no call, nor among the results: if
        the model looks at it, then by `is`."""
        returned = {id(result) for result in results}
        return [place for key, (_, place) in self._answers.items() if key not in returned]

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if func in GIVES_SIZES or func in _MAKES_TENSORS or func is torch.Tensor.item:
            return True
        return any(type(a) is TracedSize for a in args) or bool(
            kwargs and any(type(a) is TracedSize for a in kwargs.values())
        )

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in GIVES_SIZES:
            result = func(*args, **kwargs)
            for size in result if isinstance(result, tuple) else (result,):
                _number(size)
            self._types.answered_in(sys._getframe(1))
            return result
        if self._answers:
            for taken in tensors_in((*args, *kwargs.values())):
                self._answers.pop(id(taken), None)
        if func is torch.Tensor.item and self._is_of_sizes(args[0]):
            return _number(_as_number(args[0]))
        if func in _MAKES_TENSORS:
            return _made_tensor(func, args, kwargs)
        if not any(type(a) is TracedSize for a in (*args, *kwargs.values())):
            return func(*args, **kwargs)
        func = _NOT_IN_PLACE.get(func, func) if args and type(args[0]) is TracedSize else func
        compute = _ARITHMETIC.get(func)
        if compute is not None and not kwargs and all(map(_is_number, args)):
            return _computed(func, compute, args)
        if func in _COMPARISONS and all(map(_is_number, args)):
            size, other = map(_example, args)
            self.compared |= {a / b for a, b in ((other, size), (size, other)) if a > 0 and b > 0}
            return self._answer(func(*args, **kwargs))
        return func(*_as_eager_promotes(args), **kwargs)

    def _answer(self, compared: torch.Tensor) -> Any:
        frame = sys._getframe(2)
        if are_booleans_identified(frame):
            return bool(compared)
        answer = _number(compared)
        if not is_asked_by_torch(frame):
            self._answers[id(answer)] = answer, innermost_user_place(frame)
        return answer

    def _checked(self, condition: Any) -> Any:
        """What `torch._check` is told of a comparison. It decides nothing but whether to raise."""
        if type(condition) is not TracedSize:
            return condition
        self._answers.pop(id(condition), None)
        return bool(_example(condition))

    def _gives_numbers(self, tensor: torch.Tensor) -> bool:
        """Whether the sizes of a tensor are not followed."""
        is_fixed = self._origins.has_fixed_size(tensor)
        self.gave_numbers |= is_fixed
        return is_fixed

    def _is_of_sizes(self, tensor: torch.Tensor) -> bool:
        return (
            _torch_private.is_tracing()
            and tensor.dim() == 0
            and (tensor.dtype.is_floating_point or tensor.dtype == torch.int64)
            and self._origins.of(tensor) == "sizes"
        )


def _computed(func: Any, compute: Compute, args: tuple[Any, ...]) -> Any:
    numbers = args if func in _OF_BOOLEANS and all(map(_is_boolean, args)) else map(_integer, args)
    numbers = tuple(numbers)
    result = _number(compute(*numbers))
    if _is_float(result):
        divides = func in _QUOTIENTS
        result.is_one_quotient = divides and not any(map(_is_float, numbers))
        result.is_exact = not divides and func in _EXACT and all(map(_is_exact, numbers))
    return result


def _integer(number: Any) -> Any:
    """What Python computes with where a number is a boolean."""
    if not _is_boolean(number):
        return number
    return number.to(torch.int64) if isinstance(number, torch.Tensor) else int(number)


def _is_boolean(number: Any) -> bool:
    return isinstance(number, bool)


def _is_exact(number: Any) -> bool:
    """Whether sums and products with it lose no digits, at any size that memory has room for."""
    if isinstance(number, TracedSize):
        return number.is_exact
    if not math.isfinite(number):
        return False
    numerator, denominator = float(number).as_integer_ratio()
    return abs(numerator) < _FEW_DIGITS and denominator < _FEW_DIGITS


_FEW_DIGITS = 1 << 10


def _value(size: TracedSize) -> Any:
    """That of the example."""
    kind: Any = size.__class__
    return kind(size)


def _as_number(tensor: torch.Tensor) -> torch.Tensor:
    """A copy: writes of the tensor do not change what was read."""
    return tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64, copy=True)


def _number(size: Any) -> Any:
    if type(size) is torch.Tensor and size.dim() == 0:
        size.__class__ = TracedSize
    return size


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, TracedSize))


def _is_float(value: Any) -> bool:
    return value.is_floating_point() if isinstance(value, TracedSize) else isinstance(value, float)


def _as_eager_promotes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A Python float takes the precision of the tensors that it meets, the default where they have
    none; a tensor of float64 would decide it."""
    wide = (torch.float64, torch.complex128)
    if any(isinstance(a, torch.Tensor) and not _is_number(a) and a.dtype in wide for a in args):
        return args
    return tuple(
        a.to(torch.get_default_dtype()) if isinstance(a, TracedSize) and _is_float(a) else a
        for a in args
    )


# -- arithmetic ------------------------------------------------------------------------------------


def _exact(value: Any) -> Any:
    """In the precision of Python's floats; where the value is Python's own, as a constant."""
    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() else value.to(torch.float64)
    return torch.tensor(value, dtype=torch.float64)


def _alike(function: Callable[[Any, Any], Any]) -> Compute:
    """Of two numbers: floats where one of them is."""

    def compute(left: Any, right: Any) -> Any:
        if _is_float(left) or _is_float(right):
            left, right = _exact(left), _exact(right)
        return function(left, right)

    return compute


def _reflected(compute: Compute) -> Compute:
    return lambda right, left: compute(left, right)


def _quotient(left: Any, right: Any) -> torch.Tensor:
    return torch.div(_exact(left), _exact(right))


def _power(base: Any, exponent: Any) -> torch.Tensor:
    # The power of integers is none where the exponent is negative.
    if _is_float(base) or _is_float(exponent) or _example(exponent) < 0:
        return torch.pow(_exact(base), _exact(exponent))
    return torch.pow(base, exponent)


def _example(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    with _torch_private.tracing_paused():
        return value.item()


def _to_integer(function: Callable[[torch.Tensor], torch.Tensor]) -> Compute:
    """The steps to a float are taken again as an expression of sizes, in an order that may round
    otherwise. Where that could give another integer, the expression ends: it is no longer seen
    through a dim."""

    def compute(size: TracedSize) -> torch.Tensor:
        if not _is_float(size):
            return size
        kept = size if size.is_exact or size.is_one_quotient else size.unsqueeze(0).squeeze(0)
        return function(kept).to(torch.int64)

    return compute


def _of_float(function: Callable[[torch.Tensor], torch.Tensor]) -> Compute:
    return lambda size: function(_exact(size))


_BINARY: dict[str, Compute] = {
    "add": _alike(torch.add),
    "sub": _alike(torch.sub),
    "mul": _alike(torch.mul),
    "floordiv": _alike(torch.floor_divide),
    "mod": _alike(torch.remainder),
    "truediv": _quotient,
    "pow": _power,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
}
"""By the names of Python's operators."""
_AS_METHOD = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "mod": "remainder",
    "truediv": "div",
    "floordiv": "floor_divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
"""What some of them are for PyTorch."""
_UNARY: dict[Any, Compute] = {
    torch.Tensor.__neg__: torch.neg,
    torch.Tensor.__pos__: torch.positive,
    torch.Tensor.__abs__: torch.abs,
    torch.Tensor.__invert__: torch.bitwise_not,
    torch.ceil: _to_integer(torch.ceil),
    torch.floor: _to_integer(torch.floor),
    torch.trunc: _to_integer(torch.trunc),
    torch.round: _to_integer(torch.round),
    torch.sqrt: _of_float(torch.sqrt),
    torch.exp: _of_float(torch.exp),
    torch.log: _of_float(torch.log),
    torch.log2: _of_float(torch.log2),
    torch.log10: _of_float(torch.log10),
}
_EXTREMES: dict[Any, Compute] = {
    function: function
    for function in (torch.maximum, torch.minimum, torch.clamp_min, torch.clamp_max)
}


def _spellings(name: str, form: str) -> Iterator[Any]:
    """The methods of tensors that PyTorch hands to modes for an operator of Python."""
    named = {"": "{}", "i": "{}_"}.get(form)
    if named is not None and name in _AS_METHOD:
        yield getattr(torch.Tensor, named.format(_AS_METHOD[name]))
    yield getattr(torch.Tensor, f"__{form}{name}__")


_REFLECTED = [name for name in _BINARY if name not in ("add", "mul", "and", "or", "xor")]
_ARITHMETIC: dict[Any, Compute] = {
    **{method: _BINARY[name] for name in _BINARY for method in _spellings(name, "")},
    **{
        method: _reflected(_BINARY[name]) for name in _REFLECTED for method in _spellings(name, "r")
    },
    **_UNARY,
    **_EXTREMES,
}
_OF_BOOLEANS = frozenset(
    method
    for name in ("and", "or", "xor")
    for form in ("", "r")
    for method in _spellings(name, form)
)
"""Which give a boolean of two."""
_QUOTIENTS = frozenset((*_spellings("truediv", ""), *_spellings("truediv", "r")))
_EXACT = frozenset(
    method
    for name, forms in (("add", ("",)), ("sub", ("", "r")), ("mul", ("",)))
    for form in forms
    for method in _spellings(name, form)
) | {torch.Tensor.__neg__, torch.Tensor.__pos__, torch.Tensor.__abs__, *_EXTREMES}
_NOT_IN_PLACE = {
    method: next(_spellings(name, "")) for name in _BINARY for method in _spellings(name, "i")
}
_COMPARISONS = frozenset(
    getattr(torch.Tensor, form.format(name))
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for form in ("{}", "__{}__")
)


# -- tensors made of numbers -----------------------------------------------------------------------

_MAKES_TENSORS = frozenset((torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor))


def _made_tensor(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.tensor() and the like of numbers some of which are traced: the tracer would take the
    values of the example."""
    is_method = func is torch.Tensor.new_tensor
    positional = args[1:] if is_method else args
    data = positional[0] if positional else kwargs.get("data", kwargs.get("obj"))
    leaves = list(_leaves(data))
    followed = any(isinstance(leaf, torch.Tensor) for leaf in leaves) and all(
        leaf.dim() == 0 if isinstance(leaf, torch.Tensor) else isinstance(leaf, (int, float))
        for leaf in leaves
    )
    copies = type(data) is TracedSize or func in (torch.tensor, torch.Tensor.new_tensor)
    named = dict(zip(("dtype", "device"), positional[1:], strict=False)) | kwargs
    if isinstance(data, torch.Tensor) and not copies and not named.get("copy"):
        data = data if named.get("dtype") is None else data.to(named["dtype"])
        return data if named.get("device") is None else data.to(named["device"])
    if not followed or (isinstance(data, torch.Tensor) and not copies):
        return func(*args, **kwargs)
    dtype = named.get("dtype")
    if dtype is None:
        dtype = args[0].dtype if is_method else _promoted(leaves)
    if isinstance(data, torch.Tensor):
        made = data.detach().clone().to(dtype)
    else:
        made = _stacked(data, dtype)
    device = named.get("device", args[0].device if is_method else None)
    return made if device is None else made.to(device)


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, (list, tuple)):
        for item in data:
            yield from _leaves(item)
    else:
        yield data


def _promoted(leaves: list[Any]) -> torch.dtype:
    dtypes = [_dtype(leaf) for leaf in leaves]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    return dtype


def _dtype(leaf: Any) -> torch.dtype:
    if isinstance(leaf, bool):
        return torch.bool
    if _is_number(leaf):
        return torch.get_default_dtype() if _is_float(leaf) else torch.int64
    dtype: torch.dtype = leaf.dtype
    return dtype


def _stacked(data: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(item, dtype) for item in data])
    if isinstance(data, torch.Tensor):
        return data.detach().to(dtype)
    return torch.tensor(data, dtype=dtype)


# -- what Python itself computes of sizes ----------------------------------------------------------


def _length(original: Callable[[Any], int]) -> Callable[[Any], Any]:
    def length(obj: Any, /) -> Any:
        if isinstance(obj, torch.Tensor) and _is_asked_by_model(sys._getframe(1)) and obj.dim():
            return obj.shape[0]
        return original(obj)

    return length


def _extreme(
    of_two: Callable[[Any, Any], Any], of_number: Callable[[Any, Any], Any]
) -> Callable[[Any], Callable[..., Any]]:
    def larger(left: Any, right: Any) -> Any:
        if isinstance(left, TracedSize) and isinstance(right, TracedSize):
            return of_two(left, right)
        return of_number(left, right) if isinstance(left, TracedSize) else of_number(right, left)

    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def extreme(*args: Any, **options: Any) -> Any:
            if options.keys() - {"default"} or not args:
                return original(*args, **options)
            if len(args) == 1 and not isinstance(args[0], (list, tuple)):
                args = (tuple(args[0]),)
            items = args[0] if len(args) == 1 else args
            sizes = [item for item in items if type(item) is TracedSize]
            numbers = [item for item in items if type(item) in (bool, int, float)]
            # Of numbers of two kinds that are equal, Python gives the first.
            alike = len({item.__class__ for item in (*sizes, *numbers)}) == 1
            if not sizes or len(sizes) + len(numbers) != len(items) or not alike:
                return original(*args, **options)
            result = sizes[0]
            for item in [*sizes[1:], *([original(numbers)] if numbers else [])]:
                result = larger(result, item)
            return result

        return extreme

    return replaced


def _followed(function: Callable[[Any], Any]) -> Callable[[Any], Callable[..., Any]]:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*args: Any) -> Any:
            if len(args) == 1 and type(args[0]) is TracedSize:
                return function(args[0])
            return original(*args)

        return followed

    return replaced


def _is_asked_by_model(frame: Any) -> bool:
    return _torch_private.is_tracing() and not is_asked_by_torch(frame)


_BUILTINS: dict[str, Callable[[Any], Any]] = {
    "len": _length,
    "max": _extreme(torch.maximum, torch.clamp_min),
    "min": _extreme(torch.minimum, torch.clamp_max),
}
_MATH: dict[str, Callable[[Any], Any]] = {
    name: _followed(getattr(torch, name)) for name in ("sqrt", "exp", "log", "log2", "log10")
}
