"""A fixed, fair sample of the sweep: every entry, each with one dtype and one capture.

`make opinfo` runs all of it.
"""

from __future__ import annotations

import zlib

import pytest

from tests.opinfo.entries import CAPTURES, CORE_DTYPES, all_entries
from tests.opinfo.gaps import known_gaps
from tests.opinfo.outcome import PASSED
from tests.opinfo.sweep import Task, run_task

_PARTS = 40


def _task_of(name: str) -> Task | None:
    """Which dtype and capture stand for an entry: as likely one as the other."""
    number = zlib.crc32(name.encode())
    dtypes = all_entries()[name].dtypes
    core = [d for d in dtypes if d in CORE_DTYPES]
    others = [d for d in dtypes if d not in CORE_DTYPES]
    choices = core * 2 + others  # the dtypes of most models more often
    if not choices:
        return None
    return name, choices[number % len(choices)], CAPTURES[number // 64 % len(CAPTURES)]


SAMPLE = [task for name in all_entries() if (task := _task_of(name)) is not None]


@pytest.mark.parametrize("part", range(_PARTS))
def test_what_passes_and_what_does_not_is_as_the_gaps_say(part: int) -> None:
    surprises = []
    for task in SAMPLE[part::_PARTS]:
        outcomes = run_task(task)
        failing = [o for o in outcomes if o.state != PASSED]
        wrong = [o for o in failing if o.state == "mismatch"]
        reason = known_gaps().get(task)
        if wrong:
            surprises.append(f"{task}: a wrong number: {wrong[0].reason}")
        elif failing and reason is None:
            surprises.append(f"{task}: {failing[0].state}: {failing[0].reason}")
        elif not failing and outcomes and reason is not None:
            surprises.append(f"{task}: passes, but gaps.toml says: {reason}")
    assert not surprises, "\n".join(surprises)


def test_gaps_name_what_exists() -> None:
    entries = all_entries()
    unknown = [
        gap
        for gap in known_gaps()
        if gap[0] not in entries or gap[1] not in entries[gap[0]].dtypes or gap[2] not in CAPTURES
    ]
    assert not unknown


def test_no_gap_is_a_wrong_number() -> None:
    assert not [gap for gap, reason in known_gaps().items() if reason.startswith("mismatch")]
