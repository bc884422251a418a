"""Calls of `torch.autograd.Function`s that are recorded as one node: as calls of operators."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten import pytree
from sardonyx.aten.graph import FUNCTIONS_NAMESPACE, Value
from sardonyx.capture.side_effects.restore import version_of
from sardonyx.errors import CaptureError

Apply: TypeAlias = Callable[..., Any]
_LARGEST = 2**63
_GIVEN = object()
"""Stands where each call has its own: an argument of the operator, or a tensor of the result."""


class OpaqueFunctions:
    """The functions of one export that are recorded as one node, each with its operator.

    Calls that differ only in tensors, numbers and strings are calls of one operator. The operators
    are removed when it is closed.
    """

    def __init__(self, is_opaque: Callable[[type], bool]) -> None:
        self.is_opaque = is_opaque
        self._functions: dict[Hashable, OpaqueFunction] = {}
        self._operators = _torch_private.TemporaryOperators(FUNCTIONS_NAMESPACE)
        self._shared: list[tuple[str, torch.Tensor, int]] = []
        """Arguments and results that are one memory in PyTorch, with their versions at the call."""
        self._notes: dict[str, None] = {}

    @property
    def functions(self) -> list[OpaqueFunction]:
        return list(self._functions.values())

    @property
    def notes(self) -> list[str]:
        return list(self._notes)

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """While the model runs in the body, its calls of such functions are of their operators."""
        calls = _torch_private.autograd_function_calls(_applied)
        with _torch_private.variable_set(_recording, self), calls:
            yield

    def call(self, apply: Apply, kind: type, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        function, operands = self.operator(apply, kind, args, kwargs)
        tensors = function.op(*operands)
        for place, operand in function.shared:
            for tensor in (tensors[place], operands[operand]):
                self._shared.append((function.name, tensor, version_of(tensor)))
        return function.result(tensors)

    def note_writes(self) -> None:
        """When a run has ended."""
        for name, tensor, version in self._shared:
            if version_of(tensor) != version:
                text = (
                    f"{name}.forward returns memory of its argument, and the model writes to one of"
                    " the two: in the file they are two tensors, and the other stays as it was"
                )
                self._notes[text] = None
        self._shared.clear()

    def close(self) -> None:
        """When the graph is lowered."""
        self._operators.close()

    def operator(
        self, apply: Apply, kind: type, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[OpaqueFunction, list[Any]]:
        """The operator for a call, and its arguments among those of the call."""
        form = _CallForm(kind, args, kwargs)
        key = (kind, form.key)
        if key not in self._functions:
            function = OpaqueFunction(kind, apply, form, has_form=self.is_opaque(kind))
            self._functions[key] = self._defined(function)
        return self._functions[key], form.operands(args, kwargs)

    def _defined(self, function: OpaqueFunction) -> OpaqueFunction:
        base = name = re.sub(r"\W", "_", function.name)
        number = 0
        while self._operators.has(name):
            number += 1
            name = f"{base}__form_{number}"
        parameters = ", ".join(f"{type_} {p}" for p, type_ in function.form.parameters.items())
        signature = f"({parameters}) -> Tensor[]"
        function.op = self._operators.define(name, signature, function.run, function.run_on_fakes)
        if not function.has_form:
            _torch_private.set_decomposition(function.op, function.run)
        return function


_recording: ContextVar[OpaqueFunctions | None] = ContextVar("recording", default=None)
"""That of this thread; None inside an opaque function."""


def _applied(apply: Apply, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    calls = _recording.get()
    if calls is not None and calls.is_opaque(kind):
        return calls.call(apply, kind, args, kwargs)
    return apply(*args, **kwargs)


def note_shared_writes() -> None:
    """Of a run that has ended: writes of memory that functions returned of their arguments."""
    calls = _recording.get()
    if calls is not None:
        calls.note_writes()


def opaque_to_the_compiler() -> contextlib.AbstractContextManager[None]:
    """Opaque functions are not compiled by torch.export, except for those that no run has called:
    they may be under torch.vmap, where none can be opaque."""
    calls = _recording.get()
    met = [] if calls is None else [f.kind for f in calls.functions if calls.is_opaque(f.kind)]
    return _torch_private.calls_left_to_run(set(met))


def operator_in_torchscript(
    node: Any, tensors: Sequence[Any]
) -> tuple[OpaqueFunction, list[Any]] | None:
    """For a node that calls Python: the operator of a `torch.autograd.Function`, and its arguments.
    None for other functions, and for one that has a graph of what it runs and is not opaque."""
    calls = _recording.get()
    kind = _torch_private.autograd_function_of(node)
    if calls is None or kind is None:
        return None
    if node.hasAttribute("Subgraph") and not calls.is_opaque(kind):
        return None
    given, constants = iter(tensors), iter(node.scalar_args())
    args = [next(given if letter == "d" else constants) for letter in node.cconv()]
    return calls.operator(node.pyobj(), kind, args, {})


class OpaqueFunction:
    """A `torch.autograd.Function` as an operator of the graph."""

    def __init__(self, kind: type, apply: Apply, form: _CallForm, *, has_form: bool) -> None:
        self.kind = kind
        self.form = form
        self.has_form = has_form
        """Whether it is written as a whole; else as what its forward runs."""
        self.op: Any = None
        self._apply = apply
        self._result_structure: pytree.Structure | None = None
        self._result_leaves: list[Any] = []
        self.shared: list[tuple[int, int]] = []
        """Which results have the memory of which arguments of the operator."""
        self._example: _Example | None = None

    @property
    def name(self) -> str:
        return self.kind.__name__

    @property
    def gives_tensors(self) -> list[bool]:
        """For each item of what `forward` returns, whether it is a tensor."""
        return [leaf is _GIVEN for leaf in self._result_leaves]

    def result(self, tensors: Sequence[Any]) -> Any:
        """What the function returns, with these as its tensors."""
        given = iter(tensors)
        assert self._result_structure is not None
        leaves = [next(given) if leaf is _GIVEN else leaf for leaf in self._result_leaves]
        return pytree.unflatten(self._result_structure, leaves)

    def run(self, *operands: Any) -> list[torch.Tensor]:
        """The kernel of the operator: the function's own forward."""
        tensors = [o for o in operands if isinstance(o, torch.Tensor)]
        versions = list(map(version_of, tensors))
        args, kwargs = self.form.arguments(operands)
        with _torch_private.variable_set(_recording, None), torch.no_grad():
            returned = self._apply(*args, **kwargs)
        if list(map(version_of, tensors)) != versions:
            raise CaptureError(
                f"{self.name}.forward writes one of its arguments in place, which no node of ONNX"
                " can do: compute a new tensor there"
            )
        leaves, self._result_structure = pytree.flatten(returned)
        self._result_leaves = [_GIVEN if isinstance(x, torch.Tensor) else x for x in leaves]
        results = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.shared = [
            (place, operand)
            for place, result in enumerate(results)
            for operand, given in enumerate(operands)
            if isinstance(given, torch.Tensor) and _torch_private.shares_memory(result, given)
        ]
        # An operator gives new memory.
        made: list[torch.Tensor] = []
        for result in results:
            is_known = any(_torch_private.shares_memory(result, t) for t in (*tensors, *made))
            made.append(result.clone() if is_known else result)
        if not any(map(_torch_private.is_fake, (*tensors, *made))):
            self._example = _Example(
                [tuple(t.shape) for t in tensors], [(t.dtype, tuple(t.shape)) for t in made]
            )
        return made

    def run_on_fakes(self, *operands: Any) -> list[torch.Tensor]:
        """The types of the results. A forward that needs real values has run on them in a trace:
        of its results, the dtypes and ranks are known, the sizes where no size is open."""
        if self._example is None:
            return self.run(*operands)
        structure, leaves = self._result_structure, self._result_leaves
        try:
            return self.run(*operands)
        except CaptureError:
            raise
        except Exception:
            self._result_structure, self._result_leaves = structure, leaves
            shapes = [tuple(o.shape) for o in operands if isinstance(o, torch.Tensor)]
            return self._example.results_like(shapes, operands)


