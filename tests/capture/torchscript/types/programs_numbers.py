# ruff: noqa: UP006, UP035, C416, RUF005
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Scripted programs about Python numbers: arithmetic, conversions, sizes, numbers given to tensor
operators. Each with inputs that differ in sign, size and count."""

from __future__ import annotations

import math
from typing import Any, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

NUMBERS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (1, 1)]
FLOATS = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-0.5, -0.25), (0.0, 1.5)]
MIXED = [(7, 2.5), (-7, 2.5), (3, -0.5), (0, 1.0)]


def matrix(*sizes: int) -> Tensor:
    count = math.prod(sizes)
    return (torch.arange(count, dtype=torch.float32) - count / 3).reshape(sizes)


SIZES = [(matrix(3, 4),), (matrix(1, 4),), (matrix(0, 4),), (matrix(5, 4),)]
BOTH_SIZES = [(matrix(3, 4),), (matrix(2, 2),), (matrix(4, 1),), (matrix(1, 5),)]
COUNTED = [(matrix(4, 4), 2), (matrix(4, 4), 0), (matrix(4, 4), 1), (matrix(4, 4), 3)]


# -- arithmetic -----------------------------------------------------------------------------------


def int_operators(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a


def float_operators(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a


def mixed_operators(a: int, b: float):
    return a + b, a - b, b - a, a * b, a / b, a // b, a % b, b // 2, b % 3


def int_powers(a: int, b: int):
    return a**2, b**3, 2.0**a, a**0


def float_powers(a: float, b: float):
    return abs(a) ** b, a**2, 2**b, abs(a) ** 0.5


def mixed_powers(a: int, b: float):
    return abs(a) ** b, b**a


def power_of_computed(a: int, b: int):
    return abs(a) ** abs(b), pow(abs(a), 2), math.pow(abs(a) + 1, b)


def int_comparisons(a: int, b: int):
    return a == b, a != b, a < b, a <= b, a > b, a >= b


def float_comparisons(a: float, b: float):
    return a == b, a != b, a < b, a <= b, a > b, a >= b


def mixed_comparisons(a: int, b: float):
    return a == b, a != b, a < b, b <= a, a > b, b >= a


def chained_comparisons(a: int, b: int):
    return 0 < a < 10, -3 <= b <= a, a < b < 5 < 9


def bit_operators(a: int, b: int):
    return a & b, a | b, a ^ b, a << abs(b), a >> abs(b)


def bool_operators(a: int, b: int):
    p, q = a > 0, b > 0
    return p and q, p or q, not p, p & q, p | q, p ^ q, p == q, p != q


def bool_arithmetic(a: int, b: int):
    return int(a > 0) + int(b > 0), int(a > b) * 3, float(a > 0) / 2, bool(a), bool(float(b))


def short_circuit(x: Tensor, n: int):
    if n > 0 and x[n - 1].sum() > -2:
        return x + 1
    if n == 0 or float(x[0].sum()) > 100.0:
        return x * 2
    return x - 1


def value_of_a_choice(a: int, b: int):
    low = a if a < b else b
    high = b if a < b else a
    return low * 10 + high


def least_and_largest(a: int, b: int):
    return min(a, b), max(a, b), min(a, 3), max(-b, 0), min([a, b, 3]), max([a, b, 3])


def least_and_largest_floats(a: float, b: float):
    return min(a, b), max(a, b), min(a, 3.0), max([a, b, 0.5])


def least_and_largest_mixed(a: int, b: float):
    return min(a, b), max(a, b)


def absolute(a: int, b: float):
    return abs(a), abs(b), math.fabs(b), math.fabs(a)


def quotient_and_rest(a: int, b: int):
    q, r = divmod(a, b)
    return q, r, divmod(a, 3)


def rounding(x: float):
    return round(x), math.floor(x), math.ceil(x), int(x)


def division_by_known(a: int, b: int):
    return a // 2, a % 3, b // -2, b % -3, a / 4, (a + b) // 5


def large_numbers(a: int, b: int):
    return a * 3000000000 + b, (a << 33) // 7, (a * 5000000000) % 1000003


def exact_integers(a: int, b: int):
    # Beyond what float64 holds.
    big = 9007199254740993
    return (big + a) // 2, (big + b) % 10, big + a > big


def float_digits(a: float, b: float):
    # Float32 would lose the small part.
    big = 100000000.0
    return (big + a) - big, (b / 3.0) * 3.0 == b


def conversions(a: int, b: float):
    return int(b), float(a), bool(b), bool(a), int(True), int(-b), int(float(a)), float(int(b))


def items_of_tensors(x: Tensor, y: Tensor, z: Tensor):
    return x.item(), y.item(), z.item(), int(x), float(y), bool(z), float(x), int(y), bool(x)


def item_arithmetic(x: Tensor):
    n = int(x.sum().item())
    m = float(x.max())
    return n // 2 + 1, m * n, n % 3, -n


def infinities(a: float):
    best = float("inf")
    worst = -float("inf")
    return min(best, a), max(worst, a), best > a, float("nan") == a, math.inf, -math.inf


def constants():
    return math.pi, math.e, math.tau, 3, True, 2.5, 7 // 2, -7 // 2, -7 % 3, 2**10, 7 / 2


def known_functions(x: Tensor):
    return x * math.sqrt(2.0) + math.log(10.0) - math.exp(-1.0) + math.cos(math.pi)


def math_functions(x: float):
    return (
        math.sqrt(abs(x)), math.exp(x), math.expm1(x), math.log(abs(x) + 1), math.log1p(abs(x)),
        math.log10(abs(x) + 1), math.sin(x), math.cos(x), math.tan(x),
    )  # fmt: skip


def more_math_functions(x: float):
    u = x / (abs(x) + 1.0)
    return (
        math.asin(u), math.acos(u), math.atan(x), math.sinh(x), math.cosh(x), math.tanh(x),
        math.asinh(x), math.acosh(abs(x) + 1), math.atanh(u), math.erf(x), math.erfc(x),
    )  # fmt: skip


def rare_math_functions(x: float):
    return (
        math.degrees(x), math.radians(x), math.lgamma(abs(x) + 1),
        math.isnan(x), math.isinf(x), math.isfinite(x),
    )  # fmt: skip


def math_functions_of_integers(a: int, b: int):
    return math.sqrt(abs(a)), math.exp(b), math.log(abs(a) + 1), math.floor(a), math.ceil(b)


def binary_math_functions(a: float, b: float):
    return (
        math.atan2(a, b), math.copysign(a, b), math.fmod(a, b),
        math.log(abs(a) + 1.0, abs(b) + 1.5),
    )  # fmt: skip


def integer_math_functions(a: int, b: int):
    return math.gcd(a, b), math.factorial(5)


def logarithm_of_bases(a: int, b: float):
    return math.log(abs(a) + 2, 2), math.log(abs(b) + 1.0, 10), math.log(8.0, abs(a) + 2)


def square_roots_of_integers(x: Tensor):
    return x / math.sqrt(x.size(-1)), int(math.sqrt(x.size(0))), x.size(0) ** 0.5, x.size(0) ** 2


def sum_of_numbers(a: int, b: int):
    return sum([a, b, 3]), sum([float(a), 0.5])


def truth_of_lists(a: int, b: int):
    return all([a > 0, b > 0]), any([a > 5, b > 1]), a in [1, 7], b not in [2, 5]


# -- with tensors ---------------------------------------------------------------------------------


def tensor_and_int(x: Tensor, n: int):
    return (
        x + n,
        x - n,
        n - x,
        x * n,
        n * x,
        x / (n + 1),
        x // (n + 1),
        x % (n + 1),
        n / (x.abs() + 1),
    )


def tensor_and_float(x: Tensor, n: float):
    return x + n, n - x, x * n, x / n, n / (x.abs() + 1), x**2 * n, x // n, x % n


def integer_tensor_and_numbers(x: Tensor, n: int, f: float):
    return x + n, x * f, x / n, x // n, x % n, x + f, f - x, x**n


def half_tensor_and_numbers(x: Tensor, n: int, f: float):
    return x + n, x * f, x / n, f - x, x < n, x >= f


def tensor_powers(x: Tensor, n: int):
    return x**n, 2**x, x.pow(n + 1), torch.pow(x, n)


def tensor_compared(x: Tensor, n: int):
    return x > n, n <= x, x == n, (x > n).sum(), torch.where(x > n, x, n)


def integer_compared_with_float(x: Tensor, f: float):
    return x > f, x == f, x.long() < f, f < x.long()


def in_place_numbers(x: Tensor, n: int):
    x = x.clone()
    x += n
    x *= 2
    x -= n
    x /= n + 1
    x[0] = n
    x[:, 1] += n
    return x


def filled(x: Tensor, n: int):
    return (
        torch.full((2, 3), n), torch.full([n, 2], 1.5), torch.full((n,), n),
        torch.full_like(x, n), x.new_full((2,), n), torch.full((2,), float(n)),
    )  # fmt: skip


def created(x: Tensor, n: int):
    return (
        torch.zeros(n), torch.ones(n, 2), torch.arange(n), torch.arange(1, n + 3, 2),
        torch.zeros(n, dtype=x.dtype, device=x.device), torch.zeros([n, n]).sum(), torch.eye(n),
    )  # fmt: skip


def created_of_floats(a: float, b: float):
    return (
        torch.arange(0.0, abs(a), 0.5),
        torch.linspace(a, b, 5),
        torch.full((2,), a),
        torch.zeros(2).fill_(b),
    )


def linear_spaces(x: Tensor, n: int):
    return torch.linspace(0, 1, n), torch.linspace(-1.0, n, 4), x.new_zeros(n, 2), x.new_ones([n])


def tensors_of_numbers(a: int, b: int):
    return (
        torch.tensor(a), torch.tensor([a, b]), torch.tensor([[a, b], [1, 2]]), torch.tensor(a / 2),
        torch.tensor(a > b), torch.tensor([a, b], dtype=torch.float32), torch.tensor([1, 2]),
        torch.tensor(a, dtype=torch.float64), torch.tensor([float(a), 2.5]),
        torch.tensor([a > 0, b > 0]), torch.tensor([0.5, 1.5]), torch.tensor(b, dtype=torch.int32),
    )  # fmt: skip


def tensors_of_nested_lists(x: Tensor):
    n = x.size(0)
    grid = [[n, 2], [3, n + 1]]
    return (
        torch.tensor(grid),
        torch.tensor([[1.5, float(n)]]),
        torch.tensor([[[n]]], dtype=torch.int32),
    )


def indexed(x: Tensor, n: int):
    return x[n], x[n - 4], x[:, n], x[n, n], x[..., n], x[-1, n - 1]


def sliced(x: Tensor, n: int):
    return x[:n], x[n:], x[:, n : n + 1], x[-n:], x[: n - 1], x[n:-1], x[::2], x[n::2, :n]


def narrowed(x: Tensor, n: int):
    return (
        x.narrow(0, n, 1),
        x.select(1, n),
        torch.narrow(x, 1, 0, n),
        x.roll(n, 0),
        x.roll([n, 1], [0, 1]),
    )


def viewed(x: Tensor, n: int):
    return x.view(n + 1, -1), x.reshape(-1, n + 1), x.reshape(2, n + 1, -1).size(2)


def repeated(x: Tensor, n: int):
    return x.repeat(n, 2), x[:1].expand(n, 4), x.repeat_interleave(n, 0), torch.tile(x, (n, 1))


def expanded(x: Tensor):
    n = x.size(0)
    m = x.size(1)
    return (
        x.unsqueeze(0).expand(2, n, m),
        x.sum(1, keepdim=True).expand(-1, m * 2),
        x.sum().expand(n, m),
    )


def padded(x: Tensor, n: int):
    return (
        F.pad(x, [n, 1]),
        F.pad(x, (0, n, n - 1, 2), value=1.5),
        F.pad(x, [1, n], "constant", float(n)),
    )


def clamped(x: Tensor, n: int):
    return x.clamp(min=n), x.clamp(-n, n), torch.clamp(x, max=n - 1.5), x.clamp_min(n)


def masked(x: Tensor, n: int):
    return x.masked_fill(x > n, n), x.masked_fill(x < 0, float("-inf")), x.tril(n), x.triu(1 - n)


def split_points(x: Tensor, n: int):
    first, second = x.split([n, 4 - n], 0)
    return first, second


def top(x: Tensor, n: int):
    values, places = x.topk(n, 1)
    return values, places, x.topk(2, 1, largest=n > 1), x.std(0, n > 2)


def padded_to_a_multiple(x: Tensor):
    rest = x.size(0) % 4
    if rest > 0:
        x = F.pad(x, [0, 0, 0, 4 - rest])
    return x.view(-1, 4, x.size(1))


def scaled_by_count(x: Tensor, mask: Tensor):
    n = int(mask.sum())
    return x.sum() / max(n, 1), x * (1.0 / (n + 1)), n / mask.numel()


# -- sizes ----------------------------------------------------------------------------------------


def sizes(x: Tensor):
    return x.size(), x.shape, x.size(0), x.size(-1), x.shape[1], x.numel(), x.dim(), len(x), x.ndim


def size_arithmetic(x: Tensor):
    n, m = x.size(0), x.size(1)
    return (
        n * m,
        n // 2,
        n % 2,
        n / m,
        (n + 1) // 2 * 2,
        -n,
        max(n - 2, 0),
        min(n, m),
        n**2,
        abs(n - 3),
    )


def size_conditions(x: Tensor):
    n, m = x.shape
    return n > m, n == m, n == 1, n > 2 and m > 2, n % 2 == 0, not n > 3, 1 < n <= 3


def sizes_by_computed_dims(x: Tensor):
    total = 0
    for i in range(x.dim()):
        total = total * 10 + x.size(i) + x.shape[i - 1]
    return total


def size_of_computed_dim(x: Tensor, n: int):
    return x.size(n), x.shape[n], x.shape[-1 - n]


def sizes_of_a_size(x: Tensor):
    shape = list(x.shape)
    return len(shape), shape[0] + shape[-1], x.shape[:1], x.shape[1:], x.size()[0] == shape[0]


def same_size(x: Tensor, y: Tensor):
    if x.shape == y.shape:
        return x + y
    if x.size(0) != y.size(0):
        return x - 1
    return x * y.size(1)


def reshaped_by_arithmetic(x: Tensor):
    n, m = x.size(0), x.size(1)
    return x.view(n * m), x.reshape(m, n), x.reshape(1, -1, m), x.view(-1)[: n // 2 + 1]


def element_count(x: Tensor):
    return (
        x.sum() / x.numel(),
        x.mean() * len(x),
        x.new_zeros(x.numel()),
        x.element_size(),
        x.nbytes,
        x.itemsize,
    )


# -- ranges ---------------------------------------------------------------------------------------


def ranges(x: Tensor, n: int):
    total = 0
    for i in range(n):
        total += i
    for i in range(1, n):
        total = total * 2 + i
    for i in range(n, -1, -1):
        total = total * 2 - i
    for i in range(5, n, -2):
        total += i * i
    for i in range(0, n * 2, 3):
        total = total * 3 + i
    return x * total, total


def ranges_of_steps(n: int, step: int):
    total = 0
    for i in range(0, n, step):
        total = total * 2 + i
    return total


def ranges_of_sizes(x: Tensor):
    total = torch.zeros(4)
    for i in range(x.size(0) - 1, -1, -1):
        total = total * 0.5 + x[i]
    for i in range(0, x.size(0), 2):
        total = total + x[i] * i
    for i in range(-2, x.size(0) - 2):
        total = total + i
    return total


def counts_of_ranges(n: int):
    seen = [i for i in range(3, 0, -1)]
    downwards = [i * 2 for i in range(n, 1, -1)]
    return len(seen), seen[0], len(downwards)


def running_number(x: Tensor):
    total = 0.0
    best = -float("inf")
    place = -1
    for i in range(x.size(0)):
        value = float(x[i].sum())
        total += value
        if value > best:
            best = value
            place = i
    return total, best, place


def mean_or_zero(x: Tensor):
    count = 0
    total = 0.0
    for i in range(x.size(0)):
        if float(x[i, 0]) > 0:
            count += 1
            total += float(x[i, 0])
    return total / count if count > 0 else 0.0


def collatz(n: int):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def greatest_divisor(a: int, b: int):
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def newton(x: float):
    guess = max(x, 1.0)
    for _ in range(20):
        after = (guess + x / guess) / 2
        if abs(after - guess) < 1e-9:
            break
        guess = after
    return guess


def number_set_in_one_branch(x: Tensor):
    scale = 1
    if x.sum() > 0:
        scale = x.size(0) + 1
    return x * scale, scale


def numbers_in_and_out(n: int, f: float, x: Tensor) -> Tuple[int, float, Tensor]:
    return n + 1, f * 2, x * n + f


def boolean_input(x: Tensor, flag: bool):
    return x * 2 if flag else x - 1


def list_of_numbers_in(x: Tensor, sizes: List[int]):
    return x.reshape(sizes[0], sizes[1]) * sizes[0], sizes[0] * sizes[1]


def conditions_of_sizes_as_numbers(x: Tensor):
    n = x.size(0)
    return (
        int(n > 2) + 1, float(n > 2), bool(n), bool(n - 3), (n > 2) == (n > 1), int(n / 2),
        int(-n / 2), n / 2 // 1, (n / 3) % 1.0, round(n / 2), math.floor(n / 2), math.ceil(n / 2),
        math.floor(-n / 2), -n // 2, -n % 3, n // -2, n % -2,
    )  # fmt: skip


def tensors_of_sizes(x: Tensor):
    n = x.size(0)
    return (
        torch.tensor(n > 2), torch.tensor(n / 3), torch.tensor([n > 2, True]), torch.as_tensor(n),
        torch.tensor([n / 2, 1.0]), torch.as_tensor([n, 1]),
        torch.as_tensor(x, dtype=torch.float64),
    )  # fmt: skip


def division_as_torchscript_does_it(a: float):
    return a // 0.1, a % 0.1, a**2, a**-1


def equal_tensors(x: Tensor, n: int):
    return (
        torch.equal(x, x + 0),
        torch.equal(x, x[:2]),
        torch.allclose(x, x + 1e-9),
        torch.equal(x, x + n),
    )


def lists_compared(x: Tensor, n: int):
    seen = [i for i in range(n)]
    return seen == [0, 1], seen != [0], [n, 1] == [1, n], x.shape == [4, 4], list(x.shape) == [4, n]


def moved(x: Tensor, n: int):
    y = torch.zeros(2, dtype=torch.float64)
    return (
        x.cpu(), x.to("cpu"), x.to(y.device, y.dtype), x.to(torch.float64, copy=True), x.to(y),
        x.to(device="cpu", dtype=torch.float16), str(x.device) == "cpu", x.device.index is None,
    )  # fmt: skip


def transposed(x: Tensor, n: int):
    return x.T, x.mT, x.mH, x.H, x.t() * n


def known_ranges_as_dims(x: Tensor, n: int):
    y = x.unsqueeze(0).repeat(n + 1, 1, 1)
    return y.sum(dim=list(range(1, y.dim()))), len(list(range(n)))


def halved_until_small(x: Tensor):
    y = x.reshape(-1)
    while y.numel() > 3:
        y = y[: y.numel() // 2]
    return y, y.numel()


def numbers_in_nested_loops(x: Tensor, n: int):
    total = 0
    for i in range(n):
        for j in range(i, n, 2):
            if j % 3 == 0:
                continue
            total += i * j
    return total


def computed_in_both_branches(x: Tensor, n: int):
    if n > 1:
        n = n * 2
        x = x + n
    else:
        n = -n
    return x * n, n


def padded_values(x: Tensor, f: float):
    return (
        F.pad(x, [1, 1], value=f), F.hardtanh(x, -f, f), F.threshold(x, f, 2.0), x.add(x, alpha=f),
        torch.addcmul(x, x, x, value=f), torch.lerp(x, x + 1, f), torch.nan_to_num(x, f),
    )  # fmt: skip


PAIR = (torch.tensor(3), torch.tensor(2.5), torch.tensor(True))
ROUNDED = [(2.5,), (3.5,), (-2.5,), (0.5,), (-0.4,), (7.9,)]


def tails(x: Tensor):
    last, others = x[x.size(0) - 3 :], x[: x.size(0) - 2]
    return last, last.size(0), others, others.size(0), torch.arange(last.size(0))


def cut_by_the_size_of_another(x: Tensor, y: Tensor):
    head, tail = x[: y.size(0)], x[y.size(0) :]
    return head, head.size(0), tail, tail.size(0), torch.ones(tail.size(0))


def sizes_of_what_is_left(x: Tensor):
    y, z = x[1:], x[:, 1:][:-1]
    return y.numel(), len(y), y.size(0), len(y.unbind(0)), z.shape[1], torch.zeros(z.size(0))


def computed_steps(x: Tensor, n: int):
    y = x.clone()
    for i in range(1, n + 1):
        y[::i] += 1
        y[1::i] *= 2
    z = x[:: n + 1]
    return y, z, z.size(0)


class FilledCache(torch.nn.Module):
    """A cache that the example fills wholly."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 8, 3))

    def forward(self, x: Tensor, start: int):
        end = start + x.size(1)
        self.cache[: x.size(0), start:end] = x
        held = self.cache[: x.size(0), :end]
        return held @ held.transpose(1, 2)


CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (int_operators, NUMBERS),
    (float_operators, FLOATS),
    (mixed_operators, MIXED),
    (float_powers, FLOATS),
    (mixed_powers, MIXED[:3]),
    (int_comparisons, NUMBERS),
    (float_comparisons, [*FLOATS, (1.5, 1.5)]),
    (mixed_comparisons, [*MIXED, (2, 2.0)]),
    (chained_comparisons, NUMBERS),
    (bit_operators, NUMBERS),
    (bool_operators, NUMBERS),
    (bool_arithmetic, NUMBERS),
    (short_circuit, COUNTED),
    (value_of_a_choice, NUMBERS),
    (least_and_largest, NUMBERS),
    (least_and_largest_floats, FLOATS),
    (absolute, MIXED),
    (quotient_and_rest, NUMBERS),
    (division_by_known, NUMBERS),
    (large_numbers, NUMBERS),
    (exact_integers, NUMBERS),
    (float_digits, FLOATS),
    (conversions, MIXED),
    (
        items_of_tensors,
        [
            PAIR,
            tuple(-p if p.dtype != torch.bool else ~p for p in PAIR),
            (torch.tensor([0]), torch.tensor([[0.5]]), torch.tensor([True])),
        ][:2]
        + [(torch.tensor(0), torch.tensor(0.0), torch.tensor(False))],
    ),
    (item_arithmetic, [(matrix(3, 3),), (-matrix(3, 3),), (matrix(3, 3) * 0,)]),
    (infinities, [(1.5,), (-3.0,), (float("inf"),), (float("-inf"),), (float("nan"),)][:4]),
    (known_functions, SIZES),
    (math_functions, [(0.5,), (-1.5,), (0.0,), (2.25,)]),
    (more_math_functions, [(0.5,), (-1.5,), (0.0,), (2.25,)]),
    (rare_math_functions, [(0.5,), (-1.5,), (0.0,), (2.25,)]),
    (math_functions_of_integers, NUMBERS),
    (binary_math_functions, FLOATS),
    (integer_math_functions, NUMBERS),
    (logarithm_of_bases, MIXED),
    (sum_of_numbers, NUMBERS),
    (truth_of_lists, NUMBERS),
    (tensor_and_int, COUNTED),
    (tensor_and_float, [(matrix(3, 2), 1.5), (matrix(3, 2), -2.0), (matrix(3, 2), 0.25)]),
    (
        integer_tensor_and_numbers,
        [
            (torch.arange(-3, 4), 2, 1.5),
            (torch.arange(-3, 4), 3, -0.5),
            (torch.arange(-3, 4), 1, 0.0),
        ],
    ),
    (
        half_tensor_and_numbers,
        [
            (matrix(2, 3).half(), 2, 1.5),
            (matrix(2, 3).half(), 3, -0.5),
            (matrix(2, 3).half(), 1, 0.0),
        ],
    ),
    (tensor_powers, COUNTED),
    (tensor_compared, COUNTED),
    (integer_compared_with_float, [(matrix(3, 2), 1.5), (matrix(3, 2), 2.0), (matrix(3, 2), -0.5)]),
    (in_place_numbers, COUNTED),
    (filled, COUNTED),
    (created, COUNTED),
    (created_of_floats, FLOATS),
    (linear_spaces, COUNTED),
    (tensors_of_numbers, NUMBERS),
    (tensors_of_nested_lists, SIZES),
    (indexed, COUNTED),
    (sliced, COUNTED),
    (narrowed, COUNTED),
    (viewed, [(matrix(4, 6), 2), (matrix(4, 6), 1), (matrix(4, 6), 3), (matrix(4, 6), 0)]),
    (repeated, COUNTED),
    (expanded, BOTH_SIZES),
    (padded, COUNTED[:1] + COUNTED[2:]),
    (clamped, COUNTED),
    (masked, COUNTED),
    (split_points, COUNTED),
    (top, COUNTED),
    (padded_to_a_multiple, [*SIZES, (matrix(4, 4),), (matrix(8, 4),)]),
    (
        scaled_by_count,
        [(matrix(3), matrix(3) > 0), (matrix(3), matrix(3) > 9), (matrix(3), matrix(3) > -9)],
    ),
    (sizes, SIZES),
    (size_conditions, BOTH_SIZES),
    (sizes_by_computed_dims, SIZES),
    (
        size_of_computed_dim,
        [(matrix(3, 4), 0), (matrix(3, 4), 1), (matrix(2, 5), 1), (matrix(1, 1), 0)],
    ),
    (sizes_of_a_size, SIZES),
    (
        same_size,
        [
            (matrix(3, 4), matrix(3, 4)),
            (matrix(3, 4), matrix(2, 4)),
            (matrix(3, 4), matrix(3, 1)),
            (matrix(1, 1), matrix(1, 1)),
        ],
    ),
    (reshaped_by_arithmetic, BOTH_SIZES),
    (element_count, SIZES[:2] + SIZES[3:]),
    (ranges, COUNTED),
    (ranges_of_steps, [(7, 2), (0, 1), (9, 3), (-5, -2), (4, -1)]),
    (ranges_of_sizes, SIZES),
    (counts_of_ranges, [(4,), (0,), (1,), (9,)]),
    (running_number, SIZES),
    (mean_or_zero, SIZES),
    (collatz, [(6,), (1,), (0,), (27,)]),
    (greatest_divisor, [*NUMBERS, (12, 18)]),
    (newton, [(2.0,), (0.25,), (100.0,)]),
    (number_set_in_one_branch, [*SIZES, (matrix(3, 4) + 9,)]),
    (numbers_in_and_out, [(1, 0.5, matrix(2)), (0, -1.5, matrix(3)), (-4, 0.0, matrix(1))]),
    (boolean_input, [(matrix(2), True), (matrix(3), True), (matrix(1), True)]),
    (tensors_of_sizes, SIZES),
    (equal_tensors, [(matrix(3, 2), 0), (matrix(2, 2), 1), (matrix(2, 2), 0), (matrix(1, 2), 0)]),
    (moved, COUNTED),
    (transposed, COUNTED),
    (known_ranges_as_dims, COUNTED),
    (halved_until_small, SIZES),
    (numbers_in_nested_loops, [*COUNTED, (matrix(4, 4), 7)]),
    (computed_in_both_branches, COUNTED),
    (padded_values, [(matrix(3, 2), 0.5), (matrix(3, 2), 0.25), (matrix(3, 2), 1.5)]),
    (list_of_numbers_in, [(matrix(6), [2, 3]), (matrix(6), [3, 2]), (matrix(6), [1, 6])]),
    (tails, [(matrix(n, 2),) for n in (5, 2, 1, 0, 3)]),
    (
        cut_by_the_size_of_another,
        [(matrix(n, 2), matrix(m, 2)) for n, m in ((5, 3), (1, 0), (2, 4), (0, 1))],
    ),
    (sizes_of_what_is_left, [(matrix(*s),) for s in ((5, 3), (2, 1), (1, 2), (0, 3), (3, 0))]),
    (computed_steps, [(matrix(5), 3), (matrix(1), 0), (matrix(0), 2), (matrix(4), 1)]),
    (
        FilledCache(),
        [(matrix(2, 3, 3), 0), (matrix(1, 2, 3), 5), (matrix(2, 0, 3), 4), (matrix(2, 1, 3), 7)],
    ),
]

SCRIPT_CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (conditions_of_sizes_as_numbers, [*SIZES, (matrix(4, 4),)]),
    (lists_compared, [*COUNTED, (matrix(4, 4), 4)]),
    (division_as_torchscript_does_it, [(1.0,), (-0.75,), (2.5,)]),
    (int_powers, NUMBERS),
    (power_of_computed, NUMBERS),
    (least_and_largest_mixed, MIXED),
    (rounding, ROUNDED),
    (constants, [(), (), ()]),
    (square_roots_of_integers, SIZES),
    (size_arithmetic, BOTH_SIZES),
]
"""Where TorchScript gives another number, or one of another type, than Python does."""
