"""The one operator library: ATen name -> lowering function.

The signature is the schema. A lowering declares the schema's argument names; annotations say
what must be known at export time. What it does not declare must hold its default. Operators that
differ in a name or in a detail share a function: `lowering` takes what is other for them.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import sympy
import torch

from sardonyx.errors import InternalError
from sardonyx.lower.values import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])
P = ParamSpec("P")

HAVE_NO_MEANING_IN_ONNX = frozenset({
    "device", "pin_memory", "memory_format", "non_blocking", "layout", "generator", "cudnn_enable",
    "cudnn_enabled", "benchmark", "deterministic", "allow_tf32", "implicit", "sparse_grad",
    "scale_grad_by_freq", "grad_factor", "compute_log_sumexp", "batch_chunk_size", "acc_policy",
    "allow_retain_graph", "compute_input_grad", "compute_linear_weight_grad",
    "compute_linear_bias_grad",
})  # fmt: skip
"""Schema arguments that steer where and how PyTorch computes, or gradients, never results."""


class Refusal(Exception):
    """Raised by a lowering: this use of the operator has no ONNX form."""


@dataclass(frozen=True, slots=True)
class Lowering:
    name: str
    function: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    """What parameters of the function beside the schema's arguments hold for this operator."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The parameters of schema arguments that are called otherwise there."""

    def __call__(self, /, *arguments: Any, **more: Any) -> Any:
        return self.function(*arguments, **more, **self.given)

    def parameter(self, argument: str) -> str:
        """What the function calls a schema argument: with an underscore where it is a word of
        Python (`from`) or the builder's name."""
        if argument in self.renamed:
            return self.renamed[argument]
        return f"{argument}_" if keyword.iskeyword(argument) or argument == "b" else argument

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What the function declares after the builder, but for what is given."""
        declared = _signature_of(self.function)[0]
        return {k: p for k, p in declared.items() if k not in self.given}

    @property
    def annotations(self) -> dict[str, Any]:
        return _signature_of(self.function)[1]

    @property
    def source(self) -> str:
        return self.function.__module__


@functools.cache
def _signature_of(
    function: Callable[..., Any],
) -> tuple[dict[str, inspect.Parameter], dict[str, Any]]:
    """Read when a function is first used: reading all of them would slow the import."""
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    return parameters, typing.get_type_hints(function)


class Registry:
    def __init__(self) -> None:
        self._lowerings: dict[str, Lowering] = {}

    def register(self, lowering: Lowering) -> None:
        name = lowering.name
        base = name.split("::")[-1].split(".")[0]
        if base.endswith("_") and not base.endswith("__"):
            raise InternalError(f"{name} writes in place: functionalization removes it")
        if name in self._lowerings:
            raise InternalError(f"{name} is registered twice")
        self._lowerings[name] = lowering

    def get(self, name: str) -> Lowering | None:
        return self._lowerings.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._lowerings

    def names(self) -> list[str]:
        return sorted(self._lowerings)


LIBRARY = Registry()


def lowering(
    *names: str, renamed: Mapping[str, str] | None = None, **given: Any
) -> Callable[[Function], Function]:
    """Register a function for ATen overloads, each by its full name (`aten::add.Tensor`).

    `renamed` has the parameters of schema arguments that the function calls otherwise, `given` what
    it takes beside the schema's arguments.
    """

    def register(function: Function) -> Function:
        for name in names:
            LIBRARY.register(Lowering(name, function, given, renamed or {}))
        return function

    return register


def first_result(function: Callable[P, tuple[object, ...]]) -> Callable[P, Tensor]:
    """The lowering of an operator that gives the first result of another one alone."""

    @functools.wraps(function)
    def first(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        result = function(*args, **kwargs)[0]
        assert isinstance(result, Tensor)
        return result

    return first


def select_arguments(
    lowering: Lowering, arguments: dict[str, Any], defaults: dict[str, Any]
) -> dict[str, Any]:
    """The arguments the lowering declares; refuses what it cannot honour."""
    selected: dict[str, Any] = {}
    for name, argument in arguments.items():
        parameter = lowering.parameter(name)
        if parameter in lowering.parameters:
            selected[parameter] = _checked(lowering, parameter, argument)
        elif name in HAVE_NO_MEANING_IN_ONNX:
            continue
        elif name not in defaults or not _same(argument, defaults[name]):
            raise Refusal(f"{name}={argument} is not supported")
    return selected


def _same(left: Any, right: Any) -> bool:
    return bool(type(left) is type(right) and left == right)


def _checked(lowering: Lowering, name: str, argument: Any) -> Any:
    """Enforces the annotation, with one message for all operators."""
    wanted = lowering.annotations.get(name)
    if wanted is None or argument is None:
        return argument
    options = _options(wanted)
    if type(argument) is options[0] or any(_fits(argument, option) for option in options):
        return _converted(argument, options)
    raise Refusal(f"{name} must be known at export time, but is computed ({argument})")


@functools.cache
def _options(wanted: Any) -> tuple[Any, ...]:
    return typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)


@functools.cache
def _item_options(wanted: Any) -> tuple[Any, ...] | None:
    """Of a list."""
    if typing.get_origin(wanted) is not list:
        return None
    (item,) = typing.get_args(wanted)
    return _options(item)


def _fits(argument: Any, wanted: Any) -> bool:
    if wanted is Any:
        return True
    items = _item_options(wanted)
    if items is not None:
        return isinstance(argument, list) and all(
            (entry is None and types.NoneType in items) or any(_fits(entry, i) for i in items)
            for entry in argument
        )
    if wanted is float:
        return isinstance(argument, (int, float)) and not isinstance(argument, bool)
    if wanted is int:
        return isinstance(argument, int)
    if wanted is sympy.Expr:  # a comparison of sizes is a number like any other
        return isinstance(argument, sympy.Basic)
    if wanted in (bool, str, complex, torch.dtype, Tensor, torch.device):
        return isinstance(argument, wanted)
    return True


def _converted(argument: Any, options: tuple[Any, ...]) -> Any:
    if options[0] is float and isinstance(argument, int):
        return float(argument)
    return argument
