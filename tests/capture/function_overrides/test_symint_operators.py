"""Python numbers in exported programs: every operator and builtin that computes with sizes and
with what was read off a tensor."""

from __future__ import annotations

import math
import operator

import pytest
import torch

from tests.lower.ops.harness import check

# -- of sizes ------------------------------------------------------------------------------------

SIZES = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: 10 - a,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floordiv of a negative": lambda a, b: (a - 20) // b,
    "floordiv by a negative": lambda a, b: a // -3,
    "floordiv by a size": lambda a, b: 100 // a,
    "mod": lambda a, b: a % b,
    "mod of a negative": lambda a, b: (a - 20) % 3,
    "mod by a negative": lambda a, b: a % -3,
    "mod of a negative by a size": lambda a, b: (a - 20) % b,
    "truediv": lambda a, b: a / b,
    "torch.div": lambda a, b: torch.div(a, b) + torch.div(a, 3, rounding_mode="trunc"),
    "torch.floor_divide": lambda a, b: torch.floor_divide(a, b),
    "truediv of numbers": lambda a, b: 1 / a + b / 2,
    "pow": lambda a, b: a**2 + a**3,
    "pow by a size": lambda a, b: 2**a,
    "pow of sizes": lambda a, b: a**b,
    "pow by a float": lambda a, b: a**0.5,
    "pow by a negative": lambda a, b: a**-1.0,
    "pow of a float": lambda a, b: (a / 2) ** 2,
    "pow of a float by a size": lambda a, b: 1.5**a,
    "neg": lambda a, b: -a,
    "pos": lambda a, b: +a,
    "abs": lambda a, b: abs(a - b),
    "abs of a float": lambda a, b: abs(a / 2 - b),
    "lshift": lambda a, b: a << 2,
    "rshift": lambda a, b: a >> 1,
    "and": lambda a, b: a & 6,
    "or": lambda a, b: a | 8,
    "round": lambda a, b: round(a / 4),
    "math.floor": lambda a, b: math.floor(a / b),
    "math.ceil": lambda a, b: math.ceil(a / b),
    "math.trunc": lambda a, b: math.trunc((a - 20) / b),
    "math.floor of a negative": lambda a, b: math.floor((a - 20) / 3),
    "math.ceil of a negative": lambda a, b: math.ceil((a - 20) / 3),
    "min": lambda a, b: min(torch.sym_min(a, b), 4),
    "sym_max": lambda a, b: torch.sym_max(a, b),
    "sym_min": lambda a, b: torch.sym_min(a, 4),
    "sym_max of floats": lambda a, b: torch.sym_max(a / 2, 1.75),
    "sym_min of both": lambda a, b: torch.sym_min(a, 2.5),
    "sym_int": lambda a, b: torch.sym_int(a / 2),
    "sym_int of a negative": lambda a, b: torch.sym_int((a - 20) / 3),
    "sym_float": lambda a, b: torch.sym_float(a) * 1.5,
    "sym_sum": lambda a, b: torch.sym_sum([a, b, 3]),
    "math.sqrt": lambda a, b: math.sqrt(a * b) + 1,
    "sym_sqrt": lambda a, b: torch.sym_sqrt(a),
    "mixed": lambda a, b: (a * 3 + b // 2 - 1) % 7 + a**2 // (b + 1),
    "stored precision": lambda a, b: a / 3 * 3,
}

COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= 4,
    "gt": lambda a, b: a * 2 > b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: (a > 2) & (b > 2),
    "or": lambda a, b: (a > 4) | (b == 3),
    "not": lambda a, b: torch.sym_not(a > 4),
    "float": lambda a, b: a / 2 > 1.5,
}


def tensors_of(number):
    """Where numbers go: a result of its own, a scalar operand, a filled tensor."""
    return number, torch.ones(2) * number, torch.full((2,), number), torch.tensor([1, 2]) + number


def groups(cases, size=8):
    """The cases in groups that are exported as one model."""
    names = list(cases)
    starts = range(0, len(names), size)
    chosen = [{name: cases[name] for name in names[start : start + size]} for start in starts]
    return pytest.mark.parametrize("functions", chosen, ids=lambda group: "-".join(group))


