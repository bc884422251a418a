"""Repeating a step over tensors that keep their shape: ONNX Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Dim, Tensor

Step = Callable[[Tensor, list[Tensor]], Sequence[Tensor]]
"""What is carried on, from the number of the step (int64 of shape [1]) and what was carried."""
Condition = Callable[[Tensor, list[Tensor]], Tensor]
"""Whether to go on (a bool of any shape of one element), from the number of the step just taken
and what it gave."""


def repeat(
    b: Builder,
    count: Dim | Tensor,
    start: Sequence[Tensor],
    step: Step,
    go_on: Condition | None = None,
) -> list[Tensor]:
    """`step` taken `count` times, or as long as `go_on` says."""
    with b.body() as nodes:
        number = _body_input(b, "number", torch.int64, ())
        condition = _body_input(b, "condition", torch.bool, ())
        carried = [_body_input(b, f"carried_{k}", x.dtype, x.shape) for k, x in enumerate(start)]
        position = b.reshape(number, [1])
        after = list(step(position, list(carried)))
        again = b.Identity(condition) if go_on is None else b.reshape(go_on(position, after), [])
        written = {id(node) for node in nodes}
        results = [x if id(x.value.producer()) in written else b.Identity(x) for x in after]
        body = ir.Graph(
            [x.value for x in (number, condition, *carried)],
            [x.value for x in (again, *results)],
            nodes=nodes,
            name="step",
        )
    trips = b.scalar(count, torch.int64)
    trips = b.reshape(trips, []) if trips.rank else trips
    looped = b.Loop(trips, b.const(True), *start, outputs=len(start), body=body)
    given = [looped] if len(start) == 1 else list(looped)
    final = [Tensor(x.value, s.dtype, s.shape) for x, s in zip(given, start, strict=True)]
    for x in final:
        b.declare(x)
    return final


def _body_input(
    b: Builder, name: str, dtype: torch.dtype, shape: tuple[Dim | None, ...] | None
) -> Tensor:
    tensor = Tensor(ir.Value(name=name), dtype, shape)
    b.declare(tensor)
    return tensor
