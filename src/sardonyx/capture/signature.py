"""How the user's nested arguments and results map to the flat inputs and outputs of the file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sardonyx.capture import tree
from sardonyx.errors import InvalidOptionError, format_message


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of the file. `dims` holds numbers and the names of dynamic dims."""

    name: str
    path: str
    kind: str
    dtype: torch.dtype
    dims: tuple[int | str, ...]


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
    dropped: tuple[str, ...] = field(default=())

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
            elif spec.name not in self.dropped:
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

    def renamed(self, inputs: dict[str, str], outputs: dict[str, str]) -> Signature:
        """The signature with new names for inputs and outputs."""

        def rename_input(spec: InputSpec | ConstantLeaf) -> Any:
            return (
                replace(spec, name=inputs.get(spec.name, spec.name))
                if isinstance(spec, InputSpec)
                else spec
            )

        def rename_output(spec: OutputSpec | ConstantLeaf) -> Any:
            return (
                replace(spec, name=outputs.get(spec.name, spec.name))
                if isinstance(spec, OutputSpec)
                else spec
            )

        return replace(
            self,
            inputs=tuple(map(rename_input, self.inputs)),
            outputs=tuple(map(rename_output, self.outputs)),
            input_leaves=tuple(map(rename_input, self.input_leaves)),
            output_leaves=tuple(map(rename_output, self.output_leaves)),
        )
