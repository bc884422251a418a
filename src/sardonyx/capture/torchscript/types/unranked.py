"""Tensors whose number of dims no branch or loop settles.

Such a tensor is held as its elements in a row and its sizes, two tensors of known rank: operators
on elements are called on the row, operators along one dim on the row as three dims. Those that need
the number of dims are refused, unless the program has asked for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import (
    Argument,
    Dim,
    Node,
    SourceLocation,
    TensorType,
    Value,
)
from sardonyx.aten.schema import bind
from sardonyx.aten.unranked import EXPAND, WHOLE
from sardonyx.capture.torchscript.control_flow.patterns import DynamicListOf
from sardonyx.capture.torchscript.interpreter.tensor_queries import OF_TYPES, READ_NUMBERS
from sardonyx.capture.torchscript.types.values import (
    AnyRank,
    ComputedNumber,
    DynamicItems,
    ScriptList,
)
from sardonyx.errors import CaptureError, format_message
from sardonyx.functionalization.layout import is_dense

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_aten = torch.ops.aten


Reread = Callable[[dict[Argument, Argument]], Argument]
"""The node read once more, with other operands: what it gives."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Of an operator whose tensor is one of any rank."""

    op: Any
    tensor: AnyRank
    arguments: dict[str, Argument]
    reread: Reread


