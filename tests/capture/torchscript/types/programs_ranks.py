"""Programs in which sizes, or the number of iterations, decide how many dims a tensor has."""

from __future__ import annotations

import torch

torch.manual_seed(0)
SIZES = [(torch.randn(size, 3),) for size in (2, 0, 1, 7)]
TWO_SIZES = [(torch.randn(a, b, 3),) for a, b in ((2, 2), (1, 2), (2, 1), (1, 1), (0, 1))]
IMAGES = [(torch.randn(size, 3, 4, 4),) for size in (2, 1, 7)]
ROWS = [(torch.randn(size, 5),) for size in (3, 1, 2, 7)]
COUNTED = [(torch.randn(3, 4), count) for count in (1, 0, 2, 3)]
DEEP = [(torch.randn(2, 3, 4), count) for count in (1, 0, 2, 3)]
SIZED = [(torch.randn(size, 3), count) for size in (2, 0, 1, 7) for count in (2, 0, 1, 3)]

# -- squeeze of a dynamic dim ---------------------------------------------------------------------


def out_squeezed(x):
    return x.squeeze(0)


def out_all_squeezed(x):
    return x.squeeze()


def elem_squeezed(x):
    return x.squeeze(0) * 2 + 1


def sum_squeezed(x):
    return x.squeeze().sum()


def numel_squeezed(x):
    return x.squeeze().numel()


def dim_squeezed(x):
    y = x.squeeze(0)
    return y.dim()


def if_dim_squeezed(x):
    y = x.squeeze(0)
    if y.dim() == 1:
        y = y.unsqueeze(0)
    return y + 1


def sumlast_squeezed(x):
    return x.squeeze(0).sum(-1)


def lin_squeezed(x):
    return x.squeeze(0) @ torch.ones(3, 4)


def size_squeezed(x):
    return x.squeeze(0).size(-1)


def shape_squeezed(x):
    return torch.zeros(x.squeeze(0).shape)


def reshape_squeezed(x):
    return x.squeeze(0).reshape(-1)


def loop_squeezed(x):
    y = x.squeeze(0)
    for i in range(3):
        y = y + i
    return y


def list_squeezed(x):
    both = [x.squeeze(0), x]
    return both[0] + both[1]


def inplace_squeezed(x):
    y = x.clone()
    y.squeeze_(0)
    return y + 1


def write_squeezed(x):
    y = x.clone()
    z = y.squeeze(0)
    z += 1
    return (y, z)


def dims_squeezed(x):
    return torch.squeeze(x, [0, 1])


def in_loop_squeezed(x):
    t = x.sum()
    for i in range(x.size(0)):
        t = t + x[i:].squeeze(0).sum()
    return t


def in_branch_squeezed(x):
    if float(x.sum()) > 0:
        y = x.squeeze(0)
    else:
        y = x * 2
    return y + 1


def tuple_squeezed(x):
    return (x.squeeze(0), [x.squeeze(0), x], {"a": x.squeeze()})


def many_squeezed(x):
    a = x.squeeze(0)
    b = (x + 1).squeeze(0)
    c = (x + 2).squeeze(0)
    d = (x * 2).squeeze(0)
    return a + b + c + d


def eight_squeezed(x):
    a = x.squeeze(0)
    b = (x + 1).squeeze(0)
    c = (x + 2).squeeze(0)
    d = (x * 2).squeeze(0)
    a = a + x.squeeze(0)
    b = b + (x + 1).squeeze(0)
    c = c + (x + 2).squeeze(0)
    d = d + (x * 2).squeeze(0)
    return a + b + c + d


SQUEEZED = [
    (program, SIZES)
    for program in (
        out_squeezed,
        out_all_squeezed,
        elem_squeezed,
        sum_squeezed,
        numel_squeezed,
        dim_squeezed,
        if_dim_squeezed,
        sumlast_squeezed,
        lin_squeezed,
        size_squeezed,
        shape_squeezed,
        reshape_squeezed,
        loop_squeezed,
        list_squeezed,
        inplace_squeezed,
        write_squeezed,
        dims_squeezed,
        in_loop_squeezed,
        in_branch_squeezed,
        tuple_squeezed,
        many_squeezed,
        eight_squeezed,
    )
]

# -- squeeze of two dynamic dims ------------------------------------------------------------------


def both_squeezed(x):
    return x.squeeze() + 1


def one_after_the_other(x):
    return x.squeeze(0).squeeze(0).relu().mean()


TWICE_SQUEEZED = [
    (program, TWO_SIZES)
    for program in (
        both_squeezed,
        one_after_the_other,
    )
]

# -- squeeze in models ----------------------------------------------------------------------------


def pooled_squeezed(x):
    y = torch.nn.functional.adaptive_avg_pool2d(x, (1, 1)).squeeze()
    return torch.nn.functional.linear(y, torch.ones(5, 3))


def class_of_pooled(x):
    y = torch.nn.functional.adaptive_avg_pool2d(x, (1, 1)).squeeze()
    return y.softmax(-1).argmax(-1)


IN_MODELS = [
    (program, IMAGES)
    for program in (
        pooled_squeezed,
        class_of_pooled,
    )
]

# -- squeeze of what depends on data --------------------------------------------------------------


def places_squeezed(x):
    return (x[:, 0] > 0).nonzero().squeeze()


def indexed_by_squeezed(x):
    i = (x[:, 0] > 0).nonzero().squeeze()
    return x[i]


OF_DATA = [
    (program, ROWS)
    for program in (
        places_squeezed,
        indexed_by_squeezed,
    )
]

# -- squeeze before a loop ------------------------------------------------------------------------


def carried_squeezed(x, n: int):
    y = x.squeeze(0)
    for i in range(n):
        y = y + i
    return y


BEFORE_A_LOOP = [(program, SIZED) for program in (carried_squeezed,)]

# -- ranks that differ from one iteration to the next ---------------------------------------------


def scalar_at_first(x, n: int):
    acc = torch.zeros(())
    for _i in range(n):
        acc = acc + x
    return acc


def scalar_at_first_then_reduced(x, n: int):
    acc = torch.zeros(())
    for _i in range(n):
        acc = acc + x
    return (acc * 2).relu().sum() + 1


def empty_at_first(x, n: int):
    out = torch.empty(0)
    for i in range(n):
        if i == 0:
            out = x
        else:
            out = torch.cat([out, x])
    return out


def vector_that_grows(x, n: int):
    out = torch.zeros(0)
    for i in range(n):
        out = torch.cat([out, x.sum(0) * i])
    return out


CHANGING = [
    (program, COUNTED)
    for program in (
        scalar_at_first,
        scalar_at_first_then_reduced,
        empty_at_first,
        vector_that_grows,
    )
]

# -- ranks that go down ---------------------------------------------------------------------------


def first_of_first_then_reduced(x, n: int):
    for _i in range(n):
        x = x[0]
    return x.sum(-1)


DOWN = [(program, DEEP[:3]) for program in (first_of_first_then_reduced,)]

# -- ranks that go down to none -------------------------------------------------------------------


def first_of_first(x, n: int):
    for _i in range(n):
        x = x[0]
    return x


DOWN_TO_NONE = [(program, DEEP) for program in (first_of_first,)]
