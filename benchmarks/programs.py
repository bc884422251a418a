"""Programs that call torch.onnx.export, with PyTorch's exporter and through sardonyx.install().

python benchmarks/programs.py                      # all programs
python benchmarks/programs.py --only ultralytics   # those whose name has this in it
python benchmarks/programs.py --fresh              # again, those that have a result too

Each program exports by its own function (benchmarks/program_calls.py) in a process of its own. What
it hands to torch.onnx.export is run in eager, at other values and with its dynamic sizes doubled,
each alone and all together, and so is the file that the program leaves. The results are lines of
build/compatibility.jsonl, and a section of docs/compatibility.md.

optimum-onnx 0.1 needs transformers 4.57, OnnxExporter 5: run --only optimum and --only sentence in
an environment with the first, the rest in one with the second. What cannot be imported has no line.
"""

import argparse
import contextlib
import functools
import io
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import sardonyx  # noqa: E402
from benchmarks.compatibility import Disagreement, NotRunnable, cause, leaves, run_apart  # noqa: E402
from benchmarks.compatibility_page import LINES, PAGE, page, read_lines  # noqa: E402
from benchmarks.model_families import declare_torchvision_operators  # noqa: E402
from benchmarks.program_calls import PROGRAMS  # noqa: E402

EXPORTERS = ("torch.onnx", "sardonyx")


Example = tuple[str, dict[str, torch.Tensor], list[torch.Tensor]]
"""What is special about it, the inputs of the file by name, and what eager returns."""


class EagerFails(Exception):
    """Of the model that was exported: nothing is known of the exporter."""


@contextlib.contextmanager
def in_eval_mode(model: Any) -> Iterator[None]:
    """The mode that both exporters record. torch.onnx.export leaves all modules in the mode of the
    outermost one, which a program that wraps a model need not have set."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    modes = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


@contextlib.contextmanager
def examples_of_calls() -> Iterator[dict[str, list[Example]]]:
    """What the calls of torch.onnx.export are to compute, by the name of the file."""
    examples: dict[str, list[Example]] = {}
    original = torch.onnx.export

    @functools.wraps(original)
    def export(model: Any, args: Any = (), f: Any = None, *more: Any, **options: Any) -> Any:
        program = original(model, args, f, *more, **options)
        dims = dynamic_dims(f, program)
        # The program's patches of the model are still in place.
        try:
            with in_eval_mode(model):
                kwargs = dict(options.get("kwargs") or {})
                found = eager_examples(model, args, kwargs, dims)
                examples[Path(f).name if isinstance(f, str | Path) else ""] = found
        except Exception as error:
            raise EagerFails(cause(error)) from error
        return program

    torch.onnx.export = export
    try:
        yield examples
    finally:
        torch.onnx.export = original


def dynamic_dims(f: Any, program: Any) -> dict[str, dict[int, str]]:
    """Of each input of the file, in order."""
    proto = onnx.load(f, load_external_data=False) if f is not None else program.model_proto
    weights = {each.name for each in proto.graph.initializer}
    return {
        value.name: {
            axis: dim.dim_param
            for axis, dim in enumerate(value.type.tensor_type.shape.dim)
            if not dim.HasField("dim_value")
        }
        for value in proto.graph.input
        if value.name not in weights
    }


def eager_examples(
    model: Any, args: Any, kwargs: dict[str, Any], dims: dict[str, dict[int, str]]
) -> list[Example]:
    args = tuple(args) if isinstance(args, list | tuple) else (args,)
    if args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], {**args[-1], **kwargs}
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    tensors = leaves((args, list(kwargs.values())), torch.Tensor)
    names = {id(kwargs[name]): name for name in dims if isinstance(kwargs.get(name), torch.Tensor)}
    rest = iter([name for name in dims if name not in names.values()])
    names |= {id(t): next(rest, "") for t in tensors if id(t) not in names}
    examples = []
    torch.manual_seed(1)
    labels = list(dict.fromkeys(label for each in dims.values() for label in each.values()))
    for title, chosen in example_sizes(labels):
        axes = {
            i: {a: label for a, label in dims.get(name, {}).items() if label in chosen}
            for i, name in names.items()
        }
        new_args, new_kwargs = other_values((args, kwargs), axes)
        try:
            with torch.no_grad():
                expected = leaves(model(*new_args, **new_kwargs), torch.Tensor)
        except Exception:
            if not title:
                raise
            continue  # eager does not run there
        given = leaves((new_args, list(new_kwargs.values())), torch.Tensor)
        feeds = {names[id(t)]: new for t, new in zip(tensors, given, strict=True)}
        examples.append((title, feeds, [e.clone() for e in expected]))
    return examples


def example_sizes(labels: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The example, each dynamic size doubled alone, and all of them; where one is the sum of others
    (`past + sequence`) all of them only."""
    yield "", []
    if len(labels) > 1 and all(label.isidentifier() for label in labels):
        yield from ((f"at twice {label}", [label]) for label in labels)
    if labels:
        yield "at twice " + ", ".join(labels), labels


