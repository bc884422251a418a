"""Weights on a GPU: brought to the host one tensor at a time."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch

import sardonyx

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

WIDTH = 4096
LARGEST = WIDTH * WIDTH * 4
SLACK = 48 * 2**20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class PeakMemory:
    """The most resident memory seen while the body runs, above what was there before."""

    def __enter__(self) -> PeakMemory:
        self._before = resident_bytes()
        self.growth = 0
        self._done = False
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done:
            self.growth = max(self.growth, resident_bytes() - self._before)
            time.sleep(0.002)

    def __exit__(self, *error: object) -> None:
        self._done = True
        self._thread.join()


@pytest.fixture(scope="module")
def two_gigabytes() -> torch.nn.Module:
    """31 layers of 64 MB on the GPU."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH, device="cuda") for _ in range(31)]
    return torch.nn.Sequential(*layers).eval()


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("external_data", [None, True])
def test_host_memory_grows_by_no_more_than_the_largest_tensor(
    two_gigabytes: torch.nn.Module, tmp_path: Path, capture: str, external_data: bool | None
) -> None:
    x = torch.randn(1, WIDTH, device="cuda")
    tiny = torch.nn.Sequential(torch.nn.Linear(8, 8, device="cuda"))
    sardonyx.export(tiny, (x[:, :8],), tmp_path / "tiny.onnx", capture=capture)
    with PeakMemory() as memory:
        sardonyx.export(
            two_gigabytes, (x,), tmp_path / "big.onnx", capture=capture, external_data=external_data
        )
    written = sum(path.stat().st_size for path in tmp_path.glob("big.onnx*"))
    assert written > 31 * LARGEST
    assert memory.growth <= LARGEST + SLACK, f"{memory.growth / 2**20:.0f} MB"


def test_the_exported_numbers_are_the_gpus(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten()
    )
    model = model.eval().cuda()
    x = torch.randn(2, 3, 16, 16, device="cuda")
    for capture in ("trace", "export"):
        program = sardonyx.export(
            model, (x,), tmp_path / "m.onnx", capture=capture, dynamic_axes={"input": {0: "n"}}
        )
        with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
            expected = model(x).cpu()
        torch.testing.assert_close(program(x).cpu(), expected, rtol=1e-4, atol=1e-5)
        assert program.verify().largest_absolute < 1e-4
