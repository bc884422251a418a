"""Integer arithmetic on sizes of which some are known numbers and some only have a name.

`KnownInts` is what an int or bool tensor of rank 0 or 1 is known to hold; each rule gives the
`KnownInts` of a node's output from those of its inputs.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from sardonyx.optimize.facts import MAX_KNOWN_ELEMENTS, int_attribute, ints_attribute

Element: TypeAlias = int | str | None
"""A number, the name of a symbolic dim, or unknown."""

_RANGES = {
    ir.DataType.INT64: (-(2**63), 2**63 - 1),
    ir.DataType.INT32: (-(2**31), 2**31 - 1),
    ir.DataType.BOOL: (0, 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class KnownInts:
    dtype: ir.DataType
    elements: tuple[Element, ...]
    is_scalar: bool

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The elements, where all of them are numbers."""
        numbers = tuple(e for e in self.elements if isinstance(e, int))
        return numbers if len(numbers) == len(self.elements) else None


Operands: TypeAlias = list[KnownInts | None]
Rule: TypeAlias = Callable[[ir.Node, Operands], KnownInts | None]


def known_dims(value: ir.Value | None) -> tuple[Element, ...] | None:
    if value is None or value.shape is None:
        return None
    return tuple(dim.value if isinstance(dim, ir.SymbolicDim) else dim for dim in value.shape)


def known_result(node: ir.Node, operands: Operands) -> KnownInts | None:
    """What the node's first output holds, as far as its inputs tell; rank 0 or 1 only."""
    result = RULES[node.op_type](node, operands)
    if result is None or len(result.elements) > MAX_KNOWN_ELEMENTS:
        return None
    low, high = _RANGES[result.dtype]
    in_range = tuple(
        e if not isinstance(e, int) or low <= e <= high else None for e in result.elements
    )
    return dataclasses.replace(result, elements=in_range)


def _shape(node: ir.Node, operands: Operands) -> KnownInts | None:
    dims = known_dims(node.inputs[0])
    start, end = int_attribute(node, "start", 0), node.attributes.get("end")
    if dims is None or start is None or (end is not None and end.is_ref()):
        return None
    picked = dims[slice(start, None if end is None else end.as_int())]
    return KnownInts(ir.DataType.INT64, picked, is_scalar=False)


def _size(node: ir.Node, operands: Operands) -> KnownInts | None:
    dims = known_dims(node.inputs[0])
    if dims is None:
        return None
    return KnownInts(ir.DataType.INT64, (_product(dims),), is_scalar=True)


def _product(elements: tuple[Element, ...]) -> int | None:
    numbers = [e for e in elements if isinstance(e, int)]
    return math.prod(numbers) if len(numbers) == len(elements) else None


