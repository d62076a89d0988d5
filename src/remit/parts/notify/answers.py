"""Answers that people give where they are told: kept first, each once, and decided from the record.

    a press ──> notify/TARGET/answer/HASH of what the channel sent ──claim──> Settlement ──> the question

A process that dies in between leaves the stream to another one; what a channel sends again is the same stream. The
answer counts for the question, the call and the message that were shown, as that of the person whose account it is.

Who approves has seen everything that runs (rule 15). So a message has buttons only where it shows the call whole: its
arguments, unmasked and uncut, and nothing of it that needs the console. Else it says why, and has the link alone.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.errors import AppendConflictError, RemitError
from remit.journal.event import Blob, HeadPatch
from remit.journal.kinds import ConfirmationRequested, decode
from remit.journal.kinds.people import Via
from remit.parts.notify.kinds import AnswerReceived, AnswerSettled, NotificationQueued, NotificationSent
from remit.redact.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.journal.journal import Journal
    from remit.parts.notify.people import Accounts
    from remit.record.step import Decided
    from remit.record.views import ConfirmationView
    from remit.service.service import Service

LONGEST: Final = 2_800
"""Characters of a question that is shown whole, in units of UTF-16: Slack cuts at 3,000, Telegram refuses 4,097."""


class Answerable(NamedTuple):
    """A question, shown whole."""

    text: str
    confirmation: str
    digest: str

    @property
    def shown(self) -> str:
        """The digest of what is shown."""
        return sha256(self.text.encode())

    def mark(self, notification: str) -> str:
        """Return what a button brings back."""
        return msgspec.json.encode({"n": notification, "c": self.confirmation, "d": self.digest}).decode()


class ButtonMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mark of a button: the notification, the question and the digest of its call."""

    n: str
    c: str
    d: str


