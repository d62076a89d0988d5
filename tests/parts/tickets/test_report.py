"""Run reports."""

from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.tickets.report import RunFacts, RunReport, RunStatus, Span, StepReport, run_report, without_moments

NOON = "2026-01-01T12:00:00.000Z"
SPAN = Span(started_at=NOON, ended_at=NOON, duration_ms=7)
STATUS = st.sampled_from(["ok", "failed", "blocked"])


def _step(index: int, status: str, code: str | None = None, items: int = 0) -> StepReport:
    return StepReport(
        step_index=index,
        tool_name=f"tool_{index}",
        status=cast("RunStatus", status),
        code=code,
        started_at=NOON,
        ended_at=NOON,
        duration_ms=1,
        result_summary="",
        evidence_items=tuple({"kind": "probe_log", "hash": f"sha256:{index}{n}"} for n in range(items)),
        side_effect="read",
    )


def _report(*steps: StepReport, **facts: Any) -> RunReport:
    return run_report(RunFacts(run_id="job_1", ticket_id="tkt_1", span=SPAN, **facts), steps, max_items=3)


@given(st.lists(STATUS, min_size=1, max_size=6))
def test_the_worst_step_is_the_status_and_the_first_of_its_kind_the_code(statuses: list[str]) -> None:
    report = _report(*(_step(index, status, f"CODE_{index}") for index, status in enumerate(statuses)))
    worst = next(each for each in ("blocked", "failed", "ok") if each in statuses)
    assert report.status == report.terminal_status == worst
    assert report.code == report.primary_failure_code == f"CODE_{statuses.index(worst)}"
    assert report.tool_verdict.status == ("PROCEED" if worst == "ok" else "DEFER")


def test_a_run_without_steps_is_blocked() -> None:
    report = _report()
    assert (report.status, report.code) == ("blocked", "INVALID_TOOL_STEP")
    assert report.tool_verdict.status == "DEFER"


def test_the_moments_of_a_run_come_in_order() -> None:
    report = _report(_step(0, "ok"), _step(1, "failed", "TOOL_TIMEOUT"))
    assert [event.type for event in report.attempt_events] == [
        "RUN_START",
        "STEP_START",
        "STEP_END",
        "STEP_START",
        "STEP_END",
        "RUN_END",
    ]
    assert report.attempt_events[-1].code == "TOOL_TIMEOUT"


def test_the_summary_holds_no_more_evidence_than_allowed_and_says_how_much_is_left_out() -> None:
    report = _report(_step(0, "ok", items=2), _step(1, "ok", items=2))
    dropped = [item.get("metadata", {}).get("dropped_items", 0) for item in report.evidence_summary.items]
    assert dropped == [0, 0, 1]
    assert [len(step.evidence_items) for step in report.step_reports] == [2, 2]


def test_every_field_of_the_contract_is_in_the_json() -> None:
    report = msgspec.to_builtins(_report(_step(0, "ok")))
    assert set(report) == {
        "version", "run_id", "ticket_id", "status", "code", "started_at", "ended_at", "duration_ms", "step_reports",
        "evidence_summary", "tool_verdict", "terminal_status", "primary_failure_code", "max_attempts",
        "retry_policy_id", "mode_snapshot", "attempt_events",
    }  # fmt: skip
    assert set(report["step_reports"][0]) == {
        "step_index", "tool_name", "status", "code", "started_at", "ended_at", "duration_ms", "result_summary",
        "evidence_items", "side_effect",
    }  # fmt: skip
    assert report["version"] == "1.0.0"


def test_two_runs_that_differ_in_times_and_identifiers_alone_are_the_same_without_them() -> None:
    one = _report(_step(0, "ok"))
    other = msgspec.structs.replace(one, run_id="job_2", started_at="2027-01-01T00:00:00.000Z", duration_ms=9)
    assert one != other
    assert without_moments(one) == without_moments(other)
