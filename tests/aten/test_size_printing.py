"""Sizes as text: what a model makes of them, and how notes and refusals write them."""

from __future__ import annotations

import math

import pytest
import sympy
import torch

import sardonyx
from sardonyx.aten.size_printing import text_of


def function(name):
    return type(name, (sympy.Function,), {})


def exported(model, *args):
    axes = {"x": {0: "n"}}
    return sardonyx.export(model, args, capture="export", dynamic_axes=axes)


def decides_by_text(x):
    return x * 2 if f"{x.shape[0]}" == "3" else x


def decides_by_text_of_an_argument(x, k: int):
    return x * 2 if str(k) == "3" else x


def says_its_size(x):
    print(f"{x.shape[0]} rows")
    return x * 2


def test_text_of_a_size_is_noted():
    (note,) = exported(decides_by_text, torch.randn(3, 2)).notes
    assert note.startswith("the model makes text of n at tests/")
    assert "/test_size_printing.py:" in note
    assert "what it decides by that text is not recorded" in note
    (note,) = exported(decides_by_text_of_an_argument, torch.randn(3, 2), 3).notes
    assert note.startswith("the model makes text of k at ")


def test_what_is_printed_is_not(capsys):
    assert exported(says_its_size, torch.randn(3, 2)).notes == ()
    assert "rows" in capsys.readouterr().out


def test_conditions_are_written_as_python_has_them():
    def halves(x):
        rows = math.ceil(x.shape[0] / 2)
        return x[: int(rows)]

    with pytest.raises(sardonyx.DynamicDimError, match=r"is for ceil\(n / 2\) == 2 only"):
        exported(halves, torch.randn(3, 2))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CeilToInt", "ceil(n + 1)"),
        ("FloorToInt", "floor(n + 1)"),
        ("TruncToInt", "int(n + 1)"),
        ("RoundToInt", "round(n + 1)"),
        ("ToFloat", "n + 1"),
    ],
)
def test_functions_of_one_size(name, text):
    n = sympy.Symbol("n")
    assert text_of(function(name)(n + 1)) == text


@pytest.mark.parametrize("name", ["IntTrueDiv", "FloatTrueDiv"])
def test_quotients(name):
    n, divided = sympy.Symbol("n"), function(name)
    assert text_of(divided(n + 1, 2)) == "(n + 1) / 2"
    assert text_of(divided(n, n + 1) * 3) == "3*n / (n + 1)"
