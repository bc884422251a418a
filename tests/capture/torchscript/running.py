"""Runs a scripted program and its export on the same inputs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

import sardonyx

Inputs = tuple[Any, ...]


def name_of(program: Any) -> str:
    return str(getattr(program, "__name__", type(program).__name__))


def exported(
    program: Any, inputs: Sequence[Inputs], *, capture: str = "auto", **options: Any
) -> sardonyx.ONNXProgram:
    """Exported at the first of the inputs, dynamic where the others differ from it."""
    scripted = torch.jit.script(program) if capture == "auto" else program
    shapes = tuple(_dynamic(list(each)) for each in zip(*inputs, strict=True))
    args = copy.deepcopy(inputs[0])
    if args and isinstance(args[-1], dict):
        args = (*args, {})  # the last one would be keyword arguments
    return sardonyx.export(scripted, args, dynamic_shapes=shapes, capture=capture, **options)


def _dynamic(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, (list, tuple)):
        items = [_dynamic(list(each)) for each in zip(*values, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    if isinstance(first, dict):
        return {key: _dynamic([value[key] for value in values]) for key in first}
    if not isinstance(first, torch.Tensor):
        return None
    return {
        axis: torch.export.Dim.DYNAMIC
        for axis, size in enumerate(first.shape)
        if any(v.shape[axis] != size for v in values)
    } or None


def assert_same(found: Any, expected: Any, at: str = "result") -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), at
        for index, (f, e) in enumerate(zip(found, expected, strict=True)):
            assert_same(f, e, f"{at}[{index}]")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), at
        for key in expected:
            assert_same(found[key], expected[key], f"{at}[{key!r}]")
    elif expected is None or isinstance(expected, str):
        assert found == expected, at
    else:
        wanted = expected if isinstance(expected, torch.Tensor) else torch.tensor(expected)
        assert found.dtype == wanted.dtype, (at, found.dtype, wanted.dtype)
        assert found.shape == wanted.shape, (at, found.shape, wanted.shape)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True, msg=at)


def assert_equal_to_eager(program: Any, inputs: Sequence[Inputs], **options: Any) -> Any:
    """The export gives what PyTorch does, at every one of the inputs."""
    made = exported(program, inputs, **options)
    for number, each in enumerate(inputs):
        state = copy.deepcopy(program) if isinstance(program, torch.nn.Module) else program
        expected = state(*copy.deepcopy(each))
        assert_same(made(*copy.deepcopy(each)), expected, f"input {number}")
    return made
