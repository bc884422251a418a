"""Nested inputs and outputs: flattened to leaves with a path each, and unflattened."""

from __future__ import annotations

import copy
import dataclasses
import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Value
from sardonyx.errors import CaptureError, FinalCaptureError


@dataclass(frozen=True, slots=True)
class Leaf:
    """The place of a leaf; `index` counts leaves from the left."""

    index: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A container: its children by key, and how to make it from them."""

    keys: tuple[str, ...]
    children: tuple[Structure, ...]
    make: Callable[[list[Any]], Any] = dataclasses.field(compare=False)
    type_name: str


Structure = Leaf | Branch


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    if isinstance(structure, Leaf):
        return leaves[structure.index]
    return structure.make([unflatten(child, leaves) for child in structure.children])


def map_leaves(function: Callable[[Any], Any], nested: Any) -> Any:
    """The same structure with `function` of every leaf."""
    leaves, structure = flatten(nested)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def paths(structure: Structure, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every leaf, in order: keys, attribute names and positions."""
    if isinstance(structure, Leaf):
        yield prefix
        return
    for key, child in zip(structure.keys, structure.children, strict=True):
        yield from paths(child, (*prefix, key) if key else prefix)


def difference(left: Structure, right: Structure) -> tuple[str, str] | None:
    """The first containers in the same place that are of other kinds."""
    if isinstance(left, Leaf) and isinstance(right, Leaf):
        return None
    kinds = [one.type_name if isinstance(one, Branch) else "one value" for one in (left, right)]
    if kinds[0] != kinds[1]:
        return kinds[0], kinds[1]
    assert isinstance(left, Branch) and isinstance(right, Branch)
    pairs = zip(left.children, right.children, strict=False)
    return next((found for pair in pairs if (found := difference(*pair)) is not None), None)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    opened = open_container(tree)
    if opened is None:
        leaves.append(tree)
        return Leaf(len(leaves) - 1)
    keys, children, make = opened
    return Branch(
        tuple(keys),
        tuple(_flatten(child, leaves) for child in children),
        make,
        _type_name(tree),
    )


def _type_name(tree: Any) -> str:
    if is_named_tuple(tree):  # TorchScript makes new classes: the field names count
        return "NamedTuple"
    if (holder := _cache_or_layer(tree)) is not None:
        return f"{type(holder).__qualname__}({_settings(holder)})"
    if isinstance(tree, (torch.Tensor, QuantizedParts)):
        return f"quantized by {grid_of(tree)}"
    return f"{type(tree).__module__}.{type(tree).__qualname__}"


