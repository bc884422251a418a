"""One run of a model under the recorder, and the checks after it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.location import Place, place_text
from sardonyx.aten.module_tree import named_modules
from sardonyx.aten.signature import DynamicDim
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.capture.autograd_functions import note_shared_writes
from sardonyx.capture.capture_errors import (
    KEEP_SYMBOLIC,
    KEEP_TENSOR,
    DataDependentError,
    fixed_dim_error,
    model_raises,
    place_of,
)
from sardonyx.capture.flat_model import (
    FlatModel,
    OutputRecord,
    RandomNumbersWatch,
    Recorded,
    SeedWatch,
)
from sardonyx.capture.function_overrides.data_checks import DataCheckOverride
from sardonyx.capture.function_overrides.function_mode import FunctionOverride, FunctionOverrides
from sardonyx.capture.function_overrides.overrides import OperatorOverrides
from sardonyx.capture.function_overrides.source_statements import calls_cached_function
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.inputs.derived_dims import compute_roots
from sardonyx.capture.inputs.example_sizes import named_dims
from sardonyx.capture.recorder.data_access import DataAccess
from sardonyx.capture.recorder.escaped_tensors import release_frames, replace_escaped
from sardonyx.capture.recorder.example_values import ExampleValues
from sardonyx.capture.recorder.module_stack import ModuleCalls
from sardonyx.capture.recorder.quantized import QuantizedAttributes
from sardonyx.capture.recorder.recorder import Recorder
from sardonyx.capture.recorder.scripted_calls import ScriptCalls
from sardonyx.capture.side_effects.python_state import attributes_restored
from sardonyx.capture.side_effects.restore import DataAttributeOverride
from sardonyx.capture.side_effects.tensor_state import may_alias_array, state_tensors
from sardonyx.capture.symbolic_shapes.guards import (
    SymbolOrigin,
    check_conditions,
    note_on_text,
    notes_on_small_sizes,
    readable,
    text_place,
)
from sardonyx.capture.symbolic_shapes.rank_guards import kept_axes
from sardonyx.errors import CaptureError, SardonyxError, first_line
from sardonyx.notes import error_at


class ComparedByIdentityError(CaptureError):
    """A condition on sizes may have been looked at by `is`."""


class Recording:
    """One run of a model."""

    def __init__(self, model: Any, inputs: PreparedInputs, by_example: bool = False) -> None:
        self._model = model
        self._inputs = inputs
        self._modules = ModuleCalls(model)
        state = list(self._state())
        names = {id(tensor): name for name, tensor in reversed(state)}
        self._kept = [tensor for _, tensor in state]  # names go by id
        way = "trace" if by_example else "export"
        self._recorder = Recorder(self._modules, names, _packed_names(model), way)
        self._reads = DataAccess(self._recorder)
        self._recorder.example.follows = by_example
        self._symbols: dict[str, Any] = {}
        """By the name of a dynamic dim, the size."""
        self._record = OutputRecord()
        self._origins: dict[sympy.Symbol, SymbolOrigin] = {}
        self._texts: dict[sympy.Basic, Place] = {}
        """Of which sizes the model's own Python makes text."""
        self._numbers: list[weakref.ref[Any]] = []
        """The symbolic numbers that it was given."""

    def record_gradients(self) -> None:
        """With autograd above the recorder."""
        self._recorder.dispatch.is_below_autograd = False

    def _state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors that the model holds, by their names."""
        yield from state_tensors(self._model)

    def run(self) -> tuple[Recorded, Any]:
        """The recording, and the optional dynamic dims (input, axis) that the model fixes; or the
        positions of the Python numbers that it does."""
        try:
            return self._run()
        finally:
            self._recorder.close()

    def _run(self) -> tuple[Recorded, Any]:
        graph = self._recorder.graph
        outside = sys.exception()
        with _torch_private.sizes_that_may_be_zero():
            given = [self._input(position) for position in self._inputs.input_positions]
            compute_roots(graph)
            try:
                results = self._run_model(given)
            except BaseException as error:
                release_frames(error, outside)  # else they would hold tensors of this run
                with suppress(CaptureError):
                    self._replace_escaped([given, self._record.leaves])
                raise
            self._replace_escaped([given, results, self._record.leaves])
            graph.outputs = [self._recorder.output(result) for result in results]
        constant = self._fixed_numbers()
        if constant:
            return Recorded(graph, self._record, self._inputs), constant
        conditions = self._recorder.guards.conditions
        fixed = self._check_dynamic(conditions)
        sizes = _torch_private.example_sizes(self._recorder.mode)
        notes = check_conditions(conditions, self._origins, sizes)
        answers = self._recorder.guards.zero_one_answers
        notes += notes_on_small_sizes(answers, self._origins, sizes)
        notes += [
            note_on_text(readable(expression, self._origins), place)
            for expression, place in self._texts.items()
            if expression.free_symbols
        ]
        notes += [note_on_text("a tensor", place) for place in self._recorder.example.texts]
        baked = tuple(self._recorder.example.baked())
        recorded = Recorded(
            graph,
            self._record,
            self._inputs,
            tuple(dict.fromkeys([*notes, *self._recorder.notes])),
            baked,
            tuple(conditions),
            tuple(self._decisions()),
        )
        return recorded, fixed

    def _decisions(self) -> Iterator[SizeCondition]:
        yield from (c for c in self._recorder.guards.conditions if c.in_model_code)
        for expression, place in self._recorder.guards.zero_one_answers.items():
            yield SizeCondition(expression, place, in_model_code=True)
        for node in all_nodes(self._recorder.graph.nodes):
            for axis in kept_axes(node):
                size, at = node.arguments["self"].shape[axis], node.location
                yield SizeCondition(sympy.Ne(size, 1), (at.file, at.line, at.text), False)
        looked = self._recorder.example.looked
        if looked and self._inputs.recorded_sizes != self._inputs.example_sizes:
            # What was decided by values was decided by those of another input.
            values = self._values_at_example()
            for read, place in looked:
                if not self._recorder.example.sees_the_same(values, read):
                    yield SizeCondition(self._is_as_recorded(), place, in_model_code=True)

    def _is_as_recorded(self) -> sympy.Basic:
        sizes = _torch_private.example_sizes(self._recorder.mode)
        return sympy.And(*(sympy.Eq(s, n) for s, n in sizes.items() if s in self._origins))

    def _replace_escaped(self, results: list[Any]) -> None:
        own = [*results, list(self._symbols.values())]
        replace_escaped(self._recorder, own, self._numbers, self._values_at_example)

    def _values_at_example(self) -> ExampleValues:
        """Where the run had other sizes than the example, those of the example itself."""
        inputs, values = self._inputs, self._recorder.example
        if inputs.recorded_sizes == inputs.example_sizes:
            return values
        graph = self._recorder.graph
        real: dict[int, torch.Tensor] = {}
        for value, position in zip(graph.inputs, inputs.input_positions, strict=True):
            leaf = inputs.leaves[position]
            if not isinstance(leaf, int):
                real[id(value.fake)] = torch.as_tensor(leaf, dtype=value.dtype).detach().clone()
        sizes = _torch_private.example_sizes(self._recorder.mode)
        known = inputs.free_sizes(inputs.leaves, inputs.input_positions)
        sizes |= {s: known[name] for s, name in graph.symbol_names.items() if name in known}
        return values.at(real, sizes)

    def _run_model(self, given: list[Any]) -> list[Any]:
        flat = FlatModel(self._model, self._inputs, self._record)
        overrides: list[FunctionOverride] = [
            DataAttributeOverride(),
            DataCheckOverride(),
            QuantizedAttributes(self._recorder.quantized),
            self._reads,
            OperatorOverrides(),
        ]
        for _, tensor in state_tensors(self._model):
            if may_alias_array(tensor):
                self._reads.watch(tensor)
        self._recorder.functions = FunctionOverrides(overrides)
        flat.modes = (RandomNumbersWatch(self._record), self._recorder.functions)
        with attributes_restored(self._model) as flat.python_state, SeedWatch():
            results = self._run_recorded(lambda: list(flat.forward(*given)))
        self._reads.check_unwritten()
        self._check_conditions_read(results)
        return results

    def _check_conditions_read(self, results: list[Any]) -> None:
        """A comparison of sizes that nothing used may have been compared by `is`: no symbol
        is True."""
        returned = {_torch_private.dim_of(r) for r in results if isinstance(r, torch.SymBool)}
        for expression, place in self._recorder.guards.unread.pop_all():
            if expression not in returned and expression.free_symbols:
                raise error_at(
                    ComparedByIdentityError,
                    place,
                    f"nothing uses the result of {readable(expression, self._origins)}, unless it"
                    " is compared by `is`, which no recording can follow",
                    "`==`, or the comparison itself as the condition",
                )

    def _run_recorded(self, run: Callable[[], list[Any]]) -> list[Any]:
        hooks = _torch_private.Hooks(
            module_called=self._modules.called, script_called=ScriptCalls(self._recorder).call
        )
        observer = _torch_private.NumberObserver(
            text_made=self._note_text,
            simplified=self._recorder.large_sizes.symbol_for,
            unread=self._recorder.guards.unread,
            numbers=self._numbers,
            calls_cached_function=calls_cached_function,
        )
        try:
            with (
                _torch_private.recording_patches(hooks) as symbol_made,
                _torch_private.observed_numbers(self._recorder.mode, observer, symbol_made),
                self._recorder.dispatch.entered(),
            ):
                results = run()
            if self._recorder.refused is not None:
                raise self._recorder.refused
            return results
        except SardonyxError:
            raise
        except Exception as error:
            raise self._refusal(error) from error
        finally:
            note_shared_writes()

    def _note_text(self, expression: sympy.Basic, frame: FrameType) -> None:
        place = text_place(frame)
        if place is not None:
            self._texts.setdefault(expression, place)

    # -- inputs ----------------------------------------------------------------------------------

    def _input(self, position: int) -> Any:
        leaf = self._inputs.capture_leaves[position]
        is_float = isinstance(leaf, float)
        if is_float:
            leaf = torch.tensor(leaf, dtype=torch.float64)
        name = self._inputs.names[position]
        dims = self._inputs.dynamic[position]
        recorder, mode = self._recorder, self._recorder.mode
        if isinstance(leaf, torch.Tensor):
            sizes = [
                self._size(dims[axis], _torch_private.hint_of(size)) if axis in dims else size
                for axis, size in enumerate(leaf.shape)
            ]
            fake = _torch_private.fake_like(mode, leaf, sizes)
            recorder.add_input(name, fake)
            if not _torch_private.is_fake(leaf):  # that of a program has no values
                recorder.example.add_input(fake, leaf.detach().clone())
            if is_float:  # as PyTorch takes it, where a tensor of that dtype would be promoted to
                cast = torch.ops.aten._to_copy.default
                return recorder.record_plain(cast, (fake,), {"dtype": torch.get_default_dtype()})
            return fake
        size = _torch_private.new_input_size(mode, leaf, is_size=False)
        recorder.add_number(name, size)
        dim = dims.get(0)
        symbol = _torch_private.dim_of(size)
        self._origins[symbol] = SymbolOrigin(name, dim is not None and dim.required)
        self._recorder.graph.symbol_names[symbol] = name
        return _torch_private.as_model_number(size)

    def _size(self, dim: DynamicDim, size: int) -> Any:
        """The symbol of a dynamic dim; dims of one name are one."""
        if dim.derive is None:
            return self._symbol(dim.name, size, dim)
        dims = {name: (DynamicDim(name), root) for name, root in dim.free_dims(size).items()}
        dims |= named_dims(self._inputs.capture_leaves, self._inputs.dynamic)
        roots = [
            self._symbol(name, _torch_private.hint_of(dims[name][1]), dims[name][0])
            for name in dim.roots
        ]
        if len(roots) > 1:
            return dim.derive(*roots)
        factor, more = dim.coefficients()  # PyTorch's own function takes numbers alone
        return roots[0] * factor + more

    def _symbol(self, name: str, hint: int, dim: DynamicDim) -> Any:
        if name not in self._symbols:
            size = _torch_private.new_input_size(self._recorder.mode, hint)
            if dim.minimum is not None or dim.maximum is not None:
                _torch_private.limit_size(size, dim.minimum, dim.maximum)
            symbol = _torch_private.dim_of(size)
            self._origins[symbol] = SymbolOrigin(name, dim.required, dim.minimum or 0)
            self._recorder.graph.symbol_names[symbol] = name
            self._symbols[name] = size
        return self._symbols[name]

    # -- what the run assumed --------------------------------------------------------------------

    def _fixed_numbers(self) -> list[int]:
        """Positions of integers that the model turned into numbers while it was recorded."""
        inputs, fixed = self._inputs, _torch_private.fixed_symbols(self._recorder.mode)
        names = {origin.name for symbol, origin in self._origins.items() if symbol in fixed}
        return [
            position
            for position in inputs.input_positions
            if isinstance(inputs.leaves[position], int) and inputs.names[position] in names
        ]

    def _check_dynamic(self, conditions: Sequence[SizeCondition]) -> set[tuple[int, int]]:
        """Raises for a required dim that was specialized; the optional ones that were."""
        fixed_symbols = _torch_private.fixed_symbols(self._recorder.mode)
        by_name = {
            o.name: (s, fixed_symbols[s]) for s, o in self._origins.items() if s in fixed_symbols
        }
        fixed: set[tuple[int, int]] = set()
        for position in self._inputs.input_positions:
            for axis, dim in self._inputs.dynamic[position].items():
                names = dim.roots or (dim.name,)
                if not all(name in by_name for name in names):
                    continue
                symbol, size = by_name[names[0]]
                if isinstance(leaf := self._inputs.leaves[position], torch.Tensor):
                    size = _torch_private.hint_of(leaf.shape[axis])  # 0 and 1 are recorded larger
                if dim.required:
                    equations = _equations(symbol, conditions)
                    places = [text for c in equations if (text := place_text(c.place))]
                    raise fixed_dim_error(
                        self._inputs.names[position],
                        axis,
                        dim,
                        size,
                        list(dict.fromkeys(places)),
                        by_python=bool(equations) and equations[0].in_model_code,
                        reads_items=self._reads.has_read_items,
                    )
                fixed.add((position, axis))
        return fixed

    def _text(self, condition: sympy.Basic | None) -> str:
        """A condition that data decides, in the caller's names."""
        if condition is None:
            return ""
        of_data = condition.free_symbols - self._origins.keys()
        data = dict.fromkeys(of_data, sympy.Symbol("data"))
        return readable(condition.xreplace(data), self._origins)

    def _refusal(self, error: Exception) -> CaptureError:
        names = {s: o.name for s, o in self._origins.items()}
        if _torch_private.is_data_dependent_error(error):
            condition = _torch_private.condition_of(error)
            refusal = error_at(
                DataDependentError,
                place_of(error),
                "the model's code looks at a value that data decides",
                [
                    "torch.where, torch.cond or torch.while_loop there",
                    'or capture="trace", which takes the value of the example',
                    KEEP_TENSOR if self._reads.has_read_items else "",
                ],
                self._text(condition),
            )
            refusal.may_be_caught = getattr(error, "may_be_caught", False)
            return refusal
        own = model_raises(self._model, self._inputs)
        if own is not None:
            return own
        return error_at(
            CaptureError,
            place_of(error),
            f"the model cannot be recorded: {in_callers_names(first_line(error), names)}",
            # The model itself runs: what it calls does not take a symbolic size.
            KEEP_SYMBOLIC if isinstance(error, TypeError) and self._origins else "",
        )


def _packed_names(model: Any) -> dict[int, str]:
    """What the packed weights of quantized layers are called, by hash."""
    if isinstance(model, torch.jit.ScriptModule):
        return {}
    return {
        hash(attribute): ".".join(part for part in path.split(".") if part != "_packed_params")
        for path, module in named_modules(model)
        for attribute in vars(module).values()
        if isinstance(attribute, torch.ScriptObject)
    }


def _equations(symbol: Any, conditions: Sequence[SizeCondition]) -> list[SizeCondition]:
    """What specialized a size to the number it is in the example: the plainest first."""
    equations = [
        c
        for c in conditions
        if isinstance(c.expression, sympy.Eq) and symbol in c.expression.free_symbols
    ]
    return sorted(equations, key=lambda c: symbol not in c.expression.args)