def answerable(view: ConfirmationView, *, erasable: bool, channel_counts: bool) -> Answerable | str:
    """Return a question shown whole, or why it has to be answered elsewhere."""
    text = text_of(view)
    reasons = {
        "answers on a channel do not count here": not channel_counts,
        "its arguments can be erased, and a message cannot": erasable,
        "it has arguments from untrusted text": bool(view.untrusted),
        "it was edited, and the difference is in the console": bool(view.edited_from),
        "the tool puts defaults in for what is left out": bool(view.tool) and view.defaults != {},
        "it is longer than a message shows": len(text.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST,
        "it is answered already": view.state != "pending",
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    return reason or Answerable(text, view.confirmation, view.digest)


def text_of(view: ConfirmationView) -> str:
    """The whole question, one fact a line; each character that cannot be seen stands as its number."""
    facts: dict[str, Any] = {
        "Tool": view.tool,
        "Level": view.capability_level,
        "Version": view.tool_version,
        "Question": view.question,
        "Asked by": view.principal,
        "For": view.caller,
        "Approvals needed": view.approvals if view.approvals > 1 else "",
        "May approve": ", ".join(view.may_answer),
        "Arguments": json.dumps(view.args, indent=2, ensure_ascii=False),
    }
    return "\n".join(f"{name}: {visible(str(value), _number)}" for name, value in facts.items() if value)


def _number(char: str) -> str:
    return char if char in "\n\t" else f"⟨U+{ord(char):04X}⟩"


KIND: Final = "notification"
_ANSWER: Final = "answer"
_DIGITS: Final = 32


class Press(NamedTuple):
    """A button that someone pressed in a message."""

    channel: str
    account: str
    place: str
    """The message, as the channel names it."""
    decision: str
    mark: ButtonMark
    reason: str
    sent: int
    """When the channel says it sent that, in seconds since the Unix epoch."""
    body: bytes
    """All that it sent."""
    id: str = ""
    """The name that the channel gives the press, if it sends one again in other words; empty: the digest of `body`."""


def is_answer(stream: str) -> bool:
    """Return whether a stream is that of an answer."""
    return stream.split("/")[2:3] == [_ANSWER]


async def keep_press(journal: Journal, target: str, press: Press) -> None:
    """Keep what someone pressed, unless that came before."""
    if press.decision not in {"approve", "deny"}:
        raise ValueError("no button of ours")
    decision: Literal["approve", "deny"] = "approve" if press.decision == "approve" else "deny"
    body = sha256(press.body)
    received = AnswerReceived(
        target=target,
        notification=press.mark.n,
        confirmation=press.mark.c,
        digest=press.mark.d,
        decision=decision,
        channel=press.channel,
        account=press.account,
        message=press.place,
        reason=press.reason,
        body=body,
        body_at=press.sent,
    )
    patch = HeadPatch(state="pending", due_at=journal.clock.now(), route=target, title=f"{_ANSWER} {press.mark.c}")
    name = sha256(f"{press.channel} {press.id}".encode()) if press.id else body
    stream = f"notify/{target}/{_ANSWER}/{name.removeprefix('sha256:')[:_DIGITS]}"
    with suppress(AppendConflictError):  # the channel sent it again
        await journal.create(stream, KIND, received, patch=patch, blobs=(Blob(body, press.body),))


class ChannelAnswers:
    """Decides questions by the answers that were kept."""

    def __init__(self, service: Service, journal: Journal, accounts: Accounts) -> None:
        self._service = service
        self._journal = journal
        self._accounts = accounts

    async def decide(self, received: AnswerReceived) -> AnswerSettled:
        """Decide as an answer says, if its person may; what it did."""
        principal = self._accounts.get((received.channel, received.account), "")
        if not principal:
            account = f"{received.channel} {received.account}"
            return _refused("PERSON_UNKNOWN", f"Your answer did not count: no [[people]] table of Remit has {account}.")
        shown = await self._shown(received)
        if shown is None:
            return _refused("MESSAGE_MISMATCH", "This button is not of this message, so your answer did not count.")
        body = await self._journal.blob(received.body) or b""
        via = Via(
            channel=received.channel,
            account=received.account,
            message=received.message,
            shown=shown,
            body=received.body,
            body_at=received.body_at,
        )
        try:
            view = await self._service.confirmations.decide_on_channel(
                received.confirmation,
                received.decision,
                digest=received.digest,
                by=principal,
                reason=received.reason,
                via=via,
                body=body,
            )
        except RemitError as error:
            return _refused(error.code.name, f"Your answer did not count: {error.message}", principal)
        return _taken(view, received, principal)

    async def _shown(self, received: AnswerReceived) -> str | None:
        """Return the digest of what the message showed that was answered; None: it is not the question's message."""
        events = await self._journal.left(f"notify/{received.target}/{received.notification}")
        payloads: list[Any] = [decode(event.kind, event.data) for event in events]
        sent = next((payload for payload in payloads if isinstance(payload, NotificationSent)), None)
        if sent is None or not sent.shown or sent.message != received.message:
            return None
        queued = payloads[0]
        question_events = await self._journal.left(queued.source) if isinstance(queued, NotificationQueued) else []
        request = decode(question_events[0].kind, question_events[0].data) if question_events else None
        same = isinstance(request, ConfirmationRequested) and request.confirmation == received.confirmation
        return sent.shown if same else None


def _refused(code: str, words: str, principal: str = "") -> AnswerSettled:
    return AnswerSettled(code=code, text=words, principal=principal)


def _taken(view: ConfirmationView, received: AnswerReceived, principal: str) -> AnswerSettled:
    missing = view.approvals - len(view.approved_by)
    absent = f" for {view.stand_ins[principal]}" if principal in view.stand_ins else ""
    did = "denied" if received.decision == "deny" else "approved"
    more = f"; {missing} more must approve." if view.state == "pending" else "."
    words = f"{principal} {did} {view.tool or 'it'}{absent}{more}"
    return AnswerSettled(state=view.state, text=words, principal=principal)


def end_of(view: ConfirmationView, decisions: Sequence[Decided]) -> str:
    """Return how a question ended, and by whom, in words."""
    approved = view.state in {"approved", "used"}
    counted = [each for each in decisions if each.decision == "approve"] if approved else decisions[-1:]
    names = [f"{each.by} for {each.instead_of}" if each.instead_of else each.by for each in counted if each.by]
    by = f" by {', '.join(names)}" if names else ""
    reason = f": {counted[-1].reason}" if counted and counted[-1].reason else "."
    return f"{view.tool or 'The question'}: {'approved' if approved else view.state}{by}{reason}"
