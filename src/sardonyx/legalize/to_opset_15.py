"""Opset 16 to 15."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import Emitter
from sardonyx.legalize.grid_sampling import sample_by_gathering
from sardonyx.legalize.scattering import scatter_elements_in_turn, scatter_nd_in_turn

BOUNDARY = Boundary(15)

_OPERATORS = {"add": "Add", "mul": "Mul"}


@BOUNDARY.rewrite("GridSample")
def grid_sample(b: Emitter, node: ir.Node) -> ir.Value:
    return sample_by_gathering(b, node)


@BOUNDARY.rewrite("RoiAlign")
def roi_align(b: Emitter, node: ir.Node) -> ir.Value:
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    if mode != "output_half_pixel":
        raise InexpressibleError("boxes shifted by half a pixel came with opset 16")
    return b.again(coordinate_transformation_mode=None)[0]


@BOUNDARY.rewrite("ScatterElements")
def scatter_elements(b: Emitter, node: ir.Node) -> ir.Value | None:
    return scatter_elements_in_turn(b, node, _OPERATORS)


@BOUNDARY.rewrite("ScatterND")
def scatter_nd(b: Emitter, node: ir.Node) -> ir.Value | None:
    return scatter_nd_in_turn(b, node, _OPERATORS)
