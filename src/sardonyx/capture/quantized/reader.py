"""Calls on quantized tensors, read as integers with scale and zero point beside them.

Neither fake tensors nor ONNX have quantized types. An operator on quantized tensors becomes what
it means: `dequantize`, the operator on real numbers, `quantize`. Models quantized in eager mode
and by PT2E are the same graph from here on; runtimes fuse the three again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import (
    Argument,
    Dim,
    SourceLocation,
    Value,
    operator_name,
)
from sardonyx.aten.pytree import Grid, grid_of
from sardonyx.aten.schema import call_by_name, parameters_of
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.quantized.opaque_calls import (
    KeptCall,
    KeptCalls,
    QuantizedArgument,
    calls_kept,
)
from sardonyx.capture.quantized.operators import FORMS
from sardonyx.capture.quantized.packed_parameters import unpacked_arguments
from sardonyx.capture.quantized.recurrent import quantized_gru, quantized_lstm
from sardonyx.capture.quantized.tensor import (
    MOVES_ELEMENTS,
    PackedParameters,
    QuantizedTensor,
    computed_grids,
    has_computed_grid,
    integers,
    is_static,
    quantized_in,
)
from sardonyx.errors import UnsupportedOperatorError, first_line

aten = torch.ops.aten
LoopBody: TypeAlias = Callable[[Value, list[Value]], tuple[list[Value], list[Value]]]
"""From the number of the iteration and what is carried, what is carried on and what is stacked."""

_RANGES = {
    torch.quint8: (torch.uint8, 0, 255),
    torch.qint8: (torch.int8, -128, 127),
    torch.qint32: (torch.int32, -(2**31), 2**31 - 1),
}
"""The integers of a quantized dtype."""


def _placeholder_grid(place: int, *, other: bool) -> tuple[float, int]:
    """Scale and zero point of examples of tensors whose own are computed, each one's its own."""
    scale, zero_point = (0.375, 20) if other else (0.5, 3)
    return scale * 2.0 ** -(place % 40), zero_point + place // 40


