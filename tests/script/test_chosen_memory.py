"""Writes of memory that is chosen at run time, by loops, lists, tuples and optionals: against
eager, both sides of every branch and loops of 0, 1, 2 and 5 iterations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import pytest
import torch

import sardonyx
from tests.script import programs_chosen_loops as programs
from tests.script.random_aliases import AliasWriter
from tests.script.random_blocks import loaded
from tests.script.running import assert_equal_to_eager, exported, name_of

CASES = [
    *programs.IN_LOOPS,
    *programs.IN_LISTS,
    *programs.IN_OTHER_OBJECTS,
    *programs.OF_OBJECTS,
    *programs.MANY,
    *programs.OF_DYNAMIC_SIZES,
]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[name_of(p) for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(("program", "message"), programs.REFUSED, ids=lambda p: name_of(p))
def test_refused_with_the_line(program: Any, message: str) -> None:
    with pytest.raises(sardonyx.CaptureError, match=message) as refusal:
        exported(program, programs.COUNTS)
    assert "programs_chosen_loops.py:" in str(refusal.value)


def _with_choices(count: int) -> str:
    lines = ["def program(x, y):", "    a = x + 0", "    b = y + 0"]
    for number in range(count):
        lines.append(f"    c{number} = a if bool(a.sum() > {number}) else b")
        lines.append(f"    c{number} += {number}")
    return "\n".join([*lines, "    return a, b"])


def test_a_file_grows_by_the_same_for_every_choice(tmp_path) -> None:
    sizes = []
    for number, count in enumerate((2, 8, 14)):
        program = loaded(_with_choices(count), tmp_path, number)
        made = assert_equal_to_eager(program, programs.PAIRS)
        sizes.append(len(list(_all_nodes(made.model_proto.graph))))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
    assert sizes[1] < 120


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _all_nodes(attribute.g)


class Caches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("even", torch.zeros(8, 2))
        self.register_buffer("odd", torch.ones(8, 2))

    def forward(self, x, n: int):
        cache = self.even if n % 2 == 0 else self.odd
        cache[n : n + x.size(0)] = x
        return cache * 1


def test_the_buffer_that_was_chosen_is_the_one_that_changes() -> None:
    runtime = pytest.importorskip("onnxruntime")
    x = torch.arange(6.0).reshape(3, 2)
    inputs = [(x, 1), (x[:2], 2), (x, 4)]
    made = exported(Caches(), inputs, state_outputs=True)
    session = runtime.InferenceSession(made.model_proto.SerializeToString())
    outputs = [value.name for value in session.get_outputs()]
    for rows, n in inputs:
        model = Caches()
        expected = model(rows, n)
        given = dict(
            zip([v.name for v in session.get_inputs()], (rows, torch.tensor(n)), strict=True)
        )
        found = session.run(None, {name: value.numpy() for name, value in given.items()})
        result, *states = (torch.from_numpy(array) for array in found)
        torch.testing.assert_close(result, expected)
        assert len(states) == 2
        for name, state in zip(outputs[1:], states, strict=True):
            torch.testing.assert_close(state, model.even if "even" in name else model.odd)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int, tmp_path) -> None:
    """Names that are swapped, chosen and written; of some, what is refused names its line."""
    source = AliasWriter(seed).program()
    program = loaded(source, tmp_path, seed)
    try:
        assert_equal_to_eager(program, programs.COUNTS)
    except sardonyx.CaptureError as refusal:
        assert "may share its memory" in str(refusal), source
        assert f"program_{seed}.py:" in str(refusal), source
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n\n{source}") from difference