TWO_SIZES = [torch.ones(a, b) for a, b in ((5, 3), (2, 7), (8, 8), (3, 2))]


@groups(SIZES)
def test_of_sizes(functions):
    def model(x):
        return {name: tensors_of(function(*x.shape)) for name, function in functions.items()}

    first, *others = TWO_SIZES
    check(
        model,
        first,
        dynamic={0: [0, 1]},
        others=[(o,) for o in others],
        captures=("export",),
    )


@groups(COMPARISONS, 5)
def test_comparisons_of_sizes(functions):
    def of(held, x):
        a, b = x.shape
        if not isinstance(held, torch.SymBool):
            return (x + 1 if held else x - 1), (a if held else b), held
        chosen = torch.cond(held, lambda x: x + 1, lambda x: x - 1, (x,))
        return chosen, torch.sym_ite(held, a, b), held

    class Model(torch.nn.Module):
        def forward(self, x):
            return {name: of(compare(*x.shape), x) for name, compare in functions.items()}

    first, *others = TWO_SIZES
    check(Model(), first, dynamic={0: [0, 1]}, others=[(o,) for o in others], captures=("export",))


# -- of what was read off a tensor ---------------------------------------------------------------

NUMBERS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "truediv": lambda a, b: a / b,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
    "pow": lambda a, b: a**2,
    "sym_max": lambda a, b: torch.sym_max(a, b),
    "sym_min": lambda a, b: torch.sym_min(a, b),
    "sym_float": lambda a, b: torch.sym_float(a) / 2,
    "sym_int": lambda a, b: torch.sym_int(a / b),
    "floor": lambda a, b: math.floor(a / b),
    "ceil": lambda a, b: math.ceil(a / b),
    "round": lambda a, b: round(a / b),
    "and": lambda a, b: a & 3,
    "lshift": lambda a, b: abs(b) << 1,
}
PAIRS = [(7, 3), (-7, 3), (0, 5), (-8, 2), (9, -4), (-5, -2)]


@groups(NUMBERS)
def test_of_numbers_read_off_a_tensor(functions):
    def model(x):
        a, b = x.tolist()
        torch._check(b != 0)
        return {name: tensors_of(function(a, b)) for name, function in functions.items()}

    first, *others = [(torch.tensor(p),) for p in PAIRS]
    check(model, *first, others=others, captures=("export",))


FLOATS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
    "sym_max": lambda a, b: torch.sym_max(a, b),
    "pow": lambda a, b: a**2,
    "sym_int": lambda a, b: torch.sym_int(a),
    "floor": lambda a, b: math.floor(a),
    "ceil": lambda a, b: math.ceil(a),
    "round": lambda a, b: round(a),
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}


@groups(FLOATS)
def test_of_floats_read_off_a_tensor(functions):
    def model(x):
        a, b = x[0].item(), x[1].item()
        return {name: tensors_of(function(a, b)) for name, function in functions.items()}

    pairs = [(2.5, 1.5), (-3.5, 0.5), (0.0, 2.0), (7.25, -2.0), (-1.25, -0.75)]
    first, *others = [(torch.tensor(p),) for p in pairs]
    check(model, *first, others=others, captures=("export",))


# -- what tensors say of themselves ----------------------------------------------------------------


def sizes_and_strides(x):
    y = x.transpose(0, 1)
    return (
        x.size(0),
        x.numel(),
        x.dim(),
        x.stride(0),
        y.stride(1),
        x[1:].storage_offset(),
        x.nelement() * 2,
        torch.tensor(x.shape),
        torch.tensor([x.shape[0], 2]),
        x.nbytes,
    )


def test_what_tensors_say_of_themselves():
    first, *others = TWO_SIZES
    check(
        sizes_and_strides,
        first,
        dynamic={0: [0, 1]},
        others=[(o,) for o in others],
        captures=("export",),
    )


def test_whole_numbers_of_the_caller():
    def model(x, n: int):
        return x[:n], torch.zeros(n + 1), x * n, n // 2, n % 3, -n

    x = torch.arange(6.0)
    check(model, x, 4, others=[(x, 2), (x, 3), (x, 6)], captures=("export",))
