"""AtenGraph -> onnx-ir graph at the newest opset, through the one operator library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx_ir as ir
import sympy
import torch

from sardonyx.aten.control_flow import all_nodes, map_blocks, values_read
from sardonyx.aten.graph import (
    UNKNOWN_LOCATION,
    Argument,
    AtenGraph,
    Block,
    Node,
    Value,
    map_values,
    values_in,
)
from sardonyx.aten.schema import default_arguments
from sardonyx.aten.storage import holds_memory
from sardonyx.aten.type_inference import TypeInference
from sardonyx.errors import (
    InternalError,
    SardonyxError,
    SymbolicFunctionError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
)
from sardonyx.lower import ops, type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.calls import has_complex_form, is_complex_call, lower_complex_call
from sardonyx.lower.complex.values import ComplexTensor, from_pairs, to_pairs, whole
from sardonyx.lower.control_flow import emit_control_flow
from sardonyx.lower.custom_lowerings import NO_CUSTOM_FORMS, Call, CustomForms
from sardonyx.lower.decompose import NoDecomposition, decompose
from sardonyx.lower.graph_simplification import fold_constants, remove_unused
from sardonyx.lower.onnx_types.schemas import NEWEST_OPSET
from sardonyx.lower.onnx_types.verifier import verify_locations, verify_onnx
from sardonyx.lower.plugins import load_plugins
from sardonyx.lower.registry import LIBRARY, Lowering, Refusal, Registry, select_arguments
from sardonyx.lower.unsupported_operators import Problem, unsupported
from sardonyx.lower.values import TORCH_TO_ONNX, Tensor
from sardonyx.lower.weights import TorchTensor

ops.load()


@dataclass(frozen=True, slots=True)
class LowerOptions:
    fold_constants: bool = True
    fold_parameters: bool = True
    opset: int = NEWEST_OPSET
    """The target opset; only error messages use it."""
    custom_forms: CustomForms = NO_CUSTOM_FORMS
    notes_calls: bool = False
    """Whether nodes say which calls of modules they belong to."""


def lower(
    graph: AtenGraph,
    input_names: Sequence[str],
    output_names: Sequence[str],
    options: LowerOptions,
    library: Registry = LIBRARY,
) -> ir.Model:
    simplify(graph, options)
    custom = options.custom_forms
    names = [node.name for node in all_nodes(graph.nodes)]
    load_plugins((name for name in names if custom.find(name) is None), library)
    problems = _expand_missing(graph, library, custom)
    remove_unused(graph)
    emitter = _Emitter(graph, library, custom)
    emitter.b.notes_calls = options.notes_calls
    try:
        model = emitter.emit(input_names, output_names)
    except SardonyxError:
        if not problems:  # else it stands on an operator that is missing
            raise
    problems += emitter.problems
    if not problems:
        return model
    raise unsupported(problems, graph, options.opset, options.custom_forms)


def simplify(graph: AtenGraph, options: LowerOptions) -> None:
    remove_unused(graph)
    if options.fold_constants:
        fold_constants(
            graph,
            fold_parameters=options.fold_parameters,
            keeps=lambda name: options.custom_forms.find(name) is not None,
        )


def _expand_missing(graph: AtenGraph, library: Registry, custom: CustomForms) -> list[Problem]:
    """Puts PyTorch's decomposition in place of every node the library does not know."""
    problems: list[Problem] = []
    if all(_has_form(node, library, custom) for node in all_nodes(graph.nodes)):
        return problems
    inference = TypeInference.for_graph(graph)

    def expanded(nodes: list[Node]) -> list[Node]:
        if custom.fallback is None:
            return _expanded(graph, nodes, library, custom, inference, problems)
        done: list[Node] = []
        for node in nodes:
            missing: list[Problem] = []
            parts = _expanded(graph, [node], library, custom, inference, missing)
            if missing and custom.last_resort(node.name) is not None:
                parts, missing = [node], []
            done += parts
            problems.extend(missing)
        return done

    graph.nodes = map_blocks(graph.nodes, expanded)
    return problems


def _has_form(node: Node, library: Registry, custom: CustomForms) -> bool:
    if node.blocks or custom.find(node.name) is not None:
        return True
    if is_complex_call(node):
        return has_complex_form(node.name, library)
    return node.name in library


def has_form_of_its_own(node: Node) -> bool:
    """Whether a node needs no decomposition; it may still write, as captures record it."""
    if is_complex_call(node):
        return False
    base, dot, overload = node.name.partition(".")
    return bool(node.blocks) or f"{base.removesuffix('_')}{dot}{overload}" in LIBRARY


