"""Events of questions to people, of the approvals that outlive them, and of the limits that rules set."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from remit.journal.kinds.calls import DecidedCall
from remit.journal.kinds.payload import (
    UNSET,
    OwnDigest,
    Payload,
)


class ConfirmationRequested(DecidedCall, frozen=True, kw_only=True):
    """A person is asked. In the confirmation's own stream it holds the whole call, in the caller's who waits for it."""

    KIND: ClassVar[str] = "confirmation_requested"
    confirmation: str
    digest: str
    tool_name: str = ""
    question: str = ""
    approvals: int = 1
    approvers: tuple[str, ...] = ()
    expires_at: int | None = None
    edited_from: str = ""
    model_call: bool = False
    """In the caller's stream: whether a model is to be asked, and not a tool."""
    sandbox: tuple[dict[str, Any], ...] = ()
    """The layers by which the skills of the caller make the sandbox stricter."""
    budgets: tuple[str, ...] = ()
    """Of a question to a model: the budgets that it goes beyond, as in `command_started`."""


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The later calls that an approval also holds for, as the person who approved said it."""

    scope: Literal["job", "session", "everything"]
    stream: str
    """The root of the job's or session's stream; empty for everything."""
    until: int
    """Microseconds since the Unix epoch."""
    exact: bool
    """Only calls with the same arguments."""


class Via(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way of an answer, and what lets its person decide beside their name."""

    channel: str = ""
    """The channel on which it came, such as `slack`; empty: a face of Remit."""
    account: str = ""
    """The person's account there."""
    message: str = ""
    """The message that was answered, as the channel names it."""
    shown: str = ""
    """Digest of what the message showed."""
    body: OwnDigest = ""
    """Digest of the answer as the channel sent it, which is kept."""
    body_at: int = 0
    """When the channel says it sent that, in seconds since the Unix epoch."""

    groups: tuple[str, ...] = ()
    """The groups among the approvers that the provider counted them among then."""
    instead_of: str = ""
    """The approver for whom they decided, who was absent then."""


class ConfirmationDecided(Payload, frozen=True, kw_only=True):
    """A person answered, or the question ended without an answer."""

    KIND: ClassVar[str] = "confirmation_decided"
    confirmation: str
    decision: Literal["approve", "deny", "edit", "expire", "revoke"]
    digest: str = ""
    by: str = ""
    reason: str = ""
    replaced_by: str = ""
    proof: str = ""
    signature: str = ""
    remember: Extension | msgspec.UnsetType = UNSET
    """Of an approval that holds for later calls too; the signature covers it."""
    via: Via | msgspec.UnsetType = UNSET


class ConfirmationPutOff(Payload, frozen=True, kw_only=True):
    """Ours: a client to which the question was put gave no decision: it stays open."""

    KIND: ClassVar[str] = "confirmation_put_off"
    confirmation: str
    client: str = ""
    """The program, as it names itself."""
    answer: Literal["decline", "cancel"]
    after_ms: int
    """Milliseconds from the question to the answer."""
    by_program: bool = False
    """Whether the program declined by itself: faster than a person can, or it says that no person is there."""


class ConfirmationUsed(Payload, frozen=True, kw_only=True):
    """Ours: the approval was spent on the call it was given for, in the transaction that announced that call."""

    KIND: ClassVar[str] = "confirmation_used"
    confirmation: str
    invocation_id: str


class ApprovalRemembered(Payload, frozen=True, kw_only=True):
    """Ours, in a rule's own stream: an approval that also holds for later calls, within its scope."""

    KIND: ClassVar[str] = "approval_remembered"
    rule: dict[str, Any]
    confirmation: str = ""
    by: str = ""
    answers: tuple[ConfirmationDecided, ...] = ()
    """The approvals that say so, each with its proof."""


class ApprovalRevoked(Payload, frozen=True, kw_only=True):
    """Ours, in a rule's own stream: the remembered approval holds no more."""

    KIND: ClassVar[str] = "approval_revoked"
    by: str = ""
    reason: str = ""


class ViewSaved(Payload, frozen=True, kw_only=True):
    """Ours, in a view's own stream: someone keeps a filter of the list of jobs under a name."""

    KIND: ClassVar[str] = "view_saved"
    name: str
    query: str
    by: str = ""


class ViewRemoved(Payload, frozen=True, kw_only=True):
    """Ours, in a view's own stream: it is kept no more."""

    KIND: ClassVar[str] = "view_removed"
    by: str = ""


class LimitTaken(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a rule's limit: a call takes its part before it is announced."""

    KIND: ClassVar[str] = "limit_taken"
    rule_id: str
    intent: str
    """The idempotency key of the call: whatever becomes of it, it is counted once."""
    tool_name: str
    principal: str = ""
    stream: str = ""
    """Where the call is recorded."""
    step: str = ""
    amount: str = "0"
    """The amount that it adds to the sum, as a decimal number."""


class BudgetReached(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a budget of models: what was spent and reserved has reached a level."""

    KIND: ClassVar[str] = "budget_reached"
    budget: str
    period: str
    """The day (`2026-11-29`) or month (`2026-11`), UTC."""
    share: str = ""
    """The value that has the budget for itself."""
    level: int
    """Percent of the budget."""
    taken: str = ""
    """The part of it that was taken, in words."""
    stream: str = ""
    """Where the question is recorded that reached it."""
    step: str = ""


class LimitReturned(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a rule's limit: a call was undone, and counts no more."""

    KIND: ClassVar[str] = "limit_returned"
    intent: str
    """The idempotency key under which it took its part."""
    stream: str = ""
    """Where the call is recorded."""
    step: str = ""
    undo_step: str = ""
    """The step of the call that undid it."""


class UntrustedArgument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An argument of authority that no trusted text holds, and where it was seen instead."""

    path: str
    """Where it stands in the arguments, such as `to` or `files.path`."""
    role: str
    """Its role: `url`, `email`, `path`, `iban`, `command` or `id`."""
    value: str
    """The argument itself; its beginning, if it is very long."""
    seen: Literal["untrusted", "nowhere"]
    """Whether an untrusted output holds it, or nothing that the model was given."""
    step: str = ""
    """The step whose output holds it."""
    tool: str = ""
    """The tool that gave that output, or what else the text is."""
    place: str = ""
    """The page or file that it read; empty: its arguments name none."""
    before: str = ""
    """The text before it there."""
    span: str = ""
    """The value, or the part of it that was found, as it stands there."""
    after: str = ""
    """The text after it there."""

    @property
    def words(self) -> str:
        """The finding in one line, without the text around it."""
        if self.seen == "nowhere":
            return f"{self.path} ({self.role}) appears in nothing that the model was given"
        where = f"{self.tool} of {self.place}" if self.place else self.tool
        where = f"{where}, step {self.step}" if self.step else where
        return f"{self.path} ({self.role}) comes from {where}, which is not trusted"

    @property
    def excerpt(self) -> str:
        """Return what was found, in its text; empty if it was found nowhere."""
        return f"…{self.before}»{self.span}«{self.after}…" if self.span else ""
