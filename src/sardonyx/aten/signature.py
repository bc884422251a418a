"""How the user's nested arguments and results map to the flat inputs and outputs of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sardonyx.aten import pytree
from sardonyx.errors import InvalidOptionError


@dataclass(frozen=True, slots=True)
class DynamicDim:
    """One dim asked to be dynamic. An optional one (Dim.AUTO) may turn out fixed."""

    name: str
    required: bool = True
    minimum: int | None = None
    maximum: int | None = None
    roots: tuple[str, ...] = ()
    """The names of the dims that a derived one (`2*d`, `past + new`) is computed from."""
    derive: Callable[..., Any] | None = None
    """From the sizes of the roots."""

    def within(self, size: int) -> int:
        """The nearest size that the caller allows."""
        size = max(size, self.minimum or 0)
        return size if self.maximum is None else min(size, self.maximum)

    def free_dims(self, size: int) -> dict[str, int]:
        """The dims that it follows from, where it has this size, if these are known then: of
        `k*b + c` it is `b`, and of one that follows from no other itself."""
        if len(self.roots) > 1:
            return {}
        factor, more = self.coefficients()
        return {(self.roots or (self.name,))[0]: (size - more) // factor}

    def coefficients(self) -> tuple[int, int]:
        """k and c of a dim `k*b + c`; 1 and 0 of one that follows from no other."""
        more = 0 if self.derive is None else self.derive(0)
        return 1 if self.derive is None else self.derive(1) - more, more

    def size(self, sizes: Mapping[str, int]) -> int:
        """Its size where the free dims have these."""
        if self.derive is not None and all(root in sizes for root in self.roots):
            return int(self.derive(*(sizes[root] for root in self.roots)))
        return sizes[self.name]

    def where(self, sizes: Mapping[str, int]) -> DynamicDim | None:
        """What it is where other dims have these sizes; None where it is a number then."""
        free = tuple(name for name in self.roots or (self.name,) if name not in sizes)
        if len(free) == len(self.roots or (self.name,)) or not free:
            return self if free else None
        return replace(
            self,
            roots=free,
            derive=lambda *of_free: self.size({**sizes, **dict(zip(free, of_free, strict=True))}),
        )


DynamicAxes = dict[int, DynamicDim]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of the file. `dims` holds numbers and the names of dynamic dims."""

    name: str
    path: str
    kind: str
    dtype: torch.dtype
    dims: tuple[int | str, ...]
    dynamic: Mapping[int, DynamicDim] = field(default_factory=dict)
    """What the caller said of the dynamic dims, by axis."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    name: str
    path: str
    is_list: bool = False
    """Whether it is a list in PyTorch, of as many items as there are at run time: a sequence in the
    file, or a 1-D tensor of its numbers."""
    step: float = 0.0
    """The distance of neighbouring values, where the model quantizes it; 1 of the integers."""


@dataclass(frozen=True, slots=True)
class ConstantLeaf:
    """A leaf that is no tensor: kept in the structure, absent from the file."""

    value: Any
    name: str = ""
    """Of an input: what the caller knows it by."""


@dataclass(frozen=True, slots=True)
class Signature:
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    input_structure: pytree.Structure
    """Of (args, kwargs) after keyword arguments were put in the order of `forward`."""
    input_leaves: tuple[InputSpec | ConstantLeaf, ...]
    output_structure: pytree.Structure
    output_leaves: tuple[OutputSpec | ConstantLeaf, ...]
    keyword_names: tuple[str, ...] = ()
    state_outputs: tuple[str, ...] = ()
    complex_outputs: frozenset[str] = frozenset()
    """Those among all outputs that are complex in PyTorch; the file has pairs of reals."""
    argument_names: tuple[str, ...] = ()
    """Forward's own names of the arguments that were positional in the export."""

    def flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> list[torch.Tensor]:
        """The tensors to feed, in the order of `inputs`; everything else must be as exported."""
        tensors = []
        for leaf, spec in zip(self.leaves(args, kwargs), self.input_leaves, strict=True):
            if isinstance(spec, ConstantLeaf):
                if type(leaf) is not type(spec.value) or leaf != spec.value:
                    raise InvalidOptionError(
                        f"{spec.name or 'an argument'} is {leaf!r}, but it was {spec.value!r} when"
                        " the model was exported and is part of the graph"
                    )
            else:
                tensors.append(_tensor(leaf, spec))
        check_sizes(tensors, [s.name for s in self.inputs], [s.dynamic for s in self.inputs])
        return tensors

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> list[Any]:
        """What the arguments hold, in the order of `input_leaves`."""
        args, kwargs = self._as_exported(args, kwargs or {})
        unknown = set(kwargs) - set(self.keyword_names)
        ordered = {name: kwargs[name] for name in self.keyword_names if name in kwargs}
        leaves, structure = pytree.flatten((args, ordered))
        if unknown or structure != self.input_structure:
            _, given = pytree.flatten((args, kwargs))
            places = self._places(self.input_structure), self._places(given) or "nothing"
            if places[0] == places[1]:
                places = pytree.difference(self.input_structure, given) or places
            raise InvalidOptionError(
                "the arguments do not have the structure the model was exported with",
                [("exported", places[0]), ("given", places[1])],
            )
        return leaves

    def _as_exported(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments given by name in the places that they had in the export."""
        named = dict(kwargs)
        placed = list(args)
        for name in self.argument_names[len(args) :]:
            if name not in named:
                break
            placed.append(named.pop(name))
        return tuple(placed), named

    def _places(self, structure: pytree.Structure) -> str:
        """The names of the leaves of (args, kwargs), as the caller knows them."""
        names = []
        for kind, first, *rest in pytree.paths(structure):
            if kind == "0":
                known = int(first) < len(self.argument_names)
                first = self.argument_names[int(first)] if known else f"argument {int(first) + 1}"
            names.append(".".join((first, *rest)))
        return ", ".join(names)

    def unflatten(self, outputs: Sequence[torch.Tensor | list[torch.Tensor]]) -> Any:
        """The user's output structure around the file's outputs."""
        found = iter(outputs)
        leaves = [
            leaf.value if isinstance(leaf, ConstantLeaf) else as_returned(leaf, next(found))
            for leaf in self.output_leaves
        ]
        return pytree.unflatten(self.output_structure, leaves)


def as_returned(
    spec: OutputSpec, output: torch.Tensor | list[torch.Tensor]
) -> torch.Tensor | list[torch.Tensor]:
    """An output of the file as the model returns it."""
    if spec.is_list and isinstance(output, torch.Tensor):
        return list(output.unbind())
    return output


def _tensor(leaf: Any, spec: InputSpec) -> torch.Tensor:
    """The leaf as the file takes it: its dtype, its rank and its fixed sizes are the example's."""
    if spec.kind == "int" and isinstance(leaf, float):
        raise InvalidOptionError(f"{spec.name} was an int when the model was exported: not {leaf}")
    if isinstance(leaf, torch.Tensor):
        tensor = leaf
    else:
        try:
            tensor = torch.tensor(leaf, dtype=spec.dtype)
        except (TypeError, ValueError, RuntimeError):
            raise InvalidOptionError(f"{spec.name} is {leaf!r}, not a {spec.kind}") from None
    fixed = [
        axis
        for axis, (size, dim) in enumerate(zip(tensor.shape, spec.dims, strict=False))
        if isinstance(dim, int) and dim != size
    ]
    if tensor.dtype == spec.dtype and tensor.dim() == len(spec.dims) and not fixed:
        return tensor
    advice = ""
    if fixed and tensor.dim() == len(spec.dims):
        asked = ", ".join(f'{axis}: "..."' for axis in fixed)
        advice = (
            f"dim {fixed[0]} is fixed in the file;"
            f' export with dynamic_axes={{"{spec.name}": {{{asked}}}}} for any size'
        )
    raise InvalidOptionError(
        f"{spec.name} is {_described(tensor.dtype, tensor.shape)}, the file takes"
        f" {_described(spec.dtype, spec.dims)}",
        [("try", advice)],
    )


def _described(dtype: torch.dtype, dims: Sequence[int | str]) -> str:
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, dims))}]"


def check_sizes(
    leaves: Sequence[Any], names: Sequence[str], dynamic: Sequence[Mapping[int, DynamicDim]]
) -> None:
    """Dims of one name have one size and `2*n` has twice that of `n`."""
    sizes: dict[str, int] = {}
    found: list[tuple[str, DynamicDim, int]] = []
    for leaf, name, axes in zip(leaves, names, dynamic, strict=True):
        for axis, dim in axes.items():
            size = leaf.shape[axis] if isinstance(leaf, torch.Tensor) else leaf
            place = f"dim {axis} of {name!r} is called {dim.name!r} and is {size}"
            if sizes.setdefault(dim.name, size) != size:
                raise InvalidOptionError(
                    f"{place}, but another dim of that name is {sizes[dim.name]}"
                )
            found.append((place, dim, size))
    for place, dim, size in found:
        if dim.roots and sizes.keys() >= set(dim.roots) and dim.size(sizes) != size:
            others = " and ".join(f"{root!r} is {sizes[root]}" for root in dim.roots)
            raise InvalidOptionError(f"{place}, but {others}")
