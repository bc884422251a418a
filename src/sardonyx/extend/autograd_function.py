"""`torch.autograd.Function`s as nodes: by their `symbolic` method, by a function that is registered
for `prim::PythonOp`, or as a `PythonOp` for a runtime that knows them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from sardonyx.capture.autograd_functions import OpaqueFunction, OpaqueFunctions
from sardonyx.extend.symbolic_functions.calls import (
    bound_results,
    context_for,
    errors_located,
    results_of,
)
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.graph_values import Block
from sardonyx.extend.symbolic_functions.node_attributes import letter_of
from sardonyx.extend.symbolic_functions.registration import PYTHON_OP, registered_function
from sardonyx.extend.symbolic_functions.values import SymbolicNode, SymbolicValue
from sardonyx.lower.custom_lowerings import Call, CustomForm
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import Tensor


@dataclass(frozen=True)
class SymbolicContext:
    """What symbolic functions of some years got before the graph: `(ctx, g, *args)`."""

    params_dict: dict[str, torch.Tensor]
    """The model's parameters and buffers by their names."""
    env: dict[SymbolicValue, SymbolicValue]
    """Free for use by symbolic functions."""
    cur_node: SymbolicNode
    """The call that is exported, with PyTorch's types of its results."""
    onnx_block: Block | None
    """The body that is written, None for the graph itself."""


class PythonOpNode(SymbolicNode):
    """A call of a `torch.autograd.Function`, as a graph of TorchScript has it."""

    function: OpaqueFunction
    arguments: Sequence[Any] = ()

    def pyobj(self) -> Any:
        """The function's `apply`; its `__self__` is the class."""
        return self.function.kind.apply  # type: ignore[attr-defined]

    def pyname(self) -> str:
        return self.function.name

    def cconv(self) -> str:
        """A letter for each argument: d for a tensor, c for what is none."""
        return "".join("d" if isinstance(a, SymbolicValue) else "c" for a in self.arguments)

    def scalar_args(self) -> list[Any]:
        return [a for a in self.arguments if not isinstance(a, SymbolicValue)]


def opaque_functions(opset: int, *, inlines: bool) -> OpaqueFunctions:
    """For a capture: functions that have a symbolic function are opaque; where `inlines` is False,
    all that are not PyTorch's own."""
    all_opaque = not inlines or registered_function(PYTHON_OP, opset) is not None

    def is_opaque(kind: type) -> bool:
        own = kind.__module__.partition(".")[0] == "torch"
        return callable(getattr(kind, "symbolic", None)) or (all_opaque and not own)

    return OpaqueFunctions(is_opaque)


def function_forms(calls: OpaqueFunctions, opset: int) -> dict[str, CustomForm]:
    """What writes the opaque functions of a capture, by the names of their operators."""
    return {f.op._schema.name: _form(f, opset) for f in calls.functions if f.has_form}


def _form(function: OpaqueFunction, opset: int) -> CustomForm:
    def form(call: Call) -> list[Tensor | None]:
        g = context_for(call, opset)
        operands = [_argument(g, a) for a in call.arguments.values()]
        args, kwargs = function.form.arguments(operands)
        node = _python_op_node(g, function, [*args, *kwargs.values()])
        g.original_node = node
        writer, given = _writer(function, g, opset)
        with errors_located(writer, call, opset):
            results = results_of(writer, g, [*given, *args], kwargs)
            return bound_results(g, call, _tensors_of(function, results))

    return form


def _argument(g: GraphContext, argument: Any) -> Any:
    """Tensors and sizes that are computed as values; what Python knows as it is."""
    if isinstance(argument, (Tensor, sympy.Basic)):
        return g.values.of_argument(argument)
    return argument


