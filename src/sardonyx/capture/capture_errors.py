"""Errors for models that cannot be recorded as requested."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from sardonyx.aten.location import Place, from_stack_trace
from sardonyx.aten.signature import DynamicDim
from sardonyx.capture.flat_model import OutputRecord, Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.side_effects.buffer_writes import AssignedBuffers
from sardonyx.capture.side_effects.tensor_state import state_restored
from sardonyx.errors import CaptureError, DynamicDimError, first_line
from sardonyx.notes import error_at


def result_on_copies(
    model: Any, inputs: PreparedInputs, leaves: Sequence[Any], form: Any = None
) -> tuple[Any, list[str]]:
    """What the model itself, or another form of it, gives, and the buffers that it assigns; neither
    its state nor the leaves are written."""
    copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = inputs.rebuild(copies)
    with state_restored(model):
        buffers = AssignedBuffers(model)
        return (model if form is None else form)(*args, **kwargs), buffers.assigned()


def check_same_results(model: Any, other: Any, inputs: PreparedInputs, where: str) -> None:
    """Refuses another form of the model that does not agree with it on the example."""
    found = []
    refusal = f"{where} the model gives other results than in eager mode"
    try:
        for runnable in (model, other):
            with torch.random.fork_rng(devices=()):
                torch.manual_seed(0)
                found.append(result_on_copies(model, inputs, inputs.leaves, runnable)[0])
        check_equal(*found)
    except Exception as error:
        raise CaptureError(f"{refusal}: {first_line(error)}") from error


def check_equal(result: Any, of_other: Any) -> None:
    """Raises an error where results differ."""
    one, other = OutputRecord(), OutputRecord()
    one.note(result)
    other.note(of_other)
    if one.structure != other.structure:
        raise AssertionError("they have another structure")
    for leaves in zip(one.leaves, other.leaves, strict=True):
        torch.testing.assert_close(*leaves, equal_nan=True)


class DataDependentError(CaptureError):
    """The model's code branches on a value that data decides, or loops over one."""

    may_be_caught = False
    """Whether the model's code may catch errors there."""


class SizesRejectedError(DynamicDimError):
    """The model takes the sizes of the example, but not those that it is recorded with."""


class SpecialSizeError(DynamicDimError):
    """The model decides otherwise at the sizes of the example than at those it is recorded with."""


def model_raises(model: Any, inputs: PreparedInputs) -> CaptureError | None:
    """The error of the model itself, which a run in plain PyTorch raises; None without one."""
    own = _failure(model, inputs, inputs.capture_leaves)
    if own is None:
        return None
    if (
        inputs.recorded_sizes != inputs.example_sizes
        and _failure(model, inputs, inputs.leaves) is None
    ):
        return error_at(
            SizesRejectedError,
            place_of(own),
            "dynamic dims of size 0 or 1 are recorded with another size, which this model does not"
            f" take: {first_line(own)}",
            "an example in which every dynamic dim is 2 or more",
        )
    return model_failure(own)


def model_failure(error: Exception) -> CaptureError:
    """For what the model's own code raised, run in plain PyTorch."""
    headline = f"the model itself fails on these inputs: {first_line(error)}"
    return error_at(CaptureError, place_of(error), headline)


def place_of(error: BaseException) -> Place:
    """The line of the model that was running."""
    return from_stack_trace("".join(traceback.format_tb(error.__traceback__)))


_MOST_SUMS = 40


def recorded_as_taken(model: Any, inputs: PreparedInputs) -> Iterator[PreparedInputs]:
    """With sizes that the model takes, where those it is recorded with do not fit each other."""
    possible = islice(inputs.recorded_with_sums(), _MOST_SUMS)
    return (i for i in possible if _failure(model, i, i.capture_leaves) is None)


def _failure(model: Any, inputs: PreparedInputs, leaves: Sequence[Any]) -> Exception | None:
    """Why the model does not run, neither without gradients nor with them."""
    failures: list[Exception] = []
    for with_gradients in (False, True):
        try:
            with torch.set_grad_enabled(with_gradients):
                result_on_copies(model, inputs, leaves)
            return None
        except Exception as error:
            failures.append(error)
    return failures[0]


KEEP_SYMBOLIC = (
    "keep the size symbolic there: math.sqrt(n), n ** 0.5, math.prod(x.shape) and operators of"
    " PyTorch do; float(n), NumPy's functions and dict keys need a number"
)
KEEP_TENSOR = (
    "or the tensor itself, not a list of its items (pack_padded_sequence takes lengths as a tensor)"
)


def fixed_dim_error(
    name: str,
    axis: int,
    dim: DynamicDim,
    size: int,
    places: list[str],
    *,
    by_python: bool = False,
    reads_items: bool = False,
) -> DynamicDimError:
    """`by_python`: whether the model's Python, and no operator, needs the number; `reads_items`:
    whether it made Python numbers of the items of a dynamic dim."""
    from_tensor = f"take sizes from the tensor ({name}.shape[{axis}]), not numbers, there"
    advice = [
        KEEP_SYMBOLIC if by_python else from_tensor,
        f"or, where it meets a dim of another input, make that {dim.name!r} too",
        'or capture="script" where Python loops over it',
        KEEP_TENSOR if reads_items else "",
    ]
    headline = (
        f"dim {axis} of {name!r} is declared dynamic ({dim.name!r}), but the model fixes it to"
        f" {size}"
    )
    error = DynamicDimError(headline, [("by", places[:3]), ("try", advice)])
    error.dim = name, axis
    return error


def with_constant_numbers(
    capture: Callable[[Any, PreparedInputs], Recorded],
    model: Any,
    inputs: PreparedInputs,
    positions: Sequence[int],
    refusal: CaptureError | None,
) -> Recorded:
    """The recording with Python numbers as part of the graph, and a note that says so; the
    refusal again if that does not help either."""
    for position in positions:
        dim = inputs.dynamic[position].get(0)
        if dim is not None and dim.required:
            raise refusal or DynamicDimError(
                f"{inputs.names[position]!r} is declared dynamic, but the model fixes it to"
                f" {inputs.leaves[position]}"
            )
    try:
        recorded = capture(model, inputs.with_constants(positions))
    except CaptureError as error:
        raise refusal or error from error
    notes = [
        f"{inputs.names[position]} is a Python number that the model needs to be recorded: it is"
        f" {inputs.leaves[position]!r} in the file, not an input"
        for position in positions
    ]
    return replace(recorded, notes=(*recorded.notes, *notes))
