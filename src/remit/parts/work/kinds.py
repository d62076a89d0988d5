"""Events of work on an issue, and of issues that are kept here (contract: executors). All of these kinds are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload


class WorkOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a work unit: the issue that it stands for."""

    KIND: ClassVar[str] = "work_opened"
    issue_ref: str
    title: str = ""
    principal: str = ""
    parent: str = ""
    """The issue of which it is a part."""


class WorkRunStarted(Payload, frozen=True, kw_only=True):
    """Ours: this run is the active one from now on; a result of any other is archived."""

    KIND: ClassVar[str] = "work_run_started"
    run_id: str
    role: str
    executor: str
    order: OptionalRaw = UNSET
    order_blob: OptionalRef = UNSET
    by: str = ""
    reason: str = ""
    """Why another run was started; empty for the first one."""
    previous: str = ""
    """The run whose place it took."""
    job: str = ""
    """The job that carries it out; empty: someone does it outside of Remit."""
    group: str = ""
    """The group of workflow.toml for which the control plane started it; empty: someone did."""
    read_up_to: str = ""
    """The newest event of the issue's thread when it began."""
    next: str = ""
    """The next step, and the one who takes it, if it took the place of a run that gave no result."""
    trigger: str = ""
    """Under which a comment about that is written once; empty: none is."""
    comment: OptionalRaw = UNSET
    comment_blob: OptionalRef = UNSET


class WorkRunStopped(Payload, frozen=True, kw_only=True):
    """Ours: no run is active any more; what this one still sends is archived."""

    KIND: ClassVar[str] = "work_run_stopped"
    run_id: str
    reason: str
    by: str = ""


class WorkResultAccepted(Payload, frozen=True, kw_only=True):
    """Ours: the active run ended with this result. What is to be written to the issue is queued with it."""

    KIND: ClassVar[str] = "work_result_accepted"
    run_id: str
    state: str
    """The state of the issue from now on."""
    code: str = ""
    """The result's code, where it says why the run did not succeed."""
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    trigger: str = ""
    """Under which the comment is written once; empty: nothing is written."""
    comment: OptionalRaw = UNSET
    comment_blob: OptionalRef = UNSET
    patch: OptionalRaw = UNSET
    """Base64 of a line `base COMMIT`, and of a patch of the changes; none where its commits were pushed."""
    patch_blob: OptionalRef = UNSET
    by: str = ""
    """The person who adopted the result by hand."""


class WorkResultRefused(Payload, frozen=True, kw_only=True):
    """Ours: the active run ended without a result that could be used. A person has to look."""

    KIND: ClassVar[str] = "work_result_refused"
    run_id: str
    code: str
    reason: str


class WorkResultDiscarded(Payload, frozen=True, kw_only=True):
    """Ours: a result of a run that is not the active one. It is kept here, and merged nowhere."""

    KIND: ClassVar[str] = "work_result_discarded"
    run_id: str
    code: str
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET


class WorkWritten(Payload, frozen=True, kw_only=True):
    """Ours: the comment of this trigger stands in the issue."""

    KIND: ClassVar[str] = "work_written"
    trigger: str
    reference: str = ""
    """The comment, as its forge names it."""


class WorkMoved(Payload, frozen=True, kw_only=True):
    """Ours: a person, or a rule of the flow, put the issue into another state."""

    KIND: ClassVar[str] = "work_moved"
    state: str
    reason: str = ""
    by: str = ""
    blocked_by: tuple[str, ...] = ()
    """The open issues that it waits for: when all of them are closed, it is unblocked."""


class WorkControlled(Payload, frozen=True, kw_only=True):
    """Ours, alone in its stream: who holds the lease of this stream is the control plane."""

    KIND: ClassVar[str] = "work_controlled"


class IssueOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of an issue that is kept here."""

    KIND: ClassVar[str] = "issue_opened"
    number: int
    title: str
    body: OptionalRaw = UNSET
    body_blob: OptionalRef = UNSET
    labels: tuple[str, ...] = ()
    by: str = ""


class IssueCommented(Payload, frozen=True, kw_only=True):
    """Ours: a comment; its place in the stream is the number of the event."""

    KIND: ClassVar[str] = "issue_commented"
    body: OptionalRaw = UNSET
    body_blob: OptionalRef = UNSET
    trigger: str = ""
    by: str = ""


class IssueChanged(Payload, frozen=True, kw_only=True):
    """Ours: labels, assignee or standing of an issue, whole; what is not given stays."""

    KIND: ClassVar[str] = "issue_changed"
    labels: tuple[str, ...] | None = None
    assignee: str | None = None
    closed: bool | None = None
    by: str = ""


class OutboxOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of what is written to an issue."""

    KIND: ClassVar[str] = "outbox_opened"
    issue_ref: str


class OutboxAnnounced(Payload, frozen=True, kw_only=True):
    """Ours: a comment of this trigger is about to be posted; without a confirmation it may stand there already."""

    KIND: ClassVar[str] = "outbox_announced"
    trigger: str


class OutboxConfirmed(Payload, frozen=True, kw_only=True):
    """Ours: the comment of this trigger was posted. It is never posted again, also if someone deletes it."""

    KIND: ClassVar[str] = "outbox_confirmed"
    trigger: str
    reference: str
    """The comment, as its forge names it."""
