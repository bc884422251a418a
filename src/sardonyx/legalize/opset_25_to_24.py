"""Opset 25 to 24."""

from __future__ import annotations

from sardonyx.legalize.boundary import Boundary

BOUNDARY = Boundary(24, functions=["Attention"])
