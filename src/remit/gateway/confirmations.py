"""Questions to people, each a stream of its own, bound to one exact call (rule 7).

    pending ──approve (n of m)──> approved ──the call is announced──> used
       ├──deny─────> denied
       ├──edit─────> replaced      by a new confirmation with the edited arguments
       ├──time─────> expired       silence never approves
       └──a person takes it back, or the call needs it no more, or is another one now──> withdrawn, or replaced

The digest covers everything that decides what would run. The approver posts back the digest they were shown, and the
gateway compares it with the call once more before it runs.

A confirmation is written to by people, from any process, and by its caller. `claim` lets one call of a process at a
time use an approval. A person may take it back until then: the gateway looks at the question just before it announces
the call, as an announcement that met another writer here would silence the caller's own stream.

Whether approvals that stand in the journal prove what they have to: checked after the fact, by `remit verify`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus

import msgspec

from remit.canonical import digest, sha256
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    ChainBrokenError,
    JournalError,
    NotFoundError,
    PayloadErasedError,
    StateError,
    UsageError,
)
from remit.gateway.confirmation import (
    KIND,
    Confirmation,
    RecalledCall,
    folded,
    rebinding,
    state_of,
    stream_of,
    title_of,
)
from remit.gateway.conversation import packed_untrusted, read_untrusted, values_of
from remit.gateway.proof import ProofMode, Proofs
from remit.ids import new_id
from remit.journal.blobs import pack
from remit.journal.event import Blob, HeadPatch, HeadQuery, StreamHead
from remit.journal.kinds import ConfirmationDecided, ConfirmationPutOff, ConfirmationRequested, ConfirmationUsed, decode
from remit.journal.kinds.people import Via
from remit.journal.scan import every_head
from remit.policy.groups import groups_of, may_decide, most_of
from remit.redact import line

if TYPE_CHECKING:
    from remit.http.people import People
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.kinds import UntrustedArgument
    from remit.journal.writer import Draft


class CheckedAnswers(msgspec.Struct, frozen=True):
    """What checking the answers to a question found."""

    signed: int = 0
    """Signatures that hold."""
    unchecked: int = 0
    """Signatures that could not be checked, since no file of allowed signers is named."""
    problems: tuple[tuple[Code, str], ...] = ()


async def check(journal: Journal, proofs: Proofs, head: StreamHead) -> CheckedAnswers:
    """Check the answers to the question in a stream, whose chain holds.

    A signature has to be one of the person it names, at the time of the answer (SIGNATURE_INVALID). The digest has to
    be that of the recorded call, and a call that ran needs as many approvals with the proof that `confirm.proof` asks
    for as its rule says (APPROVAL_UNPROVEN).
    """
    request, decisions, approvals, used = _read(await journal.read(head.stream))
    if request is None:
        return CheckedAnswers()
    problems: list[tuple[Code, str]] = []
    if not await _bound(journal, head, request):
        reason = f"{head.stream}: the recorded call is not the call that was approved"
        problems.append((Code.APPROVAL_UNPROVEN, reason))
    signed = [(at, decision) for at, decision in approvals if decision.signature]
    wrong = [
        decision.by for at, decision in signed if proofs.signers and not await proofs.signed(request, decision, at)
    ]
    texts = [f"{head.stream}: the signature in the name {by!r} does not hold" for by in wrong]
    problems += [(Code.SIGNATURE_INVALID, text) for text in texts]
    if used:
        proven = {
            decision.by for decision in await proofs.counted(request, ((decision, at) for at, decision in approvals))
        }
        if len(proven) < request.approvals:
            reason = (
                f"{head.stream}: a call ran on {len(proven)} of {request.approvals} approvals that are {proofs.words}"
            )
            problems.append((Code.APPROVAL_UNPROVEN, reason))
    for decision in decisions:
        if decision.via and decision.via.body and (reason := await _unfit(journal, decision, decision.via)):
            problems.append((Code.APPROVAL_UNPROVEN, f"{head.stream}: the answer in the name {decision.by!r} {reason}"))
    known = len(signed) if proofs.signers else 0
    return CheckedAnswers(known - len(wrong), len(signed) - known, tuple(problems))


def _read(
    events: Sequence[Event],
) -> tuple[ConfirmationRequested | None, list[ConfirmationDecided], list[tuple[int, ConfirmationDecided]], bool]:
    """The question, the answers, the approvals and when they were given, and whether the call ran."""
    request: ConfirmationRequested | None = None
    decisions: list[ConfirmationDecided] = []
    approvals: list[tuple[int, ConfirmationDecided]] = []
    used = False
    for event in events:
        payload = decode(event.kind, event.data)
        if isinstance(payload, ConfirmationRequested):
            request = payload
        elif isinstance(payload, ConfirmationDecided):
            decisions.append(payload)
            approvals += [(event.at, payload)] if payload.decision == "approve" else []
        used = used or isinstance(payload, ConfirmationUsed)
    return request, decisions, approvals, used


async def _unfit(journal: Journal, decided: ConfirmationDecided, via: Via) -> str:
    """Return why what a channel sent does not fit the answer that was made of it; empty: it does."""
    body = await journal.blob(via.body)
    if body is None:
        return f"came by {via.channel}, and what was sent is not kept"
    text = unquote_plus(body.decode("utf-8", "replace"))
    digits = decided.digest.removeprefix("sha256:")[:32]  # all that a button of Telegram has room for
    account = all(re.search(rf"\b{re.escape(part)}\b", text) for part in via.account.split("/"))
    fits = sha256(body) == via.body and account and decided.confirmation in text and digits in text
    return "" if fits else f"came by {via.channel}, and what was sent there does not fit it"


async def _bound(journal: Journal, head: StreamHead, request: ConfirmationRequested) -> bool:
    """Return whether the recorded call is the one that its digest stands for; also if its arguments were erased."""
    if not request.tool_name:
        return True  # a recipe asked, and no call hangs on the answer
    try:
        encoded = await journal.value(request.args, request.args_blob)
    except PayloadErasedError:
        return True
    args = msgspec.json.decode(encoded) if encoded is not None else None
    return rebinding(request, head.stream.rpartition("/confirmation/")[0], args) == request.digest


Answer = ConfirmationDecided | ConfirmationPutOff
_log: Final = logging.getLogger("remit.gateway")
_NO_SUCH: Final = "`remit confirm` lists the open ones."
_LOOK_AGAIN: Final = "Review the call again before you decide."
_PROVE: Final[dict[ProofMode, str]] = {
    "any": "",
    "terminal": "Answer with `remit confirm ID` at a terminal.",
    "channel": "Let someone else answer, on a channel or over HTTP with a token of their own.",
    "token": "Let someone else answer over HTTP, with a token of their own.",
    "signed": "Let someone else answer: `remit confirm ID --approve --sign KEY`.",
}
_ASKER: Final = "principal"
FindPeople = Callable[[], "People | None"]
"""Finds everyone who logs in, once a question asks for their groups."""
_REASON: Final = 1_000


FindStandIns = Callable[[Collection[str]], Mapping[str, str]]
"""Finds who stands in now for one of these people, each with that person, who is absent."""


def _no_people() -> None:
    return None


def no_stand_ins(_people: Collection[str]) -> Mapping[str, str]:
    """No one stands in for another."""
    return {}


class Right(msgspec.Struct, frozen=True):
    """The right of someone to decide beside their name."""

    groups: tuple[str, ...] = ()
    """The provider's groups that they are in, among the approvers."""
    instead_of: str = ""
    """The absent approver for whom they stand in."""