def _expanded(
    graph: AtenGraph,
    nodes: list[Node],
    library: Registry,
    custom: CustomForms,
    inference: TypeInference,
    problems: list[Problem],
) -> list[Node]:
    done: list[Node] = []
    pending: list[tuple[Node, tuple[str, ...]]] = [(n, ()) for n in reversed(nodes)]
    while pending:
        node, within = pending.pop()
        if _has_form(node, library, custom):
            done.append(node)
            continue
        try:
            if node.name in within:
                raise NoDecomposition("its decomposition leads back to it")
            parts = decompose(graph, node, inference)
        except NoDecomposition as reason:
            why = _NO_SPARSE if _is_sparse(node) else _missing_reason(node, str(reason), within)
            problems.append(Problem(node, custom.hint(node.name) or why))
            done.append(node)  # the search for what else is missing goes on behind it
        else:
            pending += [(part, (*within, node.name)) for part in reversed(parts)]
    return done


_NO_SPARSE = "it makes a sparse tensor, and those of ONNX operators are dense"


def _is_sparse(node: Node) -> bool:
    return any(v.fake is not None and v.fake.layout != torch.strided for v in node.outputs)


def _missing_reason(node: Node, reason: str, within: tuple[str, ...]) -> str:
    part = f" (a part of {within[0]})" if within else ""
    numbers = " for complex numbers" if is_complex_call(node) else ""
    return f"no lowering{numbers}, and {reason}{part}"


