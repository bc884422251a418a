"""Opset 25 to 24."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary
from sardonyx.legalize.emitter import Emitter
from sardonyx.legalize.rewrites.attention import decompose_attention

BOUNDARY = Boundary(24)


@BOUNDARY.rewrite("Attention")
def attention(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    windows = ("left_window_size", "right_window_size")
    if all(node.attributes.get_int(name, -1) == -1 for name in windows):
        return None
    return decompose_attention(b, node)
