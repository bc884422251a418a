"""`g`: what a symbolic function writes the ONNX graph with. A thin layer over the builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, overload

import onnx_ir as ir
import sympy
import torch

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.graph_values import UNKNOWN, Block, Values
from sardonyx.extend.symbolic_functions.legacy_attributes import attributes_as_inputs, words_at
from sardonyx.extend.symbolic_functions.node_attributes import attributes_of
from sardonyx.extend.symbolic_functions.node_types import function_result_types, result_types
from sardonyx.extend.symbolic_functions.operand_types import common_dtype, schema_at
from sardonyx.extend.symbolic_functions.values import (
    SymbolicNode,
    SymbolicValue,
    ValueType,
    node_of_onnx,
)
from sardonyx.lower.builder import Builder
from sardonyx.lower.onnx_types.schemas import OpSchema
from sardonyx.lower.ops.normalization import copied_at_run_time
from sardonyx.lower.provenance import WRITTEN_AT
from sardonyx.lower.values import Tensor

ATEN_DOMAIN = "org.pytorch.aten"
_BRANCHES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}
_OF_TORCHSCRIPT = frozenset(
    {"Constant", "ListConstruct", "TupleConstruct", "ListUnpack", "TupleUnpack"}
)


class GraphContext:
    """The graph as a symbolic function sees it."""

    def __init__(
        self,
        values: Values,
        opset: int,
        original_node: SymbolicNode,
        *,
        params_dict: dict[str, torch.Tensor] | None = None,
        block: Block | None = None,
        blocks: list[Block] | None = None,
    ) -> None:
        self.values = values
        self.opset = opset
        """The opset of the file: the nodes that are written are of its form."""
        self.original_node = original_node
        self.block = block
        """The body that is written, None for the graph itself."""
        self.params_dict: dict[str, torch.Tensor] = params_dict or {}
        """The model's parameters and buffers by their names."""
        self.env: dict[SymbolicValue, SymbolicValue] = {}
        """Free for use by symbolic functions."""
        self.new_nodes: list[SymbolicNode] = []
        self._blocks: list[Block] = [] if blocks is None else blocks

    @property
    def graph(self) -> GraphContext:
        return self

    @property
    def builder(self) -> Builder:
        return self.values.b

    # -- writing ---------------------------------------------------------------------------------

    @overload
    def op(
        self, opname: str, *raw_args: Any, outputs: Literal[1] = 1, **kwargs: Any
    ) -> SymbolicValue: ...

    @overload
    def op(self, opname: str, *raw_args: Any, outputs: int, **kwargs: Any) -> Any: ...

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Write a node: `g.op("Elu", x, alpha_f=1.0)`; its result, or a tuple of `outputs`.

        `opname` is an operator of ONNX or `domain::Name`. Inputs are values, tensors, numbers,
        lists of sizes, or None for one that is left out. The last letter of an attribute's name
        is its type: f, i, s, t or g, for a list too.
        """
        domain, name = _split(opname)
        attributes = {k: _known_now(k, v) for k, v in kwargs.items()}
        if domain == "prim" and name in _OF_TORCHSCRIPT:
            return self._torchscript_node(name, raw_args, attributes, outputs)
        with self.writing():
            if domain:
                made = self._custom_node(domain, name, raw_args, attributes, outputs)
            else:
                made = self._onnx_node(name, raw_args, attributes, outputs)
        results = tuple(made)
        return results[0] if outputs == 1 else results

    def at(self, operator: str, *args: Any, overload_name: str = "", **kwargs: Any) -> Any:
        """Write a call of an ATen operator, for runtimes that have PyTorch's."""
        return self.op(
            f"{ATEN_DOMAIN}::ATen",
            *args,
            operator_s=operator,
            overload_name_s=overload_name,
            **kwargs,
        )

    def onnxscript_op(
        self, onnx_fn: Any, *raw_args: Any, outputs: int | None = None, **kwargs: Any
    ) -> Any:
        """Write a call of an onnxscript function, which becomes a function of the file."""
        from sardonyx.extend.onnx_functions import functions_of

        functions = functions_of(onnx_fn)
        body = functions[0]
        count = len(body.outputs) if outputs is None else outputs
        for each in functions:
            self.builder.functions.setdefault(each.identifier(), each)
        made = self.op(f"{body.domain}::{body.name}", *raw_args, outputs=count, **kwargs)
        results = made if isinstance(made, tuple) else (made,)
        node = results[0].content.producer()
        given = [None if v is None else self.values.of_onnx(v) for v in node.inputs]
        types = function_result_types(node, given, functions)
        for result, type_ in zip(results, types, strict=True):
            result.setType(type_)
        return made

    aten_op = at

    def op_with_blocks(
        self, opname: str, *raw_args: Any, outputs: int = 1, n_blocks: int = 1, **kwargs: Any
    ) -> tuple[Any, tuple[GraphContext, ...], SymbolicNode]:
        """Write a node with bodies (`If`, `Loop`, `Scan`): its results, a context for each body to
        write with, and the node. A body's `block` takes its inputs and outputs."""
        name = _split(opname)[1]
        names = _BRANCHES.get(name, tuple(f"block_{k}" for k in range(n_blocks)))
        if len(names) != n_blocks:
            raise SymbolicFunctionError(f"{opname} has {len(names)} bodies, not {n_blocks}")
        types = _loop_types(raw_args) if name == "Loop" else ()
        blocks = [Block(self.values, ir.Graph([], [], nodes=[], name=n), types) for n in names]
        self._blocks += blocks
        bodies = {f"{n}_g": block for n, block in zip(names, blocks, strict=True)}
        results = self.op(opname, *raw_args, outputs=outputs, **bodies, **kwargs)
        contexts = tuple(self._context(self.opset, block) for block in blocks)
        first = results if outputs == 1 else results[0]
        return results, contexts, first.node()

    def finish_blocks(self) -> None:
        for block in self._blocks:
            block.finish()

    def written_at(self, opset: int | None) -> GraphContext:
        """A context whose nodes have the form of another opset."""
        if opset is None or opset == self.opset:
            return self
        return self._context(opset, self.block)

    def _context(self, opset: int, block: Block | None) -> GraphContext:
        return GraphContext(
            self.values,
            opset,
            self.original_node,
            params_dict=self.params_dict,
            block=block,
            blocks=self._blocks,
        )

    # -- nodes -----------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What the builder writes inside goes where this context writes."""
        if self.block is None:
            yield
            return
        with self.builder.body() as nodes:
            yield
        self.block.written += nodes

    def _torchscript_node(
        self, name: str, given: Sequence[Any], attributes: dict[str, Any], outputs: int
    ) -> Any:
        """What nodes of TorchScript's lists and constants give: no file has those."""
        values = [self.values.of_argument(argument) for argument in given]
        if name == "Constant":
            if attributes:
                return self.op("Constant", **attributes)
            return SymbolicValue.of_python(self.values, None)
        if name == "TupleConstruct":
            return self.values.of_tuple(values)
        if name == "ListConstruct":
            return SymbolicValue.of_python(self.values, values)
        (packed,) = values
        if packed.is_list:
            items = tuple(packed.content)
        else:
            items = tuple(self.op("SequenceAt", packed, torch.tensor(k)) for k in range(outputs))
        if len(items) != outputs:
            raise SymbolicFunctionError(f"prim::{name} gives {len(items)} values, not {outputs}")
        return items[0] if outputs == 1 else items

    def _custom_node(
        self, domain: str, name: str, given: Sequence[Any], attributes: dict[str, Any], outputs: int
    ) -> list[SymbolicValue]:
        inputs = [self._tensor(argument, None) for argument in given]
        made = attributes_of(f"{domain}::{name}", attributes, None)
        node = self._node(domain, name, inputs, made, outputs)
        return [self.values.new(v, UNKNOWN) for v in node.outputs]

    def _onnx_node(
        self, name: str, given: Sequence[Any], attributes: dict[str, Any], outputs: int
    ) -> list[SymbolicValue]:
        schema = schema_at(name, self.opset)
        attributes = words_at(name, self.opset, attributes)
        given, attributes = attributes_as_inputs(schema, given, attributes)
        inputs = self._inputs(schema, given)
        made = attributes_of(name, attributes, schema.attributes)
        self._check_counts(schema, inputs, outputs)
        if name == "BatchNormalization" and _trains(made, outputs, self.opset):
            inputs = self._with_statistics_copied(inputs)
        node = self._node("", name, inputs, made, outputs)
        node.meta[WRITTEN_AT] = self.opset
        const = _constant_of(node)
        types = result_types(schema, node, inputs, self.opset)
        return [self.values.new(v, t, const) for v, t in zip(node.outputs, types, strict=True)]

    def _with_statistics_copied(
        self, inputs: Sequence[SymbolicValue | None]
    ) -> list[SymbolicValue | None]:
        """The inputs of a BatchNormalization, with copies of the statistics that it moves."""
        if any(value is None or value.dtype is None for value in inputs):
            return list(inputs)
        x, scale, shift, *old = (self.as_tensor(value) for value in inputs if value is not None)
        copies = [copied_at_run_time(self.builder, each, x) for each in old]
        return [self.values.of_tensor(tensor) for tensor in (x, scale, shift, *copies)]

    def _node(
        self,
        domain: str,
        name: str,
        inputs: Sequence[SymbolicValue | None],
        attributes: Sequence[ir.Attr],
        outputs: int,
    ) -> ir.Node:
        contents = [None if v is None else v.content for v in inputs]
        node = self.builder.node(domain, name, contents, attributes, outputs)
        self.new_nodes.append(node_of_onnx(self.values, node))
        return node

    def _check_counts(
        self, schema: OpSchema, inputs: Sequence[SymbolicValue | None], outputs: int
    ) -> None:
        raw = schema.raw
        if not raw.min_input <= len(inputs) <= raw.max_input:
            names = ", ".join(formal.name for formal in schema.inputs)
            raise SymbolicFunctionError(
                f"{schema.name} takes {_between(raw.min_input, raw.max_input)} inputs ({names}) at"
                f" opset {self.opset}, not {len(inputs)}"
            )
        if not raw.min_output <= outputs <= raw.max_output:
            raise SymbolicFunctionError(
                f"{schema.name} gives {_between(raw.min_output, raw.max_output)} results, not"
                f" {outputs}"
            )

    # -- inputs ----------------------------------------------------------------------------------

    def _inputs(self, schema: OpSchema, given: Sequence[Any]) -> list[SymbolicValue | None]:
        """Operands as tensors: numbers in the dtype of those they share a type with."""
        limit = schema.raw.max_input
        if len(given) > limit:
            self._check_counts(schema, [None] * len(given), schema.raw.min_output)
        groups: dict[str, list[Any]] = {}
        for position, argument in enumerate(given):
            formal = schema.input_formal(position)
            if not formal.variadic or formal.homogeneous:
                groups.setdefault(formal.type_name, []).append(argument)
        dtypes = {name: common_dtype(schema.name, group) for name, group in groups.items()}
        inputs = []
        for position, argument in enumerate(given):
            formal = schema.input_formal(position)
            dtype = dtypes.get(formal.type_name)
            if dtype is None and len(formal.dtypes) == 1:
                (dtype,) = formal.dtypes
            value = self._tensor(argument, dtype)
            if value is not None and value.dtype is not None:
                shared = dtypes.get(formal.type_name)
                if shared is not None and value.dtype != shared:
                    cast = self.builder.cast(self.as_tensor(value), shared)
                    value = self.values.of_tensor(cast)
                self._check_dtype(schema, position, value)
            inputs.append(value)
        while inputs and inputs[-1] is None:
            inputs.pop()
        return inputs

    def _check_dtype(self, schema: OpSchema, position: int, value: SymbolicValue) -> None:
        formal = schema.input_formal(position)
        if value.type().kind() != "TensorType" or formal.is_sequence:
            return
        if value.dtype not in formal.dtypes:
            allowed = ", ".join(sorted(str(d).removeprefix("torch.") for d in formal.dtypes))
            raise SymbolicFunctionError(
                f"{schema.name} does not take {value.dtype} as {formal.name} at opset {self.opset}:"
                f" it takes {allowed}"
            )

    def _tensor(self, argument: Any, dtype: torch.dtype | None) -> SymbolicValue | None:
        """An input of a node as a tensor of the graph; None for one that is left out."""
        if isinstance(argument, SymbolicValue):
            if argument.is_tensor:
                return argument
            if argument.type().kind() == "TupleType":
                raise SymbolicFunctionError(
                    "a quantized tensor is a tuple, and no input of a node: take it apart with"
                    " symbolic_helper.dequantize_helper(g, x), or mark it in @quantized_args"
                )
            argument = _unpacked(argument)
        b = self.builder
        if argument is None:
            return None
        if isinstance(argument, SymbolicValue):
            return argument
        if isinstance(argument, torch.Tensor):
            return self.values.of_tensor(b.const(argument))
        if isinstance(argument, (bool, int, float, complex, sympy.Basic)):
            return self.values.of_tensor(b.scalar(argument, dtype))
        if isinstance(argument, (list, tuple)):
            return self.values.of_tensor(self._list(argument, dtype))
        raise SymbolicFunctionError(
            f"{argument!r} is no input of a node: give values, tensors or numbers"
        )

    def _list(self, items: Sequence[Any], dtype: torch.dtype | None) -> Tensor:
        b = self.builder
        if any(isinstance(item, (float, complex)) for item in items):
            if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
                raise SymbolicFunctionError(f"{items!r} has fractions where {dtype} is needed")
            return b.const(torch.tensor(items, dtype=dtype))
        if not items or isinstance(items[0], bool):
            return b.const(torch.tensor(items, dtype=dtype or torch.int64))
        dims: list[Any] = []
        for item in items:
            if isinstance(item, SymbolicValue):
                dims.append(self.as_tensor(item))
            elif isinstance(item, (int, sympy.Basic, torch.Tensor)):
                dims.append(b.const(item) if isinstance(item, torch.Tensor) else item)
            else:
                raise SymbolicFunctionError(f"{items!r} is no list of numbers")
        return b.cast(b.shape(dims), dtype or torch.int64)

    def as_tensor(self, value: SymbolicValue) -> Tensor:
        """A value as lowerings have it."""
        tensor = self._tensor(value, None)
        if tensor is None or not tensor.is_tensor:
            raise SymbolicFunctionError(f"{value!r} is no tensor")
        if tensor.dtype is None:
            raise SymbolicFunctionError(
                f"the dtype of {value!r} is not known: call setType() on it"
            )
        return Tensor(tensor.content, tensor.dtype, tensor.shape, tensor.const)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a GraphContext has no {name!r}; nodes are written with g.op(...)")


