"""Benchmark of exporting: Sardonyx, both exporters of torch.onnx, and the captures alone.

Writes benchmarks/RESULTS.md. Every measurement runs in a process of its own (measure.py).
"""

import argparse
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from measure import METHODS, MODELS

HERE = Path(__file__).resolve().parent
EXPORTERS = ("sardonyx_export", "sardonyx_trace", "torch_onnx_dynamo", "torch_onnx_torchscript")
RIVALS = EXPORTERS[2:]
TITLES = {
    "sardonyx_export": "Sardonyx, export",
    "sardonyx_trace": "Sardonyx, trace",
    "torch_onnx_dynamo": "torch.onnx, dynamo=True",
    "torch_onnx_torchscript": "torch.onnx, dynamo=False",
    "sardonyx_export_program": "Sardonyx, export, no file",
    "sardonyx_trace_program": "Sardonyx, trace, no file",
    "torch_export_alone": "torch.export alone",
    "sardonyx_export_dynamic": "Sardonyx, export, no file, dynamic",
    "sardonyx_trace_dynamic": "Sardonyx, trace, no file, dynamic",
    "torch_export_dynamic_alone": "torch.export alone, dynamic",
    "jit_trace_alone": "torch.jit.trace alone",
    "forward_alone": "the model's forward alone",
    "weights_write_alone": "writing weights alone",
}
MB = 1e6
BIG_MODEL_BYTES = 300 * MB
# Two files of the same graph differ by this much between runs on a busy machine.
LATENCY_NOISE = 1.03
# malloc gives memory back as soon as it is freed, so that resident memory is memory in use.
FREED_IS_RETURNED = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}

Result = dict[str, Any]
Methods = tuple[str, ...]


@dataclass
class ModelResults:
    """All measurements of one model, by method."""

    exports: dict[str, Result]
    memory: dict[str, Result]
    """The same where freed memory is given back at once, for big models."""
    latency: dict[str, float]
    latency_errors: dict[str, str]

    def value(self, method: str, key: str) -> float | None:
        return self.exports[method].get(key)

    def ratio(self, methods: Methods, parts: Methods) -> float | None:
        """Summed times of `methods` over those of `parts`; None when one of them failed."""
        seconds = {part: self.value(part, "seconds") for part in (*methods, *parts)}
        if any(value is None for value in seconds.values()):
            return None
        return sum(seconds[m] for m in methods) / sum(seconds[p] for p in parts)

    def growth(self, method: str, *, in_use: bool) -> float | None:
        results = self.memory if in_use else self.exports
        return results.get(method, {}).get("growth_bytes")

    @property
    def weight_bytes(self) -> float:
        return next((r["weight_bytes"] for r in self.exports.values() if "weight_bytes" in r), 0)

    def latency_ratio(self, method: str) -> float | None:
        rivals = [self.latency[rival] for rival in RIVALS if rival in self.latency]
        if method not in self.latency or not rivals:
            return None
        return self.latency[method] / min(rivals)


def measured(*arguments: object, environment: dict[str, str] | None = None) -> Result:
    command = [sys.executable, str(HERE / "measure.py"), *map(str, arguments)]
    variables = {**os.environ, **(environment or {})}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit status {process.returncode}: {last}"}
    return json.loads(process.stdout.splitlines()[-1])


def measure_model(name: str, repeats: int, rounds: int) -> ModelResults:
    with tempfile.TemporaryDirectory(prefix="sardonyx-benchmark-") as folder:
        exports, memory = {}, {}
        for method in METHODS:
            path = Path(folder, method, f"{method}.onnx")
            path.parent.mkdir()
            exports[method] = measured("export", method, name, path, repeats)
            if exports[method].get("weight_bytes", 0) >= BIG_MODEL_BYTES:
                memory[method] = measured(
                    "export", method, name, path, 1, environment=FREED_IS_RETURNED
                )
            print(name, method, exports[method], file=sys.stderr, flush=True)
        files = [Path(folder, m, f"{m}.onnx") for m in EXPORTERS if "error" not in exports[m]]
        latency = measured("latency", name, rounds, *files) if files else {"seconds": {}}
        print(name, "latency", latency, file=sys.stderr, flush=True)
    errors = latency.get("errors", {})
    if "error" in latency:
        errors = {path.stem: latency["error"] for path in files}
    return ModelResults(exports, memory, latency.get("seconds", {}), errors)


def geometric_mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def cell(value: float | None, form: str) -> str:
    return "failed" if value is None else format(value, form)


def factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def table(header: list[str], rows: list[list[str]]) -> str:
    align = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, align, *rows])


