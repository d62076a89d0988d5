"""Remembered approvals: a person's yes that also holds for later calls, until it expires or is revoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import NotFoundError, StateError
from remit.jobs.state import KIND as JOB
from remit.policy.decision import Caller, Decision, Query
from remit.policy.remembered import Remembered, Scope
from remit.service.heads import CALL, SESSION

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.services import Services


class Approvals:
    """The remembered approvals of one journal."""

    def __init__(self, services: Services, principal: str, wake: Callable[[], None]) -> None:
        """`principal` makes and revokes them if a call names no one else; `wake` wakes this process's engine."""
        self._services = services
        self._principal = principal
        self._wake = wake

    # --- queries

    async def active(self) -> list[Remembered]:
        """Those that hold now."""
        return await self._services.remembered.active()

    async def tried(self, confirmation: str, *, exact: bool, by: str = "") -> str:
        """Why one more approval, remembered, would not let the same call run again; empty: it would.

        Raises NotFoundError.
        """
        found = await self._services.confirmations.find(confirmation)
        request, now = found.request, self._services.journal.clock.now()
        tool = await self._services.catalog.find(request.tool_name)
        if tool is None:
            return f"{request.tool_name} is not a tool here"
        if found.untrusted and not exact:
            return "what it reaches comes from untrusted text, so only the same arguments are covered"
        head = await self._services.journal.head(found.caller)
        job = found.caller.startswith(f"{JOB}/")
        caller = Caller(
            principal=request.principal,
            kind="job" if job else "session",
            recipe=head.labels.get("remit.name", "") if head is not None and job else "",
            stream=found.caller,
        )
        query = Query(
            tool=tool.meta,
            key=tool.key,
            args=found.args,
            caller=caller,
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            now=now,
        )
        decided = self._services.policy.decide(query)
        if decided.effect == "deny":
            return f"rule {decided.rule_id} now denies it"
        asked = Decision(
            effect="ask", rule_id=request.rule_id, reason="", approvals=request.approvals, approvers=request.approvers
        )
        people = (*found.approved_by, by or self._principal)
        return _rule(found, tool.meta.provider_id, exact=exact, people=people, now=now).unanswered(query, asked)

    # --- commands

    async def remember(self, confirmation: str, scope: Scope, *, seconds: int, exact: bool, by: str = "") -> Remembered:
        """Let a confirmation's approval hold for later calls too, within bounds. Raises NotFoundError or StateError.

        The tool need not be here: a question says what it was asked about. Those of older versions do not.
        """
        found = await self._services.confirmations.find(confirmation)
        if not (found.request.tool_name and self._services.remembered.count):
            raise not_rememberable(found.id, found.request.tool_name)
        if not found.enough or found.state == "denied":
            msg = f"{found.id} is {found.state}; only an approval can be remembered"
            raise StateError(msg, code=Code.CONFIRMATION_CLOSED, remedy="Approve it first.")
        provider_id = found.request.provider_id or await self._provider(found.request.tool_name)
        now = self._services.journal.clock.now()
        rule = replace(
            _rule(found, provider_id, exact=exact, people=found.approved_by, now=now),
            scope=scope,
            stream="" if scope == "everything" else await self._scope(found.caller),
            expires_at=now + seconds * SECOND,
        )
        kept = await self._services.remembered.keep(rule, found.id, by or self._principal)
        await self._release(kept, by or self._principal)
        return kept

    async def _release(self, kept: Remembered, by: str) -> None:
        """End the open questions that it answers; what it does not cover after all is asked again by the gateway."""
        for one in await self._services.confirmations.pending():
            request = one.request
            within = not kept.stream or one.caller == kept.stream or one.caller.startswith(f"{kept.stream}/")
            same = (request.tool_name, request.provider_id, request.principal) == (
                kept.tool,
                kept.provider_id,
                kept.principal,
            )
            plain = not one.untrusted and request.approvals == 1 and not request.approvers
            if within and same and plain and kept.args_digest in {None, digest(one.args)}:
                await self._services.confirmations.release(one, f"allowed by remembered:{kept.id}", by)
        self._wake()

    async def _provider(self, name: str) -> str:
        tool = await self._services.catalog.find(name)
        if tool is None:
            msg = f"{name} is not a tool here, and its question is of an older version"
            raise NotFoundError(msg, code=Code.UNKNOWN_TOOL, remedy="Run the command where the tool is.")
        return tool.meta.provider_id

    async def _scope(self, caller: str) -> str:
        """The job's or session's stream that a caller's stream belongs to."""
        head = await self._services.journal.head(caller) if caller.startswith(f"{CALL}/") else None
        return f"{SESSION}/{head.labels['session']}" if head is not None else caller

    async def revoke(self, rule: str, *, by: str = "", reason: str = "") -> None:
        """End a remembered approval. Raises NotFoundError."""
        await self._services.remembered.revoke(rule, by or self._principal, reason)


def not_rememberable(confirmation: str, tool: str) -> StateError:
    """Why no approval of a question can be remembered here: it is about no call, or the settings say so."""
    if not tool:
        msg = f"{confirmation} is not about a call, so there is nothing to remember"
        return StateError(msg, code=Code.REMEMBERING_OFF, remedy="Answer it without --remember.")
    msg = "remembered approvals are off here: policy.remembered is false"
    return StateError(msg, code=Code.REMEMBERING_OFF, remedy="Approve each call, or let a policy rule allow it.")


def _rule(found: Confirmation, provider_id: str, *, exact: bool, people: tuple[str, ...], now: int) -> Remembered:
    """What these people's approval of a question covers everywhere, for an instant."""
    request = found.request
    return Remembered(
        id="new",
        tool=request.tool_name,
        provider_id=request.provider_id or provider_id,
        contract_hash=request.contract_hash,  # of what was approved, whatever this process knows by now
        tool_version=request.tool_version if request.provider_id else None,
        capability_level=request.capability_level if request.provider_id else None,
        prompt_hash=request.prompt_hash if request.provider_id else None,
        args_digest=digest(found.args) if exact else None,
        scope="everything",
        stream="",
        principal=request.principal,
        made_by=people,
        made_at=now,
        expires_at=now + SECOND,
    )
