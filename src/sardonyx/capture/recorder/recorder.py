"""The recorder: each call of the running model becomes a node of an AtenGraph."""

from __future__ import annotations

import contextlib
import sys
from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.capture.bind import bind, parameters_of
from sardonyx.capture.control_flow import LOOP
from sardonyx.capture.graph import (
    READS_A_NUMBER,
    SCRIPT,
    Argument,
    AtenGraph,
    Block,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
)
from sardonyx.capture.infer import has_symbols, tensors_in, type_of
from sardonyx.capture.location import Place, innermost_user_place, place_text
from sardonyx.capture.open_forms import OPEN_OPERATORS
from sardonyx.capture.pure_forms import METADATA_WRITES
from sardonyx.capture.recorder.control_flow import ControlFlow
from sardonyx.capture.recorder.example import ExampleValues
from sardonyx.capture.recorder.modules import ModuleCalls
from sardonyx.capture.recorder.quantized import QuantizedCalls
from sardonyx.capture.recorder.results import AlikeResults
from sardonyx.capture.shapes.broadcast import with_common_sizes, with_open_sizes
from sardonyx.capture.shapes.rules import SHAPE_RULES
from sardonyx.capture.size_arguments import ATEN_FORMS
from sardonyx.capture.size_conditions import SizeCondition
from sardonyx.capture.storage import storage_key
from sardonyx.capture.torchscript.program import read_call
from sardonyx.errors import CaptureError, FinalCaptureError, SardonyxError, format_message

aten = torch.ops.aten
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_NUMBERS = (*_SYMBOLIC, bool, int, float)
_ASSERTIONS = frozenset(
    {
        "aten::_assert_async", "aten::_assert_async.msg", "aten::_assert_scalar",
        "aten::_assert_tensor_metadata", "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size", "aten::_functional_assert_async.msg",
        "aten::_functional_sym_constrain_range", "aten::record_stream",
    }
)  # fmt: skip
_WITH_MEMORY = {aten._efficientzerotensor.default: aten.zeros.default}
"""By operators whose results have no memory, those that give the same with it."""
_LIFTS = frozenset((aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.lift.default))
_READS = frozenset((aten.item.default, aten._local_scalar_dense.default))


