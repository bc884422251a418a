"""Lists of scripted programs: in the file only where their length is known at run time."""

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor

import sardonyx
from sardonyx.errors import CaptureError, SardonyxError
from tests.capture.torchscript.containers import (
    programs_list_uses,
    programs_lists,
    programs_shared_lists,
)
from tests.capture.torchscript.running import assert_equal_to_eager, exported, name_of

CASES = programs_lists.CASES + programs_shared_lists.CASES + programs_list_uses.CASES


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[name_of(p) for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize("program", programs_shared_lists.REFUSED, ids=name_of)
def test_lists_that_depend_on_shared_memory_are_refused(program: Any) -> None:
    count = program.__code__.co_argcount - 1
    inputs = [(torch.randn(size, 2), *[size] * count) for size in (3, 2)]
    with pytest.raises(CaptureError, match=r"programs_shared_lists\.py:"):
        exported(program, inputs)


# -- what is in the file --------------------------------------------------------------------------

WITHOUT_SEQUENCES = (
    *(
        "appended",
        "popped",
        "nested_lists",
        "loop_of_known_count",
        "loop_of_many",
        "unequal_shapes",
    ),
    *("written_through_loop_variable", "Stack", "list_input", "caches", "window", "concatenated"),
    *("over_tensor", "over_range", "stacked", "joined_lists", "nested_loops", "Recurrent", "pairs"),
    *("zipped", "set_dynamic", "dynamic_index_of_known", "numbers_changed", "reversed_dynamic"),
)


@pytest.mark.parametrize(
    ("program", "inputs"),
    [(p, i) for p, i in programs_lists.CASES if name_of(p) in WITHOUT_SEQUENCES],
    ids=lambda value: name_of(value) if callable(value) else "",
)
def test_no_sequence_where_the_length_is_known_or_items_stack(program: Any, inputs: Any) -> None:
    assert not [t for t in _operators(exported(program, inputs)) if "Sequence" in t]


def _operators(program: sardonyx.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph.all_nodes()]


def ten(x: Tensor):
    items: list[Tensor] = []
    for i in range(10):
        items.append(x * i)
    return torch.stack(items)


def hundred(x: Tensor):
    items: list[Tensor] = []
    for i in range(100):
        items.append(x * i)
    return torch.stack(items)


def test_a_list_built_in_a_loop_is_as_large_as_one_iteration() -> None:
    few, many = (_operators(exported(p, [(torch.randn(3, 2),)])) for p in (ten, hundred))
    assert few == many
    assert few.count("Loop") == 1


# -- lists as outputs -----------------------------------------------------------------------------


def rows_above(x: Tensor, floor: float):
    kept: list[Tensor] = []
    sums: list[float] = []
    for i in range(x.size(0)):
        if x[i].sum() > floor:
            kept.append(x[i, : i + 1])
            sums.append(float(x[i].sum()))
    return {"kept": kept, "sums": sums}


ROWS = [(torch.ones(3, 4), 0.0), (torch.eye(4), 0.5), (torch.zeros(2, 4), 1.0)]


def test_a_list_of_dynamic_length_is_an_output_of_the_file(tmp_path: Path) -> None:
    program = assert_equal_to_eager(rows_above, ROWS, verify=True)
    assert isinstance(program(*ROWS[0])["kept"], list)
    assert isinstance(program(*ROWS[0])["sums"], list)
    assert program(*ROWS[2]) == {"kept": [], "sums": []}
    path = tmp_path / "lists.onnx"
    program.save(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    kept, sums = model.graph.output
    assert kept.type.HasField("sequence_type")
    assert sums.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert "kept" in program.to_text()
    assert "kept" in repr(program)


def test_verification_compares_lists_item_by_item() -> None:
    def halves(x: Tensor):
        kept: list[Tensor] = []
        for i in range(x.size(0)):
            kept.append(x[i, : i + 1] / 2)
        return kept

    program = exported(halves, [(torch.randn(3, 4),), (torch.randn(4, 4),)], verify=True)
    assert program.verification is not None
    assert len(program.verification.runs[0].outputs) == 3
    by = next(n for n in program.model.graph.all_nodes() if n.op_type in ("Div", "Mul"))
    by.op_type = "Add"
    program._session = None
    with pytest.raises(SardonyxError, match="disagree on output"):
        program.verify()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.bool, torch.int32])
def test_dtypes(dtype: torch.dtype) -> None:
    def program(x: Tensor, n: int):
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x[: i % 2 + 1])
        rows = x.unbind()
        return torch.cat(outs), outs, [row for row in rows]  # noqa: C416

    x = torch.tensor([[1, 0], [3, 4], [0, 1]])
    assert_equal_to_eager(program, [(x.to(dtype), 3), (x[:2].to(dtype), 1), (x[1:].to(dtype), 2)])


# -- refusals -------------------------------------------------------------------------------------


def bfloat16_list(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x[:i].to(torch.bfloat16))
    return torch.cat(outs)


def tuples_returned(x: Tensor, n: int):
    made: list[tuple[Tensor, int]] = []
    for i in range(n):
        made.append((x * i, i))
    return made


def mixed_dtypes(x: Tensor, n: int):
    outs = [x]
    for i in range(n):
        outs.append(x.to(torch.int64) + i)
    return len(outs)


def index_out_of_range(x: Tensor, n: int):
    items = [x, x + n]
    return items[2]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (bfloat16_list, "no sequences of bfloat16"),
        (tuples_returned, "a list of tuples"),
        (mixed_dtypes, "float32 here and int64 there"),
        (index_out_of_range, "list index 2 of a list of 2"),
    ],
    ids=name_of,
)
def test_refused(program: Any, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        exported(program, [(torch.randn(3, 2), 2), (torch.randn(3, 2), 1)])
