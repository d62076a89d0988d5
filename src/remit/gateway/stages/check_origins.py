"""CheckOrigins: what an agent's call reaches was named by someone trusted, or policy asks or denies."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.conversation import Conversation, Provenance, family_of
from remit.gateway.ledgers import Ledgers, SessionLedgers
from remit.gateway.outcome import Outcome, refused
from remit.origins.arguments import addresses_of, authority_of, carried_by
from remit.policy.decision import Decision
from remit.policy.levels import effective_level
from remit.policy.verdict import TAINT_IDS
from remit.tools.meta import Level

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.kinds import UntrustedArgument
    from remit.origins.arguments import Argument
    from remit.origins.ledger import Ledger


_SESSION: Final = "session/"
_TELLING: Final = 4
"""Characters from which on a part of a value is taken to come from where it stands."""


class CheckOrigins:
    """Finds the arguments of authority that only untrusted text holds, or none at all; policy says what then."""

    def __init__(self, services: Services) -> None:
        self._ledgers, self._sessions = Ledgers(), SessionLedgers()
        self._remembered = services.remembered

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Set `tainted`, `untrusted`, and a `decision` that may be stricter. Refuse with UNTRUSTED_ARGUMENT."""
        conversation = call.request.conversation
        if conversation is not None:
            return self._judge(conversation, call, proceed)
        seen = call.writer.stream.startswith(_SESSION) and call.policy.taints(call.query) - {"allow"}
        return self._in_session(call, proceed) if seen else proceed(call)

    async def _in_session(self, call: Call, proceed: Proceed) -> Outcome:
        """Judge a call of an agent elsewhere: what Remit gave it is known, and what a person told it is not.

        So a value that none of it holds may be the person's, unless the rule is strict.
        """
        ledger = await self._sessions.of(call.writer.stream, call.journal)
        if not ledger.tainted:
            return await proceed(call)
        strict = call.policy.is_strict(call.query)
        found = [ledger.judge(one) for one in _arguments(call, every=strict)]
        call.untrusted = tuple(one for one in found if one is not None and (strict or one.seen == "untrusted"))
        return await self._stricter(call, proceed) if call.untrusted else await proceed(call)

    async def _judge(self, conversation: Conversation, call: Call, proceed: Proceed) -> Outcome:
        provenance = call.request.provenance or Provenance()
        await provenance.settle(call.journal.value)
        ledger = self._ledgers.of(call.writer.stream, conversation, provenance)
        if not ledger.tainted:
            return await proceed(call)
        call.tainted, call.untrusted_input = True, _is_untrusted(call, conversation, ledger)
        call.untrusted = await self._untrusted(call, conversation, provenance, ledger)
        if not call.untrusted:
            self._ask_on(call)
            return await proceed(call)
        return await self._stricter(call, proceed)

    async def _stricter(self, call: Call, proceed: Proceed) -> Outcome:
        """Have policy say what becomes of a call with untrusted arguments."""
        decision = call.policy.tainted(call.query, call.decision, {one.path for one in call.untrusted})
        if decision.effect == "ask":
            decision = await self._remembered_for(call, decision)
        call.decision, call.rule_id = decision, decision.rule_id
        if decision.effect == "deny":
            said = "; ".join(one.words for one in call.untrusted)
            remedy = "Give it in the task, or let a rule's taint allow it."
            return refused(Code.UNTRUSTED_ARGUMENT, f"{call.tool.meta.name}: {said}", remedy)
        return await proceed(call)

    async def _untrusted(
        self, call: Call, conversation: Conversation, provenance: Provenance, ledger: Ledger
    ) -> tuple[UntrustedArgument, ...]:
        meta, every = call.tool.meta, call.policy.is_strict(call.query)
        arguments = _arguments(call, every=every)
        if not arguments:
            return ()
        approved = await provenance.approved(call.journal.value) - _in_question(call)
        if call.confirmation is not None and call.confirmation.request.edited_from:
            own = set(authority_of(meta, call.request.args, every=every))  # any other a person has put there
            arguments = [one for one in arguments if one in own]
        if conversation.given is not None:
            arguments = [one for one in arguments if _is_among(one.value, conversation.given)]
        family = "" if every else family_of(meta.provider_id, meta.name)
        found = [ledger.judge(one, family) for one in arguments]
        return tuple(one for one in found if one is not None and (meta.name, one.path, one.value) not in approved)

    def _ask_on(self, call: Call) -> None:
        """Give what a person has put in the place of untrusted arguments is approved as they see it, like any edit."""
        request = call.confirmation.request if call.confirmation is not None else None
        asked_by = request.rule_id if request is not None and request.edited_from else ""
        if request is not None and call.decision.effect == "allow" and asked_by.startswith(TAINT_IDS):
            call.decision = Decision(effect="ask", rule_id=asked_by, reason=request.question)
            call.rule_id = asked_by

    async def _remembered_for(self, call: Call, decision: Decision) -> Decision:
        """The decision, or an approval of these very arguments that a person wanted remembered."""
        remembered = await self._remembered.active(call.tool.meta.name)
        exact = (one for one in remembered if one.args_digest is not None and one.answers(call.query, decision))
        return next((one.decision for one in exact), decision)


def _arguments(call: Call, *, every: bool) -> list[Argument]:
    """Return the arguments that are looked at; with `every`, all of a call that does more than read."""
    meta = call.tool.meta
    reads = effective_level(meta) is Level.L0
    return addresses_of(meta, call.args) if reads else authority_of(meta, call.args, every=every)


def _in_question(call: Call) -> set[tuple[str, str, str]]:
    """Return what a person is asked about for this very call: to approve another one does not answer that."""
    shown = call.confirmation.untrusted if call.confirmation is not None else ()
    return {(call.tool.meta.name, one.path, one.value) for one in shown}


def _is_untrusted(call: Call, conversation: Conversation, ledger: Ledger) -> bool:
    """Return whether values go in that no trusted text holds, so that what comes out may be made of them."""
    given = conversation.given
    values = carried_by(call.tool.meta, call.args)
    return not all(ledger.trusts(one) for one in values if given is None or _is_among(one.value, given))


def _is_among(value: str, given: set[str]) -> bool:
    """Return whether a value, or a part of it that says something, is one of those that a model gave."""
    return value in given or any(len(one) >= _TELLING and (one in value or value in one) for one in given)
