"""Programs with branches and loops, and the inputs to run them at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ONES = torch.ones(3, 2)
ROWS = torch.arange(1.0, 7.0).reshape(3, 2)
Typed = tuple[Any, list[tuple[Any, ...]]]


def rows(count: int, width: int = 2) -> Tensor:
    return torch.arange(1.0, count * width + 1.0).reshape(count, width) / 3 - 1


SIGNS = [(ONES,), (-ONES,), (ONES * 0,)]
SIZES = [(rows(3),), (rows(5),), (rows(2),), (rows(1),), (rows(0),)]
COUNTS = [(ROWS, 3), (ROWS, 0), (ROWS, 1), (ROWS, 6)]

SIZED_SIGNS = [(rows(3) - 1,), (rows(5),), (rows(1) - 1,), (rows(1) + 5,), (rows(4),)]

# -- branches -------------------------------------------------------------------------------------


def branches_of_two_sizes(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = torch.cat([x, x])
    return y * 2


def branches_of_two_ranks_returned(x):
    if x.sum() > 0:
        y = x.sum(0)
    else:
        y = x
    return y


def branches_of_two_ranks_used(x):
    if x.sum() > 0:
        y = x.sum(0)
    else:
        y = x
    return y.relu() + 1, y.sum()


def two_ranks_early_return(x):
    if x.sum() > 0:
        return x.unsqueeze(0)
    return x.sum()


def three_ranks(x):
    if x.sum() > 0:
        y = x.sum()
    elif x.sum() < 0:
        y = x.sum(0)
    else:
        y = x
    return y + 1


def early_returns(x):
    if x.sum() > 4:
        return x + 1
    if x.sum() < -4:
        if x.min() < -3:
            return x * 3
        return x - 1
    y = x * 2
    if y.max() > 0.5:
        return y
    return y - 5


def early_return_in_loop(x, n: int):
    for _i in range(n):
        x = x + 1
        if x.sum() > 30:
            return x * 10
    return x


def early_return_in_nested_loops(x, n: int):
    for i in range(n):
        for j in range(i):
            x = x + j
            if x.sum() > 35:
                return x * 10 + i
        x = x - 0.5
    return x


def elif_chain(x):
    n = x.size(0)
    if n == 0:
        y = torch.zeros(1, 2)
    elif n == 1:
        y = x * 10
    elif n > 4:
        y = x[1:4]
    else:
        y = x.flip(0)
    return y


def none_in_one_branch(x):
    y: Tensor | None = None
    if x.sum() > 0:
        y = x * 2
    if y is not None:
        x = x + y
    return x


def none_twice(x):
    a: Tensor | None = None
    b: Tensor | None = None
    if x.sum() > 0:
        a = x * 2
    else:
        b = x[:1]
    if a is None:
        x = x - 1
    elif b is None:
        x = x + a
    if b is not None:
        x = x * b
    return x


def raises_in_one_branch(x):
    if x.dim() == 2 and x.sum() > 1000:
        raise ValueError("too large")
    assert x.size(0) < 100, "too long"
    return x + 1


def nested_branches(x):
    y = x
    if x.sum() > 0:
        if x.max() > 0.5:
            y = y * 2
        else:
            y = y * 3
        y = y + 1
    else:
        if x.min() < -0.5:
            y = y - 1
            if y.sum() < -11:
                y = y * 5
    return y


def ternaries(x, n: int):
    y = x if n > 1 else -x
    k = 3 if n % 2 == 0 else 5
    z = y + (k if x.sum() > 0 else -k)
    return z, k


def short_circuits(x, n: int):
    if (n > 0 and float(x[n % 3].sum()) > 3.5) or n == 6:
        x = x + 1
    if not (n > 2) and not bool(x.sum() > 100):
        x = x * 2
    return x


def conditions_of_sizes(x):
    n = x.size(0)
    out = x.new_zeros(2)
    if n > 3:
        out = out + 1
    if n * 2 < 5 or n == 5:
        out = out + 10
    if x.numel() % 4 == 2:
        out = out + 100
    return out


def branch_gives_numbers(x):
    if x.sum() > 0:
        n = 2
        f = 0.5
        b = True
    else:
        n = x.size(0) + 1
        f = float(x.sum())
        b = False
    return x * n + f, n, f, b


def branch_gives_tuple(x):
    if x.sum() > 0:
        t = (x, x + 1)
    else:
        t = (x - 1, x)
    a, b = t
    return a * 2, b


def branch_unused_result(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    z = y * 2
    if z.sum() > 100:
        y = z
    return x


def same_in_both_branches(x):
    if x.sum() > 0:
        y = x
        z = x + 1
    else:
        y = x
        z = x - 1
    return y, z


def helper_function(x, n: int) -> Tensor:
    if n <= 0:
        return x
    return x * n


def inlined_calls(x, n: int):
    return helper_function(helper_function(x, n), n - 2)


# -- loops ----------------------------------------------------------------------------------------


def for_over_range(x, n: int):
    total = x
    for i in range(1, n, 2):
        total = total * 0.5 + i
    return total


def for_down(x, n: int):
    for i in range(n, 0, -1):
        x = x * 0.9 + i
    return x


def for_over_tensor(x):
    total = torch.zeros(2)
    for row in x:
        total = total * 0.5 + row
    return total


def for_over_static_list(x):
    total = x
    for k in [1, 5, 7]:
        total = total * k + 1
    return total


def for_over_rows_enumerated(x):
    total = torch.zeros(2)
    for i, row in enumerate(x):
        total = total + row * i
    return total


def while_on_data(x):
    count = 0
    while x.sum() < 50:
        x = x * 2 + 1
        count += 1
    return x, count


def while_true_break(x, n: int):
    i = 0
    while True:
        if i >= n:
            break
        x = x + i
        i += 1
    return x, i


def break_and_continue(x, n: int):
    for i in range(n):
        if i == 1:
            continue
        if i > 4:
            break
        x = x + i
        if x.sum() > 45:
            break
        x = x + 0.25
    return x


def grows(x, n: int):
    for _i in range(n):
        x = torch.cat([x, x[-1:] + 1])
    return x


def doubles(x, n: int):
    for _i in range(n):
        x = torch.cat([x, x * 2])
    return x, x.size(0)


def shrinks(x):
    while x.size(0) > 2:
        x = x[1:] + x[:-1]
    return x


def halves(x):
    while x.size(0) > 1:
        n = x.size(0) // 2
        x = x[:n] + x[n : 2 * n]
    return x


def grows_from_one(x, n: int):
    y = x[:1]
    for _i in range(n):
        y = torch.cat([y, y[:1] * 2])
    return y * torch.ones(2), y.mean(0)


def grows_from_one_and_broadcasts(x):
    # y has 1, 2, 3, ... rows; z broadcasts against it
    y = x[:1]
    total = torch.zeros(1, 2)
    for i in range(x.size(0)):
        total = (y + total[:1]).sum(0, keepdim=True)
        y = torch.cat([y, x[i : i + 1]])
    return total, y


def one_or_many_broadcasts(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = x
    return x + y, y * x.t().sum(), (x * y).sum(0)


def one_or_many_by_size(x):
    if x.size(0) > 3:
        y = x[:1]
    else:
        y = x
    return x + y


def broadcast_in_loop_to_full(x, n: int):
    y = torch.zeros(1, 2)
    for _i in range(n):
        y = y + x
    return y


def broadcast_in_loop_other_dim(x, n: int):
    y = torch.zeros(3, 1)
    for _i in range(n):
        y = y * 0.5 + x
    return y, y.sum(1)


def int_to_float(x):
    total = torch.zeros(3, 2, dtype=torch.int64)
    for _i in range(3):
        total = total + x
    return total


def three_deep(x, n: int):
    for i in range(n):
        for j in range(i):
            for k in range(j, n):
                x = x + i * j - k
            x = x * 0.9
        x = x + 1
    return x


def zero_iterations(x, n: int):
    y = x.sum()
    for i in range(n - 3):
        y = x[i % 3].sum() * 2
    return y


def loops_in_branches(x, n: int):
    if n % 2 == 0:
        for i in range(n):
            x = x + i
    else:
        while x.sum() < 100:
            x = x * 2
    return x


def branches_in_loops(x, n: int):
    for i in range(n):
        if i % 3 == 0:
            x = x + 1
        elif i % 3 == 1:
            if x.sum() > 25:
                x = x - 2
        else:
            x = x * 1.5
    return x


def optional_carried(x, n: int):
    previous: Tensor | None = None
    for i in range(n):
        if previous is None:
            previous = x
        else:
            x = x + previous
            previous = x * 0.5 if i % 2 == 0 else None
    if previous is None:
        return x
    return previous


def carried_numbers(x, n: int):
    a, b, c = 0, 1, 0.5
    flag = False
    for _i in range(n):
        a, b = b, a + b
        c = c / 2 + a
        flag = not flag
    return x * c, a, b, flag


def carried_tuple(x, n: int):
    state = (x, x * 2)
    for _i in range(n):
        h, c = state
        state = (torch.tanh(h + c), c * 0.5 + h)
    return state


def recurrent(x, n: int):
    h = torch.zeros(3)
    outs = torch.zeros(n, 3)
    for i in range(n):
        h = torch.tanh(x.sum(1) + h)
        outs[i] = h
    return outs, h


def loop_over_shape_of_carried(x, n: int):
    for _i in range(n):
        for j in range(x.size(0)):
            x = x + j
        x = x[:-1] if x.size(0) > 1 else x
    return x


def nested_break(x, n: int):
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 2 == 1:
                continue
            x = x + i - j
        if x.sum() > 60:
            break
    return x


def collatz(x):
    n = int(x.sum())
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def rank_grows_known_count(x):
    for i in range(3):
        x = x.unsqueeze(0) + i
    return x


def condition_computed_in_loop(x, n: int):
    go = n > 0
    i = 0
    while go and i < 10:
        x = x + i
        go = bool(x.mean() < 8)
        i += 1
    return x, go


def one_or_many_then_reshaped(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = x
    z = x + y
    return z, y.reshape(-1), y.size(0), torch.ones(y.size(0)), z.reshape(-1)


def one_or_many_and_one(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = torch.cat([x, x])
    z = y * x[:1]
    return z.reshape(-1), z.size(0), torch.where(y > 0, y, x[:1]).reshape(-1)


def two_unknown_sizes(x):
    a = x
    b = x
    if x.sum() > 0:
        a = x[:1]
    if x.max() > 2:
        b = x[-1:]
    c = a + b
    return c.reshape(-1), a.size(0), b.size(0), c.size(0), c.sum(0), a.reshape(-1), b.reshape(-1)


def size_grows_and_broadcasts(x, n: int):
    y = x[:1]
    total = torch.zeros(2)
    for i in range(n):
        z = y + x[:1]
        total = total + z.reshape(-1).sum() + z.size(0)
        y = torch.cat([y, x[i % 3 : i % 3 + 1]])
    return total, y, y.reshape(-1)


def sizes_that_must_be_equal(x):
    y = x
    if x.sum() > 0:
        y = x[: x.size(0) // 2]
    if y.size(0) == x.size(0):
        z = y.t() @ x
    else:
        z = y.t() @ y
    return z, y.reshape(-1), y.size(0)


def equal_inputs_in_a_branch(x, y):
    if x.size(0) == y.size(0):
        z = x + y
    else:
        z = x
    return z, y.reshape(-1), x.size(0)


def masked_sizes(x):
    a = x[x > 0]
    b = x[x > 1]
    if a.size(0) == b.size(0):
        c = a + b
    else:
        c = a - 1
    return c, a.size(0), b.size(0), a.reshape(-1, 1), b.reshape(-1, 1)


def broadcast_into_block(x, n: int):
    y = x[:1]
    for i in range(n):
        y = y + x[: i % 2 + 1]
    return y.reshape(-1), y.size(0)


def count_below_zero(x):
    found: list[Tensor] = []
    for i in range(x.size(0) - 2):
        found.append(x[i] + x[i + 2])
    sums = torch.stack(found) if len(found) > 0 else x[:0]
    return sums, len(found), sums.size(0)


def counts_below_zero_nested(x):
    products: list[int] = []
    for i in range(x.size(0) - 2):
        for j in range(x.size(0) - 3):
            products.append(i * j)
    return torch.tensor(products, dtype=torch.long), len(products)


def known_count_below_zero(x):
    found = [0]
    for i in range(x.size(1) - 7):
        found.append(i)
    return len(found)


def broadcasts_in_a_branch(x, y):
    if x.size(0) == 1:
        return x + y
    return torch.cat([x, y])


def mask_grows_from_one(x, n: int):
    mask = torch.zeros(1, dtype=torch.bool)
    for i in range(n):
        mask = mask | (x[:, 0] > i)
    return torch.where(mask[:, None], x, -x)


FLOW: list[Typed] = [
    (branches_of_two_sizes, SIGNS),
    (branches_of_two_ranks_returned, SIGNS),
    (branches_of_two_ranks_used, SIGNS),
    (two_ranks_early_return, SIGNS),
    (three_ranks, SIGNS),
    (early_returns, [(ONES,), (-ONES,), (-4 * ONES,), (ONES * 0,), (ONES * 0.3,)]),
    (early_return_in_loop, COUNTS),
    (early_return_in_nested_loops, COUNTS),
    (elif_chain, SIZES),
    (none_in_one_branch, SIGNS),
    (none_twice, SIGNS),
    (raises_in_one_branch, SIZES),
    (nested_branches, [*SIGNS, (ONES * 0.1,), (-2 * ONES,)]),
    (ternaries, [*COUNTS, (-ROWS, 3)]),
    (short_circuits, COUNTS),
    (conditions_of_sizes, SIZES),
    (branch_gives_numbers, SIGNS),
    (branch_gives_tuple, SIGNS),
    (branch_unused_result, SIGNS),
    (same_in_both_branches, SIGNS),
    (inlined_calls, COUNTS),
    (for_over_range, COUNTS),
    (for_down, COUNTS),
    (for_over_tensor, SIZES),
    (for_over_static_list, SIZES),
    (for_over_rows_enumerated, SIZES),
    (while_on_data, [(ONES,), (100 * ONES,), (7 * ONES,)]),
    (while_true_break, COUNTS),
    (break_and_continue, COUNTS),
    (grows, COUNTS),
    (doubles, COUNTS),
    (shrinks, SIZES),
    (halves, SIZES),
    (grows_from_one, COUNTS),
    (grows_from_one_and_broadcasts, SIZES[:-1]),
    (one_or_many_broadcasts, SIGNS),
    (one_or_many_by_size, SIZES),
    (broadcast_in_loop_to_full, COUNTS),
    (broadcast_in_loop_other_dim, COUNTS),
    (int_to_float, [(rows(3),), (-ROWS,), (ROWS * 0,)]),
    (three_deep, COUNTS),
    (zero_iterations, COUNTS),
    (loops_in_branches, COUNTS),
    (branches_in_loops, COUNTS),
    (optional_carried, COUNTS),
    (carried_numbers, COUNTS),
    (carried_tuple, COUNTS),
    (recurrent, COUNTS),
    (loop_over_shape_of_carried, COUNTS),
    (nested_break, COUNTS),
    (collatz, [(ONES,), (4.5 * ONES,), (ONES * 0,)]),
    (rank_grows_known_count, SIZES),
    (condition_computed_in_loop, COUNTS),
    (one_or_many_then_reshaped, SIZED_SIGNS),
    (one_or_many_then_reshaped, SIGNS),
    (one_or_many_and_one, SIZED_SIGNS),
    (one_or_many_and_one, SIGNS),
    (two_unknown_sizes, SIZED_SIGNS),
    (two_unknown_sizes, [*SIGNS, (ONES * 4,)]),
    (size_grows_and_broadcasts, COUNTS),
    (sizes_that_must_be_equal, SIZED_SIGNS),
    (equal_inputs_in_a_branch, [(rows(3), rows(3)), (rows(3), rows(2)), (rows(1), rows(5))]),
    (masked_sizes, [(ONES,), (-ONES,), (ROWS,), (4 - ROWS,)]),
    (broadcast_into_block, COUNTS),
    (count_below_zero, SIZES),
    (counts_below_zero_nested, [*SIZES, (rows(4),)]),
    (known_count_below_zero, SIZES),
    (broadcasts_in_a_branch, [(rows(2), rows(4)), (rows(1), rows(3)), (rows(3), rows(1))]),
    (mask_grows_from_one, [(rows(3), 2), (rows(1), 0), (rows(2), 1), (rows(2), 0)]),
]
