"""Which published models export: docs/compatibility.md, from models with random weights.

python benchmarks/compatibility.py                                  # all families, an hour or more
python benchmarks/compatibility.py --family timm,detectors
python benchmarks/compatibility.py --family transformers --limit 15 --rival
python benchmarks/compatibility.py --limit 0                        # the page alone

Each model runs in eager, and is exported with verification by default options, in a process of its
own. A line of JSON per model goes to build/compatibility.jsonl; models that have one are not run
again (--fresh forgets them). --rival also runs PyTorch's two exporters.
"""

import argparse
import contextlib
import copy
import io
import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import sardonyx  # noqa: E402
from benchmarks.compatibility_page import LINES, PAGE, SECONDS, Line, page, read_lines  # noqa: E402
from benchmarks.model_families import FAMILIES, Case, declare_torchvision_operators  # noqa: E402

EAGER_SECONDS = 20


class Disagreement(Exception):
    """The file computes something else."""


class NotRunnable(Exception):
    """ONNX Runtime cannot load or run the file."""


# -- one model, in a process of its own ----------------------------------------------------------


def first_that_runs(cases: Iterable[Case]) -> Case:
    error: Exception | None = None
    cases = iter(cases)
    while True:
        try:
            case = next(cases)
        except StopIteration:
            raise error or RuntimeError("there is no example") from error
        except Exception as problem:
            raise (error or problem) from problem
        try:
            with torch.no_grad():
                case.model(*case.args, **copy.deepcopy(case.kwargs))  # a run writes to caches
        except Exception as problem:
            error = error or problem
        else:
            return case


def export_sardonyx(case: Case) -> None:
    try:
        sardonyx.export(
            case.model,
            case.args,
            kwargs=case.kwargs,
            dynamic_shapes=case.dynamic_shapes,
            verify=True,
        )
    except sardonyx.errors.NotRunnableError as error:
        raise NotRunnable(error.headline) from error
    except sardonyx.errors.VerificationError as error:
        raise Disagreement(error.headline) from error


def export_dynamo(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            case.model,
            case.args,
            path,
            kwargs=case.kwargs,
            dynamic_shapes=case.dynamic_shapes,
            dynamo=True,
            verbose=False,
        )
        compare(case, path)


def export_torchscript(case: Case) -> None:
    """Its dynamic axes are those of tensors; of a list of them it has none to name."""
    dims = case.dynamic_shapes
    if isinstance(dims, dict) and all(name in case.kwargs for name in dims):
        names = list(dims)
    else:
        dims = {f"input{i}": spec for i, spec in enumerate(leaves(dims, dict))}
        names = list(dims)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            case.model,
            case.args,
            path,
            kwargs=case.kwargs,
            input_names=names,
            dynamic_axes=dims,
            dynamo=False,
        )
        compare(case, path)


def leaves(value: Any, kind: type) -> list[Any]:
    """Tensors, or the dims of each, in a structure; a dict of dims has integers as keys."""
    if isinstance(value, kind) and not (kind is dict and any(isinstance(k, str) for k in value)):
        return [value]
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    elif isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "layers"):  # the cache of a transformer
        value = [part for layer in value.layers for part in (layer.keys, layer.values)]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part, kind)]
    return []


