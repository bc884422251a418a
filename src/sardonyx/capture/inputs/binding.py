"""The caller's arguments, bound to `forward`, flattened and named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten import pytree
from sardonyx.aten.signature import (
    ConstantLeaf,
    DynamicAxes,
    InputSpec,
    check_sizes,
)
from sardonyx.capture.inputs.dynamic_shapes import (
    from_dynamic_axes,
    from_dynamic_shapes,
    with_expressions,
)
from sardonyx.capture.inputs.example_sizes import (
    SMALLEST_OF_ALL,
    Follows,
    possible_sums,
    with_generic_sizes,
    with_sizes,
)
from sardonyx.errors import InvalidOptionError, UnsupportedDtypeError
from sardonyx.options import Options


@dataclass(frozen=True, slots=True)
class PreparedInputs:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    structure: pytree.Structure
    leaves: tuple[Any, ...]
    """As the caller gave them."""
    capture_leaves: tuple[Any, ...]
    """As the capture runs them: dynamic dims of size 0 and 1, which PyTorch treats as special,
    have a size that stands for any."""
    names: tuple[str, ...]
    dynamic: tuple[DynamicAxes, ...]
    output_axes: dict[str, dict[int, str]]
    """The entries of `dynamic_axes` that name no inputs."""
    constant_numbers: frozenset[int] = frozenset()
    """Positions of Python numbers that the model needs as such: part of the graph, no inputs."""
    argument_names: tuple[str, ...] = ()
    """Forward's own names of the positional arguments."""
    smallest_generic: int = 2
    """Dynamic dims of a smaller size are recorded with another one."""
    times: int = 1
    """All other dynamic dims are recorded with so many times their size."""
    follows: Follows = field(default_factory=dict)
    """The dynamic dims whose sizes the model wants to be sums of others."""

    @property
    def input_positions(self) -> list[int]:
        """Of the leaves that are inputs of the file."""
        return [
            position
            for position, leaf in enumerate(self.leaves)
            if is_graph_input(leaf) and position not in self.constant_numbers
        ]

    @property
    def number_positions(self) -> list[int]:
        """Of the inputs that are Python numbers."""
        return [p for p in self.input_positions if not isinstance(self.leaves[p], torch.Tensor)]

    @property
    def nameable_count(self) -> int:
        """How many of the caller's `input_names` are spent before the parameters' begin."""
        return sum(map(is_graph_input, self.leaves))

    @property
    def example_sizes(self) -> list[tuple[int, ...]]:
        return _sizes(self.leaves)

    def free_sizes(self, leaves: Sequence[Any], positions: Iterable[int]) -> dict[str, int]:
        """By name, the sizes of the dims that follow from no others, and integers."""
        sizes: dict[str, int] = {}
        for position in positions:
            leaf = leaves[position]
            if isinstance(leaf, torch.Tensor):
                for axis, dim in self.dynamic[position].items():
                    sizes |= dim.free_dims(leaf.shape[axis])
            elif isinstance(leaf, int):
                sizes[self.names[position]] = leaf
        return sizes

    def leaves_of(self, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """The example with these sizes of dims, and those that follow from them."""
        return with_sizes(self.leaves, self.dynamic, sizes, self.follows)

    @property
    def recorded_sizes(self) -> list[tuple[int, ...]]:
        return _sizes(self.capture_leaves)

    def recorded_larger(self) -> PreparedInputs | None:
        """With sizes 2 and 3 recorded as larger ones: what the model makes of them, as in `x[1:]`,
        may have a special size. None where there are no such dims."""
        return self._recorded_as(SMALLEST_OF_ALL, 1)

    def recorded_doubled(self) -> PreparedInputs | None:
        """As recorded_larger, and every other dynamic dim twice as large as in the example."""
        return self._recorded_as(SMALLEST_OF_ALL, 2)

    def keeps(self, sizes: Iterable[int]) -> bool:
        """Whether recorded_larger has all dims of these sizes as they are."""
        return self.recorded_larger() is None or min(sizes) >= SMALLEST_OF_ALL

    def _recorded_as(self, smallest: int, times: int) -> PreparedInputs | None:
        larger = self._sized(smallest_generic=smallest, times=times)
        is_done = (self.times, self.smallest_generic) >= (times, smallest)
        return None if is_done or larger.recorded_sizes == self.recorded_sizes else larger

    def _sized(self, **changes: Any) -> PreparedInputs:
        """With these fields changed, and recorded at the sizes that follow from them."""
        made = replace(self, **changes)
        sized = with_generic_sizes(
            made.leaves, made.dynamic, made.smallest_generic, made.times, made.follows
        )
        return replace(made, capture_leaves=sized)

    def without_dynamic(self, fixed: Collection[tuple[int, int]]) -> PreparedInputs:
        """With the dims (position of the leaf, axis) as they are in the example."""
        dynamic = tuple(
            {axis: dim for axis, dim in axes.items() if (position, axis) not in fixed}
            for position, axes in enumerate(self.dynamic)
        )
        names = {dim.name for axes in dynamic for dim in axes.values()}
        follows = {n: parts for n, parts in self.follows.items() if names >= {n, *parts}}
        return self._sized(dynamic=dynamic, follows=follows)

    def with_fixed(self, sizes: Mapping[str, int]) -> PreparedInputs:
        """With the dims of these names fixed to these sizes, those of the example."""
        dynamic = tuple(
            {axis: left for axis, dim in axes.items() if (left := dim.where(sizes)) is not None}
            for axes in self.dynamic
        )
        return self._sized(dynamic=dynamic)

    def recorded_with_sums(self) -> Iterator[PreparedInputs]:
        """Where dims of size 0 and 1 are recorded with another size, with that of dims which may
        follow from them changed as well."""
        for follows in possible_sums(self.leaves, self.dynamic):
            sized = self._sized(follows=follows)
            if sized.recorded_sizes != self.recorded_sizes:
                yield sized

    def with_constants(self, numbers: Collection[int]) -> PreparedInputs:
        """With the numbers at these positions as part of the graph."""
        return replace(self, constant_numbers=self.constant_numbers | frozenset(numbers))

    def rebuild(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = pytree.unflatten(self.structure, list(leaves))
        return args, kwargs

    def specs(self) -> list[InputSpec | ConstantLeaf]:
        """What the file's inputs are called and how they look."""
        found: list[InputSpec | ConstantLeaf] = []
        for position, (leaf, name, axes) in enumerate(
            zip(self.leaves, self.names, self.dynamic, strict=True)
        ):
            if position in self.constant_numbers:
                found.append(ConstantLeaf(leaf, name))
            elif isinstance(leaf, torch.Tensor):
                dims = tuple(axes[a].name if a in axes else d for a, d in enumerate(leaf.shape))
                found.append(InputSpec(name, name, "tensor", leaf.dtype, dims, axes))
            elif isinstance(leaf, bool) or not isinstance(leaf, (int, float)):
                found.append(ConstantLeaf(leaf, name))
            else:
                dtype = torch.int64 if isinstance(leaf, int) else torch.float64
                found.append(InputSpec(name, name, type(leaf).__name__, dtype, ()))
        return found


def is_graph_input(leaf: Any) -> bool:
    """Tensors and numbers are inputs of the file; bools, strings and None are part of the graph."""
    return isinstance(leaf, torch.Tensor) or (
        isinstance(leaf, (int, float)) and not isinstance(leaf, bool)
    )


def split_arguments(
    args: Any, kwargs: dict[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`args` as the reference takes it: a tensor, a tuple, or a tuple that ends with a dict of
    keyword arguments (only where `kwargs` is not given)."""
    if not isinstance(kwargs, dict | None):
        raise InvalidOptionError(f"kwargs must be a dict of arguments by name, not {kwargs!r}")
    if isinstance(args, list):
        args = tuple(args)
    if not isinstance(args, tuple) or hasattr(args, "_fields"):
        args = (args,)
    if kwargs is None and args and type(args[-1]) is dict:
        return args[:-1], dict(args[-1])
    return args, dict(kwargs or {})


def prepare_inputs(
    forward: Callable[..., Any], args: Any, kwargs: dict[str, Any] | None, options: Options
) -> PreparedInputs:
    positional, keywords = split_arguments(args, kwargs)
    parameter_names, keywords = _bind_to_forward(
        forward, positional, keywords, hint=_trailing_dict_hint(args, kwargs)
    )
    leaves, structure = pytree.flatten((positional, keywords))
    names = []
    for path in pytree.paths(structure):
        first = parameter_names[int(path[1])] if path[0] == "0" else path[1]
        names.append(".".join((first, *path[2:])))
    for leaf, name in zip(leaves, names, strict=True):
        _check_leaf(name, leaf)
    names = named_by_caller(names, leaves, options.input_names)
    dynamic: list[DynamicAxes] = [{} for _ in leaves]
    output_axes: dict[str, dict[int, str]] = {}
    if options.dynamic_axes and options.dynamic_shapes is not None:
        raise InvalidOptionError("give dynamic_axes or dynamic_shapes, not both")
    if options.dynamic_axes:
        known = [
            name if is_graph_input(leaf) else None for name, leaf in zip(names, leaves, strict=True)
        ]
        dynamic, output_axes = from_dynamic_axes(options.dynamic_axes, known, leaves)
    elif options.dynamic_shapes is not None:
        dynamic = from_dynamic_shapes(
            options.dynamic_shapes, positional, keywords, [*parameter_names, *keywords], names
        )
        dynamic = with_expressions(dynamic, leaves)
    check_sizes(leaves, names, dynamic)
    return PreparedInputs(
        positional,
        keywords,
        structure,
        tuple(leaves),
        with_generic_sizes(leaves, dynamic),
        tuple(names),
        tuple(dynamic),
        output_axes,
        argument_names=tuple(parameter_names),
    )


def named_by_caller(names: Sequence[str], leaves: Sequence[Any], given: Sequence[str]) -> list[str]:
    """The caller's names for the first inputs, ours for the others."""
    named = list(names)
    positions = [i for i, leaf in enumerate(leaves) if is_graph_input(leaf)]
    for position, name in zip(positions, given, strict=False):
        named[position] = name
    taken: set[str] = set()
    for index, position in enumerate(positions):
        name = named[position]
        if not name:
            raise InvalidOptionError("an input name is empty")
        if name in taken and index < len(given):
            inputs = ", ".join(names[p] for p in positions)
            raise InvalidOptionError(
                f"input_names has {name!r} twice: the inputs {inputs} need a name each"
            )
        while name in taken:
            name += "_input"
        taken.add(name)
        named[position] = name
    return named


def _trailing_dict_hint(args: Any, kwargs: dict[str, Any] | None) -> str:
    """What to say where a dict that was meant as an argument was taken for keyword arguments."""
    if kwargs is not None or not isinstance(args, tuple | list) or not args:
        return ""
    if type(args[-1]) is not dict:
        return ""
    return (
        "a dict at the end of args holds keyword arguments: if it is an argument itself, put an"
        " empty one behind it, as (..., batch, {}), or give kwargs={}"
    )


def _bind_to_forward(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], hint: str
) -> tuple[list[str], dict[str, Any]]:
    """The names of the positional arguments, and the keyword arguments in forward's order."""
    if _torch_private.is_scripted(forward):
        return _schema_names(forward, len(args)), kwargs
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return _schema_names(forward, len(args)), kwargs
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidOptionError(
            f"the arguments do not fit the model: {error}",
            [
                ("forward", str(signature)),
                ("given", _describe_arguments(args, kwargs)),
                ("try", hint),
            ],
        ) from None
    names: list[str] = []
    ordered: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}.{i}" for i in range(len(bound.arguments.get(name, ())))]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            ordered.update(bound.arguments.get(name, {}))
        elif name in kwargs:
            ordered[name] = kwargs[name]
        elif name in bound.arguments:
            names.append(name)
    return names, ordered


def _schema_names(forward: Callable[..., Any], count: int) -> list[str]:
    """The names of the first arguments where Python knows none: TorchScript has a schema."""
    schema = getattr(forward, "schema", None)
    names = [] if schema is None else [a.name for a in schema.arguments]
    if _torch_private.is_script_method(forward):
        names = names[1:]
    return [names[i] if i < len(names) else f"input_{i}" for i in range(count)]


def _describe_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return type(value).__name__

    return ", ".join([*map(one, args), *(f"{k}={one(v)}" for k, v in kwargs.items())]) or "nothing"


def _check_leaf(name: str, leaf: Any) -> None:
    if isinstance(leaf, torch.Tensor):
        wraps = _torch_private.is_wrapper_class(type(leaf))
        if wraps or leaf.layout is not torch.strided or leaf.is_nested:
            kind = f"a {type(leaf).__qualname__}" if wraps else leaf.layout
            kind = "a nested tensor" if leaf.is_nested else kind
            raise UnsupportedDtypeError(f"input {name!r} is {kind}; ONNX inputs are dense tensors")
        if leaf.dtype in (torch.complex32,):
            raise UnsupportedDtypeError(f"input {name!r} is {leaf.dtype}, which ONNX does not have")
    elif not (leaf is None or isinstance(leaf, (bool, int, float, str, torch.dtype, torch.device))):
        raise InvalidOptionError(
            f"input {name!r} is a {type(leaf).__module__}.{type(leaf).__qualname__}; inputs are"
            " tensors, numbers, strings, None, and tuples, lists, dicts, dataclasses or registered"
            " pytrees of those (see torch.utils._pytree.register_pytree_node)"
        )


def _sizes(leaves: Sequence[Any]) -> list[tuple[int, ...]]:
    """Of tensors their shapes; of integers their values."""
    return [
        tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else (leaf,)
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) or type(leaf) is int
    ]
