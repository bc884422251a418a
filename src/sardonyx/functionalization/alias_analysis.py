"""Static alias analysis: what a node may write, and what its results may share memory with. It
finds the values whose memory has to be followed, and what the blocks of a node write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sardonyx import _torch_private
from sardonyx.aten.control_flow import LOOP, all_nodes
from sardonyx.aten.graph import Argument, Node, Value, values_in
from sardonyx.aten.schema import METADATA_WRITES, parameters_of
from sardonyx.aten.sequences import SHOWS_ITEMS, TAKES_ITEMS
from sardonyx.functionalization.functional_variants import (
    WITHOUT_EFFECT,
    functional_variant,
    has_hidden_writes,
)
from sardonyx.functionalization.views import AS_STRIDED

# -- one node ------------------------------------------------------------------------------------


def written_values(node: Node) -> list[Value]:
    """The arguments that a node may write: all of them for a composite operator."""
    schema = node.op._schema
    if schema.name in WITHOUT_EFFECT or not (schema.is_mutable or has_hidden_writes(node)):
        return []
    form = functional_variant(node)
    names = node.arguments if form is None else form.written
    return [value for name in names for value in values_in(node.arguments[name])]


def shared_results(node: Node) -> Iterator[tuple[Value, list[Value]]]:
    """Results and block inputs, each with the values that it may share memory with."""
    for block in node.blocks:
        returned = block.outputs
        if node.op is LOOP:
            carried = node.arguments["carried"]
            returned = block.outputs[1:]
            for value, first, after in zip(block.inputs[1:], carried, returned, strict=False):
                yield value, list(values_in([first, after]))
            for output, first in zip(node.outputs, carried, strict=False):
                yield output, list(values_in(first))
        for output, result in zip(node.outputs, returned, strict=True):
            yield output, list(values_in(result))
    form = functional_variant(node) if node.op._schema.is_mutable else None
    if form is not None:
        for index, name in form.returned.items():
            yield node.outputs[index], list(values_in(node.arguments[name]))
    elif node.op._schema.is_mutable or is_its_input(node) or may_alias(node):
        for output in node.outputs:
            yield output, list(node.inputs())


def may_alias(node: Node) -> bool:
    """Whether a result can share memory with an argument: by its schema, or as a composite."""
    schema = node.op._schema
    if schema.name in COMPOSITES_WITH_NEW_MEMORY or not any(True for _ in node.inputs()):
        return False
    return (
        node.op in TAKES_ITEMS
        or node.op in SHOWS_ITEMS
        or any(r.alias_info is not None for r in schema.returns)
        or _torch_private.is_composite(node.op)
    )


def is_its_input(node: Node) -> bool:
    """Dropout that drops nothing returns its input; on fake tensors PyTorch makes a copy."""
    if node.op._schema.name not in _DROPOUTS:
        return False
    return node.arguments["train"] is False or node.arguments["p"] == 0


def depends_on_layout(node: Node) -> bool:
    """Whether it returns a view or a copy, depending on the strides of its input."""
    name = node.op._schema.name
    return name in VIEWS_OR_COPIES or node.arguments.get("memory_format") is not None


# -- whole graphs --------------------------------------------------------------------------------


class Classes:
    """Disjoint sets of values."""

    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        root = value
        while (above := self.parent.setdefault(root, root)) is not root:
            root = above
        while value is not root:
            self.parent[value], value = root, self.parent[value]
        return root

    def unite_results(self, node: Node) -> None:
        for result, others in shared_results(node):
            for other in others:
                self.parent[self.of(other)] = self.of(result)

    def with_any(self, values: Iterable[Value]) -> set[Value]:
        """All values that share memory with one of these."""
        roots = set(map(self.of, values))
        return {value for value in self.parent if self.of(value) in roots}


def followed_values(nodes: list[Node], shared: Iterable[Value]) -> set[Value] | None:
    """The values whose strides and views matter: those that are written and have views. None for
    all, where a shape changes in place or blocks read what is around them.

    Where memory is only known as a value and as what in-place operators return for it, a write is a
    new value, whatever the strides are."""
    classes = Classes()
    written: list[Value] = []
    viewed: list[Value] = list(shared)
    for node in nodes:
        name = node.op._schema.name
        is_out = any(p.is_out for p in parameters_of(node.op))
        if node.blocks or name in METADATA_WRITES or is_out:
            return None
        classes.unite_results(node)
        written += written_values(node)
        if _makes_views(node):
            viewed += [*node.inputs(), *node.outputs]
        if name == AS_STRIDED:  # reads the memory behind the views
            written += node.inputs()
    return classes.with_any(written) & classes.with_any(viewed)


def _makes_views(node: Node) -> bool:
    schema = node.op._schema
    if schema.name in WITHOUT_EFFECT or is_its_input(node):
        return False
    if schema.is_mutable or has_hidden_writes(node):
        return functional_variant(node) is None  # composite: any part may be a view
    return may_alias(node)


def written_from_outside(control: Node) -> list[Value]:
    """Values from outside the blocks whose memory the blocks may write."""
    sources: dict[Value, list[Value]] = {}
    pending: list[Value] = []
    inside = made_inside(control) - set(control.outputs)
    for node in all_nodes([control]):
        for result, others in shared_results(node):
            sources.setdefault(result, []).extend(others)
        if node is not control:
            pending += written_values(node)
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


def made_inside(control: Node) -> set[Value]:
    """All results and inputs of blocks, of a node and the nodes inside it."""
    return {
        value
        for node in all_nodes([control])
        for value in (*node.outputs, *(v for block in node.blocks for v in block.inputs))
    }


def unchanged_positions(loop: Node) -> list[int]:
    """The carried values that are one tensor in every iteration, only written in place."""
    (block,) = loop.blocks
    producers = {value: node for node in all_nodes(block.nodes) for value in node.outputs}
    carried = zip(block.inputs[1:], block.outputs[1:], strict=False)
    return [
        position
        for position, (given, returned) in enumerate(carried)
        if _same_tensor(returned, producers) is given
    ]


def _same_tensor(value: Argument, producers: Mapping[Value, Node]) -> Argument:
    """The first value of a tensor that in-place operators return."""
    while isinstance(value, Value) and value in producers:
        before = _before(producers[value], value, producers)
        if not isinstance(before, Value):
            break
        value = before
    return value


def _before(node: Node, value: Value, producers: Mapping[Value, Node]) -> Argument:
    """The value that a result is another name of, or None."""
    index = node.outputs.index(value)
    if node.op is LOOP:
        carried = node.arguments["carried"]
        (block,) = node.blocks
        is_same = index < len(carried) and (
            _same_tensor(block.outputs[1 + index], producers) is block.inputs[1 + index]
        )
        return carried[index] if is_same else None
    if node.blocks:
        first, *others = (_same_tensor(block.outputs[index], producers) for block in node.blocks)
        return first if all(other is first for other in others) else None
    schema = node.op._schema
    if schema.name in WITHOUT_EFFECT:
        return node.arguments["self"]
    if schema.name in METADATA_WRITES or not schema.is_mutable:
        return None
    form = functional_variant(node)
    name = None if form is None else form.returned.get(index)
    return None if name is None else node.arguments[name]


VIEWS_OR_COPIES = frozenset(
    f"aten::{name}" for name in ("reshape", "reshape_as", "flatten", "ravel", "contiguous")
)
_DROPOUTS = frozenset(
    f"aten::{name}"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
)
COMPOSITES_WITH_NEW_MEMORY = frozenset(
    f"aten::{name}"
    for name in (
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
        "avg_pool1d", "batch_norm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
        "conv_transpose2d", "conv_transpose3d", "group_norm", "instance_norm", "layer_norm",
        "linear", "log_softmax", "matmul", "max_pool1d", "max_pool2d", "max_pool3d", "relu6",
        "scaled_dot_product_attention", "softmax",
    )
)  # fmt: skip
