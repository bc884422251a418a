"""The recorder: each call of the running model becomes a node of an AtenGraph."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import (
    READS_A_NUMBER,
    Argument,
    AtenGraph,
    Block,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
    operator_name,
)
from sardonyx.aten.location import Place, innermost_user_place
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import METADATA_WRITES, bind, parameters_of
from sardonyx.aten.shape_rules.broadcast import with_common_sizes, with_open_sizes
from sardonyx.aten.shape_rules.rules import SHAPE_RULES
from sardonyx.aten.type_inference import InferenceCache, has_symbols, type_of
from sardonyx.capture.function_overrides.symbolic_variants import SYMBOLIC_OPERATORS
from sardonyx.capture.function_overrides.symint_operators import ATEN_FORMS
from sardonyx.capture.interrupts import handle_interrupt
from sardonyx.capture.recorder.control_flow import ControlFlow
from sardonyx.capture.recorder.example_values import ExampleValues
from sardonyx.capture.recorder.module_stack import ModuleCalls
from sardonyx.capture.recorder.quantized import QuantizedCalls
from sardonyx.capture.recorder.size_guards import LargeExpressions, SizeGuards
from sardonyx.capture.recorder.tensor_map import TensorValues, pairs, replaced, with_arguments
from sardonyx.errors import CaptureError, FinalCaptureError, SardonyxError
from sardonyx.notes import error_at

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
    """Runs the calls of a model on fake tensors and writes them into a graph."""

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
        self.guards = SizeGuards(self)
        self.mode = _torch_private.new_recording_mode(self.guards.evaluate)
        self.dispatch = _torch_private.RecordingMode(self.call)
        self.example = ExampleValues(self)
        self.tensors = TensorValues(
            self.graph, self.mode, names, self.place, self.example.add_constant
        )
        self._modules = modules
        self.nodes = self.graph.nodes
        """Of the block that is being filled."""
        self._new_factory_result: torch.Tensor | None = None
        self._cache = InferenceCache(self.mode)
        self._control_flow = ControlFlow(self)
        self.quantized = QuantizedCalls(self, packed_names)
        self._writes: Counter[int] = Counter()
        """How often memory was written, by its id."""
        self._written_when_seen: dict[int, tuple[int, int]] = {}
        self.blocks_met = 0
        """How often a block began or ended: what is known inside of one is not known outside."""
        self._numbers: dict[tuple[int, int, int], Any] = {}
        """Numbers that were read off a tensor, by its id and the writes of its memory."""
        self.large_sizes = LargeExpressions(self)
        self.runnable: Callable[[Any], Callable[..., Any]] = lambda body: body
        """The body of a control flow operator, so that its nodes have their lines."""
        self._located: SourceLocation | None = None
        self._default_dtype = torch.get_default_dtype()
        self.notes: dict[str, None] = {}
        self.refused: Exception | None = None
        """Why the run cannot be recorded."""
        self.functions: Any = contextlib.nullcontext()
        """The mode that sees the functions of torch which the model calls."""

    def close(self) -> None:
        """When the run has ended: releases everything but the graph."""
        _torch_private.look_no_more(self.mode)
        self.example.close()
        self.tensors.clear()
        self.functions = contextlib.nullcontext()

    # -- values ----------------------------------------------------------------------------------

    def add_input(self, name: str, tensor: torch.Tensor) -> None:
        """Makes an input of the graph of a fake tensor."""
        self.graph.inputs.append(self.tensors.register_new(name, tensor))
        self.example.varies(tensor)

    def add_number(self, name: str, number: Any) -> None:
        value = Value(name, TensorType(torch.int64, ()))
        self.graph.inputs.append(value)
        self.graph.symbols[_torch_private.dim_of(number)] = SymbolSource(value, None)

    def note_number(self, number: Any, value: Value) -> Any:
        """A symbol, which it returns, is what a value without dims holds."""
        symbol = next(iter(_torch_private.dim_of(number).free_symbols))
        self.graph.symbols[symbol] = SymbolSource(value, None)
        return symbol

    # -- calls -----------------------------------------------------------------------------------

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the model gets for a call of an operator."""
        handle_interrupt()
        try:
            return self._call(func, args, kwargs)
        except SardonyxError as error:
            self.refuse(error)
            raise

    def refuse(self, error: Exception) -> None:
        """The run cannot be recorded, also where the model's own code catches the error."""
        self.refused = self.refused or error

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _torch_private.is_higher_order(func):
            return self._control_flow.call(func, args, kwargs)
        if func.namespace == "prim":  # x.device of a fake tensor, and other questions
            with self.dispatch.outside(), self.mode:
                return func(
                    *(self.tensors.fake_of(a) if isinstance(a, torch.Tensor) else a for a in args)
                )
        if func in SYMBOLIC_OPERATORS:
            with self.dispatch, self.functions:
                return SYMBOLIC_OPERATORS[func](*args, **kwargs)
        autocast = getattr(self.functions, "autocast", ())
        if autocast and _torch_private.is_cast_in_parts(func, autocast):
            with self.dispatch.entered(autocast):
                return _torch_private.run_in_parts(func, args, kwargs)
        # Autocast and torch.func have done their part above; gradients are recorded otherwise.
        with self.dispatch.outside(), torch.no_grad():
            return self._record(func, args, kwargs)

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.quantized.concerns(func, args, kwargs):
            return self.quantized.call(func, args, kwargs)
        return self.record_plain(func, args, kwargs)

    def record_plain(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in _LIFTS:
            return self._lifted(args[0])
        if func in _READS:
            return self.number_of(args[0])
        if func is aten.is_nonzero.default:
            return self._is_nonzero(args[0])
        if func is aten.equal.default:
            return self._are_equal(*args)
        if func is aten.detach_.default or (
            func is aten.set_.source_Tensor and self._exchange_memory(*args)
        ):
            return args[0]
        if func is aten.detach.default:
            return self._another_name(args[0])
        op = _WITH_MEMORY.get(func) or ATEN_FORMS.get(func, func)
        given = bind(op, args, kwargs)
        self._set_apart_what_changes_shape(op, given)
        if any(isinstance(a, torch.Generator) for a in given.values()):
            raise error_at(
                FinalCaptureError,
                self.place(),
                "the model draws random numbers from a torch.Generator, whose state a file does"
                " not have",
                "PyTorch's default generator, or numbers that are drawn before",
            )
        if operator_name(op) in _ASSERTIONS:
            return None
        self._forget_what_was_written(given)
        arguments = {name: self.argument(a) for name, a in given.items()}
        fakes = {name: self._run_argument(a) for name, a in given.items()}
        result = self._run(op, fakes)
        if given.get("dtype", True) is None and torch.get_default_dtype() != self._default_dtype:
            arguments["dtype"] = tensors_in(result)[0].dtype  # which holds while the model runs
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
        originals = {id(fake): tensor for fake, tensor in pairs(fakes, given)}
        outputs: list[Value] = []
        location = self.location()
        changed: list[tuple[torch.Tensor, Value]] = []
        for fake in tensors_in(result):
            value = Value(self.tensors.new_name(op._opname), type_of(fake), fake=fake)
            outputs.append(value)
            if id(fake) in originals:
                changed.append((originals[id(fake)], value))
            else:
                self.tensors.register(fake, value)
        if not outputs and not op._schema.is_mutable and not op._schema.returns:
            return None
        node = Node(op, arguments, outputs, location)
        self.nodes.append(node)
        self.example.log(op, given, result)
        for tensor, value in changed:
            self.tensors.register_written(tensor, value)
        if op._schema.is_mutable:
            self._note_writes(op, fakes)
        for value in outputs:
            self.graph.note_sizes(value)
        is_factory = not originals and isinstance(result, torch.Tensor)
        self._new_factory_result = result if is_factory else None
        return replaced(result, originals)

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        """Nodes made meanwhile are those of the block."""
        outer, block = self.nodes, Block()
        self.nodes = block.nodes
        self.blocks_met += 1
        try:
            with self.tensors.in_block():
                yield block
        finally:
            self.blocks_met += 1
            self.nodes = outer

    def _run(self, op: OpOverload, fakes: dict[str, Any]) -> Any:
        if op._schema.is_mutable:
            return self._run_now(op, fakes)
        return self._cache.result(op, fakes, lambda: self._run_now(op, fakes))

    def _run_now(self, op: OpOverload, fakes: dict[str, Any]) -> Any:
        known = self.guards.begin_operator()
        try:
            common = with_common_sizes(op, fakes, self.mode, of_data=True)
            result = _torch_private.run_operator(op, common, self.mode, SHAPE_RULES.get(op))
            if op._schema.is_mutable:
                return with_arguments(op, fakes, result)
            return self.large_sizes.replaced_in(with_open_sizes(op, common, result, self.mode))
        except Exception as error:
            made = self._result_by_example(op, fakes, error)
            if made is not None:
                return made
            if _torch_private.is_data_dependent_error(error):
                self.refuse(error)
            self.guards.note_failure(known)
            raise
        finally:
            self.guards.in_operator = False

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
                f"{op._schema.name} has no fake kernel that gives the sizes of its results: they"
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
            fake, value = self.tensors.fake_of(tensor), self.tensors.value_of(tensor)
            if self.tensors.sharing[id(value)] > 1:
                alias = aten.alias.default
                own = Value(self.tensors.new_name("alias"), value.type, fake=fake)
                self.nodes.append(Node(alias, {"self": value}, [own], self.location()))
                self.tensors.sharing[id(value)] -= 1
                self.tensors.register(tensor, own)
            self.tensors.keep_shape(fake)
            self._cache.forget(fake)

    def _exchange_memory(self, tensor: torch.Tensor, source: torch.Tensor) -> bool:
        """x.set_(y), whereby a tensor that the model made is another view of y; False for others,
        and in a block."""
        tensors, fake = self.tensors, self.tensors.fake_of(source)
        is_own = tensors.fake_of(tensor) is tensor and tensor.dtype == fake.dtype
        if not is_own or self.nodes is not self.graph.nodes:
            return False
        if any(tensors.value_of(tensor) is value for value in self.graph.inputs):
            return False
        tensors.keep_shape(tensor)
        self._cache.forget(tensor)
        _torch_private.forget_numbers_of(tensor)
        self._numbers = {key: n for key, n in self._numbers.items() if key[0] != id(tensor)}
        own = Value(tensors.new_name("alias"), type_of(fake), fake=tensor)
        arguments: dict[str, Argument] = {"self": tensors.value_of(source)}
        self.nodes.append(Node(aten.alias.default, arguments, [own], self.location()))
        tensor.data = fake
        tensors.register_written(tensor, own)
        self.example.log(aten.alias.default, {"self": source}, tensor)
        return True

    def _note_writes(self, op: OpOverload, fakes: dict[str, Any]) -> None:
        for parameter in parameters_of(op):
            if parameter.is_written:
                for fake in tensors_in(fakes[parameter.name]):
                    self._writes[_torch_private.storage_of(fake)] += 1
                    torch.autograd.graph.increment_version(fake)

    def writes_of(self, tensor: torch.Tensor) -> int:
        return self._writes[_torch_private.storage_of(self.tensors.fake_of(tensor))]

    def _forget_what_was_written(self, given: dict[str, Any]) -> None:
        if not self._writes and not self.blocks_met:
            return
        for tensor in tensors_in(list(given.values())):
            if _torch_private.is_fake_of(self.mode, tensor) and tensor.layout == torch.strided:
                writes = self._writes.get(_torch_private.storage_of(tensor), 0)
                count = (writes, self.blocks_met)
                if self._written_when_seen.get(id(tensor), (0, 0)) != count:
                    self._written_when_seen[id(tensor)] = count
                    _torch_private.forget_numbers_of(tensor)

    # -- numbers that are read off tensors -------------------------------------------------------

    def number_of(self, tensor: torch.Tensor) -> Any:
        """What `tensor.item()` gives: a symbol, or the number where no input decides it."""
        fake = self.tensors.fake_of(tensor)
        if fake.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {fake.numel()} elements cannot be converted to Scalar"
            )
        if self.example.is_constant(fake):
            return self.example.number(tensor)
        if fake.dtype.is_complex:
            raise error_at(
                CaptureError,
                self.place(),
                "a complex number is read off a tensor, which ONNX does not have",
            )
        writes = self._writes[_torch_private.storage_of(fake)]
        key = (id(fake), writes, self.blocks_met)
        if key not in self._numbers:
            number = _torch_private.new_number(self.mode, fake.dtype)
            value = self.tensors.value_of(tensor)
            symbol = self.note_number(number, value)
            self.nodes.append(Node(READS_A_NUMBER, {"self": value}, [], self.location()))
            self.example.number_read(symbol, tensor)
            self._numbers[key] = number
        return self._numbers[key]

    def _is_nonzero(self, tensor: torch.Tensor) -> bool:
        number = self.number_of(tensor)
        return bool(number) if isinstance(number, (bool, torch.SymBool)) else bool(number != 0)

    def _are_equal(self, left: torch.Tensor, right: torch.Tensor) -> bool:
        if left.shape != right.shape:
            return False
        equal = self.record_plain(aten.eq.Tensor, (left, right), {})
        return self._is_nonzero(self.record_plain(aten.all.default, (equal,), {}))

    # -- arguments and results -------------------------------------------------------------------

    def argument(self, argument: Any) -> Argument:
        """As the graph has it."""
        if isinstance(argument, torch.Tensor):
            return self.tensors.value_of(argument)
        if isinstance(argument, (list, tuple)):
            return [self.argument(item) for item in argument]
        if isinstance(argument, _SYMBOLIC):
            if isinstance(argument, torch.SymBool):
                self.guards.unread.read_expression(argument.node.expr)
            return _torch_private.dim_of(argument)
        return argument

    def _run_argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return self.tensors.fake_of(argument)
        if isinstance(argument, (list, tuple)):
            return [self._run_argument(item) for item in argument]
        return argument

    def given(self, argument: Argument) -> Any:
        if isinstance(argument, Value):
            return self.tensors.fake_of_value(argument)
        if isinstance(argument, (list, tuple)):
            return [self.given(item) for item in argument]
        if isinstance(argument, sympy.Expr):
            return _torch_private.sym_int(self.mode, argument)
        return argument

    def references(self) -> Iterator[Any]:
        """The tensors that the recorder itself refers to, once for each reference."""
        yield from self.tensors.references()
        if self._new_factory_result is not None:
            yield self._new_factory_result

    def is_written(self, tensor: torch.Tensor) -> bool:
        return bool(self._writes) and bool(self.writes_of(tensor))

    def output(self, result: Any) -> Argument:
        """What the model returns, as the graph has it."""
        with self.dispatch.outside():
            return self.argument(result)

    def _another_name(self, tensor: torch.Tensor) -> torch.Tensor:
        """x.detach(), which is the same value; PyTorch also makes one of what a factory gives."""
        fake = self.tensors.fake_of(tensor)
        if not _torch_private.is_plain(fake):
            fake = self._run(aten.detach.default, {"self": fake})
        else:
            fake = _torch_private.fake_view(
                fake, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype
            )
        value = self.tensors.value_of(tensor)
        if tensor is self._new_factory_result:  # which the model never gets
            self.tensors.sharing[id(value)] -= 1
            self._new_factory_result = None
        self.tensors.register(fake, value)
        self.example.log(aten.detach.default, {"self": tensor}, fake)
        return fake

    def _lifted(self, tensor: torch.Tensor) -> torch.Tensor:
        """torch.tensor([1, 2]): a constant, of which the model has a copy."""
        if _torch_private.is_fake_of(self.mode, tensor):
            return tensor
        copy: torch.Tensor = self._record(aten.clone.default, (tensor,), {})
        return copy

    # -- locations -------------------------------------------------------------------------------

    def located(self, location: SourceLocation) -> contextlib.AbstractContextManager[None]:
        """Calls made meanwhile are those of a node of a program, which has its own line."""
        return _torch_private.attributes_set(self, _located=location)

    def place(self, frame: FrameType | None = None) -> Place:
        if self._located is not None:
            return self._located.file, self._located.line, self._located.text
        return innermost_user_place(frame or sys._getframe(1))

    def location(self) -> SourceLocation:
        return self._located or self._modules.location(self.place())
