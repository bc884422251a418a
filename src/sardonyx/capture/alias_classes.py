"""Whose memory must be followed: that of values which are written and which others may share.

Where the only names of a piece of memory are a value and what in-place operators return of it, a
write is a new name and nothing else, however the value lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx import _torch_private
from sardonyx.capture.alias import AS_STRIDED
from sardonyx.capture.bind import parameters_of
from sardonyx.capture.graph import READS_A_NUMBER, Node, Value, values_in
from sardonyx.capture.pure_forms import METADATA_WRITES, WITHOUT_EFFECT, pure_form, writes_in_secret
from sardonyx.capture.sequences import SHOWS_ITEMS, TAKES_ITEMS


def followed_values(nodes: list[Node], shared: Iterable[Value]) -> set[Value] | None:
    """The values whose layout and views matter; None for all, where a shape changes in place or
    blocks read what is around them."""
    classes = Classes()
    written: list[Value] = []
    viewed: list[Value] = list(shared)
    for node in nodes:
        schema = node.op._schema
        if node.op is READS_A_NUMBER:
            continue
        values = [*node.inputs(), *node.outputs]
        if (
            node.blocks
            or schema.name in METADATA_WRITES
            or any(p.is_out for p in parameters_of(node.op))
        ):
            return None
        if schema.name in WITHOUT_EFFECT or is_its_input(node):
            classes.unite(values)
        elif schema.is_mutable or writes_in_secret(node):
            form = pure_form(node)
            if form is None:  # made of others, of which any may be a view
                classes.unite(values)
                viewed += values
                written += values
                continue
            for name in form.written:
                written += values_in(node.arguments[name])
            for index, name in form.returned.items():
                classes.unite([node.arguments[name], node.outputs[index]])
        elif may_alias(node) or node.op in TAKES_ITEMS or node.op in SHOWS_ITEMS:
            classes.unite(values)
            viewed += values
            if schema.name == AS_STRIDED:  # sees the memory that the others are views of
                written += values
    both = {classes.of(v) for v in written} & {classes.of(v) for v in viewed}
    return {value for value in classes.parent if classes.of(value) in both}


def may_alias(node: Node) -> bool:
    """Whether a result can share memory with an argument: by its schema, or as a composite."""
    schema = node.op._schema
    if schema.name in _COMPOSITES_WITH_MEMORY_OF_THEIR_OWN or not any(True for _ in node.inputs()):
        return False
    return any(r.alias_info is not None for r in schema.returns) or _torch_private.is_composite(
        node.op
    )


def is_its_input(node: Node) -> bool:
    """Dropout that drops nothing gives its input; on fake tensors PyTorch makes a copy of it."""
    if node.op._schema.name not in _DROPOUTS:
        return False
    return node.arguments["train"] is False or node.arguments["p"] == 0


def depends_on_layout(node: Node) -> bool:
    """Whether it gives a view or a copy, by how its input lies in memory."""
    name = node.op._schema.name
    return name in _VIEWS_OR_COPIES or node.arguments.get("memory_format") is not None


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

    def unite(self, values: list[Value]) -> None:
        for value in values[1:]:
            self.parent[self.of(value)] = self.of(values[0])


_VIEWS_OR_COPIES = frozenset(
    f"aten::{name}" for name in ("reshape", "reshape_as", "flatten", "ravel", "contiguous")
)
_DROPOUTS = frozenset(
    f"aten::{name}"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
)
_COMPOSITES_WITH_MEMORY_OF_THEIR_OWN = frozenset(
    f"aten::{name}"
    for name in (
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "adaptive_max_pool1d",
        "avg_pool1d",
        "batch_norm",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "group_norm",
        "instance_norm",
        "layer_norm",
        "linear",
        "log_softmax",
        "matmul",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "relu6",
        "scaled_dot_product_attention",
        "softmax",
    )
)
