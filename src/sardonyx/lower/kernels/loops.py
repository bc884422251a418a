"""Repeating a step over tensors that keep their shape: ONNX Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import onnx_ir as ir
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, whole_like
from sardonyx.lower.values import Dim, Tensor

Step = Callable[[Tensor, list[Tensor]], Sequence[Tensor]]
"""What is carried on, from the number of the step (int64 of shape [1]) and what was carried."""
Condition = Callable[[Tensor, list[Tensor]], Tensor]
"""Whether to go on (a bool of any shape of one element), from the number of the step just taken
and what it gave."""
KeepingStep = Callable[[Tensor, list[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]
"""(the number of the step as a scalar, what is carried) -> (what is carried on, what is kept)."""


def repeat(
    b: Builder,
    count: Dim | Tensor,
    start: Sequence[Tensor],
    step: Step,
    go_on: Condition | None = None,
) -> list[Tensor]:
    """`step` taken `count` times, or as long as `go_on` says."""

    def taken(number: Tensor, carried: list[Tensor]) -> _Taken:
        position = b.reshape(number, [1])
        after = list(step(position, carried))
        return _Taken(after, goes_on=None if go_on is None else go_on(position, after))

    return _loop(b, b.scalar(count, torch.int64), b.const(True), start, taken)[0]


def repeat_while(
    b: Builder,
    unfinished: Callable[[Sequence[Tensor]], Tensor],
    step: Callable[[Tensor, list[Tensor]], Sequence[Tensor]],
    start: Sequence[Tensor],
    limit: int | None = None,
) -> list[Tensor]:
    """`step` (from its number as a scalar and what is carried) while any element of what is carried
    is unfinished, at most `limit` times."""

    def goes_on(carried: Sequence[Tensor]) -> Tensor:
        count = b.ReduceSum(b.cast(unfinished(carried), torch.int32), keepdims=0)
        return b.Greater(count, 0)

    def taken(number: Tensor, carried: list[Tensor]) -> _Taken:
        after = list(step(number, carried))
        return _Taken(after, goes_on=goes_on(after))

    trips = None if limit is None else b.scalar(limit, torch.int64)
    return _loop(b, trips, goes_on(start), start, taken)[0]


def run_steps(
    b: Builder, count: Dim | Tensor, step: KeepingStep, start: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """What is carried after `count` steps, and what each of them kept, one below the other."""

    def taken(number: Tensor, carried: list[Tensor]) -> _Taken:
        return _Taken(*step(number, carried))

    trips = b.scalar(count, torch.int64)
    length = None if isinstance(count, Tensor) else count
    return _loop(b, trips, b.const(True), start, taken, length)


class _Taken(NamedTuple):
    """What a step gives."""

    carried: Sequence[Tensor]
    kept: Sequence[Tensor] = ()
    goes_on: Tensor | None = None


def _loop(
    b: Builder,
    trips: Tensor | None,
    begins: Tensor,
    start: Sequence[Tensor],
    step: Callable[[Tensor, list[Tensor]], _Taken],
    length: Dim | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """What is carried in the end, and what was kept: `length` pieces of it."""
    with b.body() as nodes:
        number = body_input(b, "number", torch.int64, ())
        condition = body_input(b, "condition", torch.bool, ())
        parts = _parts(start)
        carried = [body_input(b, f"carried_{k}", x.dtype, x.shape) for k, x in enumerate(parts)]
        taken = step(number, _joined(start, carried))
        after = [whole_like(b, x, before) for x, before in zip(taken.carried, start, strict=True)]
        kept = _parts(taken.kept)
        again = condition if taken.goes_on is None else b.reshape(taken.goes_on, [])
        leaving: list[ir.Value] = []
        for x in (again, *_parts(after), *kept):
            # A value may leave the body once only, and not as it came in.
            inside = any(x.value.producer() is node for node in nodes)
            leaving.append(x.value if inside and x.value not in leaving else b.Identity(x).value)
        body = ir.Graph(
            [x.value for x in (number, condition, *carried)], leaving, nodes=nodes, name="step"
        )
    if trips is not None and trips.rank:
        trips = b.reshape(trips, [])
    outputs = len(parts) + len(kept)
    results = b.Loop(trips, begins, *parts, outputs=outputs, body=body)
    types = [(x.dtype, x.shape) for x in parts]
    types += [(x.dtype, None if x.shape is None else (length, *x.shape)) for x in kept]
    made = [
        b.declare(Tensor(result.value, dtype, shape))
        for result, (dtype, shape) in zip(results, types, strict=True)
    ]
    return _joined(start, made[: len(parts)]), _joined(taken.kept, made[len(parts) :])


def _parts(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The real tensors that they are in the graph."""
    return [
        part
        for x in tensors
        for part in ((x.real, x.imag) if isinstance(x, ComplexTensor) else (x,))
    ]


def _joined(like: Sequence[Tensor], parts: Sequence[Tensor]) -> list[Tensor]:
    rest = iter(parts)
    return [
        ComplexTensor(next(rest), next(rest)) if isinstance(x, ComplexTensor) else next(rest)
        for x in like
    ]


def body_input(
    b: Builder, name: str, dtype: torch.dtype, shape: tuple[Dim | None, ...] | None
) -> Tensor:
    return b.declare(Tensor(ir.Value(name=name), dtype, shape))
