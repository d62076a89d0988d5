"""Tool verdicts."""

import pytest

from remit.parts.tickets.report import MAX_REASON, ToolVerdict


@pytest.mark.parametrize("status", ["PROCEED", "DEFER", "BLOCK"])
def test_a_bare_status_is_a_verdict_without_a_reason(status: str) -> None:
    assert ToolVerdict.read(status) == ToolVerdict.read({"status": status})


@pytest.mark.parametrize(
    "value",
    [None, "", "proceed", 3, [], {}, {"status": "GO"}, {"status": "BLOCK", "reason": 7}, {"reason": "x"}],
)
def test_what_is_no_verdict_is_read_as_none(value: object) -> None:
    assert ToolVerdict.read(value) is None


def test_a_reason_has_at_most_512_characters() -> None:
    assert ToolVerdict.read({"status": "DEFER", "reason": "x" * MAX_REASON}) is not None
    assert ToolVerdict.read({"status": "DEFER", "reason": "x" * (MAX_REASON + 1)}) is None


def test_only_a_run_that_is_ok_proceeds() -> None:
    assert ToolVerdict.of_run("ok").status == "PROCEED"
    assert ToolVerdict.of_run("failed", "x" * 1_000) == ToolVerdict("DEFER", "x" * MAX_REASON)
    assert ToolVerdict.of_run("blocked").status == "DEFER"
