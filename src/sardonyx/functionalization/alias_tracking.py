"""Alias tracking: each tensor is a chain of views over a base, and a base has a history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import (
    UNKNOWN_LOCATION,
    Argument,
    Dim,
    SourceLocation,
    TensorType,
    Value,
    map_values,
)
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import bind
from sardonyx.errors import CaptureError, format_message
from sardonyx.functionalization.storage_model import (
    Base,
    Chain,
    Condition,
    Place,
    View,
    are_apart,
    place_of,
)
from sardonyx.functionalization.view_indices import can_be_located, has_several_items, positions
from sardonyx.functionalization.views import (
    VIEWS,
    Emit,
    Positions,
    Strided,
    ViewLink,
    apply,
    write_back,
)

AS_STRIDED = "aten::as_strided"


class UncertainMemoryError(CaptureError):
    """A tensor is read that may or may not have been written under another name."""


AliasState: TypeAlias = tuple[
    dict[Value, tuple[View, Value, tuple[int, ...]]],
    dict[Base, tuple[Value, int, SourceLocation | None]],
]


class Changes(NamedTuple):
    """What was done to memory since a state."""

    written: list[Base]
    marked: dict[Base, SourceLocation]
    """What is uncertain now, and was not, since where."""


class Origin(NamedTuple):
    """The value that a result is a view of, and the views in between."""

    source: Value
    links: tuple[ViewLink, ...]


class EmitBranch(Protocol):
    """Writes a branch: its result of a type is what one of two functions writes and gives."""

    def __call__(
        self, condition: Value, sides: Sequence[Callable[[], Value]], type_: TensorType
    ) -> Value: ...


@dataclass(slots=True)
class AliasTracker:
    """Which values share memory, and what each holds after the writes so far."""

    emit: Emit
    branch: EmitBranch
    fake_of: Callable[[Value], torch.Tensor]
    memory_of: Callable[[Value], torch.Tensor]
    """The fake of a root as it was at first: `transpose_` changes how the root lies."""
    new_line: Callable[[str, torch.dtype], Value]
    """A value of one axis, whose length nothing else tells."""
    shared: dict[Value, tuple[Value, Strided]] = field(default_factory=dict)
    """Parameters that lie inside another one."""
    views: dict[Value, View] = field(default_factory=dict)
    related: dict[Base, set[Base]] = field(default_factory=dict)
    """Memory that may be the same: what one branch hands on, what lies in a list."""
    relations: int = 0
    read: dict[Base, SourceLocation] = field(default_factory=dict)
    """Where it was read first."""
    location: SourceLocation = UNKNOWN_LOCATION
    """What is being read or written is so there."""
    numbered: list[Place] = field(default_factory=list)
    """Places, each at its number."""
    repeating: dict[Value, Base] = field(default_factory=dict)
    """Of lists of views: a list of the same items, where it is not told which they are."""

    def relate(self, left: Base, right: Base) -> None:
        if not self.are_related(left, right):
            self.related.setdefault(left, set()).add(right)
            self.related.setdefault(right, set()).add(left)
            self.relations += 1

    def are_related(self, left: Base, right: Base) -> bool:
        return left is right or right in self.related.get(left, ())

    def view_of(self, value: Value) -> View:
        view = self.views.get(value)
        if view is None:
            if value in self.shared:
                whole, link = self.shared[value]
                (base,) = self.view_of(whole).bases
                place = Place(base, (link,))
            else:
                place = Place(Base(value, value), ())
            view = View((place,), value, (0,))
            self.views[value] = view
        return view

    def bases_of(self, value: Value) -> Sequence[Base]:
        """The memory that a value is, or may be, for those that do not know where it lies in it."""
        view = self.view_of(value)
        if not any(has_several_items(place.chain) for place in view.places):
            return view.bases
        items = self.repeating.setdefault(value, Base(value, value, may_repeat=True))
        for base in view.bases:
            self.relate(items, base)
        return [*view.bases, items]

    def number_of(self, place: Place) -> int:
        for number, known in enumerate(self.numbered):
            if known.is_same(place):
                return number
        self.numbered.append(place)
        return len(self.numbered) - 1

    def add_view(self, value: Value, origin: Origin) -> None:
        """`value` is a view of its origin, computed from what the origin holds now."""
        of = self.view_of(origin.source)
        sees_memory = any(link.name == AS_STRIDED for link in origin.links)
        if of.is_chosen:
            if sees_memory:
                raise CaptureError(
                    "as_strided() sees the memory of a tensor, and which one that is depends on a"
                    " branch, a loop or a list: clone() it before"
                )
            places = tuple(place_of(p.base, (*p.chain, *origin.links)) for p in of.places)
            dense = of.is_dense and is_dense(self.fake_of(value))
            versions = of.versions_now()
            self.views[value] = View(places, value, versions, of.selector, of.numbers, dense)
            return
        ((base, chain),) = of.places
        for link in origin.links:
            # Sees the memory, not the tensor it is called on; and so does not compute `value`.
            is_strided = link.name == AS_STRIDED
            chain = (_strided(self.memory_of(base.root), link),) if is_strided else (*chain, link)
        self.views[value] = View(
            (place_of(base, chain),), value, (-1 if sees_memory else base.version,)
        )

    def may_share(self, value: Value, source: Value) -> None:
        """`value` is a view of the source, or a copy."""
        (base,) = self.view_of(value).bases
        for held in self.bases_of(source):
            for other in (held, *self.related.get(held, ())):
                self.relate(base, other)

    def current(self, value: Value) -> Value:
        """What `value` holds now: itself, or its views applied again to the written base."""
        view = self.view_of(value) if value in self.shared else self.views.get(value)
        if view is None:
            return value
        if not view.is_chosen and _can_be_made_again(view.places[0].base):
            return self._seen(view.places[0], self._made_again(view.places[0].base))
        for base in view.bases:
            self.read.setdefault(base, self.location)
            if base.uncertain_since is not None:
                raise self.uncertain(base.uncertain_since)
        if view.versions != view.versions_now():
            view.current, view.versions = self._read(view, value.type), view.versions_now()
        return view.current

    def _made_again(self, items: Base) -> Value:
        """A list, of what its items hold now."""
        node = items.made_by
        assert node is not None
        arguments = {k: map_values(a, self.current) for k, a in node.arguments.items()}
        return self.emit(node.op, result_type=items.root.type, **arguments)

    def _seen(self, place: Place, base: Value | None = None) -> Value:
        content = base or place.base.current
        for link in place.chain:
            content = apply(self.emit, link, content)
        return content

    def _read(self, view: View, type_: TensorType) -> Value:
        *others, (_, last) = view.options
        if all(not place.chain and place.base.current.type == type_ for place in view.places):
            content = last.base.current
            for condition, place in reversed(others):
                content = self._where(condition, place.base.current, content)
            return content
        read = partial(self._seen, last)
        for condition, place in reversed(others):
            sides = [partial(self._seen, place), read]
            read = partial(self._branch_where, condition, sides, type_)
        return read()

    def holds(self, condition: Condition | None) -> Value:
        assert condition is not None
        return self.emit(torch.ops.aten.eq.Scalar, *condition)

    def _branch_where(
        self,
        condition: Condition | None,
        sides: Sequence[Callable[[], Value]],
        type_: TensorType,
    ) -> Value:
        return self.branch(self.holds(condition), sides, type_)

    def _where(self, condition: Condition | None, one: Value, other: Value) -> Value:
        """The same where both are there anyway, of one shape."""
        return self.emit(torch.ops.aten.where.self, self.holds(condition), one, other)

    def mark(self, bases: Iterable[Base]) -> None:
        """They may have been written."""
        for base in bases:
            base.uncertain_since = base.uncertain_since or self.location

    def uncertain(
        self, written: SourceLocation, read: SourceLocation | None = None
    ) -> CaptureError:
        return UncertainMemoryError(
            format_message(
                "a tensor is read that may share its memory with one that is written before,"
                " which depends on a branch, a loop or a list: clone() one of them",
                [("written", written.describe()), ("read", (read or self.location).describe())],
            )
        )

    def inherit(self, base: Base, others: Iterable[Base]) -> None:
        """A list is, or has the items of, others."""
        if not base.may_repeat and any(other.may_repeat for other in others):
            base.may_repeat = True
            self.relations += 1

    def relate_results(
        self,
        results: Sequence[Base],
        indices: Iterable[int],
        given: Sequence[Sequence[Base]],
        chosen: Collection[int],
        inside: set[Value],
        *,
        is_next: bool = False,
    ) -> None:
        """What a block gives for results, by their index, may be the memory of the results; which
        of them the `chosen` are is computed. `inside` is what the block made. `is_next`: of what
        the next iteration starts with, only memory from outside is related."""
        for index in indices:
            is_chosen = index in chosen
            others: list[Base] = []
            for base in given[index]:
                if not is_chosen:
                    others.append(base)
                # What is chosen shares only what memory that was made inside does.
                if not is_chosen or base.root in inside:
                    others += self.related.get(base, ())
            for other in others:
                if not (is_next and other.root in inside):
                    self.relate(results[index], other)
            self.inherit(results[index], given[index])
            for place, (result, bases) in enumerate(zip(results, given, strict=False)):
                are_known = is_chosen and place in chosen
                for one, other in product(given[index], bases):
                    is_told = one is other or not {one.root, other.root} <= inside
                    if not (are_known and is_told) and self.are_related(one, other):
                        self.relate(results[index], result)

    def may_overlap(self, values: Iterable[Value]) -> bool:
        """Whether two of them may have memory in common."""
        for left, right in combinations([self.view_of(value) for value in values], 2):
            for one, other in product(left.places, right.places):
                if self.are_related(one.base, other.base) and not (
                    one.base is other.base and are_apart(one, other)
                ):
                    return True
        return False

    def write(self, value: Value, content: Value) -> None:
        """`content` is written to where `value` lies; every other view sees it."""
        view = self.view_of(value)
        for base in view.bases:
            if base.uncertain_since is not None:
                raise self.uncertain(base.uncertain_since)
        if any(base.may_repeat for base in view.bases):
            raise UncertainMemoryError(
                format_message(
                    "an item of a list is written, which may share its memory with other items of"
                    " the list: clone() what is put into it",
                    [("written", self.location.describe())],
                )
            )
        written = {base: self._with_content(base, value, content) for base in view.bases}
        for base, now in written.items():
            self.mark(self.related.get(base, ()))
            base.current = now
            base.version += 1
        view.current, view.versions = content, view.versions_now()

    def _with_content(self, base: Base, value: Value, content: Value) -> Value:
        """What a piece of memory holds once `value`, which may lie there, was written."""
        view, held, type_ = self.view_of(value), base.current, base.current.type
        own = [(when, place.chain) for when, place in view.options if place.base is base]
        if len(view.places) == 1:
            return self._written(self._writable(value, view), held, content)
        if len(own) == 1 and not own[0][1] and content.type == type_:
            return self._where(own[0][0], content, held)
        made: Callable[[], Value] = partial(self._held, base)
        for condition, chain in own:
            if _repeats(chain):
                raise CaptureError(_WRITTEN_AGAIN)
            sides: list[Callable[[], Value]] = [partial(self._written, chain, held, content), made]
            made = partial(self._branch_where, condition, sides, type_)
        return made()

    def _held(self, base: Base) -> Value:
        return base.current

    def replace(self, value: Value, content: Value) -> None:
        """The memory of `value` is resized to hold `content`."""
        view = self.view_of(value)
        base, chain = view.places[0]
        is_shared = any(base in v.bases and v is not view for v in self.views.values())
        if view.is_chosen or chain or is_shared:
            raise CaptureError(
                "out= has another shape than the result, and is or has a view, or is one of several"
                " tensors: what the others see after it is resized cannot be expressed"
            )
        self.mark(self.related.get(base, ()))
        base.current = view.current = content
        base.version += 1
        view.versions = view.versions_now()

    def state(self) -> AliasState:
        """What all values hold now, to come back to after a block."""
        return {v: (view, view.current, view.versions) for v, view in self.views.items()}, {
            base: (base.current, base.version, base.uncertain_since)
            for view in self.views.values()
            for base in view.bases
        }

    def restore(self, state: AliasState) -> Changes:
        """Back to a state; what was done since."""
        views, bases = state
        now = dict.fromkeys([*bases, *(b for view in self.views.values() for b in view.bases)])
        before = {base: bases.get(base, (base.root, 0, None)) for base in now}
        written = [base for base in now if base.version != before[base][1]]
        marked = {
            base: base.uncertain_since
            for base in now
            if base.uncertain_since is not None and before[base][2] is None
        }
        for base, (content, version, since) in bases.items():
            base.current, base.version, base.uncertain_since = content, version, since
        for view, content, versions in views.values():
            view.current, view.versions = content, versions
        self.views = {value: view for value, (view, *_) in views.items()}
        return Changes(written, marked)

    def _writable(self, value: Value, view: View) -> Chain:
        """The chain, or the place in memory where a link shows elements more than once."""
        ((base, chain),) = view.places
        if not _repeats(chain):
            return chain
        made, memory = self.fake_of(value), self.memory_of(base.root)
        link = None
        if made.dtype == memory.dtype and not view.is_chosen:
            sizes, strides = layout_of(made)
            offset = made.storage_offset() - memory.storage_offset()
            link = strided_inside(
                memory, tuple(sizes), tuple(strides), _torch_private.dim_of(offset)
            )
        if link is None:
            raise CaptureError(_WRITTEN_AGAIN)
        return (link,)

    def _written(self, chain: Chain, source: Value, content: Value) -> Value:
        if not chain:
            return content
        if isinstance(chain[0], Positions) and chain[1:] and can_be_located(chain):
            # Nothing but what is seen is written: what is around it may be the same elements.
            chain = (Positions(positions(self.emit, source.shape, chain)),)
        first, rest = chain[0], chain[1:]
        inner = self._written(rest, apply(self.emit, first, source), content) if rest else content
        return write_back(self.emit, first, source, inner)


def _can_be_made_again(base: Base) -> bool:
    """Whether it is a list that was not written itself, but what it was made of may be."""
    return base.uncertain_since is not None and base.made_by is not None and not base.version


_WRITTEN_AGAIN = "a write through a view that shows an element several times"


def _repeats(chain: Chain) -> bool:
    shows_again = any(isinstance(k, ViewLink) and k.shows_elements_again for k in chain)
    return shows_again or has_several_items(chain)


def layout_of(tensor: torch.Tensor) -> tuple[list[Dim], list[Dim]]:
    """Its sizes and strides."""
    sizes, strides = tensor.shape, tensor.stride()
    return [_torch_private.dim_of(d) for d in sizes], [_torch_private.dim_of(d) for d in strides]


def has_no_gaps(sizes: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """Whether elements lie in their order, one after the other."""
    dense: Dim = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != dense:
            return False
        dense = dense * size
    return True


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements lie in their order, one after the other."""
    return has_no_gaps(*layout_of(tensor))


