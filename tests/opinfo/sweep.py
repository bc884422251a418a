"""The whole sweep: every entry, dtype and capture, in processes that may die.

python -m tests.opinfo.sweep --dtypes float32,int64,bool --captures export,trace
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.opinfo.entries import CAPTURES, CORE_DTYPES, DTYPES, all_entries
from tests.opinfo.outcome import PASSED, UNSET, Outcome, outcomes

Task = tuple[str, str, str]
"""Entry, dtype and capture."""
Result = dict[str, Any]
_TASKS_A_PROCESS = 200


def tasks(pattern: str, dtypes: Iterable[str], captures: Iterable[str]) -> Iterator[Task]:
    for name, entry in all_entries().items():
        if re.search(pattern, name):
            for dtype in dtypes:
                if dtype in entry.dtypes:
                    for capture in captures:
                        yield name, dtype, capture


def run_task(task: Task) -> list[Outcome]:
    name, dtype, capture = task
    entry = all_entries()[name]
    with _seeds_of_the_cpu_alone():
        calls, fresh = entry.calls(dtype), entry.calls(dtype, seed=1)
        if len(fresh) != len(calls):
            fresh = calls
        return outcomes(calls, fresh, capture, unset=name.split(".")[0] in UNSET)


@contextlib.contextmanager
def _seeds_of_the_cpu_alone() -> Iterator[None]:
    """torch.manual_seed queues the seed for each accelerator, with the stack as text: under pytest
    that took most of the time of a sample."""
    with contextlib.ExitStack() as patches:
        for device in (torch.cuda, torch.xpu, torch.mtia):
            patches.enter_context(mock.patch.object(device, "_is_in_bad_fork", lambda: True))
        yield


def work(given: list[Task], path: Path) -> None:
    torch.set_num_threads(1)
    with path.open("a") as file:
        for task in given:
            found = [asdict(outcome) for outcome in run_task(task)]
            file.write(json.dumps({"task": task, "samples": found}) + "\n")
            file.flush()


def supervised(given: list[Task], path: Path) -> list[Result]:
    """Runs the tasks in a process; one that dies is noted against the task it died of."""
    results: list[Result] = []
    while given:
        path.unlink(missing_ok=True)
        listed = path.with_suffix(".tasks")
        listed.write_text(json.dumps(given))
        command = [sys.executable, "-m", "tests.opinfo.sweep", "--worker", str(listed), str(path)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = path.read_text().splitlines() if path.exists() else []
        results += map(json.loads, lines)
        given = given[len(lines) :]
        if given and process.returncode != 0:
            last = (process.stderr.strip().splitlines() or [""])[-1]
            reason = f"exit status {process.returncode}: {last[:160]}"
            dead = asdict(Outcome("failed", reason))
            results.append({"task": given[0], "samples": [dead]})
            given = given[1:]
    return results


def sweep(given: list[Task], folder: Path, processes: int) -> list[Result]:
    folder.mkdir(parents=True, exist_ok=True)
    # A fresh process now and then; starting one takes as long as several tasks.
    count = max(processes, len(given) // _TASKS_A_PROCESS)
    shares = [given[i::count] for i in range(count)]
    with ThreadPoolExecutor(processes) as pool:
        paths = [folder / f"opinfo-{i}.jsonl" for i in range(len(shares))]
        found = [r for rs in pool.map(supervised, shares, paths) for r in rs]
    order = {tuple(task): i for i, task in enumerate(given)}
    return sorted(found, key=lambda r: order[tuple(r["task"])])


def _title(result: Result) -> str:
    """A module in training and in evaluation is one entry."""
    return str(result["task"][0]).removesuffix(".train")


def summary(results: list[Result]) -> str:
    lines = []
    for capture in CAPTURES:
        chosen = [r for r in results if r["task"][2] == capture]
        states = Counter(s["state"] for r in chosen for s in r["samples"])
        failing = {_title(r) for r in chosen if any(s["state"] != PASSED for s in r["samples"])}
        names = {_title(r) for r in chosen if r["samples"]}
        kinds: dict[str, list[bool]] = {}
        for name in names:
            kind = "operators" if all_entries()[name].kind == "op" else "modules and higher-order"
            kinds.setdefault(kind, []).append(name not in failing)
        entries = ", ".join(f"{sum(v)} of {len(v)} {k}" for k, v in sorted(kinds.items()))
        total = sum(states.values())
        share = f"{states[PASSED]} of {total} samples ({states[PASSED] / max(total, 1):.1%})"
        lines.append(f"{capture}: {share}; fully: {entries}; {dict(states)}")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work([tuple(t) for t in json.loads(Path(sys.argv[2]).read_text())], Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", default="", help="a regular expression")
    parser.add_argument("--dtypes", default=",".join(CORE_DTYPES), help="names, or all")
    parser.add_argument("--captures", default=",".join(CAPTURES))
    parser.add_argument("-j", "--processes", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/opinfo.jsonl"))
    parser.add_argument("-v", "--verbose", action="store_true", help="print what does not pass")
    options = parser.parse_args()
    dtypes = list(DTYPES) if options.dtypes == "all" else options.dtypes.split(",")
    given = list(tasks(options.entries, dtypes, options.captures.split(",")))
    folder = options.output.with_suffix("")
    results = sweep(given, folder, options.processes)
    options.output.write_text("".join(json.dumps(r) + "\n" for r in results))
    if options.verbose:
        for result in results:
            for sample in result["samples"]:
                if sample["state"] != PASSED:
                    print(*result["task"], sample["state"], sample["reason"])
    print(summary(results))


if __name__ == "__main__":
    main()
