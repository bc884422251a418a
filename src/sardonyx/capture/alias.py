"""Alias tracking: each tensor is a chain of views over a base, and a base has a history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.capture.graph import Value
from sardonyx.capture.views import VIEWS, Emit, ViewLink, write_back


@dataclass(slots=True, eq=False)
class Base:
    """A piece of memory: its content now, and how often it was written."""

    root: Value
    current: Value
    version: int = 0


@dataclass(slots=True, eq=False)
class View:
    base: Base
    chain: tuple[ViewLink, ...]
    current: Value
    version: int = 0


@dataclass(slots=True)
class AliasTracker:
    """Which values share memory, and what each holds after the writes so far."""

    emit: Emit
    views: dict[int, View] = field(default_factory=dict)
    bases: list[Base] = field(default_factory=list)

    def view_of(self, value: Value) -> View:
        view = self.views.get(id(value))
        if view is None:
            base = Base(value, value)
            self.bases.append(base)
            view = self.views[id(value)] = View(base, (), value)
        return view

    def add_view(self, value: Value, source: Value, links: tuple[ViewLink, ...]) -> None:
        """`value` is the view `links` of `source`."""
        of = self.view_of(source)
        self.views[id(value)] = View(of.base, (*of.chain, *links), value, of.base.version)

    def current(self, value: Value) -> Value:
        """What `value` holds now: itself, or its views applied again to the written base."""
        view = self.views.get(id(value))
        if view is None:
            return value
        if view.version != view.base.version:
            content = view.base.current
            for link in view.chain:
                content = self._apply(link, content)
            view.current, view.version = content, view.base.version
        return view.current

    def write(self, value: Value, content: Value) -> None:
        """`content` is written to where `value` lies; every other view sees it."""
        view = self.view_of(value)
        base = view.base
        base.current = self._written(view.chain, base.current, content)
        base.version += 1
        view.current, view.version = content, base.version

    def _written(self, chain: tuple[ViewLink, ...], source: Value, content: Value) -> Value:
        if not chain:
            return content
        first, rest = chain[0], chain[1:]
        inner = self._written(rest, self._apply(first, source), content) if rest else content
        return write_back(self.emit, first, source, inner)

    def _apply(self, link: ViewLink, source: Value) -> Value:
        if link.op._schema.name in ("aten::unbind", "aten::split", "aten::split_with_sizes"):
            return self.emit(link.op, source, result_index=link.index, **link.others())
        return self.emit(link.op, source, **link.others())


def links_between(
    op: Any, arguments: dict[str, Any], fakes: dict[str, Any], result: Any, mode: Any
) -> list[tuple[ViewLink, ...] | None]:
    """For each result of a call: the primitive views that lead to it from `self` (or the first
    tensor argument); None for a result that is memory of its own."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    source = source_tensor(fakes)
    chains: list[tuple[ViewLink, ...] | None] = []
    for index, item in enumerate(r for r in results if isinstance(r, torch.Tensor)):
        if source is None or not _torch_private.shares_memory(item, source):
            chains.append(None)
        elif op._schema.name in VIEWS:
            chains.append((ViewLink(op, arguments, index),))
        elif _same_place(item, source):
            chains.append(())
        else:
            chains.append(_composite_links(op, fakes, index, source, mode))
    return chains


def source_tensor(arguments: dict[str, Any]) -> Any:
    if "self" in arguments:
        return arguments["self"] if isinstance(arguments["self"], torch.Tensor) else None
    return next((a for a in arguments.values() if isinstance(a, torch.Tensor)), None)


def _same_place(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.dim() == right.dim()
        and all(_equal(a, b) for a, b in zip(left.shape, right.shape, strict=True))
        and all(_equal(a, b) for a, b in zip(left.stride(), right.stride(), strict=True))
        and _equal(left.storage_offset(), right.storage_offset())
    )


def _equal(left: Any, right: Any) -> bool:
    return bool(_torch_private.dim_of(left) == _torch_private.dim_of(right))


def _composite_links(
    op: Any, fakes: dict[str, Any], index: int, source: Any, mode: Any
) -> tuple[ViewLink, ...] | None:
    """The primitive views inside a composite one, found by running it."""
    names = [a.name for a in op._schema.arguments]
    keyword = {a.name for a in op._schema.arguments if a.kwarg_only}
    recorded = _torch_private.record_decomposition(
        op,
        tuple(fakes[n] for n in names if n not in keyword),
        {n: fakes[n] for n in names if n in keyword},
        mode,
    )
    if recorded is None:
        return None
    calls, result = recorded
    chains: dict[int, tuple[ViewLink, ...]] = {id(source): ()}
    for called, args, kwargs, given in calls:
        if called._schema.name not in VIEWS or not args or id(args[0]) not in chains:
            continue
        from sardonyx.capture.bind import bind

        arguments = bind(called, _plain(args), _plain(kwargs))
        outputs = list(given) if isinstance(given, (list, tuple)) else [given]
        for position, output in enumerate(outputs):
            link = ViewLink(called, arguments, position)
            chains[id(output)] = (*chains[id(args[0])], link)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    return chains.get(id(results[index]))


def _plain(argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_plain(a) for a in argument]
    if isinstance(argument, dict):
        return {k: _plain(v) for k, v in argument.items()}
    return _torch_private.dim_of(argument)
