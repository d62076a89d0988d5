"""CheckBudget: is there anything left of what the tool, the job and the call may use?

Calls are counted from the stream's events, so a resumed job continues with what it had left. Another
attempt at a call is not another call.

Reserve: an answer is asked for only if the budget covers the most that it may take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.codes import Code
from remit.gateway.call import Call, Proceed, outrun
from remit.gateway.model_request import BudgetClaim, ModelAttempt, most_of
from remit.gateway.outcome import Outcome, refused
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.journal.lineage import inherited
from remit.tools.budget import tighter

if TYPE_CHECKING:
    from remit.gateway.model_budgets import Account
    from remit.gateway.services import Services
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.tools.budget import ToolBudget


class CheckBudget:
    """Refuses a call that would be one too many, and bounds its time.

    Budgets come with the tool and with the request.
    """

    def __init__(self, services: Services) -> None:
        pass

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Refuse with BUDGET_EXCEEDED, or set `wall_ms` and count the call."""
        call.stage = "check_budget"
        own, other = call.tool.budget, call.request.budget
        budget = None if own is None and other is None else tighter(own, other)
        return proceed(call) if budget is None else self._within(budget, call, proceed)

    async def _within(self, budget: ToolBudget, call: Call, proceed: Proceed) -> Outcome:
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


def _spent(budget: ToolBudget, name: str, before: dict[str, int], calls: dict[str, int]) -> str:
    """Return which limit is reached; empty if none is."""
    if budget.max_calls is not None:
        count = before.get(name, 0) + calls.get(name, 0)
        if count >= budget.max_calls:
            times = "once" if count == 1 else f"{count} times"
            return f"{name} was called {times}; its budget allows {budget.max_calls}"
    if budget.max_steps is not None:
        count = sum(before.values()) + sum(calls.values())
        if count >= budget.max_steps:
            return f"{count} {'call was' if count == 1 else 'calls were'} made; the budget allows {budget.max_steps}"
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


class Reserve:
    """Counts the call against the job's budget and the principal's allowance for the day."""

    def __init__(self, services: Services) -> None:
        self._prices = services.prices
        self._allowance = services.allowance
        self._confirmations = services.confirmations
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set what is reserved; or `over` and `outrun`, where a budget wants a person asked.

        Refuse with BUDGET_EXCEEDED, or INVALID_BUDGET for a cost whose price is not known.
        """
        call.stage = "reserve"
        asking = call.asking
        if asking is None:
            return await proceed(call)
        most = most_of(asking.sending, asking.request.sampling)
        name = asking.model.name
        cost = self._prices.cost(name, name.model, most, self._clock.now())
        accounts = self._allowance.accounts(asking.request, str(name))
        if cost is None and self._needs_price(asking, accounts):
            reason = f"no price is known for {name}, so a budget in dollars cannot be enforced"
            return refused(Code.INVALID_BUDGET, reason, "Set its price in models.prices, or use a budget in tokens.")
        asking.reserved_tokens, asking.reserved_cost = most.total, cost.amount if cost else 0.0
        claim = asking.claim = BudgetClaim(
            principal=asking.request.principal,
            tokens=asking.reserved_tokens,
            cost=asking.reserved_cost,
            accounts=accounts,
        )
        over = await self._allowance.claim(claim)
        try:
            over = over or self._over_budget(asking)  # nothing else can run between this look and the reservation
            if not over and (beyond := self._allowance.beyond(claim, _approved(call))):
                asking.over = beyond
                return outrun(call, self._confirmations, "; ".join(beyond.values()))
            if not over:
                asking.request.spent.reserve(asking.reserved_tokens, asking.reserved_cost)
            # Of a question that is not asked, people are told by the budget alone that refuses it.
            alarms = [alarm for alarm in self._allowance.alarms_of(claim) if alarm.refuses or not over]
            if alarms:  # before the announcement: a process that dies between is followed by another that records it
                await self._allowance.alarms.record(alarms, call.writer.stream, asking.request.step)
            if over:
                return refused(Code.BUDGET_EXCEEDED, over, "Raise the budget, or start again with a smaller request.")
            outcome = await proceed(call)
            if not call.invocation_id:  # it was not announced: policy decides again, or a limit refused it
                asking.request.spent.release(asking.reserved_tokens, asking.reserved_cost)
            return outcome
        finally:
            self._allowance.release(claim)

    def _needs_price(self, asking: ModelAttempt, accounts: tuple[Account, ...]) -> bool:
        limited = asking.request.budget.cost is not None or self._allowance.limits.cost is not None
        return limited or any(account.budget.cents and account.budget.then != "tell" for account in accounts)

    def _over_budget(self, asking: ModelAttempt) -> str:
        spent, budget = asking.request.spent, asking.request.budget
        tokens, cost = asking.reserved_tokens, asking.reserved_cost
        if budget.calls is not None and spent.calls + 1 > budget.calls:
            return f"the job has asked models {spent.calls} times; its budget is {budget.calls}"
        if budget.tokens is not None and spent.tokens + tokens > budget.tokens:
            return (
                f"the job used {spent.tokens} tokens, and this call may use {tokens} more; its budget is "
                f"{budget.tokens}"
            )
        if budget.cost is not None and spent.cost + cost > budget.cost:
            return f"the job spent ${spent.cost:.4f} and may cost ${cost:.4f} more now; its budget is ${budget.cost:g}"
        return ""


def _approved(call: Call) -> tuple[str, ...]:
    """Return the budgets beyond which a person lets the question go."""
    return call.confirmation.request.budgets if call.confirmation is not None else ()
