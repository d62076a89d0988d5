"""Issues that are kept in the journal, for who has no forge: `local#12`, its events `local#12/e34`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.canonical import as_json, sha256
from remit.codes import Code
from remit.errors import AppendConflictError, ProviderError
from remit.journal import kinds as k
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch, HeadQuery
from remit.parts.work import kinds as w
from remit.parts.work.outbox.port import Issue, Posted
from remit.parts.work.references import EventRef, IssueRef
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal

STREAM_KIND: Final = "issue"
_PROJECT: Final = "local"
_TITLE: Final = 200
_ATTEMPTS: Final = 100
_MAX_LABELS: Final = 50


class LocalForge:
    """The issues of one journal."""

    def __init__(self, journal: Journal, principal: str) -> None:
        self._journal = journal
        self._principal = principal

    @property
    def name(self) -> str:
        return _PROJECT

    @property
    def pulls(self) -> None:
        """Return None: the journal has no branches."""

    async def list_issues(self, *, labels: Sequence[str] = (), state: str = "open", limit: int = 100) -> list[Issue]:
        query = HeadQuery(
            kind=STREAM_KIND,
            states=() if state == "all" else (state,),
            labels=dict.fromkeys(labels, "yes"),
            limit=limit,
        )
        return [_listed(head) for head in await self._journal.heads(query)]

    async def get_issue(self, issue: IssueRef) -> Issue:
        head = await self._head(issue)
        events = [event for event in await self._journal.read(head.stream) if event.seq <= head.seq]
        return replace(_folded(issue, events), body=await self._body(events[0]), read_up_to=f"{issue}/e{head.seq}")

    async def create_issue(self, title: str, body: str, labels: Sequence[str], *, key: str) -> IssueRef:
        mark = f"key:{sha256(key.encode())[:32]}"
        known = await self._journal.heads(HeadQuery(kind=STREAM_KIND, labels={mark: "yes"}, limit=1))
        if known:
            return _issue_of(known[0])
        newest = await self._journal.heads(HeadQuery(kind=STREAM_KIND, limit=1))
        number = _issue_of(newest[0]).number + 1 if newest else 1
        packed = pack(as_json(body))
        for issue in (IssueRef(_PROJECT, number + offset) for offset in range(_ATTEMPTS)):
            opened = w.IssueOpened(
                number=issue.number,
                title=line(title, _TITLE),
                body=packed.inline,
                body_blob=packed.ref,
                labels=tuple(sorted(labels)),
                by=self._principal,
            )
            patch = HeadPatch(state="open", title=opened.title, labels=_marks(labels) | {mark: "yes"})
            try:
                await self._journal.create(_stream(issue), STREAM_KIND, opened, patch=patch, blobs=packed.blobs)
            except AppendConflictError:
                continue
            return issue
        raise ProviderError("Too many issues are created at the same moment.", cause=Code.lease_conflict)

    async def comments(self, issue: IssueRef) -> list[Posted]:
        head = await self._head(issue)
        posted = []
        for event in await self._journal.read(head.stream):
            if event.kind == w.IssueCommented.KIND:
                reference = str(EventRef(issue, event.seq))
                posted.append(Posted(reference=reference, body=await self._body(event), at=event.at))
        return posted

    async def find(self, issue: IssueRef, marker: str, *, in_doubt: bool = False) -> Posted | None:
        _ = in_doubt  # the journal shows at once what was written
        return next((posted for posted in await self.comments(issue) if marker in posted.body), None)

    async def append_event(self, issue: IssueRef, body: str, *, trigger: str) -> Posted:
        packed = pack(as_json(body))
        commented = w.IssueCommented(body=packed.inline, body_blob=packed.ref, trigger=trigger, by=self._principal)
        await self._head(issue)
        writer = await self._journal.post(_stream(issue), STREAM_KIND, commented, blobs=packed.blobs)
        reference = str(EventRef(issue, writer.seq))
        return Posted(reference=reference, body=body, at=self._journal.clock.now())

    async def mutate_issue(
        self,
        issue: IssueRef,
        *,
        labels: Sequence[str] | None = None,
        assignee: str | None = None,
        closed: bool | None = None,
    ) -> Issue:
        wanted = tuple(sorted(labels)) if labels is not None else None
        changed = w.IssueChanged(labels=wanted, assignee=assignee, closed=closed, by=self._principal)
        for _ in range(_ATTEMPTS):
            head = await self._head(issue)
            events = [event for event in await self._journal.read(head.stream) if event.seq <= head.seq]
            before = _folded(issue, events)
            after = _changed(before, changed)
            if after == before:
                break
            writer = self._journal.writer(head.stream, STREAM_KIND, head)
            patch = HeadPatch(state=after.state, labels=_marks(after.labels) | _keys(head))
            with suppress(AppendConflictError):  # someone else was faster: look again
                await self._journal.append(writer, changed, synced=True, patch=patch)
                break
        return await self.get_issue(issue)

    async def _head(self, issue: IssueRef) -> StreamHead:
        head = await self._journal.head(_stream(issue)) if issue.is_local else None
        if head is None:
            raise ProviderError(f"There is no issue {issue} here.", cause=Code.not_found)
        return head

    async def _body(self, event: Event) -> str:
        payload = k.decode(event.kind, event.data)
        if not isinstance(payload, w.IssueOpened | w.IssueCommented):
            return ""
        data = await self._journal.value(payload.body, payload.body_blob)
        return msgspec.json.decode(data, type=str) if data is not None else ""


def _folded(issue: IssueRef, events: Sequence[Event]) -> Issue:
    """Return an issue as its events tell it, without its body."""
    folded = Issue(issue_ref=str(issue), title="")
    for event in events:
        payload = k.decode(event.kind, event.data)
        if isinstance(payload, w.IssueOpened):
            folded = replace(folded, title=payload.title, labels=payload.labels)
        elif isinstance(payload, w.IssueChanged):
            folded = _changed(folded, payload)
    return folded


def _changed(issue: Issue, change: w.IssueChanged) -> Issue:
    """Return an issue with what a change gives."""
    return replace(
        issue,
        labels=issue.labels if change.labels is None else change.labels,
        assignee=issue.assignee if change.assignee is None else change.assignee,
        state=issue.state if change.closed is None else "closed" if change.closed else "open",
    )


def _listed(head: StreamHead) -> Issue:
    issue = _issue_of(head)
    return Issue(
        issue_ref=str(issue),
        title=head.title,
        labels=tuple(sorted(label for label in head.labels if not label.startswith("key:"))),
        state="closed" if head.state == "closed" else "open",
        read_up_to=f"{issue}/e{head.seq}",
    )


def _marks(labels: Sequence[str]) -> dict[str, str]:
    """Return labels as those of a head, by which issues are listed."""
    return dict.fromkeys(tuple(labels)[:_MAX_LABELS], "yes")


def _keys(head: StreamHead) -> dict[str, str]:
    return {label: value for label, value in head.labels.items() if label.startswith("key:")}


def _stream(issue: IssueRef) -> str:
    return f"issue/{issue.number}"


def _issue_of(head: StreamHead) -> IssueRef:
    return IssueRef(_PROJECT, int(head.stream.partition("/")[2]))
