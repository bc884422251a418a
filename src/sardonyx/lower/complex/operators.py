"""ONNX's operators on complex tensors, written as operators on their parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from sardonyx.errors import InternalError
from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder, Input
from sardonyx.lower.complex import arithmetic
from sardonyx.lower.complex.values import COMPLEX_OPERATORS, ComplexTensor, real_part, whole
from sardonyx.lower.values import Scalar, Tensor

# -- each part goes its own way --------------------------------------------------------------------

_PARTWISE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "Col2Im", "Compress", "CumSum", "DepthToSpace", "Expand", "Gather", "GatherElements",
            "GatherND", "Identity", "Neg", "ReduceMean", "ReduceSum", "Reshape", "Slice", "Split",
            "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
        ),
        (0,),
    ),
    **dict.fromkeys(("Pad", "ScatterElements", "ScatterND"), (0, 2)),
    "Where": (1, 2),
    "Concat": (),
}  # fmt: skip
"""Which inputs hold values of the result; () is all of them."""


def _partwise(
    name: str,
    content: tuple[int, ...],
    b: Builder,
    *inputs: Input,
    outputs: int | None = None,
    **attributes: Any,
) -> Tensor | tuple[Tensor, ...]:
    if attributes.get("reduction") not in (None, "none", "add"):
        raise InternalError(f"{name} of complex numbers cannot {attributes['reduction']}")

    def written(part: Callable[[Builder, Input], Input]) -> Tensor | tuple[Tensor, ...]:
        taken = (
            part(b, item) if not content or position in content else item
            for position, item in enumerate(inputs)
        )
        return b.op(name, *taken, outputs=outputs, **attributes)

    real, imag = written(_real), written(_imag)
    if isinstance(real, Tensor) and isinstance(imag, Tensor):
        return ComplexTensor(real, imag)
    assert isinstance(real, tuple) and isinstance(imag, tuple)
    return tuple(map(ComplexTensor, real, imag))


def _real(b: Builder, item: Input) -> Input:
    if isinstance(item, complex):
        return item.real
    return real_part(item) if isinstance(item, Tensor) else item


def _imag(b: Builder, item: Input) -> Input:
    if isinstance(item, (ComplexTensor, complex)):
        return item.imag
    if isinstance(item, Tensor):
        return b.full_like(item, 0)
    return None if item is None else 0


for _name, _content in _PARTWISE.items():
    COMPLEX_OPERATORS[_name] = partial(_partwise, _name, _content)


# -- arithmetic ------------------------------------------------------------------------------------

OfTwo = Callable[[Builder, Tensor, Tensor], Tensor]
OfZ = Callable[[Builder, ComplexTensor], Tensor]


def _of_two(
    function: OfTwo, b: Builder, x: Tensor | Scalar, y: Tensor | Scalar, outputs: None = None
) -> Tensor:
    dtype = type_promotion.result_dtype(x, y).to_complex()
    return function(b, *(b.scalar(item, dtype) for item in (x, y)))


def _bilinear(name: str, b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return arithmetic.bilinear(b, partial(b.op, name), x, y)


def _equal(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    parts = (b.Equal(part(b, x), part(b, y)) for part in (_real, _imag))
    return b.And(*parts)


def _power(b: Builder, base: Tensor, exponent: Tensor) -> Tensor:
    known = _known(exponent)
    if known is not None:
        return arithmetic.power_of_number(b, whole(b, base), known)
    known = _known(base)
    if isinstance(known, float) and known > 0 and isinstance(exponent, ComplexTensor):
        return arithmetic.exp(b, arithmetic.scale(b, exponent, math.log(known)))
    return arithmetic.power(b, base, exponent)


def _known(x: Tensor) -> float | complex | None:
    """The number that a tensor holds, where it is one and known."""
    if isinstance(x, ComplexTensor):
        real, imag = _known(x.real), _known(x.imag)
        return None if real is None or imag is None else complex(real, imag.real)
    return None if x.const is None or x.shape != () else float(x.const)


_OF_TWO: dict[str, OfTwo] = {
    "Add": partial(arithmetic.add_or_subtract, op="Add"),
    "Sub": partial(arithmetic.add_or_subtract, op="Sub"),
    "Mul": partial(_bilinear, "Mul"),
    "MatMul": partial(_bilinear, "MatMul"),
    "Div": arithmetic.divide,
    "Pow": _power,
    "Equal": _equal,
}

for _name, _function in _OF_TWO.items():
    COMPLEX_OPERATORS[_name] = partial(_of_two, _function)


# -- functions of one number -----------------------------------------------------------------------


def _either(name: str, b: Builder, z: ComplexTensor) -> Tensor:
    return b.Or(b.op(name, z.real), b.op(name, z.imag))


def _rotated(function: arithmetic.OfOne, b: Builder, z: ComplexTensor) -> Tensor:
    return arithmetic.rotated(b, function, z)


_OF_ONE: dict[str, OfZ] = {
    "Abs": arithmetic.magnitude,
    "Acos": arithmetic.acos,
    "Acosh": arithmetic.acosh,
    "Asin": arithmetic.asin,
    "Asinh": partial(_rotated, arithmetic.asin),
    "Atan": partial(_rotated, arithmetic.atanh),
    "Atanh": arithmetic.atanh,
    "Cos": arithmetic.cos,
    "Cosh": arithmetic.cosh,
    "Exp": arithmetic.exp,
    "IsInf": partial(_either, "IsInf"),
    "IsNaN": partial(_either, "IsNaN"),
    "Log": arithmetic.log,
    "Reciprocal": arithmetic.reciprocal,
    "Sigmoid": arithmetic.sigmoid,
    "Sign": arithmetic.sign,
    "Sin": partial(_rotated, arithmetic.sinh),
    "Sinh": arithmetic.sinh,
    "Sqrt": arithmetic.sqrt,
    "Tan": partial(_rotated, arithmetic.tanh),
    "Tanh": arithmetic.tanh,
}


def _of_one(function: OfZ, b: Builder, z: ComplexTensor, outputs: None = None) -> Tensor:
    return function(b, z)


for _name, _of_z in _OF_ONE.items():
    COMPLEX_OPERATORS[_name] = partial(_of_one, _of_z)


# -- of many numbers -------------------------------------------------------------------------------


def _of(
    name: str,
    taken: OfZ,
    b: Builder,
    z: ComplexTensor,
    *inputs: Input,
    outputs: None = None,
    **attributes: Any,
) -> Tensor:
    """The operator of something real."""
    result: Tensor = b.op(name, taken(b, z), *inputs, **attributes)
    return result


for _name in ("Shape", "Size"):
    COMPLEX_OPERATORS[_name] = partial(_of, _name, lambda b, z: z.real)
for _name in ("ReduceL1", "ReduceL2"):
    COMPLEX_OPERATORS[_name] = partial(_of, _name, arithmetic.magnitude)


def _product(
    name: str, name_of_sum: str, b: Builder, z: ComplexTensor, *inputs: Input, **attributes: Any
) -> Tensor:
    """Lengths are multiplied and angles added: nothing is lost where a factor is zero."""
    length = _of(name, arithmetic.magnitude, b, z, *inputs, **attributes)
    angle = _of(name_of_sum, arithmetic.phase, b, z, *inputs, **attributes)
    return arithmetic.polar(b, length, angle)


COMPLEX_OPERATORS["ReduceProd"] = partial(_product, "ReduceProd", "ReduceSum")
COMPLEX_OPERATORS["CumProd"] = partial(_product, "CumProd", "CumSum")
