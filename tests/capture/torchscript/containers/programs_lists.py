"""Programs with lists, each with inputs that make the lists longer, shorter and empty."""
# ruff: noqa: B007, B905, RUF005  what TorchScript takes

import torch
from torch import Tensor

torch.manual_seed(0)


def _x(*shape: int) -> Tensor:
    return torch.randn(*shape)


_ROWS = [(_x(3, 2),), (_x(5, 2),), (_x(1, 2),)]
_ROWS_OR_NONE = [*_ROWS, (_x(0, 2),)]
_COUNTS = [(_x(3, 2), 3), (_x(3, 2), 1), (_x(3, 2), 7)]
_COUNTS_OR_NONE = [*_COUNTS, (_x(3, 2), 0)]
_VALUES = [(_x(3, 2),), (_x(3, 2),), (torch.zeros(3, 2),)]


# -- lists of known length ------------------------------------------------------------------------


def appended(x: Tensor):
    items: list[Tensor] = []
    items.append(x)
    items.append(x * 2)
    items.append(x.sum(0, keepdim=True))
    return torch.cat(items)


def extended(x: Tensor):
    items = [x]
    items.extend([x + 1, x + 2])
    items += [x * 3]
    return torch.stack(items + [x], 1)


def inserted(x: Tensor):
    items = [x, x + 1]
    items.insert(0, x - 1)
    items.insert(-1, x * 5)
    items.insert(99, x * 7)
    return torch.cat(items, 1)


def popped(x: Tensor):
    items = [x, x + 1, x + 2, x + 3]
    last = items.pop()
    first = items.pop(0)
    other = items.pop(-2)
    return last, first, other, items


def deleted(x: Tensor):
    items = [x, x + 1, x + 2]
    del items[1]
    del items[-1]
    return items[0]


def cleared(x: Tensor):
    items = [x, x + 1]
    items.clear()
    items.append(x * 2)
    return items


def reversed_and_copied(x: Tensor):
    items = [x, x + 1, x + 2]
    kept = items.copy()
    items.reverse()
    kept.append(x * 9)
    return items, kept


def two_names(x: Tensor):
    items = [x]
    same = items
    same.append(x + 1)
    items[0] = x * 4
    return torch.stack(same), len(items)


def repeated_list(x: Tensor):
    items = [x, x + 1] * 2
    zeros = [0] * 3
    return torch.cat(items), zeros


def indexed(x: Tensor):
    items = [x, x + 1, x + 2]
    items[-1] = x * 2
    return items[0] + items[-2] - items[2]


def sliced(x: Tensor):
    items = [x, x + 1, x + 2, x + 3, x + 4]
    return items[1:3], items[:-1], items[::2], items[-2:], items[3:1]


def nested_lists(x: Tensor):
    rows = [[x, x + 1], [x + 2]]
    rows[0].append(x * 3)
    rows.append([x * 4])
    total = torch.zeros_like(x)
    for row in rows:
        for item in row:
            total = total + item
    return total, rows


def list_of_tuples(x: Tensor):
    pairs = [(x, 1), (x + 1, 2)]
    pairs.append((x * 2, 3))
    total = x
    for item, factor in pairs:
        total = total + item * factor
    return total


def loop_of_known_count(x: Tensor):
    items: list[Tensor] = []
    for i in range(4):
        x = x * 0.5 + i
        items.append(x)
    return torch.stack(items), items[2]


def loop_of_many(x: Tensor):
    items: list[Tensor] = []
    for i in range(100):
        x = x * 0.9 + i
        items.append(x)
    return torch.cat(items, 1)


def unequal_shapes(x: Tensor):
    items: list[Tensor] = []
    for i in range(3):
        items.append(x[: i + 1])
    return items


def dynamic_index_of_known(x: Tensor, n: int):
    items = [x, x + 1, x * 2]
    return items[n]