@dataclass(frozen=True, slots=True)
class _Example:
    operand_shapes: list[tuple[int, ...]]
    results: list[tuple[torch.dtype, tuple[int, ...]]]

    def results_like(
        self, shapes: list[tuple[Any, ...]], operands: Sequence[Any]
    ) -> list[torch.Tensor]:
        is_static = all(type(size) is int for shape in shapes for size in shape)
        if is_static and shapes == self.operand_shapes:
            return [torch.empty(shape, dtype=dtype) for dtype, shape in self.results]
        fake = next(o for o in operands if isinstance(o, torch.Tensor))
        size = _torch_private.new_data_dependent_size_of
        return [torch.empty([size(fake) for _ in s], dtype=dtype) for dtype, s in self.results]


class _CallForm:
    """What is the same in all calls of one operator: how arguments nest, and those of them that
    no operator takes."""

    def __init__(self, kind: type, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        leaves, self._structure = _opened(args, kwargs)
        self._keywords = tuple(kwargs)
        self.argument_names = _names(kind, args, kwargs)
        """Those that `forward` has."""
        self.parameters: dict[str, str] = {}
        """The type of each argument of the operator."""
        self._fixed: list[Any] = []
        for (place, *path), leaf in zip(pytree.paths(self._structure), leaves, strict=True):
            type_ = _schema_type(leaf)
            if type_ is not None:
                text = "_".join((self.argument_names[int(place)], *path))
                self.parameters[_parameter_name(text, self.parameters)] = type_
            self._fixed.append(leaf if type_ is None else _GIVEN)
        fixed = tuple(_schema_type(leaf) or _constant_key(leaf) for leaf in leaves)
        self.key = (self._structure, self._keywords, fixed)

    def operands(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments of the operator among those of a call."""
        leaves, _ = _opened(args, kwargs)
        return [x for x, fixed in zip(leaves, self._fixed, strict=True) if fixed is _GIVEN]

    def arguments(self, operands: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the function, with these in the places of the operator's."""
        given = iter(operands)
        leaves = [next(given) if fixed is _GIVEN else fixed for fixed in self._fixed]
        items = pytree.unflatten(self._structure, leaves)
        count = len(items) - len(self._keywords)
        return items[:count], dict(zip(self._keywords, items[count:], strict=True))


class _Whole:
    """An argument that has no tensors or sizes in it."""

    def __init__(self, content: Any) -> None:
        self.content = content


def _opened(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], pytree.Structure]:
    arguments = [
        a if any(map(_is_traced, pytree.flatten(a)[0])) else _Whole(a)
        for a in (*args, *kwargs.values())
    ]
    leaves, structure = pytree.flatten(arguments)
    return [leaf.content if isinstance(leaf, _Whole) else leaf for leaf in leaves], structure


def _is_traced(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, Value, torch.SymInt, torch.SymFloat, sympy.Basic))