class _Emitter:
    def __init__(self, graph: AtenGraph, library: Registry, custom: CustomForms) -> None:
        self._graph = graph
        self._library = library
        self._custom = custom
        self._tensors: dict[int, Tensor] = {}
        self.problems: list[Problem] = []
        self._refused: set[Value] = set()
        self._read: set[Value] = set()
        """What some node or output reads; PyTorch's types of the rest are not always right."""
        self._initializers: dict[str, ir.Value] = {}
        self._parameters: dict[str, Tensor] = {}
        """One each, whichever blocks read it."""
        self.b = Builder(graph.symbols, graph.symbol_names, self._tensor)

    def emit(self, input_names: Sequence[str], output_names: Sequence[str]) -> ir.Model:
        inputs = [self._input(v, n) for v, n in zip(self._graph.inputs, input_names, strict=True)]
        self._read = self._values_read()
        first = len(self.b.nodes)
        for node in self._graph.nodes:
            self._node(node)
        written = self.b.nodes[first:]
        self.b.location = UNKNOWN_LOCATION  # what is left to write is of no module
        outputs = self._outputs(inputs, output_names)
        if self.problems:
            return ir.Model(ir.Graph([], [], nodes=[]), ir_version=1)
        graph = ir.Graph(
            inputs,
            outputs,
            nodes=self.b.nodes,
            initializers=[*self._ordered_parameters(), *self.b.initializers],
            opset_imports={
                "": NEWEST_OPSET,
                **self._custom.imports(self.b.nodes, self.b.functions),
            },
            name="main_graph",
        )
        model = ir.Model(graph, ir_version=10, functions=list(self.b.functions.values()))
        verify_onnx(model, "lower", NEWEST_OPSET, is_ranked=True)
        if all(node.location.file_line for node in all_nodes(self._graph.nodes)):
            verify_locations(written, "lower")
        return model

    def _values_read(self) -> set[Value]:
        read = {value for node in self._graph.nodes for value in values_read(node)}
        read.update(source.value for source in self._graph.symbols.values())
        read.update(mutation.final for mutation in self._graph.mutated)
        for output in self._graph.outputs:
            read.update(values_in(output))
        return read

    def _ordered_parameters(self) -> list[ir.Value]:
        """In the order of the model's state_dict, not of first use."""
        order = [n for n in self._graph.parameters if n in self._initializers]
        rest = [n for n in self._initializers if n not in self._graph.parameters]
        return [self._initializers[n] for n in (*order, *rest)]

    def _input(self, value: Value, name: str) -> ir.Value:
        if value.dtype not in TORCH_TO_ONNX:
            raise UnsupportedDtypeError(
                f"input {name!r} is {value.dtype}, which has no ONNX form here"
            )
        if value.dtype.is_complex:
            parts = ir.Value(name=name), value.dtype.to_real(), (*value.shape, 2)
            pairs = self.b.declare(Tensor(*parts))
            self._tensors[id(value)] = self._known(value, from_pairs(self.b, pairs))
            return pairs.value
        tensor = Tensor(ir.Value(name=name), value.dtype, value.shape, fake=value.fake)
        self.b.declare(tensor)
        self._tensors[id(value)] = tensor
        return tensor.value

    def _tensor(self, value: Value) -> Tensor:
        found = self._tensors.get(id(value))
        if found is not None:
            return found
        if value.constant is None:
            raise InternalError(f"{value} is read before it is computed")
        tensor = self._constant(value, value.constant)
        self._tensors[id(value)] = tensor
        return tensor

    def _constant(self, value: Value, constant: torch.Tensor) -> Tensor:
        if constant.dtype not in TORCH_TO_ONNX:
            raise UnsupportedDtypeError(
                f"{value.name} is {constant.dtype}, which ONNX does not have"
            )
        is_parameter = self._graph.parameters.get(value.name) is value
        if not is_parameter:
            return self.b.const(constant)
        if constant.dtype.is_complex:
            pairs = torch.view_as_real(constant.detach().resolve_conj())
            return from_pairs(self.b, self._parameter(value, pairs))
        return self._parameter(value, constant)

    def _parameter(self, value: Value, constant: torch.Tensor) -> Tensor:
        found = self._parameters.get(value.name)
        if found is not None:
            return found
        initializer = ir.Value(name=value.name, const_value=TorchTensor(constant, value.name))
        self._initializers[value.name] = initializer
        known = constant if holds_memory(constant) else None
        shape = tuple(constant.shape)
        tensor = self.b.declare(Tensor(initializer, constant.dtype, shape, known, constant))
        self._parameters[value.name] = tensor
        return tensor

    def _block(self, block: Block) -> list[Any]:
        """What a block computes stays inside it."""
        outer, self._tensors = self._tensors, dict(self._tensors)
        try:
            for node in block.nodes:
                self._node(node)
            # A number is computed here: what it is computed of is known in the block alone.
            return [
                self.b.scalar(output)
                if isinstance(output, sympy.Basic)
                else map_values(output, self._tensor)
                for output in block.outputs
            ]
        finally:
            self._tensors = outer

    def _declare(self, value: Value, tensor: Tensor) -> None:
        self._tensors[id(value)] = tensor

    def _node(self, node: Node) -> None:
        if not _has_form(node, self._library, self._custom):
            self._fall_back(node)
            return
        if node.blocks:
            self.b.location = node.location
            carried = [*node.outputs, *(v for block in node.blocks for v in block.inputs)]
            if any(value.dtype.is_complex for value in carried):
                reason = "complex numbers cannot be handed into or out of a branch or a loop"
                self._stand_in(node, reason)
                return
            arguments = self._arguments(node)
            try:
                results = emit_control_flow(self.b, node, arguments, self._block, self._declare)
            except Refusal as refusal:
                self._stand_in(node, str(refusal))
                return
            self._bind_results(node, results)
            return
        self.b.location = node.location
        try:
            arguments = self._arguments(node)
            custom = self._custom.find(node.name)
            if custom is not None:
                results = custom(self._custom_call(node, arguments))
            elif is_complex_call(node):
                results = lower_complex_call(self.b, node, arguments, partial(self._call, node))
            else:
                results = self._call(node, arguments)
        except (Refusal, UnsupportedDtypeError) as refusal:
            self._fall_back(node, str(refusal))
            return
        except (
            SymbolicFunctionError,
            InternalError,
            AssertionError,
            AttributeError,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
        ) as error:
            if any(v in self._refused for v in node.inputs()):  # nothing real to stand on
                self._stand_in(node)
                return
            if isinstance(error, SymbolicFunctionError):
                raise
            raise InternalError(
                f"the lowering of {node.name} failed: {type(error).__name__}: {error}",
                [("first", node.location.describe()), ("inputs", node.describe_inputs())],
            ) from error
        self._bind_results(node, results)

    def _custom_call(self, node: Node, arguments: dict[str, Any]) -> Call:
        parameters, trainable = self._graph.parameters, self._custom.trainable
        return Call(self.b, node, arguments, parameters, trainable)

    def _fall_back(self, node: Node, reason: str | None = None) -> None:
        """Writes a node without a form as a custom node, where the options say so. Without a
        `reason`, it was reported before."""
        form = self._custom.last_resort(node.name)
        if form is not None:
            self.b.location = node.location
            arguments = self._arguments(node)
            try:
                self._bind_results(node, form(self._custom_call(node, arguments)))
            except Refusal as refusal:
                reason = str(refusal)
            else:
                return
        self._stand_in(node, reason)

    def _call(self, node: Node, arguments: dict[str, Any]) -> Any:
        lowering = self._library.get(node.name)
        assert lowering is not None
        return call_lowering(self.b, lowering, arguments, default_arguments(node.op))

    def _bind_results(self, node: Node, results: Any) -> None:
        given = _flat(results)
        if len(given) < len(node.outputs):
            raise InternalError(f"{node.name} gave {len(given)} of {len(node.outputs)} results")
        for value, tensor in zip(node.outputs, given, strict=False):
            if value not in self._read:
                continue
            if tensor is None:
                reason = f"its result number {node.outputs.index(value) + 1} has no ONNX form here"
                self._stand_in(node, reason)
                return
            if value.dtype.is_complex:
                tensor = whole(self.b, tensor)
            if tensor.dtype != value.dtype:
                raise InternalError(
                    f"the lowering of {node.name} gives {tensor.dtype}, PyTorch {value.dtype}\n"
                    f"  inputs  {node.describe_inputs()}"
                )
            if tensor.shape is not None and len(tensor.shape) != value.type.rank:
                raise InternalError(
                    f"the lowering of {node.name} gives {len(tensor.shape)} dims, PyTorch"
                    f" {value.type}\n  inputs  {node.describe_inputs()}"
                )
            self._tensors[id(value)] = self._known(value, tensor)

    def _known(self, value: Value, tensor: Tensor) -> Tensor:
        """With all that PyTorch knows of the value."""
        if isinstance(tensor, ComplexTensor):
            real, imag = (self._known(value, part) for part in (tensor.real, tensor.imag))
            return ComplexTensor(real, imag, tensor.pairs)
        if not value.has_shape:
            return tensor
        differs = tensor.shape != value.shape
        tensor = Tensor(tensor.value, tensor.dtype, value.shape, tensor.const, value.fake)
        return self.b.declare(tensor) if differs else tensor

    def _stand_in(self, node: Node, reason: str | None = None) -> None:
        """Lets the search for further problems go on behind a node that was refused; the `reason`
        is given where it was not reported before."""
        if reason is not None:
            self.problems.append(Problem(node, reason))
        for value in node.outputs:
            dtype = value.dtype if value.dtype in TORCH_TO_ONNX else torch.float32
            part = Tensor(ir.Value(name=f"refused_{value.name}"), dtype.to_real(), value.shape)
            self._tensors[id(value)] = ComplexTensor(part, part) if dtype.is_complex else part
            self._refused.add(value)

    def _arguments(self, node: Node) -> dict[str, Any]:
        return {k: map_values(a, self._tensor) for k, a in node.arguments.items()}

    def _output(self, output: Argument) -> Tensor:
        tensor = self._tensor(output) if isinstance(output, Value) else self._number(output)
        return to_pairs(self.b, tensor) if isinstance(tensor, ComplexTensor) else tensor

    def _outputs(self, inputs: list[ir.Value], names: Sequence[str]) -> list[ir.Value]:
        outputs: list[ir.Value] = []
        wanted: list[Argument] = [*self._graph.outputs, *(m.final for m in self._graph.mutated)]
        taken: set[int] = {id(v) for v in inputs} | {id(v) for v in self._initializers.values()}
        for output, name in zip(wanted, names, strict=True):
            tensor = self._output(output)
            producer = tensor.value.producer()
            if producer is None or producer.op_type == "Constant" or id(tensor.value) in taken:
                shape = tensor.shape
                tensor = self.b.Identity(tensor)
                tensor.shape = shape
                self.b.declare(tensor)
            taken.add(id(tensor.value))
            tensor.value.name = name
            outputs.append(tensor.value)
        return outputs

    def _number(self, number: Any) -> Tensor:
        """A number that the model returns, as torch.tensor() makes it one."""
        try:
            return self.b.scalar(number, type_promotion.scalar_dtype(number))
        except Refusal as refusal:
            raise UnsupportedOperatorError(
                f"no ONNX form for a number that the model returns: {refusal}"
            ) from refusal


def _flat(results: Any) -> list[Any]:
    if isinstance(results, (list, tuple)):
        return [tensor for item in results for tensor in _flat(item)]
    return [results]


def call_lowering(
    b: Builder, lowering: Lowering, arguments: dict[str, Any], defaults: dict[str, Any]
) -> Any:
    """Calls a lowering with the arguments it declares; numbers in tensor slots become tensors
    unless the lowering takes scalars there."""
    for name, argument in arguments.items():
        is_number = isinstance(argument, (bool, int, float, complex, sympy.Basic))
        wanted = lowering.annotations.get(lowering.parameter(name))
        if is_number and wanted in (Tensor, Tensor | None):
            arguments[name] = b.scalar(argument)
    return lowering(b, **select_arguments(lowering, arguments, defaults))