class Recorder:
    """Runs the calls of a model on fake tensors and writes them into a graph.

    A tensor that the model has is either a fake one, made here, or a real one from outside of the
    run: a parameter, a buffer, a constant. Both stand for a Value of the graph.
    """

    def __init__(
        self,
        modules: ModuleCalls,
        names: Mapping[int, str],
        packed_names: dict[int, str],
        captured_by: str,
    ) -> None:
        """`names`: what the tensors that the model holds are called, by id; `packed_names`: what
        the packed weights of quantized layers are."""
        self.graph = AtenGraph(captured_by=captured_by)
        self.mode = _torch_private.new_recording_mode(self._look)
        self.dispatch = _torch_private.RecordingMode(self.call)
        self.example = ExampleValues(self)
        self._modules = modules
        self._state_names = names
        self._nodes = self.graph.nodes
        """Of the block that is being filled."""
        self._values: MutableMapping[int, Value] = {}
        """By the id of a tensor that the model has; `_kept` keeps them from being another's."""
        self._values_with_fake: defaultdict[int, list[Value]] = defaultdict(list)
        """A tensor that is written is one value before and another after that."""
        self._sharing: Counter[int] = Counter()
        """How many tensors of the model are a value, by its id."""
        self._new_factory_result: torch.Tensor | None = None
        self._kept: list[Any] = []
        self._fakes: dict[int, torch.Tensor] = {}
        """Of real tensors, by their id."""
        self._by_memory: dict[Any, Value] = {}
        """Real tensors that are the same view of the same memory are one parameter."""
        self._shared_memory: dict[Any, torch.Tensor] = {}
        """By the memory of real tensors, the fake of the first that was seen."""
        self._alike = AlikeResults(self.mode)
        self._control_flow = ControlFlow(self)
        self.quantized = QuantizedCalls(self, packed_names)
        self._name_counts: Counter[str] = Counter()
        self._writes: Counter[int] = Counter()
        """How often memory was written, by its id."""
        self._written_when_seen: dict[int, tuple[int, int]] = {}
        self._blocks_met = 0
        """How often a block began or ended: what is known inside of one is not known outside."""
        self._numbers: dict[tuple[int, int, int], Any] = {}
        """Numbers that were read off a tensor, by its id and the writes of its memory."""
        self.conditions: list[SizeCondition] = []
        """What the run took for granted of sizes."""
        self.small_sizes_aside: dict[sympy.Basic, Place] = {}
        """What the model's own code was told, which holds for sizes from 2 on."""
        self.loop_sizes: set[sympy.Basic] = set()
        """Sizes that may be others in each iteration of a loop."""
        self._is_running_operator = False
        self._located: SourceLocation | None = None
        self.notes: dict[str, None] = {}
        self.refused: Exception | None = None
        """Why the run cannot be recorded; the model's own code may catch it and go on."""
        self.unread_conditions = _torch_private.UnreadConditions(innermost_user_place)
        self.functions: Any = contextlib.nullcontext()
        """The mode that sees the functions of torch which the model calls."""

    def close(self) -> None:
        """When the run has ended: lets go of all but the graph."""
        _torch_private.look_no_more(self.mode)
        self.example.close()
        self._values.clear()
        self._values_with_fake.clear()
        self._fakes.clear()
        self._shared_memory.clear()
        self._kept.clear()
        self.functions = contextlib.nullcontext()

    # -- values ----------------------------------------------------------------------------------

    def add_input(self, name: str, tensor: torch.Tensor) -> None:
        """Makes an input of the graph of a fake tensor."""
        self.graph.inputs.append(self.know_new(name, tensor))
        self.example.varies(tensor)

    def add_number(self, name: str, number: Any) -> None:
        value = Value(name, TensorType(torch.int64, ()))
        self.graph.inputs.append(value)
        self.graph.symbols[_torch_private.dim_of(number)] = SymbolSource(value, None)

    def value_of(self, tensor: torch.Tensor) -> Value:
        value = self._values.get(id(tensor))
        if value is not None:
            return value
        if _torch_private.is_fake_of(self.mode, tensor):
            return self._unknown_fake(tensor)
        return self._outside_tensor(tensor)

    def fake_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor that stands for one of the model's."""
        if _torch_private.is_fake_of(self.mode, tensor):
            return tensor
        self.value_of(tensor)
        return self._fakes[id(tensor)]

    def know_new(self, name: str, fake: torch.Tensor) -> Value:
        """A new value for a new fake tensor."""
        value = Value(name, type_of(fake), fake=fake)
        self._note_sizes(value)
        self.know(fake, value)
        return value

    def note_number(self, number: Any, value: Value) -> None:
        """A symbol is what a value without dims holds."""
        symbol = next(iter(_torch_private.dim_of(number).free_symbols))
        self.graph.symbols[symbol] = SymbolSource(value, None)

    def know(self, tensor: torch.Tensor, value: Value) -> None:
        self._values[id(tensor)] = value
        self._sharing[id(value)] += 1
        self._values_with_fake[id(value.fake)].append(value)
        self._kept.append(tensor)

    def _outside_tensor(self, tensor: torch.Tensor) -> Value:
        if tensor.layout != torch.strided or tensor.is_quantized:
            kind = "quantized" if tensor.is_quantized else str(tensor.layout)
            raise CaptureError(
                format_message(
                    f"a {kind} tensor cannot be recorded", [("at", place_text(self.place()))]
                )
            )
        key = storage_key(tensor)
        value = self._by_memory.get(key)
        if value is None:
            name = self._state_names.get(id(tensor)) or self.new_name("constant")
            constant = tensor.detach()
            if id(tensor) not in self._state_names and constant.numel() < _SMALL:
                constant = constant.clone()  # code outside of PyTorch may write it later
            value = Value(name, type_of(tensor), fake=self._new_fake(tensor), constant=constant)
            self._by_memory[key] = value
            self.graph.parameters[name] = value
            self.example.add_constant(value)
        assert value.fake is not None
        self._fakes[id(tensor)] = value.fake
        self.know(tensor, value)
        self._values[id(value.fake)] = value
        return value

    def _new_fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """A fake of a real tensor; those that share memory have fakes that do."""
        if _torch_private.is_fake(tensor):
            return _torch_private.fake_from(self.mode, tensor)
        sizes, strides = tuple(tensor.shape), tensor.stride()
        if tensor.is_conj() or tensor.is_neg():
            return _torch_private.fake_from(self.mode, tensor)
        memory = _torch_private.storage_identity(tensor)
        first = self._shared_memory.get(memory)
        if first is not None and _torch_private.fake_device(first) == tensor.device:
            offset = tensor.storage_offset()
            return _torch_private.fake_view(first, sizes, strides, offset, tensor.dtype)
        made = _torch_private.new_fake(self.mode, sizes, strides, tensor.dtype, tensor.device)
        self._shared_memory[memory] = made
        return made

    def _unknown_fake(self, tensor: torch.Tensor) -> Value:
        """A fake tensor that no recorded call gave: another object for the memory of a known one,
        as torch.nn.Parameter(x) is."""
        storage = _torch_private.storage_of(tensor)
        for known in reversed(self._kept):
            if (
                _torch_private.is_fake_of(self.mode, known)
                and known.dtype == tensor.dtype
                and _torch_private.storage_of(known) == storage
                and _place_in_memory(known) == _place_in_memory(tensor)
            ):
                value = self._values[id(known)]
                self.know(tensor, value)
                return value
        raise CaptureError(
            format_message(
                "a tensor was computed where no recording sees it: in another thread, or by code"
                " that leaves PyTorch's dispatcher",
                [("at", place_text(self.place()))],
            )
        )

    # -- calls -----------------------------------------------------------------------------------

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the model gets for a call of an operator."""
        try:
            return self._call(func, args, kwargs)
        except SardonyxError as error:
            self.refused = self.refused or error
            raise

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _torch_private.is_higher_order(func):
            return self._control_flow.call(func, args, kwargs)
        if func.namespace == "prim":  # x.device of a fake tensor, and other questions
            with self.dispatch.outside(), self.mode:
                return func(*(self.fake_of(a) if isinstance(a, torch.Tensor) else a for a in args))
        if func in OPEN_OPERATORS:
            with self.dispatch, self.functions:
                return OPEN_OPERATORS[func](*args, **kwargs)
        autocast = getattr(self.functions, "autocast", ())
        if autocast and _torch_private.is_cast_in_parts(func, autocast):
            with self.dispatch.entered(autocast):
                return _torch_private.run_in_parts(func, args, kwargs)
        # Autocast and torch.func have done their part above; gradients are recorded otherwise.
        with self.dispatch.outside(), torch.no_grad():
            return self._record(func, args, kwargs)

    def call_script(
        self, call: Callable[..., Any], script: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a scripted function or method gives: by the Python code that it was made of, or,
        where it has control flow that data may decide, read as the program that it is."""
        own = _torch_private.python_of_script(script)
        if own is not None and not _torch_private.has_control_flow(script):
            return own(*args, **kwargs)
        if isinstance(script, torch.jit.ScriptFunction):
            with self.dispatch.outside(), _torch_private.no_modes():
                return self._read_script(script, args, kwargs)
        if _torch_private.writes_memory_itself(script):
            raise CaptureError(
                format_message(
                    "a script makes tensors of numbers, which cannot be recorded from outside",
                    [
                        ("at", place_text(self.place())),
                        ("try", 'torch.jit.script of the whole model, and capture="script"'),
                    ],
                )
            )
        return call(script, *args, **kwargs)

    def _read_script(self, script: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = AtenGraph(
            nodes=self._nodes,
            parameters=self.graph.parameters,
            symbols=self.graph.symbols,
            symbol_names=self.graph.symbol_names,
            captured_by=SCRIPT,
        )
        given = [self.argument(a) for a in args]
        named = {name: self.argument(a) for name, a in kwargs.items()}
        result = read_call(script, given, named, graph, self.mode)
        return self._from_graph(result)

    def _from_graph(self, result: Any) -> Any:
        """What is in the graph, as the model gets it."""
        if isinstance(result, Value):
            fake = self.fake_of_value(result)
            self.example.varies(fake)
            return fake
        if isinstance(result, (list, tuple)):
            return type(result)(map(self._from_graph, result))
        return _torch_private.as_model_number(self._given(result))

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.quantized.concerns(func, args, kwargs):
            return self.quantized.call(func, args, kwargs)
        return self._record_plain(func, args, kwargs)

    def _record_plain(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in _LIFTS:
            return self._lifted(args[0])
        if func in _READS:
            return self.number_of(args[0])
        if func is aten.is_nonzero.default:
            return self._is_nonzero(args[0])
        if func is aten.equal.default:
            return self._are_equal(*args)
        if func is aten.detach_.default:
            return args[0]
        if func is aten.detach.default:
            return self._another_name(args[0])
        op = _WITH_MEMORY.get(func) or ATEN_FORMS.get(func, func)
        given = bind(op, args, kwargs)
        self._set_apart_what_changes_shape(op, given)
        if any(isinstance(a, torch.Generator) for a in given.values()):
            raise FinalCaptureError(
                format_message(
                    "the model draws random numbers from a torch.Generator, whose state a file does"
                    " not have",
                    [
                        ("at", place_text(self.place())),
                        ("try", "PyTorch's own generator, or numbers that are drawn before"),
                    ],
                )
            )
        if _name_of(op) in _ASSERTIONS:
            return None
        self._forget_what_was_written(given)
        arguments = {name: self.argument(a) for name, a in given.items()}
        fakes = {name: self._run_argument(a) for name, a in given.items()}
        result = self._run(op, fakes)
        return self._noted(op, given, arguments, fakes, result)

    def _noted(
        self,
        op: OpOverload,
        given: dict[str, Any],
        arguments: dict[str, Argument],
        fakes: dict[str, Any],
        result: Any,
    ) -> Any:
        """The node for a call that was run; its result as the model gets it."""
        if isinstance(result, _NUMBERS):
            return result  # of sizes alone: aten::sym_size and the like
        originals = {id(fake): tensor for fake, tensor in _pairs(fakes, given)}
        outputs: list[Value] = []
        location = self.location()
        changed: list[tuple[torch.Tensor, Value]] = []
        for fake in tensors_in(result):
            value = Value(self.new_name(op._opname), type_of(fake), fake=fake)
            outputs.append(value)
            if id(fake) in originals:
                changed.append((originals[id(fake)], value))
            else:
                self.know(fake, value)
        if not outputs and not op._schema.is_mutable and not op._schema.returns:
            return None
        node = Node(op, arguments, outputs, location)
        self.append(node)
        self.example.log(op, given, result)
        for tensor, value in changed:
            self.know(tensor, value)
            if value.fake is not None:
                self._values[id(value.fake)] = value
        if op._schema.is_mutable:
            self._note_writes(op, fakes)
        for value in outputs:
            self._note_sizes(value)
        is_factory = not originals and isinstance(result, torch.Tensor)
        self._new_factory_result = result if is_factory else None
        return _replaced(result, originals)

    def append(self, node: Node) -> None:
        self._nodes.append(node)

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        """Nodes made meanwhile are those of the block."""
        outer, block = self._nodes, Block()
        values = self._values
        self._nodes = block.nodes
        # What a block writes is read by the nodes after it as it was before: it is for
        # functionalization to hand it out.
        self._values = ChainMap({}, values)
        self._blocks_met += 1
        try:
            yield block
        finally:
            self._blocks_met += 1
            self._nodes = outer
            inside, self._values = self._values.maps[0], values
            for key, value in inside.items():
                values.setdefault(key, value)

    def _run(self, op: OpOverload, fakes: dict[str, Any]) -> Any:
        if op._schema.is_mutable:
            return self._run_now(op, fakes)
        return self._alike.of(op, fakes, lambda: self._run_now(op, fakes))

    def _run_now(self, op: OpOverload, fakes: dict[str, Any]) -> Any:
        self._is_running_operator = True
        known = len(self.conditions)
        try:
            common = with_common_sizes(op, fakes, self.mode, of_data=True)
            result = _torch_private.run_operator(op, common, self.mode, SHAPE_RULES.get(op))
            if op._schema.is_mutable:
                return _with_arguments(op, fakes, result)
            return with_open_sizes(op, common, result, self.mode)
        except Exception as error:
            made = self._result_by_example(op, fakes, error)
            if made is not None:
                return made
            if _torch_private.is_data_dependent_error(error):
                self.refused = self.refused or error
            # A model that goes on then decides by it.
            self.conditions[known:] = [
                replace(condition, in_model_code=True) for condition in self.conditions[known:]
            ]
            raise
        finally:
            self._is_running_operator = False

    def _result_by_example(
        self, op: OpOverload, fakes: dict[str, Any], error: Exception
    ) -> list[torch.Tensor] | torch.Tensor | None:
        """What an operator of the user's gives that has no kernel for fake tensors: it is run on
        the values of the example. Its sizes are those, where no size is dynamic."""
        if op.namespace in ("aten", "prims", "prim") or not _torch_private.lacks_fake_kernel(error):
            return None
        real = self.example.result(op, fakes)
        symbols = any(t._has_symbolic_sizes_strides for t in tensors_in(list(fakes.values())))
        is_open = symbols or has_symbols(list(fakes.values()))
        if not is_open and any(t.dim() for t in tensors_in(real)):
            self.notes[
                f"{op._schema.name} has no fake kernel that tells the sizes of its results: they"
                " are those of the example in the file (torch.library.register_fake)"
            ] = None
        made = []
        for tensor in tensors_in(real):
            sizes = list(tensor.shape)
            if is_open:
                sizes = [_torch_private.new_data_dependent_length(self.mode) for _ in sizes]
            made.append(_torch_private.fake_contiguous(self.mode, sizes, tensor.dtype, tensor))
        return made if isinstance(real, (list, tuple)) else made[0]

    def _set_apart_what_changes_shape(self, op: OpOverload, given: dict[str, Any]) -> None:
        """Of a tensor whose sizes change in place, or may (`out=`), earlier nodes keep one of the
        old sizes, and so do other tensors that are the same value."""
        if not op._schema.is_mutable:
            return
        changed = [p.name for p in parameters_of(op) if p.is_out]
        if op._schema.name in METADATA_WRITES:
            changed.append("self")
        for tensor in (t for name in changed for t in tensors_in(given[name])):
            fake, value = self.fake_of(tensor), self.value_of(tensor)
            if self._sharing[id(value)] > 1:
                alias = aten.alias.default
                own = Value(self.new_name("alias"), value.type, fake=fake)
                self.append(Node(alias, {"self": value}, [own], self.location()))
                self._sharing[id(value)] -= 1
                self.know(tensor, own)
            before = _torch_private.fake_view(
                fake, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype
            )
            for earlier in self._values_with_fake.pop(id(fake), ()):
                if earlier.fake is fake:
                    earlier.fake = before
            self._alike.forget(fake)

    def _note_writes(self, op: OpOverload, fakes: dict[str, Any]) -> None:
        for parameter in parameters_of(op):
            if parameter.is_written:
                for fake in tensors_in(fakes[parameter.name]):
                    self._writes[_torch_private.storage_of(fake)] += 1

    def writes_of(self, tensor: torch.Tensor) -> int:
        return self._writes[_torch_private.storage_of(self.fake_of(tensor))]

    def _forget_what_was_written(self, given: dict[str, Any]) -> None:
        if not self._writes and not self._blocks_met:
            return
        for tensor in tensors_in(list(given.values())):
            if _torch_private.is_fake_of(self.mode, tensor) and tensor.layout == torch.strided:
                writes = self._writes.get(_torch_private.storage_of(tensor), 0)
                count = (writes, self._blocks_met)
                if self._written_when_seen.get(id(tensor), (0, 0)) != count:
                    self._written_when_seen[id(tensor)] = count
                    _torch_private.forget_numbers_of(tensor)

    # -- numbers that are read off tensors -------------------------------------------------------

    def number_of(self, tensor: torch.Tensor) -> Any:
        """What `tensor.item()` gives: a symbol, or the number where no input decides it."""
        fake = self.fake_of(tensor)
        if fake.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {fake.numel()} elements cannot be converted to Scalar"
            )
        if self.example.is_constant(fake):
            return self.example.number(tensor)
        if fake.dtype.is_complex:
            raise CaptureError(
                format_message(
                    "a complex number is read off a tensor, which ONNX does not have",
                    [("at", place_text(self.place()))],
                )
            )
        writes = self._writes[_torch_private.storage_of(fake)]
        key = (id(fake), writes, self._blocks_met)
        if key not in self._numbers:
            number = _torch_private.new_number(self.mode, fake.dtype)
            value = self.value_of(tensor)
            self.note_number(number, value)
            symbol = next(iter(_torch_private.dim_of(number).free_symbols))
            self.append(Node(READS_A_NUMBER, {"self": value}, [], self.location()))
            self.example.number_read(symbol, tensor)
            self._numbers[key] = number
        return self._numbers[key]

    def _is_nonzero(self, tensor: torch.Tensor) -> bool:
        number = self.number_of(tensor)
        return bool(number) if isinstance(number, (bool, torch.SymBool)) else bool(number != 0)

    def _are_equal(self, left: torch.Tensor, right: torch.Tensor) -> bool:
        if left.shape != right.shape:
            return False
        equal = self._record_plain(aten.eq.Tensor, (left, right), {})
        return self._is_nonzero(self._record_plain(aten.all.default, (equal,), {}))

    def _look(
        self, expression: sympy.Basic, frame: FrameType, is_check: bool, evaluate: Any
    ) -> Any:
        """Python, or the shape rule of an operator, wants to know a size or a condition.
        `is_check`: nothing is decided by it."""
        known = _torch_private.guard_count(self.mode)
        if is_check:
            self.unread_conditions.read_expression(expression)
        try:
            answer = evaluate(expression)
        except Exception as error:
            if not _torch_private.is_data_dependent_error(error, expression):
                raise
            if not self.example.follows and not self._is_running_operator:
                self.refused = self.refused or error
            return self.example.answer(expression, error, frame)
        is_models = not (self._is_running_operator or is_check)
        is_models = is_models and _torch_private.is_code_of_models(frame)
        found = _torch_private.guard_expressions(self.mode)[known:]
        if found:
            place = innermost_user_place(frame) if self._located is None else self.place()
            self.conditions += [SizeCondition(guard, place, is_models) for guard in found]
        elif is_models:
            if answer in (sympy.true, sympy.false):
                holds = expression if answer else sympy.Not(expression)
            else:  # a number, as of range(min(n, 2))
                holds = sympy.Eq(expression, answer, evaluate=False)
            if holds not in self.small_sizes_aside:
                self.small_sizes_aside[holds] = innermost_user_place(frame)
        return answer

    # -- arguments and results -------------------------------------------------------------------

    def argument(self, argument: Any) -> Argument:
        """As the graph has it."""
        if isinstance(argument, torch.Tensor):
            return self.value_of(argument)
        if isinstance(argument, (list, tuple)):
            return [self.argument(item) for item in argument]
        if isinstance(argument, _SYMBOLIC):
            if isinstance(argument, torch.SymBool):
                self.unread_conditions.read_expression(argument.node.expr)
            return _torch_private.dim_of(argument)
        return argument

    def _run_argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return self.fake_of(argument)
        if isinstance(argument, (list, tuple)):
            return [self._run_argument(item) for item in argument]
        return argument

    def emit(self, op: OpOverload, arguments: Sequence[Argument]) -> list[Value]:
        """The results of a call that is not the model's own."""
        given = [self._given(argument) for argument in arguments]
        made = self._record_plain(op, tuple(given), {})
        return [self.value_of(fake) for fake in tensors_in(made)]

    def _given(self, argument: Argument) -> Any:
        if isinstance(argument, Value):
            return self.fake_of_value(argument)
        if isinstance(argument, (list, tuple)):
            return [self._given(item) for item in argument]
        if isinstance(argument, sympy.Expr):
            return _torch_private.sym_int(self.mode, argument)
        return argument

    def fake_of_value(self, value: Value) -> torch.Tensor:
        if value.fake is None:
            if value.constant is not None:
                value.fake = self._new_fake(value.constant)
            else:
                sizes = [self._given(size) for size in value.shape]
                value.fake = _torch_private.fake_contiguous(self.mode, sizes, value.dtype, None)
            self.know(value.fake, value)
        elif id(value.fake) not in self._values:
            self.know(value.fake, value)
        return value.fake

    def parameter(self, name: str, tensor: torch.Tensor) -> Value:
        """A constant of the graph under a name of its own."""
        while name in self.graph.parameters:
            name += "_"
        value = Value(name, type_of(tensor), constant=tensor)
        self.graph.parameters[name] = value
        self.fake_of_value(value)
        self.example.add_constant(value)
        return value

    def loop(
        self,
        count: Argument,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], tuple[list[Value], list[Value]]],
    ) -> list[Value]:
        """A loop that is not the model's own: what is carried last, and what is stacked."""
        iteration = Value(self.new_name("iteration"), TensorType(torch.int64, ()))
        with self.block() as block:
            block.inputs = [iteration, *(Value(self.new_name("carried"), v.type) for v in carried)]
            kept, stacked = body(block.inputs[0], block.inputs[1:])
            block.outputs = [None, *kept, *stacked]
        types = [v.type for v in carried]
        types += [TensorType(v.dtype, (count, *v.shape)) for v in stacked]
        results = [Value(self.new_name("loop"), type) for type in types]
        arguments = bind(LOOP, [count, None, list(carried)])
        self.append(Node(LOOP, arguments, results, self.location(), blocks=[block]))
        for result in results:
            self.example.varies(self.fake_of_value(result))
        return results

    def state_name(self, tensor: torch.Tensor) -> str | None:
        return self._state_names.get(id(tensor))

    def keep(self, tensor: torch.Tensor) -> None:
        """Lets no other object have its id."""
        self._kept.append(tensor)

    def references(self) -> Iterator[Any]:
        """The tensors that the recorder itself refers to, once for each reference."""
        yield from self._kept
        yield from self._fakes.values()
        yield from self._shared_memory.values()
        if self._new_factory_result is not None:
            yield self._new_factory_result

    def values(self) -> list[Value]:
        found = [*self._values.values()]
        for values in self._values_with_fake.values():
            found += values
        return found

    def is_own_container(self, container: Any) -> bool:
        return any(container is c for c in (self._kept, self._fakes, self._shared_memory))

    def is_written(self, tensor: torch.Tensor) -> bool:
        return bool(self._writes) and bool(self.writes_of(tensor))

    def output(self, result: Any) -> Argument:
        """What the model returns, as the graph has it."""
        with self.dispatch.outside():
            return self.argument(result)

    def _another_name(self, tensor: torch.Tensor) -> torch.Tensor:
        """x.detach(), which is the same value; PyTorch also makes one of what a factory gives."""
        fake = self.fake_of(tensor)
        if not _torch_private.is_plain(fake):
            fake = self._run(aten.detach.default, {"self": fake})
        else:
            fake = _torch_private.fake_view(
                fake, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype
            )
        value = self.value_of(tensor)
        if tensor is self._new_factory_result:  # which the model never gets
            self._sharing[id(value)] -= 1
            self._new_factory_result = None
        self.know(fake, value)
        self.example.log(aten.detach.default, {"self": tensor}, fake)
        return fake

    def _lifted(self, tensor: torch.Tensor) -> torch.Tensor:
        """torch.tensor([1, 2]): a constant, of which the model has a copy."""
        if _torch_private.is_fake_of(self.mode, tensor):
            return tensor
        copy: torch.Tensor = self._record(aten.clone.default, (tensor,), {})
        return copy

    def new_name(self, base: str) -> str:
        count = self._name_counts[base]
        self._name_counts[base] += 1
        return f"{base}_{count}" if count else base

    def _note_sizes(self, value: Value) -> None:
        for axis, size in enumerate(value.shape):
            if isinstance(size, sympy.Symbol):
                self.graph.symbols.setdefault(size, SymbolSource(value, axis))

    def with_lines(self, body: Any) -> Any:
        """A body of a control flow operator, so that its nodes have their lines."""
        return body

    # -- locations -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def located(self, location: SourceLocation) -> Iterator[None]:
        """Calls made meanwhile are those of a node of a program, which has its own line."""
        outer, self._located = self._located, location
        try:
            yield
        finally:
            self._located = outer

    def place(self) -> Place:
        if self._located is not None:
            return self._located.file, self._located.line, self._located.text
        return innermost_user_place(sys._getframe(1))

    def location(self) -> SourceLocation:
        return self._located or self._modules.location(self.place())


