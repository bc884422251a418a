"""statements.md, the list of what the reference states, names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
NAMED = re.compile(r"(test_\w+\.py)::(\w+)")


def test_every_row_has_a_test():
    rows = [
        line
        for line in (HERE / "statements.md").read_text().splitlines()
        if re.match(r"\| \d", line)
    ]
    assert len(rows) > 100
    assert [row for row in rows if not NAMED.search(row.rpartition(" | ")[2])] == []


def test_every_named_test_is_there():
    named = set(NAMED.findall((HERE / "statements.md").read_text()))
    functions = {
        (file.name, node.name)
        for file in HERE.rglob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert named - functions == set()
