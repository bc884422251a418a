"""Every operator that changed its form has a rule or a declared refusal at that boundary."""

from __future__ import annotations

import onnx
import pytest

from sardonyx.legalize import SUPPORTED_OPSETS, newest_opset
from sardonyx.legalize.pipeline import BOUNDARIES
from sardonyx.lower.onnx_types.legality import ops_changed_by, schema_of

# GroupNormalization-18 scales per group; its rule at 21 -> 20 never leaves one behind. The others
# are deprecated above, so that none comes from there.
GONE_BEFORE = {("GroupNormalization", 17), ("Scatter", 10), ("Upsample", 9)}


def form(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    """All of a schema but its types and its documentation."""
    return (
        [(formal.name, formal.option) for formal in schema.inputs],
        [(formal.name, formal.option) for formal in schema.outputs],
        sorted((a.name, a.type, a.required) for a in schema.attributes.values()),
        sorted((a.name, str(a.default_value)) for a in schema.attributes.values()),
        schema.deprecated,
    )


@pytest.mark.parametrize("lower", range(SUPPORTED_OPSETS[0], newest_opset()))
def test_form_changes_are_handled(lower: int) -> None:
    boundary = BOUNDARIES.get(lower)
    handled = {*boundary.rules, *boundary.refused} if boundary is not None else set()
    missing = []
    for op_type in sorted(ops_changed_by(lower + 1)):
        before, after = schema_of(op_type, lower + 1), schema_of(op_type, lower)
        assert before is not None
        is_changed = after is None or form(before) != form(after)
        if is_changed and op_type not in handled and (op_type, lower) not in GONE_BEFORE:
            missing.append(op_type)
    assert missing == []


@pytest.mark.parametrize("boundary", BOUNDARIES.values(), ids=lambda b: f"to_opset_{b.opset}")
def test_rules_are_for_operators_that_changed(boundary: object) -> None:
    for op_type in {*boundary.rules, *boundary.refused}:
        assert op_type in ops_changed_by(boundary.opset + 1)
    assert not set(boundary.rules) & set(boundary.refused)


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
