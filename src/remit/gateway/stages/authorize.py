"""Authorize: what policy says of this call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused
from remit.policy.decision import Caller, Query
from remit.policy.levels import exposed

if TYPE_CHECKING:
    from remit.gateway.services import Services


_PROTECT: Final = (
    "Declare it @tool(..., sandbox=True). If it is to run in this process, declare it @tool(..., unprotected=True) or "
    "name it in tools.unprotected."
)


class Authorize:
    """Decides deny > ask > allow; a remembered approval can turn an ask into an allow, nothing else."""

    def __init__(self, services: Services) -> None:
        self._remembered = services.remembered
        self._unprotected = services.limits.unprotected
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Refuse with POLICY_DENIED or SANDBOX_REQUIRED, or set `query` and `decision`."""
        request, tool = call.request, call.tool
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
        decision = call.policy.decide(query)
        if decision.effect == "ask":
            decision = call.policy.decide(query, remembered=await self._remembered.active(tool.meta.name))
        call.decision, call.rule_id = decision, decision.rule_id
        if decision.effect == "deny":
            remedy = f"See `remit policy explain {tool.meta.name}`; the rule is {decision.rule_id}."
            return refused(Code.POLICY_DENIED, decision.reason, remedy)
        if tool.meta.isolation == "none" and exposed(tool.meta, self._unprotected):
            return refused(Code.SANDBOX_REQUIRED, f"{tool.meta.name} executes, without isolation", _PROTECT)
        return await proceed(call)
