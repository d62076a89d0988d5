"""Remembered approvals in the journal: each a small stream that can be revoked (the rules themselves are policy's).

Its first event holds the answers that want it, each with the proof of who gave it. Where `confirm.proof` asks for one,
they count as answers to the question itself do (rule 15): the question says what was approved, and the answers say who
approved it, where it holds, until when and for which arguments. What the rule beside them says is compared with that.

The calls that remembered approvals allowed, checked after the fact by `remit verify`: could they rest on those?
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    ChainBrokenError,
    NotFoundError,
    PayloadErasedError,
    PolicyError,
    UsageError,
)
from remit.journal.event import HeadPatch, HeadQuery, StreamHead
from remit.journal.kinds import ApprovalRemembered, ApprovalRevoked, CommandStarted, ToolInvocationStarted, decode
from remit.journal.kinds.people import Extension
from remit.journal.scan import every_head
from remit.journal.sharded.placement import new_identifier
from remit.policy.approval import Remembered, parse_remembered

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.confirmations import Confirmations
    from remit.gateway.proof import Proofs
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.kinds import ConfirmationDecided


KIND: Final = "approval"
_TOOL: Final = "tool"
"""Label of the stream's head: the tool's full name."""
_log: Final = logging.getLogger("remit.gateway")


class RememberedApprovals:
    """Keeps, lists and revokes them.

    They stand in `journal`; if they do not `count`, none is ever active and none is made. `confirmations` say what was
    approved, and which answers count.
    """

    def __init__(self, journal: Journal, confirmations: Confirmations, *, count: bool = True) -> None:
        self._journal = journal
        self._confirmations = confirmations
        self.count = count

    async def active(self, tool: str | None = None) -> list[Remembered]:
        """Those that hold now, newest first, no matter who made them, in whatever process; for one tool, or all."""
        if not self.count:
            return []
        now = self._journal.clock.now()
        query = HeadQuery(kind=KIND, states=("active",), labels={_TOOL: tool} if tool else {})
        rules = [await self._load(head) async for head in every_head(self._journal, query)]
        return [rule for rule in rules if rule is not None and now < rule.expires_at]

    async def keep(
        self, rule: Remembered, confirmation: str, by: str, answers: tuple[ConfirmationDecided, ...] = ()
    ) -> Remembered:
        """Remember an approval that these answers want; its identifier is made here."""
        rule = msgspec.structs.replace(rule, id=await new_identifier("rule", KIND, self._journal.answers))
        event = ApprovalRemembered(rule=msgspec.to_builtins(rule), confirmation=confirmation, by=by, answers=answers)
        patch = HeadPatch(state="active", title=rule.tool, labels={_TOOL: rule.tool})
        await self._journal.create(f"{KIND}/{rule.id}", KIND, event, patch=patch)
        return rule

    async def revoke(self, identifier: str, by: str, reason: str = "") -> None:
        """End one, and the approval that it came with, unless a call has used that.

        Raises NotFoundError where none of this name is active.
        """
        stream = f"{KIND}/{identifier}"
        head = await self._journal.head(stream)
        revoked = ApprovalRevoked(by=by, reason=reason)
        patch = HeadPatch(state="revoked", closed=True)
        try:
            if head is not None and not head.closed:
                await self._journal.append(self._journal.writer(stream, KIND, head), revoked, synced=True, patch=patch)
                await self._end_question(identifier, by)
                return
        except AppendConflictError:
            pass  # someone revoked it at the same moment
        msg = f"no remembered approval {identifier!r} is active"
        raise NotFoundError(msg, code=Code.STREAM_NOT_FOUND, remedy="`remit policy rules` lists them.")

    async def _end_question(self, identifier: str, by: str) -> None:
        for event in await self._journal.read(f"{KIND}/{identifier}"):
            payload = decode(event.kind, event.data)
            if isinstance(payload, ApprovalRemembered) and payload.confirmation:
                try:
                    question = await self._confirmations.find(payload.confirmation)
                except (ChainBrokenError, NotFoundError, PayloadErasedError):
                    return  # nothing uses it
                if question.state == "approved":
                    await self._confirmations.release(question, f"remembered:{identifier} was revoked", by)

    async def _load(self, head: StreamHead) -> Remembered | None:
        """The approval; None for one that is not proven, or that this Remit cannot understand: it approves nothing."""
        stream = head.stream
        events = await self._journal.read(stream)
        remembered: Remembered | None = None
        try:
            self._journal.prove(head, [event for event in events if event.seq <= head.seq])
            for event in events:
                payload = decode(event.kind, event.data)
                if isinstance(payload, ApprovalRevoked):
                    return None  # whatever the head says (rule 14)
                if isinstance(payload, ApprovalRemembered) and event.seq <= head.seq:
                    remembered = await self._proven(payload)
        except (ChainBrokenError, PayloadErasedError, UsageError) as error:
            _log.warning("%s is left out: %s", stream, error.message)
            return None
        return remembered

    async def _proven(self, remembered: ApprovalRemembered) -> Remembered:
        """The approval, made by those who prove it. Raises PolicyError and what reading its question raises."""
        rule = parse_remembered(remembered.rule)
        if self._confirmations.proofs.mode == "any":
            return rule
        question = await self._confirmations.find(remembered.confirmation)
        return await proven(rule, remembered, question, self._confirmations.proofs)


async def proven(
    rule: Remembered, remembered: ApprovalRemembered, question: Confirmation, proofs: Proofs, at: int | None = None
) -> Remembered:
    """A remembered approval of a question, made by those whose answers prove it now, or `at` that moment.

    Raises PolicyError if they are too few, or if it covers other calls than they approved.
    """
    extension = Extension(
        scope=rule.scope, stream=rule.stream, until=rule.expires_at, exact=rule.args_digest is not None
    )
    answers = [(decision, at) for decision in remembered.answers if wants(decision, question, extension)]
    people = tuple(dict.fromkeys(decision.by for decision in await proofs.counted(question.request, answers)))
    if question.state == "denied" or len(people) < question.request.approvals:
        raise PolicyError(f"no {question.request.approvals} approvals that are {proofs.words} want it remembered")
    covered = extended(question, extension, people, made_at=rule.made_at)
    if not question.bound or msgspec.structs.replace(rule, id=covered.id, made_by=people) != covered:
        raise PolicyError("it covers other calls than were approved")
    return msgspec.structs.replace(rule, made_by=people)


def wants(answer: ConfirmationDecided, question: Confirmation, extension: Extension) -> bool:
    """Return whether an answer to a question says that its approval holds as far as this, and as long."""
    wanted = answer.remember
    return (
        isinstance(wanted, Extension)
        and (answer.decision, answer.confirmation) == ("approve", question.id)
        and answer.digest == question.request.digest
        and (wanted.scope, wanted.stream, wanted.exact) == (extension.scope, extension.stream, extension.exact)
        and extension.until <= wanted.until
    )


def extended(question: Confirmation, extension: Extension, people: tuple[str, ...], *, made_at: int) -> Remembered:
    """The rule that an approval of a question becomes, of what was asked about, whatever this process knows by now."""
    request = question.request
    return Remembered(
        id="new",
        tool=request.tool_name,
        provider_id=request.provider_id,
        contract_hash=request.contract_hash,
        tool_version=request.tool_version,
        capability_level=request.capability_level,
        prompt_hash=request.prompt_hash,
        args_digest=digest(question.args) if extension.exact else None,
        scope=extension.scope,
        stream=extension.stream,
        principal=request.principal,
        made_by=people,
        made_at=made_at,
        expires_at=extension.until,
    )


_CALL_OF_TOOL: Final = ToolInvocationStarted.KIND
_CALLS: Final = frozenset({_CALL_OF_TOOL, CommandStarted.KIND})
_PREFIX: Final = "remembered:"


class RememberedCalls:
    """The calls that remembered approvals allowed, noted as their streams are read, and whether those prove it."""

    def __init__(self, journal: Journal, confirmations: Confirmations) -> None:
        self._journal = journal
        self._confirmations = confirmations
        self._calls: dict[str, dict[tuple[str, str], str]] = {}
        """By rule: the tool and the digest of the arguments, and the stream of one such call."""

    def note(self, events: Sequence[Event], payloads: Sequence[Any]) -> None:
        """Take in events, with what they say."""
        for event, payload in zip(events, payloads, strict=True):
            if event.kind in _CALLS and payload is not None and payload.rule_id.startswith(_PREFIX):
                tool = (payload.tool_name, payload.arguments_hash) if event.kind == _CALL_OF_TOOL else ("", "")
                self._calls.setdefault(payload.rule_id.removeprefix(_PREFIX), {})[tool] = event.stream

    async def problems(self) -> list[tuple[str, str]]:
        """The calls whose remembered approval is not there, not proven, or covers another call: stream and words."""
        problems: list[tuple[str, str]] = []
        for rule, calls in self._calls.items():
            try:
                covered = await self._load(rule)
            except PayloadErasedError:
                continue
            except (ChainBrokenError, UsageError) as error:
                reason = f"a call ran on the remembered approval {rule}, which is not proven: {error.message}"
                problems += [(stream, f"{stream}: {reason}") for stream in dict.fromkeys(calls.values())]
                continue
            for (tool, arguments), stream in calls.items():
                if tool and (tool != covered.tool or covered.args_digest not in {None, arguments}):
                    problems.append((stream, f"{stream}: a call ran on {rule}, which covers other calls"))
        return problems

    async def _load(self, rule: str) -> Remembered:
        """A remembered approval as it was made. Raises UsageError unless it was proven then."""
        for event in await self._journal.read(f"{KIND}/{rule}"):
            payload = decode(event.kind, event.data)
            if isinstance(payload, ApprovalRemembered):
                remembered, proofs = parse_remembered(payload.rule), self._confirmations.proofs
                if proofs.mode == "any":
                    return remembered
                question = await self._confirmations.find(payload.confirmation)
                return await proven(remembered, payload, question, proofs, event.at)
        raise NotFoundError("it is not in the journal", code=Code.STREAM_NOT_FOUND)
