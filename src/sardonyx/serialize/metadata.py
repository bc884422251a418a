"""What a file says of itself: who made it, and which line of the model each node comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, MutableMapping

import onnx_ir as ir

from sardonyx.lower.provenance import SOURCE_KEY
from sardonyx.version import PRODUCER, producer_version


def stamp_metadata(model: ir.Model) -> None:
    """Sets the producer, and takes absolute paths out of source locations."""
    model.producer_name = PRODUCER
    model.producer_version = producer_version()
    folders = source_folders()
    for props in _node_and_value_properties(model):
        if SOURCE_KEY in props:
            props[SOURCE_KEY] = short_source(props[SOURCE_KEY], folders)


def source_folders() -> list[str]:
    """The working directory and where Python looks for modules; inner folders before outer ones."""
    folders = {os.path.abspath(folder) for folder in [os.curdir, *filter(None, sys.path)]}
    folders.discard(os.path.abspath(os.sep))
    return sorted(folders, key=lambda folder: (-len(folder), folder))


def short_source(location: str, folders: Iterable[str]) -> str:
    """`/home/me/project/my_model.py:57` as `my_model.py:57`."""
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
