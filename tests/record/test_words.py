from __future__ import annotations

import msgspec
import pytest

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.tickets import kinds as tickets
from remit.record.teller import _WORDS, words

ERROR = k.ErrorInfo(code="TOOL_EXEC_FAILED", message="no luck")


def said(payload: k.Payload) -> str:
    return words(Event("job/j", 1, payload.KIND, 0, k.encode(payload), b""))


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (k.JobCreated(kind="recipe", name="demo", input=msgspec.Raw(b"{}"), principal="bob"), "demo {} by bob"),
        (k.ToolInvocationStarted(invocation_id="i", step="1", tool_name="fs.read", attempt=2), "1 fs.read attempt 2"),
        (
            k.ToolInvocationFinished(invocation_id="i", step="1", outcome="failure", error=ERROR),
            "1 failure TOOL_EXEC_FAILED: no luck",
        ),
        (k.GateRefused(step="1", tool_name="x.y", code="POLICY_DENIED", reason="no"), "1 x.y POLICY_DENIED: no"),
        (k.JobWaiting(step="1", wait_type="signal", correlation_key="go"), "1 signal go"),
        (
            k.WaitCompleted(step="1", wait_type="signal", correlation_key="go", by="eve", payload=msgspec.Raw(b"5")),
            "1 signal go by eve 5",
        ),
        (
            k.VersionMismatchRecorded(subject="execution", recorded="1", current="2", policy="warn"),
            "execution was 1, is 2",
        ),
        (
            k.VersionMismatchRecorded(subject="tool", tool_name="x.y", recorded="1", current="2", policy="warn"),
            "x.y, version was 1, is 2",
        ),
        (
            k.SchemaDriftRecorded(tool_name="x.y", recorded="1", current="", direction="response"),
            "x.y, schema of the result was 1, is gone",
        ),
        (k.ChildEnded(step="1", error=ERROR), "1 TOOL_EXEC_FAILED: no luck"),
        (
            k.CallOpened(call="call_1", session="ses_1", step="s_1", principal="bob", tool_name="x.y", request_hash=""),
            "s_1 x.y by bob ses_1",
        ),
        (k.UndoDeclared(step="1", tool_name="x.undo"), "1 x.undo"),
        (k.CompensationStarted(steps=("2", "1"), error=ERROR), "steps 2, 1 TOOL_EXEC_FAILED: no luck"),
        (k.CompensationCompleted(undone=("2", "1")), "undone: 2, 1"),
        (k.StepCompensated(step="1", undo_step="2", tool_name="x.undo"), "1 x.undo compensated"),
        (
            k.SchemaGateWarned(step="1", tool_name="x.y", boundary="call_args", warn_codes=("missing",)),
            "1 x.y call_args missing",
        ),
        (k.CommandStarted(invocation_id="i", step="1", llm_provider="p", llm_model="m"), "1 p:m"),
        (
            k.CommandCommitted(step="1", llm_provider="p", llm_model="m", outcome="failure", error=ERROR),
            "1 p:m TOOL_EXEC_FAILED: no luck",
        ),
        (
            k.ModelDriftRecorded(step="1", prompt_hash="h", subject="model", recorded="p/a", current="p/b"),
            "model of step 1 was p/a, is p/b",
        ),
        (tickets.TicketCreated(ticket="t", type="TOOL", principal="ann"), "TOOL by ann"),
        (tickets.TicketLeased(owner="w", token_hash="", expires_at=0), "by w until 1970-01-01T00:00:00.000Z"),
        (tickets.TicketReleased(owner="w", reason="full"), "by w full"),
        (tickets.TicketCompleted(by="w", outputs=msgspec.Raw(b"{}")), "by w {}"),
        (tickets.TicketFailed(code="X", reason="no luck", by="w"), "X: no luck by w"),
        (tickets.TicketBlocked(code="X", reason="held", source="ann"), "X: held by ann"),
        (tickets.TicketRetried(by="ann", retry_count=2), "retry 2 by ann"),
        (tickets.TicketDerived(reason="created", ticket="tkt_2"), "created tkt_2"),
        (k.JobForked(job="job_1", seq=7, hash="ab", by="eve"), "from job_1 after event 7 by eve"),
        (k.StepArgsGiven(step="3", args=msgspec.Raw(b'{"n":1}'), by="eve"), '3 {"n":1} by eve'),
        (k.JobFailed(error=ERROR), "TOOL_EXEC_FAILED: no luck"),
        (k.JobCancelled(by="bob", reason="enough"), "by bob enough"),
        (k.JobCompleted(result=msgspec.Raw(b'"done"')), '"done"'),
    ],
)
def test_an_event_in_words(payload: k.Payload, expected: str) -> None:
    assert said(payload) == expected


def test_words_are_one_safe_line_without_secrets() -> None:
    args = msgspec.Raw(msgspec.json.encode({"password": "hunter2", "text": "a\nb\x1b[31m"}))
    text = said(k.ToolInvocationStarted(invocation_id="i", step="1", tool_name="x.y", args=args))
    assert text.isprintable()
    assert "hunter2" not in text


def test_a_kind_that_a_newer_remit_wrote_has_no_words() -> None:
    assert words(Event("job/j", 1, "invented_later", 0, b"{}", b"")) == ""


OF_OTHER_STREAMS = {
    k.SubjectErased, k.JournalCopied, k.JournalMoved, k.JournalActivated, k.JournalVouched,
    k.ConfirmationDecided,
    k.ConfirmationPutOff, k.ConfirmationUsed, k.SignalSent, k.CancelRequested, k.StepDecided, k.ApprovalRemembered,
    k.ApprovalRevoked, k.RequestTaken, k.RequestAnswered, k.ViewRemoved, k.ViewSaved, k.WorkerStarted  }  # fmt: skip


def test_every_kind_of_a_jobs_or_tickets_own_events_has_words() -> None:
    assert set(k.KINDS.values()) - set(_WORDS) == OF_OTHER_STREAMS
