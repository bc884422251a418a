"""The shape of what an ONNX node gives, with symbolic dims, from the shapes it takes.

Rules for the operators whose results our lowerings look at; every other operator falls back to
onnx's own inference, which knows numbers but not our expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import onnx
import onnx.shape_inference
import onnx_ir as ir
import sympy
import torch

from sardonyx.aten.storage import array_of
from sardonyx.lower.onnx_types.schemas import NEWEST_OPSET, OpSchema, onnx_dtype
from sardonyx.lower.values import Dim, Tensor, plain, product_of

Shape: TypeAlias = tuple[Dim | None, ...] | None
Inputs: TypeAlias = Sequence[Tensor | None]
Attributes: TypeAlias = dict[str, Any]


def broadcast_shapes(*shapes: Shape) -> Shape:
    known = [s for s in shapes if s is not None]
    if len(known) < len(shapes):
        return None
    rank = max((len(s) for s in known), default=0)
    return tuple(
        _broadcast_dims([s[axis - rank] for s in known if axis - rank >= -len(s)])
        for axis in range(rank)
    )


def _broadcast_dims(dims: list[Dim | None]) -> Dim | None:
    others = [d for d in dims if not (isinstance(d, int) and d == 1)]
    if not others:
        return 1
    numbers = [d for d in others if isinstance(d, int)]
    if numbers:
        return numbers[0]
    first = others[0]
    return first if all(d == first for d in others) else None


def _shape_of(inputs: Inputs, position: int) -> Shape:
    tensor = inputs[position]
    assert tensor is not None
    return tensor.shape


def _int_constant(tensor: Tensor | None) -> list[int] | None:
    if tensor is None or tensor.const is None:
        return None
    return [int(v) for v in tensor.const.reshape(-1).tolist()]


def _same(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    return [_shape_of(inputs, 0)]


def _broadcast(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    return [broadcast_shapes(*(i.shape for i in inputs if i is not None))]


def _transpose(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    shape = _shape_of(inputs, 0)
    if shape is None:
        return [None]
    perm = attributes.get("perm") or list(reversed(range(len(shape))))
    return [tuple(shape[p] for p in perm)]


def _matmul(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    left, right = _shape_of(inputs, 0), _shape_of(inputs, 1)
    if left is None or right is None or not left or not right:
        return [None]
    if len(left) == 1 and len(right) == 1:
        return [()]
    if len(left) == 1:
        return [(*right[:-2], right[-1])]
    if len(right) == 1:
        return [left[:-1]]
    batch = broadcast_shapes(left[:-2], right[:-2])
    return [None if batch is None else (*batch, left[-2], right[-1])]


def _concat(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    shapes = [i.shape for i in inputs if i is not None]
    if any(s is None for s in shapes):
        return [None]
    known = [s for s in shapes if s is not None]
    axis = attributes["axis"] % len(known[0])
    sizes = [s[axis] for s in known]
    total: Dim = sum(s for s in sizes if s is not None)
    joined = None if None in sizes else plain(total)
    return [(*known[0][:axis], joined, *known[0][axis + 1 :])]


def _unsqueeze(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    axes, shape = _int_constant(inputs[1]), _shape_of(inputs, 0)
    if axes is None or shape is None:
        return [None]
    rank = len(shape) + len(axes)
    places = {a % rank for a in axes}
    rest = iter(shape)
    return [tuple(1 if axis in places else next(rest) for axis in range(rank))]


def _squeeze(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    shape = _shape_of(inputs, 0)
    axes = _int_constant(inputs[1]) if len(inputs) > 1 else None
    if shape is None or axes is None:
        return [None]
    places = {a % len(shape) for a in axes}
    return [tuple(d for axis, d in enumerate(shape) if axis not in places)]


def _gather(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    data, indices = _shape_of(inputs, 0), _shape_of(inputs, 1)
    if data is None or indices is None:
        return [None]
    axis = attributes.get("axis", 0) % max(len(data), 1)
    return [(*data[:axis], *indices, *data[axis + 1 :])]


def _expand(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    target, shape = _int_constant(inputs[1]), _shape_of(inputs, 0)
    if shape is None:
        return [None]
    if target is None:
        known = None if inputs[1] is None else inputs[1].static_shape
        return [None if known is None else (None,) * max(known[0], len(shape))]
    return [broadcast_shapes(shape, tuple(target))]


def _reshape(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    target, shape = _int_constant(inputs[1]), _shape_of(inputs, 0)
    if target is None:
        known = None if inputs[1] is None else inputs[1].static_shape
        return [None if known is None else (None,) * known[0]]
    keep_zero = bool(attributes.get("allowzero", 0))
    dims: list[Dim | None] = []
    for axis, size in enumerate(target):
        if size == 0 and not keep_zero:
            dims.append(None if shape is None or axis >= len(shape) else shape[axis])
        else:
            dims.append(None if size == -1 else size)
    known_dims = [d for d in dims if d is not None]
    if -1 in target and shape is not None and len(known_dims) == len(dims) - 1:
        sizes = [d for d in shape if d is not None]
        rest = product_of(known_dims)
        if len(sizes) == len(shape) and rest != 0:
            quotient = sympy.sympify(product_of(sizes)) / rest
            if quotient.is_integer:
                dims[target.index(-1)] = plain(quotient)
    return [tuple(dims)]


def _size_of_shape(inputs: Inputs, attributes: Attributes) -> list[Shape]:
    shape = _shape_of(inputs, 0)
    if shape is None:
        return [(None,)]
    return [(len(shape[slice(attributes.get("start", 0), attributes.get("end"))]),)]


_UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Clip Cos Cosh CumSum
CumProd Elu Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Log
LogSoftmax Mish Neg Not Reciprocal Relu Round ScatterElements ScatterND Selu Shrink Sigmoid Sign
Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu ReverseSequence
RMSNormalization InstanceNormalization GroupNormalization LayerNormalization LpNormalization
BitCast"""
_BINARY = """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual
Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor"""

