"""docs/compatibility.md, from the lines that benchmarks/compatibility.py writes."""

import importlib.metadata
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.model_families import FAMILIES

ROOT = Path(__file__).resolve().parents[1]
LINES = ROOT / "build/compatibility.jsonl"
PAGE = ROOT / "docs/compatibility.md"
SECONDS = 120
OUTCOMES = ("passed", "refused", "wrong", "does not run", "eager fails")
RIVALS = {"dynamo": "torch.onnx, dynamo=True", "torchscript": "torch.onnx, dynamo=False"}
REASONS = {
    "aimv2": "the model itself: while it is recorded it builds a causal mask, which in eager it"
    " leaves out where there is no padding",
    "afmoe": "its experts' scores are all 0.5 here, and topk of equal numbers is any of them",
    "bit": "5 of 4096 elements by 8e-5, rounding: eager moves by 7e-5 with the weights' last bit",
    "muse_spark": "by 1.3e-4, likely rounding: eager moves by 8e-5 with the weights' last bit",
    **dict.fromkeys(
        ["falcon_h1", "falcon_mamba", "mamba", "inkling2"],
        "with fewer tokens than its convolution is long, where the cache of transformers branches;"
        " a note says so",
    ),
    "led": "whether there is global attention, a branch that data decides",
    "maskrcnn_resnet50_fpn": "masks by 7e-4, likely rounding: eager moves by 6e-4 likewise",
    "fasterrcnn_resnet50_fpn": "one coordinate of 108 by 3.5e-3, likely rounding",
    "fasterrcnn_mobilenet_v3_large_320_fpn": "likely the order of boxes: eager's changes likewise",
}
"""Of outcomes that were looked into."""
HEAD = """\
# Compatibility

Published models, exported with `sardonyx.export(..., verify=True)` and otherwise default options.
Written by `python benchmarks/compatibility.py`, with {versions}.

Models have random weights and, in transformers, tiny configurations made by rule; where the rule
makes no model that runs, the model is listed and not counted. The batch is dynamic, text has a
dynamic sequence, and the images of detectors have dynamic height and width. One-stage detectors
return at most 10 boxes: random weights give many boxes nearly equal scores, and with the default of
300 retinanet counts as wrong, as rounding exchanges neighbours. Models are tried in a random order,
so that a part of a family is a sample of it.

- *Passed*: ONNX Runtime computes what PyTorch does, at the example and at inputs of other sizes.
- *Refused*: an error, and no file.
- *Wrong*: verification finds another result; it raises, so that no file is written here either.
- *Does not run*: ONNX Runtime cannot load or run the file, the process dies, or it takes more than
  {seconds} s.

Where PyTorch's exporters stand beside, their files are compared at the example and at one other
size.

A model keeps its result until it is run again: those that passed were not run after each change. In
decode steps the example has a batch of 2, 2 tokens and a past of 3, all dynamic, and a mask
of past + sequence. With 1 token in the example all but bloom are refused: transformers has code of
its own for one token.
"""


@dataclass(frozen=True)
class Line:
    """What one exporter made of one model."""

    family: str
    name: str
    exporter: str
    outcome: str
    cause: str = ""
    seconds: float = 0.0
    """Of the export and its verification."""
    inputs: tuple[str, ...] = ()
    versions: str = ""
    """Of the packages, where they are not those at the head of the page."""


def read_lines() -> list[Line]:
    if not LINES.exists():
        return []
    return [Line(**json.loads(text)) for text in LINES.read_text().splitlines()]


def general(cause: str) -> str:
    """A cause without what is the model's own: numbers, names in quotes, places."""
    cause = re.sub(r"(disagree) on .*", r"\1", cause.partition(";")[0])
    cause = re.sub(r"'[^']*'|`[^`]*`|\"[^\"]*\"", "_", cause)
    cause = re.sub(r"\b\w*\d[\w.]*\b", "N", cause)
    return cause.replace("|", "\\|").replace("<", "&lt;").strip()[:160]


def page(lines: list[Line]) -> str:
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("torch", "transformers", "timm", "torchvision", "onnxruntime")
    )
    parts = [HEAD.format(versions=versions, seconds=SECONDS)]
    before = earlier_sections()
    for family in [*FAMILIES, "programs"]:
        own = [line for line in lines if line.family == family]
        if own:
            parts.append(programs_section(own) if family == "programs" else section(family, own))
        elif family in before:
            parts.append(before[family])
    return "\n".join(parts)


