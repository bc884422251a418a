"""TorchScript given by the caller: straight code is exported, control flow is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import sardonyx


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
        self.head = torch.nn.Linear(4, 2)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(image).relu().mean((2, 3))
        return self.head(features), features.view(features.shape[0], -1)


@pytest.fixture(scope="module")
def traced() -> torch.jit.ScriptModule:
    torch.manual_seed(0)
    return torch.jit.trace(Net().eval(), (torch.randn(2, 3, 8, 8),))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_traced_module_in_memory_and_from_a_file(
    traced: torch.jit.ScriptModule, tmp_path: Path
) -> None:
    torch.jit.save(traced, tmp_path / "net.pt")
    for model in (traced, torch.jit.load(tmp_path / "net.pt")):
        program = sardonyx.export(
            model, (torch.randn(2, 3, 8, 8),), dynamic_axes={"image": {0: "batch"}}, verify=True
        )
        assert [spec.name for spec in program.signature.inputs] == ["image"]
        assert set(program.model.graph.initializers) >= {"body.0.weight", "head.weight"}
        images = torch.randn(5, 3, 8, 8)
        for got, expected in zip(program(images), model(images), strict=True):
            torch.testing.assert_close(got, expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_control_flow_is_kept() -> None:
    @torch.jit.script
    def decides(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return x - 1

    program = sardonyx.export(decides, (torch.ones(3),))
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x), decides(x))


def test_torch_export_is_not_asked(traced: torch.jit.ScriptModule) -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match="does not take TorchScript"):
        sardonyx.export(traced, (torch.randn(2, 3, 8, 8),), capture="export")
