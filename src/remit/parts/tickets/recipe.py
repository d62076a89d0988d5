"""The recipe ticket_run: the steps of a TOOL ticket, one after the other, each through the gateway."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from remit.codes import Code
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.parts.tickets.run import key_of

_WEB_SEARCH: Final = "web_search"


@recipe("ticket_run", version="1")
async def ticket_run(
    run: Run,
    ticket: str,
    steps: list[dict[str, Any]],
    kept: list[int],
    policy: dict[str, Any],
    mode: dict[str, Any] | None = None,  # noqa: ARG001 - recorded for the report of the run
) -> dict[str, Any]:
    """Run the steps of `ticket`; those in `kept` were done by an earlier run and are left out.

    `mode` says under which settings the run began.

    Return {ticket, beyond: {place: code}}: the steps that the ticket's own limits refused, which never reached the
    gateway. All else about a step is in the run's events.
    """
    beyond: dict[str, str] = {}
    calls: Counter[str] = Counter()
    for index, step in enumerate(steps):
        code = _over_limit(index, step["tool_name"], calls, policy)
        if code is not None:
            beyond[key_of(index)] = code.name
            continue
        calls[step["tool_name"]] += 1
        if index not in kept:
            budget = step.get("budget") or {}
            wall_ms, attempts = budget.get("max_wall_ms"), budget.get("max_steps")
            timeout = wall_ms / 1000 if wall_ms else None
            args = step.get("args") or {}
            await run.attempt(step["tool_name"], args, key=key_of(index), timeout=timeout, attempts=attempts)
    return {"ticket": ticket, "beyond": beyond}


def _over_limit(index: int, tool: str, calls: Counter[str], policy: dict[str, Any]) -> Code | None:
    """The code a step is refused with by the ticket's own counts (contract: tickets, `tool_policy`)."""
    turns, searches = policy.get("max_turns"), policy.get("web_search_budget")
    if turns is not None and index >= turns:
        return Code.BUDGET_EXCEEDED
    if searches is not None and tool == _WEB_SEARCH and calls[tool] >= searches:
        return Code.BUDGET_EXCEEDED
    return None
