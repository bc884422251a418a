"""The model as a function of its flat inputs, which is what captures record."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from sardonyx._torch_private import SizeCondition
from sardonyx.aten import pytree
from sardonyx.aten.graph import AtenGraph
from sardonyx.capture.baked_values import BakedValue
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.side_effects.attribute_writes import assignment_note
from sardonyx.capture.side_effects.buffer_writes import AssignedBuffers
from sardonyx.capture.side_effects.python_state import PythonState
from sardonyx.errors import CaptureError, FinalCaptureError

PREFIX = "model"
_RETURNED = (
    torch.Tensor, bool, int, float, str, type(None), torch.SymInt, torch.SymFloat, torch.SymBool,
)  # fmt: skip


class OutputRecord:
    """The structure of the model's result, noted while it runs."""

    def __init__(self) -> None:
        self.structure: pytree.Structure | None = None
        self.leaves: list[Any] = []
        self.lists: frozenset[int] = frozenset()
        """The ids of leaves that stand for lists whose length is known at run time."""
        self.notes: list[str] = []
        self.unrecorded_buffers: list[str] = []
        """Buffers whose new values the recording does not have."""

    def note(self, result: Any) -> list[Any]:
        self.leaves, self.structure = pytree.flatten(result)
        for path, leaf in zip(pytree.paths(self.structure), self.leaves, strict=True):
            if not isinstance(leaf, _RETURNED):
                raise CaptureError(
                    f"the model returns a {type(leaf).__qualname__}"
                    f" at {'.'.join(path) or 'its top level'}; outputs are tensors, numbers and"
                    " tuples, lists, dicts, dataclasses or registered pytrees of those"
                )
        return [leaf for leaf in self.leaves if is_graph_output(leaf)]


class RandomNumbersWatch:
    """While it is entered, notes where the model draws random numbers that no capture records."""

    def __init__(self, record: OutputRecord) -> None:
        self._record = record

    def __enter__(self) -> None:
        self._before = _random_states()

    def __exit__(self, *error: object) -> None:
        for name, state in _random_states().items():
            text = (
                f"the model draws random numbers by {name}: the file has those of the export in"
                " every run (torch.rand and the like are drawn anew)"
            )
            if state != self._before[name] and text not in self._record.notes:
                self._record.notes.append(text)


class SeedWatch:
    """While it is entered, refuses code that seeds PyTorch's random numbers: in eager PyTorch they
    are the same in every run then, and the file draws others."""

    def __enter__(self) -> None:
        self._was_seeded = _is_freshly_seeded()

    def __exit__(self, kind: object, *error: object) -> None:
        # Nothing is drawn while a model is recorded; other threads may draw.
        if kind is None and _is_freshly_seeded() and not self._was_seeded:
            raise FinalCaptureError(
                "the model seeds PyTorch's random numbers (torch.manual_seed): in the file they"
                " would be drawn anew in every run; draw them before, and make them a buffer"
            )


def _is_freshly_seeded() -> bool:
    fresh = torch.Generator().manual_seed(torch.initial_seed())
    return torch.equal(torch.get_rng_state(), fresh.get_state())


def _random_states() -> dict[str, object]:
    _, words, *rest = numpy.random.get_state()
    return {
        "Python's random": random.getstate(),
        "numpy.random": (numpy.asarray(words).tobytes(), *rest),
    }


def is_graph_output(leaf: Any) -> bool:
    return not isinstance(leaf, (str, type(None)))


class FlatModel(torch.nn.Module):
    """Takes the inputs of the file, returns its outputs; calls the user's model in between."""

    def __init__(
        self, model: Callable[..., Any], inputs: PreparedInputs, record: OutputRecord
    ) -> None:
        super().__init__()
        if isinstance(model, torch.nn.Module):
            self.model = model
        else:
            object.__setattr__(self, "model", model)
        self._inputs = inputs
        self.record = record
        self.modes: tuple[contextlib.AbstractContextManager[Any], ...] = ()
        """What watches the model's own code; around a whole capture it would see far more calls."""
        self.python_state: PythonState | None = None
        """What the model held before, to note what it assigns."""
        # Module.train() would reach into the user's model: set the flag of this wrapper alone.
        self.training = getattr(model, "training", False)

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        leaves = list(self._inputs.leaves)
        for position, tensor in zip(self._inputs.input_positions, tensors, strict=True):
            leaves[position] = tensor
        args, kwargs = self._inputs.rebuild(leaves)
        with contextlib.ExitStack() as watched:
            for mode in self.modes:
                watched.enter_context(mode)
            # What strict mode compiles is the model alone.
            is_run = not torch.compiler.is_dynamo_compiling()
            buffers = AssignedBuffers(self.model) if is_run else None
            results = self.record.note(self.model(*args, **kwargs))
            if buffers is not None:
                results, notes = buffers.write(results)
                if self.python_state is not None:
                    notes += [assignment_note(*a) for a in self.python_state.changed_attributes()]
                self.record.notes += [text for text in notes if text not in self.record.notes]
        return tuple(results)


def without_prefix(name: str) -> str:
    """`features.0` for `model.features.0`."""
    return "" if name == PREFIX else name.removeprefix(PREFIX + ".")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a capture gives, before its results are named and its writes made pure."""

    graph: AtenGraph
    output: OutputRecord
    inputs: PreparedInputs
    """As recorded: without the optional dynamic dims that the model fixes."""
    notes: tuple[str, ...] = ()
    baked: tuple[BakedValue, ...] = ()
    """Python values that the recording fixed."""
    conditions: tuple[SizeCondition, ...] | None = None
    """The guards of a run; None where the graph was not run."""
    decisions: tuple[SizeCondition, ...] = ()
    """What the model's own Python decided by."""
