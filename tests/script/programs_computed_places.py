# ruff: noqa: UP045
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Programs that write memory at a place which a branch or a loop computes."""

from typing import Optional

import torch
from torch import Tensor, nn

from tests.script.programs_flow import ROWS, Typed

COUNTS = [(ROWS, -ROWS, 2), (ROWS, -ROWS, 0), (-ROWS, ROWS, 1), (ROWS, ROWS * 2, 5)]


# -- at an index of the loop ----------------------------------------------------------------------


def row_of_the_loop_written_after(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    row = whole[0]
    for i in range(n):
        row = whole[i % 3]
        row += i + 1
    row *= 10
    return whole, row


def row_at_the_counter(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y, x])
    row = y[0] * 1
    for i in range(n):
        row += 100
        row = whole[i]
    row -= 7
    return whole, row


def row_at_the_largest(x: Tensor, y: Tensor, n: int):
    table = y.clone()
    row = table[0]
    for i in range(n):
        j = int(x[i % 3].argmax())
        row = table[j]
        row += 1
    row *= 2
    return table, row


def row_read_after_the_whole_is_written(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    row = whole[0]
    for i in range(n):
        row = whole[(i * 2) % 3]
    whole += 5
    return row, row.sum()


def column_of_the_loop(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    col = whole[:, 0]
    for i in range(n):
        col = whole[:, i % 2]
        col[i % 3] = 50.0 + i
    col += 1
    col[0] = -3.0
    return whole, col


def element_of_the_loop(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    one = whole[0, 0]
    for i in range(n):
        one = whole[i % 3, (i + 1) % 2]
        one += 10
    one *= 3
    return whole, one


def two_rows_of_the_loop(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    first = whole[0]
    second = whole[1]
    for i in range(n):
        second = first
        first = whole[(2 * i) % 6]
        first += 1
        second *= 2
    first -= 4
    second += first
    return whole, first, second


def row_before_of_the_loop(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    last: Optional[Tensor] = None
    if bool(x.sum() > 0):
        last = y[0] * 2
    for i in range(n):
        now = whole[i]
        if last is not None:
            last += now
        last = now
    return whole


def rows_of_two_tables(x: Tensor, y: Tensor, n: int):
    one = x.clone()
    other = y.clone()
    row = one[0]
    for i in range(n):
        if i % 2 == 0:
            row = other[i % 3]
        else:
            row = one[(i + 1) % 3]
        row += 1
    row *= 10
    return one, other, row


def row_or_new(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    row = whole[0]
    for i in range(n):
        row = whole[i % 3] if i % 2 == 0 else row * 2
        row += 1
    row -= 50
    return whole, row


def row_of_nested_loops(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    row = whole[5]
    for i in range(n):
        for j in range(i):
            row = whole[(i + j) % 6]
            row += 1
        row *= 2
    row -= 9
    return whole, row


def row_in_a_branch_of_a_loop(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    best = whole[0]
    for i in range(n):
        if bool(whole[i % 3].sum() > best.sum()):
            best = whole[i % 3]
        best += 0.5
    best *= 2
    return whole, best


def row_of_a_new_table(x: Tensor, y: Tensor, n: int):
    table = x
    row = x[0]
    for i in range(n):
        table = table * 2
        row = table[i % 3]
        row += 1
    row -= 5
    return table, row, x * 1


def row_of_a_row(x: Tensor, y: Tensor, n: int):
    whole = torch.stack([x, y, x + y])
    one = whole[0][0]
    for i in range(n):
        page = whole[i % 3]
        one = page[(i + 1) % 3]
        page -= 1
    one += 100
    return whole, one


def while_at_the_smallest(x: Tensor, y: Tensor, n: int):
    levels = x.clone()
    low = levels[0]
    count = 0
    while count < n:
        low = levels[int(levels[:, 0].argmin())]
        low += 2
        count += 1
    low *= 0.5
    return levels, low, count


def left_by_break(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    found = whole[0]
    for i in range(n):
        found = whole[i]
        if bool(found.sum() < 0):
            break
    found.fill_(9.0)
    return whole, found


class LastRow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(6, 2))

    def forward(self, x: Tensor, y: Tensor, n: int):
        row = self.table[5]
        for i in range(n):
            row = self.table[i]
            row += x[i % 3]
        row += 1
        return self.table * 1, row


# -- at bounds of a branch ------------------------------------------------------------------------


def slice_at_a_read_number(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    if bool(x.sum() > 0):
        k = int(x[:, 1].argmax())
        part = whole[k : k + 2]
    else:
        part = whole[0:2]
    part.mul_(2)
    return whole, part


def slices_of_other_lengths(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    if n > 1:
        k = int((x > 0).sum())
        part = whole[k:]
    else:
        k = int((x > -1).sum())
        part = whole[:k]
    part += 1
    whole *= 2
    part -= whole[0].clone()
    return whole, part


def columns_at_a_read_number(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y], 1)
    if n > 1:
        k = int((x > 0).sum()) % 3
        part = whole[:, k : k + 2]
    else:
        k = int((x < 0).sum()) % 2
        part = whole[::2, k : k + 1]
    part += 1
    part[0] *= 3
    return whole, part


def place_or_new(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    if n > 1:
        k = int(y[0].argmax())
        part = whole[k : k + 2]
    else:
        part = y[1:] * 2
    part += 1
    return whole, part


def place_of_one_of_two(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    c = a if bool(x.sum() > 0) else b
    if n > 1:
        k = int(y[0].argmax())
        row = c[k + 1]
    else:
        k = int(y[1].argmax())
        row = a[k]
    row += 7
    c *= 2
    row -= 1
    return a, b, row


def place_in_nested_branches(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    row = whole[0]
    if n > 0:
        k = int(x[0].argmax())
        row = whole[k + 1]
        if n > 1:
            m = int(y[0].argmax())
            row = whole[m + 3]
        row += 1
    row *= 2
    return whole, row


def transposed_place(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    if n > 1:
        k = int(x[0].argmax())
        part = whole[k : k + 3].t()
    else:
        part = whole.t()[:, n : n + 2]
    part += 1
    part[0] -= 5
    part.unsqueeze(0)[0, 1] *= 2
    return whole, part


def reshaped_place(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    if n > 1:
        k = int(x[0].argmax())
        part = whole[k : k + 3].view(-1)
    else:
        k = int(x[1].argmax())
        part = whole.view(2, 6)[k]
    part += 1
    part.view(2, 3)[0] -= 5
    return whole, part


def diagonal_place(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y], 1)[:, :3].clone()
    if n > 1:
        k = int(x[0].argmax())
        part = whole[k:].diagonal()
    else:
        k = int(x[1].argmax())
        part = whole.split(2, dim=1)[0].unsqueeze(0)[:, :, k].squeeze(0)[1:]
    part += 1
    return whole, part


# -- that move with every iteration ---------------------------------------------------------------


def shorter_with_every_iteration(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rest = whole
    for _i in range(n):
        rest = rest[1:]
        rest += 1
    return whole, rest


def first_of_the_rest(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rest = whole
    for i in range(n):
        rest[0] = 10.0 + i
        rest = rest[1:]
    whole *= 2
    rest -= 1
    return whole, rest


def narrower_with_every_iteration(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y, x, y], 1)
    cur = whole[1:]
    for i in range(n):
        cur = cur[:, 1:]
        if i % 2 == 0:
            cur = cur[:, :-1]
        cur[0] += i
    cur *= 2
    return whole, cur


def turned_with_every_iteration(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y[:1]], 0)[:2].clone()
    cur = whole
    for i in range(n):
        cur = cur.t()
        cur[0] += i + 1
    cur[1] = 0.0
    return whole, cur


def halves(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y, x, y]).clone()
    part = whole
    while part.size(0) > n + 1:
        half = part.size(0) // 2
        part = part[half:] if bool(part[0, 0] < part[half, 0]) else part[:half]
        part += 1
    part *= 3
    return whole, part


def two_that_move(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y, x, y])
    left = whole
    right = whole
    for _i in range(n):
        left = left[1:]
        right = right[:-1]
        left[0] += right[-1]
        right *= 2
    left += 1
    return whole, left, right


def moves_in_either_table(x: Tensor, y: Tensor, n: int):
    one = torch.cat([x, y])
    other = torch.cat([y, x])
    cur = one if bool(x.sum() > 0) else other
    for i in range(n):
        cur = cur[1:]
        if i == 2:
            cur = other
        cur += 1
    cur -= 2
    return one, other, cur


def moves_or_is_made_anew(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    cur = whole
    for i in range(n):
        if i % 3 == 1:
            cur = cur * 2
        else:
            cur = cur[1:]
        cur += 1
    cur -= 2
    return whole, cur


def pages_that_move(x: Tensor, y: Tensor, n: int):
    whole = torch.stack([x, y, x, y, x, y])
    rest = whole
    page = rest[0]
    for i in range(n):
        page = rest[0]
        rest = rest[1:]
        page += i
        page[1] = 0.0
    page *= 2
    rest += 1
    return whole, page, rest


# -- at dynamic sizes -----------------------------------------------------------------------------


def row_after_all_rows(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    row = whole[0] if whole.size(0) > 0 else y.sum(0)
    for i in range(x.size(0)):
        row = whole[2 * i]
        row += 1
    row *= 2
    return whole, row


def rest_of_dynamic_rows(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rest = whole
    for _i in range(x.size(0)):
        rest = rest[1:]
        rest *= 2
    rest += 1
    return whole, rest


def part_of_dynamic_rows(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y], 1)
    if n > 1:
        k = int((x > 0).sum()) % 3
        part = whole[:, k:]
    else:
        part = whole[n:]
    part += 1
    whole *= 2
    return whole, part.clone()


# -- of other types -------------------------------------------------------------------------------


def rows_of_any_type(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rest = whole
    row = whole[0]
    for i in range(n):
        rest = rest[1:]
        row = rest[0]
        if i % 2 == 1:
            row[0] = y[1, 1]
    row.copy_(x[1])
    return whole, row, rest


# -- reads of layouts that are known --------------------------------------------------------------


def copy_of_a_turned_one(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    turned = whole.t()
    for i in range(n):
        whole[i % 3] += 1
        turned = whole.t()
    turned += 1
    return whole, turned


def read_as_a_line(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    turned = a.t() if n > 1 else a[1:].t()
    line = turned.reshape(-1) * 2
    seen = turned.view(2, -1)
    seen += 1
    return a, turned, line, turned.reshape(-1)


# -- whole algorithms -----------------------------------------------------------------------------


def rows_of_a_result(x: Tensor, y: Tensor, n: int):
    cells = torch.zeros(n + 2, 4)
    before = cells[0]
    before[0] = 1.0
    for i in range(n + 1):
        row = cells[i + 1]
        for j in range(4):
            row[j] = before[j] + x[i % 3, 0]
            if j > 0:
                row[j] = torch.maximum(row[j], row[j - 1])
        before = row
    return cells, before


def rows_of_a_table(x: Tensor, y: Tensor, n: int):
    scores = torch.cat([x, y])[:, 0].clone()
    boxes = torch.cat([x, y])
    best = boxes[0]
    for _ in range(n):
        k = int(scores.argmax())
        best = boxes[k]
        scores[k] = -100.0
        best.clamp_(max=4.0)
    best -= 1
    return boxes, scores, best


def part_by_bisection(x: Tensor, y: Tensor, n: int):
    keys = torch.arange(10.0)
    part = keys
    while part.size(0) > 1:
        middle = part.size(0) // 2
        part = part[:middle] if bool(part[middle] > x[0, 0]) else part[middle:]
    part.fill_(-1.0)
    return keys, part


def row_by_function(table: Tensor, i: int) -> Tensor:
    if i % 2 == 0:
        return table[i]
    k = int(table[:, 0].argmax())
    return table[k]


def nearest_by_function(x: Tensor, y: Tensor, n: int):
    table = torch.cat([x, y])
    row = row_by_function(table, n % 4)
    row += 1
    for i in range(n):
        row = row_by_function(table, i)
        row -= 2
    row *= 3
    return table, row


def smallest_and_largest(x: Tensor, y: Tensor, n: int):
    line = x.clone().view(-1)
    top = line[0]
    low = line[1]
    for i in range(6):
        if bool(line[i] > top):
            top = line[i]
        if bool(line[i] < low):
            low = line[i]
    top -= 10
    low += 10
    return line, top, low


# -- refused --------------------------------------------------------------------------------------


def shown_several_times(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    wide = whole[0].expand(3, 2)
    for i in range(n):
        wide = whole[i % 3].expand(3, 2)
    whole += 1
    return wide * 2


def written_as_another_type(x: Tensor, y: Tensor, n: int):
    whole = torch.view_as_complex(torch.cat([x, y]))
    row = whole[0]
    for i in range(n):
        row = whole[i]
    torch.view_as_real(row).mul_(2)
    return torch.view_as_real(whole)


def copied_or_not(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    turned = a.t() if n > 1 else a[1:].t()
    copied = turned.clone()
    line = copied.reshape(-1)
    line += 1
    return copied, line


def list_read_in_the_next_iteration(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(y * i)
    total = x * 0
    row = x * 1
    kept.append(row)
    for i in range(n):
        total = total + kept[i]
        row += 1
    return total


COMPUTED: list[Typed] = [
    (program, COUNTS)
    for program in (
        read_as_a_line, rows_of_a_result, rows_of_a_table, part_by_bisection,
        nearest_by_function, smallest_and_largest,
        row_of_the_loop_written_after, row_at_the_counter, row_at_the_largest,
        row_read_after_the_whole_is_written, column_of_the_loop, element_of_the_loop,
        two_rows_of_the_loop, row_before_of_the_loop, rows_of_two_tables, row_or_new,
        row_of_nested_loops, row_in_a_branch_of_a_loop, row_of_a_new_table, row_of_a_row,
        while_at_the_smallest, left_by_break, LastRow(),
        slice_at_a_read_number, slices_of_other_lengths, columns_at_a_read_number, place_or_new,
        place_of_one_of_two, place_in_nested_branches, transposed_place, reshaped_place,
        diagonal_place,
        shorter_with_every_iteration, first_of_the_rest, narrower_with_every_iteration,
        turned_with_every_iteration, halves, two_that_move, moves_in_either_table,
        moves_or_is_made_anew, pages_that_move, copy_of_a_turned_one,
    )
]  # fmt: skip
SIZES = [
    (
        torch.arange(2.0 * size).reshape(size, 2) - 1,
        1 - torch.arange(2.0 * size).reshape(size, 2),
        n,
    )
    for size, n in ((3, 2), (0, 5), (1, 1), (7, 3), (2, 0))
]
OF_OTHER_TYPES: list[Typed] = [
    (rows_of_any_type, [(x.to(dtype), y.to(dtype), n) for x, y, n in COUNTS])
    for dtype in (torch.int64, torch.bool, torch.float16)
]
OF_DYNAMIC_SIZES: list[Typed] = [
    (program, SIZES) for program in (row_after_all_rows, rest_of_dynamic_rows, part_of_dynamic_rows)
]
REFUSED = [
    (
        written_as_another_type,
        ("torch.view_as_real(row).mul_(2)", "return torch.view_as_real(whole)"),
    ),
    (copied_or_not, ("line += 1", "what it returns")),
    (shown_several_times, ("whole += 1", "return wide * 2")),
    (list_read_in_the_next_iteration, ("row += 1", "total = total + kept[i]")),
]