def earlier_sections() -> dict[str, str]:
    """Of the page as it is: a family that was run elsewhere has no lines here, and keeps them."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {part.partition("\n")[0]: f"## {part}" for part in text.split("\n## ")[1:]}


PROGRAMS = """\
## programs

Functions of other packages that call `torch.onnx.export`, as they are and after
`sardonyx.install()`. Written by `python benchmarks/programs.py`, with {versions}.

Models are small and untrained. What a program hands to `torch.onnx.export` runs in eager with
random values, and with each size that the file calls dynamic doubled, alone and together; the file
that the program leaves is compared with that. In brackets are the sizes that the file has dynamic:
one that names fewer is tested at fewer, and sizes that eager rejects (the height of a ViT) are
skipped. The normalizations of the detectors have statistics of random images, and their
last layers weights that keep scores apart: where scores tie or saturate, boxes that are selected by
`nms=True` differ from eager's with both exporters.

| program | torch.onnx | Sardonyx |
|---|---|---|
"""


def programs_section(lines: list[Line]) -> str:
    cells = {(line.name, line.exporter): line for line in lines}
    versions = dict.fromkeys(v for line in lines for v in line.versions.split(", ") if v)
    rows = []
    for name in dict.fromkeys(line.name for line in lines):
        both = [cells.get((name, exporter)) for exporter in ("torch.onnx", "sardonyx")]
        rows.append(f"| {name} | {' | '.join(map(program_cell, both))} |")
    return PROGRAMS.format(versions=", ".join(sorted(versions))) + "\n".join([*rows, ""])


def program_cell(line: Line | None) -> str:
    if line is None:
        return "not run"
    why = line.cause if line.outcome == "passed" else general(line.cause)
    return f"{line.outcome} ({why})" if why else line.outcome


def section(family: str, lines: list[Line]) -> str:
    ours = sorted((line for line in lines if line.exporter == "sardonyx"), key=lambda x: x.name)
    counts = Counter(line.outcome for line in ours)
    known = len(FAMILIES[family].names())
    run = len(ours) - counts["eager fails"]
    text = [f"## {family}\n"]
    text.append(
        f"{len(ours)} of {known} models were tried, {run} run in eager; "
        f"{counts['passed']} of these {run} pass.\n"
    )
    text += ["| outcome | cause | models |", "|---|---|---|"]
    text.append(f"| passed | | {counts['passed']} |")
    for outcome in OUTCOMES[1:-1]:
        groups: dict[str, list[str]] = {}
        for line in ours:
            if line.outcome == outcome:
                groups.setdefault(general(line.cause), []).append(line.name)
        for why, names in sorted(groups.items(), key=lambda item: -len(item[1])):
            names = [f"{name} ({REASONS[name]})" if name in REASONS else name for name in names]
            text.append(f"| {outcome} | {why} | {len(names)}: {', '.join(names)} |")
    passed = [line.name for line in ours if line.outcome == "passed"]
    inputs = Counter(", ".join(line.inputs) for line in ours if line.inputs)
    if inputs:
        counted = "; ".join(f"{names} ({count})" for names, count in inputs.most_common())
        text.append(f"\nThe inputs that they run with: {counted}.")
    text.append(f"\nPassed: {', '.join(passed)}.\n")
    failing = [line.name for line in ours if line.outcome == "eager fails"]
    if failing:
        text.append(f"Not built, or not run in eager, so not counted: {', '.join(failing)}.\n")
    return "\n".join(text + rivals(lines))


def rivals(lines: list[Line]) -> list[str]:
    """The three exporters on the models that all of them were tried on."""
    by_name: dict[str, dict[str, str]] = {}
    for line in lines:
        by_name.setdefault(line.name, {})[line.exporter] = line.outcome
    shared = [
        outcomes
        for outcomes in by_name.values()
        if len(outcomes) == 1 + len(RIVALS) and "eager fails" not in outcomes.values()
    ]
    if not shared:
        return []
    text = [f"Side by side on {len(shared)} of these models:\n"]
    text += ["| exporter | passed | refused | wrong | does not run |", "|---|---|---|---|---|"]
    for exporter, title in {"sardonyx": "Sardonyx", **RIVALS}.items():
        counts = Counter(outcomes[exporter] for outcomes in shared)
        cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES[:-1])
        text.append(f"| {title} | {cells} |")
    return [*text, ""]
