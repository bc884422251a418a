"""What a file says of itself: who made it, and which line of the model each node comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping

import onnx_ir as ir

from sardonyx.version import PRODUCER, producer_version

PREFIX = "sardonyx."
MODULE_KEY = "sardonyx.module"
SCOPE_KEY = "sardonyx.scope"
SOURCE_KEY = "sardonyx.source"
CODE_KEY = "sardonyx.code"


def stamp_metadata(
    model: ir.Model,
    *,
    keep_provenance: bool = True,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Sets the producer and the model's `properties`, and makes provenance fit for a file.

    Source locations lose their absolute paths; without `keep_provenance` all provenance goes.
    """
    model.producer_name = PRODUCER
    model.producer_version = producer_version()
    model.metadata_props.update(properties or {})
    folders = _source_folders()
    for props in _node_and_value_properties(model):
        if not keep_provenance:
            for key in [key for key in props if key.startswith(PREFIX)]:
                del props[key]
        elif SOURCE_KEY in props:
            props[SOURCE_KEY] = _short_source(props[SOURCE_KEY], folders)


def short_source(location: str) -> str:
    """`/home/me/project/my_model.py:57` as `my_model.py:57`."""
    return _short_source(location, _source_folders())


def _source_folders() -> list[str]:
    """The working directory and where Python looks for modules; inner folders before outer ones."""
    folders = {os.path.abspath(folder) for folder in [os.curdir, *filter(None, sys.path)]}
    folders.discard(os.path.abspath(os.sep))
    return sorted(folders, key=lambda folder: (-len(folder), folder))


def _short_source(location: str, folders: Iterable[str]) -> str:
    path, colon, line = location.rpartition(":")
    if not colon or not line.isdigit():
        path, colon, line = location, "", ""
    if not os.path.isabs(path):
        return location
    for folder in folders:
        if path.startswith(folder + os.sep):
            return os.path.relpath(path, folder).replace(os.sep, "/") + colon + line
    return os.path.basename(path) + colon + line


def _node_and_value_properties(model: ir.Model) -> Iterator[MutableMapping[str, str]]:
    scopes: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for scope in scopes:
        yield scope.metadata_props
        for value in scope.inputs:
            yield value.metadata_props
        for node in ir.traversal.RecursiveGraphIterator(scope):
            yield node.metadata_props
            for output in node.outputs:
                yield output.metadata_props