class QuantizedReader:
    """Writes the nodes of operators that take or give quantized tensors."""

    def __init__(
        self,
        emit: Callable[[OpOverload, Sequence[Argument]], list[Value]],
        parameter: Callable[[str, torch.Tensor], Value],
        loop: Callable[[Dim, Sequence[Value], LoopBody], list[Value]],
        example_sizes: Callable[[], dict[sympy.Symbol, int]],
    ) -> None:
        self._emit = emit
        self._parameter = parameter
        self.loop = loop
        """What is carried last, and what was stacked over the iterations."""
        self._example_sizes = example_sizes
        self._location = SourceLocation()
        self._weights: dict[str, tuple[QuantizedTensor | Value, Value | None]] = {}

    def concerns(self, op: OpOverload, arguments: dict[str, Argument]) -> bool:
        return (
            op.namespace == "quantized"
            or op._schema.name in CREATES
            or any(True for _ in quantized_in(list(arguments.values())))
        )

    def read(
        self, op: OpOverload, arguments: dict[str, Argument], location: SourceLocation
    ) -> list[Argument]:
        """The results; quantized ones among them."""
        _torch_private.register_decomposed_quantization()
        self._location = location
        kept = calls_kept()
        if kept is not None and kept.keeps(op):
            if _can_be_kept(op):
                return [self._kept(kept, op, arguments)]
            if op.namespace == "quantized" or op._schema.name in _READS:
                kept.not_kept.setdefault(operator_name(op), location)
        return self._read(op, arguments)

    def _read(self, op: OpOverload, arguments: dict[str, Argument]) -> list[Argument]:
        reads = _READS.get(op._schema.name)
        if reads is not None:
            result = reads(self, **arguments)
            return result if isinstance(result, list) else [result]
        if op.namespace == "quantized":
            return [self._quantized_operator(op, arguments)]
        if op._schema.name in MOVES_ELEMENTS:
            return self._moved(op, arguments)
        return self._computed(op, arguments)

    def constant(self, name: str, tensor: torch.Tensor) -> QuantizedTensor:
        """A quantized tensor that the model holds."""
        return self.on_grid(self._parameter(name, tensor.int_repr()), grid_of(tensor))

    def on_grid(self, integers: Value, grid: Grid) -> QuantizedTensor:
        name, dtype = integers.name, grid.dtype
        if dtype not in _RANGES:
            raise self.refusal(f"{name} is {dtype}, whose integers ONNX has no form for")
        if not isinstance(grid.scale, torch.Tensor):
            return QuantizedTensor(integers, grid.scale, grid.zero_point, dtype)
        scales = self._parameter(f"{name}_scale", grid.scale.float())
        zeros = self._parameter(f"{name}_zero_point", grid.zero_point)
        return QuantizedTensor(integers, scales, zeros, dtype, grid.axis)

    # -- for the tables below --------------------------------------------------------------------

    def call(self, op: OpOverload, *arguments: Argument) -> Any:
        results = self._emit(op, arguments)
        return results[0] if len(results) == 1 else results

    def _value(self, op: OpOverload, *arguments: Argument) -> Value:
        return self._emit(op, arguments)[0]

    def quantize(
        self,
        x: Value,
        scale: float | Value,
        zero_point: int | Value,
        dtype: torch.dtype,
        axis: int | None = None,
    ) -> QuantizedTensor:
        decomposed = torch.ops.quantized_decomposed
        if dtype not in _RANGES:
            raise self.refusal(f"{dtype} has no ONNX form")
        integer, low, high = _RANGES[dtype]
        if isinstance(scale, sympy.Basic) or isinstance(zero_point, sympy.Basic):
            scale = self._part(scale, torch.float32)
            zero_point = self._part(zero_point, torch.int64)
        if axis is not None:
            arguments = (x, scale, zero_point, axis, low, high, integer)
            integers = self.call(decomposed.quantize_per_channel.default, *arguments)
        else:
            packet = decomposed.quantize_per_tensor
            op = packet.tensor if isinstance(scale, Value) else packet.default
            integers = self.call(op, x, scale, zero_point, low, high, integer)
        return QuantizedTensor(integers, scale, zero_point, dtype, axis)

    def real(self, x: Argument) -> Any:
        """The argument with real numbers in place of every quantized tensor in it."""
        if isinstance(x, list):
            return [self.real(item) for item in x]
        if not isinstance(x, QuantizedTensor):
            return x
        decomposed = torch.ops.quantized_decomposed
        integer, low, high = _RANGES[x.dtype]
        if x.axis is not None:
            arguments = (x.integers, x.scale, x.zero_point, x.axis, low, high, integer)
            return self.call(decomposed.dequantize_per_channel.default, *arguments)
        packet = decomposed.dequantize_per_tensor
        op = packet.tensor if isinstance(x.scale, Value) else packet.default
        return self.call(op, x.integers, x.scale, x.zero_point, low, high, integer)

    def quantize_dynamically(
        self, x: Value, dtype: torch.dtype, reduce_range: bool
    ) -> QuantizedTensor:
        """With the scale that the values themselves ask for."""
        integer, low, high = _RANGES[dtype]
        if reduce_range and torch.backends.quantized.engine != "qnnpack":
            low, high = low // 2, high // 2
        choose = torch.ops.quantized_decomposed.choose_qparams.tensor
        scale, zero = self.call(choose, x, low, high, _LEAST_SCALE, integer)
        quantize = torch.ops.quantized_decomposed.quantize_per_tensor.tensor
        integers = self.call(quantize, x, scale, zero, low, high, integer)
        return QuantizedTensor(integers, scale, zero, dtype)

    def unpacked(
        self, packed: PackedParameters, unpack: Callable[[Any], Any]
    ) -> tuple[Value, Value | None]:
        """Weight (as real numbers) and bias."""
        weight, bias = self.held(packed, unpack)
        return self.real(weight), bias

    def held(
        self, packed: PackedParameters, unpack: Callable[[Any], Any]
    ) -> tuple[QuantizedTensor | Value, Value | None]:
        """Weight and bias."""
        if packed.name not in self._weights:
            weight, bias = unpack(packed.content)
            self._weights[packed.name] = (
                self.constant(f"{packed.name}.weight", weight)
                if weight.is_quantized
                else self._parameter(f"{packed.name}.weight", weight),
                None if bias is None else self._parameter(f"{packed.name}.bias", bias.detach()),
            )
        return self._weights[packed.name]

    def zeros(self, name: str, count: int) -> Value:
        return self._parameter(name, torch.zeros(count))

    def table(self, packed: PackedParameters) -> Value:
        """The rows of an embedding, whose zero points are real numbers."""
        integers, scales, zeros = self.held_table(packed)
        return self._value(aten.mul.Tensor, self.call(aten.sub.Tensor, integers, zeros), scales)

    def held_table(self, packed: PackedParameters) -> tuple[Value, Value, Value]:
        """The integers of an embedding, and columns with the scale and zero point of each row."""
        weight = torch.ops.quantized.embedding_bag_unpack(packed.content)
        if weight.dtype != torch.quint8:
            raise self.refusal(f"an embedding of {weight.dtype} has no ONNX form here")
        integers = self._parameter(f"{packed.name}.weight", weight.int_repr())
        scales, zeros = (
            self._parameter(f"{packed.name}.{name}", parameter.float().unsqueeze(1))
            for name, parameter in (
                ("weight_scale", weight.q_per_channel_scales()),
                ("weight_zero_point", weight.q_per_channel_zero_points()),
            )
        )
        return integers, scales, zeros

    # -- kinds of operators ----------------------------------------------------------------------

    def _quantized_operator(self, op: OpOverload, arguments: dict[str, Argument]) -> Argument:
        packet = op._schema.name.removeprefix("quantized::")
        form = FORMS.get(packet)
        rectified = form is None and "_relu" in packet
        if rectified:
            form = FORMS.get(packet.replace("_relu", "", 1))
        if form is None:
            raise self.refusal(f"{operator_name(op)} has no ONNX form")
        result = form(self, arguments)
        if rectified:
            result = self.call(aten.relu.default, result)
        source = next(quantized_in(list(arguments.values())), None)
        if source is None:  # dynamic quantization: real numbers in, real numbers out
            return result
        for scale, zero_point in _RESULT_PARAMETERS:
            if arguments.get(scale) is not None:
                return self.quantize(result, arguments[scale], arguments[zero_point], source.dtype)
        (example,) = self._example_results(op, arguments)
        return self.quantize(result, *self._grid(op, arguments, example), example.dtype)

    def _kept(self, kept: KeptCalls, op: OpOverload, arguments: dict[str, Argument]) -> Argument:
        """One operator for the call. What it means without the caller's function says of what type
        the result is."""
        expected = self._expected(op, arguments)
        packed = {name: self._parts(argument) for name, argument in arguments.items()}
        given = unpacked_arguments(self, op, packed)
        parts = {name: self._parts(argument) for name, argument in given.items()}
        if not isinstance(expected, QuantizedTensor):
            call = KeptCall(op, packed, parts, expected.shape, expected.dtype)
            return self._value(kept.defined(call), *call.operands)
        grid = self._parts(expected)
        for scale, zero_point in _RESULT_PARAMETERS:
            if parts.get(scale) is not None and zero_point in parts:
                parts[zero_point] = grid.zero_point
                if isinstance(parts[scale], sympy.Basic):
                    parts[scale] = grid.scale
                break
        grid = replace(grid, integers=None)
        call = KeptCall(op, packed, parts, expected.shape, grid.dtype, grid)
        return replace(expected, integers=self._value(kept.defined(call), *call.operands))

    def _expected(self, op: OpOverload, arguments: dict[str, Argument]) -> Any:
        try:
            (result,) = self._read(op, arguments)
            return result
        except UnsupportedOperatorError as error:
            if not is_static(list(arguments.values())):
                raise self.refusal(
                    f"{operator_name(op)} has a function, but the sizes of its result are not known"
                    " where those of its arguments are dynamic: export it with fixed ones"
                ) from error
        (example,) = self._example_results(op, arguments)
        if not example.is_quantized:
            return self.call(aten.zeros.default, list(example.shape), example.dtype)
        grid = self._grid(op, arguments, example, is_known=False)
        integers = self.call(aten.zeros.default, list(example.shape), _RANGES[example.dtype][0])
        return QuantizedTensor(integers, *grid, example.dtype)

    def _parts(self, argument: Argument) -> Argument:
        """A quantized tensor as its integers, its scale (float32) and its zero point (of the dtype
        of the integers)."""
        if isinstance(argument, list):
            return [self._parts(item) for item in argument]
        if not isinstance(argument, QuantizedTensor):
            return argument
        dtype = _RANGES[argument.dtype][0]
        scale = self._part(argument.scale, torch.float32)
        zero_point = self._part(argument.zero_point, dtype)
        if argument.axis is None:
            scale, zero_point = self._one(scale), self._one(zero_point)
        return QuantizedArgument(argument.integers, scale, zero_point, dtype, argument.axis)

    def _part(self, part: float | Value | sympy.Basic, dtype: torch.dtype) -> Value:
        if isinstance(part, sympy.Basic):  # a program reads it off a tensor
            return self._value(aten.full.default, [], part, dtype)
        if not isinstance(part, Value):
            constant = torch.tensor(part, dtype=dtype)
            return Value(f"constant_{part}", type_of(constant), constant=constant)
        if part.dtype == dtype:
            return part
        return self._value(aten._to_copy.default, part, dtype)

    def _one(self, part: Value) -> Value:
        """That of a whole tensor without dims, as kernels for quantized tensors take it."""
        return self.call(aten.reshape.default, part, []) if part.shape else part

    def _moved(self, op: OpOverload, arguments: dict[str, Argument]) -> list[Argument]:
        """The elements stay what they are: so do their integers."""
        source = next(quantized_in(list(arguments.values())))
        if source.axis is not None and op._schema.name not in _KEEPS_AXES:
            raise self.refusal(f"{operator_name(op)} of a tensor quantized per channel")
        results = self._emit(op, [integers(a) for a in arguments.values()])
        return [replace(source, integers=integers) for integers in results]

    def _computed(self, op: OpOverload, arguments: dict[str, Argument]) -> list[Argument]:
        examples = self._example_results(op, arguments)
        reals = {name: self.real(a) for name, a in arguments.items()}
        results = self._emit(op, list(reals.values()))
        for parameter in parameters_of(op):
            target = arguments[parameter.name]
            if parameter.is_written and isinstance(target, QuantizedTensor):
                grid = (target.scale, target.zero_point, target.dtype, target.axis)
                written = self.quantize(reals[parameter.name], *grid)
                self.call(aten.copy_.default, target.integers, written.integers)
        if op._schema.is_mutable and isinstance(arguments.get("self"), QuantizedTensor):
            return [arguments["self"] for _ in results]
        return [
            self.quantize(result, *self._grid(op, arguments, example, place), example.dtype)
            if example.is_quantized
            else result
            for place, (result, example) in enumerate(zip(results, examples, strict=True))
        ]

    def _grid(
        self,
        op: OpOverload,
        arguments: dict[str, Argument],
        example: torch.Tensor,
        place: int = 0,
        *,
        is_known: bool = True,
    ) -> tuple[float | Value, int | Value]:
        """The scale and zero point that PyTorch chose for a result of the example. Where some of
        the arguments' are computed, or the operator is not known, another example shows whether
        they are an argument's, or the same for all."""
        computed = computed_grids(arguments)
        grid = self._parameters(example)
        if is_known and not computed:
            return grid
        compared = self._parameters(self._example_results(op, arguments, other=True)[place])
        if grid == compared:
            return grid
        for place, (scale, zero_point) in enumerate(computed):
            if grid == _placeholder_grid(place, other=False) and compared == _placeholder_grid(
                place, other=True
            ):
                return scale, zero_point
        on = "one that is computed" if computed else "values"
        raise self.refusal(f"the scale of its result depends on {on}")

    def _parameters(self, example: torch.Tensor) -> tuple[float, int]:
        if example.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            raise self.refusal("its result is quantized per channel")
        return example.q_scale(), example.q_zero_point()

    def _example_results(
        self, op: OpOverload, arguments: dict[str, Argument], *, other: bool = False
    ) -> list[torch.Tensor]:
        """What the operator gives for zeros, or for `other` values: ones."""
        sizes = self._example_sizes()
        computed = computed_grids(arguments)

        def example(argument: Argument) -> Any:
            if isinstance(argument, list):
                return [example(item) for item in argument]
            if isinstance(argument, sympy.Expr):
                return int(argument.xreplace(sizes))
            if isinstance(argument, QuantizedTensor):
                if argument.axis is not None:
                    raise self.refusal(f"{operator_name(op)} of a tensor quantized per channel")
                scale: Any = argument.scale
                zero: Any = argument.zero_point
                if has_computed_grid(argument):
                    scale, zero = _placeholder_grid(computed.index((scale, zero)), other=other)
                values = torch.full([example(d) for d in argument.shape], float(other))
                return torch.quantize_per_tensor(values, scale, zero, argument.dtype)
            if isinstance(argument, Value):
                shape = [example(d) for d in argument.shape]
                ones = other and argument.dtype.is_floating_point
                return torch.full(shape, int(ones), dtype=argument.dtype)
            return argument.content if isinstance(argument, PackedParameters) else argument

        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that quantized tensors are deprecated
                given = {name: example(a) for name, a in arguments.items()}
                result = call_by_name(op, given)
        except (RuntimeError, NotImplementedError) as error:
            raise self.refusal(
                f"{operator_name(op)} cannot be run on a quantized tensor: {first_line(error)}"
            ) from error
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        return [r for r in results if isinstance(r, torch.Tensor)]

    def refusal(self, reason: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(reason, [("first", self._location.describe())])


_LEAST_SCALE = 6.1e-5
"""PyTorch's kernels choose no smaller one."""
_RESULT_PARAMETERS = (
    ("output_scale", "output_zero_point"),
    ("Y_scale_i", "Y_zero_point_i"),
    ("scale", "zero_point"),
)
"""The names of the arguments that set the scale and zero point of a result."""


def _can_be_kept(op: OpOverload) -> bool:
    """Whether it is of quantized tensors, gives one tensor, and writes none."""
    schema = op._schema
    is_theirs = op.namespace == "quantized" or schema.name in _CONVERTS
    gives = [str(r.type) for r in schema.returns]
    return is_theirs and gives == ["Tensor"] and not schema.is_mutable


_KEEPS_AXES = frozenset(f"aten::{name}" for name in ("alias", "clone", "contiguous", "detach"))


# -- between real numbers, integers and quantized tensors --------------------------------------


def _quantize_per_tensor(r: QuantizedReader, dtype: torch.dtype, **a: Argument) -> Argument:
    if "tensors" not in a:
        return r.quantize(a["self"], a["scale"], a["zero_point"], dtype)
    made = []
    for place, x in enumerate(a["tensors"]):
        scale, zero_point = (
            r.call(aten.select.int, a[name], 0, place) for name in ("scales", "zero_points")
        )
        made.append(r.quantize(x, scale, zero_point, dtype))
    return made


def _of_integers(
    reader: QuantizedReader,
    *,
    self: Value,
    scale: float | Value,
    zero_point: int | Value,
    axis: int | None = None,
) -> QuantizedTensor:
    integers = reader.call(aten.clone.default, self)
    return QuantizedTensor(integers, scale, zero_point, _QUANTIZED[self.dtype], axis)


_QUANTIZED = {integer: quantized for quantized, (integer, _, _) in _RANGES.items()}
_READS: dict[str, Callable[..., Argument]] = {
    "aten::quantize_per_tensor": _quantize_per_tensor,
    "aten::quantize_per_channel": lambda r, self, scales, zero_points, axis, dtype: r.quantize(
        self, scales, zero_points, dtype, axis
    ),
    "aten::quantize_per_tensor_dynamic": lambda r, self, dtype, reduce_range: (
        r.quantize_dynamically(self, dtype, reduce_range)
    ),
    "aten::_make_per_tensor_quantized_tensor": _of_integers,
    "aten::_make_per_channel_quantized_tensor": _of_integers,
    "aten::quantized_lstm": quantized_lstm,
    "aten::quantized_gru": quantized_gru,
    "aten::dequantize": lambda r, **a: r.real(next(x for x in a.values() if x is not None)),
    "aten::int_repr": lambda r, self: r.call(aten.clone.default, self.integers),
    "aten::q_scale": lambda r, self: self.scale,
    "aten::q_zero_point": lambda r, self: self.zero_point,
    "aten::q_per_channel_scales": lambda r, self: self.scale,
    "aten::q_per_channel_zero_points": lambda r, self: self.zero_point,
    "aten::q_per_channel_axis": lambda r, self: self.axis,
}
CREATES = frozenset(name for name in _READS if name.startswith(("aten::quantize", "aten::_make")))
_CONVERTS = CREATES | {"aten::dequantize"}
"""Operators of PyTorch that give or take quantized tensors and are in no other graphs."""
