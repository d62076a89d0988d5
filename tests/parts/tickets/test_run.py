"""Steps of runs that broke off."""

from __future__ import annotations

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.tickets.run import TicketRun
from remit.parts.tickets.steps import ToolStep


def events(*payloads: k.Payload) -> list[Event]:
    return [Event("job/j", seq, one.KIND, seq, k.encode(one), b"") for seq, one in enumerate(payloads, 1)]


def test_a_step_that_a_run_did_not_get_to_is_blocked_with_run_timeout() -> None:
    history = TicketRun(events(k.JobCancelled(by="ann", reason="enough")))
    report = history.report(1, ToolStep(tool_name="a"))
    assert history.over
    assert (report.status, report.code, report.side_effect) == ("blocked", "RUN_TIMEOUT", "unknown")
