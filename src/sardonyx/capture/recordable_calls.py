"""Calls that the tracer has no record for, made by ones it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn import functional as F

from sardonyx.capture.asked_nodes import call_as_operator, is_node_asked_for
from sardonyx.capture.index_masks import has_masks, is_put, put, with_plain_masks
from sardonyx.capture.open_forms import OPEN_FORMS
from sardonyx.capture.resized_memory import RESIZED_AS_VIEWS
from sardonyx.capture.watched_calls import ChangingMode

Rewrite: TypeAlias = Callable[..., Any]
"""Takes the function and its arguments, and gives what the function gives for them."""


class RecordableCalls(ChangingMode):
    """Makes the calls of `_REWRITES` in another way, most of which have a Python bool where a trace
    only knows numbers; and calls whose own forms take sizes for numbers."""

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if func in _WITHOUT_BOOLS:
            return any(type(a) is bool for a in args) or bool(
                kwargs and any(type(a) is bool for a in kwargs.values())
            )
        if func in _INDEXED:
            return (
                has_masks(args[1]) or _is_broadcast(args) or (len(args) == 3 and is_put(*args[1:]))
            )
        return func in _REWRITES or func in OPEN_FORMS or is_node_asked_for(func)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        rewrite = _REWRITES.get(func)
        if is_node_asked_for(func):
            return call_as_operator(func, args, kwargs or {})
        if rewrite is None:
            func = OPEN_FORMS.get(func, func)
            return func(*args, **(kwargs or {}))
        return rewrite(func, *args, **(kwargs or {}))


class _Numbers(NamedTuple):
    """The arguments of a function that are numbers."""

    position: int
    """Of the first; the others follow it."""
    names: tuple[str, ...]

    def changed(
        self, change: Callable[[bool], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, with those of the numbers changed that are Python bools."""
        positions = range(self.position, self.position + len(self.names))
        return (
            [change(a) if p in positions and type(a) is bool else a for p, a in enumerate(args)],
            {k: change(a) if k in self.names and type(a) is bool else a for k, a in kwargs.items()},
        )


def _with_integers(numbers: _Numbers) -> Rewrite:
    """For numbers that do not decide the dtype of the result."""

    def rewrite(func: Any, *args: Any, **kwargs: Any) -> Any:
        args_, kwargs_ = numbers.changed(int, args, kwargs)
        return func(*args_, **kwargs_)

    return rewrite


def _with_operands(numbers: _Numbers) -> Rewrite:
    """For numbers that PyTorch computes with in the dtype that they and the tensors have."""

    def rewrite(func: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]

        def operand(value: bool) -> Any:
            if all(tensor.dtype != torch.bool for tensor in tensors):
                return int(value)
            # An integer would make integers of bools.
            return torch.full((), int(value), dtype=torch.bool, device=tensors[0].device)

        args_, kwargs_ = numbers.changed(operand, args, kwargs)
        return func(*args_, **kwargs_)

    return rewrite


def _full(func: Any, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    if isinstance(fill_value, bool):
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = torch.bool
        fill_value = _number_of(fill_value)
    return func(size, fill_value, **kwargs)


def _fill(func: Any, input: torch.Tensor, value: Any) -> torch.Tensor:
    """Its own record lacks arguments."""
    return input.clone().fill_(_number_of(value))


def _number_of(value: Any) -> Any:
    """Where a Python boolean stands for a number; one that comes of sizes is followed."""
    return int(value) if type(value) is bool else value


def _deepcopy(func: Any, tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """Its own form copies memory, of which the tracer knows nothing."""
    if id(tensor) not in memo:
        memo[id(tensor)] = tensor.clone()
    copy: torch.Tensor = memo[id(tensor)]
    return copy


def _roll(func: Any, input: torch.Tensor, shifts: Any, dims: Any = ()) -> Any:
    """The tracer notes the numbers of lists."""
    if isinstance(shifts, torch.Tensor) and shifts.dim() == 0:
        return func(input, [shifts], [dims] if isinstance(dims, int) else dims)
    return func(input, shifts, dims)


def _pooled_to(spatial: int) -> Rewrite:
    """The tracer notes the numbers of lists."""

    def rewrite(func: Any, input: torch.Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(output_size, torch.Tensor):
            output_size = [output_size] * spatial
        return func(input, output_size, *args, **kwargs)

    return rewrite


def _indexed(func: Any, tensor: torch.Tensor, index: Any, *assigned: Any) -> Any:
    """Of a mask without dims the tracer notes what it says; of one of bytes it has no type. Of a
    value that is broadcast it notes the size that this one gets."""
    if _is_broadcast((tensor, index, *assigned)):
        view, (value,) = tensor[index], assigned
        # PyTorch leaves out leading dims of size 1, and refuses what is too large then.
        for _ in range(value.dim() - view.dim()):
            value = value.squeeze(0)
        view.copy_(value)
        return None
    tensor, index = with_plain_masks(tensor, index, *assigned)
    if assigned and is_put(index, assigned[0]):
        return put(tensor, index, *assigned)
    return func(tensor, index, *assigned)


def _is_broadcast(args: tuple[Any, ...]) -> bool:
    """Whether a tensor, and not a number, is assigned to a view, and may be repeated for it."""
    _, index, *assigned = args
    if not assigned or not isinstance(assigned[0], torch.Tensor) or assigned[0].dim() == 0:
        return False
    parts = index if isinstance(index, tuple) else (index,)
    # A tensor that is a number here is a size or an element.
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, int) and not isinstance(part, bool))
        for part in parts
    )


