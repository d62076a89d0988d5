"""Reserve: an answer is asked for only if the budget covers the most that it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.codes import Code
from remit.gateway.allowance import Claim
from remit.gateway.asking import Asking, most_of
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused

if TYPE_CHECKING:
    from remit.gateway.services import Services


class Reserve:
    """Counts the call against the job's budget and the principal's allowance for the day."""

    def __init__(self, services: Services) -> None:
        self._prices = services.prices
        self._allowance = services.allowance
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set what is reserved. Refuse with BUDGET_EXCEEDED, or INVALID_BUDGET for a cost whose price is not known."""
        asking = call.asking
        if asking is None:
            return await proceed(call)
        most = most_of(asking.sending, asking.request.sampling)
        name = asking.model.name
        cost = self._prices.cost(name, name.model, most, self._clock.now())
        if cost is None and (asking.request.budget.cost is not None or self._allowance.limits.cost is not None):
            why = f"no price is known for {name}, so a budget in dollars cannot be enforced"
            return refused(Code.INVALID_BUDGET, why, "Set its price in models.prices, or use a budget in tokens.")
        asking.reserved_tokens, asking.reserved_cost = most.total, cost.amount if cost else 0.0
        claim = asking.claim = Claim(
            principal=asking.request.principal,
            tokens=asking.reserved_tokens,
            cost=asking.reserved_cost,
        )
        over = await self._allowance.claim(claim)
        try:
            over = over or self._over_budget(asking)  # nothing else can run between this look and the reservation
            if over:
                return refused(Code.BUDGET_EXCEEDED, over, "Raise the budget, or start again with a smaller request.")
            asking.request.spent.reserve(asking.reserved_tokens, asking.reserved_cost)
            return await proceed(call)
        finally:
            self._allowance.release(claim)

    def _over_budget(self, asking: Asking) -> str:
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
