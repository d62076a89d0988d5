"""The outcome of a recorded call if it were made today: schema, policy and readiness judge it like the real one.

Nothing is called, asked or recorded. Origins, budgets and provider failures are not part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotCanonicalError
from remit.gateway.readiness import named
from remit.policy.decision import Query
from remit.policy.levels import exposed
from remit.tools.catalog import ResolveError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.gateway.services import Services
    from remit.policy.approval import Remembered
    from remit.policy.decision import Caller, Decision
    from remit.policy.overlay import Overlay
    from remit.tools.catalog import Tool

Effect = Literal["runs", "asks", "refused"]
_PROBLEMS: Final = 3


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway would do with a call, and why."""

    effect: Effect
    code: str = ""
    """The code that it would be refused or held with."""
    reason: str = ""


RUNS: Final = Judged(effect="runs")


class CallJudge:
    """Judges many calls of one caller as of one moment: what holds for a tool now is read once, not once a call."""

    def __init__(self, services: Services, caller: Caller, overlays: Sequence[Overlay] = ()) -> None:
        self._services = services
        self._caller = caller
        self._policy = services.policy.under(overlays)
        self._remembered: dict[str, list[Remembered]] = {}
        self._open: dict[str, Tool] = {}
        """Tools by name that are ready, and whose calls run if their arguments fit."""

    async def judge(self, tool: str, args: dict[str, Any]) -> Judged:
        """Return what would become of a call; it is judged in the order of the stages."""
        known = self._open.get(tool)
        return await self._judged(tool, args) if known is None else _fitting(self._services, known, args)

    async def _judged(self, tool_name: str, arguments: dict[str, Any]) -> Judged:
        services, caller, policy = self._services, self._caller, self._policy
        try:
            tool, args = await services.catalog.resolve(tool_name, arguments)
        except ResolveError as error:
            return Judged(effect="refused", code=error.code.name, reason=error.reason)
        name = tool.meta.name
        missing = await services.readiness.missing(tool.meta.requires) if tool.meta.requires else {}
        if missing:
            code = Code.MCP_REQUIRED_UNAVAILABLE.name
            return Judged(effect="refused", code=code, reason=f"{name} needs {named(missing)}")
        query = Query(
            tool=tool.meta,
            key=tool.key,
            args=args,
            caller=caller,
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            now=services.journal.clock.now(),
        )
        remembered = await self._approvals(name)
        judged = _judgement(services, tool, args, policy.decide(query, remembered=remembered))
        if judged is RUNS and args is arguments and policy.outlook(tool.meta, tool.key, caller) == "runs":
            self._open[tool_name] = tool
        return judged

    async def _approvals(self, tool: str) -> list[Remembered]:
        """Return the tool's remembered approvals as they were when it was first asked about."""
        approvals = self._remembered.get(tool)
        if approvals is None:
            approvals = self._remembered[tool] = await self._services.remembered.active(tool)
        return approvals


def _judgement(services: Services, tool: Tool, args: dict[str, Any], decision: Decision) -> Judged:
    name, reason = tool.meta.name, f"rule {decision.rule_id}: {decision.reason}"
    if decision.effect == "deny":
        return Judged(effect="refused", code=Code.POLICY_DENIED.name, reason=reason)
    if tool.meta.isolation == "none" and exposed(tool.meta, services.limits.unprotected):
        reason = f"{name} executes code without isolation"
        return Judged(effect="refused", code=Code.SANDBOX_REQUIRED.name, reason=reason)
    fitting = _fitting(services, tool, args)
    if fitting is RUNS and decision.effect == "ask":
        return Judged(effect="asks", code=Code.CONFIRMATION_REQUIRED.name, reason=reason)
    return fitting


def _fitting(services: Services, tool: Tool, args: dict[str, Any]) -> Judged:
    """Return what becomes of a call that only its arguments can stop."""
    if services.limits.schema_gate != "strict":
        return RUNS
    try:
        problems = tool.input.problems(args)
    except NotCanonicalError as error:
        reason = str(error)
    else:
        if not problems:
            return RUNS
        reason = "; ".join(f"{each.path or '/'} {each.message}" for each in problems[:_PROBLEMS])
    return Judged(effect="refused", code=Code.INVALID_TOOL_ARGS.name, reason=f"{tool.meta.name}: {reason}")
