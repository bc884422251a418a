"""Python numbers, strings, tuples, dicts, optionals and objects of scripted programs."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import sardonyx
from sardonyx.errors import CaptureError, SardonyxError, UnsupportedOperatorError
from tests.capture.torchscript.running import assert_equal_to_eager, name_of
from tests.capture.torchscript.types import programs_numbers, programs_shared, programs_values

PROGRAMS = (programs_numbers, programs_values, programs_shared)
CASES = [case for module in PROGRAMS for case in module.CASES]
SCRIPT_CASES = [case for module in PROGRAMS for case in module.SCRIPT_CASES]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[name_of(p) for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(
    ("program", "inputs"), SCRIPT_CASES, ids=[name_of(p) for p, _ in SCRIPT_CASES]
)
def test_equal_to_torchscript(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(torch.jit.script(program), inputs)


# -- what a file cannot say -----------------------------------------------------------------------


def computed_dim(x: Tensor, n: int):
    return torch.cat([x, x], n % 2)


def none_for_some(x: Tensor, n: int):
    if n > 1:
        return x
    return None


def missing_key(x: Tensor, n: int):
    found = {"a": x}
    return found["b"] + n


def missing_key_taken(x: Tensor, n: int):
    found = {"a": x}
    return found.pop("b") + n


def raises_always(x: Tensor, n: int):
    if x.dim() == 2:
        raise ValueError("no matrices")
    return x * n


def mantissa(x: Tensor, n: int):
    return math.frexp(float(n))


def complex_number(x: Tensor, n: int):
    return x * complex(n, 1.0)


def strides(x: Tensor, n: int):
    return x * x.stride(0) + n


def outdated_by_a_loop(x: Tensor, n: int):
    found = {"a": x}
    first = found
    for _ in range(n):
        found["a"] = found["a"] + 1
        found = {"a": found["a"] * 2}
    return found["a"], first["a"]


@pytest.mark.parametrize(
    ("program", "words", "line"),
    [
        (computed_dim, "`dim`", "torch.cat([x, x], n % 2)"),
        (outdated_by_a_loop, "copy it", 'return found["a"], first["a"]'),
        (none_for_some, "None", ""),
        (missing_key, "'b'", 'found["b"] + n'),
        (missing_key_taken, "'b'", 'found.pop("b") + n'),
        (raises_always, "no matrices", "no matrices"),
        (mantissa, "aten::frexp", "math.frexp"),
        (complex_number, "aten::Complex", "complex(n, 1.0)"),
        (strides, "aten::stride", "x.stride(0)"),
    ],
)
def test_refused_by_line(program: Any, words: str, line: str) -> None:
    with pytest.raises(SardonyxError) as refusal:
        sardonyx.export(torch.jit.script(program), (torch.ones(2, 3), 2))
    assert isinstance(refusal.value, (CaptureError, UnsupportedOperatorError))
    assert words in str(refusal.value)
    assert line in str(refusal.value)