def is_named_tuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def open_container(tree: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a container; None for a leaf."""
    kind = type(tree)
    if kind is Value:  # of a script, whose arguments and results are values of its graph
        return None
    if isinstance(tree, (torch.Tensor, QuantizedParts)):
        return _open_quantized(tree)
    if kind in (tuple, list):
        return [str(i) for i in range(len(tree))], list(tree), kind
    if is_named_tuple(tree):
        return list(tree._fields), list(tree), kind._make
    if kind is dict:
        return _open_mapping(tree)
    opened = _torch_private.open_registered_pytree(tree) or _open_cache(tree)
    if opened is not None:
        return opened
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = [f.name for f in dataclasses.fields(tree)]
        return (
            fields,
            [getattr(tree, f) for f in fields],
            lambda items: _make_dataclass(kind, fields, items),
        )
    if isinstance(tree, Mapping):
        return _open_mapping(tree)
    if isinstance(tree, list):
        return [str(i) for i in range(len(tree))], list(tree), kind
    return None


def _open_mapping(tree: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]]:
    kind, names = type(tree), list(tree)
    return (
        [str(name) for name in names],
        [tree[name] for name in names],
        lambda items: kind(dict(zip(names, items, strict=True))),
    )


def _make_dataclass(kind: type, fields: list[str], items: list[Any]) -> Any:
    made: Any = object.__new__(kind)
    for name, item in zip(fields, items, strict=True):
        object.__setattr__(made, name, item)
    return made


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors among the arguments or the results of a call, those in lists and slices too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def leaves_in(value: Any) -> Iterator[Any]:
    """What nested lists, tuples and dicts hold; `flatten` knows more containers, and is slower."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves_in(item)
    else:
        yield value


# Quantized tensors, which ONNX does not have: integers in the file, under the name of the tensor.


@dataclass(frozen=True, slots=True)
class Grid:
    """What the integers of a quantized tensor stand for; of a tensor for each channel along an
    axis, or for all."""

    dtype: torch.dtype
    scale: float | torch.Tensor
    zero_point: Any
    axis: int | None = None

    def __str__(self) -> str:
        grid = (self.scale, self.zero_point)
        scale, zero = (g.tolist() if isinstance(g, torch.Tensor) else g for g in grid)
        along = "" if self.axis is None else f", axis {self.axis}"
        return f"scale {scale}, zero point {zero}{along}"

    def tensor(self, integers: Any) -> Any:
        """The quantized tensor of these integers."""
        if not isinstance(integers, torch.Tensor):
            return QuantizedParts(integers, self)
        return _torch_private.quantized_tensor(integers, self.scale, self.zero_point, self.axis)


@dataclass(frozen=True, slots=True)
class QuantizedParts:
    """A quantized tensor whose integers are a value of a graph, or stand for one."""

    integers: Any
    grid: Grid


def grid_of(tensor: torch.Tensor | QuantizedParts) -> Grid:
    if isinstance(tensor, QuantizedParts):
        return tensor.grid
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return Grid(tensor.dtype, tensor.q_scale(), tensor.q_zero_point())
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return Grid(tensor.dtype, scales, zeros, tensor.q_per_channel_axis())


def _open_quantized(
    tree: torch.Tensor | QuantizedParts,
) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    if isinstance(tree, torch.Tensor) and not tree.is_quantized:
        return None
    refusal = FinalCaptureError(
        "a quantized tensor whose scale is computed at run time, or that has one for each"
        " channel, is no output of a file: return its dequantize()"
    )
    try:
        grid = grid_of(tree)
    except RuntimeError:  # data decides the scale
        raise refusal from None
    is_held = isinstance(grid.scale, torch.Tensor) and not _torch_private.is_fake(grid.scale)
    if not is_held and not isinstance(grid.scale, float):
        raise refusal
    integers = tree.int_repr() if isinstance(tree, torch.Tensor) else tree.integers
    return [""], [integers], lambda items: grid.tensor(items[0])


# The caches of Hugging Face Transformers, which models take and return as `past_key_values`: not
# registered as pytrees, but objects that hold tensors and counters among their settings.

_NAMES = {"keys": "key", "values": "value"}


@dataclass(frozen=True, slots=True)
class _Layer:
    """One of a cache's layers, whose classes have no base in common."""

    layer: Any


def _cache_or_layer(tree: Any) -> Any:
    library = sys.modules.get("transformers.cache_utils")
    is_cache = library is not None and isinstance(tree, library.Cache)
    return tree.layer if type(tree) is _Layer else tree if is_cache else None


def _open_cache(tree: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a cache or of a layer in one; None for everything else."""
    holder = _cache_or_layer(tree)
    if holder is None:
        return None
    layers = vars(holder).get("layers", [])
    state = {name: value for name, value in vars(holder).items() if _is_state(holder, name, value)}
    names, count = list(state), len(layers)
    numbers = {name: source for name in vars(holder) if (source := _number_in(holder, name))}
    empty = _copied(holder, {*names, *numbers, *(["layers"] if layers else [])})

    def make(items: list[Any]) -> Any:
        made = _copied(empty, set())
        constants = {name: torch.tensor(getattr(made, source)) for name, source in numbers.items()}
        vars(made).update(constants, **dict(zip(names, items[count:], strict=True)))
        if count:
            made.layers = items[:count]
        return made

    keys = [*map(str, range(count)), *(_NAMES.get(name, name) for name in names)]
    return keys, [*map(_Layer, layers), *state.values()], make


def _is_state(holder: Any, name: str, value: Any) -> bool:
    """Whether a run may change an attribute: of numbers, those in containers, and those that
    methods assign; what the constructor alone assigns is a setting."""
    if name == "layers" or _number_in(holder, name):
        return False
    parts = list(leaves_in(value))
    if any(isinstance(p, torch.Tensor) or _cache_or_layer(p) is not None for p in parts):
        return True
    for part in parts:
        if any(isinstance(p, torch.Tensor) for p in leaves_in(getattr(part, "__dict__", ()))):
            raise CaptureError(
                f"the attribute {name!r} of a {type(holder).__qualname__} is a"
                f" {type(part).__qualname__} that holds tensors: of a cache, tensors, numbers and"
                " tuples, lists and dicts of those can be inputs and outputs"
            )
    if not any(isinstance(p, _NUMBERS) and not isinstance(p, bool) for p in parts):
        return False
    kind: Any = type(holder)
    return isinstance(value, (dict, list)) or name in _assigned_by_methods(kind)


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def _number_in(holder: Any, name: str) -> str | None:
    """`window` for `_window_tensor`, which is that setting as a tensor."""
    source = name[1:].removesuffix("_tensor")
    return source if name == f"_{source}_tensor" and source in vars(holder) else None


@functools.cache
def _assigned_by_methods(kind: type) -> frozenset[str]:
    functions = [
        inspect.unwrap(method)
        for base in kind.__mro__
        for name, method in vars(base).items()
        if inspect.isfunction(method) and name != "__init__"
    ]
    steps = (step for function in functions for step in dis.get_instructions(function))
    return frozenset(step.argval for step in steps if step.opname == "STORE_ATTR")


def _settings(holder: Any) -> str:
    """The attributes that a run does not change, in text: numbers, flags and words."""
    kept = {
        name: value
        for name, value in vars(holder).items()
        if all(isinstance(p, (bool, int, float, str)) for p in leaves_in(value))
        and not _is_state(holder, name, value)
    }
    return ", ".join(f"{name}={value}" for name, value in kept.items())


def _copied(holder: Any, without: set[str]) -> Any:
    made = copy.copy(holder)
    for name, value in vars(holder).items():
        if name in without:
            vars(made)[name] = None
        elif isinstance(value, (dict, list, set)):
            vars(made)[name] = copy.deepcopy(value)
    return made
