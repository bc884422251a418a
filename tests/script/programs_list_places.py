# ruff: noqa: UP006, UP035, RUF005
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Programs with lists of views: of which the memory, or an item, is written afterwards."""

from typing import List

import torch
from torch import Tensor

from tests.script.programs_computed_places import COUNTS, SIZES
from tests.script.programs_flow import Typed


def appended_then_written(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    a = y * 1
    for i in range(n):
        kept.append(x * i)
    kept.append(a)
    a += 5
    return torch.stack(kept)


def first_written_after_growth(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    first = kept[0]
    for i in range(n):
        kept.append(x * i)
    first += 5
    return torch.stack(kept)


def last_written_after_growth(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(x * i)
    last = kept[-1]
    kept.append(y * 2)
    last += 5
    return torch.stack(kept), last


def ragged_written_after_growth(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(torch.cat([kept[i], y]))
    last = kept[-1]
    kept.append(y * 2)
    last += 5
    return torch.cat(kept), last


def item_replaced_then_written(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rows = list(whole.unbind(0))
    rows[n % 3] = rows[n % 3] * 2
    whole += 1
    return whole, torch.stack(rows)


def rows_of_a_table(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    for i in range(n):
        kept.append(whole[i])
    whole += 1
    return torch.stack(kept + [x[0]])


def rows_of_a_table_written(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    for i in range(n):
        kept.append(whole[i])
    for row in kept:
        row += 1
    return whole, torch.stack(kept + [x[0]])


def rows_that_repeat(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    for i in range(n + 1):
        kept.append(whole[i // 2])
    kept[n // 2].add_(1)
    kept[0][1] = 8.0
    for row in kept:
        row += 1
    return whole, torch.stack(kept)


def one_tensor_appended_and_written(x: Tensor, y: Tensor, n: int):
    a = x * 1
    kept: List[Tensor] = []
    for _i in range(n + 1):
        kept.append(a)
        a += 1
    kept[n // 2].add_(1)
    return a, torch.stack(kept), len(kept)


def columns_appended(x: Tensor, y: Tensor, n: int):
    a = x * 1
    kept: List[Tensor] = []
    for i in range(n + 1):
        kept.append(a[:, i % 2])
    one = kept[n // 2]
    one.add_(1)
    for column in kept[1:]:
        column *= 2
    return a, torch.stack(kept), one


def rows_appended_by_branches(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    for i in range(n + 1):
        kept.append(whole[i] if i % 2 == 0 else whole[5 - i])
        whole *= 2
    kept[n] -= 3
    return whole, torch.stack(kept)


# -- refused --------------------------------------------------------------------------------------


def repeating_rows_joined(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept = [x[0]]
    for i in range(n):
        kept.append(whole[i // 2])
    kept[n // 2].add_(1)
    return torch.stack(kept)


def repeating_rows_of_a_branch(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    if n > 1:
        for i in range(n + 1):
            kept.append(whole[i // 2])
    else:
        for i in range(n + 2):
            kept.append(x[0] * i)
    kept[0].add_(1)
    return torch.stack(kept)


def repeating_rows_of_a_loop(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept = [x[0], x[1]]
    for j in range(n):
        rows: List[Tensor] = []
        for i in range(n + 1):
            rows.append(whole[(i + j) // 2])
        kept = rows
    kept[0].add_(1)
    return torch.stack(kept)


LISTS: list[Typed] = [
    (program, COUNTS)
    for program in (
        appended_then_written, first_written_after_growth, last_written_after_growth,
        ragged_written_after_growth, item_replaced_then_written, rows_of_a_table,
        rows_of_a_table_written, rows_that_repeat, one_tensor_appended_and_written,
        columns_appended, rows_appended_by_branches,
    )
]  # fmt: skip
OF_DYNAMIC_SIZES: list[Typed] = [
    (program, [(x, y, n) for x, y, n in SIZES if x.size(0) > 0])
    for program in (appended_then_written, last_written_after_growth, columns_appended)
]
REFUSED = [repeating_rows_joined, repeating_rows_of_a_branch, repeating_rows_of_a_loop]
"""Two items may be one row, and which rows they are is not told outside."""
