"""The tables of operators that take complex numbers name operators of the library, once."""

from __future__ import annotations

import pytest

from sardonyx.lower.complex import calls
from sardonyx.lower.lower import LIBRARY

TABLES = ("TAKE_COMPLEX", "REAL_ONLY", "UNIFORM", "NORMAL", "LINSPACE")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_names_operators_of_the_library(table: str) -> None:
    names = set(getattr(calls, table))
    assert not names - set(LIBRARY.names())


def test_an_operator_is_in_one_place() -> None:
    places = [set(getattr(calls, table)) for table in TABLES]
    assert sum(map(len, places)) == len(set().union(*places))


def lowering_source(name: str) -> str:
    lowering = LIBRARY.get(name)
    assert lowering is not None
    return lowering.source


def test_a_table_repeats_nothing_of_the_modules() -> None:
    of_modules = {n for n in LIBRARY.names() if lowering_source(n) in calls.MODULES}
    assert not of_modules & calls.TAKE_COMPLEX
    assert of_modules > calls.REAL_ONLY
