"""Opset 16 to 15."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import Emitter
from sardonyx.legalize.rewrites.grid_sampling import sample_by_gathering
from sardonyx.legalize.rewrites.scatter import scatter_elements_in_turn, scatter_nd_in_turn

BOUNDARY = Boundary(15)

_OPERATORS = {"add": "Add", "mul": "Mul"}


BOUNDARY.rewrite("GridSample")(sample_by_gathering)
BOUNDARY.rewrite("ScatterElements")(partial(scatter_elements_in_turn, operators=_OPERATORS))
BOUNDARY.rewrite("ScatterND")(partial(scatter_nd_in_turn, operators=_OPERATORS))


@BOUNDARY.rewrite("RoiAlign")
def roi_align(b: Emitter, node: ir.Node) -> ir.Value:
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    if mode != "output_half_pixel":
        raise InexpressibleError("boxes shifted by half a pixel came with opset 16")
    return b.again(coordinate_transformation_mode=None)[0]
