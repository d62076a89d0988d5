"""Units: what goes together, and why one has to stay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from remit.jobs.state import ENDED
from remit.journal.event import HeadQuery
from remit.journal.scanning import every_head
from remit.journal.stub import is_pruned
from remit.record.heads import CALL, SESSION
from remit.record.job_story import beside

if TYPE_CHECKING:
    from remit.journal.event import Head
    from remit.journal.journal import Journal

_WORK_DONE: Final = ("done",)
_STOPPED: Final = ("failed", "blocked")
"""States of a ticket that can be taken up again, and was not for as long as the rule says."""
_OPEN_QUESTION: Final = ("pending", "approved")
_NO_OUTCOME: Final = ("running", "uncertain")
"""The states of a call that was announced and has no outcome."""
_OVER: Final[dict[str, Callable[[Head], bool]]] = {
    "job": lambda head: head.closed and head.state in ENDED,
    "ticket": lambda head: head.closed or head.state in _STOPPED,
    "work": lambda head: head.state in _WORK_DONE,
    "session": lambda head: not head.closed,
}
"""By the kind of a root, whether nothing is going on there; sessions never end."""
_ABOVE: Final = (("ticket", "ticket", ""), ("work", "issue", "issue"))
"""Streams that a job may belong to: the kind, the job's label, and their label of that text; empty: their name."""


async def roots(journal: Journal, kind: str, wants: Callable[[Head], bool]) -> AsyncIterator[Head]:
    """Give the roots of a kind that are wanted and not pruned yet, the newest first: forks before what they fork."""
    async for head in every_head(journal, HeadQuery(kind=kind)):
        if wants(head) and not is_pruned(head):
            yield head


async def streams_of(journal: Journal, root: Head) -> list[Head]:
    """Return the heads of all that goes with a root, the root first."""
    found = [root, *await _below(journal, root.stream)]
    if root.kind == SESSION:
        for stream in await beside(journal, root.stream.partition("/")[2]):
            head = await journal.head(stream) if stream.startswith(f"{CALL}/") else None
            if head is not None and head.labels.get(SESSION) == root.stream.partition("/")[2]:  # its own
                found += [head, *await _below(journal, stream)]
    return found


async def _below(journal: Journal, stream: str) -> list[Head]:
    heads = [head async for head in every_head(journal, HeadQuery(prefix=f"{stream}/"))]
    return sorted(heads, key=lambda head: head.stream)


async def reason_to_stay(journal: Journal, heads: list[Head], now: int) -> str:
    """Say why a unit is not over, by its heads; empty: it is."""
    root = heads[0]
    if not _OVER[root.kind](root):
        return f"it is {root.state or 'open'}"
    for head in heads:
        if head.lease_until is not None and head.lease_until > now and not head.closed:
            return f"{head.lease_owner} works on it"
        if (
            head.kind == "confirmation"
            and head.state in _OPEN_QUESTION
            and (head.state == "pending" or root.kind == SESSION)
        ):
            return f"a question is open: {head.stream.rpartition('/')[2]}"
        if head.kind == CALL and head.state in _NO_OUTCOME:
            return f"a call is not over: {head.stream.partition('/')[2]}"
    return await _unfinished(journal, root) if root.kind == "job" else ""


async def _unfinished(journal: Journal, job: Head) -> str:
    """Say which ticket or issue a job belongs to that is not done."""
    for kind, label, theirs in _ABOVE:
        text = job.labels.get(label, "")
        if not text:
            continue
        if theirs:
            above = await journal.heads(HeadQuery(kind=kind, labels={theirs: text}, limit=1))
        else:
            above = [head] if (head := await journal.head(f"{kind}/{text}")) is not None else []
        if above and not _OVER[kind](above[0]):
            return f"its {kind} {text} is not done"
    return ""
