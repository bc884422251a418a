"""Matrix products against eager PyTorch: every rank, factor, equation and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime as ort
import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
     ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4))],
)  # fmt: skip
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(torch.matmul, rand(*left), rand(*right))


M, N, V, W = rand(2, 3), rand(3, 4), rand(3), rand(4)
B1, B2 = rand(5, 2, 3), rand(5, 3, 4)

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "mm": (torch.mm, (M, N)),
    "bmm": (torch.bmm, (B1, B2)),
    "mv": (torch.mv, (M, V)),
    "dot": (torch.dot, (V, V + 1)),
    "vdot": (torch.vdot, (V, V + 1)),
    "outer": (torch.outer, (V, W)),
    "inner": (torch.inner, (B1, M)),
    "inner_scalar": (lambda x, y: torch.inner(x, y[0]), (B1, V)),
    "addmm": (torch.addmm, (W, M, N)),
    "addmm_column": (lambda a, x, y: torch.addmm(a, x, y, beta=0.3, alpha=-2), (rand(2, 1), M, N)),
    "addmm_beta_0": (lambda a, x, y: torch.addmm(a, x, y, beta=0), (W * torch.nan, M, N)),
    "addmm_scalar": (lambda a, x, y: torch.addmm(a[0], x, y, beta=2), (W, M, N)),
    "baddbmm": (lambda a, x, y: torch.baddbmm(a, x, y, beta=0.5, alpha=3), (W, B1, B2)),
    "addbmm": (lambda a, x, y: torch.addbmm(a, x, y, beta=0.5, alpha=3), (rand(2, 4), B1, B2)),
    "addmv": (lambda a, x, y: torch.addmv(a, x, y, beta=2, alpha=0.1), (rand(2), M, V)),
    "addr": (lambda a, x, y: torch.addr(a, x, y, beta=2, alpha=0.1), (N, V, W)),
    "addmm_nothing": (lambda a, x, y: torch.addmm(a, x[:, :0], y[:0], beta=2), (W, M, N)),
    "outer_bools": (lambda x, y: torch.outer(x > 0, y > 0), (V, W)),
    "addmm_relu": (lambda a, x, y: torch.ops.aten._addmm_activation(a, x, y), (W, M, N)),
    "addmm_gelu": (
        lambda a, x, y: torch.ops.aten._addmm_activation(a, x, y, use_gelu=True),
        (W, M, N),
    ),
    "tensordot": (lambda x, y: torch.tensordot(x, y, dims=1), (B1, N)),
    "tensordot_dims": (lambda x, y: torch.tensordot(x, y, ([2, 0], [1, 0])), (B1, B2)),
    "tensordot_outer": (lambda x, y: torch.tensordot(x, y, dims=0), (M, V)),
    "kron": (torch.kron, (M, N)),
    "multi_dot": (lambda x, y: torch.linalg.multi_dot([x, y, y.T, y]), (M, N)),
    "chain_matmul": (lambda x, y: torch.chain_matmul(x, y, y.T), (M, N)),
    "vecdot": (lambda x, y: torch.linalg.vecdot(x, y, dim=1), (B1, B1 + 1)),
    "matrix_power": (lambda x: torch.linalg.matrix_power(x @ x.T, 3), (M,)),
    "matrix_power_0": (lambda x: torch.linalg.matrix_power(x @ x.T, 0), (M,)),
}


@pytest.mark.parametrize("name", list(PRODUCTS))
def test_products(name: str) -> None:
    function, args = PRODUCTS[name]
    check(function, *args)


@pytest.mark.parametrize("name", ["mm", "addmm_column", "inner", "outer", "tensordot"])
def test_products_of_doubles(name: str) -> None:
    function, args = PRODUCTS[name]
    check(function, *(a.double() for a in args))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_products_of_integers(dtype: torch.dtype) -> None:
    def products(x: torch.Tensor, y: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        turned = torch.einsum("ij,jk->ki", x, y)
        return [x @ y, torch.addmm(v, x, y, beta=2, alpha=3), turned, x @ y[:, 0]]

    left, right, added = (torch.randint(0, 60, s) for s in ((2, 3), (3, 4), (4,)))
    check(products, left.to(dtype), right.to(dtype), added.to(dtype))


def test_integer_matrices_to_int32() -> None:
    left, right = (torch.randint(-128, 127, (32, 32), dtype=torch.int8) for _ in range(2))
    check(lambda x, y: torch._int_mm(x, y), left, right)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (1, 5, 2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape: tuple[int, ...], bias: bool) -> None:
    check(torch.nn.Linear(3, 4, bias=bias), rand(*shape))


def test_linear_with_computed_and_vector_weights() -> None:
    check(F.linear, rand(5, 2, 3), rand(4, 3), rand(4))
    check(F.linear, rand(2, 3), rand(3))


@pytest.mark.parametrize("model", [torch.nn.Linear(3, 4), torch.nn.Linear(3, 4).double()])
def test_linear_at_other_sizes(model: torch.nn.Module) -> None:
    dtype = next(model.parameters()).dtype
    x, other = rand(5, 2, 3).to(dtype), rand(1, 7, 3).to(dtype)
    check(model, x, dynamic={0: [0, 1]}, others=[(other,)])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(2,), (2, 6), ()])
def test_bilinear(bias: bool, lead: tuple[int, ...]) -> None:
    check(torch.nn.Bilinear(3, 4, 5, bias=bias), rand(*lead, 3), rand(*lead, 4))


EQUATIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,jk": ((2, 3), (3, 4)),
    "ij,jk->ki": ((2, 3), (3, 4)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "bqhd,bkhd->bhqk": ((2, 4, 3, 5), (2, 6, 3, 5)),
    "nchw,ckw->nhk": ((2, 3, 4, 5), (3, 6, 5)),
    "ij->ji": ((2, 3),),
    "ij->": ((2, 3),),
    "ij->j": ((2, 3),),
    "ba": ((2, 3),),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "iji->j": ((3, 2, 3),),
    "bii->b": ((2, 4, 4),),
    "iii->i": ((3, 3, 3),),
    "i,j->ij": ((2,), (3,)),
    "i,i": ((3,), (3,)),
    "ij,ij->ij": ((2, 3), (2, 3)),
    "ij,j->ij": ((2, 3), (3,)),
    "...ij,...jk->...ik": ((5, 2, 3), (3, 4)),
    "...ij,...jk": ((5, 1, 2, 3), (6, 3, 4)),
    "i...,j...->ij...": ((2, 3, 1), (4, 5)),
    "b...d,d->b...": ((2, 6, 7, 3), (3,)),
    "...->...": ((2, 3),),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "bn,anm,bm->ba": ((2, 3), (4, 3, 5), (2, 5)),
    "ij,kj,lj->ikl": ((2, 3), (4, 3), (5, 3)),
    "ij , jk -> ik": ((2, 1), (3, 4)),
    "aij,jk->aik": ((2, 3, 1), (5, 4)),
    "abc,cd->d": ((2, 3, 4), (4, 5)),
}


@pytest.mark.parametrize("equation", list(EQUATIONS))
def test_einsum(equation: str) -> None:
    check(lambda *x: torch.einsum(equation, *x), *(rand(*s) for s in EQUATIONS[equation]))


@pytest.mark.parametrize("equation", ["bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "nchw,ckw->nhk"])
def test_einsum_at_other_sizes(equation: str) -> None:
    left, right = EQUATIONS[equation]
    batched = equation.startswith("b")
    other = (7, *left[1:]), (7, *right[1:]) if batched else right
    check(
        lambda *x: torch.einsum(equation, *x),
        rand(*left),
        rand(*right),
        dynamic={0: [0], 1: [0]} if batched else {0: [0]},
        others=[tuple(rand(*s) for s in other)],
    )


def test_diagonal_of_dynamic_matrices() -> None:
    check(lambda x: torch.einsum("bii->bi", x @ x.mT), rand(2, 3, 4), dynamic={0: [0, 1]},
          others=[(rand(3, 5, 4),)])  # fmt: skip


@pytest.mark.parametrize("product", [torch.mv, torch.matmul, F.linear])
def test_matrix_by_vector_of_nothing(product: Callable[..., Any]) -> None:
    def of_part(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = product(x, x.new_ones(x.shape[1]))
        return result

    others = [(rand(0, 3),), (rand(4, 0),), (rand(0, 0),), (rand(5, 6),)]
    check(of_part, M, dynamic={0: [0, 1]}, others=others)
    check(of_part, rand(2, 0))


def test_vector_by_matrices_of_nothing() -> None:
    others = [(rand(0), rand(4, 0, 5)), (rand(0), rand(0, 0, 5)), (rand(1), rand(2, 1, 5))]
    check(torch.matmul, V, rand(2, 3, 5), dynamic={0: [0], 1: [0, 1]}, others=others)
    several = [(rand(0), rand(4, 2, 0, 5)), (rand(2), rand(0, 2, 2, 5))]
    check(torch.matmul, V, rand(3, 2, 3, 5), dynamic={0: [0], 1: [0, 2]}, others=several)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (3,)), ((1, 2, 3), (3,)), ((4, 2, 3), (3,)), ((5, 1, 2, 3), (4, 3)),
     ((1, 4, 2, 3), (1, 3)), ((5, 4, 2, 3), (1, 3))],
)  # fmt: skip
def test_batches_of_products_of_nothing(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """ONNX Runtime forgets to repeat the left, or leaves memory as it was."""

    def inputs(inner: int) -> tuple[torch.Tensor, torch.Tensor]:
        batch = (5,) if len(left) > 3 else (4,)
        return rand(*left[:-1], inner), rand(*batch, *right[:-1], inner, 6)

    others = [inputs(n) for n in (7, 0, 1, 0)]
    dynamic = {0: [len(left) - 1], 1: [len(right)]}
    check(lambda x, y: x @ y + 1, *inputs(3), dynamic=dynamic, others=others)


def test_products_of_something_repeat_no_matrix() -> None:
    """What ONNX Runtime forgets where there is nothing to sum costs nothing elsewhere."""

    def inputs(n: int, batch: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
        return rand(n, n), rand(batch, n, 3)

    others = [*map(inputs, (0, 1, 2, 7)), inputs(2, 0), inputs(0, 0), inputs(1, 1)]
    dynamic = {0: [0, 1], 1: [0, 1]}
    model = check(torch.matmul, *inputs(4), dynamic=dynamic, others=others).model_proto
    (product,) = (node for node in model.graph.node if node.op_type == "MatMul")
    model.graph.output.add(name=product.input[0])
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    arrays = [x.numpy() for x in inputs(4)]
    left = session.run([product.input[0]], dict(zip(names, arrays, strict=True)))[0]
    assert left.size == 16


def test_addmm_of_nothing_keeps_beta() -> None:
    others = [(rand(2, 4), rand(2, n), rand(n, 4)) for n in (0, 1)]
    check(
        lambda c, x, y: torch.addmm(c, x, y, beta=2.0),
        rand(2, 4),
        rand(2, 3),
        rand(3, 4),
        dynamic={1: [1], 2: [0]},
        others=others,
    )
