"""Remembered approvals: a person's yes that also holds for later calls, until it expires or is revoked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec.structs import replace

from remit.canonical import digest
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.gateway.approvals import extended, wants
from remit.gateway.proof import ProofKind
from remit.http.access import Access
from remit.jobs.state import KIND as JOB
from remit.journal.kinds import ConfirmationDecided
from remit.journal.kinds.people import Extension
from remit.operation import ArgumentPlace, Body, By, Here, operation
from remit.policy.approval import Remembered, Scope
from remit.policy.decision import Caller, Decision, Query
from remit.record.heads import CALL, SESSION
from remit.service.confirmations import CLOSED, ONE, REVOKE, signed_with
from remit.service.visible import sees_tool

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.services import Services
    from remit.record.views import ConfirmationView

_DAY_S: Final = 86_400
LONGEST_S: Final = 90 * _DAY_S
"""The time that an approval can be remembered."""


REMEMBERED_S: Final = 8 * 3_600
"""The time that an approval is remembered that is given with one key, or one choice."""


_UNSIGNED: Final = Here(
    "answers to a server are not signed", "The server identifies you by your token: omit --sign.", Code.USAGE
)


def _about_seen(access: Access, approvals: list[Remembered]) -> list[Remembered]:
    return [approval for approval in approvals if sees_tool(access, approval.tool)]


class Approvals:
    """The remembered approvals of one journal."""

    def __init__(self, services: Services, principal: str, wake: Callable[[], None]) -> None:
        self._services = services
        self._principal = principal
        self._wake = wake

    # --- queries

    @operation("approvals.active", "GET /v1/approvals", "read", "List remembered approvals.", visible=_about_seen)
    async def active(self) -> list[Remembered]:
        """List the remembered approvals that hold now."""
        return await self._services.remembered.active()

    async def tried(self, confirmation: str, *, exact: bool, by: str = "") -> str:
        """Return why one more approval, remembered, would not let the same call run again; empty: it would.

        Raises NotFoundError.
        """
        confirmation_found = await self._services.confirmations.find(confirmation)
        request, now = confirmation_found.request, self._services.journal.clock.now()
        tool = await self._services.catalog.find(request.tool_name)
        if tool is None:
            return f"{request.tool_name} is not a tool here"
        if confirmation_found.untrusted and not exact:
            return "what it reaches comes from untrusted text, so only the same arguments are covered"
        head = await self._services.journal.head(confirmation_found.caller)
        job = confirmation_found.caller.startswith(f"{JOB}/")
        caller = Caller(
            principal=request.principal,
            kind="job" if job else "session",
            recipe=head.labels.get("remit.name", "") if head is not None and job else "",
            stream=confirmation_found.caller,
        )
        query = Query(
            tool=tool.meta,
            key=tool.key,
            args=confirmation_found.args,
            caller=caller,
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            now=now,
        )
        decided = self._services.policy.decide(query)
        if decided.effect == "deny":
            return f"rule {decided.rule_id} now denies it"
        decision = Decision(
            effect="ask", rule_id=request.rule_id, reason="", approvals=request.approvals, approvers=request.approvers
        )
        extension = Extension(scope="everything", stream="", until=now + SECOND, exact=exact)
        wanted = [
            answer.by for answer in confirmation_found.decisions if answer.remember and answer.remember.exact == exact
        ]
        people = tuple(dict.fromkeys([*wanted, by or self._principal]))
        return extended(confirmation_found, extension, people, made_at=now).unanswered(query, decision)

    # --- commands

    @operation(
        "confirmations.remember",
        f"POST {ONE}/remember",
        "decide",
        "Remember an approval.",
        body=Body("RememberBody", "Which later calls an approval also holds for."),
        codes=(*CLOSED, Code.REMEMBERING_OFF),
        example={"scope": "job", "seconds": 3_600, "digest": "sha256:…"},
    )
    async def remember(
        self,
        confirmation: str,
        scope: Scope,
        *,
        seconds: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_S)],
        exact: bool = False,
        digest: str | None = None,
        by: By = "",
        reason: str = "",
        proof: Annotated[ProofKind, ArgumentPlace.PROOF] = "",
        sign: Annotated[Path | None, _UNSIGNED] = None,
    ) -> Remembered | None:
        """Let your approval hold for later calls too, within a scope and for a time; null: more people must want that.

        Only the person who gave it can say so. With `digest`, an open question is approved in the same act. None: more
        people have to approve it, and to want the same. The tool need not be here: a question says what it was asked
        about. `proof` and `sign` are as in `Confirmations.decide`. Raises NotFoundError, StateError or UsageError.
        """
        question = await self._services.confirmations.find(confirmation)
        request, who, now = question.request, by or self._principal, self._services.journal.clock.now()
        if not (request.tool_name and request.provider_id and self._services.remembered.count):
            raise not_rememberable(question.id, request.tool_name, request.provider_id)
        if not 0 < seconds <= LONGEST_S:
            problem = f"an approval is remembered for {LONGEST_S // _DAY_S} days at most"
            raise UsageError(problem, code=Code.INVALID_INPUT, remedy="Choose a shorter time, or write a rule.")
        extension = Extension(
            scope=scope,
            stream="" if scope == "everything" else await self._scope(question.caller),
            until=now + seconds * SECOND,
            exact=exact,
        )
        answer = ConfirmationDecided(
            confirmation=question.id,
            decision="approve",
            digest=request.digest if digest is None else digest,
            by=who,
            reason=reason,
            proof=proof,
            remember=extension,
        )
        if digest is None or who in question.approved_by:
            _check_approved(question, who)
            answer = await signed_with(answer, sign)
            await self._services.confirmations.check_proof(question, answer)
            answers = (*question.decisions, answer)
        else:
            question = await self._services.confirmations.decide(question, await signed_with(answer, sign))
            answers = question.decisions
        return await self._keep(question, extension, answers, who)

    async def _keep(
        self, confirmation: Confirmation, extension: Extension, answers: tuple[ConfirmationDecided, ...], by: str
    ) -> Remembered | None:
        """Remember an approval if as many who gave it want that as have to approve; it ends when the first wants it."""
        same = replace(extension, until=0)
        wanted = {answer.by: answer for answer in answers if wants(answer, confirmation, same)}
        if not confirmation.enough or len(wanted) < confirmation.request.approvals:
            self._wake()
            return None
        until = min(answer.remember.until for answer in wanted.values() if isinstance(answer.remember, Extension))
        now = self._services.journal.clock.now()
        rule = extended(confirmation, replace(extension, until=until), tuple(wanted), made_at=now)
        rule_kept = await self._services.remembered.keep(rule, confirmation.id, by, tuple(wanted.values()))
        await self._release(rule_kept, by)
        return rule_kept

    async def _release(self, remembered: Remembered, by: str) -> None:
        """End the open questions that it answers; what it does not cover after all is asked again by the gateway."""
        for confirmation in await self._services.confirmations.pending():
            request = confirmation.request
            within = (
                not remembered.stream
                or confirmation.caller == remembered.stream
                or confirmation.caller.startswith(f"{remembered.stream}/")
            )
            same = (request.tool_name, request.provider_id, request.principal) == (
                remembered.tool,
                remembered.provider_id,
                remembered.principal,
            )
            plain = not confirmation.untrusted and request.approvals == 1 and not request.approvers
            if within and same and plain and remembered.args_digest in {None, digest(confirmation.args)}:
                await self._services.confirmations.release(confirmation, f"allowed by remembered:{remembered.id}", by)
        self._wake()

    async def _scope(self, caller: str) -> str:
        """The job's or session's stream that a caller's stream belongs to."""
        head = await self._services.journal.head(caller) if caller.startswith(f"{CALL}/") else None
        return f"{SESSION}/{head.labels['session']}" if head is not None else caller

    @operation(
        "approvals.revoke",
        "POST /v1/approvals/{rule}/revoke",
        "decide",
        "End a remembered approval.",
        body=REVOKE,
        status=204,
        codes=(Code.STREAM_NOT_FOUND,),
        example={"reason": "the task is over"},
    )
    async def revoke(self, rule: str, *, by: By = "", reason: str = "") -> None:
        """End a remembered approval: its calls are asked about again.

        Raises NotFoundError.
        """
        await self._services.remembered.revoke(rule, by or self._principal, reason)


