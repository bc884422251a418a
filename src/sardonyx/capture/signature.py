"""How the user's nested arguments and results map to the flat inputs and outputs of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from sardonyx.capture import tree
from sardonyx.capture.dynamic import DynamicDim
from sardonyx.errors import InvalidOptionError, format_message


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


@dataclass(frozen=True, slots=True)
class ConstantLeaf:
    """A leaf that is no tensor: kept in the structure, absent from the file."""

    value: Any


@dataclass(frozen=True, slots=True)
class Signature:
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    input_structure: tree.Structure
    """Of (args, kwargs) after keyword arguments were put in the order of `forward`."""
    input_leaves: tuple[InputSpec | ConstantLeaf, ...]
    output_structure: tree.Structure
    output_leaves: tuple[OutputSpec | ConstantLeaf, ...]
    keyword_names: tuple[str, ...] = ()
    state_outputs: tuple[str, ...] = ()

    def flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> list[torch.Tensor]:
        """The tensors to feed, in the order of `inputs`; everything else must be as exported."""
        kwargs = kwargs or {}
        unknown = set(kwargs) - set(self.keyword_names)
        ordered = {name: kwargs[name] for name in self.keyword_names if name in kwargs}
        leaves, structure = tree.flatten((tuple(args), ordered))
        if unknown or not tree.same_structure(structure, self.input_structure):
            raise InvalidOptionError(
                format_message(
                    "the arguments do not have the structure the model was exported with",
                    [
                        (
                            "exported",
                            ", ".join(".".join(p) for p in tree.paths(self.input_structure)),
                        ),
                        ("given", ", ".join(".".join(p) for p in tree.paths(structure))),
                    ],
                )
            )
        tensors = []
        for leaf, spec in zip(leaves, self.input_leaves, strict=True):
            if isinstance(spec, ConstantLeaf):
                if type(leaf) is not type(spec.value) or leaf != spec.value:
                    raise InvalidOptionError(
                        f"{leaf!r} was {spec.value!r} when the model was exported and is part of"
                        " the graph"
                    )
            else:
                tensors.append(
                    leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf, dtype=spec.dtype)
                )
        return tensors

    def unflatten(self, tensors: list[torch.Tensor]) -> Any:
        """The user's output structure around the file's outputs."""
        found = iter(tensors)
        leaves = [
            leaf.value if isinstance(leaf, ConstantLeaf) else next(found)
            for leaf in self.output_leaves
        ]
        return tree.unflatten(self.output_structure, leaves)
