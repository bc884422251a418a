"""Strings that are known at run time, and what a program cannot return."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.script import programs_texts as programs
from tests.script.running import assert_equal_to_eager, exported

NAMES = [program.__name__ for program, _ in programs.PROGRAMS]


@pytest.mark.parametrize(("program", "inputs"), programs.PROGRAMS, ids=NAMES)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


def test_how_large_integers_may_be_is_noted() -> None:
    made = exported(programs.entry_of_a_number, programs.COUNTED)
    assert any(str(2**48) in note for note in made.notes)


def digits_next_to_digits(x, n: int):
    if "1" + str(n) == "12":
        return x * 2
    return x


def two_numbers(x, n: int):
    entries = {"0.0": x, "1.1": x * 2}
    return entries[str(n) + "." + str(n)]


def equal_to_two_numbers(x, n: int):
    if str(n) == str(n) + str(n + 1):
        return x * 2
    return x


def equal_to_a_float(x, n: int):
    if str(n) == str(n * 0.5):
        return x * 2
    return x


def two_numbers_in_a_list(x, n: int):
    names: list[str] = []
    for i in range(n):
        names.append(f"k{i}")
    if str(n) + str(n) in names:
        return x * 2
    return x


def counted_beside_a_tensor(x, n: int):
    names = ["a1", str(x.sum())]
    return x * names.count("a1")


def number_of_a_string(x, n: int):
    return x * int(str(n))


@pytest.mark.parametrize(
    "program",
    [
        digits_next_to_digits,
        two_numbers,
        equal_to_two_numbers,
        equal_to_a_float,
        two_numbers_in_a_list,
        counted_beside_a_tensor,
        number_of_a_string,
    ],
)
def test_strings_that_cannot_be_told_apart_are_refused_with_the_line(program) -> None:
    with pytest.raises(sardonyx.SardonyxError, match=r"test_texts.py:\d+"):
        exported(program, programs.COUNTED)


def list_of_dicts(x, n: int):
    rows: list[dict[str, Tensor]] = []
    for i in range(n):
        rows.append({"a": x * i, "b": x.sum()})
    return rows


def list_of_lists(x, n: int):
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i + 1])
    return rows


def list_of_strings(x, n: int):
    names: list[str] = []
    for i in range(n):
        names.append("even" if i % 2 == 0 else "odd")
    return names


def computed_keys(x, n: int):
    entries: dict[int, Tensor] = {}
    for i in range(n):
        entries[i * 2] = x * i
    return entries


def chosen_string(x, n: int):
    name = "a"
    if n > 1:
        name = "b"
    return x, name


def made_string(x, n: int):
    return x, "n" + str(n)


@pytest.mark.parametrize(
    ("program", "instead"),
    [
        (list_of_dicts, "a list for each key of the dicts"),
        (list_of_lists, "one tensor that has them stacked"),
        (list_of_strings, "a list of a number for each"),
        (computed_keys, "the list of its keys and the list of its values"),
        (chosen_string, "return a number for each"),
        (made_string, "the numbers that it is made of"),
    ],
)
def test_what_a_file_cannot_return_is_refused_with_what_to_return_instead(program, instead) -> None:
    with pytest.raises(sardonyx.CaptureError, match="the model returns") as refusal:
        exported(program, programs.COUNTED)
    assert instead in str(refusal.value)
    assert "test_texts.py:" in str(refusal.value)


MASKED = [(torch.randn(4, 3), torch.tensor(place)) for place in (1, 0, 2)]


def mask_and_place(x, place):
    return x[x[:, 0] > 0, place]


def bytes_as_mask(x, place):
    return x[(x[:, 0] > 0).to(torch.uint8)]


def bytes_as_mask_and_place(x, place):
    return x[(x[:, 0] > 0).to(torch.uint8), place]


def rows_written_by_bytes(x, place):
    y = x.clone()
    y[torch.ones(4, dtype=torch.uint8)] = x * place
    return y


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize(
    "program", [mask_and_place, bytes_as_mask, bytes_as_mask_and_place, rows_written_by_bytes]
)
def test_masks_beside_places_and_of_bytes(program) -> None:
    assert_equal_to_eager(program, MASKED)
