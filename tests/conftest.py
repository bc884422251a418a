"""`--sample N`: one test of N from every file, the first of each among them, and all of policy."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample", type=int, default=1, metavar="N", help="run one test of N from every file"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = config.getoption("--sample")
    if every == 1:
        return
    seen: Counter[object] = Counter()
    kept, left = [], []
    for item in items:
        is_left = seen[item.path] % every and item.path.parent.name != "policy"
        (left if is_left else kept).append(item)
        seen[item.path] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = kept
