"""A run of a ticket: what is asked of it, the port that runs it, and its report of each step. Pure.

The contract fixes the reports (contract: tickets, "Execution").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.retry import acted
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.journal.kinds import STUCK
from remit.parts.tickets.report import SUMMARY, RunReport, RunStatus, Span, StepReport
from remit.parts.tickets.steps import ToolStep, steps_of
from remit.parts.tickets.ticket import Ticket, moment
from remit.record.story import EventStory
from remit.redact import line

_MILLI = 1_000
_REASON = 100
"""Characters of the reason that a job is stuck for, in the summary of a step."""


def key_of(index: int) -> str:
    """The place of a ticket's step in its run."""
    return f"s{index}"


class TicketRun:
    """One run of a ticket's steps: a job."""

    def __init__(self, events: Iterable[Event], mode: dict[str, Any] | None = None) -> None:
        self.mode = mode or {}
        self._story = EventStory(events)
        self._steps = {step.step: step for step in self._story.tell()}
        end = self._story.history.end
        done = end.result if isinstance(end, k.JobCompleted) else None
        self._beyond = msgspec.json.decode(done).get("beyond") or {} if isinstance(done, msgspec.Raw) else {}
        """Codes of the steps that the ticket's own limits refused, by place."""

    @property
    def over(self) -> bool:
        """Return whether the job has ended."""
        return self._story.history.end is not None

    @property
    def attempts(self) -> int:
        """The highest number of attempts that a step took."""
        return max((step.attempt for step in self._steps.values()), default=1)

    @property
    def span(self) -> Span:
        """From the first event to the last."""
        began, ended = self._story.created_at, self._story.updated_at
        return Span(started_at=moment(began), ended_at=moment(ended), duration_ms=(ended - began) // _MILLI)

    def did(self, index: int) -> bool:
        """Return whether a step did what was asked."""
        step = self._steps.get(key_of(index))
        return step is not None and step.state == "ok"

    def acted(self, index: int) -> bool:
        """Return whether a step had its effect, or may have; its result says nothing of that."""
        return acted(self._story.history, key_of(index))

    def report(self, index: int, step: ToolStep) -> StepReport:
        """The report of one step; one that has not run yet is blocked."""
        narrative, call = self._steps.get(key_of(index)), self._story.history.calls.get(key_of(index))
        status, code, summary = self._result(key_of(index))
        began = narrative.started_at if narrative is not None else self._story.created_at
        ended = (
            narrative.ended_at or (narrative.attempts[-1].ended_at if narrative.attempts else None)
            if narrative is not None
            else None
        )
        return StepReport(
            step_index=index,
            tool_name=step.tool_name,
            status=status,
            code=code,
            started_at=moment(began),
            ended_at=moment(ended or (began if narrative is not None else self._story.updated_at)),
            duration_ms=max(0, ended - began) // _MILLI if ended else 0,
            result_summary=summary[:SUMMARY],
            evidence_items=narrative.evidence if narrative is not None else (),
            side_effect=call.started.side_effect if call is not None and call.started is not None else "unknown",
        )

    def _result(self, place: str) -> tuple[RunStatus, str | None, str]:
        """Status, code and summary of a step."""
        step = self._steps.get(place)
        if place in self._beyond:
            return "blocked", self._beyond[place], "the ticket's own limits refuse this step"
        if step is not None and step.state == "ok":
            return "ok", None, step.result_preview
        if step is not None and step.code:
            code = Code.recorded(step.code, Code.TOOL_EXEC_FAILED)
            blocked = step.state == "blocked" or code.status == "blocked"
            return "blocked" if blocked else "failed", step.code, line(step.reason)
        return self._open(place)

    def _open(self, place: str) -> tuple[RunStatus, str | None, str]:
        """Status, code and summary of a step that has not ended."""
        history, stuck = self._story.history, self._story.stuck
        call = history.calls.get(place)
        if call is not None and call.started is None and call.confirmation:
            return "blocked", Code.CONFIRMATION_REQUIRED.name, f"waits for an answer: remit confirm {call.confirmation}"
        if history.in_doubt(place) is not None and not self.over:
            job = self._story.stream.partition("/")[2]
            reason = f"the call may have taken effect: find out, then remit decide {job} {place}"
            return "blocked", Code.OUTCOME_UNKNOWN.name, reason
        if call is not None and call.started is not None:
            return "failed", Code.OUTCOME_UNKNOWN.name, "the call began; nothing says how it ended"
        if stuck is not None:
            reason = f"{line(stuck.reason, _REASON)}; put it right, then retry the ticket"
            return "blocked", stuck.correlation_key.removeprefix(STUCK), reason
        reason = "the run ended before this step" if self.over else "the run has not come to this step"
        return "blocked", Code.RUN_TIMEOUT.name, reason


class ToolPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a ticket; each can only tighten what policy allows (rule 8)."""

    max_turns: int | None = None
    """Steps that may run; further ones are refused with BUDGET_EXCEEDED."""
    web_search_strategy: str = ""
    """Kept for the workers of the ticket: there is no web search yet that it could steer."""
    web_search_budget: int | None = None
    """Calls of `web_search` that may run."""
    tool_whitelist: tuple[str, ...] | None = None
    """Keys of the tools that may run; None: policy alone decides."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a ticket's steps."""

    ticket_id: str
    attempt: int = 0
    """The ticket's retry_count; a run of the same ticket and attempt is the same run, wherever it is asked for."""
    tool_steps: tuple[ToolStep, ...]
    tool_policy: ToolPolicy = ToolPolicy()
    principal: str = ""


class ToolExecutor(Protocol):
    """Runs a ticket's steps. Two adapters pass one contract suite: in process, and over `POST /v1/tools/execute`."""

    async def execute(self, run: RunRequest) -> RunReport:
        """Run the steps in order and report on them. A refusal or failure of a step is part of the report.

        Asked again for the same ticket and attempt, continue that run: what was done is not done again (rule 2).
        Raise StateError (IDEMPOTENCY_MISMATCH) if that run has other steps, or (RETRY_REPEATS) if it would do again
        what an earlier one did, and any other RemitError only if the run could not be started or followed.
        """
        ...


def request_of(ticket: Ticket) -> RunRequest:
    """The run that a ticket asks for now. Raise UsageError (INVALID_TOOL_STEP, INVALID_BUDGET) if none can be read."""
    tool_input = ticket.metadata.tool_input
    return RunRequest(
        ticket_id=ticket.id,
        attempt=ticket.metadata.retry_count,
        tool_steps=steps_of(tool_input, ticket.tool_steps),
        tool_policy=_policy_of(tool_input),
    )


def _policy_of(tool_input: Any) -> ToolPolicy:
    tool_policy = tool_input.get("tool_policy") if isinstance(tool_input, dict) else None
    try:
        return msgspec.convert(tool_policy or {}, ToolPolicy)
    except msgspec.ValidationError as error:
        raise UsageError(f"tool_policy: {error}", code=Code.INVALID_TOOL_STEP) from error
