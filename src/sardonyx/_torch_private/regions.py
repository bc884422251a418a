"""Control flow operators."""

from __future__ import annotations

from typing import Any


def higher_order_name(target: Any) -> str:
    return str(getattr(target, "_name", "") or getattr(target, "__name__", ""))