def _loop_types(operands: Sequence[Any]) -> list[ValueType]:
    """What the body of a Loop gets: the round, whether it goes on, and what is carried."""
    carried = [
        ValueType.of_tensor(operand.dtype, None)
        if isinstance(operand, (SymbolicValue, torch.Tensor))
        else UNKNOWN
        for operand in operands[2:]
    ]
    return [ValueType.of_tensor(torch.int64, ()), ValueType.of_tensor(torch.bool, ()), *carried]


def _trains(attributes: Sequence[ir.Attr], outputs: int, opset: int) -> bool:
    """Whether a BatchNormalization gives new statistics; before opset 14 its results say so."""
    is_training = any(a.name == "training_mode" and a.as_int() for a in attributes)
    return is_training if opset >= 14 else outputs > 1


def _split(opname: str) -> tuple[str, str]:
    domain, separator, name = opname.rpartition("::")
    if not name or (separator and not domain) or ":" in domain:
        raise SymbolicFunctionError(f"{opname!r} is no operator: write Name or domain::Name")
    if domain == "aten":
        return (ATEN_DOMAIN, name)
    return ("" if domain in ("onnx", "ai.onnx") else domain), name


def _known_now(specifier: str, value: Any) -> Any:
    """An attribute that was given as a value: what it holds."""
    if isinstance(value, (list, tuple)):
        return [_known_now(specifier, item) for item in value]
    if not isinstance(value, SymbolicValue):
        return value
    if value.is_list:
        return [_known_now(specifier, item) for item in value.content]
    if value.is_python:
        return value.content
    if value.const is not None:
        if specifier.endswith("_t"):
            return value.const
        return value.const.tolist() if value.const.dim() else value.const.item()
    raise SymbolicFunctionError(
        f"attribute {specifier} must be known at export time, but {value!r} is computed"
    )


def _unpacked(value: SymbolicValue) -> Any:
    if value.is_list:
        return [item if item.is_tensor else _unpacked(item) for item in value.content]
    return value.content


def _between(fewest: int, most: int) -> str:
    if fewest == most:
        return str(fewest)
    return f"{fewest} or more" if most > 1000 else f"{fewest} to {most}"


def _constant_of(node: ir.Node) -> torch.Tensor | None:
    if node.op_type != "Constant" or len(node.attributes) != 1:
        return None
    (attribute,) = node.attributes.values()
    if attribute.name == "value":
        held = getattr(attribute.value, "raw", None)
        return held if isinstance(held, torch.Tensor) else None
    if attribute.name in ("value_float", "value_floats", "value_int", "value_ints"):
        return torch.tensor(attribute.value)
    return None
