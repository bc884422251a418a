"""One measurement of the export benchmark, in a process of its own; prints one line of JSON.

python benchmarks/measure.py export METHOD MODEL FILE REPEATS
python benchmarks/measure.py latency MODEL ROUNDS FILE [FILE ...]
"""

import argparse
import contextlib
import ctypes
import gc
import io
import json
import logging
import os
import resource
import statistics
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from examples.models import MODELS, flat_tensors  # noqa: E402

Args = tuple[Any, ...]
SAMPLE_SECONDS = 0.002
LEAST_SECONDS = 1.5
"""Of all timed runs together: one alone of some milliseconds says little."""
PAGE_BYTES = resource.getpagesize()


def sardonyx_export(model: nn.Module, args: Args, path: Path) -> None:
    import sardonyx

    sardonyx.export(model, args, path, capture="export", verify=False)


def sardonyx_trace(model: nn.Module, args: Args, path: Path) -> None:
    import sardonyx

    sardonyx.export(model, args, path, capture="trace", verify=False)


def sardonyx_export_program(model: nn.Module, args: Args, path: Path) -> None:
    """Without a file, as the captures alone write none."""
    import sardonyx

    sardonyx.export(model, args, capture="export", verify=False)


def sardonyx_trace_program(model: nn.Module, args: Args, path: Path) -> None:
    import sardonyx

    sardonyx.export(model, args, capture="trace", verify=False)


def dynamic_first_dims(args: Args, dim: Any) -> tuple[Any, ...]:
    """The first dim of the first argument, and those of others that are as long."""
    return tuple(
        {0: dim} if isinstance(a, torch.Tensor) and a.shape[0] == args[0].shape[0] else None
        for a in args
    )


def sardonyx_export_dynamic(model: nn.Module, args: Args, path: Path) -> None:
    import sardonyx

    shapes = dynamic_first_dims(args, "n")
    sardonyx.export(model, args, capture="export", dynamic_shapes=shapes, verify=False)


def sardonyx_trace_dynamic(model: nn.Module, args: Args, path: Path) -> None:
    import sardonyx

    shapes = dynamic_first_dims(args, "n")
    sardonyx.export(model, args, capture="trace", dynamic_shapes=shapes, verify=False)


def torch_export_dynamic_alone(model: nn.Module, args: Args, path: Path) -> None:
    shapes = dynamic_first_dims(args, torch.export.Dim.AUTO)
    with torch.no_grad():
        torch.export.export(model, args, dynamic_shapes=shapes, strict=False)


def torch_onnx_dynamo(model: nn.Module, args: Args, path: Path) -> None:
    torch.onnx.export(model, args, path, dynamo=True, verbose=False)


def torch_onnx_torchscript(model: nn.Module, args: Args, path: Path) -> None:
    torch.onnx.export(model, args, str(path), dynamo=False)


def torch_export_alone(model: nn.Module, args: Args, path: Path) -> None:
    with torch.no_grad():
        torch.export.export(model, args, strict=False)


def jit_trace_alone(model: nn.Module, args: Args, path: Path) -> None:
    with torch.no_grad():
        torch.jit.trace(model, args, check_trace=False)


def forward_alone(model: nn.Module, args: Args, path: Path) -> None:
    """What torch.jit.trace does besides recording: it runs the model."""
    with torch.no_grad():
        model(*args)


def weights_write_alone(model: nn.Module, args: Args, path: Path) -> None:
    """What the disk takes: the bytes of the weights, and nothing else, into a file."""
    weights = model.state_dict().values()
    with path.with_suffix(".bin").open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, sum(tensor.nbytes for tensor in weights))
        for tensor in weights:
            file.write(memoryview(tensor.contiguous().numpy()).cast("B"))