def seconds_table(results: dict[str, ModelResults]) -> str:
    header = ["seconds", "weights MB", *(TITLES[method] for method in METHODS)]
    rows = [
        [name, f"{r.weight_bytes / MB:.0f}"]
        + [cell(r.value(method, "seconds"), ".3f") for method in METHODS]
        for name, r in results.items()
    ]
    return table(header, rows)


TIME_RATIOS: dict[str, tuple[Methods, Methods]] = {
    "export, no file / torch.export": (("sardonyx_export_program",), ("torch_export_alone",)),
    "trace, no file / torch.export": (("sardonyx_trace_program",), ("torch_export_alone",)),
    "trace, no file / torch.jit.trace": (("sardonyx_trace_program",), ("jit_trace_alone",)),
    "dynamic: export, no file / torch.export": (
        ("sardonyx_export_dynamic",),
        ("torch_export_dynamic_alone",),
    ),
    "dynamic: trace, no file / torch.export": (
        ("sardonyx_trace_dynamic",),
        ("torch_export_dynamic_alone",),
    ),
    "export / (torch.export + write)": (
        ("sardonyx_export",),
        ("torch_export_alone", "weights_write_alone"),
    ),
    "dynamo=True / export, no file": (("torch_onnx_dynamo",), ("sardonyx_export_program",)),
    "dynamo=True / export": (("torch_onnx_dynamo",), ("sardonyx_export",)),
    "dynamo=False / trace, no file": (("torch_onnx_torchscript",), ("sardonyx_trace_program",)),
    "dynamo=False / trace": (("torch_onnx_torchscript",), ("sardonyx_trace",)),
}


def ratio_table(results: dict[str, ModelResults]) -> str:
    rows = [
        [name, *(factor(r.ratio(*methods)) for methods in TIME_RATIOS.values())]
        for name, r in results.items()
    ]
    means = [
        geometric_mean(r.ratio(*methods) for r in results.values())
        for methods in TIME_RATIOS.values()
    ]
    rows.append(["**geometric mean**", *map(factor, means)])
    return table(["ratio of times", *TIME_RATIOS], rows)


def memory_table(title: str, results: dict[str, ModelResults], *, in_use: bool) -> str:
    methods = [method for method in METHODS if method != "weights_write_alone"]
    rows = []
    for name, r in results.items():
        if in_use and not r.memory:
            continue
        growth = (r.growth(method, in_use=in_use) for method in methods)
        cells = [cell(None if g is None else g / MB, ".0f") for g in growth]
        rows.append([name, f"{r.weight_bytes / MB:.0f}", *cells])
    return table([title, "weights MB", *(TITLES[m] for m in methods)], rows)


def nodes_table(results: dict[str, ModelResults]) -> str:
    rows = [
        [name, *(cell(r.value(method, "nodes"), "d") for method in EXPORTERS)]
        for name, r in results.items()
    ]
    return table(["nodes", *(TITLES[method] for method in EXPORTERS)], rows)


def latency_table(results: dict[str, ModelResults]) -> str:
    own = EXPORTERS[:2]
    header = ["latency, ms", *(TITLES[method] for method in EXPORTERS)]
    header += [f"{TITLES[method]} / better rival" for method in own]
    rows = []
    for name, r in results.items():
        milliseconds = [r.latency[m] * 1000 if m in r.latency else None for m in EXPORTERS]
        ratios = [factor(r.latency_ratio(method)) for method in own]
        rows.append([name, *(cell(value, ".2f") for value in milliseconds), *ratios])
    means = [geometric_mean(r.latency_ratio(m) for r in results.values()) for m in own]
    rows.append(["**geometric mean**", *([""] * len(EXPORTERS)), *map(factor, means)])
    return table(header, rows)


