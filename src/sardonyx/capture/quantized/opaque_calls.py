"""Calls on quantized tensors that stay whole, for functions of the caller's to write.

Neither fake tensors nor ONNX have quantized types: the operator that stands for a call in the graph
takes integers, scales and zero points apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import Argument, Dim, Value
from sardonyx.capture.opaque_calls import KeptCall
from sardonyx.capture.quantized.tensor import PackedParameters


@dataclass(frozen=True, slots=True)
class QuantizedArgument:
    """A quantized tensor of a call, each part a tensor: (integers - zero_point) * scale."""

    integers: Any
    scale: Any
    zero_point: Any
    dtype: torch.dtype
    """Of the integers."""
    axis: int | None = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tuple that stands for it, the axis last where it is quantized per channel."""
        axis = () if self.axis is None else (self.axis,)
        return (self.integers, self.scale, self.zero_point, *axis)

    def __str__(self) -> str:
        told = self.integers.type if isinstance(self.integers, Value) else self.integers
        return f"quantized {told}"

    def mapped(self, of_part: Callable[[Any], Any]) -> QuantizedArgument:
        integers, scale, zero_point = map(of_part, self.parts[:3])
        return replace(self, integers=integers, scale=scale, zero_point=zero_point)


class KeptQuantizedCall(KeptCall):
    def __init__(
        self,
        op: OpOverload,
        packed: Mapping[str, Argument],
        arguments: Mapping[str, Argument],
        size: Sequence[Dim],
        dtype: torch.dtype,
        grid: QuantizedArgument | None = None,
    ) -> None:
        """`packed` are the arguments that the model gives, `arguments` those with what packed
        parameters hold in their place. `size` and `dtype` are those of what the graph holds of the
        result: of its integers, if it is quantized; then `grid` has its scale and zero point."""
        super().__init__(op, arguments)
        self._packed = self._all_apart(packed)
        self._dtype = dtype
        self._grid = self._apart(grid, "result")
        self._operand(list(size), "SymInt[]", "result_size")

    @property
    def key(self) -> str:
        return f"{super().key}{self._packed}{self._dtype}{self._grid}"

    def run(self, *operands: Any) -> Any:
        by_name = self._by_name(operands)
        given = {name: self._together(a, by_name) for name, a in self._packed.items()}
        result = self._call({name: _as_pytorch_has_it(a) for name, a in given.items()})
        return result.int_repr() if result.is_quantized else result

    def run_on_fakes(self, *operands: Any) -> Any:
        return torch.empty(operands[-1], dtype=self._dtype)

    def grid(self, operands: Mapping[str, Any]) -> QuantizedArgument | None:
        """The scale and zero point of the result; None where it is a real number."""
        found: QuantizedArgument | None = self._together(self._grid, operands)
        return found

    def _apart(self, argument: Argument, name: str) -> Any:
        if isinstance(argument, QuantizedArgument):
            names = iter((name, f"{name}_scale", f"{name}_zero_point"))
            return argument.mapped(lambda part: self._apart(part, next(names)))
        return super()._apart(argument, name)

    def _together(self, argument: Any, operands: Mapping[str, Any]) -> Any:
        if isinstance(argument, QuantizedArgument):
            return argument.mapped(lambda part: self._together(part, operands))
        return super()._together(argument, operands)


def _as_pytorch_has_it(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_as_pytorch_has_it(item) for item in argument]
    if isinstance(argument, QuantizedArgument):
        if argument.axis is not None:
            return _quantized_per_channel(argument, argument.axis)
        return _torch_private.quantized_tensor(*argument.parts)
    return argument.content if isinstance(argument, PackedParameters) else argument


def _quantized_per_channel(x: QuantizedArgument, axis: int) -> torch.Tensor:
    sizes = [-1 if place == axis else 1 for place in range(x.integers.dim())]
    real = (x.integers.double() - x.zero_point.view(sizes)) * x.scale.view(sizes)
    dtype = _QUANTIZED[x.dtype]
    return torch.quantize_per_channel(real.float(), x.scale, x.zero_point.long(), axis, dtype)


_QUANTIZED = {
    torch.uint8: torch.quint8,
    torch.int8: torch.qint8,
    torch.int32: torch.qint32,
}