_SMALL = 1 << 16


def _name_of(op: OpOverload) -> str:
    overload = op._schema.overload_name
    return f"{op._schema.name}.{overload}" if overload else op._schema.name


def _with_arguments(op: OpOverload, fakes: dict[str, Any], result: Any) -> Any:
    """The result with the arguments that the operator writes and returns."""
    returned = _torch_private.returned_arguments(op)
    if not returned:
        return result
    if not isinstance(result, (list, tuple)):
        return fakes[returned[0]]
    return tuple(fakes[returned[i]] if i in returned else r for i, r in enumerate(result))


def _place_in_memory(tensor: torch.Tensor) -> tuple[Any, ...]:
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    return tuple(map(_torch_private.dim_of, numbers))


def _pairs(fakes: Any, given: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The fake tensors of a call, each with what the model gave."""
    if isinstance(fakes, dict):
        for name, fake in fakes.items():
            yield from _pairs(fake, given[name])
    elif isinstance(fakes, torch.Tensor):
        yield fakes, given
    elif isinstance(fakes, (list, tuple)):
        for fake, item in zip(fakes, given, strict=True):
            yield from _pairs(fake, item)


def _replaced(result: Any, originals: Mapping[int, torch.Tensor]) -> Any:
    """A result in which the tensors that the model gave are those objects again."""
    if isinstance(result, torch.Tensor):
        return originals.get(id(result), result)
    if isinstance(result, (list, tuple)):
        return type(result)(_replaced(item, originals) for item in result)
    return result