def scopes_of(question: ConfirmationView) -> dict[str, Scope]:
    """Return what an approval of the question can be remembered for with one key, by the word that says so.

    Not an approval that needs several people, nor one whose arguments come from untrusted text: those are asked about
    each time.
    """
    if not question.rememberable or question.approvals > 1 or question.untrusted:
        return {}
    if question.caller.startswith(f"{JOB}/"):
        return {"job": "job", "everything": "everything"}
    return {"session": "session", "everything": "everything"}


def not_rememberable(confirmation: str, tool: str, provider_id: str) -> StateError:
    """Return the reason why no approval of a question can be remembered here: its kind, its age, or the settings."""
    remedy = "Answer it without --remember."
    if not tool:
        msg = f"{confirmation} is not about a call, so there is nothing to remember"
    elif not provider_id:
        msg = f"{confirmation} was asked by an older version, which did not record which tool its approval covers"
    else:
        msg = "remembered approvals are off here: policy.remembered is false"
        remedy = "Approve each call, or let a policy rule allow it."
    return StateError(msg, code=Code.REMEMBERING_OFF, remedy=remedy)


def _check_approved(confirmation: Confirmation, by: str) -> None:
    """Raise StateError or UsageError unless the question is approved, by this person too."""
    if not confirmation.enough or confirmation.state == "denied":
        msg = f"{confirmation.id} is {confirmation.state}; only an approval can be remembered"
        raise StateError(msg, code=Code.CONFIRMATION_CLOSED, remedy="Approve it first.")
    if by not in confirmation.approved_by:
        msg = f"{by} has not approved {confirmation.id}, so {by} cannot have the approval remembered"
        remedy = f"Ask one who approved it: {', '.join(confirmation.approved_by)}."
        raise UsageError(msg, code=Code.DECIDER_NOT_ALLOWED, remedy=remedy)
