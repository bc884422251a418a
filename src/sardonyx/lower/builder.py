"""The builder every lowering writes with: `b.CamelCase` is an ONNX operator, `b.lowercase` ours.

It checks each node against `onnx.defs` as it is written, and infers the dtype and, where possible,
the shape of every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, overload

import onnx_ir as ir
import sympy
import torch

from sardonyx.aten.graph import UNKNOWN_LOCATION, SourceLocation, SymbolSource, Value
from sardonyx.aten.storage import bytes_of
from sardonyx.errors import InternalError
from sardonyx.lower import type_promotion
from sardonyx.lower.complex.values import COMPLEX_OPERATORS, ComplexTensor
from sardonyx.lower.onnx_types.attributes import attribute
from sardonyx.lower.onnx_types.schemas import OpSchema, onnx_dtype, op_schema
from sardonyx.lower.onnx_types.shapes import Shape, broadcast_shapes, output_shapes
from sardonyx.lower.provenance import provenance
from sardonyx.lower.registry import Refusal
from sardonyx.lower.size_expressions import SizeArithmetic
from sardonyx.lower.values import ONNX_TO_TORCH, Dim, Scalar, Tensor, product_of
from sardonyx.lower.weights import JoinedTensor, TorchTensor

Input: TypeAlias = Tensor | torch.Tensor | Scalar | Sequence[Dim] | None

_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


class Operator(Protocol):
    """An ONNX operator, as `Builder.op` writes it."""

    @overload
    def __call__(self, *inputs: Input, outputs: None = None, **attributes: Any) -> Tensor: ...
    @overload
    def __call__(self, *inputs: Input, outputs: int, **attributes: Any) -> tuple[Tensor, ...]: ...


class Builder:
    def __init__(
        self,
        symbols: dict[sympy.Symbol, SymbolSource],
        symbol_names: dict[sympy.Symbol, str],
        value_of: Callable[[Value], Tensor],
    ) -> None:
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self.functions: dict[ir.OperatorIdentifier, ir.Function] = {}
        """Functions of the model that nodes call."""
        self.location: SourceLocation = UNKNOWN_LOCATION
        self.notes_calls = False
        """Whether nodes say which calls of modules they belong to."""
        self.sizes = SizeArithmetic(self, symbols, symbol_names, value_of)
        self._constants: dict[tuple[Any, ...], Tensor] = {}
        self._counter = 0

    # -- writing nodes -------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Operator:
        if not name[:1].isupper():
            raise AttributeError(name)
        return cast("Operator", partial(self.op, name))

    @overload
    def op(self, name: str, *inputs: Input, outputs: None = None, **attributes: Any) -> Tensor: ...
    @overload
    def op(
        self, name: str, *inputs: Input, outputs: int, **attributes: Any
    ) -> tuple[Tensor, ...]: ...
    def op(
        self, name: str, *inputs: Input, outputs: int | None = None, **attributes: Any
    ) -> Tensor | tuple[Tensor, ...]:
        """Write one ONNX node; its result, or a tuple of as many as `outputs` says.

        Python numbers take the dtype of the tensor operands they share a type with; a list of
        sizes becomes a 1-D tensor; attributes that are None are left out.
        """
        if any(isinstance(item, (ComplexTensor, complex)) for item in inputs):
            if name not in COMPLEX_OPERATORS:
                raise self.refuse(f"ONNX's {name} has no form for complex numbers")
            return COMPLEX_OPERATORS[name](self, *inputs, outputs=outputs, **attributes)
        schema = op_schema(name)
        tensors = self._as_tensors(schema, _with_axes_from_front(name, inputs))
        attributes = {k: v for k, v in attributes.items() if v is not None}
        count = 1 if outputs is None else outputs
        dtypes = self._check(schema, tensors, attributes, count)
        node = self.node(
            "",
            name,
            [None if t is None else t.value for t in tensors],
            [attribute(schema, k, v) for k, v in attributes.items()],
            count,
        )
        shapes = output_shapes(schema, tensors, attributes, count, node)
        results: list[Tensor] = []
        for value, dtype, shape in zip(node.outputs, dtypes, shapes, strict=True):
            is_sequence = schema.output_formal(len(results)).is_sequence
            results.append(self.declare(Tensor(value, dtype, shape, is_sequence=is_sequence)))
        return results[0] if outputs is None else tuple(results)

    def node(
        self,
        domain: str,
        name: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr],
        outputs: int,
    ) -> ir.Node:
        """A node as it is given, unchecked; its results have names and no types."""
        node = ir.Node(
            domain,
            name,
            inputs,
            attributes,
            num_outputs=outputs,
            metadata_props=self._provenance(),
        )
        self.nodes.append(node)
        for value in node.outputs:
            self._counter += 1
            value.name = f"v{self._counter}"
        return node

    def declare(self, tensor: Tensor) -> Tensor:
        """`tensor`, with its dtype and shape recorded on its ONNX value."""
        if isinstance(tensor, ComplexTensor):
            self.declare(tensor.real)
            self.declare(tensor.imag)
            return tensor
        type_ = ir.TensorType(onnx_dtype(tensor.dtype))
        tensor.value.type = ir.SequenceType(type_) if tensor.is_sequence else type_
        if tensor.shape is not None:
            tensor.value.shape = ir.Shape([self.sizes.dim_name(d) for d in tensor.shape])
        return tensor

    @contextmanager
    def body(self) -> Iterator[list[ir.Node]]:
        """Nodes written meanwhile go to the list it gives: the body of a Loop, a Scan or an If.

        What the outer graph has computed before can be read inside, never the other way round.
        """
        outer = self.nodes, self._constants, self.sizes.computed
        self.nodes, self._constants = [], dict(self._constants)
        self.sizes.computed = dict(self.sizes.computed)
        try:
            yield self.nodes
        finally:
            self.nodes, self._constants, self.sizes.computed = outer

    def refuse(self, reason: str) -> Refusal:
        """For `raise b.refuse("...")`: this use of the operator has no ONNX form."""
        return Refusal(reason)

    def _provenance(self) -> dict[str, str]:
        return provenance(self.location, with_calls=self.notes_calls)

    def _as_tensors(self, schema: OpSchema, inputs: Sequence[Input]) -> list[Tensor | None]:
        if not schema.inputs and inputs:
            raise InternalError(f"{schema.name} takes no inputs")
        by_type = {
            schema.input_formal(position).type_name: tensor.dtype
            for position, tensor in enumerate(inputs)
            if isinstance(tensor, (Tensor, torch.Tensor))
        }
        tensors: list[Tensor | None] = []
        for position, item in enumerate(inputs):
            if item is None or isinstance(item, Tensor):
                tensors.append(item)
                continue
            formal = schema.input_formal(position)
            dtype = by_type.get(formal.type_name)
            if dtype is None and len(formal.dtypes) == 1:
                (dtype,) = formal.dtypes
            if isinstance(item, torch.Tensor):
                tensors.append(self.const(item))
            elif isinstance(item, (list, tuple)):
                tensors.append(self.cast(self.shape(item), dtype or torch.int64))
            else:
                tensors.append(self.scalar(item, dtype))
        while tensors and tensors[-1] is None:
            tensors.pop()
        return tensors

    def _check(
        self,
        schema: OpSchema,
        tensors: Sequence[Tensor | None],
        attributes: dict[str, Any],
        outputs: int,
    ) -> list[torch.dtype]:
        """The dtypes of the results; raises where `onnx.defs` does not know the node's form."""
        if not schema.min_input <= len(tensors) <= schema.max_input:
            raise InternalError(f"{schema.name} got {len(tensors)} inputs")
        for name in attributes:
            if name not in schema.attributes:
                raise InternalError(f"{schema.name} has no attribute {name!r}")
        bound: dict[str, torch.dtype] = {}
        for position, tensor in enumerate(tensors):
            if tensor is None:
                continue
            formal = schema.input_formal(position)
            if tensor.dtype not in formal.dtypes:
                raise InternalError(f"{schema.name} does not take {tensor.dtype} as {formal.name}")
            if formal.variadic and not formal.homogeneous:
                continue
            if bound.setdefault(formal.type_name, tensor.dtype) != tensor.dtype:
                raise InternalError(
                    f"{schema.name}: {formal.name} is {tensor.dtype}, another operand of the same "
                    f"type is {bound[formal.type_name]}"
                )
        return _result_dtypes(schema, bound, attributes, outputs)

    # -- constants and scalars -----------------------------------------------------------------

    def const(self, value: torch.Tensor | Any, dtype: torch.dtype | None = None) -> Tensor:
        """A constant. Equal small constants are one node; a large tensor is not copied."""
        tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)
        if dtype is not None and tensor.dtype != dtype:
            tensor = tensor.to(dtype)
        tensor = tensor.detach()
        if tensor.is_complex():
            tensor = tensor.resolve_conj()
            return ComplexTensor(self.const(tensor.real), self.const(tensor.imag))
        key = None
        if tensor.numel() <= 1024 and tensor.device.type == "cpu":
            key = (tensor.dtype, tuple(tensor.shape), bytes(bytes_of(tensor)))
            if key in self._constants:
                return self._constants[key]
        name = self._constant_name()
        if key is None:
            return self._initializer(TorchTensor(tensor, name), tensor)
        attribute = ir.AttrTensor("value", TorchTensor(tensor, name))
        node = ir.Node("", "Constant", [], [attribute], metadata_props=self._provenance())
        self.nodes.append(node)
        node.outputs[0].name = name
        result = Tensor(node.outputs[0], tensor.dtype, tuple(tensor.shape), tensor)
        self._constants[key] = self.declare(result)
        return result

    def joined(self, parts: Sequence[torch.Tensor], shape: Sequence[int]) -> Tensor:
        """A constant of the parts one after the other, which are not copied."""
        return self._initializer(JoinedTensor(parts, shape, self._constant_name()))

    def _constant_name(self) -> str:
        self._counter += 1
        return f"constant_{self._counter}"

    def _initializer(self, stored: ir.TensorProtocol, known: torch.Tensor | None = None) -> Tensor:
        initializer = ir.Value(name=stored.name, const_value=stored)
        self.initializers.append(initializer)
        shape = stored.shape.numpy() if known is None else known.shape
        return self.declare(Tensor(initializer, ONNX_TO_TORCH[stored.dtype], tuple(shape), known))

    def scalar(self, value: Scalar | Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """A 0-d tensor of a Python scalar, a size expression, or a tensor cast to `dtype`."""
        if isinstance(value, Tensor):
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(value, sympy.Basic):
            if value.free_symbols:
                computed = self.squeeze(self.sizes.materialize(value), [0])
                return computed if dtype is None else self.cast(computed, dtype)
            value = int(value) if value.is_integer else float(value)
        if dtype is None:
            dtype = type_promotion.result_dtype(value)
        if dtype.is_complex and not isinstance(value, complex):
            dtype = dtype.to_real()
        if dtype == torch.bool:
            value = bool(value)
        elif isinstance(value, (int, float)) and dtype.is_floating_point:
            value = float(value)
        elif isinstance(value, float) and not dtype.is_complex:
            value = int(value)
        if isinstance(value, int):  # one out of range wraps, as in PyTorch's arithmetic
            return self.const(torch.tensor(value).to(dtype))
        return self.const(torch.tensor(value, dtype=dtype))

    def full_like(
        self, x: Tensor, value: Scalar | Tensor, dtype: torch.dtype | None = None
    ) -> Tensor:
        dtype = dtype or x.dtype
        if x.shape is not None and all(d is not None for d in x.shape):
            return self.full([d for d in x.shape if d is not None], value, dtype)
        return self.Expand(self.scalar(value, dtype), self.Shape(x))

    def full(self, dims: Sequence[Dim], value: Scalar | Tensor, dtype: torch.dtype) -> Tensor:
        """A tensor of one value."""
        if isinstance(value, (Tensor, sympy.Basic)):
            return self.expand(self.scalar(value, dtype), dims)
        if isinstance(value, complex):
            return ComplexTensor(*(self.full(dims, x, dtype) for x in (value.real, value.imag)))
        dtype = dtype.to_real()
        if all(isinstance(d, int) for d in dims) and product_of(dims) <= 1024:
            return self.const(torch.full([int(d) for d in dims], value, dtype=dtype))
        filler = torch.full((1,), value, dtype=dtype)
        made = self.ConstantOfShape(self.shape(dims), value=filler)
        return self.with_shape(made, dims)

    # -- sizes ---------------------------------------------------------------------------------

    def shape(self, dims: Sequence[Dim | Tensor]) -> Tensor:
        """A 1-D int64 tensor of sizes: a constant, or the Concat of what is computed."""
        plain = [int(d) if isinstance(d, sympy.Integer) else d for d in dims]
        pieces: list[Tensor] = []
        run: list[int] = []
        for d in plain:
            if isinstance(d, int):
                run.append(d)
                continue
            if run:
                pieces.append(self.const(torch.tensor(run, dtype=torch.int64)))
                run = []
            pieces.append(self.size(d))
        if run or not pieces:
            pieces.append(self.const(torch.tensor(run, dtype=torch.int64)))
        return pieces[0] if len(pieces) == 1 else self.Concat(*pieces, axis=0)

    def size(self, dim: Dim | Tensor) -> Tensor:
        """One size as an int64 tensor of shape [1]."""
        if isinstance(dim, Tensor):
            tensor = self.cast(dim, torch.int64)
            return self.reshape(tensor, [1]) if tensor.shape != (1,) else tensor
        return self.sizes.materialize(dim)

    def dims(self, x: Tensor) -> list[Dim]:
        """The sizes of `x`; every one is known as a number or an expression."""
        return [x.dim(axis) for axis in range(x.rank)]

    def numel(self, x: Tensor) -> Dim:
        return product_of(self.dims(x))

    # -- views ---------------------------------------------------------------------------------

    def cast(self, x: Tensor, dtype: torch.dtype | None) -> Tensor:
        if dtype is None or x.dtype == dtype:
            return x
        if isinstance(x, ComplexTensor):
            if dtype == torch.bool:
                return self.Not(self.Equal(x, 0))
            if not dtype.is_complex:
                raise InternalError(f"a cast of {x.dtype} to {dtype} loses the imaginary part")
            return ComplexTensor(self.cast(x.real, dtype), self.cast(x.imag, dtype))
        if dtype.is_complex:
            return self.cast(x, dtype.to_real())
        if x.const is not None and x.const.numel() <= 1024 and x.const.device.type == "cpu":
            return self.const(x.const.to(dtype))
        if dtype == torch.bool and x.dtype.is_floating_point:
            # Cast to bool is x != 0 in both, but runtimes differ on NaN and fractions.
            return self.Not(self.Equal(x, 0))
        return self.Cast(x, to=int(onnx_dtype(dtype)))

    def reshape(self, x: Tensor, dims: Sequence[Dim]) -> Tensor:
        """Reshape to sizes, with -1 or copied dims in the file where that says it more simply."""
        dims = [int(d) if isinstance(d, sympy.Integer) else d for d in dims]
        if x.shape is not None and list(x.shape) == dims:
            return x
        if -1 in dims and x.shape is not None:
            known = [d for d in dims if d != -1]
            if all(isinstance(d, int) for d in (*known, *x.shape)) and 0 not in known:
                rest = product_of(d or 0 for d in x.shape) // product_of(known)
                dims = [rest if d == -1 else d for d in dims]
        symbolic = [axis for axis, d in enumerate(dims) if not isinstance(d, int)]
        copied = x.shape is not None and all(
            axis < len(x.shape) and x.shape[axis] == dims[axis] for axis in symbolic
        )
        allowzero = 1 if 0 in dims else None
        if not symbolic:
            target = self.shape(dims)
        elif len(symbolic) == 1 and -1 not in dims and 0 not in dims:
            target = self.shape([-1 if axis in symbolic else d for axis, d in enumerate(dims)])
        elif copied and 0 not in dims:
            target = self.shape([0 if axis in symbolic else d for axis, d in enumerate(dims)])
        else:
            target = self.shape(dims)
            # A size that turns out to be 0 is meant, and no order to copy one of the input's.
            allowzero = 1 if -1 not in dims else allowzero
        result = self.Reshape(x, target, allowzero=allowzero)
        return self.with_shape(result, [None if d == -1 else d for d in dims])

    def with_shape(self, x: Tensor, dims: Sequence[Dim | None]) -> Tensor:
        """Tell the builder what it could not infer."""
        if isinstance(x, ComplexTensor):
            return ComplexTensor(*(self.with_shape(part, dims) for part in (x.real, x.imag)))
        known = x.shape or (None,) * len(dims)
        x.shape = tuple(k if d is None else d for d, k in zip(dims, known, strict=True))
        return self.declare(x)

    def expand(self, x: Tensor, dims: Sequence[Dim]) -> Tensor:
        """Broadcast to sizes; -1 keeps a dim, as in ATen."""
        rank = len(dims)
        offset = rank - x.rank
        wanted: list[Dim] = []
        target: list[Dim] = []
        for axis, d in enumerate(dims):
            own = x.shape[axis - offset] if x.shape is not None and axis >= offset else 1
            keeps = (isinstance(d, int) and d == -1) or (own is not None and own == d)
            # ONNX Expand broadcasts both ways, so 1 keeps the input's dim.
            target.append(1 if keeps and axis >= offset else d)
            wanted.append(own if keeps and own is not None else d)
        if rank == x.rank and all(isinstance(t, int) and t == 1 for t in target):
            return x
        result = self.Expand(x, self.shape(target))
        return self.with_shape(result, wanted)

    def unsqueeze(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return self.Unsqueeze(x, list(axes)) if axes else x

    def squeeze(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        if not axes:
            return x
        if isinstance(x, ComplexTensor):
            return ComplexTensor(*(self.squeeze(part, axes) for part in (x.real, x.imag)))
        if x.const is not None and x.const.numel() <= 1024:
            return self.const(x.const.squeeze(tuple(axes)))
        return self.Squeeze(x, list(axes))

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        perm = [p % x.rank for p in perm]
        if perm == list(range(x.rank)):
            return x
        return self.Transpose(x, perm=perm)

    def slice(
        self,
        x: Tensor,
        axis: int,
        start: Dim | Tensor,
        end: Dim | Tensor | None,
        step: Dim = 1,
    ) -> Tensor:
        """x[start:end:step] along one axis; None is the far end. A computed step is positive."""
        is_backwards = isinstance(step, int) and step < 0
        last: Dim | Tensor = (-(2**63) if is_backwards else 2**63 - 1) if end is None else end
        return self.Slice(
            x, self.shape([start]), self.shape([last]), self.shape([axis]), self.shape([step])
        )

    # -- arithmetic with PyTorch's promotion ---------------------------------------------------

    def promote(self, *operands: Tensor | Scalar, dtype: torch.dtype | None = None) -> list[Tensor]:
        """All operands as tensors of their common dtype (or of `dtype`)."""
        common = dtype or type_promotion.result_dtype(*operands)
        return [self.scalar(operand, common) for operand in operands]

    def broadcast_shape(self, *tensors: Tensor) -> Shape:
        return broadcast_shapes(*(t.shape for t in tensors))


def _result_dtypes(
    schema: OpSchema, bound: Mapping[str, torch.dtype], attributes: Mapping[str, Any], outputs: int
) -> list[torch.dtype]:
    """From the types that the operands gave to the type variables, or else from attributes."""
    named = next((attributes[k] for k in _DTYPE_ATTRIBUTES if attributes.get(k)), None)
    dtypes = []
    for position in range(outputs):
        formal = schema.output_formal(position)
        if formal.type_name in bound:
            dtypes.append(bound[formal.type_name])
        elif named is not None:
            dtypes.append(ONNX_TO_TORCH[ir.DataType(named)])
        elif len(formal.dtypes) == 1:
            dtypes.append(next(iter(formal.dtypes)))
        elif isinstance(attributes.get("value"), torch.Tensor):
            dtypes.append(attributes["value"].dtype)
        else:
            dtypes.append(torch.float32)
    return dtypes


def _with_axes_from_front(name: str, inputs: Sequence[Input]) -> Sequence[Input]:
    """A reduction's axes counted from the front: ONNX Runtime miscounts negative ones where the
    tensor is empty."""
    if not name.startswith("Reduce") or len(inputs) < 2 or not isinstance(inputs[1], list):
        return inputs
    data = inputs[0]
    if not isinstance(data, Tensor) or data.shape is None:
        return inputs
    return [data, [axis % max(data.rank, 1) for axis in inputs[1]], *inputs[2:]]
