"""A TorchScript graph read into an AtenGraph, its types inferred on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import (
    Argument,
    AtenGraph,
    Block,
    SourceLocation,
    Value,
    is_symbolic,
)
from sardonyx.aten.location import (
    ModuleNames,
    from_source_range,
)
from sardonyx.aten.module_calls import RunningCalls
from sardonyx.aten.schema import METADATA_WRITES, bind
from sardonyx.aten.storage import storage_key
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.autograd_functions import operator_in_torchscript
from sardonyx.capture.flat_model import without_prefix
from sardonyx.capture.function_overrides.data_checks import is_answered_no
from sardonyx.capture.quantized.reader import QuantizedReader
from sardonyx.capture.quantized.tensor import QuantizedTensor
from sardonyx.capture.side_effects.tensor_state import state_tensors
from sardonyx.capture.torchscript.containers.list_operators import ListOperators
from sardonyx.capture.torchscript.containers.lists import ScriptLists
from sardonyx.capture.torchscript.containers.strings import Texts
from sardonyx.capture.torchscript.control_flow.blocks import (
    FOREVER,
    Body,
    Loop,
    ModelRaises,
    Readings,
    ScriptBlocks,
    TypesChange,
    known_truth,
)
from sardonyx.capture.torchscript.control_flow.chosen_objects import (
    changes_in,
    is_one_of_two_changed,
)
from sardonyx.capture.torchscript.control_flow.loop_exits import constants_at_exit
from sardonyx.capture.torchscript.control_flow.path_splitting import (
    SQUEEZES,
    BranchesDiffer,
    ReadsApart,
    TwoTypes,
    different_types,
    open_squeeze,
)
from sardonyx.capture.torchscript.control_flow.patterns import CannotJoin, Conform
from sardonyx.capture.torchscript.interpreter.attributes import ModuleAttributes
from sardonyx.capture.torchscript.interpreter.calls import NotHere, ScriptCalls
from sardonyx.capture.torchscript.interpreter.constructs import CONSTRUCTS, dtype_of, no_form
from sardonyx.capture.torchscript.interpreter.node_values import (
    has_writes,
    names_read,
    raises,
    unpacked_into,
)
from sardonyx.capture.torchscript.interpreter.node_values import inputs as node_inputs
from sardonyx.capture.torchscript.interpreter.node_values import outputs as node_outputs
from sardonyx.capture.torchscript.interpreter.nodes import NodeWriter
from sardonyx.capture.torchscript.interpreter.tensor_queries import READ_NUMBERS, TensorQuestions
from sardonyx.capture.torchscript.types.numbers import ScriptNumbers, is_arithmetic
from sardonyx.capture.torchscript.types.reshaped import ReshapedTensors
from sardonyx.capture.torchscript.types.unranked import (
    OF_LISTS,
    OF_SIZES,
    AnyRankTensors,
    holds_any_rank,
    is_of_open_length,
    needs_rank,
)
from sardonyx.capture.torchscript.types.values import (
    NUMBERS,
    UNINITIALIZED,
    AnyRank,
    ChosenConstant,
    CodedText,
    ComputedNumber,
    Heap,
    MaybeNone,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    UnknownText,
    as_python,
    is_constant,
    number_dtype,
)
from sardonyx.errors import (
    CaptureError,
    SardonyxError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
    format_message,
)

_WITHOUT_EFFECT = frozenset({"aten::warn", "prim::Print"})


class GraphReader(NodeWriter):
    def __init__(
        self,
        root: torch.nn.Module,
        modules: ModuleNames,
        into: AtenGraph | None = None,
        mode: Any = None,
    ) -> None:
        super().__init__(into, mode)
        self._modules = modules
        self._running = RunningCalls(modules.classes)
        self.heap = Heap()
        self.reshaped = ReshapedTensors(self.heap)
        self.numbers = ScriptNumbers(self.emit, self.graph, self.inference)
        self.texts = Texts(self)
        self.lists = ScriptLists(self)
        self.heap.replaced = self.lists.replaced
        self._list_operators = ListOperators(self)
        self.calls = ScriptCalls(self)
        self._questions = TensorQuestions(self)
        self.blocks = ScriptBlocks(self)
        self.apart = ReadsApart(self)
        self.any_rank = AnyRankTensors(self)
        self.conform = Conform(self)
        self.attributes = ModuleAttributes(root, self.heap, self._parameter)
        self._quantized = QuantizedReader(
            self.emit, self._held, self._loop, lambda: self.example_sizes
        )
        self.env: dict[str, Argument] = {}
        self._program: Any = None
        self._changes: list[Any] = []
        """The nodes that change an object, or the shape of a tensor."""
        self._by_storage: dict[Any, Value] = {}
        self._paths = {storage_key(t): path for path, t in state_tensors(root)}

    def read_program(self, graph: Any, arguments: dict[str, Argument]) -> Argument:
        """A scripted function or method: what it returns of its arguments by name, the module as
        `self` among them."""
        for source, argument in zip(graph.inputs(), arguments.values(), strict=True):
            self.env[source.debugName()] = argument
        self._program = graph
        self._changes = changes_in(graph.nodes())
        try:
            (result,) = self.read_block(list(graph.nodes()), list(graph.outputs()), at_end=True)
        except ModelRaises as error:
            raise CaptureError(
                format_message(f"the model raises: {error}", [("at", error.place())])
            ) from error
        except CannotJoin as reason:
            raise CaptureError(f"values of different types meet: {reason}") from reason
        except (CaptureError, UnsupportedOperatorError) as error:
            others = self._further_refusals(list(graph.nodes()))
            is_ours = isinstance(error, (TypesChange, BranchesDiffer))
            kind = CaptureError if is_ours else type(error)
            if not others:
                raise (kind(str(error)) if is_ours else error) from error.__cause__
            raise kind(
                format_message(
                    f"{1 + len(others)} places of the program have no ONNX form",
                    [("", [*_lines(error), *(line for other in others for line in _lines(other))])],
                )
            ) from error
        return result

    def _further_refusals(self, nodes: Sequence[Any]) -> list[SardonyxError]:
        """What else is refused, of the nodes that do not depend on the first that was."""
        found: list[SardonyxError] = []
        unread = (n for n in nodes if any(o.debugName() not in self.env for o in node_outputs(n)))
        next(unread, None)
        for node in unread:
            if not all(name in self.env for name in names_read(node)):
                continue
            try:
                self.read_block([node], [])
            except (CaptureError, UnsupportedOperatorError) as error:
                found.append(error)
            except (ModelRaises, CannotJoin):
                continue
        return found

    def check_outputs(self) -> None:
        for index, output in enumerate(self.graph.outputs):
            if isinstance(output, QuantizedTensor):
                raise UnsupportedDtypeError(
                    f"output {index} is quantized, a type that ONNX does not have: return its"
                    " dequantize() or its int_repr()"
                )

    @cached_property
    def writes_tensors(self) -> bool:
        return has_writes(self._program)

    # -- blocks ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        made = Block()
        with self.writing_into(made), self.reshaped.inside(made), self.scalars.inside_a_block():
            yield made

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        nodes, notes = self.graph.nodes, self.notes
        counts = len(nodes), len(notes)
        try:
            with self.heap.attempt():
                yield
        except BaseException:
            del nodes[counts[0] :], notes[counts[1] :]
            raise

    def read_block(
        self,
        nodes: Sequence[Any],
        outputs: Sequence[Any],
        then: Callable[[list[Argument]], list[Argument]] | None = None,
        *,
        at_end: bool = False,
        is_body: bool = False,
    ) -> list[Argument]:
        """Reads nodes into the current block; what the outputs hold at the end, or what comes of
        it where more is read after them. `at_end`: the program ends there; `is_body`: an iteration
        of a loop."""
        ends = {"at_end": at_end, "is_body": is_body}

        def from_place(start: int) -> Callable[[], list[Argument]]:
            return partial(self.read_block, nodes[start:], outputs, then, **ends)

        for place, node in enumerate(nodes):
            kind = node.kind()
            if kind in SQUEEZES:
                squeeze = open_squeeze(self.inputs_of(node))
                if squeeze is not None:
                    return self.apart.squeezed(node, squeeze, from_place(place + 1), ends)
            if kind == "prim::Loop":
                try:
                    with self.attempt():
                        self._node(node)
                    continue
                except TypesChange as refusal:
                    return self.apart.first_iterations(node, refusal, from_place(place + 1), ends)
            if kind != "prim::If":
                try:
                    self._node(node)
                    continue
                except TwoTypes as choice:
                    return self.apart.operand(node, choice, from_place(place), ends)
            (condition,) = self.inputs_of(node)
            ways = [(block, condition, not index) for index, block in enumerate(node.blocks())]
            readings = [partial(self._branch, *way) for way in ways]
            location = self.here = self.location(node)
            try:
                if not self.apart.is_at_limit and is_one_of_two_changed(node, self._changes):
                    # What follows is to know which side was taken, though what both leave fits.
                    raise CannotJoin("one of two objects, which is changed")
                with self.attempt():
                    results = self.blocks.branch(condition, readings, location)
            except CannotJoin as reason:
                is_open = known_truth(condition) is None
                if is_open and self.apart.is_at_limit:
                    self._set_joined(node, condition, readings, reason)
                    continue
                # What follows is read once more in each branch, where its types are known.
                go_on = partial(self.go_on, node, from_place(place + 1))
                readings = [partial(self._branch, *way, go_on, **ends) for way in ways]
                refused = partial(different_types, location=location)
                return self.apart.branch(
                    condition, readings, location, ends, refused, copies=int(is_open)
                )
            self.set_outputs(node, results)
            self._note_joined(node, condition, results)
            for block, _, holds in ways:
                if isinstance(condition, _EQUATIONS) and raises(block):
                    with self.any_rank.where(condition, not holds):
                        return from_place(place + 1)()
        results = [self.reshaped.now(self.env[o.debugName()]) for o in outputs]
        return results if then is None else then(results)

    def _note_joined(self, node: Any, condition: Argument, results: list[Argument]) -> None:
        """What `x.dim() == 3 and c` says of the tensor is known where that is true."""
        sides = zip(*(block.outputs() for block in node.blocks()), strict=True)
        for result, names in zip(results, sides, strict=True):
            then, otherwise = (self.env.get(name.debugName()) for name in names)
            if any(isinstance(c, _EQUATIONS) for c in (condition, then, otherwise)):
                self.any_rank.note_joined(condition, result, then, otherwise)

    def _set_joined(
        self,
        node: Any,
        condition: Argument,
        readings: Readings,
        reason: CannotJoin,
    ) -> None:
        """What a branch leaves, tensors of two ranks among it."""
        if self.apart.loops:
            raise different_types(reason, self.location(node)) from reason
        location = self.here = self.location(node)
        try:
            with self.attempt():
                results = self.blocks.branch(condition, readings, location, of_any_rank=True)
        except CannotJoin:
            raise different_types(reason, location) from reason
        self.set_outputs(node, results)

    def _branch(
        self,
        block: Any,
        condition: Argument,
        holds: bool,
        then: Callable[[list[Argument]], list[Argument]] | None = None,
        **ends: bool,
    ) -> list[Argument]:
        with self.any_rank.where(condition, holds):
            return self.read_block(list(block.nodes()), list(block.outputs()), then, **ends)

    def go_on(
        self, node: Any, rest: Callable[[], list[Argument]], results: Sequence[Argument]
    ) -> list[Argument]:
        """What follows a node that gave these results."""
        self.set_outputs(node, results)
        return rest()

    def _read_loop(self, node: Any) -> None:
        count, condition, *start = self.inputs_of(node)
        (block,) = node.blocks()
        body = partial(self.iteration, block)
        results = self.blocks.loop(Loop(count, condition, start, body, self.here))
        if count == FOREVER and condition is True:
            for place, flag in constants_at_exit(block).items():
                results[place] = flag
        self.set_outputs(node, results)

    def either(
        self, condition: Argument, one: Callable[[], Argument], other: Callable[[], Argument]
    ) -> Argument:
        """A branch that the program does not have itself."""
        readings = [lambda: [one()], lambda: [other()]]
        return self.blocks.branch(condition, readings, self.here)[0]

    def repeat(
        self,
        count: Argument,
        start: Sequence[Argument],
        body: Body,
    ) -> list[Argument]:
        """A loop that the program does not have itself; `body` gives what is carried on."""

        def going_on(i: Argument, carried: Sequence[Argument]) -> list[Argument]:
            return [True, *body(i, carried)]

        return self.blocks.loop(Loop(count, True, start, going_on, self.here))

    def code_among(self, constant: Argument, options: tuple[Any, ...]) -> Argument:
        """The place of a constant, which may be chosen at run time itself, among options."""
        if not isinstance(constant, ChosenConstant):
            return options.index(constant)
        if constant.options == options[: len(constant.options)]:
            return constant.code
        places = torch.tensor([options.index(option) for option in constant.options])
        table = Value("places", type_of(places), constant=places)
        place = self.numbers.as_scalar(constant.code)
        return ComputedNumber(self.emit(torch.ops.aten.select.int, [table, 0, place])[0])

    def iteration(
        self, block: Any, place: Argument, carried: Sequence[Argument], done: int = 0
    ) -> list[Argument]:
        """Of a loop; `done`: iterations that were read before."""
        if done:
            place = self.numbers.compute("aten::add", [place, done], torch.int64)
        for source, argument in zip(block.inputs(), (place, *carried), strict=True):
            self.env[source.debugName()] = argument
        return self.read_block(list(block.nodes()), list(block.outputs()), is_body=True)

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Any) -> None:
        kind = node.kind()
        if kind == "prim::Constant":
            output = node.output()
            value = output.toIValue()
            if type(value) in _PLAIN:
                self.env[output.debugName()] = value
                return
        self.here = self.location(node)
        try:
            self._read_node(kind, node)
        except ModelRaises as error:
            error.location = error.location or self.here
            raise
        except CaptureError as error:
            if "\n" in str(error):
                raise
            raise CaptureError(
                format_message(str(error), [("at", self.here.describe())])
            ) from error

    def _read_node(self, kind: str, node: Any) -> None:
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, node)
            return
        if kind in _WITHOUT_EFFECT:
            return
        if kind == "aten::Bool" and is_answered_no(self.here):
            self.set(node, False)
            return
        self.set_outputs(node, self._results(node, self.inputs_of(node)))

    def _results(self, node: Any, operands: list[Argument]) -> list[Argument]:
        """What a call of an operator gives."""
        kind = node.kind()
        chosen = next((o for o in operands if isinstance(o, ChosenConstant)), None)
        if chosen is not None and not _takes_chosen(kind, operands):
            return self._of_each_option(node, operands, chosen)
        is_any_rank = any(isinstance(o, AnyRank) for o in operands)
        for calls in (self.calls,) if is_any_rank else (self.calls, self._questions):
            with contextlib.suppress(NotHere):
                return _as_outputs(node, calls.call(kind, operands))
        if is_arithmetic(kind, operands) and not all(map(is_constant, operands)):
            dtype = NUMBERS.get(node.output().type().kind()) or numberdtype_of(operands)
            return [self.numbers.compute(kind, operands, dtype)]
        optional = next((o for o in operands if isinstance(o, MaybeNone)), None)
        if optional is not None:
            ways = [optional.content, None]
            return self._of_either(node, operands, optional, optional.present, ways)
        op = _torch_private.overload_of(node)
        if is_any_rank:
            return self._of_any_rank(node, op, operands)
        if kind in OF_LISTS and any(map(holds_any_rank, operands)):
            return [self.any_rank.of_tensors(op, operands)]
        if kind in OF_SIZES:
            sizes = next((o for o in operands if is_of_open_length(o)), None)
            if sizes is not None:
                return [self.any_rank.of_list(op, sizes, operands)]
        if op is None or not _torch_private.is_known_to_dispatcher(op):
            return self._script_operator(node, op, operands)
        for source, operand in zip(node_inputs(node), operands, strict=True):
            if source.type().kind() == "BoolType" and isinstance(
                operand, (ComputedNumber, sympy.Basic)
            ):
                # Operators have no form for a bool that is computed.
                return self._of_either(node, operands, operand, operand, [True, False])
        return self._operator(node, op, operands)

    def _of_any_rank(self, node: Any, op: Any, operands: list[Argument]) -> list[Argument]:
        def reread(others: dict[Argument, Argument]) -> Argument:
            tensors = (Value, AnyRank)
            given = [others.get(o, o) if isinstance(o, tensors) else o for o in operands]
            results = self._results(node, given)
            return results[0] if len(results) == 1 else tuple(results)

        kind = node.kind()
        view = METADATA_WRITES.get(kind)
        if view is None:
            return _as_outputs(node, self.any_rank.call(kind, op, operands, reread))
        shape = self.any_rank.call(kind.removesuffix("_"), view(op), operands, reread)
        return [self.reshape(node, shape)]

    def reshape(self, node: Any, view: Value | AnyRank) -> Argument:
        """The tensor whose shape a node changes, and that is its view from here on."""
        tensor = self.env[node.inputsAt(0).debugName()]
        self.reshaped.check_shape_is_its_own(node, tensor)
        self.reshaped.reshape(tensor, view)
        return tensor

    def _of_either(
        self,
        node: Any,
        operands: list[Argument],
        operand: Argument,
        condition: Argument,
        ways: list[Argument],
        *,
        of_constants: bool = False,
    ) -> list[Argument]:
        """One call where an operand, which a condition decides, is this, one where it is that.
        `of_constants`: what they give may be a choice of constants again."""

        def reading(way: Argument) -> list[Argument]:
            return self._results(node, [way if o is operand else o for o in operands])

        readings = [partial(reading, way) for way in ways]
        try:
            return self.blocks.branch(condition, readings, self.here, is_body=of_constants)
        except CannotJoin as reason:
            inputs = [i.debugName() for i in node_inputs(node)]
            names = [name for name in inputs if self.env[name] is operand]
            raise TwoTypes(
                f"what {node.kind()} gives has two types: {reason}", names, operand, condition, ways
            ) from reason

    def _of_each_option(
        self, node: Any, operands: list[Argument], chosen: ChosenConstant
    ) -> list[Argument]:
        first, *others = chosen.options
        if not others:
            raise AssertionError("a choice of one")
        rest: Argument = others[0]
        if len(others) > 1:
            code = self.numbers.compute("aten::sub", [chosen.code, 1], torch.int64)
            rest = ChosenConstant(code, tuple(others))
        is_first = self.numbers.compute("aten::eq", [chosen.code, 0], torch.bool)
        ways = [first, rest]
        return self._of_either(node, operands, chosen, is_first, ways, of_constants=True)

    def _script_operator(self, node: Any, op: Any, operands: list[Argument]) -> list[Argument]:
        """What TorchScript alone has: run by it where all is known."""
        kind = node.kind()
        if op is not None and len(operands) <= len(op._schema.arguments):
            arguments = bind(op, [self._plain(o) for o in operands])
            number = self._number_read(node, arguments)
            if number is not None:
                return [number]
            if kind == "aten::to":
                return [self._moved(arguments)]
        if not all(map(is_constant, operands)):
            raise no_form(kind, self.here)
        try:
            given = [as_python(o) for o in operands]
            # Without its overload, an operator is the first that takes the values.
            by_name = op is None or len(operands) > len(op._schema.arguments)
            run = partial(_torch_private.run_script_operator, kind) if by_name else op
            result = run(*given)
        except RuntimeError as error:
            raise no_form(kind, self.here) from error
        return _as_outputs(node, self.wrapped(result))

    def _moved(self, arguments: dict[str, Argument]) -> Argument:
        """`x.to(...)` of a device, or of what may be None: itself where nothing changes."""
        tensor, dtype = arguments["self"], arguments.get("dtype")
        wanted = tensor.dtype if dtype is None else dtype_of(dtype)
        if wanted == tensor.dtype and not arguments.get("copy"):
            return tensor
        return self.emit(torch.ops.aten._to_copy.default, [tensor], dtype=wanted)[0]

    def _number_read(self, node: Any, arguments: dict[str, Argument]) -> Argument | None:
        """`int(x)`, `x.item()`; None where no number is read off a tensor."""
        read = next(iter(arguments.values()), None)
        if node.kind() not in READ_NUMBERS:
            return None
        if isinstance(read, (UnknownText, CodedText)):
            raise CaptureError(
                "a number is read from a string that is known at run time: take the number that the"
                " string is made of"
            )
        if not isinstance(read, Value):
            return None
        known = self.scalars.read(node.kind(), read)
        if known is not None:
            return known
        kind = node.output().type().kind()
        dtype = NUMBERS.get(kind)
        if kind == "NumberType":
            held = read.dtype
            dtype = torch.float64 if held.is_floating_point else torch.int64
            dtype = torch.bool if held == torch.bool else dtype
        return None if dtype is None else self.numbers.read(read, dtype)

    def inputs_of(self, node: Any) -> list[Argument]:
        found = [self.reshaped.now(self.env[i.debugName()]) for i in node_inputs(node)]
        return [self.any_rank.now(a) for a in found] if self.any_rank.known else found

    def set(self, node: Any, result: Argument) -> None:
        self.env[node.output().debugName()] = result

    def set_outputs(self, node: Any, results: Sequence[Argument]) -> None:
        for output, result in zip(node_outputs(node), results, strict=True):
            self.env[output.debugName()] = result

    def _operator(self, node: Any, op: Any, operands: list[Argument]) -> list[Argument]:
        found = self._list_operators.call(op._schema.name, operands, unpacked_into(node))
        if found is not None:
            return [found]
        arguments = bind(op, list(map(self._bound, operands, node_inputs(node))))
        if op._schema.name in _TAKES_MASKS:
            arguments["indices"] = [self._plain_mask(i) for i in arguments["indices"]]
        number = self._number_read(node, arguments)
        if number is not None:
            return [number]
        if self._quantized.concerns(op, arguments):
            return self._by_output(node, self._quantized.read(op, arguments, self.here))
        if op._schema.name in METADATA_WRITES:
            made = self._inferred(METADATA_WRITES[op._schema.name](op), arguments)
            self.graph.nodes.append(made)
            return [self.reshape(node, made.outputs[0])]
        if any("Tensor" not in str(result.type) for result in op._schema.returns):
            raise no_form(node.kind(), self.here)
        if op is torch.ops.aten.fill_diagonal_.default and is_symbolic(
            list(arguments["self"].shape)
        ):
            self._fill_open_diagonal(*arguments.values())
            return [arguments["self"]]
        return self._by_output(node, list(self._added(self._typed(node, op, arguments))))

    def _fill_open_diagonal(self, tensor: Value, fill_value: Argument, wrap: bool) -> None:
        """Which PyTorch takes apart for the sizes of the example."""
        if len(tensor.shape) != 2 or wrap:
            raise CaptureError(
                format_message(
                    "fill_diagonal_ of more than two dims, or with wrap, wants sizes that are known"
                    " in a script",
                    [("at", self.here.describe()), ("try", 'capture="trace" or capture="export"')],
                )
            )
        (diagonal,) = self.emit(torch.ops.aten.diagonal.default, [tensor])
        self.emit(torch.ops.aten.fill_.Scalar, [diagonal, fill_value])

    def _plain_mask(self, index: Argument) -> Argument:
        """A mask of bytes as one of bools."""
        if not isinstance(index, Value) or index.dtype != torch.uint8:
            return index
        return self.emit(torch.ops.aten._to_copy.default, [index], dtype=torch.bool)[0]

    def _by_output(self, node: Any, values: list[Argument]) -> list[Argument]:
        """What an operator gives, its lists of tensors as such."""
        outputs = node_outputs(node)
        found: list[Argument] = []
        for place, output in enumerate(outputs):
            count = 1
            if str(output.type()).startswith("List["):
                count = len(values) - (len(outputs) - place - 1)
                found.append(self.lists.new(values[:count]))
            else:
                found.append(values[0])
            values = values[count:]
        return found

    def _bound(self, operand: Argument, source: Any) -> Argument:
        """As an operator takes it."""
        if operand is UNINITIALIZED:
            raise CaptureError("a variable is read that no path has set")
        if isinstance(operand, ComputedNumber) and source.type().kind() == "TensorType":
            return operand.value
        return self._plain(operand)

    def _plain(self, argument: Argument) -> Argument:
        if isinstance(argument, AnyRank):
            raise needs_rank("an operator on a list of tensors", argument, self.here)
        if isinstance(argument, ComputedNumber):
            return self.numbers.as_scalar(argument)
        if isinstance(argument, ScriptList):
            items = self.lists.known_items(argument.state)
            if items is None:
                raise CaptureError("an operator takes a list whose length must be known")
            return [self._plain(a) for a in items]
        if isinstance(argument, tuple):
            return [self._plain(a) for a in argument]
        return argument

    def wrapped(self, found: Any) -> Argument:
        """A Python value as the program's variables hold it."""
        if isinstance(found, list):
            return self.lists.new([self.wrapped(item) for item in found])
        if isinstance(found, tuple):
            return tuple(self.wrapped(item) for item in found)
        if isinstance(found, dict):
            return self.heap.new(ScriptDict({k: self.wrapped(v) for k, v in found.items()}))
        return found

    # -- what only TorchScript has ---------------------------------------------------------------

    def _constant(self, node: Any) -> None:
        value = node.output().toIValue()
        if isinstance(value, torch.Tensor) and value.is_quantized:
            self.set(node, self._quantized.constant(node.output().debugName(), value))
        elif isinstance(value, torch.Tensor):
            path = self._paths.get(storage_key(value))
            if path is not None:
                self.set(node, self._parameter(path, value.detach()))
                return
            self.set(
                node, Value(node.output().debugName(), type_of(value), constant=value.detach())
            )
        else:
            self.set(node, self.wrapped(value))

    def _get_attribute(self, node: Any) -> None:
        (owner,) = self.inputs_of(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self.set(node, owner.state[name])
        else:
            kind = node.output().type()
            class_name = str(kind) if kind.kind() == "ClassType" else ""
            self.set(node, self.attributes.get((*owner.path, name), class_name))

    def _set_attribute(self, node: Any) -> None:
        owner, content = self.inputs_of(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self.heap.set(owner, {**owner.state, name: content})
            return
        self.attributes.set((*owner.path, name), content)

    def _parameter(self, path: str, tensor: torch.Tensor) -> Value | QuantizedTensor:
        if tensor.is_quantized:
            return self._quantized.constant(without_prefix(path), tensor)
        key = storage_key(tensor)
        if key not in self._by_storage:
            self._by_storage[key] = self._held(without_prefix(path), tensor)
        return self._by_storage[key]

    def _held(self, name: str, tensor: torch.Tensor) -> Value:
        """A parameter of the graph, by the name it is known under."""
        if name not in self.graph.parameters:
            self.graph.parameters[name] = Value(name, type_of(tensor), constant=tensor)
        return self.graph.parameters[name]

    def _fork(self, node: Any) -> None:
        """What would run beside the rest, in its place."""
        results = self._read_graph(_torch_private.inlined_subgraph(node), self.inputs_of(node))
        self.set(node, results[0])

    def _autograd_function(self, node: Any) -> None:
        """The operators that ran inside the forward of a torch.autograd.Function, in its place; or
        one operator for the call."""
        operands = self.inputs_of(node)
        whole = operator_in_torchscript(node, [self._plain(a) for a in operands])
        if whole is not None:
            function, given = whole
            self.set(node, self.wrapped(function.result(self.emit(function.op, given))))
            return
        if not node.hasAttribute("Subgraph"):
            raise no_form(node.kind(), self.location(node))
        results = self._read_graph(node.g("Subgraph"), operands)
        gives_tuple = node.output().type().kind() == "TupleType"
        self.set(node, tuple(results) if gives_tuple else results[0])

    def _read_graph(self, graph: Any, given: Sequence[Argument]) -> list[Argument]:
        """What a graph gives whose values have names of their own."""
        outer = self.env, self._changes
        self.env = {i.debugName(): a for i, a in zip(graph.inputs(), given, strict=True)}
        self._changes = changes_in(graph.nodes())
        try:
            return self.read_block(list(graph.nodes()), list(graph.outputs()))
        finally:
            self.env, self._changes = outer

    def location(self, node: Any) -> SourceLocation:
        path, calls = self._running.of(node)
        place = from_source_range(node.sourceRange())
        if not place[0]:  # of lists, tuples and dicts TorchScript keeps no place: who takes them
            users = (use.user for output in node_outputs(node) for use in output.uses())
            places = (from_source_range(user.sourceRange()) for user in users)
            place = next(filter(lambda found: found[0], places), place)
        return self._modules.location(path, place, calls)


_READERS: dict[str, Callable[[GraphReader, Any], None]] = {
    **CONSTRUCTS,
    "prim::Constant": GraphReader._constant,
    "prim::GetAttr": GraphReader._get_attribute,
    "prim::SetAttr": GraphReader._set_attribute,
    "prim::Loop": GraphReader._read_loop,
    "prim::fork": GraphReader._fork,
    "prim::PythonOp": GraphReader._autograd_function,
}
_PLAIN = frozenset((type(None), bool, int, float, str))
_EQUATIONS = (sympy.Eq, sympy.Ne)
_TAKES_MASKS = frozenset({"aten::index", "aten::index_put", "aten::index_put_"})


def numberdtype_of(operands: Sequence[Argument]) -> torch.dtype:
    """Of a Scalar, which TorchScript leaves open."""
    kinds = [number_dtype(o) for o in operands]
    return torch.float64 if torch.float64 in kinds else kinds[0]


def _as_outputs(node: Any, result: Argument) -> list[Argument]:
    count = node.outputsSize()
    return list(result) if count > 1 else [result] * count


def _takes_chosen(kind: str, operands: Sequence[Argument]) -> bool:
    """Whether an operator takes a constant that is chosen at run time as it is."""
    if kind in _HOLDS_LAST_OPERAND:
        return not any(isinstance(o, ChosenConstant) for o in operands[:-1])
    return kind in _TAKES_CHOSEN


_HOLDS_LAST_OPERAND = frozenset({"aten::append", "aten::insert", "aten::_set_item"})
_TAKES_CHOSEN = frozenset(
    {
        "aten::eq", "aten::ne", "aten::__is__", "aten::__isnot__", "aten::format",
        "aten::percentFormat", "aten::str", "prim::unchecked_cast", "aten::warn",
    }
)  # fmt: skip


def _lines(error: SardonyxError) -> list[str]:
    return str(error).splitlines()