def _schema_type(leaf: Any) -> str | None:
    """How an operator takes it; None for what none does."""
    if isinstance(leaf, (torch.Tensor, Value)):
        return "Tensor"
    if isinstance(leaf, sympy.Basic):
        return "SymInt" if leaf.is_integer else "Scalar"
    if isinstance(leaf, torch.SymInt) or (type(leaf) is int and -_LARGEST <= leaf < _LARGEST):
        return "SymInt"
    if isinstance(leaf, torch.SymFloat):
        return "Scalar"
    if type(leaf) is float:
        return "float"
    return {bool: "bool", str: "str"}.get(type(leaf))


def _names(kind: type, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """The names that `forward` has for the arguments of a call."""
    parameters = list(inspect.signature(kind.forward).parameters.values())  # type: ignore[attr-defined]
    if not _torch_private.has_setup_context(kind):
        parameters = parameters[1:]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in positional][: len(args)]
    names += [f"argument_{place}" for place in range(len(names), len(args))]
    return [*names, *kwargs]


def _parameter_name(text: str, taken: Collection[str]) -> str:
    plain = re.sub(r"[^0-9a-zA-Z_]", "_", text)
    plain = plain if plain[:1].isalpha() else f"argument{plain}"
    name, number = plain, 0
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name


def _constant_key(constant: Any) -> Hashable:
    """Equal for constants that are the same to the function."""
    leaves, structure = pytree.flatten(constant)
    return (structure, tuple(map(_leaf_key, leaves)))


def _leaf_key(leaf: Any) -> Hashable:
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return (type(leaf), leaf)
