"""CheckBudget: is there anything left of what the tool, the job and the call may use?

Calls are counted from the stream's events, so a resumed job continues with what it had left. Another
attempt at a call is not another call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.journal.lineage import inherited
from remit.tools.budget import tighter

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.tools.budget import Budget


class CheckBudget:
    """Refuses a call that would be one too many, and bounds its time."""

    def __init__(self, services: Services) -> None:
        """Nothing of them is needed: budgets come with the tool and with the request."""

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Refuse with BUDGET_EXCEEDED, or set `wall_ms` and count the call."""
        one, other = call.tool.budget, call.request.budget
        budget = None if one is None and other is None else tighter(one, other)
        return proceed(call) if budget is None else self._within(budget, call, proceed)

    async def _within(self, budget: Budget, call: Call, proceed: Proceed) -> Outcome:
        """Let a call proceed that the budget has room for.

        It is counted from here on, so that of calls at the same moment none is overlooked; one that is not announced
        after all no more.
        """
        call.wall_ms = budget.max_wall_ms
        if call.request.attempt > 1 or call.counted:
            return await proceed(call)
        name, writer = call.tool.meta.name, call.writer
        if writer.announced_before is None:
            writer.announced_before = await _recorded(call.journal, writer)
        before, calls = writer.announced_before, writer.announced
        spent = _spent(budget, name, before, calls)
        if spent:
            remedy = "Start a new job, or raise its budget. A tool's budget is set in its declaration."
            return refused(Code.BUDGET_EXCEEDED, spent, remedy)
        calls[name] = calls.get(name, 0) + 1
        call.counted = True
        try:
            return await proceed(call)
        finally:
            if not call.invocation_id:
                calls[name] -= 1
                call.counted = False


def _spent(budget: Budget, name: str, before: dict[str, int], calls: dict[str, int]) -> str:
    """Return which limit is reached; empty if none is."""
    if budget.max_calls is not None:
        made = before.get(name, 0) + calls.get(name, 0)
        if made >= budget.max_calls:
            return f"{name} was called {made} times; its budget allows {budget.max_calls}"
    if budget.max_steps is not None:
        made = sum(before.values()) + sum(calls.values())
        if made >= budget.max_steps:
            return f"{made} calls were made; the budget allows {budget.max_steps}"
    return ""


async def _recorded(journal: Journal, writer: StreamWriter) -> dict[str, int]:
    """Return how often each tool was called before this writer continued the stream."""
    counts: Counter[str] = Counter()
    seq = 0
    if writer.began:
        _count(counts, await inherited(journal, writer.stream))
    while seq < writer.began and (page := await journal.page(writer.stream, seq)):
        _count(counts, [event for event in page if event.seq <= writer.began])
        seq = page[-1].seq
    return counts


def _count(counts: Counter[str], events: list[Event]) -> None:
    for event in events:
        if event.kind == ToolInvocationStarted.KIND:
            payload = decode(event.kind, event.data)
            if isinstance(payload, ToolInvocationStarted) and payload.attempt == 1:
                counts[payload.tool_name] += 1