METHODS: dict[str, Callable[[nn.Module, Args, Path], None]] = {
    "sardonyx_export": sardonyx_export,
    "sardonyx_trace": sardonyx_trace,
    "torch_onnx_dynamo": torch_onnx_dynamo,
    "torch_onnx_torchscript": torch_onnx_torchscript,
    "sardonyx_export_program": sardonyx_export_program,
    "sardonyx_trace_program": sardonyx_trace_program,
    "torch_export_alone": torch_export_alone,
    "sardonyx_export_dynamic": sardonyx_export_dynamic,
    "sardonyx_trace_dynamic": sardonyx_trace_dynamic,
    "torch_export_dynamic_alone": torch_export_dynamic_alone,
    "jit_trace_alone": jit_trace_alone,
    "forward_alone": forward_alone,
    "weights_write_alone": weights_write_alone,
}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def high_water_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class MemoryGrowth:
    """Peak resident memory of a block above what was resident when it began.

    The kernel's high-water mark is exact, but says nothing when an earlier peak (building the
    model, its first forward) was higher; a sampling thread covers that case.
    """

    def __enter__(self) -> "MemoryGrowth":
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self._earlier_peak = high_water_bytes()
        self._start = self._sampled_peak = resident_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self._sampled_peak = max(self._sampled_peak, resident_bytes())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        peak = high_water_bytes()
        if peak <= self._earlier_peak:
            peak = self._sampled_peak
        self.bytes = max(0, peak - self._start)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep the exporters' progress and warnings out of the JSON on stdout."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def tiny_model() -> tuple[nn.Module, Args]:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
    )
    return model.eval(), (torch.randn(2, 3, 8, 8),)


def node_count(path: Path) -> int:
    import onnx

    def count(nodes: Any) -> int:
        return sum(
            1
            + sum(
                count(attribute.g.node) for attribute in node.attribute if attribute.HasField("g")
            )
            for node in nodes
        )

    proto = onnx.load(path, load_external_data=False)
    return count(proto.graph.node) + sum(count(function.node) for function in proto.functions)


def weight_bytes(model: nn.Module) -> int:
    return sum(t.nbytes for t in {*model.parameters(), *model.buffers()})


def measure_export(method: str, model_name: str, path: Path, repeats: int) -> dict[str, Any]:
    """Best wall time of at least `repeats`, and the memory growth of the first of them.

    Every export writes a new file: replacing an old one would cost the time to free its pages.
    """
    export = METHODS[method]
    model, args = MODELS[model_name].make(), MODELS[model_name].example_inputs()
    with torch.no_grad():
        model(*args)
    seconds = []
    try:
        with silence():
            warm_up = path.with_name("warm_up.onnx")
            export(*tiny_model(), warm_up)
            while len(seconds) < repeats or sum(seconds) < LEAST_SECONDS:
                for old in path.parent.iterdir():
                    old.unlink()
                with contextlib.ExitStack() as stack:
                    if not seconds:
                        growth = stack.enter_context(MemoryGrowth())
                    start = time.perf_counter()
                    export(model, args, path)
                    seconds.append(time.perf_counter() - start)
    except Exception as error:  # a failing exporter is a result of the benchmark
        traceback.print_exc()
        first_line = (str(error).strip().splitlines() or [""])[0]
        return {"error": f"{type(error).__name__}: {first_line}"}
    return {
        "seconds": min(seconds),
        "growth_bytes": growth.bytes,
        "weight_bytes": weight_bytes(model),
        "nodes": node_count(path) if path.exists() else None,
    }


def measure_latency(model_name: str, rounds: int, paths: list[Path]) -> dict[str, Any]:
    """Median seconds per run of each file on one CPU thread, the files taking turns."""
    import onnxruntime as ort

    inputs = [t.numpy() for t in flat_tensors(MODELS[model_name].example_inputs())]
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    seconds: dict[str, list[float]] = {}
    runs: dict[str, Callable[[], Any]] = {}
    errors: dict[str, str] = {}
    for path in paths:
        try:
            session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            names = [value.name for value in session.get_inputs()]
            feed = dict(zip(names, inputs, strict=True))
            session.run(None, feed)
        except Exception as error:  # a file that does not run is a result of the benchmark
            errors[path.stem] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
            continue
        runs[path.stem] = lambda session=session, feed=feed: session.run(None, feed)
        seconds[path.stem] = []
    for turn in range(rounds + 1):
        # The order turns round, so that no file always follows the same one.
        names = list(runs)[turn % len(runs) :] + list(runs)[: turn % len(runs)] if runs else []
        for name in names:
            start = time.perf_counter()
            runs[name]()
            if turn > 0:  # the first round warms up
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {"seconds": medians, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export")
    export.add_argument("method", choices=METHODS)
    export.add_argument("model", choices=MODELS)
    export.add_argument("file", type=Path)
    export.add_argument("repeats", type=int)
    latency = commands.add_parser("latency")
    latency.add_argument("model", choices=MODELS)
    latency.add_argument("rounds", type=int)
    latency.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "export":
        result = measure_export(options.method, options.model, options.file, options.repeats)
    else:
        result = measure_latency(options.model, options.rounds, options.files)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
