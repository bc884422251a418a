"""Programs of torch.export: their inputs, classes, and how they are recorded."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from sardonyx._torch_private.fakes import fake_mode_of
from sardonyx._torch_private.folders import OWN_FOLDER, TORCH_FOLDER
from sardonyx._torch_private.sizes import example_sizes


def arguments_like(program: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of an ExportedProgram: fake tensors, example numbers and constants."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    leaves = []
    for spec in _user_inputs(program):
        if _is_constant(spec.arg):
            leaves.append(spec.arg.value)
        else:
            value = values[spec.arg.name]
            leaves.append(value.node.hint if isinstance(value, torch.SymInt) else value)
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def user_input_names(program: Any) -> list[str]:
    return [
        getattr(spec.arg, "name", "") or f"input_{i}"
        for i, spec in enumerate(_user_inputs(program))
    ]


def fixed_numbers(program: Any) -> set[str]:
    """The names of number inputs that an ExportedProgram holds one value of."""
    return {
        spec.arg.name
        for spec in _user_inputs(program)
        if _is_constant(spec.arg) and isinstance(spec.arg.value, (int, float))
    }


def module_classes(program: Any) -> dict[str, str]:
    """Class names by module path, as far as the program's nodes tell."""
    qualified = qualified_module_classes(program)
    return {path: name.split(".")[-1] for path, name in qualified.items()}


def qualified_module_classes(program: Any) -> dict[str, str]:
    """Class names with those of the Python modules they are defined in."""
    classes: dict[str, str] = {}
    for node in program.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
            classes.setdefault(path.split("@")[0], name)
    return classes


def _user_inputs(program: Any) -> list[Any]:
    return [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]


def _is_constant(argument: Any) -> bool:
    return type(argument).__name__ == "ConstantArgument"


def result_like(program: Any, leaves: list[Any]) -> Any:
    """The nested result of an ExportedProgram around the given leaves."""
    return pytree.tree_unflatten(leaves, program.call_spec.out_spec)


def mode_of_program(program: Any) -> Any:
    """The fake mode that the sizes of an ExportedProgram belong to; None where it has none."""
    for node in program.graph.nodes:
        mode = fake_mode_of(node.meta.get("val"))
        if mode is not None and mode.shape_env is not None:
            return mode
    return None


def hints_of(program: Any) -> dict[Any, int]:
    """The sizes that the symbols of an ExportedProgram had in its example."""
    mode = mode_of_program(program)
    return {} if mode is None else example_sizes(mode)


def texts_of_guards(program: Any) -> list[str]:
    """What an ExportedProgram checks of its inputs, as Python: `L['x'].size()[0] <= 64`."""
    return list(getattr(program, "_guards_code", None) or ())


def with_values(program: Any, values: Mapping[Any, Any]) -> Any:
    """The program with other values noted at its nodes; the one given stays as it is."""
    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in program.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        copies[node].name = node.name  # a new graph gives no names of builtins, the signature may
        if node in values:
            copies[node].meta["val"] = values[node]
    made = copy.copy(program)
    made._graph_module = torch.fx.GraphModule(program.graph_module, graph)
    return made


@contextlib.contextmanager
def float_arithmetic_in_order() -> Iterator[None]:
    """Sums and products of floats that sizes decide are rounded one by one, as Python does it;
    sympy would multiply the numbers of h * 0.29 * 100 first."""
    from torch.fx.experimental.sym_node import SymNode

    rounded = _rounded_kind()
    kind: Any = SymNode
    before = {name: getattr(kind, name) for name in ("add", "sub", "mul")}

    def in_order(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def computed(left: Any, right: Any) -> Any:
            result = compute(left, right)
            if isinstance(result, SymNode) and result.pytype is float and not result.is_constant():
                expression: Any = result._expr
                if expression.free_symbols and not isinstance(expression, rounded):
                    result._expr = rounded(expression)
                    result._optimized_summation = False
            return result

        return computed

    for name, compute in before.items():
        setattr(kind, name, in_order(compute))
    try:
        with _whole_quotients_of_floats():
            yield
    finally:
        for name, compute in before.items():
            setattr(kind, name, compute)


@contextlib.contextmanager
def _whole_quotients_of_floats() -> Iterator[None]:
    """4 // 0.1 is 39.0, what is left over by the remainder; PyTorch rounds the quotient 40.0."""
    before = [
        (kind, name, getattr(kind, name))
        for kind in (torch.SymInt, torch.SymFloat)
        for name in ("__floordiv__", "__rfloordiv__")
    ]
    for kind, name, of_integers in before:
        setattr(kind, name, _whole_quotient(of_integers, is_reversed=name == "__rfloordiv__"))
    try:
        yield
    finally:
        for kind, name, of_integers in before:
            setattr(kind, name, of_integers)


def _whole_quotient(
    of_integers: Callable[[Any, Any], Any], *, is_reversed: bool
) -> Callable[[Any, Any], Any]:
    def quotient(self: Any, other: Any) -> Any:
        is_float = any(isinstance(number, (float, torch.SymFloat)) for number in (self, other))
        if not is_float or not isinstance(other, (int, float, torch.SymInt, torch.SymFloat)):
            return of_integers(self, other)
        left, right = (other, self) if is_reversed else (self, other)
        if _is_power_of_two(right) or (_is_whole(left) and _is_whole(right)):
            return of_integers(self, other)  # the quotient is not rounded up to a whole number
        to_float: Callable[[Any], Any] = torch.sym_float
        left, right = to_float(left), to_float(right)
        nearly_whole = (left - left % right) / right
        return to_float(math.floor(nearly_whole + 0.5))

    return quotient


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, torch.SymInt)) or (
        isinstance(number, float) and number.is_integer()
    )


def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, (int, float)) and abs(math.frexp(number)[0]) == 0.5


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


@contextlib.contextmanager
def lines_of_functions() -> Iterator[None]:
    """Lets torch.export note every frame of the model's code, not those of `forward` alone, and no
    others: it would read each frame of the whole stack for each node, the most of its time."""
    from torch.fx import proxy

    tracer = proxy.TracerBase
    if not hasattr(tracer, "_filter_traceback_frames") or not hasattr(proxy, "CapturedTraceback"):
        yield
        return
    before = proxy.CapturedTraceback, tracer._filter_traceback_frames
    proxy.CapturedTraceback = _StackOfModel
    tracer._filter_traceback_frames = lambda self, frames: frames  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        proxy.CapturedTraceback, tracer._filter_traceback_frames = before  # type: ignore[method-assign]


class _StackOfModel:
    """The frames of a model's code, in the form that torch.fx asks for."""

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame

    @classmethod
    def extract(cls) -> _StackOfModel:
        return cls(sys._getframe(1))

    def summary(self) -> traceback.StackSummary:
        frames: list[traceback.FrameSummary] = []
        kept = 0
        frame = self._frame
        while frame is not None:
            code = frame.f_code
            file, is_forward = code.co_filename, code.co_name == "forward"
            if not file.startswith(OWN_FOLDER) and (
                is_forward or not file.startswith(TORCH_FOLDER)
            ):
                frames.append(
                    traceback.FrameSummary(file, frame.f_lineno, code.co_name, lookup_line=False)
                )
            if is_forward:
                kept = len(frames)
            frame = frame.f_back
        return traceback.StackSummary.from_list(frames[:kept][::-1])
