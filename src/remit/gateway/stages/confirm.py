"""Confirm: a person approves this exact call, or it does not run (rule 7).

LoadConfirmation: a call that waited for a person comes back with what the person decided on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.confirmation import Confirmation, binding, title_of
from remit.gateway.outcome import Outcome, refused
from remit.gateway.schema_gate import KeptTexts
from remit.ids import new_id
from remit.journal.kinds import ConfirmationRequested
from remit.policy.explain import used_up

if TYPE_CHECKING:
    from remit.gateway.services import Services


_CHANGED = "the call, or what policy requires, has changed since it was shown"
_AGED = "the approval was not used before its question expired, or is dated later than now"
_LOOK_MS: Final = 60_000
"""Milliseconds after which a job looks at first whether it may ask."""


class Confirm:
    """Asks where policy says so; lets an approved call pass if it is still what was approved."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._expires_s = services.limits.confirm_expires_s
        self._max_questions = services.limits.max_questions
        self._clock = services.journal.clock
        self._texts = KeptTexts()

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Answer `pending` with CONFIRMATION_REQUIRED, refuse, or proceed on what is left in `confirmation`.

        It refuses with TOO_MANY_QUESTIONS, CONFIRMATION_DENIED, CONFIRMATION_EXPIRED or CONFIRMATION_MISMATCH.
        """
        call.stage = "confirm"
        if call.confirmation is None and call.decision.effect != "ask":
            return proceed(call)
        return self._with(call, proceed)

    async def _with(self, call: Call, proceed: Proceed) -> Outcome:
        while True:
            confirmation = call.confirmation
            if confirmation is None or confirmation.state in {"withdrawn", "replaced"}:
                return await self._without(call, confirmation, proceed)
            if not confirmation.lapsed(self._clock.now()):
                break
            await self._confirmations.expire(confirmation)
            call.confirmation = await self._confirmations.load(confirmation.stream)  # someone may have been faster
        if confirmation.state in {"denied", "expired"}:
            return _closed(call, confirmation)
        same = self._same(call, confirmation)
        if confirmation.state == "used" and same:
            return _spent(call, confirmation) if call.request.attempt == 1 else await proceed(call)
        if same and confirmation.usable(self._clock.now()):
            return await self._use(call, confirmation, proceed)
        if confirmation.state == "pending" and same and call.decision.effect == "ask":
            return _asked(confirmation.id, confirmation.request.tool_name)
        return await self._anew(call, confirmation, proceed)

    async def _use(self, call: Call, confirmation: Confirmation, proceed: Proceed) -> Outcome:
        """Proceed with an approval. If the call is refused below, before it is announced, the approval is not used."""
        if not self._confirmations.claim(confirmation):
            return _spent(call, confirmation)
        try:
            return await proceed(call)
        finally:
            if (
                not call.invocation_id and call.confirmation is confirmation
            ):  # another: policy decided again, and took over
                self._confirmations.unclaim(confirmation)

    async def _anew(self, call: Call, confirmation: Confirmation, proceed: Proceed) -> Outcome:
        """Go on without a confirmation that does not fit this call, or that it does not need."""
        asks = call.decision.effect == "ask"
        replaced_by = new_id("c") if asks else ""
        if confirmation.state != "used":
            reason = _reason(confirmation, self._clock.now()) if asks else f"allowed by {call.rule_id}"
            if not await self._confirmations.withdraw(confirmation, reason, replaced_by=replaced_by):
                if confirmation.state == "approved":
                    return _spent(call, confirmation)
                call.confirmation = await self._confirmations.load(confirmation.stream)  # a person was faster
                return await self._with(call, proceed)
        return await self._without(call, confirmation, proceed, replaced_by)

    async def _without(
        self, call: Call, confirmation: Confirmation | None, proceed: Proceed, replaced_by: str = ""
    ) -> Outcome:
        """Go on where there is no question any more, or none that fits."""
        if confirmation is not None and confirmation.last is not None and confirmation.last.decision == "edit":
            # At this moment, else the call would have come back as edited: it waits for what was made of it.
            return _asked(confirmation.replaced_by, confirmation.request.tool_name)
        call.confirmation = None
        if call.decision.effect != "ask":
            return await proceed(call)
        return (
            await self._ask(call, confirmation, replaced_by) if call.request.asks else _not_asked(call.tool.meta.name)
        )

    def _same(self, call: Call, confirmation: Confirmation) -> bool:
        """Return whether this is the call that was shown, and policy asks for no more than it did then."""
        decision, request = call.decision, confirmation.request
        if request.digest != self._bind(call, whole=bool(request.provider_id)):
            return False
        shown = {(argument.path, argument.value) for argument in confirmation.untrusted}
        if not shown.issuperset((argument.path, argument.value) for argument in call.untrusted):
            return False  # the approver was not told of them
        if not set(request.budgets).issuperset(_beyond(call)):
            return False  # nor of these
        return decision.effect != "ask" or (
            decision.approvals <= request.approvals and decision.approvers == request.approvers
        )

    def _bind(self, call: Call, *, whole: bool = True) -> str:
        """The digest of the call; not `whole`: as an older Remit bound it, without what it did not record."""
        return binding(
            stream=call.writer.stream,
            step=call.request.step,
            tool=call.tool.meta.name,
            contract_hash=call.tool.contract_hash,
            args=call.args,
            principal=call.request.principal,
            policy_hash=call.policy.hash,
            **(_identity(call) if whole else {}),
        )

    async def _ask(self, call: Call, before: Confirmation | None, identifier: str = "") -> Outcome:
        """Ask; what a person edited stays known as that, else it would be taken for another call when it comes back."""
        decision, name = call.decision, call.tool.meta.name
        if before is None and await self._confirmations.full(call.request.principal, self._max_questions):
            return _too_many(call.request.principal, self._max_questions, parks=call.request.line is not None)
        expires = decision.expires_s or self._expires_s
        if call.request.overlays:  # which may shorten the time, and not lengthen it
            expires = min(expires, self._expires_s)
        waiting = ConfirmationRequested(
            confirmation=identifier or new_id("c"),
            step=call.request.step,
            digest=self._bind(call),
            tool_name=name,
            expires_at=self._clock.now() + expires * SECOND,
            model_call=call.asking is not None,
        )
        request = msgspec.structs.replace(
            waiting,
            model_call=False,
            question=" ".join(
                filter(
                    None,
                    (
                        decision.reason,
                        *(f"Beyond {words}." for words in _beyond(call).values()),
                        used_up(call.policy.rules, call.query),
                        _before(call, before),
                    ),
                )
            ),
            budgets=tuple(_beyond(call)),
            principal=call.request.principal,
            contract_hash=call.tool.contract_hash,
            policy_hash=call.policy.hash,
            **_identity(call),
            rule_id=decision.rule_id,
            approvals=decision.approvals,
            approvers=decision.approvers,
            edited_from=before.id if before is not None and before.request.edited_from else "",
            risk_level=call.tool.meta.risk_level,
            side_effect=call.tool.meta.side_effect,
            alias=call.tool.meta.alias,
            confirms=call.tool.meta.requires_confirm,
            request_schema_hash=call.tool.input.hash,
            decided_at=call.decided_at,
            facts=call.facts,
            policy_kept=True,
            sandbox=call.request.sandbox if call.asking is None else (),
        )
        title = title_of(name, call.args)
        opened, blobs = self._confirmations.open(call.writer.stream, request, call.args, title, call.untrusted)
        blobs += self._texts.rules(call.policy, call.writer)
        blobs += self._texts.schemas(call.tool, call.writer)
        await call.journal.commit(call.writer.draft(waiting), opened, synced=True, blobs=blobs)
        return _asked(waiting.confirmation, name)


def _beyond(call: Call) -> Mapping[str, str]:
    """Return the budgets beyond which a question to a model would go, in words by their keys."""
    return call.asking.over if call.asking is not None else {}


def _before(call: Call, before: Confirmation | None) -> str:
    """Say who approved the call before, and what has changed since; empty: no one did."""
    if before is None or not before.approved_by:
        return ""
    request = before.request
    pairs = {
        "the tool": (request.contract_hash, call.tool.contract_hash),
        "its version": (request.tool_version, call.tool.meta.version),
        "its text for models": (request.prompt_hash, call.tool.prompt_hash),
        "the rules": (request.policy_hash, call.policy.hash),
    }
    changed = [name for name, (then, now) in pairs.items() if then != now]
    since = f"{' and '.join(changed)} changed since" if changed else "that no longer counts"
    return f"{', '.join(before.approved_by)} approved it before, but {since}."


def _reason(confirmation: Confirmation, now: int) -> str:
    return _AGED if confirmation.state == "approved" and not confirmation.usable(now) else _CHANGED


def _identity(call: Call) -> dict[str, Any]:
    """Return which tool would run, beyond its name and contract."""
    meta = call.tool.meta
    return {
        "tool_version": meta.version,
        "provider_id": meta.provider_id,
        "capability_level": int(meta.capability_level),
        "prompt_hash": call.tool.prompt_hash,
    }


def _asked(confirmation: str, tool: str) -> Outcome:
    reason = f"{tool} waits for a person's approval"
    remedy = f"Decide with: remit confirm {confirmation}"
    return refused(Code.CONFIRMATION_REQUIRED, reason, remedy, confirmation=confirmation)


def _too_many(principal: str, most: int, *, parks: bool) -> Outcome:
    """Refuse; a job looks again, later each time, for it is unknown when people decide."""
    reason = f"as many calls of {principal or 'this principal'} wait for an answer as may: {most} (confirm.max_open)"
    outcome = refused(Code.TOO_MANY_QUESTIONS, reason, "Wait until some are decided: `remit confirm` lists them.")
    return msgspec.structs.replace(outcome, again_ms=_LOOK_MS) if parks else outcome


def _not_asked(tool: str) -> Outcome:
    return refused(Code.CONFIRMATION_REQUIRED, f"{tool} needs a person's approval, and no one was asked")


def _closed(call: Call, confirmation: Confirmation) -> Outcome:
    name = call.tool.meta.name
    if confirmation.state == "expired":
        reason = f"no one approved {name} in time"
        return refused(
            Code.CONFIRMATION_EXPIRED, reason, "Make the call again to ask again.", confirmation=confirmation.id
        )
    last = confirmation.last
    reason = f"{last.by if last else 'somebody'} refused {name}" + (f": {last.reason}" if last and last.reason else "")
    remedy = "Continue without this call, or make a different one."
    return refused(Code.CONFIRMATION_DENIED, reason, remedy, confirmation=confirmation.id)


def _spent(call: Call, confirmation: Confirmation) -> Outcome:
    call.confirmation = None  # it belongs to another call
    reason = f"the approval of {call.tool.meta.name} was already used"
    return refused(
        Code.CONFIRMATION_MISMATCH, reason, "Make the call again to ask again.", confirmation=confirmation.id
    )


class LoadConfirmation:
    """Loads the confirmation a request names; an edited one brings its own arguments, which pass every check again."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Set `confirmation` and `args` if the confirmation was asked for this very call; else it is ignored."""
        call.stage = "load_confirmation"
        named = call.request.confirmation
        return proceed(call) if named is None else self._with(named, call, proceed)

    async def _with(self, confirmation: str, call: Call, proceed: Proceed) -> Outcome:
        recalled = await self._confirmations.recall(call.writer.stream, confirmation)
        asked_for = (call.tool.meta.name, call.arguments_hash)
        if recalled is not None and (recalled.tool, recalled.arguments_hash) == asked_for:
            call.confirmation = recalled.newest
            if recalled.newest.request.edited_from:
                call.take(recalled.newest.args)
        return await proceed(call)
