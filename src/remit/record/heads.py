"""The stream that an identifier names, and its head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.ids import decode as decode_id
from remit.jobs.state import ENDED, KIND, stream_of
from remit.journal.event import HeadQuery

if TYPE_CHECKING:
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal

SESSION: Final = "session"
"""The kind of sessions' streams."""
PART: Final = "session_part"
"""The kind of the streams of processes that joined a session."""
CALL: Final = "call"
"""The kind of the streams of calls from outside jobs that outlive a request."""
_IDENTIFIER: Final = "Give an id of job_ and 26 digits, or none for a new job."
_RECENT: Final = 10_000
_KINDS: Final = {"ses": SESSION, "call": CALL}


def stream_named(identifier: str) -> str:
    """The stream of a job, a session, or a call from outside jobs."""
    kind = _KINDS.get(identifier.partition("_")[0])
    return f"{kind}/{identifier}" if kind else stream_of(identifier)


async def head_of(journal: Journal, identifier: str) -> StreamHead:
    """The head of a job or a session. Raises NotFoundError."""
    head = await journal.head(stream_named(identifier))
    if head is None:
        raise NotFoundError(f"no job {identifier}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
    return head


def _again(job: str, state: str) -> str:
    return (
        "Start a new one." if state == "completed" else (f"Run it again, keeping its finished steps: remit retry {job}")
    )


async def open_job(journal: Journal, job: str) -> StreamHead:
    """The head of a job that has not ended. Raises NotFoundError or StateError."""
    head = await journal.head(stream_of(job))
    if head is None:
        raise NotFoundError(f"no job {job}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
    if head.state in ENDED:
        raise StateError(f"{job} is already {head.state}", code=Code.JOB_FINISHED, remedy=_again(job, head.state))
    return head


async def prove_job(journal: Journal, head: StreamHead) -> None:
    """Raise ChainBrokenError for a job that no worker continues, because it is damaged or was forged."""
    journal.prove(head, (await journal.read(head.stream))[: head.seq])


def fit_identifier(job: str) -> str:
    """An identifier that a caller chose. Raises UsageError if it is not one."""
    prefix, _, digits = job.partition("_")
    try:
        decode_id(digits)
    except ValueError as error:
        raise UsageError(f"{job!r} is not a job's identifier: {error}", remedy=_IDENTIFIER) from error
    if prefix != KIND:
        raise UsageError(f"{job!r} is not a job's identifier", remedy=_IDENTIFIER)
    return job


async def find_job(journal: Journal, reference: str) -> str:
    """Return the identifier of a job that people name: see `Jobs.find`."""
    if reference == "last":
        if newest := await journal.heads(HeadQuery(kind=KIND, limit=1)):
            return newest[0].stream.partition("/")[2]
        raise NotFoundError("there are no jobs yet", remedy="Start one with `remit run`.")
    if await journal.head(stream_named(reference)) is not None:
        return reference
    heads = await journal.heads(HeadQuery(kind=KIND, limit=_RECENT)) if reference else []
    matches = [head for head in heads if head.stream.endswith(reference)]
    matches = matches or [head for head in heads if head.stream.startswith(stream_of(reference))]
    if len(matches) != 1:
        reason = f"fits {len(matches)} jobs" if matches else "is not the id of a job"
        raise NotFoundError(f"{reference!r} {reason}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
    return matches[0].stream.partition("/")[2]
