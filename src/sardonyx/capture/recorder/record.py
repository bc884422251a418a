"""A model recorded: run once, on fake tensors, under the recorder.

Two policies differ in what happens where code looks at a value. Symbolic ("export"): it is a
symbol, and to branch on it is refused with the line. By example ("trace"): it is computed,
followed, and noted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.derived_dims import compute_roots
from sardonyx.capture.dynamic import DynamicDim
from sardonyx.capture.exportable_calls import ExportableCalls, MathOfSizes
from sardonyx.capture.flat_model import (
    FlatModel,
    OutputRecord,
    RandomNumbersWatch,
    Recorded,
    is_graph_output,
    modes_of_captures,
)
from sardonyx.capture.graph import AtenGraph, Node, TensorType, Value
from sardonyx.capture.held_attributes import attributes_restored
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import place_text
from sardonyx.capture.packed_sequences import PackedSequences, batches_unchecked, hint_for_lengths
from sardonyx.capture.recorder.modules import ModuleCalls
from sardonyx.capture.recorder.quantized import QuantizedQuestions
from sardonyx.capture.recorder.recorder import Recorder
from sardonyx.capture.recorder.value_reads import ValueReads
from sardonyx.capture.refusals import (
    fixed_dim_error,
    model_raises,
    place_of,
    with_constant_numbers,
)
from sardonyx.capture.size_conditions import (
    SizeCondition,
    SymbolOrigin,
    check_conditions,
    in_callers_names,
)
from sardonyx.capture.state import state_tensors
from sardonyx.capture.watched_calls import ChangingMode, WatchedCalls, WatchingMode
from sardonyx.errors import CaptureError, DynamicDimError, first_line, format_message


def record_symbolically(model: Any, inputs: PreparedInputs) -> Recorded:
    return _recorded(model, inputs, by_example=False)


def record_by_example(model: Any, inputs: PreparedInputs) -> Recorded:
    return _recorded(model, inputs, by_example=True)


def _recorded(model: Any, inputs: PreparedInputs, by_example: bool) -> Recorded:
    again = record_by_example if by_example else record_symbolically
    try:
        recorded, fixed = _Recording(model, inputs, by_example).run()
    except DynamicDimError:
        raise
    except CaptureError as error:
        if not inputs.number_positions:
            raise
        return with_constant_numbers(again, model, inputs, inputs.number_positions, error)
    if isinstance(fixed, list):
        return with_constant_numbers(again, model, inputs, fixed, None)
    if not fixed:
        return recorded
    settled = inputs.without_dynamic(fixed)
    if settled.recorded_sizes == inputs.recorded_sizes:
        return replace(recorded, inputs=settled)
    # Recorded at a size that is not the example's, and then fixed to it.
    return again(model, settled)


class _Recording:
    """One run of a model."""

    def __init__(self, model: Any, inputs: PreparedInputs, by_example: bool) -> None:
        self._model = model
        self._inputs = inputs
        self._by_example = by_example
        self._modules = ModuleCalls(model)
        names = {id(tensor): name for name, tensor in reversed(list(state_tensors(model)))}
        self._recorder = Recorder(self._modules, names, _packed_names(model), "torch.export")
        self._reads = ValueReads(self._recorder)
        self._recorder.example.follows = by_example
        self._symbols: dict[str, Any] = {}
        """By the name of a dynamic dim, the size."""
        self._record = OutputRecord()
        self._origins: dict[sympy.Symbol, SymbolOrigin] = {}

    def run(self) -> tuple[Recorded, Any]:
        """The recording, and the optional dynamic dims (input, axis) that the model fixes; or the
        positions of the Python numbers that it does."""
        graph = self._recorder.graph
        with _torch_private.sizes_that_may_be_zero():
            given = [self._input(position) for position in self._inputs.input_positions]
            compute_roots(graph)
            results = self._run_model(given)
            graph.outputs = [self._recorder.output(result) for result in results]
        constant = self._fixed_numbers(graph)
        if constant:
            return Recorded(graph, self._record, self._inputs), constant
        conditions = self._conditions()
        fixed = self._check_dynamic(graph, conditions)
        sizes = _torch_private.example_sizes(self._recorder.mode)
        notes = check_conditions(conditions, self._origins, sizes)
        baked = tuple(self._recorder.example.baked())
        return Recorded(graph, self._record, self._inputs, tuple(notes), baked), fixed

    def _run_model(self, given: list[Any]) -> list[Any]:
        flat = FlatModel(self._model, self._inputs, self._record)
        modes: list[ChangingMode | WatchingMode] = [*modes_of_captures(), PackedSequences()]
        modes += [QuantizedQuestions(self._recorder.quantized), self._reads, ExportableCalls()]
        self._reads.watch_foreign([tensor for _, tensor in state_tensors(self._model)])
        flat.modes = (RandomNumbersWatch(self._record), MathOfSizes(), WatchedCalls(modes))
        try:
            with (
                attributes_restored(self._model),
                _torch_private.module_calls_followed(self._modules.called),
                _torch_private.control_flow_not_compiled(),
                batches_unchecked(),
                self._recorder.dispatch.entered(),
            ):
                results = list(flat.forward(*given))
            self._reads.check_unwritten()
            return results
        except CaptureError:
            raise
        except Exception as error:
            raise self._refusal(error) from error

    # -- inputs ----------------------------------------------------------------------------------

    def _input(self, position: int) -> Any:
        leaf = self._inputs.capture_leaves[position]
        name = self._inputs.names[position]
        dims = self._inputs.dynamic[position]
        recorder, mode = self._recorder, self._recorder.mode
        if isinstance(leaf, torch.Tensor):
            sizes = [
                self._size(dims[axis], size) if axis in dims else size
                for axis, size in enumerate(leaf.shape)
            ]
            fake = _torch_private.fake_like(mode, leaf, sizes)
            recorder.add_input(name, fake)
            recorder.example.add_input(fake, leaf.detach().clone())
            return fake
        if isinstance(leaf, float):
            number = torch.tensor(leaf, dtype=torch.get_default_dtype())
            fake = _torch_private.fake_like(mode, number, [])
            recorder.add_input(name, fake)
            recorder.example.add_input(fake, number)
            return fake
        size = _torch_private.new_input_size(mode, leaf, is_size=False)
        recorder.add_number(name, size)
        dim = dims.get(0)
        symbol = _torch_private.dim_of(size)
        self._origins[symbol] = SymbolOrigin(name, dim is not None and dim.required)
        self._recorder.graph.symbol_names[symbol] = name
        return size

    def _size(self, dim: DynamicDim, size: int) -> Any:
        """The symbol of a dynamic dim; dims of one name are one."""
        if dim.root is not None and dim.derive is not None:
            root = _root_size(dim, size)
            return dim.derive(self._symbol(dim.root, root, DynamicDim(dim.root)))
        return self._symbol(dim.name, size, dim)

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

    # -- what the run took for granted -----------------------------------------------------------

    def _conditions(self) -> list[SizeCondition]:
        places = self._recorder.places
        return [
            SizeCondition(guard.expression, guard.place or places.get(index, ("", 0, "")),
                          guard.in_model_code)
            for index, guard in enumerate(_torch_private.guards(self._recorder.mode))
            if not guard.is_layout_check
        ]

    def _fixed_numbers(self, graph: AtenGraph) -> list[int]:
        """Positions of integers that the model turned into numbers while it was recorded."""
        fixed = _torch_private.fixed_symbols(self._recorder.mode)
        return [
            position
            for position in self._inputs.input_positions
            if isinstance(self._inputs.leaves[position], int)
            and any(origin.name == self._inputs.names[position] and symbol in fixed
                    for symbol, origin in self._origins.items())
        ]

    def _check_dynamic(
        self, graph: AtenGraph, conditions: Sequence[SizeCondition]
    ) -> set[tuple[int, int]]:
        """Every dim that was asked for is a symbol; the optional ones that are not."""
        fixed_symbols = _torch_private.fixed_symbols(self._recorder.mode)
        by_name = {o.name: (s, fixed_symbols[s]) for s, o in self._origins.items() if s in fixed_symbols}
        fixed: set[tuple[int, int]] = set()
        for position in self._inputs.input_positions:
            for axis, dim in self._inputs.dynamic[position].items():
                name = dim.root if dim.root is not None else dim.name
                if name not in by_name:
                    continue
                symbol, size = by_name[name]
                if dim.required:
                    places = _places_of(symbol, conditions)
                    raise fixed_dim_error(self._inputs.names[position], axis, dim, size, places)
                fixed.add((position, axis))
        return fixed

    def _refusal(self, error: Exception) -> CaptureError:
        own = model_raises(error, self._model, self._inputs)
        if not str(own).startswith("torch.jit.trace"):
            return own
        said = in_callers_names(first_line(error), {s: o.name for s, o in self._origins.items()})
        hint = hint_for_lengths([place_of(error)])
        return CaptureError(
            format_message(
                f"torch.export refuses the model: {said}",
                [
                    ("at", place_of(error)),
                    (
                        "try",
                        [
                            'capture="trace", or torch.cond / torch.while_loop where data decides',
                            hint and f"or {hint}",
                        ],
                    ),
                ],
            )
        )


def _packed_names(model: Any) -> dict[int, str]:
    """What the packed weights of quantized layers are called, by id."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return {}
    return {
        id(attribute): f"{path}.{name}" if path else name
        for path, module in model.named_modules()
        for name, attribute in vars(module).items()
        if isinstance(attribute, torch.ScriptObject)
    }


def _root_size(dim: DynamicDim, size: int) -> int:
    """The size that a derived dim of this size is computed from."""
    assert dim.derive is not None
    offset = dim.derive(0)
    return (size - offset) // (dim.derive(1) - offset)


def _places_of(symbol: Any, conditions: Sequence[SizeCondition]) -> list[str]:
    """Where the recording took a size for the number it was in the example: the plainest first."""
    equations = [
        c
        for c in conditions
        if isinstance(c.expression, sympy.Eq) and symbol in c.expression.free_symbols
    ]
    equations.sort(key=lambda c: symbol not in c.expression.args)
    return list(dict.fromkeys(text for c in equations if (text := place_text(c.place))))
