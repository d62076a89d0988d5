"""Authorize: what policy says of this call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.facts import FactFinder, with_remembered
from remit.gateway.outcome import Outcome, refused
from remit.gateway.takings import LimitUnprovenError
from remit.journal.kinds import UNSET
from remit.policy.decision import Caller, Query
from remit.policy.levels import exposed
from remit.policy.rules import NO_NEEDS

if TYPE_CHECKING:
    from remit.gateway.services import Services


_TRIES: Final = 10
"""Times that policy decides again because what it decided by has changed before the call was announced."""
_PROTECT: Final = (
    "Declare it with @tool(..., sandbox=True). To run it in this process instead, declare it with @tool(..., "
    "unprotected=True), or name it in tools.unprotected."
)


class Authorize:
    """Decides deny > ask > allow; a remembered approval can turn an ask into an allow, nothing else."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._remembered = services.remembered
        self._unprotected = services.limits.unprotected
        self._clock = services.journal.clock
        self._facts = FactFinder(services.journal, services.takings)

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Refuse with POLICY_DENIED, SANDBOX_REQUIRED or as the caller does, or set `query`, `decision` and `parts`.

        What is wrong with the record of a limit refuses as well, with its own code.
        """
        call.decide_again = partial(self._again, call, proceed)
        outcome = await self._decided(call, proceed)
        for _ in range(_TRIES):
            if not call.outrun:
                break
            outcome = await self._again(call, proceed)
        return outcome

    async def _again(self, call: Call, proceed: Proceed) -> Outcome:
        """Decide again on what holds now, of the question too: what it was may have ended since."""
        call.outrun = False
        if call.confirmation is not None:
            self._confirmations.unclaim(call.confirmation)
            call.confirmation = await self._confirmations.load(call.confirmation.stream)
        return await self._decided(call, proceed)

    async def _decided(self, call: Call, proceed: Proceed) -> Outcome:
        request, tool = call.request, call.tool
        call.facts, call.decided_at = UNSET, 0
        query = call.query = Query(
            tool=tool.meta,
            key=tool.key,
            args=call.args,
            caller=Caller(
                principal=request.principal,
                kind=request.caller,
                recipe=request.recipe,
                stream=request.within or call.writer.stream,
            ),
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            now=self._clock.now(),
        )
        if call.policy.needs_facts and (needs := call.policy.needs(tool.meta, tool.key)) is not NO_NEEDS:
            try:
                query = call.query = await self._facts.of(call, query, needs)
            except LimitUnprovenError as error:
                return error.outcome
        decision = call.policy.decide(query)
        if call.policy.looks_at_time:
            call.decided_at = query.now
        if decision.effect == "ask" and (remembered := await self._remembered.active(tool.meta.name)):
            decision = call.policy.decide(query, remembered=remembered)
            call.decided_at, call.facts = query.now, with_remembered(call.facts, remembered)
        call.decision, call.rule_id = decision, decision.rule_id
        if decision.effect == "deny":
            look = f"See `remit policy explain {tool.meta.name}`; the" if call.asking is None else "The"
            remedy = f"{look} rule is {decision.rule_id}."
            return refused(Code.POLICY_DENIED, decision.reason, remedy)
        if request.barred is not None:
            return request.barred
        if tool.meta.isolation == "none" and exposed(tool.meta, self._unprotected):
            return refused(Code.SANDBOX_REQUIRED, f"{tool.meta.name} executes code without isolation", _PROTECT)
        return await proceed(call)
