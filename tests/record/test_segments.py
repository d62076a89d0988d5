from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.journal import kinds as k
from remit.record.story import Timeline

CREATED = k.JobCreated(kind="recipe", name="demo")
STARTED = k.ToolInvocationStarted(invocation_id="i", step="1", tool_name="fs.read")
FINISHED = k.ToolInvocationFinished(invocation_id="i", step="1", outcome="success")
WAITS = k.JobWaiting(step="2", wait_type="signal", correlation_key="go")
CAME = k.WaitCompleted(step="2", wait_type="signal", correlation_key="go")
STUCK = k.JobWaiting(step="", wait_type="human", correlation_key="stuck:UNKNOWN_RECIPE")
RECOVERED = k.RecoveryStarted(owner="new")
VALUE = k.TimeRecorded(step="9", value=1)
DONE = k.JobCompleted()
ANY = st.lists(st.sampled_from([STARTED, FINISHED, WAITS, CAME, STUCK, RECOVERED, VALUE]), max_size=30)


def line(*payloads: k.Payload) -> list[tuple[str, int, int | None]]:
    """The timeline of events that happen at 0, 10, 20 …"""
    found = Timeline()
    for number, payload in enumerate(payloads):
        found.add(payload, number * 10)
    return [(one.kind, one.since, one.until) for one in found.segments()]


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ((), []),
        ((CREATED,), [("queued", 0, None)]),
        ((CREATED, STARTED), [("queued", 0, 10), ("working", 10, None)]),
        ((CREATED, STARTED, FINISHED, DONE), [("queued", 0, 10), ("working", 10, 30)]),
        (
            (CREATED, VALUE, WAITS, CAME, DONE),
            [("queued", 0, 10), ("working", 10, 20), ("waiting", 20, 30), ("working", 30, 40)],
        ),
        ((CREATED, STARTED, WAITS, FINISHED), [("queued", 0, 10), ("working", 10, 30), ("waiting", 30, None)]),
        (
            (CREATED, STARTED, RECOVERED, FINISHED),
            [("queued", 0, 10), ("interrupted", 10, 20), ("working", 20, None)],
        ),
        (
            (CREATED, VALUE, STUCK, VALUE),
            [("queued", 0, 10), ("working", 10, 20), ("stuck", 20, 30), ("working", 30, None)],
        ),
    ],
)
def test_the_times_of_a_job(payloads: tuple[k.Payload, ...], expected: list[tuple[str, int, int | None]]) -> None:
    assert line(*payloads) == expected


@settings(deadline=None)
@given(ANY, st.booleans())
def test_the_timeline_has_no_gaps_and_no_overlaps(middle: list[k.Payload], ended: bool) -> None:
    payloads = [CREATED, *middle, *([DONE] if ended else [])]
    found = line(*payloads)
    if len(payloads) == 1:
        assert found == [("queued", 0, None)]
        return
    assert found[0][1] == 0
    assert all(before[2] == after[1] for before, after in pairwise(found))
    assert all(until is None or until > since for _, since, until in found)
    assert found[-1][2] == ((len(payloads) - 1) * 10 if ended else None)
