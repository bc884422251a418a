# ruff: noqa: UP006, UP035, UP045, RUF005
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Programs that write tensors which loops carry, branches choose and lists hold."""

from typing import List, Optional

import torch
from torch import Tensor, nn

from tests.capture.torchscript.control_flow.programs_flow import ROWS, Typed

COUNTS = [(ROWS, -ROWS, 2), (ROWS, -ROWS, 0), (-ROWS, ROWS, 1), (ROWS, ROWS * 2, 5)]

# -- carried by loops -----------------------------------------------------------------------------


def swapped_and_written(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    for _i in range(n):
        a, b = b, a
        a += 1
    return a, b


def outside_first_then_new(x: Tensor, y: Tensor, n: int):
    out = x
    for _i in range(n):
        out = out * 2
        out += 1
    return out, x


def jacobi_steps(x: Tensor, y: Tensor, n: int):
    old = x.clone()
    new = torch.zeros_like(x)
    for _i in range(n):
        new[1:] = (old[:-1] + old[1:]) / 2
        new[0] = old[0]
        old, new = new, old
    return old, new


def double_buffer(x: Tensor, y: Tensor, n: int):
    a = torch.zeros_like(x)
    b = x.clone()
    for _i in range(n):
        a.copy_(b * 0.5 + y)
        a, b = b, a
        if bool(b.sum() > 3):
            b -= 1
    return a, b


def shape_of_the_chosen_changed(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    kept = [a, b]
    c = a if bool(x.sum() > 0) else b
    c.unsqueeze_(0)
    c += 1
    return c, kept[0].dim(), kept[1].dim(), a.sum(), b.sum()


# -- items of lists -------------------------------------------------------------------------------


def appended_items_written(x: Tensor, y: Tensor, n: int):
    kept: List[Tensor] = []
    for i in range(n):
        kept.append(x * i)
    for i in range(n):
        kept[i].add_(1)
    return torch.stack(kept + [x])


def appended_row_written(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(x * i)
    for i in range(n):
        row = kept[i]
        row.add_(10)
        row[0] = 3.0
    return torch.stack(kept)


def each_item_written(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(y * i)
    for row in kept:
        row += 1
    return torch.stack(kept)


def items_of_growing_sizes(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(torch.cat([kept[i], y]))
    for row in kept:
        row += 1
    kept[0].sub_(5)
    last = kept[-1]
    last *= 2
    return torch.cat(kept)


def each_of_known_items(x: Tensor, y: Tensor, n: int):
    a = x * 1
    for row in [a, y * 1]:
        row += n
    return a


def appended_then_written(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    a = y * 1
    for i in range(n):
        kept.append(x * i)
    kept.append(a)
    a += 5
    return torch.stack(kept)


def last_written_after_growth(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(x * i)
    last = kept[-1]
    kept.append(y * 2)
    last += 5
    return torch.stack(kept), last


# -- lists and dicts themselves -------------------------------------------------------------------


@torch.jit.script
class Holder:
    def __init__(self, held: Tensor) -> None:
        self.held = held

    def put(self, held: Tensor) -> None:
        self.held = held


def appended_to_one_of_two(x: Tensor, y: Tensor, n: int):
    above = [x[0]]
    below = [x[1]]
    for i in range(n):
        target = above if bool(x[i % 3, 0] > 0) else below
        target.append(y[i % 3])
    return torch.stack(above), torch.stack(below)


def list_of_the_iteration_before(x: Tensor, y: Tensor, n: int):
    cur = [x]
    last = [y]
    for _i in range(n):
        last = cur
        cur = [cur[0] * 2]
        cur.append(last[0])
    return last[0], cur[0]


def one_of_two_lists_changed(x: Tensor, y: Tensor):
    one = [x, y]
    other = [y, x]
    chosen = one if bool(x.sum() > 0) else other
    chosen.append(x + 1)
    chosen[0] = y * 2
    return torch.stack(chosen), torch.stack(one), torch.stack(other)


def list_changed_under_its_own_name(x: Tensor, y: Tensor):
    one = [x, y]
    other = [y, x]
    chosen = one if bool(x.sum() > 0) else other
    one.append(x + 1)
    return torch.stack(chosen), torch.stack(one)


def one_of_two_dicts_changed(x: Tensor, y: Tensor):
    one = {"a": x}
    other = {"a": y}
    chosen = one if bool(x.sum() > 0) else other
    chosen["a"] = chosen["a"] + 1
    return one["a"], other["a"], chosen["a"]


def dict_made_anew_in_one_branch(x: Tensor, y: Tensor):
    found = {"a": x}
    first = found
    if bool(x.sum() > 0):
        found = {"a": x * 2}
    found["a"] = found["a"] + 1
    return found["a"], first["a"]


def dict_changed_under_its_own_name(x: Tensor, y: Tensor):
    one = {"a": x}
    other = {"a": x * 2}
    chosen = one if bool(x.sum() > 0) else other
    one["a"] = x + 7
    return chosen["a"]


def one_of_two_objects_changed(x: Tensor, y: Tensor):
    one = Holder(x)
    other = Holder(y)
    chosen = one if bool(x.sum() > 0) else other
    chosen.put(x * y)
    return one.held, other.held, chosen.held


def numbers_of_one_of_two_lists(x: Tensor, y: Tensor):
    one = [1, 2]
    other = [3, 4]
    chosen = one if bool(x.sum() > 0) else other
    chosen[0] += 10
    return one, other, chosen


# -- refused: memory that is chosen at run time, and written ---------------------------------------


def itself_or_another(x: Tensor, y: Tensor, n: int):
    a = x + 0
    if y.sum() > 0:
        b = a
    else:
        b = a * 2
    b += 1
    return a, b


def view_chosen(x: Tensor, y: Tensor, n: int):
    a = x + 0
    if y.sum() > 0:
        row = a[0]
    else:
        row = a[1]
    row += 10
    return a, row


class BufferChosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(3, 2))
        self.register_buffer("second", torch.ones(3, 2))

    def forward(self, x: Tensor, y: Tensor, n: int):
        chosen = self.first if bool(x.sum() > 0) else self.second
        chosen += x
        return self.first * 1, self.second + y, chosen * 2


def current_changes(x: Tensor, y: Tensor, n: int):
    one = x.clone()
    other = y.clone()
    cur = one
    for i in range(n):
        if i == 1:
            cur = other
        cur[i % 3] = float(i + 10)
    return cur, one, other


def best_tokens(x: Tensor, y: Tensor, n: int):
    done = torch.zeros(x.size(0), dtype=torch.bool)
    cur = x.clone()
    best = cur
    for _i in range(n):
        cur = cur + y
        if bool(cur.sum() > best.sum()):
            best = cur
        done |= cur[:, 0] > 2
        cur[done] = 0.0
    return best, cur, done


def item_by_an_argument(x: Tensor, y: Tensor, n: int):
    kept = [x.clone(), y.clone()]
    one = kept[n % 2]
    one += 1
    kept[0] *= 2
    return one, kept[0], kept[1]


def optional_chosen(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    opt: Optional[Tensor] = None
    if x.sum() > 0:
        opt = a
    if opt is not None:
        opt += 1
    return a


def dict_in_a_loop(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    d = {"now": a, "next": b}
    for i in range(n):
        now = d["now"]
        d["now"] = d["next"]
        d["next"] = now
        d["now"].add_(i + 1)
    return a, b, d


def layouts_differ(x: Tensor, y: Tensor, n: int):
    a = x[:2] + 0
    b = y[:2] + 0
    c = a.t() if bool(x.sum() > 0) else b
    c[0] += 1
    c.mul_(2)
    return a, b, c


def row_of_the_loop_written_after(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    row = whole[0]
    for i in range(n):
        row = whole[i % 3]
        row += i + 1
    row *= 10
    return whole, row


def shorter_with_every_iteration(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    rest = whole
    for _i in range(n):
        rest = rest[1:]
        rest += 1
    return whole, rest


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


def shown_several_times(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    wide = whole[0].expand(3, 2)
    for i in range(n):
        wide = whole[i % 3].expand(3, 2)
    whole += 1
    return wide * 2


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


def rows_of_a_table(x: Tensor, y: Tensor, n: int):
    whole = torch.cat([x, y])
    kept: List[Tensor] = []
    for i in range(n):
        kept.append(whole[i])
    whole += 1
    return torch.stack(kept + [x[0]])


def one_tensor_appended_and_written(x: Tensor, y: Tensor, n: int):
    a = x * 1
    kept: List[Tensor] = []
    for _i in range(n + 1):
        kept.append(a)
        a += 1
    kept[n // 2].add_(1)
    return a, torch.stack(kept), len(kept)


# -- refused: items of a list that may be one tensor ----------------------------------------------


def one_tensor_appended_often(x: Tensor, y: Tensor, n: int):
    a = x * 1
    kept = [x * 3]
    for _i in range(n):
        kept.append(a)
    kept[n // 2].add_(1)
    return torch.stack(kept)


def carried_tensor_appended(x: Tensor, y: Tensor, n: int):
    kept = [x * 3]
    a = x * 1
    for i in range(n):
        kept.append(a)
        if i % 2 == 1:
            a = a * 2
    kept[n // 2].add_(1)
    return torch.stack(kept)


def rows_appended_twice(x: Tensor, y: Tensor, n: int):
    kept = [x[0] * 3]
    for i in range(x.size(0)):
        kept.append(x[i // 2])
    kept[n // 2].add_(1)
    return torch.stack(kept)


def list_joined_with_itself(x: Tensor, y: Tensor, n: int):
    kept = [x * 1]
    for i in range(n):
        kept.append(y * i)
    kept = kept + kept
    kept[n // 2].add_(1)
    return torch.stack(kept)


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


# -- refused by the capture -----------------------------------------------------------------------


def shape_of_a_carried_tensor_changed(x: Tensor, y: Tensor, n: int):
    a = x[:2].clone()
    c = a
    for _i in range(n):
        c.t_()
        c = c * 2
    return c, a


def list_under_another_name_from_the_second_iteration(x: Tensor, y: Tensor, n: int):
    kept = [x]
    cur = [y]
    total = torch.zeros_like(x)
    for i in range(n):
        kept.append(x * i)
        total = total + cur[-1]
        cur = kept
    return total


def two_carried_names_of_a_list(x: Tensor, y: Tensor, n: int):
    a = [x, y]
    b = [y, x]
    total = torch.zeros_like(x)
    for i in range(n):
        a[0] = a[0] + 1
        total = total + b[0]
        b = a
        a = [a[0], a[1]] if i > 100 else a
    return total


SIZES = [
    (
        torch.arange(2.0 * size).reshape(size, 2) - 1,
        1 - torch.arange(2.0 * size).reshape(size, 2),
        n,
    )
    for size, n in ((3, 2), (0, 5), (1, 1), (7, 3), (2, 0))
]
EQUAL: list[Typed] = [
    (program, COUNTS)
    for program in (
        swapped_and_written, outside_first_then_new, jacobi_steps, appended_items_written,
        appended_row_written, each_item_written, each_of_known_items, list_of_the_iteration_before,
    )
]  # fmt: skip
OF_DYNAMIC_SIZES: list[Typed] = [
    (double_buffer, SIZES),
]
UNCERTAIN = [
    (itself_or_another, "b += 1", "what it returns"),
    (view_chosen, "row += 10", "what it returns"),
    (BufferChosen(), "chosen += x", "return self.first * 1, self.second + y, chosen * 2"),
    (current_changes, "cur[i % 3] = float(i + 10)", "if i == 1:"),
    (best_tokens, "cur[done] = 0.0", "for _i in range(n):"),
    (item_by_an_argument, "one += 1", "kept[0] *= 2"),
    (optional_chosen, "opt += 1", "what it returns"),
    (dict_in_a_loop, 'd["now"].add_(i + 1)', "what it returns"),
    (layouts_differ, "c[0] += 1", "what it returns"),
    (row_of_the_loop_written_after, "row *= 10", "what it returns"),
    (shorter_with_every_iteration, "rest += 1", "what it returns"),
    (
        written_as_another_type,
        "torch.view_as_real(row).mul_(2)",
        "return torch.view_as_real(whole)",
    ),
    (copied_or_not, "line += 1", "what it returns"),
    (shown_several_times, "whole += 1", "return wide * 2"),
    (items_of_growing_sizes, "row += 1", "for row in kept:"),
    (appended_then_written, "a += 5", "return torch.stack(kept)"),
    (last_written_after_growth, "last += 5", "return torch.stack(kept), last"),
    (list_read_in_the_next_iteration, "row += 1", "total = total + kept[i]"),
    (rows_of_a_table, "whole += 1", "return torch.stack(kept + [x[0]])"),
    (one_tensor_appended_and_written, "a += 1", "kept[n // 2].add_(1)"),
]
"""A program, the line that writes, and the line that reads memory which may be the same."""
_SAME_ITEM = "may share its memory with other items"
_SHARED_OBJECT = r"a list, dict or object (is read )?that another variable"
REFUSED = [
    (one_tensor_appended_often, _SAME_ITEM),
    (carried_tensor_appended, _SAME_ITEM),
    (rows_appended_twice, _SAME_ITEM),
    (list_joined_with_itself, _SAME_ITEM),
    (columns_appended, _SAME_ITEM),
    (repeating_rows_joined, _SAME_ITEM),
    (repeating_rows_of_a_branch, _SAME_ITEM),
    (repeating_rows_of_a_loop, _SAME_ITEM),
    (shape_of_a_carried_tensor_changed, "changes the shape of a tensor that another variable"),
    (list_under_another_name_from_the_second_iteration, _SHARED_OBJECT),
    (two_carried_names_of_a_list, _SHARED_OBJECT),
    (appended_to_one_of_two, _SHARED_OBJECT),
    (shape_of_the_chosen_changed, "changes the shape of a tensor that another variable"),
    (one_of_two_lists_changed, _SHARED_OBJECT),
    (list_changed_under_its_own_name, _SHARED_OBJECT),
    (one_of_two_dicts_changed, _SHARED_OBJECT),
    (dict_made_anew_in_one_branch, _SHARED_OBJECT),
    (dict_changed_under_its_own_name, _SHARED_OBJECT),
    (one_of_two_objects_changed, _SHARED_OBJECT),
    (numbers_of_one_of_two_lists, _SHARED_OBJECT),
]
