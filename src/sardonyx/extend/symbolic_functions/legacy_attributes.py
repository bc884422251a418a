"""Attributes of other opsets: those that are inputs later, as in `g.op("Clip", x, min_f=0)`, and
words that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx.defs

from sardonyx.lower.onnx_types.schemas import OpSchema

_OTHER_NAMES = {("Pad", "value"): "constant_value", ("TopK", "k"): "K"}
_MODES_OF_GRID_SAMPLE = {"bilinear": "linear", "bicubic": "cubic"}


def words_at(operator: str, opset: int, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes with the words that this opset has for what they say."""
    if operator != "GridSample" or "mode_s" not in attributes:
        return dict(attributes)
    words = _MODES_OF_GRID_SAMPLE
    if opset < 20:
        words = {later: former for former, later in words.items()}
    return {**attributes, "mode_s": words.get(attributes["mode_s"], attributes["mode_s"])}


def attributes_as_inputs(
    schema: OpSchema, given: Sequence[Any], attributes: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The inputs and attributes of a node, those that were attributes once among the inputs."""
    inputs, kept = list(given), dict(attributes)
    for specifier, value in attributes.items():
        name = specifier.rpartition("_")[0]
        place = _place(schema, name)
        if place is None or (place < len(inputs) and inputs[place] is not None):
            continue
        inputs += [None] * (place + 1 - len(inputs))
        inputs[place] = [value] if name == "k" else value
        del kept[specifier]
    return inputs, kept


def _place(schema: OpSchema, attribute: str) -> int | None:
    """The position of the input that the attribute has become."""
    if attribute in schema.attributes or attribute not in _former_attributes(schema.name):
        return None
    name = _OTHER_NAMES.get((schema.name, attribute), attribute)
    return next((p for p, formal in enumerate(schema.inputs) if formal.name == name), None)


@cache
def _former_attributes(operator: str) -> frozenset[str]:
    return frozenset(
        attribute
        for known in onnx.defs.get_all_schemas_with_history()
        if known.name == operator and known.domain == ""
        for attribute in known.attributes
    )
