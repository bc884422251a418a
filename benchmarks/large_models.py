"""Models larger than memory: built without weights, exported, and saved from safetensors shards.

python benchmarks/large_models.py 20            # 20 GB of parameters, sparse on disk
python benchmarks/large_models.py 3 --verify    # 3 GB of random ones, run in ONNX Runtime

Prints the peak of the process's memory (resident pages) and the time of each step. The weights are
shards of float16 in a temporary folder; without --verify their files have holes for data, which
read as zeros. The exported file is written in full all the same.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import sardonyx  # noqa: E402

WIDTH = 4096
LAYER_BYTES = 12 * WIDTH * WIDTH * 2
SHARD_BYTES = 4 * 2**30


class Layer(nn.Module):
    """A transformer layer: attention of 4 * WIDTH**2 parameters, and 8 * WIDTH**2 more."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, 32, width // 32)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32000, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, 32000, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def memory(what: str = "VmRSS") -> float:
    """Resident gigabytes; VmHWM is their peak since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


@contextmanager
def measured(step: str) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    start = time.perf_counter()
    yield
    took = time.perf_counter() - start
    print(f"{step:<28} {took:7.1f} s   peak memory {memory('VmHWM'):6.2f} GB", flush=True)


def write_shards(model: nn.Module, folder: Path, random: bool) -> Path:
    """The model's weights as a sharded checkpoint, one tensor in memory at a time."""
    weight_map: dict[str, str] = {}
    shards: list[list[tuple[str, torch.Tensor]]] = [[]]
    for name, tensor in model.state_dict().items():
        if sum(t.nbytes for _, t in shards[-1]) + tensor.nbytes > SHARD_BYTES:
            shards.append([])
        shards[-1].append((name, tensor))
    torch.manual_seed(0)
    for number, tensors in enumerate(shards):
        file = f"model-{number:05}.safetensors"
        header, end = {}, 0
        for name, tensor in tensors:
            begin, end = end, end + tensor.nbytes
            header[name] = {
                "dtype": "F16",
                "shape": list(tensor.shape),
                "data_offsets": [begin, end],
            }
            weight_map[name] = file
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / file, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for _, tensor in tensors if random else ():
                values = torch.randn(tensor.shape, dtype=torch.float16)
                if tensor.dim() > 1:
                    values *= 0.5 / tensor.shape[-1] ** 0.5
                out.write(values.numpy().data)
            out.truncate(8 + len(text) + end)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gigabytes", type=float)
    parser.add_argument(
        "--verify", action="store_true", help="random weights, compared with PyTorch"
    )
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    options = parser.parse_args()
    layers = max(1, round((options.gigabytes * 1e9 - 2 * 32000 * WIDTH * 2) / LAYER_BYTES))
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(layers, folder, options.verify)
    finally:
        shutil.rmtree(folder)


def run(layers: int, folder: Path, verify: bool) -> None:
    print(f"{'imports':<28} {'':9}   memory now  {memory():6.2f} GB", flush=True)
    with measured("build without weights"), sardonyx.enable_fake_mode():
        model = Decoder(layers).half()
    size = sum(p.nbytes for p in model.parameters()) / 1e9
    print(f"{layers} layers, {size:.2f} GB of parameters", flush=True)
    with measured("write the shards"):
        index = write_shards(model, folder, random=verify)
    ids = torch.arange(8)[None]
    with measured("export"):
        program = sardonyx.export(model, ids, dynamic_axes={"ids": {0: "batch", 1: "length"}})
    with measured("save with the weights"):
        result = program.save(folder / "model.onnx", model_state=index, external_data=True)
    assert result.data_path is not None
    data_size = os.path.getsize(result.data_path) / 1e9
    print(f"{data_size:.2f} GB of weights beside {result.model_bytes / 1e6:.2f} MB", flush=True)
    if verify:
        with measured("run both and compare"):
            compare(program, index, layers)


def compare(program: sardonyx.ONNXProgram, index: Path, layers: int) -> None:
    ids = torch.randint(0, 32000, (1, 5))
    found = program(ids).float()
    del program
    with torch.device("meta"):
        model = Decoder(layers).half().eval()
    from sardonyx.serialize.model_state import opened_state

    state = {name: stored.tensor for name, stored in opened_state(index).items()}
    model.load_state_dict(state, assign=True)
    with torch.no_grad():
        expected = model(ids).float()
    error = (found - expected).abs().max() / expected.abs().max()
    print(f"largest error {error:.1e} of the largest output", flush=True)
    assert error < 2e-2, "half precision: 2e-2 of the largest output"


if __name__ == "__main__":
    main()