def other_values(value: Any, axes: dict[int, dict[int, str]]) -> Any:
    """Sizes keep their ratios, so that those which belong together still do. Floats are drawn anew:
    the example of a program may be an image of zeros, where all boxes are equal."""
    if isinstance(value, torch.Tensor):
        repeats = [2 if axis in axes.get(id(value), {}) else 1 for axis in range(value.ndim)]
        new = value.repeat(repeats) if value.ndim else value.clone()
        if not new.is_floating_point() or not new.numel():
            return new
        low, high = float(value.min()), float(value.max())
        return torch.rand_like(new) * ((high - low) or 1.0) + low
    if isinstance(value, dict):
        return {key: other_values(part, axes) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(other_values(part, axes) for part in value)
    return value


def compare(path: Path, examples: list[Example], tolerance: float) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options)
    except Exception as error:
        raise NotRunnable(str(error)) from error
    wanted = {value.name for value in session.get_inputs()}
    for title, feeds, expected in examples:
        try:
            got = session.run(None, {n: t.numpy() for n, t in feeds.items() if n in wanted})
        except Exception as error:
            raise NotRunnable(f"{title}: {error}".lstrip(": ")) from error
        if len(got) != len(expected):
            raise Disagreement(f"{len(got)} outputs, not {len(expected)}")
        for e, g in zip(expected, got, strict=True):
            if tuple(e.shape) != g.shape:
                raise Disagreement(f"an output has another shape {title}".rstrip())
            scale = max(1.0, float(e.float().abs().median()) if e.numel() else 1.0)
            if not np.allclose(
                e.float().numpy() / scale,
                g.astype(np.float32) / scale,
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            ):
                raise Disagreement(f"an output has other values {title}".rstrip())


def attempt(family: str, name: str, exporter: str, results: Connection) -> None:
    """The outcome, its cause and seconds; before them the dims that may vary."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    declare_torchvision_operators()
    if exporter == "sardonyx":
        sardonyx.install()
    start = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        examples_of_calls() as calls,
    ):
        results.send([])  # there is no run in eager of its own
        outcome, why = "passed", ""
        try:
            path = PROGRAMS[name](Path(folder))
            if not calls:
                raise RuntimeError("torch.onnx.export was not called")
            examples = calls.get(path.name) or list(calls.values())[-1]
            compare(path, examples, 3e-2 if "quantize" in name else 1e-3)
            dims = [d for each in dynamic_dims(path, None).values() for d in each.values()]
            why = ", ".join(dict.fromkeys(dims))
            if dims and len(examples) == 1:
                why += " (eager runs at the example alone)"
        except ImportError as error:  # nothing is known of the exporter either
            outcome, why = "not installed", cause(error)
        except EagerFails as error:
            outcome, why = "eager fails", str(error)
        except Disagreement as error:
            outcome, why = "wrong", str(error)
        except NotRunnable as error:
            outcome, why = "does not run", str(error)
        except Exception as error:
            outcome, why = "refused", cause(error)
    results.send((outcome, why.strip().partition("\n")[0], time.perf_counter() - start))


def versions(name: str) -> str:
    packages = [name.partition(" ")[0].rstrip(",")]
    if packages[0] in ("optimum-onnx", "sentence-transformers"):
        packages += ["transformers", "optimum"]
    try:
        return ", ".join(f"{package} {version(package)}" for package in packages)
    except PackageNotFoundError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of programs")
    options = parser.parse_args()
    LINES.parent.mkdir(exist_ok=True)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    torch.set_num_threads(1)
    lines = read_lines()
    if options.fresh:
        lines = [x for x in lines if x.family != "programs" or options.only not in x.name]
        LINES.write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines))
    done = {(line.name, line.exporter) for line in lines if line.family == "programs"}
    with LINES.open("a") as stream:
        for name in [name for name in PROGRAMS if options.only in name]:
            for exporter in EXPORTERS:
                if (name, exporter) in done:
                    continue
                line = run_apart("programs", name, exporter, attempt)
                line = replace(line, versions=versions(name))
                print(name, exporter, line.outcome, line.seconds, line.cause, sep=" | ", flush=True)
                if line.outcome == "not installed":
                    continue
                stream.write(json.dumps(asdict(line)) + "\n")
                stream.flush()
    PAGE.write_text(page(read_lines()))


if __name__ == "__main__":
    main()
