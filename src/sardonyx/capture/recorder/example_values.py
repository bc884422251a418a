"""The values that tensors have in the example, computed where the model's code looks at one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import Value
from sardonyx.aten.location import Place, innermost_user_place, shortened
from sardonyx.aten.pytree import leaves_in, tensors_in
from sardonyx.aten.schema import call_by_name, parameters_of
from sardonyx.aten.type_inference import has_symbols
from sardonyx.capture.baked_values import BakedValue, text_of_read
from sardonyx.capture.symbolic_shapes.guards import only_reports, text_place
from sardonyx.errors import CaptureError

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


@dataclass(slots=True)
class _Call:
    func: Any
    arguments: dict[str, Any]
    """As the model gave them."""
    result: Any
    memory: frozenset[int]
    """Of the results and of what it writes."""
    read: frozenset[int]
    is_write: bool
    is_run: bool = False


@dataclass(slots=True)
class _Whole:
    result: Any = None


class ExampleValues:
    """Runs recorded calls on real tensors: those that lead to a value, and each of them once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._calls: list[_Call] = []
        self._real: dict[int, torch.Tensor] = {}
        """By the id of a fake tensor."""
        self._constants: dict[int, torch.Tensor | None] = {}
        """The same of tensors from outside of the run."""
        self._memory_copies: dict[int, torch.UntypedStorage] = {}
        self._varying: set[int] = set()
        """Memory whose content the inputs decide."""
        self._numbers: dict[sympy.Symbol, torch.Tensor] = {}
        self.follows = False
        """Whether what the code looks at is followed (by example), or refused (symbolic)."""
        self._sizes: dict[Any, int] | None = None
        self.looked: list[tuple[Any, Place]] = []
        """What the code looked at, expressions and tensors, and where."""
        self._found: dict[Place, dict[str, list[str]]] = {}
        self._becomes: str | None = None
        self._random_state: torch.Tensor | None = None
        self._was_read = False
        self.texts: dict[Place, None] = {}
        """Where the model's code makes text of tensors that have no values here."""

    def at(self, inputs: dict[int, torch.Tensor], sizes: dict[Any, int]) -> ExampleValues:
        """The same calls on other inputs, by the ids of their fakes, where sizes are these."""
        other = ExampleValues(self._recorder)
        other._calls = [replace(call, is_run=False) for call in self._calls]
        other._real = dict(inputs)
        other._sizes = sizes
        other._constants, other._numbers = self._constants, self._numbers
        return other

    def close(self) -> None:
        self._calls.clear()
        self._real.clear()
        self._constants.clear()
        self._memory_copies.clear()

    # -- what is recorded ------------------------------------------------------------------------

    def add_input(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        self._real[id(fake)] = real

    def add_constant(self, value: Value) -> None:
        self._constants[id(value.fake)] = value.constant

    def varies(self, fake: torch.Tensor) -> None:
        self._varying.add(_torch_private.storage_of(fake))

    def number_read(self, symbol: sympy.Symbol, tensor: torch.Tensor) -> None:
        """A symbol is what a tensor holds now: later writes do not change it."""
        fake = self._recorder.tensors.fake_of(tensor)
        now = _torch_private.fake_contiguous(
            self._recorder.mode, list(fake.shape), fake.dtype, fake
        )
        self.log(torch.ops.aten.clone.default, {"self": tensor, "memory_format": None}, now)
        self._numbers[symbol] = now

    def log(self, op: OpOverload, given: dict[str, Any], result: Any) -> None:
        fakes = [self._recorder.tensors.fake_of(t) for t in tensors_in(list(given.values()))]
        read = frozenset(_memory(fakes))
        results = frozenset(_memory(tensors_in(result)))
        written: set[int] = set()
        if op._schema.is_mutable:
            for parameter in parameters_of(op):
                if parameter.is_written:
                    tensors = tensors_in(given[parameter.name])
                    written |= set(_memory(map(self._recorder.tensors.fake_of, tensors)))
        read |= set(self._memory_of_numbers(list(given.values())))
        if (
            not read.isdisjoint(self._varying)
            or torch.Tag.nondeterministic_seeded in op.tags
            or has_symbols(list(given.values()))
        ):
            self._varying |= results | written
        self._calls.append(_Call(op, given, result, results | written, read, bool(written)))

    def _memory_of_numbers(self, arguments: Any) -> Iterator[int]:
        """Of the tensors that the symbols among arguments were read off."""
        for argument in leaves_in(arguments):
            if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                for symbol in argument.node.expr.free_symbols:
                    source = self._recorder.graph.symbols.get(symbol)
                    if symbol in self._numbers:
                        yield from _memory([self._numbers[symbol]])
                    elif source is not None and source.value.fake is not None:
                        yield from _memory([source.value.fake])

    @contextmanager
    def logged_whole(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[_Whole]:
        """Of a control flow operator, the call itself is what is run."""
        start = len(self._calls)
        whole = _Whole()
        try:
            yield whole
        finally:
            inner = self._calls[start:]
            del self._calls[start:]
        memory = {m for call in inner for m in call.memory}
        results = set(_memory(_tensors(whole.result)))
        read = {m for call in inner for m in call.read} | set(
            _memory(map(self._recorder.tensors.fake_of, _tensors(args)))
        )
        is_write = any(call.is_write for call in inner)
        given = {"args": args, "kwargs": kwargs}
        self._calls.append(
            _Call(func, given, whole.result, frozenset(memory | results), frozenset(read), is_write)
        )

    def containers(self) -> list[Any]:
        """What holds the tensors that are referred to here."""
        calls = [part for call in self._calls for part in (call.arguments, call.result)]
        return [*calls, self.looked]

    def references(self) -> Iterator[Any]:
        """The tensors that are referred to here, once for each reference."""
        yield from self._numbers.values()
        yield from _tensors([item for item, _ in self.looked])
        for call in self._calls:
            yield from _tensors(list(call.arguments.values()))
            yield from _tensors(call.result)

    # -- values ----------------------------------------------------------------------------------

    def is_constant(self, fake: torch.Tensor) -> bool:
        """Whether no input and no random number decides the values of a tensor."""
        return fake.layout == torch.strided and _torch_private.storage_of(fake) not in self._varying

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The values that a tensor of the model has at this point of the run."""
        fake = self._recorder.tensors.fake_of(tensor)
        needed = set(_memory([fake]))
        calls: list[_Call] = []
        for call in reversed(self._calls):
            if not call.memory.isdisjoint(needed):
                needed |= call.read
                if not call.is_run:
                    calls.append(call)
        if any(call.is_write for call in calls):
            # What was left out so far reads what the memory held before.
            calls = [call for call in reversed(self._calls) if not call.is_run]
        # The code that looks may be the model's, whose calls are recorded.
        with self._recorder.dispatch.outside(), _torch_private.no_modes():
            for call in reversed(calls):
                self._run(call)
            return self._value(tensor)

    def number(self, tensor: torch.Tensor) -> Any:
        """What `item()` of a tensor gives in the example."""
        real = self.of(tensor)
        with self._recorder.dispatch.outside(), _torch_private.no_modes():
            return real.item()

    def value_of(self, expression: sympy.Basic) -> Any:
        values = {s: self._number(s) for s in expression.free_symbols}
        return _torch_private.plain_number(sympy.sympify(expression.xreplace(values)))

    def fails(self, condition: sympy.Basic, wanted: bool) -> bool:
        """Whether a condition is known to be another one in the example."""
        try:
            return bool(self.value_of(condition)) != wanted
        except Exception:  # the recording has no values, or operators do not take them
            return False

    def sees_the_same(self, other: ExampleValues, looked: Any) -> bool:
        """Whether what the code looked at is that with other inputs, too; not where the calls that
        lead to it do not take those."""
        try:
            if not isinstance(looked, torch.Tensor):
                return bool(self.value_of(looked) == other.value_of(looked))
            return torch.equal(self.of(looked), other.of(looked))
        except Exception:
            return False

    def answer(self, expression: sympy.Basic, error: Exception, frame: FrameType) -> Any:
        """What an expression over numbers that data decides is in the example."""
        if not self.follows:
            raise error
        answer = self.value_of(expression)
        self.looked.append((expression, innermost_user_place(frame)))
        if self._becomes is None:
            self.note(_what(answer), answer, frame)
        else:
            self._was_read = True
        return sympy.sympify(answer)

    @contextmanager
    def values_become(self, what: str, frame: FrameType) -> Iterator[_Whole]:
        """Values that are looked at meanwhile are noted as this, with what comes of them."""
        outer, self._becomes = (self._becomes, self._was_read), what
        self._was_read = False
        whole = _Whole()
        try:
            yield whole
            if self._was_read:
                self.note(what, whole.result, frame)
        finally:
            self._becomes, self._was_read = outer

    def can_run(self, tensor: torch.Tensor) -> bool:
        """Whether the values of the example may be computed for what no result depends on."""
        return self.follows or self.is_constant(self._recorder.tensors.fake_of(tensor))

    def note_text(self, text: str, frame: FrameType) -> None:
        """The model's code made text of a tensor."""
        if self.follows:
            if not only_reports(frame):
                self.note("a tensor becomes a Python string", text, frame)
            return
        place = text_place(frame)
        if place is not None:
            self.texts.setdefault(place, None)

    def note(self, what: str, value: Any, frame: FrameType | None) -> None:
        """A value went into the recording."""
        place = shortened(innermost_user_place(frame))
        text = text_of_read("", (), value)
        values = self._found.setdefault(place, {}).setdefault(what, [])
        if text is not None:
            values.append(text)

    def baked(self) -> Iterator[BakedValue]:
        for place, reads in self._found.items():
            values = [v for found in reads.values() for v in found]
            yield BakedValue(place, tuple(reads), tuple(values))

    # -- runs ------------------------------------------------------------------------------------

    def result(self, op: OpOverload, fakes: dict[str, Any]) -> Any:
        """What an operator gives for the values of the example."""
        for fake in tensors_in(list(fakes.values())):
            self.of(fake)
        given = {name: self.real(a) for name, a in fakes.items()}
        with torch.no_grad():
            return call_by_name(op, given)

    def _run(self, call: _Call) -> None:
        if call.is_run:
            return
        call.is_run = True
        given = {name: self.real(a) for name, a in call.arguments.items()}
        if _torch_private.is_higher_order(call.func):
            try:
                if any(other.is_write for other in self._calls):
                    raise RuntimeError("its bodies would see the memory as it was")
                with torch.no_grad():
                    result = call.func(*given["args"], **given["kwargs"])
            except Exception as error:  # its bodies may read tensors from around them
                raise CaptureError(
                    "a value is read that a control flow operator computes, which is only known at"
                    " run time"
                ) from error
            for fake, real in zip(_tensors(call.result), _tensors(result), strict=True):
                self._real[id(fake)] = real
            return
        with torch.no_grad(), self._own_random_numbers(call.func):
            result = call_by_name(call.func, given)
        pairs = zip(tensors_in(call.result), tensors_in(result), strict=True)
        for fake, real in pairs:
            self._real[id(self._recorder.tensors.fake_of(fake))] = real

    @contextmanager
    def _own_random_numbers(self, op: OpOverload) -> Iterator[None]:
        """Draws of the example do not count as draws of the model's code."""
        if torch.Tag.nondeterministic_seeded not in op.tags:
            yield
            return
        outer = torch.get_rng_state()
        torch.set_rng_state(outer if self._random_state is None else self._random_state)
        try:
            yield
        finally:
            self._random_state = torch.get_rng_state()
            torch.set_rng_state(outer)

    def _value(self, tensor: torch.Tensor) -> torch.Tensor:
        fake = self._recorder.tensors.fake_of(tensor)
        real = self._real.get(id(fake))
        if real is None:
            constant = self._constants.get(id(fake))
            if constant is None or _torch_private.is_fake(constant):
                raise CaptureError("a value is read of a tensor that has none in this recording")
            real = self._real[id(fake)] = self._copy_of(fake, constant)
        return real

    def _copy_of(self, fake: torch.Tensor, constant: torch.Tensor) -> torch.Tensor:
        """A copy of a tensor from outside; those that share memory have copies that do."""
        if constant.layout != torch.strided or constant.is_conj() or constant.is_neg():
            return constant.clone()
        memory = _torch_private.storage_of(fake)
        if memory not in self._memory_copies:
            whole = _torch_private.whole_memory(constant).clone()
            self._memory_copies[memory] = whole.untyped_storage()
        empty = torch.empty(0, dtype=constant.dtype, device=constant.device)
        place = constant.storage_offset(), constant.size(), constant.stride()
        return empty.set_(self._memory_copies[memory], *place)

    def real(self, argument: Any) -> Any:
        """What an argument of a call is in the example."""
        if isinstance(argument, torch.Tensor):
            return self._value(argument)
        if isinstance(argument, (list, tuple)):
            return [self.real(item) for item in argument]
        if isinstance(argument, dict):
            return {key: self.real(item) for key, item in argument.items()}
        if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            expression = _torch_private.dim_of(argument)
            if not isinstance(expression, sympy.Basic):
                return expression
            return self.value_of(expression)
        return argument

    def _number(self, symbol: Any) -> sympy.Basic:
        recorder = self._recorder
        sizes = self._sizes or _torch_private.example_sizes(recorder.mode)
        if symbol in sizes:
            return sympy.Integer(sizes[symbol])
        if symbol in self._numbers:
            return sympy.sympify(self.number(self._numbers[symbol]) + 0)
        source = recorder.graph.symbols[symbol]
        assert source.value.fake is not None and source.axis is not None
        return sympy.Integer(self.of(source.value.fake).shape[source.axis])


def _what(answer: Any) -> str:
    if isinstance(answer, bool):
        return "a tensor decides a Python branch"
    return f"a tensor becomes a Python {type(answer).__name__}"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    leaves, _ = _torch_private.open_pytree(value)
    yield from (leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def _memory(tensors: Any) -> Iterator[int]:
    for tensor in tensors:
        if tensor.layout == torch.strided:
            yield _torch_private.storage_of(tensor)
