"""Sizes in messages have the caller's names, or the line that they come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import sardonyx


@pytest.fixture(scope="module")
def odd() -> Iterator[object]:
    """An operator that has no ONNX form."""
    library = torch.library.Library("told_sizes_tests", "DEF")
    library.define("odd(Tensor x) -> Tensor")
    library.impl("odd", lambda x: x.clone(), "CompositeExplicitAutograd")
    torch.library.register_fake("told_sizes_tests::odd", torch.empty_like, lib=library)
    yield torch.ops.told_sizes_tests.odd
    library._destroy()


class Odd(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        odd = torch.ops.told_sizes_tests.odd
        found = x.nonzero()
        return odd(x[1:]), odd(found)


def _message(capture: str) -> str:
    with pytest.raises(sardonyx.UnsupportedOperatorError) as told:
        sardonyx.export(Odd(), torch.ones(3, 4), capture=capture, dynamic_axes={"x": {0: "rows"}})
    return str(told.value)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_dims_have_their_names(odd: object, capture: str) -> None:
    message = _message(capture)
    assert "rows - 1" in message
    assert " s" not in message.partition("inputs")[2].partition("\n")[0]


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_sizes_that_data_decides_have_their_line(odd: object, capture: str) -> None:
    class Found(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found = x.nonzero()
            return torch.ops.told_sizes_tests.odd(found)

    with pytest.raises(sardonyx.UnsupportedOperatorError) as told:
        sardonyx.export(Found(), torch.ones(3, 4), capture=capture)
    message = str(told.value)
    line = next(line for line in message.splitlines() if line.strip().startswith("where"))
    assert "is a size computed from the data" in line and "found = x.nonzero()" in line