_RULES: dict[str, Callable[[Inputs, Attributes], list[Shape]]] = {
    **dict.fromkeys(_UNARY.split(), _same),
    **dict.fromkeys(_BINARY.split(), _broadcast),
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "MatMul": _matmul,
    "Reshape": _reshape,
    "Shape": _size_of_shape,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


_READABLE = (torch.int64, torch.int32, torch.float32)
"""The dtypes of inputs whose values decide a shape (sizes, pads, scales)."""
MOST_SHAPE_DATA = 64
"""Elements of such an input."""


def output_shapes(
    schema: OpSchema, inputs: Inputs, attributes: Attributes, count: int, node: ir.Node
) -> list[Shape]:
    rule = _RULES.get(schema.name)
    if rule is None:
        return _inferred_by_onnx(schema, inputs, node, count)
    shapes = rule(inputs, attributes)
    return [*shapes[:count], *[None] * (count - len(shapes))]


def _inferred_by_onnx(schema: OpSchema, inputs: Inputs, node: ir.Node, count: int) -> list[Shape]:
    if any(t is not None and t.is_sequence for t in inputs):
        return [None] * count
    names: dict[str, Dim] = {}
    types = [None if t is None else tensor_type(t.dtype, t.shape, names) for t in inputs]
    data = [None if t is None else shape_data(t.const) for t in inputs]
    found = inferred_types(schema, node, types, data, NEWEST_OPSET) or [None] * count
    return [None if type_ is None else dims_of_type(type_, names) for type_ in found]


def inferred_types(
    schema: OpSchema,
    node: ir.Node,
    types: Sequence[onnx.TypeProto | None],
    data: Sequence[onnx.TensorProto | None],
    opset: int,
) -> list[onnx.TypeProto | None] | None:
    """What onnx's own inference says of the node's results; None where it fails, or they follow
    from bodies. `types` and `data` are those of the inputs, None for what is left out or not known.
    """
    attributes = list(node.attributes.values())
    if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in attributes):
        return None
    proto = onnx.NodeProto(op_type=schema.name)
    proto.attribute.extend(ir.serde.serialize_attribute(a) for a in attributes)
    proto.input.extend("" if t is None else f"i{k}" for k, t in enumerate(types))
    proto.output.extend(f"o{k}" for k in range(len(node.outputs)))
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema.raw,
            proto,
            {f"i{k}": t for k, t in enumerate(types) if t is not None},
            {f"i{k}": tensor for k, tensor in enumerate(data) if tensor is not None},
            opset_imports=[onnx.helper.make_opsetid("", opset)],
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return None
    return [found.get(name) for name in proto.output]


def shape_data(constant: torch.Tensor | None) -> onnx.TensorProto | None:
    """A constant as the inference reads it, if shapes may follow from it."""
    if constant is None or constant.dtype not in _READABLE or constant.numel() > MOST_SHAPE_DATA:
        return None
    return onnx.numpy_helper.from_array(array_of(constant.cpu()))


def tensor_type(dtype: torch.dtype, shape: Shape, names: dict[str, Dim]) -> onnx.TypeProto:
    """As onnx writes it; `names` keeps what the names of its symbolic dims stand for."""
    sizes = None
    if shape is not None:
        names.update({str(dim): dim for dim in shape if isinstance(dim, sympy.Expr)})
        sizes = [str(dim) if isinstance(dim, sympy.Expr) else dim for dim in shape]
    return onnx.helper.make_tensor_type_proto(onnx_dtype(dtype), sizes)


def dims_of_type(type_: onnx.TypeProto, names: Mapping[str, Dim]) -> Shape:
    if not type_.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else names.get(dim.dim_param)
        for dim in type_.tensor_type.shape.dim
    )