class AnyRankTensors:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._typed = reader.emit_typed
        self.known: dict[sympy.Symbol, int] = {}
        """Numbers of dims, where the program has asked for them."""
        self._implied: dict[tuple[Value, bool], list[tuple[Argument, bool]]] = {}
        """What is so where a number is true, or false."""

    # -- from tensors of known rank, and back ----------------------------------------------------

    def parts(self, tensor: Value | AnyRank) -> tuple[Value, Value]:
        if isinstance(tensor, AnyRank):
            return tensor.flat, tensor.sizes
        return self._flat(tensor), self._vector(tensor.shape)

    def whole(self, tensor: AnyRank) -> Value:
        value = self._reader.new_value("whole", tensor.dtype, None)
        self._add(WHOLE, [tensor.flat, tensor.sizes], [value])
        return value

    def now(self, argument: Argument) -> Argument:
        """With the number of dims that is known here."""
        if not self.known or not isinstance(argument, AnyRank):
            return argument
        rank = argument.rank
        if isinstance(rank, sympy.Expr):
            rank = rank.subs(self.known)
        return self._ranked(argument, int(rank)) if _is_integer(rank) else argument

    @contextmanager
    def where(self, condition: Argument, holds: bool) -> Iterator[None]:
        """Inside the branch that a condition was true or false for."""
        before = self.known
        self.learn(condition, holds)
        try:
            yield
        finally:
            self.known = before

    def note_joined(
        self, condition: Argument, result: Argument, then: Argument, otherwise: Argument
    ) -> None:
        """Of the number that a branch gives: `a and b` is one with False on the other side."""
        if not isinstance(result, ComputedNumber):
            return
        if otherwise is False:
            self._implied[result.value, True] = [(condition, True), (then, True)]
        elif then is True:
            self._implied[result.value, False] = [(condition, False), (otherwise, False)]

    def learn(self, condition: Argument, holds: bool) -> None:
        if isinstance(condition, ComputedNumber):
            for implied in self._implied.get((condition.value, holds), ()):
                self.learn(*implied)
        wanted = sympy.Eq if holds else sympy.Ne
        if not isinstance(condition, wanted):
            return
        difference = sympy.expand(condition.lhs - condition.rhs)
        symbols = list(difference.free_symbols)
        if len(symbols) == 1 and difference.is_polynomial(*symbols):
            (symbol,) = symbols
            polynomial = sympy.Poly(difference, symbol)
            if polynomial.degree() == 1:
                slope, offset = polynomial.all_coeffs()
                rank = -offset / slope
                if _is_integer(rank):
                    self.known = {**self.known, symbol: int(rank)}

    def of_sizes(self, flat: Value, sizes: Value, since: str) -> Value | AnyRank:
        made = AnyRank(flat, sizes, since)
        return self._ranked(made, int(made.rank)) if _is_integer(made.rank) else made

    def _ranked(self, tensor: AnyRank, rank: int) -> Value:
        dims = [self._size(tensor, axis) for axis in range(rank)]
        return self._view(tensor.flat, dims)

    def _size(self, tensor: AnyRank, axis: int) -> Dim:
        return self._scalar(self._entry(tensor, axis))

    def _entry(self, tensor: AnyRank, axis: Argument) -> Argument:
        return self._reader.lists.at(DynamicItems(tensor.sizes, of_numbers=True), axis)

    def _scalar(self, number: Argument) -> Dim:
        scalar: Dim = self._reader.numbers.as_scalar(number)
        return scalar

    def _flat(self, tensor: Value) -> Value:
        if len(tensor.shape) == 1:
            return tensor
        count = math.prod(tensor.shape)
        if tensor.fake is None or is_dense(tensor.fake):
            return self._view(tensor, [count])
        if self._reader.writes_tensors:
            raise CaptureError(
                format_message(
                    "the number of dims of a tensor is known at run time, its elements do not lie"
                    " in memory one after the other, and the program writes tensors in place: make"
                    " it contiguous() before",
                    [("at", self._reader.here.describe())],
                )
            )
        return self._typed(_aten.reshape.default, [tensor, [count]], tensor.dtype, [count])

    def _view(self, tensor: Value, dims: Sequence[Dim]) -> Value:
        if list(tensor.shape) == list(dims):
            return tensor
        return self._typed(_aten.view.default, [tensor, list(dims)], tensor.dtype, dims)

    def _add(self, op: Any, arguments: list[Argument], results: list[Value]) -> None:
        location, (flat, *_) = self._reader.here, arguments
        if not location.file and flat.producer is not None:  # what is returned has no place
            location = flat.producer.location
        self._reader.graph.nodes.append(Node(op, bind(op, arguments), results, location))

    def _vector(self, numbers: Sequence[Argument]) -> Value:
        if all(isinstance(n, int) for n in numbers):
            tensor = torch.tensor(numbers, dtype=torch.int64)
            return Value("sizes", TensorType(torch.int64, (len(numbers),)), constant=tensor)
        pattern = DynamicListOf(torch.int64, (), True, False, len(numbers))
        return self._reader.lists.dynamic_content(tuple(numbers), pattern)

    # -- calls -----------------------------------------------------------------------------------

    def call(self, kind: str, op: Any, operands: Sequence[Argument], reread: Reread) -> Argument:
        """What an operator gives, of which an operand is such a tensor."""
        tensor = next(o for o in operands if isinstance(o, AnyRank))
        question = _QUESTIONS.get(kind)
        if question is not None and operands[0] is tensor:
            return question(self, *operands)
        if kind in _OF_ELEMENTS:
            return reread({tensor: tensor.flat})
        if op is None:
            raise needs_rank(kind, tensor, self._reader.here)
        arguments = bind(op, [_as_list(operand) for operand in operands])
        name = op._schema.name.removesuffix("_")
        is_pointwise = torch.Tag.pointwise in op.tags and op is not _aten.equal.default
        if is_pointwise or name in _ELEMENTWISE:
            return self._elementwise(op, arguments, reread)
        if arguments.get(_TENSOR_OF.get(name, next(iter(arguments)))) is tensor:
            found = self._of_tensor(name, _Call(op, tensor, arguments, reread))
            if found is not None:
                return found
        raise needs_rank(op._schema.name, tensor, self._reader.here)

    def of_tensors(self, op: Any, operands: Sequence[Argument]) -> Argument:
        """What an operator gives of a list that has such a tensor in it."""
        arguments = bind(op, [_as_list(operand) for operand in operands])
        tensors = arguments["tensors" if "tensors" in arguments else "indices"]
        if "indices" in arguments:
            found = self._rows_at(op, arguments["self"], tensors)
        elif arguments["dim"] == 0 and len({t.dtype for t in tensors}) == 1:
            found = self._concatenated(op, tensors)
        else:
            found = None
        if found is None:
            first = next(t for t in tensors if isinstance(t, AnyRank))
            raise needs_rank(op._schema.name, first, self._reader.here)
        return found

    def _concatenated(self, op: Any, tensors: Sequence[Value | AnyRank]) -> Argument:
        """Along the first dim, where the elements of one follow those of the other."""
        flats, sizes = zip(*map(self.parts, tensors), strict=True)
        (flat,) = self._reader.emit(_aten.cat.default, [list(flats), 0])
        first = next(t for t in tensors if isinstance(t, AnyRank))
        if op._schema.name == "aten::stack":
            joined = self._joined([[len(tensors)], first.sizes])
            return self.of_sizes(flat, joined, first.since)
        heads = [self._typed(_aten.slice.Tensor, [s, 0, 0, 1, 1], torch.int64, [1]) for s in sizes]
        count = self._typed(_aten.cat.default, [heads, 0], torch.int64, [len(heads)])
        (total,) = self._reader.emit(_aten.sum.dim_IntList, [count, [0], True])
        return self.of_sizes(flat, self._joined([total, self._tail_of_all(tensors)]), first.since)

    def _tail_of_all(self, tensors: Sequence[Value | AnyRank]) -> Value:
        """The sizes after the first of tensors that are concatenated. They are the same in all but
        those of the one size 0, which may stand beside tensors of any rank and have none."""
        ranked = next((t for t in tensors if isinstance(t, Value) and len(t.shape) > 1), None)
        if ranked is not None:
            return self._vector(ranked.shape[1:])
        by_rank = {t.rank: t for t in tensors if isinstance(t, AnyRank)}
        tails = [self._tail(tensor, 1) for tensor in by_rank.values()]
        if len(tails) == 1:
            return tails[0]
        joined = self._joined(tails)
        (most,) = self._reader.emit(_aten.amax.default, [self._vector(list(by_rank))])
        end = self._scalar(ComputedNumber(most)) - 1
        return self._part(joined, 0, end, end)

    def _rows_at(self, op: Any, table: Argument, indices: Sequence[Argument]) -> Argument:
        """`table[places]`"""
        if len(indices) != 1 or not isinstance(table, Value):
            return None
        (places,) = indices
        if not isinstance(places, AnyRank) or places.dtype not in (torch.int64, torch.int32):
            return None
        (rows,) = self._reader.emit(op, [table, [places.flat]])
        sizes = self._joined([places.sizes, self._vector(rows.shape[1:])])
        return self.of_sizes(self._flat(rows), sizes, places.since)

    def _of_tensor(self, name: str, call: _Call) -> Argument:
        if name in _REDUCTIONS and _is_of_all(call.arguments):
            return call.reread({call.tensor: call.tensor.flat})
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, call)
        dim = _single_dim(call.arguments)
        if name in _ALONG_ONE_DIM and dim is not None:
            return self._along(call.op, call.tensor, call.arguments, dim)
        return None

    def size(self, tensor: AnyRank, dim: Argument = None) -> Argument:
        if dim is None:
            return self._reader.lists.new(DynamicItems(tensor.sizes, of_numbers=True))
        return self._entry(tensor, dim)

    # -- element by element ----------------------------------------------------------------------

    def _elementwise(self, op: Any, arguments: dict[str, Argument], reread: Reread) -> Argument:
        tensors = [t for t in arguments.values() if isinstance(t, (Value, AnyRank))]
        if op._schema.name in _OF_ONE_TENSOR:
            own = arguments["self"]
            converted = reread({t: t.flat for t in tensors if isinstance(t, AnyRank)})
            return self._with_sizes(converted, own) if isinstance(own, AnyRank) else converted
        wide = [t for t in tensors if isinstance(t, AnyRank) or t.shape]
        first = next(t for t in wide if isinstance(t, AnyRank))
        self._check_promotion(op, tensors, first)
        if all(isinstance(t, AnyRank) and t.sizes is first.sizes for t in wide):
            return self._with_sizes(
                reread({t: t.flat for t in wide if isinstance(t, AnyRank)}), first
            )
        written = arguments.get("self") if op._schema.is_mutable else None
        if written is not None:
            to = self.parts(written)
            flats = {t: self._expanded_to(t, to) for t in wide if t is not written}
            if isinstance(written, AnyRank):
                return self._with_sizes(reread({**flats, written: written.flat}), written)
            dims = list(written.shape)
            return reread({t: self._view(flat, dims) for t, flat in flats.items()})
        flats, sizes = self._broadcast(wide)
        return self._with_sizes(reread(flats), AnyRank(first.flat, sizes, first.since))

    def _with_sizes(self, result: Argument, like: AnyRank) -> Argument:
        if isinstance(result, tuple):
            return tuple(self._with_sizes(r, like) for r in result)
        return self.of_sizes(result, like.sizes, like.since)

    def _check_promotion(
        self, op: Any, tensors: Sequence[Value | AnyRank], tensor: AnyRank
    ) -> None:
        """Tensors without dims have less of a say in the dtype of a result."""
        dtypes = {t.dtype for t in tensors}
        if len(dtypes) == 1 or op._schema.is_mutable or op._schema.name in _OF_FIRST_DTYPE:
            return
        ranks = [(0, 1) if isinstance(t, AnyRank) else (min(len(t.shape), 1),) for t in tensors]
        results = {
            _promoted([t.dtype for t in tensors], combination) for combination in product(*ranks)
        }
        if len(results) > 1:
            raise needs_rank(op._schema.name, tensor, self._reader.here)

    def _broadcast(self, tensors: Sequence[Value | AnyRank]) -> tuple[dict[Any, Value], Value]:
        flat, sizes = self.parts(tensors[0])
        for other in tensors[1:]:
            flat, sizes = self._expanded(flat, sizes, self.parts(other)[1], None)
        others = {t: self._expanded_to(t, (flat, sizes)) for t in tensors[1:]}
        return {**others, tensors[0]: flat}, sizes

    def _expanded_to(self, tensor: Value | AnyRank, to: tuple[Value, Value]) -> Value:
        return self._expanded(*self.parts(tensor), to[1], to[0].shape[0])[0]

    def _expanded(
        self, flat: Value, sizes: Value, other: Value, length: Dim | None
    ) -> tuple[Value, Value]:
        made = [
            self._reader.new_value("expanded", dtype, (size,))
            for dtype, size in ((flat.dtype, length), (torch.int64, None))
        ]
        self._add(EXPAND, [flat, sizes, other], made)
        return made[0], made[1]

    def _masked(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        flats, _ = self._broadcast([tensor, arguments["mask"]])
        return call.reread(flats)

    def _indexed(self, call: _Call) -> Argument:
        """`x[x > 0]`, and a number or a tensor without dims written there."""
        tensor, arguments = call.tensor, call.arguments
        masks = arguments["indices"]
        if not isinstance(masks, list) or len(masks) != 1 or not isinstance(masks[0], AnyRank):
            return None
        (mask,) = masks
        values = arguments.get("values")
        if (
            mask.sizes is not tensor.sizes
            or mask.dtype != torch.bool
            or (values is not None and (not isinstance(values, Value) or values.shape))
        ):
            return None
        given = {**arguments, "self": tensor.flat, "indices": [mask.flat]}
        (result,) = self._emit(call.op, given)
        return result if values is None else self.of_sizes(result, tensor.sizes, tensor.since)

    # -- other sizes -----------------------------------------------------------------------------

    def _unsqueezed(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        dim = arguments["dim"]
        if not isinstance(dim, int):
            return None
        parts: list[Value | Sequence[Argument]]
        if dim >= 0:
            parts = [self._head(tensor, dim), [1], self._tail(tensor, dim)]
        elif dim == -1:
            parts = [tensor.sizes, [1]]
        else:
            parts = [self._head(tensor, dim + 1), [1], self._tail(tensor, dim + 1)]
        return self.of_sizes(tensor.flat, self._joined(parts), tensor.since)

    def _squeezed(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        dims = arguments.get("dim")
        if dims is not None:
            dims = dims if isinstance(dims, list) else [dims]
            if not dims or not all(isinstance(dim, int) for dim in dims):
                return None
        return self._without_ones(tensor, dims)

    def squeezed(self, tensor: Value, dims: Sequence[int]) -> Value | AnyRank:
        """Without the dims among these whose size is 1."""
        return self._without_ones(AnyRank(*self.parts(tensor), self._reader.here.describe()), dims)

    def _without_ones(self, tensor: AnyRank, dims: Sequence[int] | None) -> Value | AnyRank:
        rank = tensor.rank
        call = self._reader.numbers.call
        kept = call(_aten.ne.Scalar, tensor.sizes, 1)
        if dims is not None:
            places = self._typed(_aten.arange.default, [rank], torch.int64, (rank,))
            others = [call(_aten.ne.Scalar, places, d if d >= 0 else rank + d) for d in dims]
            for other in others[1:]:
                others[0] = call(_aten.logical_and.default, others[0], other)
            kept = call(_aten.logical_or.default, kept, others[0])
        sizes = call(_aten.index.Tensor, tensor.sizes, [kept])
        return self.of_sizes(tensor.flat, sizes, tensor.since)

    def _reshaped(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        sizes = arguments.get("shape", arguments.get("size"))
        if sizes is None:
            return None
        if isinstance(sizes, list):
            return call.reread({tensor: tensor.flat})
        return self._viewed(tensor.flat, sizes)

    def of_list(self, op: Any, sizes: ScriptList, operands: Sequence[Argument]) -> Argument:
        """`torch.zeros(sizes)`, `x.reshape(sizes)`: of sizes whose number is not known."""
        arguments = bind(op, operands)
        vector = sizes.state.content
        if "self" in arguments:
            return self._viewed(arguments["self"], sizes)
        count = self._scalar(self._product(vector))
        (flat,) = self._emit(op, {**arguments, "size": [count]})
        return self.of_sizes(flat, vector, self._reader.here.describe())

    def _viewed(self, tensor: Value, sizes: ScriptList) -> Value | AnyRank:
        flat, vector = self._flat(tensor), sizes.state.content
        call = self._reader.numbers.call
        # A size of -1 is what is left of the elements.
        product = call(
            _aten.clamp.default, call(_aten.neg.default, call(_aten.prod.default, vector)), 1
        )
        count = self._reader.numbers.as_tensor(flat.shape[0])
        left = call(_aten.div.Tensor_mode, count, product, rounding_mode="floor")
        is_open = call(_aten.lt.Scalar, vector, 0)
        closed = call(_aten.where.self, is_open, left, vector)
        return self.of_sizes(flat, closed, self._reader.here.describe())

    def _like_another(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        other = arguments["other"]
        flat, sizes = self.parts(other)
        own = tensor.flat
        if call.op._schema.name == "aten::expand_as":
            own = self._expanded_to(tensor, (flat, sizes))
        return self.of_sizes(own, sizes, tensor.since)

    def _flattened(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        start, end = arguments.get("start_dim", 0), arguments.get("end_dim", -1)
        if start == 0 and end == -1:
            return tensor.flat
        if end != -1 or not isinstance(start, int) or start < 0:
            return None
        merged = self._product(self._tail(tensor, start))
        sizes = self._joined([self._head(tensor, start), [merged]])
        return self.of_sizes(tensor.flat, sizes, tensor.since)

    # -- along one dim ---------------------------------------------------------------------------

    def _along(
        self, op: Any, tensor: AnyRank, arguments: dict[str, Argument], dim: int
    ) -> Argument:
        before, after = self._head(tensor, dim), self._after(tensor, dim)
        # A tensor without dims counts as one of a single element there.
        may_have_none = dim in (0, -1) and op._schema.name not in _OF_DIMS
        if may_have_none:
            end = 1 if dim == 0 else None
            size = self._scalar(self._product(self._part(tensor.sizes, dim, end, None)))
        else:
            size = self._size(tensor, dim)
        counts = [
            [] if sizes.shape == (0,) else [self._scalar(self._product(sizes))]
            for sizes in (before, after)
        ]
        dims, axis = [*counts[0], size, *counts[1]], len(counts[0])
        name = "dims" if "dims" in arguments else "dim"
        along = [axis] if isinstance(arguments[name], list) else axis
        given = {**arguments, "self": self._view(tensor.flat, dims), name: along}
        results = []
        for result in self._emit(op, given):
            if len(result.shape) < len(dims):
                sizes = self._joined([before, after], may_have_none=may_have_none)
            else:
                kept = self._vector([result.shape[axis]])
                if may_have_none:
                    kept = self._part(kept, 0, tensor.rank, None)
                sizes = self._joined([before, kept, after], length=tensor.rank)
            results.append(self.of_sizes(self._flat(result), sizes, tensor.since))
        return results[0] if len(results) == 1 else tuple(results)

    def _of_rows(self, call: _Call) -> Argument:
        """A product with a matrix, of the last dim."""
        tensor, arguments = call.tensor, call.arguments
        name = "weight" if "weight" in arguments else "other"
        matrix = arguments[name]
        if not isinstance(matrix, Value) or len(matrix.shape) != 2:
            return None
        before = self._head(tensor, -1)
        count = self._scalar(self._product(before))
        first = next(iter(arguments))
        rows = self._view(tensor.flat, [count, self._size(tensor, -1)])
        (result,) = self._emit(call.op, {**arguments, first: rows})
        sizes = self._joined([before, [result.shape[1]]])
        return self.of_sizes(self._flat(result), sizes, tensor.since)

    def _normalized(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        dims = arguments["normalized_shape"]
        if not isinstance(dims, list) or not dims:
            return None
        count = self._scalar(self._product(self._head(tensor, -len(dims))))
        rows = self._view(tensor.flat, [count, *map(self._scalar, dims)])
        (result,) = self._emit(call.op, {**arguments, "input": rows})
        return self.of_sizes(self._flat(result), tensor.sizes, tensor.since)

    def _looked_up(self, call: _Call) -> Argument:
        tensor, arguments = call.tensor, call.arguments
        (rows,) = self._emit(call.op, {**arguments, "indices": tensor.flat})
        sizes = self._joined([tensor.sizes, [rows.shape[1]]])
        return self.of_sizes(self._flat(rows), sizes, tensor.since)

    def _emit(self, op: Any, arguments: dict[str, Argument]) -> list[Value]:
        given = [self._plain(op, arguments[p.name]) for p in op._schema.arguments]
        return self._reader.emit(op, given)

    def _plain(self, op: Any, argument: Argument) -> Argument:
        if isinstance(argument, AnyRank):
            raise needs_rank(op._schema.name, argument, self._reader.here)
        if isinstance(argument, list):
            return [self._plain(op, item) for item in argument]
        if isinstance(argument, ScriptList):
            raise CaptureError("an operator takes a list whose length must be known")
        return self._scalar(argument) if isinstance(argument, ComputedNumber) else argument

    # -- vectors of sizes ------------------------------------------------------------------------

    def _head(self, tensor: AnyRank, end: int) -> Value:
        """`sizes[:end]`"""
        length = end if end >= 0 else tensor.rank + end
        return self._part(tensor.sizes, 0, end, length)

    def _tail(self, tensor: AnyRank, start: int) -> Value:
        """`sizes[start:]`"""
        length = -start if start < 0 else tensor.rank - start
        return self._part(tensor.sizes, start, None, length)

    def _after(self, tensor: AnyRank, dim: int) -> Value:
        return self._vector(()) if dim == -1 else self._tail(tensor, dim + 1)

    def _part(self, sizes: Value, start: int, end: Dim | None, length: Dim | None) -> Value:
        """`length`: None where the vector may be shorter than its bounds say."""
        if length == 0:
            return self._vector(())
        if length == sizes.shape[0]:
            return sizes
        return self._typed(_aten.slice.Tensor, [sizes, 0, start, end, 1], torch.int64, [length])

    def _joined(
        self,
        parts: Sequence[Value | Sequence[Argument]],
        *,
        length: Dim | None = None,
        may_have_none: bool = False,
    ) -> Value:
        """`length`: where it is not the sum of theirs; `may_have_none`: nor is it known."""
        vectors = [p if isinstance(p, Value) else self._vector(p) for p in parts]
        vectors = [v for v in vectors if v.shape != (0,)]
        if len(vectors) < 2 and not may_have_none:
            return vectors[0] if vectors else self._vector(())
        if length is None and not may_have_none:
            length = sum(v.shape[0] for v in vectors)
        return self._typed(_aten.cat.default, [vectors, 0], torch.int64, [length])

    def _product(self, sizes: Value) -> Argument:
        if sizes.constant is not None:
            return int(sizes.constant.prod())
        return ComputedNumber(self._typed(_aten.prod.default, [sizes], torch.int64, ()))


def needs_rank(name: str, tensor: AnyRank, location: SourceLocation) -> CaptureError:
    return CaptureError(
        format_message(
            f"{name} needs to know how many dims a tensor has, and that is known at run time",
            [
                ("at", location.describe()),
                ("since", tensor.since),
                ("try", "ask for it: inside of `if x.dim() == 3:` it is known"),
            ],
        )
    )


def holds_any_rank(operand: Argument) -> bool:
    if not isinstance(operand, ScriptList) or not isinstance(operand.state, tuple):
        return False
    return any(isinstance(item, AnyRank) for item in operand.state)


def is_of_open_length(operand: Argument) -> bool:
    """Whether it is a list of numbers whose length is known at run time."""
    if not isinstance(operand, ScriptList) or not isinstance(operand.state, DynamicItems):
        return False
    return operand.state.of_numbers and operand.state.known_length is None


def _is_integer(rank: Any) -> bool:
    return isinstance(rank, (int, sympy.Integer))


def _promoted(dtypes: Sequence[torch.dtype], ranks: Sequence[int]) -> torch.dtype:
    if all(ranks) or not any(ranks):
        return reduce(torch.promote_types, dtypes)
    with_dims, without = (
        reduce(torch.promote_types, [d for d, r in zip(dtypes, ranks, strict=True) if bool(r) is w])
        for w in (True, False)
    )
    return torch.result_type(torch.empty(1, dtype=with_dims), torch.empty((), dtype=without))


def _is_of_all(arguments: dict[str, Argument]) -> bool:
    """Whether a reduction is one of all elements."""
    dims = arguments.get("dim")
    return dims in (None, []) and arguments.get("keepdim", False) is False


def _single_dim(arguments: dict[str, Argument]) -> int | None:
    dim = arguments.get("dims", arguments.get("dim"))
    if isinstance(dim, list) and len(dim) == 1:
        (dim,) = dim
    return dim if isinstance(dim, int) else None


def _as_list(operand: Argument) -> Argument:
    """A list of known length as binding knows it."""
    is_known = isinstance(operand, ScriptList) and isinstance(operand.state, tuple)
    return list(operand.state) if is_known else operand


def _named(*names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names)


_QUESTIONS: dict[str, Callable[..., Argument]] = {
    "aten::dim": lambda _, tensor: tensor.rank,
    "aten::size": AnyRankTensors.size,
    "aten::len": lambda tensors, tensor: tensors.size(tensor, 0),
    "aten::numel": lambda _, tensor: tensor.flat.shape[0],
}
_ELEMENTWISE = _named(
    "alpha_dropout", "clone", "contiguous", "copy", "cpu", "cuda", "detach", "dropout",
    "empty_like", "fill", "full_like", "gelu", "masked_fill",
    "nan_to_num", "ones_like", "rand_like", "randn_like", "relu6", "to", "type_as",
    "zero", "zeros_like", "_to_copy",
)  # fmt: skip
"""Besides those that PyTorch says are pointwise."""
_OF_ONE_TENSOR = _named("to", "type_as")
"""Operators that take nothing but the dtype of another tensor."""
_OF_FIRST_DTYPE = _named("masked_fill", "copy_", "fill")
"""Operators whose result has a dtype that no promotion decides."""
_REDUCTIONS = _named(
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "linalg_vector_norm",
    "logsumexp", "max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "std", "sum",
    "var",
)  # fmt: skip
_ALONG_ONE_DIM = _REDUCTIONS | _named(
    "argsort", "cummax", "cummin", "cumprod", "cumsum", "flip", "glu", "index_select", "kthvalue",
    "log_softmax", "logcumsumexp", "mode", "narrow", "select", "slice", "softmax", "softmin",
    "sort", "topk",
)  # fmt: skip
_OF_DIMS = _named("narrow", "select", "slice")
"""Operators that take no tensor without dims."""
_TENSOR_OF = {"aten::embedding": "indices"}
"""The argument that such a tensor may be, where it is not the first."""
_SPECIAL: dict[str, Callable[[AnyRankTensors, _Call], Argument]] = {
    "aten::unsqueeze": AnyRankTensors._unsqueezed,
    "aten::squeeze": AnyRankTensors._squeezed,
    "aten::reshape": AnyRankTensors._reshaped,
    "aten::view": AnyRankTensors._reshaped,
    "aten::view_as": AnyRankTensors._like_another,
    "aten::reshape_as": AnyRankTensors._like_another,
    "aten::expand_as": AnyRankTensors._like_another,
    "aten::flatten": AnyRankTensors._flattened,
    "aten::ravel": AnyRankTensors._flattened,
    "aten::masked_select": AnyRankTensors._masked,
    "aten::index": AnyRankTensors._indexed,
    "aten::index_put": AnyRankTensors._indexed,
    "aten::linear": AnyRankTensors._of_rows,
    "aten::matmul": AnyRankTensors._of_rows,
    "aten::layer_norm": AnyRankTensors._normalized,
    "aten::embedding": AnyRankTensors._looked_up,
}
"""None where they need the number of dims."""
OF_LISTS = _named("cat", "concat", "concatenate", "index", "stack")
"""Operators on lists of tensors that may be such."""
OF_SIZES = _named("empty", "full", "ones", "rand", "randn", "reshape", "view", "zeros")
"""Operators that take the sizes of what they give."""
_OF_ELEMENTS = OF_TYPES.keys() | READ_NUMBERS | {"prim::nbytes"}
"""Questions whose answer the elements in a row give as well."""