def dynamic_index_negative(x: Tensor, n: int):
    items = [x, x + 1, x * 2]
    return items[-n]


def numbers_dynamic_index(x: Tensor, n: int):
    sizes = [3, 5, 7]
    sizes[n] = 11
    return x * sizes[n] + sizes[0], sizes


def list_in_branches(x: Tensor):
    items = [x]
    if x.sum() > 0:
        items.append(x * 2)
    else:
        items.append(x - 1)
    return torch.stack(items)


def list_changed_in_one_branch(x: Tensor):
    items = [x, x + 1]
    if x.sum() > 0:
        items.append(x * 2)
    return torch.cat(items), len(items)


# -- built in loops -------------------------------------------------------------------------------


def stacked(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    return torch.stack(outs)


def stacked_behind(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    return torch.stack(outs, -1), torch.cat(outs, 1)


def concatenated(x: Tensor):
    outs: list[Tensor] = []
    for i in range(x.size(0)):
        outs.append(x[i] * i)
    return torch.cat(outs)


def growing_items(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x[:, : i + 1])
    return torch.cat(outs, 1)


def joined_lists(x: Tensor, n: int):
    a: list[Tensor] = []
    b: list[Tensor] = []
    for i in range(n):
        a.append(x + i)
        b.append(x.sum(0) * i)
    return torch.stack(a + [x]), torch.stack(b)


def two_per_iteration(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x + i)
        outs.append(x - i)
    return torch.stack(outs)


def appended_in_branch(x: Tensor):
    outs: list[Tensor] = [torch.zeros(2)]
    for i in range(x.size(0)):
        if x[i].sum() > 0:
            outs.append(x[i])
    return torch.stack(outs)


def started_list(x: Tensor, n: int):
    outs = [x, x + 1]
    for i in range(n):
        outs.append(outs[-1] + outs[-2])
    return torch.stack(outs)


def reads_the_last(x: Tensor, n: int):
    outs = [x]
    for i in range(n):
        outs.append(outs[i] * 2)
    return outs[-1], len(outs)


def while_appended(x: Tensor):
    outs: list[Tensor] = []
    while x.sum() < 10:
        x = x.abs() + 1
        outs.append(x)
    return torch.stack(outs + [x])


def broken_off(x: Tensor, n: int):
    outs = [x]
    for i in range(n):
        if i == 4:
            break
        outs.append(x * i)
    return torch.stack(outs)


def popped_in_loop(x: Tensor, n: int):
    outs = [x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7]
    for i in range(n):
        x = x + outs.pop()
    return x, len(outs)


def window(x: Tensor, n: int):
    """A list that stays as long as it is."""
    last = [x, x + 1]
    for i in range(n):
        last.append(last[0] + last[1])
        last.pop(0)
    return torch.cat(last)


def returned(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    return outs


def returned_unequal(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x[:i])
    return x, outs


def returned_in_tuple(x: Tensor):
    outs: list[Tensor] = []
    total = 0
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            outs.append(x[i] * 2)
            total += 1
    return outs, total, {"x": x}


def length_and_last(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    last = outs[-1] if len(outs) > 0 else x
    return last, len(outs)


def iterated_twice(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    total = torch.zeros_like(x)
    for each in outs:
        total = total + each
    return total


def enumerated(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    total = torch.zeros_like(x)
    for i, each in enumerate(outs):
        total = total + each * i
    return total


def zipped(x: Tensor, n: int):
    outs: list[Tensor] = []
    factors: list[float] = []
    for i in range(n):
        outs.append(x * i)
        factors.append(i * 0.5)
    total = torch.zeros_like(x)
    for each, factor in zip(outs, factors):
        total = total + each * factor
    return total


def reversed_dynamic(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.append(x * i)
    outs.reverse()
    return torch.stack(outs + [x])


def sliced_dynamic(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(8):
        outs.append(x * i)
    return torch.stack(outs[:n] + [x]), torch.stack(outs[n:] + [x])


def sliced_sequence(x: Tensor, n: int):
    outs = [x]
    for i in range(n):
        outs.append(x[: i % 2 + 1])
    return torch.cat(outs[1:]), torch.cat(outs[::2]), torch.cat(outs[-2:]), torch.cat(outs[:-1])


def inserted_dynamic(x: Tensor, n: int):
    outs = [x]
    for i in range(n):
        outs.insert(0, x * i)
        outs.insert(1, x - i)
    return torch.stack(outs)


def deleted_dynamic(x: Tensor, n: int):
    outs = [x, x + 1]
    for i in range(n):
        outs.append(x * i)
    del outs[1]
    outs.pop(0)
    return torch.stack(outs + [x]), len(outs)


def set_dynamic(x: Tensor, n: int):
    outs = [x, x + 1, x + 2]
    for i in range(n):
        outs[i % 3] = outs[(i + 1) % 3] + outs[-1]
    return torch.stack(outs)


def extended_dynamic(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        outs.extend([x + i, x * i])
    outs += [x]
    return torch.stack(outs)


def list_of_lists_static(x: Tensor, n: int):
    rows: list[list[Tensor]] = [[x], [x + 1]]
    for i in range(n):
        rows[0].append(x * i)
    return torch.stack(rows[0]), rows[1][0]


def caches(x: Tensor, n: int):
    """One key and one value per layer, as a decoder keeps them."""
    keys = [torch.zeros(3, 0), torch.zeros(3, 0)]
    for i in range(n):
        for layer in range(2):
            keys[layer] = torch.cat([keys[layer], x * (i + layer)], 1)
    return keys


def cleared_in_loop(x: Tensor, n: int):
    outs: list[Tensor] = [x]
    for i in range(n):
        if len(outs) > 3:
            outs.clear()
        outs.append(x + i)
    return torch.stack(outs)


def nested_loops(x: Tensor, n: int):
    rows: list[Tensor] = []
    for i in range(n):
        row: list[Tensor] = []
        for j in range(x.size(0)):
            row.append(x[j] * (i + j))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def flattened_loops(x: Tensor, n: int):
    outs: list[Tensor] = []
    for i in range(n):
        for j in range(i):
            outs.append(x * (i + j))
    return torch.stack(outs + [x])


# -- comprehensions -------------------------------------------------------------------------------


def over_range(x: Tensor, n: int):
    return torch.stack([x * i for i in range(n)])


def over_tensor(x: Tensor):
    return torch.stack([row * 2 for row in x])


def over_list(x: Tensor, n: int):
    items = [x + i for i in range(n)]
    return torch.stack([each.sum(0) for each in items])


def over_numbers(x: Tensor, n: int):
    return [i * 2 + 1 for i in range(n)], x


def over_enumerate(x: Tensor):
    return torch.stack([row * i for i, row in enumerate(x)])


def over_zip(x: Tensor, y: Tensor):
    return torch.cat([a + b for a, b in zip(x, y)])


def over_split(x: Tensor):
    return [each.sum() for each in x.split(1)]


def sum_of_zip(x: Tensor, y: Tensor):
    total = torch.zeros(2)
    for i, (a, b) in enumerate(zip(x, y)):
        total = total + a * b * i
    return total


def for_over_tensor(x: Tensor):
    total = torch.zeros(2)
    for row in x:
        total = total * 0.5 + row
    return total


def for_over_reversed(x: Tensor, n: int):
    outs: list[int] = []
    for i in range(n - 1, -1, -1):
        outs.append(i)
    return outs, x


# -- lists of numbers -----------------------------------------------------------------------------


def numbers_appended(x: Tensor, n: int):
    numbers: list[int] = []
    for i in range(n):
        numbers.append(i * i)
    return torch.tensor(numbers, dtype=torch.int64), len(numbers), x


def floats_appended(x: Tensor):
    numbers: list[float] = []
    for i in range(x.size(0)):
        numbers.append(float(x[i].sum()))
    return torch.tensor(numbers), x


def bools_appended(x: Tensor):
    flags: list[bool] = []
    for i in range(x.size(0)):
        flags.append(bool(x[i, 0] > 0))
    return torch.tensor(flags, dtype=torch.bool), any(flags), all(flags)


def numbers_reduced(x: Tensor, n: int):
    numbers = [5, -3, 4]
    for i in range(n):
        numbers.append(i * (7 - 2 * i))
    return max(numbers), min(numbers), sum(numbers), x


def floats_reduced(x: Tensor):
    numbers = [0.5]
    for row in x:
        numbers.append(float(row[0]))
    return max(numbers), min(numbers), sum(numbers)


def numbers_sorted(x: Tensor, n: int):
    numbers: list[int] = []
    for i in range(n):
        numbers.append((i * 5) % 7)
    ordered = sorted(numbers)
    numbers.sort(reverse=True)
    return ordered, numbers, x


def known_numbers_sorted(x: Tensor):
    a = int(x[0, 0] * 10)
    b = int(x[1, 0] * 10)
    numbers = [a, b, 3]
    numbers.sort()
    return numbers


def numbers_searched(x: Tensor, n: int):
    numbers = [4, 4]
    for i in range(n):
        numbers.append(i)
    return 4 in numbers, 9 in numbers, numbers.index(4), numbers.count(4), x


def numbers_changed(x: Tensor, n: int):
    numbers = [1, 2, 3, 4]
    for i in range(n):
        numbers.append(i)
    numbers.insert(1, 9)
    numbers[-1] = 7
    numbers[n] = 5
    numbers.pop(0)
    del numbers[1]
    last = numbers.pop()
    return numbers, last, numbers[0], numbers[-1], x


def numbers_joined(x: Tensor, n: int):
    numbers: list[int] = []
    for i in range(n):
        numbers.append(i)
    both = numbers + [10, 11]
    both += numbers
    numbers.reverse()
    return both, numbers, both[1:], both[:n], both[n:], both[::2], x


def numbers_as_sizes(x: Tensor, n: int):
    sizes = [n, 2]
    return torch.zeros(sizes) + 1, x


def numbers_iterated(x: Tensor, n: int):
    numbers = [i * 2 for i in range(n)]
    for i, number in enumerate(numbers):
        x = x + number * i
    return x


def as_list(x: Tensor):
    numbers: list[float] = x[:, 0].tolist()
    return numbers, len(numbers)


def as_list_of_ints(x: Tensor):
    numbers: list[int] = (x[:, 0] * 10).to(torch.int64).tolist()
    total = 0
    for number in numbers:
        total += number
    return total


def list_of_shape(x: Tensor):
    sizes = list(x.shape)
    sizes[0] = sizes[0] * 2
    sizes.append(1)
    return torch.ones(sizes)


def shape_sliced(x: Tensor):
    return x.reshape(list(x.shape[:1]) + [1] + list(x.shape[1:])), x.size()[1:]


def equal_lists(x: Tensor, n: int):
    return list(x.shape) == [n, 2], [1, n] != [1, 3], x


# -- operators that give lists --------------------------------------------------------------------


def split_evenly(x: Tensor):
    total = torch.zeros(2)
    for part in x.split(2):
        total = total + part.sum(0)
    return total


def split_by_number(x: Tensor, n: int):
    parts = x.split(n + 1)
    return parts[0], parts[-1], len(parts)


def split_by_sizes(x: Tensor, n: int):
    parts = x.split([1, 2])
    return parts[0] + n, parts[1]


def split_by_computed_sizes(x: Tensor):
    n = x.size(0) // 2
    first, second = x.split([n, x.size(0) - n])
    return first, second


def split_by_list(x: Tensor, n: int):
    sizes: list[int] = []
    left = x.size(0)
    while left > n:
        sizes.append(n)
        left -= n
    sizes.append(left)
    parts = x.split(sizes)
    return torch.stack([part.sum(0) for part in parts]), len(parts)


def split_with_sizes_of_tensor(x: Tensor, sizes: Tensor):
    numbers: list[int] = sizes.tolist()
    return [part.mean(0) for part in torch.split(x, numbers)]


def chunked(x: Tensor):
    a, b = x.chunk(2, 1)
    return a - b


def chunked_dynamic(x: Tensor):
    outs: list[Tensor] = []
    for part in x.chunk(3):
        outs.append(part.sum(0))
    return torch.stack(outs)


def unbound(x: Tensor):
    parts = x.unbind()
    return parts[0], parts[-1], torch.stack(parts, 1), len(parts)


def unbound_behind(x: Tensor):
    total = torch.zeros(2)
    for column in x.t().unbind(1):
        total = total - column * 2
    return total


def tensor_split_dynamic(x: Tensor):
    outs: list[Tensor] = []
    for part in torch.tensor_split(x, 3):
        outs.append(part.sum(0))
    return torch.stack(outs)


def tensor_split_at(x: Tensor, n: int):
    a, b = torch.tensor_split(x, [n])
    return a, b


def meshed(x: Tensor):
    a, b = torch.meshgrid([x[:, 0], x[:, 1]], indexing="ij")
    return a + b


def where_as_list(x: Tensor):
    rows, columns = torch.where(x > 0)
    return rows + columns


# -- inputs ---------------------------------------------------------------------------------------


def list_input(items: list[Tensor]):
    total = torch.zeros(2)
    for item in items:
        total = total + item.sum(0)
    return total, len(items)


def list_input_changed(items: list[Tensor], n: int):
    made = items.copy()
    for i in range(n):
        made.append(items[0] * i)
    return torch.cat(made)


def list_input_returned(items: list[Tensor]):
    return [item * 2 for item in items]


# -- tuples in lists ------------------------------------------------------------------------------


def pairs(x: Tensor, n: int):
    made: list[tuple[Tensor, int]] = []
    for i in range(n):
        made.append((x * i, i * 2))
    total = torch.zeros_like(x)
    for item, factor in made:
        total = total + item * factor
    return total, len(made)


def pairs_popped(x: Tensor, n: int):
    """A stack of work that is still to do."""
    todo: list[tuple[Tensor, int]] = [(x, n)]
    total = torch.zeros_like(x)
    while len(todo) > 0:
        item, depth = todo.pop()
        total = total + item
        if depth > 0:
            todo.append((item * 0.5, depth - 1))
            todo.append((item - 1, depth - 2))
    return total


# -- sharing --------------------------------------------------------------------------------------


def item_written(x: Tensor):
    items = [x, x + 1]
    items[1].add_(1)
    items[0].mul_(2)
    return torch.cat(items), x


def written_after_append(x: Tensor):
    items: list[Tensor] = []
    y = x * 1
    items.append(y)
    y += 1
    items.append(y)
    return torch.stack(items)


def cloned_before_append(x: Tensor, n: int):
    outs: list[Tensor] = []
    y = x * 1
    for i in range(n):
        y += i
        outs.append(y.clone())
    return torch.stack(outs)


def views_in_list(x: Tensor):
    y = x * 1
    rows = [y[0], y[1]]
    y[0] = 7.0
    rows[1].zero_()
    return torch.stack(rows), y


def list_shared_by_tuple(x: Tensor):
    items = [x]
    pair = (items, items)
    pair[0].append(x + 1)
    return torch.cat(pair[1]), len(items)


def written_through_loop_variable(x: Tensor):
    items = [x * 1, x * 2]
    for item in items:
        item += 1
    return torch.stack(items)


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x: Tensor):
        outs: list[Tensor] = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            outs.append(x)
        return outs


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(2, 4)
        self.sizes = [1, 2, 3]

    def forward(self, x: Tensor):
        state = torch.zeros(x.size(1), 4)
        outs: list[Tensor] = []
        for step in x.unbind(0):
            state = self.cell(step, state)
            outs.append(state)
        return torch.stack(outs), state, self.sizes[1]


_PAIRS = [(_x(3, 2), _x(3, 2)), (_x(5, 2), _x(5, 2)), (_x(1, 2), _x(1, 2))]
_SPANS = [(_x(6, 2), 2), (_x(7, 2), 3), (_x(1, 2), 2), (_x(2, 2), 5)]
_LISTS = [([_x(3, 2), _x(2, 2)],), ([_x(1, 2), _x(4, 2)],), ([_x(0, 2), _x(2, 2)],)]
_AT = [(_x(3, 2), 0), (_x(3, 2), 2), (_x(3, 2), -1)]

CASES = [
    *(
        (program, _ROWS)
        for program in (
            appended, extended, inserted, popped, deleted, cleared, reversed_and_copied, two_names,
            repeated_list, indexed, sliced, nested_lists, list_of_tuples, loop_of_known_count,
            loop_of_many, unequal_shapes, concatenated, appended_in_branch, over_tensor,
            over_enumerate, item_written, written_after_append, list_shared_by_tuple,
            written_through_loop_variable, chunked, chunked_dynamic, tensor_split_dynamic, unbound,
            over_split, meshed, Stack(),
        )
    ),
    *(
        (program, _ROWS_OR_NONE)
        for program in (
            returned_in_tuple, for_over_tensor, floats_appended, bools_appended, floats_reduced,
            as_list, as_list_of_ints, list_of_shape, shape_sliced, split_by_computed_sizes,
            unbound_behind, where_as_list, split_evenly,
        )
    ),
    *(
        (program, _VALUES)
        for program in (list_in_branches, list_changed_in_one_branch, while_appended,
                        known_numbers_sorted, views_in_list)
    ),
    *(
        (program, _COUNTS)
        for program in (
            stacked, stacked_behind, growing_items, joined_lists, two_per_iteration, over_range,
            over_list, nested_loops, sliced_sequence, numbers_searched,
            list_of_lists_static, cloned_before_append, split_by_number, tensor_split_at,
        )
    ),
    *(
        (program, _COUNTS_OR_NONE)
        for program in (
            started_list, reads_the_last, broken_off, popped_in_loop, window, returned,
            returned_unequal, length_and_last, iterated_twice, enumerated, zipped, reversed_dynamic,
            sliced_dynamic, inserted_dynamic, deleted_dynamic, set_dynamic, extended_dynamic,
            caches, cleared_in_loop, flattened_loops, over_numbers, for_over_reversed,
            numbers_appended,
            numbers_reduced, numbers_sorted, numbers_changed, numbers_joined, numbers_as_sizes,
            numbers_iterated, equal_lists, pairs, pairs_popped, split_by_sizes,
        )
    ),
    *((program, _AT) for program in (dynamic_index_of_known, numbers_dynamic_index)),
    (dynamic_index_negative, [(_x(3, 2), 1), (_x(3, 2), 3), (_x(3, 2), 0)]),
    *((program, _PAIRS) for program in (over_zip, sum_of_zip)),
    (split_by_list, _SPANS),
    (
        split_with_sizes_of_tensor,
        [
            (_x(6, 2), torch.tensor([2, 3, 1])),
            (_x(6, 2), torch.tensor([6])),
            (_x(4, 2), torch.tensor([1, 1, 1, 1])),
        ],
    ),
    (list_input, _LISTS),
    (list_input_changed, [(*_LISTS[0], 2), (*_LISTS[1], 0), (*_LISTS[2], 3)]),
    (list_input_returned, _LISTS),
    (Recurrent(), [(_x(3, 2, 2),), (_x(5, 1, 2),), (_x(1, 4, 2),)]),
]  # fmt: skip
