"""utils.unconvertible_ops: every operator that cannot be converted, from one call; the errors."""

from __future__ import annotations

import logging

import pytest
import torch

import sardonyx

lib = torch.library.Library("unconvertible", "DEF")
for name in ("first", "second"):
    lib.define(f"{name}(Tensor x) -> Tensor")
    lib.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
    torch.library.register_fake(f"unconvertible::{name}", lambda x: torch.empty_like(x), lib=lib)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.unconvertible.first(x) + 1
        return torch.ops.unconvertible.second(torch.relu(y)) * torch.ops.unconvertible.first(y)


@pytest.mark.parametrize("capture", ["auto", "export", "trace"])
def test_all_of_them(capture: str) -> None:
    graph, unconvertible = sardonyx.utils.unconvertible_ops(
        Model(), torch.ones(2), opset_version=17, capture=capture
    )
    assert set(unconvertible) == {"unconvertible::first", "unconvertible::second"}
    assert len(unconvertible) == 3
    assert "aten::relu" in str(graph)


def test_none_of_them() -> None:
    assert sardonyx.utils.unconvertible_ops(torch.nn.ReLU(), torch.ones(2))[1] == []


def test_missing_and_refused_ones_are_told_together() -> None:
    def mixed(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.unconvertible.first(x) + x.to_sparse().to_dense()

    with pytest.raises(sardonyx.OnnxExporterError) as caught:
        sardonyx.export(mixed, torch.ones(3, 4))
    assert isinstance(caught.value, sardonyx.UnsupportedOperatorError)
    found = {problem.operator for problem in caught.value.problems}
    assert "unconvertible::first" in found and len(found) > 1
    assert all(problem.reason for problem in caught.value.problems)


def test_an_operator_that_the_opset_lacks() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e4m3fn)

    found = sardonyx.utils.unconvertible_ops(model, torch.ones(2), opset_version=17)[1]
    assert found and all(name.startswith("onnx::") for name in found)


def test_the_family_of_errors() -> None:
    for error in (
        sardonyx.UnsupportedOperatorError,
        sardonyx.CheckerError,
        sardonyx.InvalidExportOptionsError,
        sardonyx.SymbolicValueError,
    ):
        assert issubclass(error, sardonyx.OnnxExporterError)
    assert issubclass(sardonyx.OnnxExporterError, RuntimeError)
    assert issubclass(sardonyx.OnnxExporterWarning, UserWarning)


def test_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    sardonyx.enable_log()
    try:
        sardonyx.export(torch.nn.ReLU(), torch.ones(2))
    finally:
        sardonyx.disable_log()
    shown = capsys.readouterr().err
    assert "capture:" in shown and "onnx::Relu" in shown
    sardonyx.export(torch.nn.ReLU(), torch.ones(2))
    assert capsys.readouterr().err == ""
    assert logging.getLogger("sardonyx").level == logging.NOTSET
