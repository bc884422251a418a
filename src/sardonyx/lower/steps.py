"""A computation repeated once for each step of a sequence, as an ONNX Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Dim, Tensor

Step = Callable[[Tensor, Sequence[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]]
"""(the number of the step from 0 on, what is carried) -> (what is carried on, what is kept)."""


def run_steps(
    b: Builder, count: Dim | Tensor, step: Step, start: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """What is carried after `count` steps, and what each of them kept, one below the other."""
    going_on = b.const(True)
    with b.body() as nodes:
        number = _body_input(b, "number", b.scalar(0, torch.int64))
        condition = _body_input(b, "condition", going_on)
        carried = [_body_input(b, f"carried_{k}", x) for k, x in enumerate(start)]
        after, kept = step(number, carried)
        # A value may leave the body once only, and not as it came in.
        leaving = [b.Identity(x) for x in (condition, *after, *kept)]
        body = ir.Graph(
            [x.value for x in (number, condition, *carried)],
            [x.value for x in leaving],
            nodes=nodes,
            name="step",
        )
    outputs = len(start) + len(kept)
    results = b.Loop(b.scalar(count, torch.int64), going_on, *start, outputs=outputs, body=body)
    given = [results] if outputs == 1 else list(results)
    length = None if isinstance(count, Tensor) else count
    dtypes_and_shapes = [(x.dtype, x.shape) for x in start] + [
        (x.dtype, None if x.shape is None else (length, *x.shape)) for x in kept
    ]
    made = []
    for result, (dtype, shape) in zip(given, dtypes_and_shapes, strict=True):
        made.append(Tensor(result.value, dtype, shape))
        b.declare(made[-1])
    return made[: len(start)], made[len(start) :]


def _body_input(b: Builder, name: str, like: Tensor) -> Tensor:
    tensor = Tensor(ir.Value(name=name), like.dtype, like.shape)
    b.declare(tensor)
    return tensor