@dataclass
class Target:
    """A limit on the geometric mean of one number per model.

    None stands for a model that Sardonyx failed to export; with one of those no target is met.
    """

    text: str
    values: dict[str, float | None]
    limit: float
    at_least: bool = False

    def _meets(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def row(self) -> list[str]:
        known = {name: value for name, value in self.values.items() if value is not None}
        if not known:
            return [self.text, "-", "-", "-", "not measured"]
        mean = geometric_mean(known.values())
        worst = (min if self.at_least else max)(known, key=known.__getitem__)
        meeting = sum(map(self._meets, known.values()))
        met = self._meets(mean) and len(known) == len(self.values)
        return [
            self.text,
            factor(mean),
            f"{factor(known[worst])} ({worst})",
            f"{meeting} of {len(self.values)}",
            "yes" if met else "**no**",
        ]


def targets(results: dict[str, ModelResults]) -> list[Target]:
    def ratios(name: str) -> dict[str, float | None]:
        methods = TIME_RATIOS[name]
        own = next(m for part in methods for m in part if m.startswith("sardonyx"))
        return {
            model: r.ratio(*methods)
            for model, r in results.items()
            if r.ratio(*methods) is not None or "error" in r.exports[own]
        }

    listed = [
        Target(
            "export, no file, at most 0.35x torch.export alone, which writes none",
            ratios("export, no file / torch.export"),
            0.35,
        ),
        Target("the same by trace", ratios("trace, no file / torch.export"), 0.35),
        Target(
            "the same with dynamic dims, at most 0.6x: export",
            ratios("dynamic: export, no file / torch.export"),
            0.6,
        ),
        Target("by trace", ratios("dynamic: trace, no file / torch.export"), 0.6),
        Target(
            "export at least 30x as fast as dynamo=True, no file of ours",
            ratios("dynamo=True / export, no file"),
            30,
            True,
        ),
        Target("the same with the file", ratios("dynamo=True / export"), 30, True),
        Target(
            "trace at least 4x as fast as dynamo=False, no file of ours",
            ratios("dynamo=False / trace, no file"),
            4,
            True,
        ),
        Target("the same with the file", ratios("dynamo=False / trace"), 4, True),
    ]
    big = {name: r for name, r in results.items() if r.weight_bytes >= BIG_MODEL_BYTES}
    for in_use, what in ((True, "memory in use"), (False, "resident memory")):
        for method in EXPORTERS[:2]:
            used = {}
            for name, r in big.items():
                growth = r.growth(method, in_use=in_use)
                allowed = 0.05 * r.weight_bytes + 60 * MB
                used[name] = None if growth is None else max(growth, 1) / allowed
            text = (
                f"{TITLES[method]}: {what}, growth / (5% of weights + 60 MB), models of >= 300 MB"
            )
            listed.append(Target(text, used, 1))
    for method in EXPORTERS[:2]:
        latency = {
            name: r.latency_ratio(method)
            for name, r in results.items()
            if r.latency_ratio(method) is not None or method not in r.latency
        }
        text = f"{TITLES[method]}: latency no worse than the better rival (noise: 3%)"
        listed.append(Target(text, latency, LATENCY_NOISE))
    return listed


def failures(results: dict[str, ModelResults]) -> str:
    lines = [
        f"- {name}, {TITLES[method]}: {result['error']}"
        for name, r in results.items()
        for method, result in r.exports.items()
        if "error" in result
    ]
    lines += [
        f"- {name}, file of {TITLES[method]} in ONNX Runtime: {error}"
        for name, r in results.items()
        for method, error in r.latency_errors.items()
    ]
    return "\n".join(lines) or "None."


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} from this tree"


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def markdown(results: dict[str, ModelResults], command: str) -> str:
    packages = ("sardonyx", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")
    versions = ", ".join(map(installed, packages))
    target_header = ["target", "geometric mean", "worst", "models meeting it", "met"]
    return f"""# Export benchmark

Made by `{command}` on {date.today()}; do not edit.

{versions}; Python {platform.python_version()}; {processor()}, {os.cpu_count()} cores.

Batch 2, static shapes but where "dynamic" says otherwise (the first dim of the first input, and of
those as long),
verification off, each exporter writing to a file but where "no file" says otherwise. Times are the
best of several runs (more of them where one takes milliseconds), each to a new file, after a
warm-up export in the same process; memory is the peak above the resident size once the model is
built and has run; each measurement has a process of its own. "Writing weights alone" puts the bytes
of the state dict into a file. torch.jit.trace and the model's forward run the model; Sardonyx
records it on tensors without data.

## Targets

Judged by the geometric mean; beside it stand the worst model and how many meet the limit by
themselves. The better rival is the faster of two files in this run: noise alone makes it faster
than each.

{table(target_header, [target.row() for target in targets(results)])}

## Time

{seconds_table(results)}

{ratio_table(results)}

## Memory

Memory in use, of the models of 300 MB and more, is measured where malloc gives back at once what is
freed (`{" ".join(f"{key}={value}" for key, value in FREED_IS_RETURNED.items())}`):

{memory_table("peak growth of memory in use, MB", results, in_use=True)}

Resident memory also has what malloc, by its defaults, keeps of freed memory for later:

{memory_table("peak growth of resident memory, MB", results, in_use=False)}

## Nodes

{nodes_table(results)}

## Latency in ONNX Runtime

CPU, one thread, median of interleaved runs.

{latency_table(results)}

## Failures

{failures(results)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="names with commas between")
    parser.add_argument("--repeats", type=int, default=2, help="exports timed per measurement")
    parser.add_argument("--rounds", type=int, default=15, help="latency runs per file")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    names = options.models.split(",")
    if unknown := [name for name in names if name not in MODELS]:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    results = {name: measure_model(name, options.repeats, options.rounds) for name in names}
    command = shlex.join(["python", "benchmarks/export.py", *sys.argv[1:]])
    options.output.write_text(markdown(results, command))
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
