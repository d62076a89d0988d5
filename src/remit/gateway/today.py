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

    from remit.gateway.schema_gate import Checks
    from remit.gateway.services import Services
    from remit.policy.decision import Caller, Decision
    from remit.policy.overlay import Overlay
    from remit.policy.remembered import Remembered
    from remit.tools.catalog import Tool

Effect = Literal["runs", "asks", "refused"]
_PROBLEMS: Final = 3


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway would do with a call, and why."""

    effect: Effect
    code: str = ""
    """The code that it would be refused or held with."""
    reason: str = ""


class CallJudge:
    """Judges many recorded calls as of one moment: what holds for a tool now is read once, not once a call."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._remembered: dict[str, list[Remembered]] = {}

    async def judge(self, tool: str, args: dict[str, Any], caller: Caller, overlays: Sequence[Overlay] = ()) -> Judged:
        """Return what would become of this call; it is judged in the order of the stages."""
        services = self._services
        try:
            found, args = await services.catalog.resolve(tool, args)
        except ResolveError as error:
            return Judged(effect="refused", code=error.code.name, reason=error.reason)
        name = found.meta.name
        missing = await services.readiness.missing(found.meta.requires) if found.meta.requires else {}
        if missing:
            code = Code.MCP_REQUIRED_UNAVAILABLE.name
            return Judged(effect="refused", code=code, reason=f"{name} needs {named(missing)}")
        query = Query(
            tool=found.meta,
            key=found.key,
            args=args,
            caller=caller,
            contract_hash=found.contract_hash,
            prompt_hash=found.prompt_hash,
            now=services.journal.clock.now(),
        )
        remembered = await self._approvals(name)
        return _judgement(services, found, args, services.policy.under(overlays).decide(query, remembered=remembered))

    async def _approvals(self, tool: str) -> list[Remembered]:
        """Return the tool's remembered approvals as they were when it was first asked about."""
        approvals = self._remembered.get(tool)
        if approvals is None:
            approvals = self._remembered[tool] = await self._services.remembered.active(tool)
        return approvals


def _judgement(services: Services, tool: Tool, args: dict[str, Any], decision: Decision) -> Judged:
    name, why = tool.meta.name, f"rule {decision.rule_id}: {decision.reason}"
    if decision.effect == "deny":
        return Judged(effect="refused", code=Code.POLICY_DENIED.name, reason=why)
    if tool.meta.isolation == "none" and exposed(tool.meta, services.limits.unprotected):
        why = f"{name} executes code without isolation"
        return Judged(effect="refused", code=Code.SANDBOX_REQUIRED.name, reason=why)
    problems = _problems(services, tool.input, args)
    if problems:
        return Judged(effect="refused", code=Code.INVALID_TOOL_ARGS.name, reason=f"{name}: {problems}")
    if decision.effect == "ask":
        return Judged(effect="asks", code=Code.CONFIRMATION_REQUIRED.name, reason=why)
    return Judged(effect="runs")


def _problems(services: Services, schema: Checks, args: dict[str, Any]) -> str:
    if services.limits.schema_gate != "strict":
        return ""
    try:
        found = schema.problems(args)
    except NotCanonicalError as error:
        return str(error)
    return "; ".join(f"{one.path or '/'} {one.message}" for one in found[:_PROBLEMS])
