"""Type inference: PyTorch runs each node on fake tensors, with symbols for dynamic sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import (
    Argument,
    AtenGraph,
    Node,
    SourceLocation,
    TensorType,
    Value,
)
from sardonyx.aten.pytree import leaves_in, tensors_in
from sardonyx.aten.schema import METADATA_WRITES, bind
from sardonyx.aten.shape_rules.broadcast import with_common_sizes, with_open_sizes
from sardonyx.aten.shape_rules.rules import SHAPE_RULES
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.errors import CaptureError

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def type_of(tensor: torch.Tensor) -> TensorType:
    return TensorType(tensor.dtype, tuple(_torch_private.dim_of(d) for d in tensor.shape))


def has_symbols(arguments: Sequence[Any]) -> bool:
    """Whether a symbolic number is among the arguments of a call."""
    return any(isinstance(leaf, _SYMBOLIC) for leaf in leaves_in(arguments))


class TypeInference:
    """Runs operators on fake tensors; makes the fake of a value when one is first needed.

    In a new mode all fakes are on the host, wherever the model is: types are the same there, and
    kernels of other devices specialize more sizes.
    """

    def __init__(self, mode: Any = None, *, on_host: bool = True) -> None:
        self.mode = mode or _torch_private.new_fake_mode()
        self._on_host = mode is None or on_host
        self._names = 0
        self._cache = InferenceCache(self.mode)

    @classmethod
    def for_graph(cls, graph: AtenGraph) -> TypeInference:
        """In the fake mode the capture used, if it used one: its size symbols live there."""
        values = [*graph.inputs, *graph.parameters.values()]
        fakes = [v.fake for v in values if v.fake is not None]
        modes = (_torch_private.fake_mode_of(fake) for fake in fakes)
        on_host = all(fake.device.type == "cpu" for fake in fakes)
        return cls(next((m for m in modes if m is not None), None), on_host=on_host)

    def fake_of(self, value: Value) -> torch.Tensor:
        if value.fake is None:
            if value.constant is not None:
                value.fake = _torch_private.fake_from(self.mode, self.stand_in(value.constant))
            else:
                sizes = [self.argument(d) for d in value.shape]
                value.fake = _torch_private.fake_from_sizes(self.mode, sizes, value.dtype)
        return value.fake

    def stand_in(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the same type and strides, on the device of the fakes."""
        if not self._on_host or tensor.device.type == "cpu":
            return tensor
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)

    def argument(
        self, argument: Argument, fake_of: Callable[[Value], torch.Tensor] | None = None
    ) -> Any:
        """A bound argument as PyTorch takes it: fake tensors and SymInts."""
        if isinstance(argument, torch.device) and self._on_host:
            return torch.device("cpu")
        if isinstance(argument, Value):
            return (fake_of or self.fake_of)(argument)
        if isinstance(argument, sympy.Expr):
            return _torch_private.sym_int(self.mode, argument)
        if isinstance(argument, sympy.Basic):  # no type depends on a condition
            return True
        if isinstance(argument, list):
            return [self.argument(a, fake_of) for a in argument]
        return argument

    def run(self, op: OpOverload, arguments: dict[str, Argument]) -> Any:
        as_view = METADATA_WRITES.get(op._schema.name)
        if as_view is not None:  # would change the fake of a value that earlier nodes read
            op = as_view(op)
        fakes = {name: self.argument(a) for name, a in arguments.items()}
        for parameter in op._schema.arguments:
            # No type depends on a float; PyTorch has no symbolic ones.
            if str(parameter.type) in ("float", "Optional[float]") and isinstance(
                arguments.get(parameter.name), sympy.Expr
            ):
                fakes[parameter.name] = 1.0

        def run() -> Any:
            common = with_common_sizes(op, fakes, self.mode)
            result = _torch_private.run_on_fakes(op, common, self.mode, SHAPE_RULES.get(op))
            return with_open_sizes(op, common, result, self.mode)

        if not op._schema.is_mutable:
            return self._cache.result(op, fakes, run)
        for fake in tensors_in(list(fakes.values())):
            self._cache.forget(fake)  # its sizes may change
        return run()

    def call(
        self,
        graph: AtenGraph,
        op: OpOverload,
        args: Sequence[Argument],
        location: SourceLocation,
        kwargs: dict[str, Argument] | None = None,
    ) -> Node:
        """A new node for one call, its results typed; it is not put into the graph."""
        arguments = bind(op, args, kwargs)
        try:
            result = self.run(op, arguments)
        except Exception as error:
            said = in_callers_names(str(error).splitlines()[0], graph.symbol_names)
            raise CaptureError(
                f"{op} cannot be run on these inputs: {said}", [("first", location.describe())]
            ) from error
        return Node(op, arguments, self.values(graph, result), location)

    def values(self, graph: AtenGraph, result: Any) -> list[Value]:
        return [self.value(graph, fake) for fake in tensors_in(result)]

    def value(self, graph: AtenGraph, fake: torch.Tensor) -> Value:
        self._names += 1
        value = Value(f"t{self._names}", type_of(fake), fake=fake)
        graph.note_sizes(value)
        return value