def lies_as(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors of one shape lie in memory in the same way."""
    return all(
        _equal(size, 1) or _equal(one, other)
        for size, one, other in zip(left.shape, left.stride(), right.stride(), strict=True)
    )


def _strided(base: torch.Tensor, link: ViewLink) -> Strided:
    made = strided_inside(
        base,
        tuple(link.arguments["size"]),
        tuple(link.arguments["stride"]),
        link.arguments["storage_offset"] - _torch_private.dim_of(base.storage_offset()),
    )
    if made is None:
        raise CaptureError("as_strided() of memory with gaps cannot be followed")
    return made


def strided_inside(
    base: torch.Tensor, size: tuple[Any, ...], stride: tuple[Any, ...], offset: Any
) -> Strided | None:
    """The strided view of `base`; None where the memory of `base` has gaps or repetitions."""
    sizes, strides = layout_of(base)
    perm = list(range(len(sizes)))
    if all(isinstance(d, int) for d in (*sizes, *strides)):
        perm.sort(key=lambda axis: (-strides[axis], -sizes[axis]))
    if not has_no_gaps([sizes[axis] for axis in perm], [strides[axis] for axis in perm]):
        return None
    return Strided(tuple(perm), size, stride, offset)


def origins(
    op: Any, arguments: dict[str, Argument], fakes: dict[str, Any], result: Any, mode: Any
) -> list[Origin | None]:
    """For each result of a call: what it is a view of; None for memory of its own."""
    given = list(_pairs(list(arguments.values()), [fakes[name] for name in arguments]))
    found: list[Origin | None] = []
    for index, item in enumerate(tensors_in(result)):
        sharing = [(v, f) for v, f in given if _torch_private.shares_memory(item, f)]
        if not sharing:
            found.append(None)
            continue
        same = next((v for v, f in sharing if _same_place(item, f)), None)
        if op._schema.name in VIEWS or op._schema.name == AS_STRIDED:
            found.append(Origin(arguments["self"], (_link(op, arguments, index, item),)))
        elif same is not None:
            found.append(Origin(same, ()))
        else:
            found.append(_composite_origin(op, fakes, index, sharing, mode))
    return found


def _pairs(argument: Argument, fake: Any) -> Iterator[tuple[Value, torch.Tensor]]:
    if isinstance(argument, Value):
        yield argument, fake
    elif isinstance(argument, list):
        for item, item_fake in zip(argument, fake, strict=True):
            yield from _pairs(item, item_fake)


def _link(op: Any, arguments: dict[str, Argument], index: int, result: torch.Tensor) -> ViewLink:
    if op._schema.name == AS_STRIDED:
        offset = _torch_private.dim_of(result.storage_offset())
        arguments = {**arguments, "storage_offset": offset}
    return ViewLink(op, arguments, index)


def _same_place(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.is_conj() == right.is_conj()
        and left.is_neg() == right.is_neg()
        and left.dim() == right.dim()
        and all(_equal(a, b) for a, b in zip(left.shape, right.shape, strict=True))
        and all(_equal(a, b) for a, b in zip(left.stride(), right.stride(), strict=True))
        and _equal(left.storage_offset(), right.storage_offset())
    )


def _equal(left: Any, right: Any) -> bool:
    return bool(_torch_private.dim_of(left) == _torch_private.dim_of(right))


def _composite_origin(
    op: Any,
    fakes: dict[str, Any],
    index: int,
    sharing: list[tuple[Value, torch.Tensor]],
    mode: Any,
) -> Origin:
    """The primitive views inside a composite one, found by running it."""
    recorded = _torch_private.record_decomposition(op, fakes, mode)
    known = {id(fake): Origin(value, ()) for value, fake in sharing}
    calls, result = recorded if recorded is not None else ([], None)
    for called, args, kwargs, given in calls:
        name = called._schema.name
        if (name not in VIEWS and name != AS_STRIDED) or not args or id(args[0]) not in known:
            continue
        arguments = bind(called, _plain(args), _plain(kwargs))
        of = known[id(args[0])]
        for position, output in enumerate(tensors_in(given)):
            link = _link(called, arguments, position, output)
            known[id(output)] = Origin(of.source, (*of.links, link))
    tensors = tensors_in(result)
    found = known.get(id(tensors[index])) if index < len(tensors) else None
    if found is None:
        raise CaptureError(f"{op._schema.name} gives a view that cannot be followed")
    return found


def _plain(argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_plain(a) for a in argument]
    if isinstance(argument, dict):
        return {k: _plain(v) for k, v in argument.items()}
    return _torch_private.dim_of(argument)
