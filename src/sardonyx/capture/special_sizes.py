"""Sizes 0 and 1 that a model treats as special.

A dynamic dim of such a size, and such an integer, is recorded with another one. What the model's
Python does at the example itself is compared with what it does there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from sardonyx import _torch_private
from sardonyx.capture import tree
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import Place, innermost_user_place, place_text
from sardonyx.capture.refusals import with_constant_numbers
from sardonyx.capture.size_conditions import DECIDED, at_sizes
from sardonyx.capture.state import state_kept
from sardonyx.errors import DynamicDimError, format_message


@dataclass(frozen=True, slots=True)
class _Call:
    """A function of torch that the model calls."""

    function: str
    operands: tuple[Any, ...]
    """Where each tensor comes from, and the numbers."""
    place: Place


_NOWHERE: Place = ("", 0, "")


class _Calls(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.made: list[_Call] = []
        self._origins: Any = WeakIdKeyDictionary()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        operands = tuple(self.origin(leaf) for leaf in _leaves((args, kwargs or {})))
        result = func(*args, **(kwargs or {}))
        place = innermost_user_place(sys._getframe(1))
        name = str(getattr(func, "__qualname__", func))
        self.note(_Call(name, operands, place), result)
        return result

    def note(self, call: _Call, result: Any) -> None:
        for index, leaf in enumerate(_leaves(result)):
            if isinstance(leaf, torch.Tensor):
                self._origins[leaf] = (len(self.made), index)
        self.made.append(call)

    def origin(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return _Origin(self._origins.get(leaf))
        return leaf


@dataclass(frozen=True, slots=True)
class _Origin:
    """The call that gave a tensor, and which of its results it is; None for parameters."""

    of: tuple[int, int] | None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def checked_at_example(
    capture: Callable[[Any, PreparedInputs], Recorded], model: Any, inputs: PreparedInputs
) -> Recorded:
    """The recording, which holds for the example itself: the numbers and the optional dims whose
    size there the model treats as special are fixed; a required one is refused."""
    recorded = capture(model, inputs)
    again = partial(checked_at_example, capture)
    taken = recorded.inputs
    changed = [p for p in taken.input_positions if _is_changed(taken, p)]
    follows = _followed_numbers(recorded) if changed else _follows_nothing
    difference = _difference(model, taken, taken.leaves, follows) if changed else None
    if difference is None:
        return recorded
    numbers = [
        position
        for position in taken.number_positions
        if position in changed
        and _difference(model, taken, _only(taken, position), _follows_nothing) is not None
    ]
    if numbers:
        return with_constant_numbers(again, model, inputs, numbers, None)
    dims = {
        (position, axis): dim
        for position in changed
        if isinstance(leaf := taken.leaves[position], torch.Tensor)
        for axis, dim in taken.dynamic[position].items()
        if leaf.shape[axis] != taken.capture_leaves[position].shape[axis]
    }
    optional = {place for place, dim in dims.items() if not dim.required}
    if optional:
        return again(model, inputs.without_dynamic(optional))
    sizes = {dim.name: taken.leaves[p].shape[axis] for (p, axis), dim in dims.items()}
    special = ", ".join(f"size {size} of {name!r}" for name, size in sizes.items())
    raise DynamicDimError(
        format_message(
            f"the model treats {special} specially: what it does there is not what it does at"
            " other sizes",
            [
                ("by", place_text(difference)),
                ("try", "an example in which every dynamic dim is 2 or more, or a fixed dim"),
            ],
        )
    )


_Follows = Callable[[Any, Any], bool]
"""Whether the recording has a number that is the first at the example's sizes and the second at
those recorded, as min(n, 2) is."""


def _follows_nothing(at_example: Any, at_recorded: Any) -> bool:
    return False


def _followed_numbers(recorded: Recorded) -> _Follows:
    graph, inputs = recorded.graph, recorded.inputs
    if any(DECIDED in note for note in recorded.notes):
        return _follows_nothing
    leaves = [inputs.leaves[position] for position in inputs.input_positions]
    of_input = {id(value): leaf for value, leaf in zip(graph.inputs, leaves, strict=True)}
    recorded_sizes = _torch_private.example_sizes(TypeInference.for_graph(graph).mode)
    example_sizes = dict(recorded_sizes)
    for symbol, source in graph.symbols.items():
        leaf = of_input.get(id(source.value))
        if isinstance(leaf, torch.Tensor) and source.axis is not None:
            example_sizes[symbol] = leaf.shape[source.axis]
        elif isinstance(leaf, int):
            example_sizes[symbol] = leaf
    expressions = {
        leaf
        for node in graph.nodes
        for leaf in _leaves([*node.arguments.values(), *(v.shape for v in node.outputs)])
        if isinstance(leaf, sympy.Expr) and not leaf.is_Symbol
    }

    def follows(at_example: Any, at_recorded: Any) -> bool:
        return any(
            at_sizes(expression, example_sizes) == at_example
            and at_sizes(expression, recorded_sizes) == at_recorded
            for expression in expressions
        )

    return follows


def _is_changed(inputs: PreparedInputs, position: int) -> bool:
    """Whether a leaf is recorded with another size than the example's."""
    leaf, recorded = inputs.leaves[position], inputs.capture_leaves[position]
    if isinstance(leaf, torch.Tensor):
        return bool(leaf.shape != recorded.shape)
    return bool(leaf != recorded)


