"""docs/operators.md: every ATen operator with its state per dtype. `make opinfo` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sardonyx.lower.lower import LIBRARY
from tests.opinfo.entries import CAPTURES, DTYPES, Entry, all_entries
from tests.opinfo.gaps import known_gaps

PATH = Path(__file__).parents[2] / "docs" / "operators.md"
_HEAD = """\
# Operators

Made by `make opinfo`; do not edit. A test fails when it is stale.

State by PyTorch's own sample inputs (`op_db`, `module_db`, `hop_db` of torch.testing), run in ONNX
Runtime and compared with PyTorch in dtype, shape and value, by both captures:
● every sample passes · ◐ passes by one capture only, the letter says which (e, t) · ○ refused, with
the reason in `tests/opinfo/gaps.toml` · blank: PyTorch has no sample of this dtype.
"""


def page() -> str:
    entries = all_entries()
    sections = [
        ("Operators", [e for e in entries.values() if e.kind == "op"]),
        ("Modules of torch.nn", [e for e in entries.values() if e.kind == "module"]),
        ("Higher-order operators", [e for e in entries.values() if e.kind == "hop"]),
    ]
    text = _HEAD
    for title, chosen in sections:
        text += f"\n## {title}\n\n| entry | operator | {' | '.join(DTYPES)} |\n"
        text += f"| --- | --- |{' :-: |' * len(DTYPES)}\n"
        for entry in sorted(chosen, key=lambda e: e.name.lower()):
            states = " | ".join(_state(entry, dtype) for dtype in DTYPES)
            text += f"| {entry.name} | {_operator(entry.info)} | {states} |\n"
    named = {_operator(e.info) for e in entries.values()}
    own = (name for name in LIBRARY.names() if _is_ours(name))
    rest = sorted({name.split(".")[0] for name in own} - {n.strip("`") for n in named})
    text += "\n## Other ATen operators with a lowering\n\n"
    text += "Without samples in PyTorch, or under another name there;"
    text += " `tests/lower/ops` has them.\n\n"
    return text + ", ".join(f"`{name}`" for name in rest) + "\n"


def _is_ours(name: str) -> bool:
    """Whether it is no plugin's, which may or may not be loaded."""
    lowering = LIBRARY.get(name)
    return lowering is not None and lowering.function.__module__.startswith("sardonyx.lower.ops.")


def _state(entry: Entry, dtype: str) -> str:
    if dtype not in entry.dtypes:
        return ""
    passing = [c for c in CAPTURES if (entry.name, dtype, c) not in known_gaps()]
    if len(passing) == len(CAPTURES):
        return "●"
    return f"◐ {passing[0][0]}" if passing else "○"


def _operator(info: Any) -> str:
    name = getattr(info, "aten_name", None)
    return f"`aten::{name}`" if name else ""


if __name__ == "__main__":
    PATH.write_text(page())
    print(f"wrote {PATH}")