def resized(value: Any, dims: Any) -> Any:
    """The example with one more in each dynamic dim: entries from the start again."""
    if isinstance(value, torch.Tensor):
        for dim in dims or ():
            entries = torch.arange(value.shape[dim] + 1) % value.shape[dim]
            value = value.index_select(dim, entries)
        return value
    if isinstance(value, dict):
        return {key: resized(part, dims.get(key)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        specs = list(dims.values()) if isinstance(dims, dict) else dims
        return type(value)(resized(v, d) for v, d in zip(value, specs, strict=True))
    return value


def compare(case: Case, path: Path) -> None:
    """A file against the model at the example and, where the model runs there, other sizes."""
    import onnxruntime

    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(path, options)
    except Exception as error:
        raise NotRunnable(str(error)) from error
    names = [value.name for value in session.get_inputs()]
    dims = case.dynamic_shapes
    examples = [(case.args, case.kwargs)]
    if case.args:
        examples.append((resized(case.args, dims), case.kwargs))
    else:
        examples.append((case.args, resized(case.kwargs, dims)))
    for i, (args, kwargs) in enumerate(examples):
        try:
            with torch.no_grad():
                expected = leaves(case.model(*args, **kwargs), torch.Tensor)
        except Exception:
            if i == 0:
                raise
            continue
        tensors = leaves((args, kwargs), torch.Tensor)
        feeds = {n: kwargs[n] for n in names if n in kwargs} or dict(
            zip(names, tensors, strict=False)
        )
        try:
            got = session.run(None, {name: t.numpy() for name, t in feeds.items()})
        except Exception as error:
            raise NotRunnable(str(error)) from error
        if len(got) != len(expected):
            raise Disagreement(f"{len(got)} outputs, not {len(expected)}")
        for e, g in zip(expected, got, strict=True):
            if tuple(e.shape) != g.shape:
                raise Disagreement("an output has another shape" + " at other sizes" * i)
            if not np.allclose(
                e.float().numpy(), g.astype(np.float32), rtol=1e-3, atol=1e-3, equal_nan=True
            ):
                raise Disagreement("an output has other values" + " at other sizes" * i)


EXPORTERS: dict[str, Callable[[Case], None]] = {
    "sardonyx": export_sardonyx,
    "dynamo": export_dynamo,
    "torchscript": export_torchscript,
}


def attempt(family: str, name: str, exporter: str, results: Connection) -> None:
    """Sends the inputs' names once the model has run; then the outcome, its cause and seconds."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            case = first_that_runs(FAMILIES[family].cases(name))
        except Exception as error:
            results.send(("eager fails", cause(error), 0.0))
            return
        results.send(list(case.kwargs))
        start = time.perf_counter()
        outcome, why = "passed", ""
        try:
            EXPORTERS[exporter](case)
        except Disagreement as error:
            outcome, why = "wrong", str(error)
        except NotRunnable as error:
            outcome, why = "does not run", str(error)
        except Exception as error:
            outcome, why = "refused", cause(error)
        results.send((outcome, why.strip().partition("\n")[0], time.perf_counter() - start))


def cause(error: Exception) -> str:
    message = getattr(error, "headline", None) or str(error)
    first = message.strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"


Attempt = Callable[[str, str, str, Connection], None]


def run_apart(family: str, name: str, exporter: str, target: Attempt = attempt) -> Line:
    """In a forked process: the packages are imported once, and a crash ends that model alone."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=target, args=(family, name, exporter, sender))
    process.start()
    sender.close()
    inputs: tuple[str, ...] = ()
    outcome, why, seconds = "eager fails", f"it takes more than {EAGER_SECONDS} s", 0.0
    try:
        if receiver.poll(EAGER_SECONDS):
            message = receiver.recv()
            if isinstance(message, list):
                inputs = tuple(message)
                outcome, why, seconds = "does not run", f"it takes more than {SECONDS} s", SECONDS
                message = receiver.recv() if receiver.poll(SECONDS) else None
            if message is not None:
                outcome, why, seconds = message
    except EOFError:
        process.join(5)
        code = -(process.exitcode or 0)
        why = f"the process dies ({signal.Signals(code).name if code > 0 else -code})"
    finally:
        process.kill()
        process.join()
        receiver.close()
    return Line(family, name, exporter, outcome, why[:400], round(seconds, 2), inputs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--family", default=",".join(FAMILIES), help="of " + ", ".join(FAMILIES))
    parser.add_argument("--limit", type=int, help="at most so many models of each family")
    parser.add_argument("--rival", action="store_true", help="PyTorch's exporters as well")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no model after so many")
    options = parser.parse_args()
    if options.fresh:
        LINES.unlink(missing_ok=True)
    LINES.parent.mkdir(exist_ok=True)
    prepare()
    end = time.monotonic() + 60 * options.minutes
    done = {(line.family, line.name, line.exporter) for line in read_lines()}
    with LINES.open("a") as stream:
        for family in options.family.split(","):
            names = FAMILIES[family].names()
            random.Random(0).shuffle(names)  # a part of them is a sample
            for name in names[: options.limit]:
                for exporter in EXPORTERS if options.rival else ["sardonyx"]:
                    if (family, name, exporter) in done or time.monotonic() > end:
                        continue
                    line = run_apart(family, name, exporter)
                    print(
                        family, name, exporter, line.outcome, line.seconds, line.cause, flush=True
                    )
                    stream.write(json.dumps(asdict(line)) + "\n")
                    stream.flush()
    PAGE.write_text(page(read_lines()))


def prepare() -> None:
    """Imports before the first fork what every model needs."""
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    declare_torchvision_operators()
    import onnxruntime  # noqa: F401
    import timm  # noqa: F401
    import transformers
    import transformers.modeling_utils

    assert transformers.modeling_utils
    layer = torch.nn.Linear(2, 2)  # an export imports most of Sardonyx, and of PyTorch
    sardonyx.export(layer, (torch.rand(2, 2),), dynamic_shapes=({0: "batch"},))


if __name__ == "__main__":
    main()
