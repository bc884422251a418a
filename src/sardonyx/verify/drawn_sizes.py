"""Which other sizes a model is verified at: those that the caller allows and its recording holds
for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import sympy

from sardonyx import _torch_private
from sardonyx.aten.signature import InputSpec
from sardonyx.capture.symbolic_shapes.guard_boundaries import sizes_across
from sardonyx.notes import Note
from sardonyx.verify.inputs import UnknownSizeError, resized, sizes_label, within_limits

_MOST_CONDITIONS = 24
_MOST_CHANGES = 4
_SMALL = 32
_FEW_ELEMENTS = 2**22


def broken_guards(notes: Iterable[Note], sizes: Mapping[str, int]) -> list[Note]:
    """Those of the notes whose condition does not hold at these sizes, one for each condition."""
    broken: dict[sympy.Basic, Note] = {}
    for note in notes:
        if note.condition is not None and _is_broken(note.condition, sizes):
            broken.setdefault(note.condition, note)
    return list(broken.values())


def _is_broken(condition: sympy.Basic, sizes: Mapping[str, int]) -> bool:
    """False where it depends on more than these sizes."""
    return _torch_private.condition_on_sizes(condition)(sizes) is False


def is_narrowing(note: Note) -> bool:
    """Whether sizes of 2 or more break the condition of a note, as far as tried: at small sizes and
    at those near the numbers in it, together with others that are small, large and the same."""
    if note.condition is None:
        return False
    numbers = [abs(int(n)) for n in note.condition.atoms(sympy.Integer)]
    near = {size for k in numbers for size in (k - 1, k + 1, 2 * k, 3 * k)}
    names = sorted(symbol.name for symbol in note.condition.free_symbols)
    return any(
        _is_broken(note.condition, {**dict.fromkeys(names, others), name: size})
        for size in sorted(near | {*range(2, _SMALL + 2)})
        if size > 1
        for name in names
        for others in (2, _SMALL + 1, size)
    )


@dataclass
class DrawnSizes:
    """Sizes like those of an example. What only sizes of 0 and 1 break may hold there, too: such
    a size is drawn; others that break the condition of a note are `left_out`."""

    specs: Sequence[InputSpec]
    example: Mapping[str, int]
    notes: Sequence[Note]
    left_out: dict[Note, list[str]] = field(default_factory=dict)
    too_large: list[str] = field(default_factory=list)
    """Sizes beyond a condition whose inputs have many more elements than the example's."""

    def __post_init__(self) -> None:
        self.narrowing = [note for note in self.notes if is_narrowing(note)]

    def others(self) -> Iterator[dict[str, int]]:
        """Sizes that differ from the example's, the least demanding first.

        Dims of one size get different ones, so that a mix-up of two dims shows; a model that wants
        multiples of some number is offered multiples of the example's sizes.
        """
        for other in _differing(self.example):
            yield from self._inside(other)

    def smaller(self) -> Iterator[dict[str, int]]:
        yield from self._inside({name: max(1, size - 1) for name, size in self.example.items()})

    def beyond(self, conditions: Sequence[sympy.Basic]) -> Iterator[dict[str, int]]:
        """Sizes at which a condition is answered otherwise than at the example; none that are much
        larger."""
        seen = [dict(self.example)]
        for condition in conditions[:_MOST_CONDITIONS]:
            most = max(_SMALL, 2 * max(self.example.values(), default=0))
            for other in sizes_across(condition, self.example, most):
                if other not in seen and within_limits(self.specs, other) == other:
                    seen.append(other)
                    if self._is_too_large(other):
                        self.too_large.append(sizes_label(other))
                    elif not self.leave_out(broken_guards(self.narrowing, other), other):
                        yield other

    def _is_too_large(self, sizes: Mapping[str, int]) -> bool:
        try:
            count, before = (
                sum(prod(resized(spec, each)) for spec in self.specs)
                for each in (sizes, self.example)
            )
        except UnknownSizeError:
            return False  # which drawing the inputs says
        return count > max(_FEW_ELEMENTS, 2 * before)

    def leave_out(self, broken: Sequence[Note], sizes: Mapping[str, int]) -> bool:
        """Whether there is a reason to."""
        for note in broken:
            assert note.condition is not None
            names = {symbol.name for symbol in note.condition.free_symbols}
            label = sizes_label({name: size for name, size in sizes.items() if name in names})
            labels = self.left_out.setdefault(note, [])
            labels += [label] * (label not in labels)
        return bool(broken)

    def _inside(self, target: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """These sizes, or some nearby for which the recording holds; not the example's."""
        sizes = within_limits(self.specs, target)
        self.leave_out(broken_guards(self.narrowing, sizes), sizes)
        for _ in range(_MOST_CHANGES):
            if broken := broken_guards(self.narrowing, sizes):
                sizes = self._with_another(sizes, broken[0])
        if sizes != self.example and not broken_guards(self.narrowing, sizes):
            yield sizes

    def _with_another(self, sizes: dict[str, int], guard: Note) -> dict[str, int]:
        """One of the guard's dims changed so that the fewest guards are broken: to a size nearby,
        and not to the example's."""

        def cost(other: dict[str, int]) -> tuple[int, int, int]:
            broken = broken_guards(self.narrowing, other)
            same = [name for name, size in other.items() if size == self.example[name]]
            return len(broken), len(same), sum(abs(other[name] - sizes[name]) for name in sizes)

        assert guard.condition is not None
        changed = (
            {**sizes, symbol.name: size}
            for symbol in guard.condition.free_symbols
            for start in (sizes[symbol.name], self.example[symbol.name])
            for size in range(max(1, start - _SMALL), start + _SMALL)
        )
        return min((c for c in changed if within_limits(self.specs, c) == c), key=cost)


def _differing(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    yield {name: size + 1 + index for index, (name, size) in enumerate(sizes.items())}
    yield {name: size + 1 for name, size in sizes.items()}
    yield {name: max(size, 1) * 2 for name, size in sizes.items()}
    if any(size > 1 for size in sizes.values()):
        yield {name: size - 1 if size > 1 else size + 1 for name, size in sizes.items()}