def _writer(
    function: OpaqueFunction, g: GraphContext, opset: int
) -> tuple[Callable[..., Any], list[Any]]:
    """What writes a call, and what it is given before the arguments."""
    own = getattr(function.kind, "symbolic", None)
    if callable(own):
        return own, _before_arguments(own, g)
    registered = registered_function(PYTHON_OP, opset)
    if registered is None:
        return lambda *args, **kwargs: python_op(g, function, args, kwargs), []
    named = {"name": function.name, "module": function.kind.__module__, "inplace": 0}
    parameters = inspect.signature(registered).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        named = {p.name: named[p.name] for p in parameters if p.name in named}

    def registered_with_names(*args: Any, **kwargs: Any) -> Any:
        return registered(*args, **{**kwargs, **named})

    registered_with_names.__qualname__ = getattr(registered, "__qualname__", PYTHON_OP)
    return registered_with_names, _before_arguments(registered, g, takes_node=True)


def _before_arguments(
    function: Callable[..., Any], g: GraphContext, *, takes_node: bool = False
) -> list[Any]:
    """`(g, ...)`, `(ctx, g, ...)`, or `(g, n, ...)` where a function of that form may stand."""
    first, second = [*inspect.signature(function).parameters.values(), None, None][:2]
    if _is_called(first, SymbolicContext, ("ctx", "context")):
        return [SymbolicContext(g.params_dict, g.env, g.original_node, g.block), g]
    if takes_node and _is_called(second, SymbolicNode, ("n", "node")):
        return [g, g.original_node]
    return [g]


def _is_called(parameter: inspect.Parameter | None, kind: type, names: Sequence[str]) -> bool:
    """Whether a parameter is annotated as such a thing, in our words or TorchScript's, or else has
    one of the names."""
    if parameter is None or parameter.kind in (
        parameter.VAR_POSITIONAL,
        parameter.KEYWORD_ONLY,
        parameter.VAR_KEYWORD,
    ):
        return False
    if parameter.annotation is parameter.empty:
        return parameter.name in names
    written = parameter.annotation
    text = written if isinstance(written, str) else getattr(written, "__name__", str(written))
    word = text.strip("'\"").rpartition(".")[2]
    return word in (kind.__name__, kind.__name__.removeprefix("Symbolic"))


def _python_op_node(
    g: GraphContext, function: OpaqueFunction, arguments: Sequence[Any]
) -> PythonOpNode:
    call = g.original_node
    node = PythonOpNode(
        PYTHON_OP,
        [a for a in call.inputs() if a.is_tensor],
        list(call.outputs()),
        {"name": function.name, "module": function.kind.__module__, "inplace": 0},
        original=call.original,
    )
    node.function, node.arguments = function, arguments
    return node


def _tensors_of(function: OpaqueFunction, results: Any) -> Any:
    """Those of the results that stand for tensors of `forward`."""
    gives = function.gives_tensors
    if isinstance(results, (list, tuple)) and len(results) == len(gives):
        return [result for result, is_tensor in zip(results, gives, strict=True) if is_tensor]
    return results


def python_op(
    g: GraphContext, function: OpaqueFunction, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The call as a node `prim::PythonOp`: tensors are its inputs, the other arguments attributes
    under the names that `forward` has for them."""
    names = function.form.argument_names
    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for name, argument in zip(names, (*args, *kwargs.values()), strict=True):
        if isinstance(argument, SymbolicValue):
            inputs[name] = argument
        elif argument is not None:
            attributes[_attribute_name(function, name, argument)] = argument
    return g.op(
        PYTHON_OP,
        *inputs.values(),
        **attributes,
        name_s=function.name,
        module_s=function.kind.__module__,
        inputs_s=list(inputs),
        outputs=sum(function.gives_tensors),
    )


def _attribute_name(function: OpaqueFunction, name: str, argument: Any) -> str:
    letter = letter_of(argument)
    if letter not in ("i", "f", "s"):
        raise Refusal(
            f"{function.name} as a PythonOp: no attribute can hold its argument {name},"
            f" which is {argument!r}"
        )
    return f"{'_' * (name in ('name', 'module', 'inputs'))}{name}_{letter}"