def _gather(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, indices = operands
    if data is None or data.is_scalar or indices is None or indices.numbers is None:
        return None
    count = len(data.elements)
    if int_attribute(node, "axis", 0) not in (0, -1):
        return None
    if not all(-count <= index < count for index in indices.numbers):
        return None
    picked = tuple(data.elements[index] for index in indices.numbers)
    return KnownInts(data.dtype, picked, indices.is_scalar)


def _concat(node: ir.Node, operands: Operands) -> KnownInts | None:
    parts = [part for part in operands if part is not None and not part.is_scalar]
    if len(parts) < len(operands) or int_attribute(node, "axis", 0) not in (0, -1):
        return None
    elements = tuple(element for part in parts for element in part.elements)
    return KnownInts(parts[0].dtype, elements, is_scalar=False)


def _axes(node: ir.Node, operands: Operands) -> tuple[int, ...] | None:
    if len(operands) > 1:
        return None if operands[1] is None else operands[1].numbers
    return ints_attribute(node, "axes")


def _unsqueeze(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, axes = operands[0], _axes(node, operands)
    if data is None or not data.is_scalar or axes not in ((0,), (-1,)):
        return None
    return dataclasses.replace(data, is_scalar=False)


def _squeeze(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, axes = operands[0], _axes(node, operands)
    if data is None or data.is_scalar or len(data.elements) != 1 or axes not in ((0,), (-1,)):
        return None
    return dataclasses.replace(data, is_scalar=True)


def _reshape(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, target = operands
    if data is None or target is None or target.numbers is None or len(target.numbers) > 1:
        return None
    return dataclasses.replace(data, is_scalar=not target.numbers)


def _slice(node: ir.Node, operands: Operands) -> KnownInts | None:
    data = operands[0]
    if data is None or data.is_scalar or len(operands) < 3:
        return None
    start, end = _only_number(operands, 1), _only_number(operands, 2)
    axis, step = _only_number(operands, 3, default=0), _only_number(operands, 4, default=1)
    if start is None or end is None or axis not in (0, -1) or not step:
        return None
    return dataclasses.replace(data, elements=data.elements[start:end:step])


def _only_number(operands: Operands, position: int, default: int | None = None) -> int | None:
    if position >= len(operands):
        return default
    operand = operands[position]
    numbers = None if operand is None else operand.numbers
    return None if numbers is None or len(numbers) != 1 else numbers[0]


def _cast(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, to = operands[0], int_attribute(node, "to", 0)
    if data is None or not to:
        return None
    dtype = ir.DataType(to)
    if dtype == ir.DataType.BOOL:
        truths = tuple(int(e != 0) if isinstance(e, int) else None for e in data.elements)
        return KnownInts(dtype, truths, data.is_scalar)
    return dataclasses.replace(data, dtype=dtype) if dtype in _RANGES else None


def _reduce_prod(node: ir.Node, operands: Operands) -> KnownInts | None:
    data, keep_dims = operands[0], int_attribute(node, "keepdims", 1)
    if data is None or data.is_scalar or keep_dims is None:
        return None
    axes_given = len(node.inputs) > 1 or "axes" in node.attributes
    if axes_given and _axes(node, operands) not in ((0,), (-1,)):
        return None
    if not axes_given and int_attribute(node, "noop_with_empty_axes", 0) != 0:
        return None
    return KnownInts(data.dtype, (_product(data.elements),), is_scalar=not keep_dims)


def _where(node: ir.Node, operands: Operands) -> KnownInts | None:
    def choose(condition: int, if_true: int, if_false: int) -> int:
        return if_true if condition else if_false

    return _broadcast(operands, choose, lambda dtypes: dtypes[1])


def _divide(left: int, right: int) -> int | None:
    """Integer Div of ONNX truncates; Python's // floors."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _mod(node: ir.Node, operands: Operands) -> KnownInts | None:
    fmod = int_attribute(node, "fmod", 0)

    def remainder(left: int, right: int) -> int | None:
        if right == 0 or fmod is None:
            return None
        if fmod:
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
        return left % right

    return _broadcast(operands, remainder, lambda dtypes: dtypes[0])


def _broadcast(
    operands: Operands,
    function: Callable[..., int | None],
    result_dtype: Callable[[list[ir.DataType]], ir.DataType],
) -> KnownInts | None:
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands) or not known:
        return None
    count = math.prod({len(operand.elements) for operand in known} - {1})
    if any(len(operand.elements) not in (1, count) for operand in known):
        return None
    rows = zip(
        *(o.elements * count if len(o.elements) == 1 else o.elements for o in known), strict=True
    )
    elements = tuple(
        function(*row) if all(isinstance(element, int) for element in row) else None for row in rows
    )
    dtype = result_dtype([operand.dtype for operand in known])
    return KnownInts(dtype, elements, all(operand.is_scalar for operand in known))


def _elementwise(function: Callable[..., int | None]) -> Rule:
    return lambda node, operands: _broadcast(operands, function, lambda dtypes: dtypes[0])


def _predicate(function: Callable[..., bool]) -> Rule:
    def truth(*numbers: int) -> int:
        return int(function(*numbers))

    return lambda node, operands: _broadcast(operands, truth, lambda _: ir.DataType.BOOL)


RULES: dict[str, Rule] = {
    "Abs": _elementwise(abs),
    "Add": _elementwise(operator.add),
    "And": _predicate(lambda left, right: bool(left and right)),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _elementwise(_divide),
    "Equal": _predicate(operator.eq),
    "Gather": _gather,
    "Greater": _predicate(operator.gt),
    "GreaterOrEqual": _predicate(operator.ge),
    "Less": _predicate(operator.lt),
    "LessOrEqual": _predicate(operator.le),
    "Max": _elementwise(lambda *numbers: max(numbers)),
    "Min": _elementwise(lambda *numbers: min(numbers)),
    "Mod": _mod,
    "Mul": _elementwise(operator.mul),
    "Neg": _elementwise(operator.neg),
    "Not": _predicate(operator.not_),
    "Or": _predicate(lambda left, right: bool(left or right)),
    "ReduceProd": _reduce_prod,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _elementwise(operator.sub),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