class InferenceCache:
    """Results of operators by the types, sizes and strides of the arguments: models call an
    operator on tensors of one shape again and again. A later call with the same key gets new fake
    tensors of the same kind, views of its arguments among them."""

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._known: dict[Hashable, _Template | None] = {}
        self._keys: dict[int, tuple[Any, frozenset[sympy.Basic], ref[torch.Tensor]]] = {}
        """Keys of tensors by id; with the tensor, as an id can be reused."""

    def forget(self, fake: torch.Tensor) -> None:
        """Its sizes were changed in place."""
        self._keys.pop(id(fake), None)

    def result(self, op: OpOverload, arguments: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        symbols: set[sympy.Basic] = set()
        given: list[torch.Tensor] = []
        try:
            key = (op, *(self._key(a, symbols, given) for a in arguments.values()))
            known = self._known.get(key)
        except TypeError:  # an argument is not hashable
            return run()
        if known is not None:
            return self._made(known, given)
        result = run()
        if key not in self._known:
            self._known[key] = self._template(result, given, symbols)
        return result

    def _key(self, argument: Any, symbols: set[sympy.Basic], given: list[torch.Tensor]) -> Any:
        if isinstance(argument, torch.Tensor):
            given.append(argument)
            found = self._keys.get(id(argument))
            if found is None or found[2]() is not argument:
                found = self._keys[id(argument)] = *_tensor_key(argument), ref(argument)
            symbols |= found[1]
            return found[0]
        if isinstance(argument, (list, tuple)):
            return tuple(self._key(item, symbols, given) for item in argument)
        if isinstance(argument, _SYMBOLIC):
            expression = _torch_private.dim_of(argument)
            if isinstance(expression, sympy.Basic):
                symbols |= expression.free_symbols
            return type(argument), expression
        return type(argument), argument

    def _template(
        self, result: Any, given: list[torch.Tensor], symbols: set[sympy.Basic]
    ) -> _Template | None:
        tensors = result if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
            return None
        made = []
        fresh: set[int] = set()
        storages = [
            _torch_private.storage_of(g) if _torch_private.is_plain(g) else None for g in given
        ]
        for tensor in tensors:
            if not _torch_private.is_plain(tensor) or any(tensor is g for g in given):
                return None
            of_result = _tensor_key(tensor)[1]
            if not of_result <= symbols:
                return None
            storage = _torch_private.storage_of(tensor)
            base = storages.index(storage) if storage in storages else None
            if base is None and storage in fresh:
                return None
            fresh.add(storage)
            offset = tensor.storage_offset()
            if base is None and _torch_private.dim_of(offset) != 0:
                return None
            sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
            device = _torch_private.fake_device(tensor)
            made.append(_Like(tensor.dtype, device, sizes, strides, offset, base))
        if any(_torch_private.depends_on_data(self._mode, s) for s in symbols):
            return None
        if any(one is not None and storages.count(one) > 1 for one in storages):
            return None
        return _Template(tuple(made), type(result) if isinstance(result, (list, tuple)) else None)

    def _made(self, template: _Template, given: list[torch.Tensor]) -> Any:
        made = [self._like(one, given) for one in template.tensors]
        return made[0] if template.container is None else template.container(made)

    def _like(self, like: _Like, given: list[torch.Tensor]) -> torch.Tensor:
        if like.base is None:
            return _torch_private.new_fake(
                self._mode, like.sizes, like.strides, like.dtype, like.device
            )
        base = given[like.base]
        return _torch_private.fake_view(base, like.sizes, like.strides, like.offset, like.dtype)


@dataclass(frozen=True, slots=True)
class _Like:
    dtype: torch.dtype
    device: torch.device
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    base: int | None
    """The index of the argument that it is a view of."""


@dataclass(frozen=True, slots=True)
class _Template:
    tensors: tuple[_Like, ...]
    container: type | None


def _tensor_key(tensor: torch.Tensor) -> tuple[Any, frozenset[sympy.Basic]]:
    is_known = getattr(tensor, "constant", None) is not None  # the result may depend on its values
    if is_known or not (_torch_private.is_fake(tensor) and _torch_private.is_plain(tensor)):
        return object(), frozenset()  # which equals nothing
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    dims = tuple(map(_torch_private.dim_of, numbers))
    symbols = [d.free_symbols for d in dims if isinstance(d, sympy.Basic)]
    device = _torch_private.fake_device(tensor)
    return (tensor.dtype, device, dims), frozenset().union(*symbols)
