"""What does not pass, and why; strict both ways. `python -m tests.opinfo.gaps` writes it anew.

A gap is a refusal. A wrong number is a bug, and never listed here.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.opinfo.entries import CAPTURES, DTYPES
from tests.opinfo.outcome import PASSED

PATH = Path(__file__).with_name("gaps.toml")
_HEAD = """\
# Every (operator, dtype, capture) of PyTorch's OpInfo, module and higher-order databases that does
# not pass, with the reason. `make opinfo` writes it from a whole sweep; the tests fail when a line
# is missing, and when one is not needed.
"""


@cache
def known_gaps() -> dict[tuple[str, str, str], str]:
    """The reason, by entry, dtype and capture."""
    given = tomllib.loads(PATH.read_text())
    return {
        (name, dtype, capture): gap["reason"]
        for name, gaps in given.items()
        for gap in gaps
        for dtype in gap["dtypes"]
        for capture in gap["captures"]
    }


def written(results: Iterable[dict[str, Any]]) -> str:
    """The file for the results of a sweep."""
    by_reason: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for result in results:
        name, dtype, capture = result["task"]
        failing = [s for s in result["samples"] if s["state"] != PASSED]
        if failing:
            key = (name, _reason(failing[0]))
            by_reason.setdefault(key, set()).add((dtype, capture))
    text = _HEAD
    for (name, reason), pairs in by_reason.items():
        for captures, dtypes in _products(pairs):
            text += f"\n[[{json.dumps(name)}]]\n"
            text += f"dtypes = {json.dumps(dtypes)}\n"
            text += f"captures = {json.dumps(captures)}\n"
            text += f"reason = {json.dumps(reason, ensure_ascii=False)}\n"
    return text


def _products(pairs: set[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """The pairs as few products of captures and dtypes."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for dtype in DTYPES:
        captures = tuple(c for c in CAPTURES if (dtype, c) in pairs)
        if captures:
            groups.setdefault(captures, []).append(dtype)
    return [(list(captures), dtypes) for captures, dtypes in groups.items()]


def _reason(sample: dict[str, str]) -> str:
    state = sample["state"]
    return sample["reason"] if state == "refused" else f"{state}: {sample['reason']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    results = [json.loads(line) for line in parser.parse_args().results.read_text().splitlines()]
    wrong = [r["task"] for r in results if any(s["state"] == "mismatch" for s in r["samples"])]
    PATH.write_text(written(results))
    print(f"wrote {PATH}; wrong numbers, which are no gaps: {wrong or 'none'}")


if __name__ == "__main__":
    main()
