"""The port that runs a ticket's steps, and what it is asked (contract: tickets, "Execution").

Two adapters pass one contract suite: in process (path Z) and over `POST /v1/tools/execute` (path Y).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.tickets.report import RunReport
from remit.parts.tickets.steps import ToolStep, steps_of
from remit.parts.tickets.ticket import Ticket


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
    """Runs steps through the gateway."""

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
