"""Repeating a computation a number of times that only the data know, as an ONNX Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor

Condition = Callable[[Sequence[Tensor]], Tensor]
"""What is carried -> for every element, whether it is not finished."""
Step = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]]
"""(the number of the step from 0 on, an int64 scalar; what is carried) -> what is carried on."""


def alike(b: Builder, *tensors: Tensor) -> list[Tensor]:
    """All tensors expanded to their common shape: what is carried keeps its shape."""
    shape = b.broadcast_shape(*tensors)
    if shape is not None and None not in shape:
        dims = [d for d in shape if d is not None]
        return [b.expand(x, dims) for x in tensors]
    total = tensors[0]
    for other in tensors[1:]:
        total = b.Add(b.cast(total, other.dtype), other)
    size = b.Shape(total)
    return [b.Expand(x, size) for x in tensors]


def repeat_while(
    b: Builder, unfinished: Condition, step: Step, start: Sequence[Tensor], limit: int | None = None
) -> list[Tensor]:
    """`step` again and again while any element is unfinished, at most `limit` times."""

    def goes_on(carried: Sequence[Tensor]) -> Tensor:
        count = b.ReduceSum(b.cast(unfinished(carried), torch.int32), keepdims=0)
        more: Tensor = b.Greater(count, 0)
        return more

    first = goes_on(start)
    with b.body() as nodes:
        number = _input(b, "number", b.scalar(0, torch.int64))
        condition = _input(b, "condition", first)
        carried = [_input(b, f"carried_{k}", x) for k, x in enumerate(start)]
        after = [x if x not in carried else b.Identity(x) for x in step(number, carried)]
        outputs = [goes_on(after), *after]
        body = ir.Graph(
            [x.value for x in (number, condition, *carried)],
            [x.value for x in outputs],
            nodes=nodes,
            name="step",
        )
    trips = None if limit is None else b.scalar(limit, torch.int64)
    results = b.Loop(trips, first, *start, outputs=len(start), body=body)
    made = []
    for before, result in zip(start, [results] if len(start) == 1 else results, strict=True):
        made.append(Tensor(result.value, before.dtype, before.shape))
        b.declare(made[-1])
    return made


def _input(b: Builder, name: str, like: Tensor) -> Tensor:
    tensor = Tensor(ir.Value(name=name), like.dtype, like.shape)
    b.declare(tensor)
    return tensor
