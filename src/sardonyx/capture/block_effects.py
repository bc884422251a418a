"""What the blocks of a branch or a loop do to memory, told from their nodes alone."""

from __future__ import annotations

from collections.abc import Iterator

from sardonyx.capture.alias_classes import is_its_input, may_alias
from sardonyx.capture.bind import parameters_of
from sardonyx.capture.control_flow import LOOP, all_nodes
from sardonyx.capture.graph import Block, Node, Value, values_in
from sardonyx.capture.pure_forms import METADATA_WRITES, WITHOUT_EFFECT, pure_form, writes_in_secret
from sardonyx.capture.sequences import SHOWS_ITEMS, TAKES_ITEMS


def written_from_outside(control: Node) -> list[Value]:
    """Values from outside the blocks whose memory the blocks may write."""
    sources: dict[Value, list[Value]] = {}
    inside: set[Value] = set()
    pending: list[Value] = []
    nodes = [node for block in control.blocks for node in all_nodes(block.nodes)]
    for node in (control, *nodes):
        _add_sources(node, sources)
        inside.update(v for block in node.blocks for v in block.inputs)
        if node is not control:
            inside.update(node.outputs)
            pending += _written(node)
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value not in inside:
            found[value] = None
        pending += sources.get(value, ())
    return list(found)


def maybe_written(nodes: list[Node]) -> frozenset[Value]:
    """Values that may share memory with one that is written, of a whole graph."""
    sources: dict[Value, list[Value]] = {}
    pending: list[Value] = []
    for node in all_nodes(nodes):
        _add_sources(node, sources)
        pending += _written(node)
    sharing: dict[Value, list[Value]] = {}
    for value, others in sources.items():
        for other in others:
            sharing.setdefault(value, []).append(other)
            sharing.setdefault(other, []).append(value)
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += sharing.get(value, ())
    return frozenset(found)


def made_inside(control: Node) -> set[Value]:
    """All results and inputs of blocks, of a node and the nodes inside it."""
    return {
        value
        for node in all_nodes([control])
        for value in (*node.outputs, *(v for block in node.blocks for v in block.inputs))
    }


def _written(node: Node) -> Iterator[Value]:
    if node.op._schema.name in WITHOUT_EFFECT:
        return
    if writes_in_secret(node) or (node.op._schema.is_mutable and pure_form(node) is None):
        yield from node.inputs()
        return
    for parameter in parameters_of(node.op):
        if parameter.is_written:
            yield from values_in(node.arguments[parameter.name])


def _add_sources(node: Node, sources: dict[Value, list[Value]]) -> None:
    """Notes what each result may share memory with."""
    for block in node.blocks:
        returned = block.outputs
        if node.op is LOOP:
            carried = list(node.arguments["carried"])
            returned = block.outputs[1:]
            for value, first, after in zip(block.inputs[1:], carried, returned, strict=False):
                sources.setdefault(value, []).extend([*values_in(first), *values_in(after)])
            for output, first in zip(node.outputs, carried, strict=False):
                sources.setdefault(output, []).extend(values_in(first))
        for output, result in zip(node.outputs, returned, strict=True):
            sources.setdefault(output, []).extend(values_in(result))
    if node.blocks:
        return
    schema = node.op._schema
    form = pure_form(node) if schema.is_mutable and not writes_in_secret(node) else None
    if form is not None and schema.name not in WITHOUT_EFFECT | METADATA_WRITES.keys():
        for index, name in form.returned.items():
            sources.setdefault(node.outputs[index], []).extend(values_in(node.arguments[name]))
    elif (
        schema.is_mutable
        or schema.name in WITHOUT_EFFECT
        or schema.name in METADATA_WRITES
        or is_its_input(node)
        or node.op in TAKES_ITEMS
        or node.op in SHOWS_ITEMS
        or may_alias(node)
    ):
        for output in node.outputs:
            sources.setdefault(output, []).extend(node.inputs())


def unchanged_positions(loop: Node) -> list[int]:
    """Of what a loop carries, what is the same tensor in every iteration: only written in place."""
    (block,) = loop.blocks
    same = _SameTensor([block, *(b for n in all_nodes(block.nodes) for b in n.blocks)])
    carried = len(block.inputs) - 1
    return [
        position
        for position, (given, returned) in enumerate(
            zip(block.inputs[1:], block.outputs[1 : 1 + carried], strict=True)
        )
        if isinstance(returned, Value) and same.as_value(returned) is given
    ]


class _SameTensor:
    """Follows a value to the tensor that it is, through operators that write and return it."""

    def __init__(self, blocks: list[Block]) -> None:
        self._producers: dict[Value, Node] = {}
        for block in blocks:
            for node in block.nodes:
                for output in node.outputs:
                    self._producers[output] = node

    def as_value(self, value: Value) -> Value:
        node = self._producers.get(value)
        while node is not None:
            found = self._before(node, value)
            if found is None:
                break
            value = found
            node = self._producers.get(value)
        return value

    def _before(self, node: Node, value: Value) -> Value | None:
        index = node.outputs.index(value)
        if node.blocks:
            return self._through(node, index)
        schema = node.op._schema
        if schema.name in WITHOUT_EFFECT:
            target = node.arguments["self"]
            return target if isinstance(target, Value) else None
        if schema.name in METADATA_WRITES or not schema.is_mutable:
            return None
        form = pure_form(node)
        name = None if form is None else form.returned.get(index)
        target = None if name is None else node.arguments[name]
        return target if isinstance(target, Value) else None

    def _through(self, node: Node, index: int) -> Value | None:
        if node.op is LOOP:
            (block,) = node.blocks
            carried = node.arguments["carried"]
            if index >= len(carried):
                return None
            returned = block.outputs[1 + index]
            if isinstance(returned, Value) and self.as_value(returned) is block.inputs[1 + index]:
                first = carried[index]
                return first if isinstance(first, Value) else None
            return None
        ends = [
            self.as_value(b.outputs[index]) if isinstance(b.outputs[index], Value) else None
            for b in node.blocks
        ]
        return ends[0] if all(end is ends[0] for end in ends) else None
