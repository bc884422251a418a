"""Calls of operators: by tables, by PyTorch where all is known, or as nodes of the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, Value, is_symbolic
from sardonyx.aten.schema import METADATA_WRITES, bind
from sardonyx.capture.torchscript.containers.list_operators import ListOperators
from sardonyx.capture.torchscript.errors import (
    CannotJoin,
    NotHere,
    ScriptRefusal,
    no_form,
    runtime_string,
)
from sardonyx.capture.torchscript.interpreter.calls import ScriptCalls
from sardonyx.capture.torchscript.interpreter.constructs import dtype_of
from sardonyx.capture.torchscript.interpreter.nodes import node_inputs, node_outputs
from sardonyx.capture.torchscript.interpreter.shape_writes import use_view_after
from sardonyx.capture.torchscript.interpreter.tensor_queries import READ_NUMBERS, TensorQueries
from sardonyx.capture.torchscript.types.numbers import is_arithmetic
from sardonyx.capture.torchscript.types.values import (
    NUMBERS,
    UNINITIALIZED,
    ComputedNumber,
    MaybeNone,
    RuntimeString,
    ScriptList,
    as_python,
    is_constant,
    number_dtype,
)

if TYPE_CHECKING:
    from sardonyx.capture.quantized.reader import QuantizedReader
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_DIMS = frozenset({"dim", "dim0", "dim1", "source", "destination"})
"""Parameters that are dims of the first argument, except for `_OTHER_RANKS`."""
_OTHER_RANKS = frozenset({"aten::diag_embed", *METADATA_WRITES})
_TAKES_MASKS = frozenset({"aten::index", "aten::index_put", "aten::index_put_"})


class OperatorCalls:
    def __init__(self, reader: GraphReader, calls: ScriptCalls, quantized: QuantizedReader) -> None:
        self._reader = reader
        self._tables = (calls, TensorQueries(reader))
        self._list_operators = ListOperators(reader)
        self._quantized = quantized

    def results(self, node: Any, operands: list[Argument]) -> list[Argument]:
        kind = node.kind()
        for table in self._tables:
            with contextlib.suppress(NotHere):
                return _as_outputs(node, table.call(kind, operands))
        if is_arithmetic(kind, operands) and not all(map(is_constant, operands)):
            dtype = NUMBERS.get(node.output().type().kind()) or _scalar_dtype(operands)
            return [self._reader.numbers.compute(kind, operands, dtype)]
        optional = next((o for o in operands if isinstance(o, MaybeNone)), None)
        if optional is not None:
            values = [optional.content, None]
            return self._of_either(node, operands, optional, optional.present, values)
        op = _torch_private.overload_of(node)
        if op is None or not _torch_private.is_known_to_dispatcher(op):
            return self._script_operator(node, op, operands)
        for source, operand in zip(node_inputs(node), operands, strict=True):
            if source.type().kind() == "BoolType" and isinstance(
                operand, (ComputedNumber, sympy.Basic)
            ):
                # Operators have no form for a bool that is computed.
                return self._of_either(node, operands, operand, operand, [True, False])
        follows_dims = op._schema.name not in _OTHER_RANKS and isinstance(operands[0], Value)
        for place, parameter in enumerate(op._schema.arguments[: len(operands)]):
            if follows_dims and parameter.name in _DIMS:
                dims = operands[place]
                dims = dims.state if isinstance(dims, ScriptList) else (dims,)
                is_one = isinstance(dims, tuple) and len(dims) == 1
                if is_one and isinstance(dims[0], (ComputedNumber, sympy.Basic)):
                    return self._at_computed_dim(node, op, operands, place, dims[0])
        return self._operator(node, op, operands)

    def _at_computed_dim(
        self, node: Any, op: Any, operands: list[Argument], place: int, dim: Argument
    ) -> list[Argument]:
        """A call for each dim that there is, of which a number chooses one."""
        reader, compute = self._reader, self._reader.numbers.compute
        rank = len(operands[0].shape) + (op._schema.name == "aten::unsqueeze")
        dim = compute("aten::remainder", [dim, max(rank, 1)], torch.int64)

        def at(axis: int) -> list[Argument]:
            if axis < rank - 1:
                condition = compute("aten::eq", [dim, axis], torch.bool)
                readings = [partial(call, axis), partial(at, axis + 1)]
                return reader.branches.branch(condition, readings, reader.here)
            return call(axis)

        def call(axis: int) -> list[Argument]:
            is_list = isinstance(operands[place], ScriptList)
            given = reader.lists.new([axis]) if is_list else axis
            return self.results(node, [*operands[:place], given, *operands[place + 1 :]])

        return at(0)

    def _of_either(
        self,
        node: Any,
        operands: list[Argument],
        operand: Argument,
        condition: Argument,
        values: list[Argument],
    ) -> list[Argument]:
        """A call for each of two values of an operand, of which a condition chooses one."""

        def reading(value: Argument) -> list[Argument]:
            return self.results(node, [value if o is operand else o for o in operands])

        reader = self._reader
        readings = [partial(reading, value) for value in values]
        try:
            return reader.branches.branch(condition, readings, reader.here)
        except CannotJoin as reason:
            raise ScriptRefusal(
                f"the type of the result of {node.kind()} depends on an argument that is computed"
                f" at run time: {reason}",
                "an if around two calls",
            ) from reason

    def _script_operator(self, node: Any, op: Any, operands: list[Argument]) -> list[Argument]:
        """An operator that only TorchScript has: PyTorch runs it where all operands are known."""
        kind = node.kind()
        if op is not None and len(operands) <= len(op._schema.arguments):
            arguments = bind(op, [self.plain(o) for o in operands])
            number = self._number_read(node, arguments)
            if number is not None:
                return [number]
            if kind == "aten::to":
                return [self._moved(arguments)]
        if not all(map(is_constant, operands)):
            raise no_form(kind, self._reader.here)
        try:
            given = [as_python(o) for o in operands]
            # By name alone, PyTorch picks the first overload that accepts the values.
            by_name = op is None or len(operands) > len(op._schema.arguments)
            run = partial(_torch_private.run_script_operator, kind) if by_name else op
            result = run(*given)
        except RuntimeError as error:
            raise no_form(kind, self._reader.here) from error
        return _as_outputs(node, self._reader.wrapped(result))

    def _moved(self, arguments: dict[str, Argument]) -> Argument:
        """`x.to(...)` of a device, or of an optional: x itself where nothing changes."""
        tensor, dtype = arguments["self"], arguments.get("dtype")
        wanted = tensor.dtype if dtype is None else dtype_of(dtype)
        if wanted == tensor.dtype and not arguments.get("copy"):
            return tensor
        return self._reader.call(torch.ops.aten._to_copy.default, tensor, dtype=wanted)

    def _number_read(self, node: Any, arguments: dict[str, Argument]) -> Argument | None:
        """`int(x)`, `x.item()`; None where no number is read off a tensor."""
        read = next(iter(arguments.values()), None)
        if node.kind() not in READ_NUMBERS or not isinstance(read, Value):
            return None
        known = self._reader.scalars.read(node.kind(), read)
        if known is not None:
            return known
        kind = node.output().type().kind()
        dtype = NUMBERS.get(kind)
        if kind == "NumberType":
            held = read.dtype
            dtype = torch.float64 if held.is_floating_point else torch.int64
            dtype = torch.bool if held == torch.bool else dtype
        return None if dtype is None else self._reader.numbers.read(read, dtype)

    def _operator(self, node: Any, op: Any, operands: list[Argument]) -> list[Argument]:
        reader, name = self._reader, op._schema.name
        found = self._list_operators.call(name, operands, _unpacked_into(node))
        if found is not None:
            return [found]
        arguments = bind(op, list(map(self._bound, operands, node_inputs(node))))
        if name in _TAKES_MASKS:
            arguments["indices"] = [self._bool_mask(i) for i in arguments["indices"]]
        number = self._number_read(node, arguments)
        if number is not None:
            return [number]
        if self._quantized.concerns(op, arguments):
            return self._by_output(node, self._quantized.read(op, arguments, reader.here))
        if name in METADATA_WRITES:
            use_view_after(node)
            return list(reader.emit(METADATA_WRITES[name](op), list(arguments.values())))
        if not all(_is_of_tensors(result.type) for result in op._schema.returns):
            raise no_form(node.kind(), reader.here)
        if name == "aten::fill_diagonal_" and is_symbolic(list(arguments["self"].shape)):
            # PyTorch decomposes it for the sizes of the example.
            raise ScriptRefusal(
                "fill_diagonal_ needs static sizes in a script", "x.diagonal().fill_(value)"
            )
        return self._by_output(node, list(reader.emit_node(node, op, arguments)))

    def _bool_mask(self, index: Argument) -> Argument:
        """A uint8 mask as a bool mask."""
        if not isinstance(index, Value) or index.dtype != torch.uint8:
            return index
        return self._reader.call(torch.ops.aten._to_copy.default, index, dtype=torch.bool)

    def _by_output(self, node: Any, values: list[Argument]) -> list[Argument]:
        """The results of an operator, its lists of tensors as lists."""
        outputs = node_outputs(node)
        found: list[Argument] = []
        for place, output in enumerate(outputs):
            count = 1
            if output.type().kind() == "ListType":
                count = len(values) - (len(outputs) - place - 1)
                found.append(self._reader.lists.new(values[:count]))
            else:
                found.append(values[0])
            values = values[count:]
        return found

    def _bound(self, operand: Argument, source: Any) -> Argument:
        """An operand as an argument of an operator."""
        if operand is UNINITIALIZED:
            raise ScriptRefusal("a variable is read that no path has set")
        if isinstance(operand, ComputedNumber) and source.type().kind() == "TensorType":
            return operand.value
        return self.plain(operand)

    def plain(self, argument: Argument) -> Argument:
        if isinstance(argument, RuntimeString):
            raise runtime_string()
        if isinstance(argument, ComputedNumber):
            return self._reader.numbers.as_scalar(argument)
        if isinstance(argument, ScriptList):
            items = self._reader.lists.known_items(argument.state)
            if items is None:
                raise ScriptRefusal(
                    "an operator takes a list whose length is computed at run time",
                    "a list of a fixed number of items, or a tensor",
                )
            return [self.plain(a) for a in items]
        if isinstance(argument, tuple):
            return [self.plain(a) for a in argument]
        return argument


def _unpacked_into(node: Any) -> int | None:
    """The number of variables, if all that uses the result is one that unpacks it."""
    uses = node.output().uses() if node.outputsSize() == 1 else []
    if len(uses) != 1 or uses[0].user.kind() != "prim::ListUnpack":
        return None
    return int(uses[0].user.outputsSize())


def _scalar_dtype(operands: Sequence[Argument]) -> torch.dtype:
    """Of a Scalar, whose dtype TorchScript does not say."""
    kinds = [number_dtype(o) for o in operands]
    return torch.float64 if torch.float64 in kinds else kinds[0]


def _as_outputs(node: Any, result: Argument) -> list[Argument]:
    count = node.outputsSize()
    return list(result) if count > 1 else [result] * count


def _is_of_tensors(kind: Any) -> bool:
    while kind.kind() in ("ListType", "OptionalType"):
        kind = kind.getElementType()
    return bool(kind.kind() == "TensorType")
