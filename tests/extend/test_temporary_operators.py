"""The operators that stand for kept calls are gone when an export ends, well or not."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from torch._library import simple_registry

import sardonyx
from sardonyx import ops
from sardonyx.verification import find_mismatch

_NAMESPACES = ("sardonyx_kept", "sardonyx_autograd")


def _known() -> set[str]:
    """Wherever PyTorch knows an operator of these namespaces."""
    known = {*simple_registry.singleton._data, *torch.library._defs, *torch.library._impls}
    known |= set(torch._C._dispatch_get_all_op_names())
    known |= {schema.name for schema in torch._C._jit_get_all_schemas()}
    held = {f"{n}::{op}" for n in _NAMESPACES for op in getattr(torch.ops, n)}
    return {name for name in known if name.startswith(_NAMESPACES)} | held


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = _known()
    gc.disable()  # nor has anything to be collected for it
    try:
        yield
        assert _known() == before
    finally:
        gc.enable()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def symbolic(g, x):
        assert len(_known()) > 0
        return g.op("Add", x, x)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_of_autograd_functions(capture: str) -> None:
    program = sardonyx.export(Doubled.apply, torch.randn(2, 3), capture=capture, verify=True)
    assert [node.op_type for node in program.model.graph] == ["Add"]


def test_of_nodes_asked_for_in_a_trace() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return ops.symbolic(
            "com.example::Bar", [x, None], {"a": 1}, dtype=x.dtype, shape=x.shape, version=1
        )

    program = sardonyx.export(model, torch.randn(2, 3), capture="trace")
    assert [node.op_type for node in program.model.graph] == ["Bar"]


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    return torch.ops.quantized.sigmoid(q, 0.01, 3).dequantize()


def test_of_quantized_calls() -> None:
    def sigmoid(g, q, scale, zero_point):
        real = g.op("Sigmoid", sardonyx.symbolic_helper.dequantize_helper(g, q)[0])
        return sardonyx.symbolic_helper.quantize_helper(g, real, scale, zero_point)

    table = {torch.ops.quantized.sigmoid.default: sigmoid}
    program = sardonyx.export(
        _sigmoid, torch.randn(2, 3), capture="trace", custom_translation_table=table, verify=True
    )
    assert "Sigmoid" in [node.op_type for node in program.model.graph]


def test_where_a_function_fails() -> None:
    def fails(g, q, scale, zero_point):
        raise ValueError("no")

    table = {torch.ops.quantized.sigmoid.default: fails}
    with pytest.raises(sardonyx.SardonyxError, match="ValueError: no"):
        sardonyx.export(
            _sigmoid, torch.randn(2, 3), capture="trace", custom_translation_table=table
        )


def test_where_the_capture_fails() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        if float(Doubled.apply(x).sum()) > 0:
            raise ValueError("no")
        return x

    with pytest.raises(sardonyx.SardonyxError):
        sardonyx.export(model, torch.ones(2, 3))


def test_of_a_search_for_mismatches() -> None:
    class Different(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def symbolic(g, x):
            return g.op("Mul", x, x)

    info = find_mismatch(lambda x: Different.apply(x.relu()).sqrt(), torch.full((2, 3), 7.0))
    (leaf,) = info.all_mismatch_leaf_graph_info()
    assert leaf.essential_node_count() == 1 and "Different" in str(leaf.essential_node_kinds())
    info.find_mismatch()  # once more, without the operators
    assert len(info.all_mismatch_leaf_graph_info()) == 1
