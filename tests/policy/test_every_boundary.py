"""What legality cannot see of a change of an operator has a rule at that boundary."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.legalize import SUPPORTED_OPSETS, newest_opset
from sardonyx.legalize.pipeline import BOUNDARIES
from sardonyx.lower.onnx_types.legality import ops_changed_by, schema_of

# GroupNormalization-18 scales per group; its rule at 21 -> 20 never leaves one behind. The others
# are deprecated above, so that none comes from there.
GONE_BEFORE = {("GroupNormalization", 17), ("Scatter", 10), ("Upsample", 9)}


def meaning(schema: onnx.defs.OpSchema, other: onnx.defs.OpSchema) -> tuple[object, ...]:
    """What a node says without words: which input is which, and the defaults of attributes that
    both have. Inputs, outputs and attributes that one lacks are for legality."""
    count = min(len(schema.inputs), len(other.inputs))
    shared = sorted(set(schema.attributes) & set(other.attributes))
    return (
        [formal.name.lower() for formal in schema.inputs[:count]],
        [(name, str(schema.attributes[name].default_value)) for name in shared],
    )


@pytest.mark.parametrize("lower", range(SUPPORTED_OPSETS[0], newest_opset()))
def test_changes_that_legality_cannot_see_have_rules(lower: int) -> None:
    boundary = BOUNDARIES.get(lower)
    rules = boundary.rules if boundary is not None else {}
    missing = []
    for op_type in sorted(ops_changed_by(lower + 1)):
        before, after = schema_of(op_type, lower + 1), schema_of(op_type, lower)
        assert before is not None
        is_changed = after is not None and meaning(before, after) != meaning(after, before)
        if is_changed and op_type not in rules and (op_type, lower) not in GONE_BEFORE:
            missing.append(op_type)
    assert missing == []


@pytest.mark.parametrize("boundary", BOUNDARIES.values(), ids=lambda b: f"to_opset_{b.opset}")
def test_rules_are_for_operators_that_changed(boundary: object) -> None:
    for op_type in {*boundary.rules, *boundary.functions}:
        assert op_type in ops_changed_by(boundary.opset + 1)


# Reductions and modes are attribute values, which no schema lists: these need rules all the same.
VALUES_THAT_CAME = [
    ("GridSample", 19),
    ("Pad", 18),
    ("Resize", 18),
    ("ScatterElements", 17),
    ("ScatterND", 17),
    ("Mod", 27),
    ("RoiAlign", 15),
    ("Slice", 10),
]


@pytest.mark.parametrize(("op_type", "lower"), VALUES_THAT_CAME)
def test_new_attribute_values_have_rules(op_type: str, lower: int) -> None:
    assert op_type in BOUNDARIES[lower].rules


def test_the_boundaries_without_a_file_only_widen_types() -> None:
    missing = set(range(SUPPORTED_OPSETS[0], newest_opset())) - set(BOUNDARIES)
    assert missing == {21}