NO_RIGHT: Final = Right()


class Confirmations:
    """Asks, looks up and decides."""

    def __init__(
        self,
        journal: Journal,
        proofs: Proofs | None = None,
        people: FindPeople = _no_people,
        stand_ins: FindStandIns = no_stand_ins,
    ) -> None:
        self._journal = journal
        self.proofs = proofs or Proofs()
        self._people = people
        self._stand_ins = stand_ins
        self._claimed: set[str] = set()

    # --- asking

    def open(
        self,
        caller: str,
        request: ConfirmationRequested,
        args: Any,
        title: str,
        untrusted: tuple[UntrustedArgument, ...] = (),
    ) -> tuple[Draft, tuple[Blob, ...]]:
        """Draft a new question, to be committed together with the caller's own record of it."""
        packed, refs = pack(msgspec.json.encode(args)), packed_untrusted(untrusted)
        request = msgspec.structs.replace(
            request, args=packed.inline, args_blob=packed.ref, untrusted=refs.inline, untrusted_blob=refs.ref
        )
        writer = self._journal.writer(stream_of(caller, request.confirmation), KIND)
        title = request.tool_name if writer.subject else title  # a head holds nothing of what can be erased
        labels = {"id": request.confirmation, _ASKER: request.principal}
        patch = HeadPatch(state="pending", due_at=request.expires_at, title=title, labels=labels)
        return writer.draft(request, patch=patch), (*packed.blobs, *refs.blobs)

    # --- looking up

    async def load(self, stream: str) -> Confirmation | None:
        """The confirmation kept in a stream."""
        head = await self._journal.head(stream)
        return await self._fold(head) if head is not None else None

    async def newest(self, caller: str, confirmation: str) -> Confirmation | None:
        """A confirmation of a caller, or the one that replaced it last."""
        question = await self.load(stream_of(caller, confirmation))
        while question is not None and question.replaced_by:
            following = await self.load(stream_of(caller, question.replaced_by))
            if following is None:
                return question
            question = following
        return question

    async def recall(self, caller: str, confirmation: str) -> RecalledCall | None:
        """The outcome of a confirmation of a caller, and which call it was asked for."""
        first = await self.load(stream_of(caller, confirmation))
        while first is not None and first.request.edited_from:
            first = await self.load(stream_of(caller, first.request.edited_from))
        newest = await self.newest(caller, confirmation)
        if first is None or newest is None or not first.request.tool_name:
            return None  # there is none, or it is a question that a recipe asked, which approves no call
        return RecalledCall(newest, first.request.tool_name, digest(first.args))

    async def find(self, reference: str) -> Confirmation:
        """Find one by its identifier, or a beginning or ending that fits only one open one. Raises NotFoundError."""
        heads = await self._journal.heads(HeadQuery(kind=KIND, labels={"id": reference}, limit=2)) if reference else []
        if not heads and reference:
            ids = [(head, head.stream.rpartition("/")[2]) for head in await self._open()]
            heads = [head for head, name in ids if name.endswith(reference)]
            heads = heads or [head for head, name in ids if name.startswith(reference)]
        confirmation = await self._fold(heads[0]) if len(heads) == 1 else None
        if confirmation is None:
            reason = "fits several confirmations" if heads else "is not the id of a confirmation"
            raise NotFoundError(f"{reference!r} {reason}", code=Code.CONFIRMATION_NOT_FOUND, remedy=_NO_SUCH)
        return confirmation

    async def pending(self, caller: str | None = None) -> list[Confirmation]:
        """Questions someone can still answer, oldest first; of one caller, or all. Those not proven are left out."""
        return [question async for question in self.each_pending(caller)]

    async def each_pending(self, caller: str | None = None, after: str = "") -> AsyncIterator[Confirmation]:
        """The same, read one after another, for a caller that needs only the first; those that follow `after`.

        Raises NotFoundError if `after` is the identifier of no question, open or not.
        """
        last = _age((await self.find(after)).head) if after else (0, "")
        for head in sorted(await self._open(f"{caller}/{KIND}/" if caller else ""), key=_age):
            if _age(head) <= last:
                continue
            try:
                confirmation = await self._fold(head)
            except ChainBrokenError as error:  # this one cannot be answered, and the others can
                _log.warning("%s is left out: %s", head.stream, error.message)
                continue
            if confirmation is not None and not confirmation.lapsed(self._journal.clock.now()):
                yield confirmation

    async def _open(self, prefix: str = "") -> list[StreamHead]:
        """The heads of all questions that are not answered, below a prefix."""
        query = HeadQuery(kind=KIND, states=("pending",), prefix=prefix)
        return [head async for head in every_head(self._journal, query)]

    async def full(self, principal: str, most: int) -> bool:
        """Return whether so many questions of a principal, or more, can still be answered."""
        query = HeadQuery(kind=KIND, states=("pending",), labels={_ASKER: principal}, limit=most)
        now = self._journal.clock.now()
        return sum(head.due_at is None or head.due_at > now for head in await self._journal.heads(query)) >= most

    # --- deciding

    async def decide(
        self, confirmation: Confirmation, decision: ConfirmationDecided, body: bytes = b""
    ) -> Confirmation:
        """Record one person's approval or refusal, and wake the caller once it counts; the question as that left it.

        `body` is the answer as a channel sent it, which `via` names. One that came already changes nothing, nor does
        the same approval of the same person.

        Raises StateError (CONFIRMATION_CLOSED, CONFIRMATION_EXPIRED, CONFIRMATION_MISMATCH) or UsageError
        (DECIDER_NOT_ALLOWED).
        """
        if decision.decision not in {"approve", "deny"}:
            raise UsageError(f"{decision.decision} is not a decision a person gives here", remedy="Approve or deny.")
        decision = msgspec.structs.replace(decision, reason=line(decision.reason, _REASON))
        blobs = (Blob(sha256(body), body),) if body else ()
        while True:
            if _came(confirmation, decision):
                return confirmation
            right = await self._check(confirmation, decision.by)
            if decision.digest != confirmation.request.digest:
                msg = f"{confirmation.id}: this digest does not match the call that waits"
                raise StateError(msg, code=Code.CONFIRMATION_MISMATCH, remedy=_LOOK_AGAIN)
            if right != NO_RIGHT:
                via = msgspec.structs.replace(decision.via or Via(), groups=right.groups, instead_of=right.instead_of)
                decision = msgspec.structs.replace(decision, via=via)
            if decision.decision == "approve":
                await self.check_proof(confirmation, decision)
                if _counts(confirmation, decision):
                    return confirmation
            decided = msgspec.structs.replace(confirmation, decisions=(*confirmation.decisions, decision))
            if decision.decision == "approve":
                await self._check_key(decided)
            state = "denied" if decision.decision == "deny" else "approved" if decided.enough else "pending"
            try:
                wakes = () if state == "pending" else (confirmation.caller,)
                await self._append(confirmation, decision, state, wakes=wakes, blobs=blobs)
            except AppendConflictError:
                confirmation = await self._again(confirmation)  # someone else decided at the same moment
                continue
            left = await self._again(confirmation)
            # The call that waited may have used an approval by now. The answer says what this decision did; any process
            # that writes to it next is at its old head, and is refused.
            return left if left.head.seq == confirmation.head.seq + 1 else msgspec.structs.replace(decided, state=state)

    async def put_off(self, question: Confirmation, answer: ConfirmationPutOff) -> None:
        """Record an answer of a client that decides nothing; of a question that is over by now, nothing is recorded."""
        while question.state == "pending" and not await self._end(question, answer, "pending"):
            question = await self._again(question)

    async def edit(self, confirmation: Confirmation, args: Any, by: str, reason: str = "") -> Confirmation:
        """Replace an open question by one with other arguments, which has to be approved in its own right.

        Raises as `decide` does, or NotCanonicalError.
        """
        while True:
            await self._check(confirmation, by)
            request = confirmation.request
            edited = msgspec.structs.replace(
                request,
                confirmation=new_id("c"),
                edited_from=confirmation.id,
                digest=rebinding(request, confirmation.caller, args),
            )
            untrusted = tuple(argument for argument in confirmation.untrusted if argument.value in values_of(args))
            opened, blobs = self.open(confirmation.caller, edited, args, title_of(request.tool_name, args), untrusted)
            decision = ConfirmationDecided(
                confirmation=confirmation.id,
                decision="edit",
                by=by,
                reason=line(reason, _REASON),
                replaced_by=edited.confirmation,
            )
            closing = self._draft(confirmation, decision, "replaced")
            try:
                await self._journal.commit(closing, opened, synced=True, blobs=blobs, wakes=(confirmation.caller,))
            except AppendConflictError:
                confirmation = await self._again(confirmation)
                continue
            return await self._again(confirmation, stream_of(confirmation.caller, edited.confirmation))

    async def revoke(self, confirmation: Confirmation, by: str, reason: str = "") -> Confirmation:
        """Take back an approval that no call has used, for a person who may decide; the call asks again.

        The transaction that uses an approval decides if both happen at once. Raises StateError (CONFIRMATION_CLOSED) or
        UsageError (DECIDER_NOT_ALLOWED).
        """
        while True:
            if confirmation.state != "approved" or not confirmation.request.tool_name:
                standing = f"{confirmation.id} is {confirmation.state}"
                msg = f"{standing}; only an approval of a call that was not used can be taken back"
                raise StateError(msg, code=Code.CONFIRMATION_CLOSED, remedy="There is nothing left to decide.")
            await self._check_person(confirmation, by)
            if await self.release(confirmation, reason, by):
                return await self._again(confirmation)
            confirmation = await self._again(confirmation)  # it was used, or someone else was faster

    async def release(self, confirmation: Confirmation, reason: str, by: str) -> bool:
        """End a question, or an unused approval, in a person's name, and wake its caller; False: it just changed."""
        decision = ConfirmationDecided(
            confirmation=confirmation.id, decision="revoke", by=by, reason=line(reason, _REASON)
        )
        try:
            await self._append(confirmation, decision, "withdrawn", wakes=(confirmation.caller,))
        except AppendConflictError:
            return False
        return True

    # --- the caller's part

    async def expire(self, confirmation: Confirmation) -> bool:
        """Record that no one answered in time; False: someone did, at the same moment."""
        decision = ConfirmationDecided(
            confirmation=confirmation.id, decision="expire", digest=confirmation.request.digest
        )
        return await self._end(confirmation, decision, "expired")

    async def withdraw(self, confirmation: Confirmation, reason: str, *, replaced_by: str = "") -> bool:
        """End a question, or an unused approval, that its caller needs no more; False: it just changed."""
        decision = ConfirmationDecided(
            confirmation=confirmation.id, decision="revoke", reason=line(reason, _REASON), replaced_by=replaced_by
        )
        if confirmation.state == "approved" and not self.claim(confirmation):
            return False
        try:
            return await self._end(confirmation, decision, "replaced" if replaced_by else "withdrawn")
        except JournalError:
            self.unclaim(confirmation)
            raise

    def claim(self, confirmation: Confirmation) -> bool:
        """Return whether the calling task, and no other one, may now end this approval."""
        if confirmation.id in self._claimed:
            return False
        self._claimed.add(confirmation.id)
        return True

    def unclaim(self, confirmation: Confirmation) -> None:
        """Let another task end the approval, since this one could not."""
        self._claimed.discard(confirmation.id)

    def use(self, confirmation: Confirmation, invocation_id: str) -> Draft:
        """Draft the end of a claimed approval, to be committed with the announcement of its call."""
        writer = self._journal.writer(confirmation.stream, KIND, confirmation.head)
        used = ConfirmationUsed(confirmation=confirmation.id, invocation_id=invocation_id)
        return writer.draft(used, patch=HeadPatch(state="used", closed=True, due_at=None))

    async def check(self, head: StreamHead) -> CheckedAnswers:
        """Return whether the answers to a question prove what they have to; its chain holds."""
        return await check(self._journal, self.proofs, head)

    # --- common

    async def _check(self, confirmation: Confirmation, by: str) -> Right:
        """Return what lets a person decide beside their name. Raises as `decide` does."""
        if confirmation.lapsed(self._journal.clock.now()) and await self.expire(confirmation):
            raise StateError(f"{confirmation.id} has expired", code=Code.CONFIRMATION_EXPIRED, remedy="Ask again.")
        if confirmation.state != "pending":
            remedy = (
                f"Answer the question that replaced it: remit confirm {confirmation.replaced_by}"
                if confirmation.replaced_by
                else "There is nothing left to decide."
            )
            raise StateError(
                f"{confirmation.id} is already {confirmation.state}", code=Code.CONFIRMATION_CLOSED, remedy=remedy
            )
        return await self._check_person(confirmation, by)

    async def _check_person(self, confirmation: Confirmation, by: str) -> Right:
        """Return what lets a person decide beside their name. Raise UsageError (DECIDER_NOT_ALLOWED)."""
        request = confirmation.request
        people = self._people() if by and most_of(request.approvers) == float("inf") else None
        groups = groups_of(request.approvers, await people.groups(by)) if people is not None else ()
        instead_of = "" if may_decide(request.approvers, by, [*groups]) else self._absent(confirmation, by)
        if not by or not (instead_of or may_decide(request.approvers, by, [*groups])):
            who = f"; {', '.join(request.approvers)} may" if request.approvers else ""
            msg = f"{by or 'nobody'} cannot decide {confirmation.id}{who}"
            remedy = "Ask one of them." if request.approvers else "Say who decides."
            raise UsageError(msg, code=Code.DECIDER_NOT_ALLOWED, remedy=remedy)
        if request.approvals > 1 and by == request.principal:
            msg = f"{by} requested this call, so {by} cannot be one of its {request.approvals} approvers"
            raise UsageError(msg, code=Code.DECIDER_NOT_ALLOWED, remedy="Ask someone else.")
        deputies = {decision.via.instead_of: decision.by for decision in confirmation.decisions if decision.via}
        if deputy := deputies.get(by):
            msg = f"{deputy} has approved {confirmation.id} in place of {by}"
            raise UsageError(msg, code=Code.DECIDER_NOT_ALLOWED, remedy="Ask someone else.")
        return Right(groups, instead_of)

    def deputies(self, request: ConfirmationRequested, over: Collection[str] = ()) -> dict[str, str]:
        """Return who stands in now for approvers that are not over; neither is who requested the call."""
        absent = [name for name in request.approvers if name != request.principal and name not in over]
        return {by: name for by, name in self._stand_ins(absent).items() if by != request.principal}

    def _absent(self, confirmation: Confirmation, by: str) -> str:
        """Return the approver who is absent and in whose place a person decides; empty: no one's."""
        over = {*confirmation.approved_by, *(d.via.instead_of for d in confirmation.decisions if d.via)}
        return self.deputies(confirmation.request, over).get(by, "")

    async def unchanged(self, confirmation: Confirmation) -> bool:
        """Return whether nothing was written to a question since it was loaded."""
        head = await self._journal.head(confirmation.stream)
        return head is not None and head.seq == confirmation.head.seq

    async def check_proof(self, confirmation: Confirmation, approval: ConfirmationDecided) -> None:
        """Raise UsageError (DECIDER_NOT_ALLOWED) if an approval does not prove what it has to."""
        if refusal := await self.proofs.refusal(confirmation.request, approval):
            raise UsageError(
                f"{confirmation.id}: {refusal}", code=Code.DECIDER_NOT_ALLOWED, remedy=_PROVE[self.proofs.mode]
            )

    async def _check_key(self, decided: Confirmation) -> None:
        """Raise UsageError if the newest approval is signed with a key that has approved in another name."""
        decision = [(answer, None) for answer in decided.decisions if answer.decision == "approve"]
        if len(await self.proofs.counted(decided.request, decision)) < len(decision):
            msg = f"{decided.id}: this key has already approved under another name"
            raise UsageError(msg, code=Code.DECIDER_NOT_ALLOWED, remedy="Ask someone else.")

    async def _again(self, confirmation: Confirmation, stream: str = "") -> Confirmation:
        again = await self.load(stream or confirmation.stream)
        if again is None:
            raise NotFoundError(stream or confirmation.stream, code=Code.CONFIRMATION_NOT_FOUND)
        return again

    async def _end(self, question: Confirmation, decision: Answer, state: str) -> bool:
        try:
            await self._append(question, decision, state)
        except AppendConflictError:
            return False
        return True

    async def _append(
        self,
        question: Confirmation,
        decision: Answer,
        state: str,
        wakes: tuple[str, ...] = (),
        blobs: tuple[Blob, ...] = (),
    ) -> None:
        await self._journal.commit(self._draft(question, decision, state), synced=True, wakes=wakes, blobs=blobs)

    def _draft(self, confirmation: Confirmation, decision: Answer, state: str) -> Draft:
        writer = self._journal.writer(confirmation.stream, KIND, confirmation.head)
        if state == "pending":
            return writer.draft(decision)
        closed = state != "approved"
        return writer.draft(decision, patch=HeadPatch(state=state, closed=closed, due_at=None))

    async def _fold(self, head: StreamHead) -> Confirmation | None:
        """The confirmation as it is at this head, so that writing to it after a later change is refused."""
        events = [event for event in await self._journal.read(head.stream) if event.seq <= head.seq]
        self._journal.prove(head, events)
        request, decisions, used, decided_at = folded(events)
        if request is None:
            return None
        counted = await self.proofs.counted(
            request, ((decision, None) for decision in decisions if decision.decision == "approve")
        )
        decisions = [decision for decision in decisions if decision.decision != "approve" or decision in counted]
        encoded = await self._journal.value(request.args, request.args_blob)
        return Confirmation(
            id=request.confirmation,
            stream=head.stream,
            state="used" if used else state_of(request, decisions),
            request=request,
            args=msgspec.json.decode(encoded) if encoded is not None else None,
            decisions=tuple(decisions),
            head=head,
            untrusted=await read_untrusted(request.untrusted, request.untrusted_blob, self._journal.value),
            decided_at=decided_at,
        )


def _came(confirmation: Confirmation, decision: ConfirmationDecided) -> bool:
    """Return whether this very answer of a channel is among those that count."""
    body = decision.via.body if decision.via else ""
    return bool(body) and any(answer.via and answer.via.body == body for answer in confirmation.decisions)


def _counts(confirmation: Confirmation, approval: ConfirmationDecided) -> bool:
    """Return whether this person's approval counts already, and this one adds nothing to it."""
    own = [answer for answer in confirmation.decisions if answer.by == approval.by]
    same = any((answer.decision, answer.proof) == (approval.decision, approval.proof) for answer in own)
    return same and not approval.signature and approval.remember is msgspec.UNSET


def _age(head: StreamHead) -> tuple[int, str]:
    """Return when a question was asked, with its identifier, which tells those of one moment apart."""
    return head.created_at, head.stream.rpartition("/")[2]
