from __future__ import annotations

import pytest

from remit.record.states import standing
from remit.record.views import JobRow

SECOND = 1_000_000
NOW = 1_000 * SECOND


def row(state: str, **more: object) -> JobRow:
    given: dict[str, object] = {
        "job": "job_1",
        "name": "r",
        "state": state,
        "title": "r",
        "created_at": 0,
        "updated_at": 0,
        "due_at": None,
        "waiting_for": "",
        "code": "",
        "worker": "",
        "labels": {},
    }
    return JobRow(**{**given, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "word", "tone", "why"),
    [
        (row("completed"), "completed", "quiet", ""),
        (row("failed", code="TOOL_EXEC_FAILED"), "failed", "bad", "It ended with TOOL_EXEC_FAILED."),
        (row("pending", due_at=NOW + 90 * SECOND), "scheduled", "busy", "It starts in 1 min 30 s."),
        (row("pending", due_at=NOW - 5 * SECOND), "queued", "busy", "It waits for a worker."),
        (row("pending", due_at=NOW - 40 * SECOND), "no worker", "bad", "No worker has taken it for 40 s."),
        (
            row("pending", due_at=NOW - 40 * SECOND, route="x"),
            "no worker",
            "bad",
            "No worker that knows x has taken it for 40 s.",
        ),
        (row("running"), "stopped", "bad", "No worker holds it."),
        (
            row("waiting", code="UNKNOWN_RECIPE"),
            "stuck",
            "bad",
            "The installed code cannot continue it: UNKNOWN_RECIPE.",
        ),
        (
            row("waiting", waiting_for="confirmation c_1"),
            "waiting for a person",
            "asks",
            "It asks before it continues.",
        ),
        (
            row("waiting", waiting_for="a decision on step 3"),
            "uncertain",
            "asks",
            "It is unknown whether a call took effect.",
        ),
        (
            row("waiting", waiting_for="the next attempt", due_at=NOW + 2 * SECOND),
            "retrying",
            "bad",
            "A call failed and will be retried in 2.0 s.",
        ),
        (row("waiting", waiting_for="a timer", due_at=NOW - 1), "waiting", "busy", "A timer ends soon."),
        (row("waiting", waiting_for="signal go"), "waiting", "busy", "It waits for signal go."),
    ],
)
def test_a_job_says_where_it_stands_and_why(found: JobRow, word: str, tone: str, why: str) -> None:
    said = standing(found, NOW)
    assert (said.word, said.tone, said.reason) == (word, tone, why)


def test_what_needs_somebody_says_what_to_do() -> None:
    found = [
        standing(row(state, due_at=0, **more), NOW)
        for state, more in (
            ("pending", {}),
            ("running", {}),
            ("waiting", {"code": "UNKNOWN_RECIPE"}),
            ("waiting", {"waiting_for": "confirmation c_1"}),
            ("waiting", {"waiting_for": "a decision on step 3"}),
        )
    ]
    assert all(one.tone in {"asks", "bad"} and one.todo for one in found)
