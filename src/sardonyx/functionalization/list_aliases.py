"""Lists hold the tensors that were put into them, not copies of them."""

from __future__ import annotations

from sardonyx.aten.graph import Node
from sardonyx.aten.sequences import SEQUENCE_AT, SHOWS_ITEMS, TAKES_ITEMS
from sardonyx.functionalization.alias_tracking import AliasTracker
from sardonyx.functionalization.storage_model import View
from sardonyx.functionalization.views import Item


def note_list_operator(node: Node, aliases: AliasTracker) -> None:
    """What the results of an operator on lists share memory with."""
    if node.op is SEQUENCE_AT:
        (output,) = node.outputs
        base = aliases.base_of(node.arguments["sequence"])
        item = Item(node.arguments["position"], output.type)
        aliases.views[output] = View(base, (item,), output, base.version)
    elif node.op in TAKES_ITEMS or node.op in SHOWS_ITEMS:
        repeats = node.op in TAKES_ITEMS and aliases.may_overlap(node.inputs())
        for output in node.outputs:
            base = aliases.base_of(output)
            base.may_repeat, base.made_by = repeats, node
            for value in node.inputs():
                aliases.inherit(base, aliases.base_of(value))
                aliases.may_share(output, value)