def _only(inputs: PreparedInputs, position: int) -> list[Any]:
    """As recorded but for one leaf, which is the example's."""
    leaves = list(inputs.capture_leaves)
    leaves[position] = inputs.leaves[position]
    return leaves


def _difference(
    model: Any, inputs: PreparedInputs, leaves: Sequence[Any], follows: _Follows
) -> Place | None:
    """Where the model, given `leaves`, first does something else than at the recorded sizes.

    A number that is another one at a third size, too, follows the sizes.
    """
    example, recorded = (_calls(model, inputs, given) for given in (leaves, inputs.capture_leaves))
    if example is None or recorded is None:
        return None
    third: list[_Call] | None = None
    for index, (call, counterpart) in enumerate(zip(example, recorded, strict=False)):
        if call.function != counterpart.function:
            return counterpart.place if counterpart.place[0] else call.place
        if _same(call, counterpart):
            continue
        if third is None:
            third = _calls(model, inputs, inputs.leaves_of_a_third_size()) or []
        if index < len(third) and _is_special(call, counterpart, third[index], follows):
            return counterpart.place
    return None


def _same(call: _Call, other: _Call) -> bool:
    return len(call.operands) == len(other.operands) and all(
        _equal(left, right) for left, right in zip(call.operands, other.operands, strict=True)
    )


def _is_special(example: _Call, recorded: _Call, third: _Call, follows: _Follows) -> bool:
    counts = {len(call.operands) for call in (example, recorded, third)}
    return len(counts) > 1 or any(
        not _equal(at_example, at_recorded)
        and _equal(at_recorded, at_third)
        and not follows(at_example, at_recorded)
        for at_example, at_recorded, at_third in zip(
            example.operands, recorded.operands, third.operands, strict=True
        )
    )


def _equal(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, (bool, int, float, str, type(None), _Origin)):
        return bool(left == right or left != left)
    return True  # functions, dtypes and the like are no sizes


def _calls(model: Any, inputs: PreparedInputs, leaves: Sequence[Any]) -> list[_Call] | None:
    """What the model calls; None where it does not take these inputs. On tensors without data,
    unless it looks at values."""
    with _torch_private.plain_fake_mode():
        found = _calls_of_run(model, inputs, leaves)
    return _calls_of_run(model, inputs, leaves) if found is None else found


def _calls_of_run(model: Any, inputs: PreparedInputs, leaves: Sequence[Any]) -> list[_Call] | None:
    calls = _Calls()
    given = [
        inputs.leaves[position] if position in inputs.constant_numbers else leaf
        for position, leaf in enumerate(leaves)
    ]
    copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in given]
    args, kwargs = inputs.rebuild(copies)
    calls.note(_Call("arguments", (), _NOWHERE), copies)
    try:
        with state_kept(model), calls:
            result = model(*args, **kwargs)
    except Exception:
        return None
    outputs = tuple(calls.origin(leaf) for leaf in tree.flatten(result)[0])
    calls.note(_Call("return", outputs, _NOWHERE), ())
    return calls.made
