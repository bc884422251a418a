"""What an ExportedProgram says of its sizes is told in the notes."""

from __future__ import annotations

import io
import re

import pytest
import torch
from torch.export import Dim, ExportedProgram, export

import sardonyx


class Halved(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0] // 2, 2, 3) if x.shape[0] % 2 == 0 else x[None]


def _reloaded(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


@pytest.mark.parametrize(
    ("dim", "told"),
    [
        (Dim("n", min=2, max=6), "2 <= n <= 6"),
        (Dim("n", max=6), "n <= 6"),
        (Dim("n", min=4), "n >= 4"),
        (Dim.DYNAMIC(min=3, max=9), "3 <= input_dim_0 <= 9"),
    ],
)
def test_ranges(dim: object, told: str) -> None:
    given = export(torch.nn.Linear(3, 4), (torch.randn(5, 3),), dynamic_shapes=({0: dim},))
    (note,) = sardonyx.export(given).notes
    assert note == f"the recording holds where {told}: the ExportedProgram says so"
    (note,) = sardonyx.export(_reloaded(given)).notes
    assert re.sub(r"\bn\b", "input_dim_0", told) in note  # the file has no names


@pytest.mark.parametrize("dim", [Dim("n"), Dim.DYNAMIC, Dim.AUTO])
def test_sizes_of_which_nothing_is_said(dim: object) -> None:
    given = export(torch.nn.Linear(3, 4), (torch.randn(5, 3),), dynamic_shapes=({0: dim},))
    assert sardonyx.export(given).notes == ()


def test_what_the_model_decides_by() -> None:
    given = export(Halved(), (torch.randn(4, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))
    (note,) = sardonyx.export(given).notes
    assert "where Mod(x_dim_0, 2) == 0: the model decides by it at tests/" in note
    assert "/test_program_guards.py:" in note
    (note,) = sardonyx.export(given, dynamic_axes={"x": {0: "rows"}}).notes
    assert "where Mod(rows, 2) == 0" in note


def test_what_the_program_asserts() -> None:
    given = export(
        Halved(),
        (torch.randn(4, 3),),
        dynamic_shapes=({0: Dim("n")},),
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    notes = sardonyx.export(given).notes
    assert "the recording holds where Mod(n, 2) == 0: the ExportedProgram says so" in notes


def test_names_of_derived_dims() -> None:
    half = Dim("half", min=3, max=7)
    given = export(Halved(), (torch.randn(8, 3),), dynamic_shapes=({0: 2 * half},))
    program = sardonyx.export(given)
    assert "the recording holds where 3 <= half <= 7: the ExportedProgram says so" in program.notes
    for n in (6, 8, 14):
        x = torch.randn(n, 3)
        assert torch.equal(program(x), Halved()(x))
