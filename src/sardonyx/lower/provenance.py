"""Which line, module and call of the model a node comes from, as its metadata says it."""

from __future__ import annotations

from sardonyx.aten.graph import SourceLocation

MODULE_KEY = "sardonyx.module"
SCOPE_KEY = "sardonyx.scope"
SOURCE_KEY = "sardonyx.source"
CODE_KEY = "sardonyx.code"
CALLS_KEY = "sardonyx.calls"
"""The calls of modules that were running, a line each; never in the file."""

WRITTEN_AT = "sardonyx.written_at"
"""A key of `ir.Node.meta`: the opset whose form a node has, where that is not the newest."""


def provenance(location: SourceLocation, *, with_calls: bool) -> dict[str, str]:
    """The metadata of nodes that compute what the model does at `location`."""
    entries = (
        (MODULE_KEY, location.module_path),
        (SCOPE_KEY, location.class_path),
        (SOURCE_KEY, location.file_line),
        (CODE_KEY, location.text),
        (CALLS_KEY, "\n".join(location.calls) if with_calls else ""),
    )
    return {key: text for key, text in entries if text}