def _named(names: Iterable[str]) -> Iterator[Any]:
    """The functions, methods and methods that write in place which have one of these names."""
    for name in names:
        for owner in (torch, torch.Tensor, F):
            for spelled in (name, f"{name}_"):
                if hasattr(owner, spelled):
                    yield getattr(owner, spelled)


def _operators(names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        for spelled in (f"__{name}__", f"__r{name}__", f"__i{name}__"):
            if hasattr(torch.Tensor, spelled):
                yield getattr(torch.Tensor, spelled)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_LONG_COMPARISONS = (
    "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_WITH_TWO_OPERANDS = (
    "copysign", "float_power", "floor_divide", "fmod", "pow", "remainder", "rsub", "xlogy",
)  # fmt: skip
_PRODUCTS = ("addbmm", "addmm", "addmv", "addr", "baddbmm")
_OPERANDS = _Numbers(0, ("self", "input", "other", "exponent"))
_WITHOUT_BOOLS: dict[Any, Rewrite] = {
    **dict.fromkeys(
        [
            *_named([*_COMPARISONS, *_LONG_COMPARISONS, *_BITWISE, *_WITH_TWO_OPERANDS]),
            *_operators([*_COMPARISONS, "and", "or", "xor", "mod", "pow", "floordiv"]),
        ],
        _with_operands(_OPERANDS),
    ),
    torch.where: _with_operands(_Numbers(1, ("input", "other"))),
    torch.Tensor.where: _with_operands(_Numbers(0, ("input", "condition", "other"))),
    **dict.fromkeys(_named(["clamp", "clip"]), _with_operands(_Numbers(1, ("min", "max")))),
    **dict.fromkeys(_named(["clamp_min"]), _with_operands(_Numbers(1, ("min",)))),
    **dict.fromkeys(_named(["clamp_max"]), _with_operands(_Numbers(1, ("max",)))),
    **dict.fromkeys(
        _named(["add", "sub", "subtract", "rsub", "index_add"]),
        _with_integers(_Numbers(9, ("alpha",))),
    ),
    **dict.fromkeys(_named(_PRODUCTS), _with_integers(_Numbers(9, ("alpha", "beta")))),
    **dict.fromkeys(_named(["addcmul", "addcdiv"]), _with_integers(_Numbers(9, ("value",)))),
    **dict.fromkeys(_named(["full_like"]), _with_integers(_Numbers(1, ("fill_value",)))),
    **dict.fromkeys(_named(["new_full"]), _with_integers(_Numbers(2, ("fill_value",)))),
    **dict.fromkeys(_named(["masked_fill"]), _with_integers(_Numbers(2, ("value",)))),
    **dict.fromkeys(_named(["index_fill"]), _with_integers(_Numbers(3, ("value",)))),
    **dict.fromkeys(_named(["constant_pad_nd"]), _with_integers(_Numbers(2, ("value",)))),
    **dict.fromkeys(_named(["pad"]), _with_integers(_Numbers(3, ("value",)))),
    **dict.fromkeys(_named(["_unsafe_masked_index"]), _with_integers(_Numbers(3, ("fill",)))),
    torch.Tensor.fill_: _with_integers(_Numbers(1, ("value",))),
    torch.fill_: _with_integers(_Numbers(1, ("value",))),
}
"""Calls that are as they are where no bool is among the arguments."""
_INDEXED = frozenset((torch.Tensor.__getitem__, torch.Tensor.__setitem__))
_REWRITES: dict[Any, Rewrite] = {
    **_WITHOUT_BOOLS,
    torch.fill: _fill,
    torch.full: _full,
    torch.roll: _roll,
    torch.Tensor.roll: _roll,
    **{
        getattr(F, f"adaptive_{kind}_pool{spatial}d{variant}"): _pooled_to(spatial)
        for spatial in (1, 2, 3)
        for kind, variant in (("avg", ""), ("max", ""), ("max", "_with_indices"))
    },
    torch.Tensor.__deepcopy__: _deepcopy,
    torch.numel: lambda _, input: input.numel(),
    torch.Tensor.nbytes.__get__: lambda _, x: x.numel() * x.element_size(),  # type: ignore[attr-defined]
    **dict.fromkeys(_INDEXED, _indexed),
    **RESIZED_AS_VIEWS,
}
