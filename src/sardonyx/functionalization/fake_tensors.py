"""The fake tensors of functionalization: they say which results are views, and their strides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, Node, Value
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import bind
from sardonyx.aten.shape_rules.broadcast import with_common_sizes
from sardonyx.aten.shape_rules.rules import SHAPE_RULES
from sardonyx.aten.type_inference import TypeInference
from sardonyx.functionalization.alias_analysis import may_alias
from sardonyx.functionalization.layout import same_view
from sardonyx.functionalization.views import AS_STRIDED, VIEWS, AliasError, ViewLink


class Origin(NamedTuple):
    """The value that a result is a view of, and the views in between."""

    source: Value
    links: tuple[ViewLink, ...]


class FakeTensors:
    """The fake tensor of each value, made when it is first needed."""

    def __init__(self, inference: TypeInference, knows_layouts: bool) -> None:
        self._inference = inference
        self._knows_layouts = knows_layouts
        """Whether the fakes of the graph have the strides of the model's tensors."""
        self._fakes: dict[Value, torch.Tensor] = {}
        self._first: dict[Value, torch.Tensor] = {}
        """The first fakes of values whose shape was changed in place."""
        self._pending: dict[Value, Node | Value] = {}
        """Where a fake that was not needed yet comes from: a node, or a value with the same one."""
        self.uncertain_layouts: set[Value] = set()
        """Values whose strides may differ from those of their fake: what branches, loops and lists
        give, and what is computed from it."""

    def of(self, value: Value) -> torch.Tensor:
        wanted = [value]
        while wanted:
            last = wanted[-1]
            pending = None if last in self._fakes else self._pending.get(last)
            reads = [pending] if isinstance(pending, Value) else pending.inputs() if pending else ()
            missing = [v for v in reads if v not in self._fakes]
            wanted += missing
            if missing:
                continue
            if isinstance(pending, Value):
                self._fakes[last] = self._fakes[pending]
            elif pending is not None:
                self.run(pending)
            elif last not in self._fakes:
                self._fakes[last] = self._inference.fake_of(last)
            wanted.pop()
        return self._fakes[value]

    def of_memory(self, root: Value) -> torch.Tensor:
        """The fake of a value before its shape was changed in place."""
        return self._first[root] if root in self._first else self.of(root)

    def defer(self, outputs: Iterable[Value], source: Node | Value) -> None:
        """The fakes of the outputs are made by the source, once they are needed."""
        self._pending |= dict.fromkeys(outputs, source)

    def change_metadata(self, value: Value, fake: torch.Tensor) -> None:
        """The shape of a value was changed in place, its memory was not."""
        self._first.setdefault(value, self.of(value))
        self._fakes[value] = fake

    def resize(self, value: Value, fake: torch.Tensor) -> None:
        """Both were changed."""
        self._fakes[value] = fake

    def run(self, node: Node) -> dict[Value, Origin | None]:
        """Makes the fakes of the results, and says what each is a view of."""
        found: list[Origin | None] = [None] * len(node.outputs)
        if torch.Tag.dynamic_output_shape in node.op.tags or (
            self._knows_layouts and not may_alias(node)
        ):
            tensors = [self._inference.fake_of(o) for o in node.outputs]
        else:
            # The strides of a result decide whether a reshape of it is a view or a copy.
            mode = self._inference.mode
            fakes = {k: self._inference.argument(a, self.of) for k, a in node.arguments.items()}
            given = with_common_sizes(node.op, fakes, mode)
            result = _torch_private.run_on_fakes(node.op, given, mode, SHAPE_RULES.get(node.op))
            tensors = tensors_in(result)
            found = _origins(node.op, node.arguments, fakes, result, mode)
        self._fakes |= dict(zip(node.outputs, tensors, strict=True))
        return dict(zip(node.outputs, found, strict=True))


def _origins(
    op: Any, arguments: dict[str, Argument], fakes: dict[str, Any], result: Any, mode: Any
) -> list[Origin | None]:
    """For each result of a call: what it is a view of; None for new memory."""
    given = list(_pairs(list(arguments.values()), [fakes[name] for name in arguments]))
    found: list[Origin | None] = []
    for index, item in enumerate(tensors_in(result)):
        sharing = [(v, f) for v, f in given if _torch_private.shares_memory(item, f)]
        if not sharing:
            found.append(None)
            continue
        same = next((v for v, f in sharing if same_view(item, f)), None)
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


def _composite_origin(
    op: Any,
    fakes: dict[str, Any],
    index: int,
    sharing: list[tuple[Value, torch.Tensor]],
    mode: Any,
) -> Origin:
    """The primitive views that a composite operator is made of."""
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
        raise AliasError(f"{op._schema.name} returns a view that cannot be followed")
    return found


def _plain(argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_plain(a) for a in argument]
    if isinstance(argument, dict):
        return {k: _plain(v) for k, v in argument.items()}
    return _torch_private.dim_of(argument)
