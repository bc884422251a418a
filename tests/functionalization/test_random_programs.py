"""Random programs of views, writes and pure operators, against eager."""

import os

import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.capture.agreement import CAPTURES, agree

EXAMPLES = int(os.environ.get("SARDONYX_RANDOM_PROGRAMS", "40"))

VIEWS = {
    "select": lambda t, a, b: t.select(a % t.dim(), b % t.shape[a % t.dim()]),
    "slice": lambda t, a, b: t.narrow(a % t.dim(), 0, 1 + b % t.shape[a % t.dim()]),
    "slice end": lambda t, a, b: t.transpose(0, a % t.dim())[b % t.shape[a % t.dim()] :],
    "step": lambda t, a, b: t.transpose(0, a % t.dim())[:: 1 + b % 3],
    "transpose": lambda t, a, b: t.transpose(a % t.dim(), b % t.dim()),
    "movedim": lambda t, a, b: t.movedim(a % t.dim(), b % t.dim()),
    "flatten": lambda t, a, b: t.flatten(),
    "flatten some": lambda t, a, b: t.flatten(*sorted((a % t.dim(), b % t.dim()))),
    "reshape": lambda t, a, b: t.reshape(-1, t.shape[a % t.dim()]),
    "reshape back": lambda t, a, b: t.reshape(t.shape[a % t.dim()], -1),
    "view": lambda t, a, b: t.view(-1),
    "view split": lambda t, a, b: t.view(t.shape[0], -1),
    "unsqueeze": lambda t, a, b: t.unsqueeze(a % (t.dim() + 1)),
    "squeeze": lambda t, a, b: t.squeeze(),
    "squeeze dim": lambda t, a, b: t.squeeze(a % t.dim()),
    "diagonal": lambda t, a, b: t.diagonal(b % 3 - 1, a % t.dim(), (a + 1) % t.dim()),
    "unbind": lambda t, a, b: t.unbind(a % t.dim())[b % t.shape[a % t.dim()]],
    "split": lambda t, a, b: t.split(1 + b % 3, a % t.dim())[-1],
    "chunk": lambda t, a, b: t.chunk(1 + b % 3, a % t.dim())[0],
    "tensor_split": lambda t, a, b: t.tensor_split(1 + b % 2, a % t.dim())[-1],
    "unfold": lambda t, a, b: t.unfold(a % t.dim(), 1 + b % 2, 2),
    "unfold window": lambda t, a, b: t.unfold(a % t.dim(), 2, 1).select(a % t.dim(), 0),
    "expand": lambda t, a, b: t.expand(1, *t.shape),
    "expanded row": lambda t, a, b: t.unsqueeze(0).expand(3, *t.shape)[b % 3],
    "detach": lambda t, a, b: t.detach(),
    "contiguous": lambda t, a, b: t.contiguous(),
    "as_strided": lambda t, a, b: t.as_strided((2, 2), (2, 1), b % 4),
    "to": lambda t, a, b: t.to(torch.float32),
    "einsum": lambda t, a, b: torch.einsum("...a->a...", t),
    "T": lambda t, a, b: t.transpose(0, -1),
}
PURE = {
    "add": lambda t, a, b: t + 1,
    "twice": lambda t, a, b: t * 2,
    "clone": lambda t, a, b: t.clone(),
    "copy of a transpose": lambda t, a, b: t.transpose(0, -1).clone(),
    "sum": lambda t, a, b: t.sum(a % t.dim(), keepdim=True),
    "flip": lambda t, a, b: t.flip(a % t.dim()),
    "cat": lambda t, a, b: torch.cat([t, t], a % t.dim()),
    "where": lambda t, a, b: torch.where(t > b, t, -t),
}


def _assign_first(t, a, b):
    t[0] = t[-1].clone() + 1


def _assign_mask(t, a, b):
    t[t > b] = -1.0


def _assign_positions(t, a, b):
    t[torch.tensor([b % t.shape[0], 0])] = 4.0


WRITES = {
    "add_": lambda t, a, b: t.add_(b),
    "mul_": lambda t, a, b: t.mul_(1 + b % 3),
    "fill_": lambda t, a, b: t.fill_(b),
    "zero_": lambda t, a, b: t.zero_(),
    "copy_": lambda t, a, b: t.copy_(t.clone() * 2 + b),
    "copy_ row": lambda t, a, b: t.copy_(t[0].clone()),
    "clamp_": lambda t, a, b: t.clamp_(b - 3, b + 3),
    "relu_": lambda t, a, b: t.relu_(),
    "masked_fill_": lambda t, a, b: t.masked_fill_(t > b, 0.5),
    "cumsum_": lambda t, a, b: t.cumsum_(a % t.dim()),
    "index_fill_": lambda t, a, b: t.index_fill_(
        a % t.dim(), torch.tensor([b % t.shape[a % t.dim()]]), 3.0
    ),
    "out=": lambda t, a, b: torch.sub(t.clone(), b, out=t),
    "x[0] =": _assign_first,
    "x[mask] =": _assign_mask,
    "x[positions] =": _assign_positions,
    "unsqueeze_": lambda t, a, b: t.unsqueeze_(a % (t.dim() + 1)),
    "squeeze_": lambda t, a, b: t.squeeze_(),
    "transpose_": lambda t, a, b: t.transpose_(a % t.dim(), b % t.dim()),
}
OPERATIONS = VIEWS | PURE | WRITES

steps = st.lists(
    st.tuples(
        st.one_of(
            *(st.sampled_from(sorted(table)) for table in (VIEWS, WRITES, PURE, VIEWS, WRITES))
        ),
        st.integers(0, 11),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    min_size=2,
    max_size=9,
)


def program(instructions):
    """Each step works on an earlier tensor; all the tensors are returned."""

    def run(x):
        tensors = [x]
        for name, which, a, b in instructions:
            made = OPERATIONS[name](tensors[which % len(tensors)], a, b)
            if name not in WRITES:
                tensors.append(made)
        return tuple(tensors)

    return run


def example(shape, permuted):
    x = torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape)
    return x.transpose(0, -1) if permuted else x


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 40,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(steps, st.sampled_from([(4,), (3, 4), (2, 3, 2), (1, 4)]), st.booleans())
def test_random_programs(instructions, shape, permuted):
    run, x = program(instructions), example(shape, permuted)
    try:
        results = run(x.clone())
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError):
        assume(False)
    assume(all(t.numel() for t in results))
    for capture in CAPTURES:
        agree({"program": run}, x, capture=capture)
