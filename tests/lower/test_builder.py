"""The builder knows what it writes, and refuses what `onnx.defs` does not know."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import sympy
import torch

from sardonyx.aten.graph import SymbolSource, TensorType, Value
from sardonyx.errors import InternalError
from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor

N = sympy.Symbol("s0", integer=True, positive=True)


@pytest.fixture
def b() -> Builder:
    source = Value("x", TensorType(torch.float32, (N, 4)))
    return Builder({N: SymbolSource(source, 0)}, {N: "batch"}, lambda value: tensor((N, 4)))


def tensor(shape: tuple[int | sympy.Expr, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    return Tensor(ir.Value(name="x"), dtype, shape)


def ops(b: Builder) -> list[str]:
    return [node.op_type for node in b.nodes]


def test_an_unknown_operator_is_refused(b: Builder) -> None:
    with pytest.raises(InternalError, match="no operator 'Frobnicate'"):
        b.Frobnicate(tensor((2,)))


def test_an_unknown_attribute_is_refused(b: Builder) -> None:
    with pytest.raises(InternalError, match="no attribute 'beta'"):
        b.Elu(tensor((2,)), beta=1.0)


def test_a_dtype_the_operator_does_not_take_is_refused(b: Builder) -> None:
    with pytest.raises(InternalError, match=r"does not take torch\.int64"):
        b.Elu(tensor((2,), torch.int64))


def test_operands_of_one_type_must_agree(b: Builder) -> None:
    with pytest.raises(InternalError, match="another operand of the same type"):
        b.Add(tensor((2,)), tensor((2,), torch.float64))


def test_too_few_inputs_are_refused(b: Builder) -> None:
    with pytest.raises(InternalError, match="got 1 inputs"):
        b.Add(tensor((2,)))


def test_a_number_takes_the_other_operands_dtype(b: Builder) -> None:
    for dtype in (torch.float16, torch.float64, torch.int64):
        assert b.Add(tensor((2,), dtype), 1).dtype == dtype


def test_dtypes_and_shapes_are_inferred(b: Builder) -> None:
    x = tensor((N, 4, 5))
    cases = [
        (b.Relu(x), torch.float32, (N, 4, 5)),
        (b.Less(x, tensor((4, 1))), torch.bool, (N, 4, 5)),
        (b.Transpose(x, perm=[2, 0, 1]), torch.float32, (5, N, 4)),
        (b.ReduceSum(x, [1], keepdims=0), torch.float32, (N, 5)),
        (b.ArgMax(x, axis=-1, keepdims=1), torch.int64, (N, 4, 1)),
        (b.MatMul(x, tensor((5, 7))), torch.float32, (N, 4, 7)),
        (b.Concat(x, x, axis=0), torch.float32, (2 * N, 4, 5)),
        (b.Unsqueeze(x, [0, -1]), torch.float32, (1, N, 4, 5, 1)),
        (b.Gather(x, tensor((3, 2), torch.int64), axis=1), torch.float32, (N, 3, 2, 5)),
        (b.Shape(x, start=1), torch.int64, (2,)),
        (b.reshape(x, [N, 20]), torch.float32, (N, 20)),
        (b.cast(x, torch.int32), torch.int32, (N, 4, 5)),
        (b.Conv(tensor((2, 3, 8, 8)), tensor((6, 3, 3, 3))), torch.float32, (2, 6, 6, 6)),
    ]
    for made, dtype, shape in cases:
        assert (made.dtype, made.shape) == (dtype, shape)


def test_symbolic_dims_have_the_users_names(b: Builder) -> None:
    made = b.Concat(tensor((N, 4)), tensor((N, 4)), axis=0)
    assert str(made.value.shape) == "[2*batch,4]"


def test_equal_constants_are_one(b: Builder) -> None:
    assert b.const(torch.tensor([1, 2])) is b.const(torch.tensor([1, 2]))
    assert b.const(torch.tensor([1, 2])) is not b.const(torch.tensor([1.0, 2.0]))
    # -0.0 == 0.0, but they are different constants.
    assert b.const(torch.tensor(-0.0)) is not b.const(torch.tensor(0.0))
    # One element may have any stride.
    assert b.const(torch.tensor([7, 8])[::2]) is b.const(torch.tensor([7]))


def test_a_large_constant_is_not_copied(b: Builder) -> None:
    big = torch.zeros(5000)
    made = b.const(big)
    assert made.const is not None and made.const.data_ptr() == big.data_ptr()


def test_views_that_change_nothing_write_nothing(b: Builder) -> None:
    x = tensor((N, 4))
    assert b.reshape(x, [N, 4]) is x
    assert b.expand(x, [N, 4]) is x
    assert b.expand(x, [-1, 4]) is x
    assert b.transpose(x, [0, 1]) is x
    assert b.cast(x, torch.float32) is x
    assert ops(b) == []


def test_reshape_says_a_dynamic_dim_without_computing_it(b: Builder) -> None:
    b.reshape(tensor((N, 4, 5)), [N, 20])
    assert ops(b) == ["Constant", "Reshape"]


def test_a_size_is_computed_once(b: Builder) -> None:
    b.shape([N * 2 + 1, 3])
    b.shape([N * 2 + 1, 4])
    assert ops(b).count("Shape") == 1
    assert ops(b).count("Mul") == 1
