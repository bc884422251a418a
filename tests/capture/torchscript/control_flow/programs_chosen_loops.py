# ruff: noqa: UP006, UP035, UP045, RUF005
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Programs that write memory which is chosen at run time: by loops, lists, tuples and optionals."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.capture.torchscript.control_flow.programs_flow import ROWS, Typed

COUNTS = [(ROWS, -ROWS, 2), (ROWS, -ROWS, 0), (-ROWS, ROWS, 1), (ROWS, ROWS * 2, 5)]
PAIRS = [(ROWS, -ROWS), (-ROWS, ROWS), (ROWS, ROWS * 2), (-ROWS, -ROWS)]


def swapped_and_written(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    for _i in range(n):
        a, b = b, a
        a += 1
    return a, b


def swapped_under_other_names(x: Tensor, y: Tensor, n: int):
    first = x.clone()
    second = y.clone()
    a = first
    b = second
    for i in range(n):
        a, b = b, a
        a += 1 + i
        b *= 2
    return a, b, first, second


def rotated_three(x: Tensor, y: Tensor, n: int):
    first = x.clone()
    second = y.clone()
    third = x + y
    a, b, c = first, second, third
    for i in range(n):
        a, b, c = b, c, a
        a += i
        b -= c
    return a, b, c, first, second, third


def current_changes(x: Tensor, y: Tensor, n: int):
    one = x.clone()
    other = y.clone()
    cur = one
    for i in range(n):
        if i == 1:
            cur = other
        cur[i % 3] = float(i + 10)
    return cur, one, other


def current_by_data(x: Tensor, y: Tensor, n: int):
    one = x.clone()
    other = y.clone()
    cur = one
    for i in range(n):
        if bool(cur.sum() > 0):
            cur = other
        else:
            cur = one
        cur += i - 3.0
    return cur, one, other


def outside_first_then_new(x: Tensor, y: Tensor, n: int):
    out = x
    for _i in range(n):
        out = out * 2
        out += 1
    return out, x


def written_before_made_anew(x: Tensor, y: Tensor, n: int):
    start = x.clone()
    out = start
    for _i in range(n):
        out += 1
        out = out * 2
    return out, start


def made_anew_in_a_branch(x: Tensor, y: Tensor, n: int):
    start = x.clone()
    out = start
    for i in range(n):
        if i % 2 == 1:
            out = out * 2
        out += 1
    return out, start


def new_tensors_swapped(x: Tensor, y: Tensor, n: int):
    a = x
    b = y
    for i in range(n):
        c = a + b
        a = b
        b = c
        b += i
        a *= 2
    return a, b, x * 1, y * 1


def both_names_of_a_new_tensor(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    for i in range(n):
        if i % 2 == 0:
            c = a * 2
            a = c
            b = c
        else:
            b = b - 1
        a += 1
    b += 5
    return a, b


def row_carried(x: Tensor, y: Tensor, n: int):
    whole = x.clone()
    row = whole[0]
    for i in range(n):
        row += 1
        if i == 0:
            row = whole[1]
        elif i == 2:
            row = whole[2]
        row *= 2
    return row, whole


def carried_of_nested_loops(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    keep = a
    for i in range(n):
        for j in range(i):
            a, b = b, a
            a += j + 1
        b -= 1
    return a, b, keep


def while_with_swap(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    first = a
    count = 0
    while count < n and bool(first.sum() < 100):
        a, b = b, a
        a += 2
        count += 1
    return a, b, first, count


def jacobi_steps(x: Tensor, y: Tensor, n: int):
    old = x.clone()
    new = torch.zeros_like(x)
    for _i in range(n):
        new[1:] = (old[:-1] + old[1:]) / 2
        new[0] = old[0]
        old, new = new, old
    return old, new


def swap_left_by_break(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    keep = b
    for i in range(n):
        a, b = b, a
        a += 1
        if i == 2:
            break
        b -= 3
    return a, b, keep


def chosen_before_and_in_the_loop(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    c = a if bool(x.sum() > 0) else b
    for i in range(n):
        d = c
        if i % 2 == 1:
            c = a
        d += 1
    c *= 3
    return a, b, c


def best_so_far(x: Tensor, y: Tensor, n: int):
    best = x.clone()
    start = best
    for i in range(n):
        candidate = y * i
        if bool(candidate.sum() > best.sum()):
            best = candidate
        best[0, 0] += 0.5
    return best, start


# -- items of lists -------------------------------------------------------------------------------


def item_at_computed_place(x: Tensor, y: Tensor, n: int):
    kept = [x[0] + 0, x[1] + 0]
    for i in range(n):
        row = kept[i % 2]
        row += i
    return kept[0], kept[1]


def item_written_at_once(x: Tensor, y: Tensor, n: int):
    kept = [x[0] + 0, x[1] + 0, y[0] + 0]
    for i in range(n):
        kept[i % 3].add_(1)
        kept[-1 - (i % 2)].mul_(2)
    return kept


def item_by_an_argument(x: Tensor, y: Tensor, n: int):
    kept = [x.clone(), y.clone()]
    one = kept[n % 2]
    one += 1
    kept[0] *= 2
    return one, kept[0], kept[1]


def items_of_other_sizes(x: Tensor, y: Tensor, n: int):
    kept = [x[:2].clone(), y.clone()]
    one = kept[n % 2]
    one += 1
    one[0] = 9.0
    return one, kept[0], kept[1]


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


def last_item_written_while_growing(x: Tensor, y: Tensor, n: int):
    kept = [torch.zeros(1, 2)]
    for i in range(n):
        kept.append(torch.zeros(i + 1, 2))
        kept[-1].add_(1)
        kept[i // 2].sub_(2)
    return torch.cat(kept)


def one_tensor_twice_in_a_list(x: Tensor, y: Tensor, n: int):
    a = x * 1
    kept = [a, y * 1, a]
    kept[n % 3].add_(1)
    return kept


def each_of_known_items(x: Tensor, y: Tensor, n: int):
    a = x * 1
    for row in [a, y * 1]:
        row += n
    return a


# -- tuples, optionals, dicts and objects ---------------------------------------------------------


def pair_chosen(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    pair = (a, b) if bool(x.sum() > 0) else (b, a)
    pair[0].add_(1)
    first, second = pair
    second -= first
    return a, b, pair


def optional_chosen(x: Tensor, y: Tensor):
    a = x.clone()
    opt: Optional[Tensor] = None
    if x.sum() > 0:
        opt = a
    if opt is not None:
        opt += 1
    return a


def optional_of_two(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    opt: Optional[Tensor] = None
    if x.sum() > 0:
        opt = a
    elif y.sum() > 0:
        opt = b
    if opt is not None:
        opt *= 3
        a += 1
        return a, b, opt
    return a, b, a - b


def entry_chosen(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    d: Dict[str, Tensor] = {}
    d["k"] = a if bool(x.sum() > 0) else b
    d["k"].add_(1)
    d["j"] = b
    d["j"].mul_(2)
    return a, b, d


class Both(NamedTuple):
    left: Tensor
    right: Tensor


def named_tuple_chosen(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    if x.sum() > 0:
        both = Both(a, b)
    else:
        both = Both(b, b)
    both.left.add_(1)
    both.right.mul_(2)
    return a, b, both.left, both.right


@torch.jit.script
class Holder:
    def __init__(self, held: Tensor) -> None:
        self.held = held

    def put(self, held: Tensor) -> None:
        self.held = held


def attribute_chosen(x: Tensor, y: Tensor):
    a = x.clone()
    b = y.clone()
    holder = Holder(a)
    if x.sum() > 0:
        holder.put(b)
    holder.held += 1
    a *= 2
    return a, b, holder.held


def optional_in_a_loop(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    last: Optional[Tensor] = None
    if n > 3:
        last = y.clone()
    for i in range(n):
        if last is not None:
            last.add_(1)
        if i % 2 == 0:
            last = a
        else:
            last = y * i
    if last is not None:
        last *= 2
        return a, last
    return a, y


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


def pairs_swapped_in_a_loop(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    pair: Tuple[Tensor, Tensor] = (a, y.clone())
    for i in range(n):
        pair = (pair[1], pair[0])
        pair[0].add_(i + 1)
    return a, pair


class PingPong(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("one", torch.zeros(3, 2))
        self.register_buffer("other", torch.ones(3, 2))

    def forward(self, x: Tensor, y: Tensor, n: int):
        source = self.one
        target = self.other
        for i in range(n):
            target.copy_(source + x * i)
            source, target = target, source
        return source + y, self.one * 1, self.other * 1


# -- lists and dicts themselves -------------------------------------------------------------------


def list_of_the_iteration_before(x: Tensor, y: Tensor, n: int):
    cur = [x]
    last = [y]
    for _i in range(n):
        last = cur
        cur = [cur[0] * 2]
        cur.append(last[0])
    return last[0], cur[0]


# -- many choices ---------------------------------------------------------------------------------


def many_choices(x: Tensor, y: Tensor):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    d = b if bool(a[0].sum() > 0) else a
    e = c if bool(a[1].sum() > 0) else d
    f = e if bool(b[1].sum() > 0) else c
    g = f if bool(b[2].sum() > 0) else d
    h = g if bool(a[2].sum() > 0) else e
    k = h if bool(a[:, 0].sum() > 0) else f
    m = k if bool(b[:, 0].sum() > 0) else g
    for one in [c, d, e, f, g, h, k, m]:
        one += 1
        one *= 1.5
    return a, b, m


def choices_of_choices_in_views(x: Tensor, y: Tensor):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    row = c[0] if bool(b.sum() > 0) else c[1]
    row += 4
    flat = c.view(-1)
    flat[2:4] *= 2
    part = flat[1:5] if bool(a[0, 0] > 0) else flat[:4]
    part -= 1
    return a, b, c, row, flat, part


def layouts_differ(x: Tensor, y: Tensor):
    a = x[:2] + 0
    b = y[:2] + 0
    c = a.t() if bool(x.sum() > 0) else b
    c[0] += 1
    c.mul_(2)
    return a, b, c


def read_only_afterwards(x: Tensor, y: Tensor):
    a = x + 0
    c = a if bool(x.sum() > 0) else y
    d = c[0]
    a += 1
    return d, c, c.sum()


# -- dynamic sizes --------------------------------------------------------------------------------


def double_buffer(x: Tensor, y: Tensor, n: int):
    a = torch.zeros_like(x)
    b = x.clone()
    for _i in range(n):
        a.copy_(b * 0.5 + y)
        a, b = b, a
        if bool(b.sum() > 3):
            b -= 1
    return a, b


class Caches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("even", torch.zeros(16, 2))
        self.register_buffer("odd", torch.ones(16, 2))

    def forward(self, x: Tensor, y: Tensor, n: int):
        cache = self.even if n % 2 == 0 else self.odd
        cache[n : n + x.size(0)] = x
        return cache[: n + x.size(0)] * 1, self.even + 1, self.odd + 1


def ring(x: Tensor, y: Tensor, n: int):
    kept = [torch.zeros(2), torch.ones(2), torch.full([2], 5.0)]
    for i in range(x.size(0)):
        kept[(i + n) % 3][0] = x[i, 1]
        kept[i % 3].add_(y[i])
    return kept


def sizes_differ(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = torch.cat([y, y])
    c = a if n > 1 else b
    c += 1
    c[:1] = 7.0
    d = c[1:]
    d *= 2
    return a, b, c, d


def parts(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    k = n // 2
    c = a[:k] if n > 2 else a[k:]
    c += 1
    return a, c


def masked(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    c = a if n > 1 else b
    c[c > 0] = 0.5
    c.clamp_(min=-1.0)
    c.masked_fill_(b < -1, 2.0)
    return a, b


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


def returned_early(x: Tensor, y: Tensor, n: int):
    a = x.clone()
    b = y.clone()
    cur = a
    for i in range(n):
        cur += 1
        if i == 1:
            return cur, a, b
        cur = b
    return cur, b, a


# -- refused --------------------------------------------------------------------------------------


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


def shape_of_a_carried_tensor_changed(x: Tensor, y: Tensor, n: int):
    a = x[:2].clone()
    c = a
    for _i in range(n):
        c.t_()
        c = c * 2
    return c, a


IN_LOOPS: list[Typed] = [
    (program, COUNTS)
    for program in (
        swapped_and_written, swapped_under_other_names, rotated_three, current_changes,
        current_by_data, outside_first_then_new, written_before_made_anew, made_anew_in_a_branch,
        new_tensors_swapped, both_names_of_a_new_tensor, row_carried,
        carried_of_nested_loops, while_with_swap, jacobi_steps, swap_left_by_break,
        chosen_before_and_in_the_loop, best_so_far,
    )
]  # fmt: skip
IN_LISTS: list[Typed] = [
    (program, COUNTS)
    for program in (
        item_at_computed_place, item_written_at_once, item_by_an_argument, items_of_other_sizes,
        appended_items_written, appended_row_written, each_item_written, items_of_growing_sizes,
        last_item_written_while_growing, one_tensor_twice_in_a_list, each_of_known_items,
    )
]  # fmt: skip
IN_OTHER_OBJECTS: list[Typed] = [
    (pair_chosen, PAIRS),
    (optional_chosen, PAIRS),
    (optional_of_two, PAIRS),
    (entry_chosen, PAIRS),
    (named_tuple_chosen, PAIRS),
    (attribute_chosen, PAIRS),
    (optional_in_a_loop, COUNTS),
    (dict_in_a_loop, COUNTS),
    (pairs_swapped_in_a_loop, COUNTS),
    (PingPong(), COUNTS),
]
OF_OBJECTS: list[Typed] = [
    (list_of_the_iteration_before, COUNTS),
]
MANY: list[Typed] = [
    (many_choices, PAIRS),
    (choices_of_choices_in_views, PAIRS),
    (layouts_differ, PAIRS),
    (read_only_afterwards, PAIRS),
]
SIZES = [
    (
        torch.arange(2.0 * size).reshape(size, 2) - 1,
        1 - torch.arange(2.0 * size).reshape(size, 2),
        n,
    )
    for size, n in ((3, 2), (0, 5), (1, 1), (7, 3), (2, 0))
]
OF_DYNAMIC_SIZES: list[Typed] = [
    (program, SIZES)
    for program in (
        double_buffer, Caches(), ring, sizes_differ, parts, masked, best_tokens, returned_early,
    )
]  # fmt: skip
REFUSED = [
    (one_tensor_appended_often, "may share its memory with other items"),
    (carried_tensor_appended, "may share its memory with other items"),
    (rows_appended_twice, "may share its memory with other items"),
    (list_joined_with_itself, "may share its memory with other items"),
    (shape_of_a_carried_tensor_changed, "another variable may hold too"),
    (list_under_another_name_from_the_second_iteration, "another variable"),
    (two_carried_names_of_a_list, "another variable"),
]
