"""Streams: their events, the story they tell, and whether their chains hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from remit.codes import Code
from remit.jobs.state import KIND
from remit.journal.erasure import Erased, erasable, erase
from remit.journal.event import Event, HeadQuery, StreamHead
from remit.journal.lineage import forebears
from remit.journal.scan import every_head
from remit.operation import Here, WireName, operation
from remit.record.heads import CALL, head_of, stream_named
from remit.record.job_story import beside, story_of, whole_step
from remit.record.states import shown_state
from remit.record.story import Narrative
from remit.record.views import VerifyReport, job_row

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.models.tail import AnswerPiece
    from remit.record.story import EventStory
    from remit.service.verification import Elsewhere, Verifier

_HERE: Final = Here("checkpoints are compared where the journal is", "Run it on the server's machine.")
_JOB: Final = WireName("job", looked_up=True)


class Streams:
    """The streams of one journal.

    It looks at the journal of `services`, at the questions in it, and at what models are saying. `verifiers` makes
    those of parts.
    """

    def __init__(self, services: Services, verifiers: Callable[[Elsewhere], list[Verifier]] = lambda _: []) -> None:
        self._services = services
        self._verifiers = verifiers
        self._journal = services.journal

    # --- queries

    def name(self, identifier: str) -> str:
        """The stream of a job or session."""
        return stream_named(identifier)

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        """A stream's events."""
        return await self._journal.read(stream, after)

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """A stream's events, then each new one until the stream is closed."""
        return self._journal.follow(stream, after)

    async def changed(self, since: int) -> int:
        return await self._journal.changed(since)

    def said(self, identifier: str) -> AsyncIterator[AnswerPiece]:
        """Return what models say to a job or session from now on, piece by piece; it is not recorded yet."""
        return self._services.tails.follow(stream_named(identifier))

    async def heard(self, identifier: str, since: int) -> int:
        """Wait until a model of this process has said more than the mark `since` (0: nothing yet); the new mark."""
        return await self._services.tails.heard(stream_named(identifier), since)

    def speech(self, identifier: str) -> dict[str, str]:
        """Say what models of this process are saying to a job or session right now, by step; it is not recorded yet."""
        return self._services.tails.speech(stream_named(identifier))

    async def answers(self, stream: str) -> bool:
        """Return whether the part of the journal that has a stream answers."""
        return await self._journal.answers(stream)

    async def heads_changed(self, since: int) -> int:
        return await self._journal.heads_changed(since)

    @operation("jobs.trace", "GET /v1/jobs/{job}/trace", "read", "Tell what a job did.", codes=(Code.JOB_NOT_FOUND,))
    async def narrative(self, identifier: Annotated[str, _JOB]) -> Narrative:
        """Tell what a job or session did: times, versions, who allowed what.

        Raises NotFoundError.
        """
        story = await story_of(self._journal, identifier)
        head = await head_of(self._journal, identifier)
        narrative = story.narrative(stopped=head.kind == KIND and shown_state(job_row(head)) == "stopped")
        return msgspec.structs.replace(
            narrative, steps=tuple([await whole_step(self._journal, step) for step in narrative.steps])
        )

    async def story(self, identifier: str) -> EventStory:
        """The same, told step by step. Raises NotFoundError."""
        return await story_of(self._journal, identifier)

    @operation("jobs.verify", "GET /v1/jobs/{job}/verify", "read", "Check a job's record.", codes=(Code.JOB_NOT_FOUND,))
    async def verify(
        self,
        identifier: Annotated[str | None, _JOB] = None,
        *,
        notes: Annotated[str, _HERE] = "",
        keys: Annotated[tuple[str, ...], _HERE] = (),
        stamp_roots: Annotated[str, _HERE] = "",
    ) -> VerifyReport:
        """Check that nothing recorded of a job, and of all that belongs to it, was changed.

        Of a fork, so are the jobs whose events it shares. A session is checked as well; without `identifier`, the whole
        journal.
        """
        from remit.service.verification import Elsewhere, Verification  # noqa: PLC0415 - only who verifies needs it

        roots = [""]
        if identifier is not None:
            await head_of(self._journal, identifier)
            calls = [stream for stream in await beside(self._journal, identifier) if stream.startswith(f"{CALL}/")]
            stream = stream_named(identifier)
            roots = [stream, *calls, *await forebears(self._journal, stream)]
        verification = Verification(self._services, self._verifiers(Elsewhere(notes, keys, stamp_roots)))
        await verification.begin()
        for root in roots:
            async for head in self._heads(root):
                await verification.check(head)
        await verification.check_calls()
        verification.end(everything=identifier is None)
        if identifier is None:
            await verification.check_all()
        return verification.report

    async def erase(self, subject: str, *, by: str = "", reason: str = "") -> Erased:
        """Erase every value about a subject. Raises UsageError without one."""
        return await erase(self._journal, subject, by=by, reason=reason)

    async def erasable(self, subject: str) -> Erased:
        """Return what `erase` would take away now."""
        return await erasable(self._journal, subject)

    async def kept(self, digest: str) -> bytes | None:
        """The bytes kept under a digest, such as those of evidence; None if they were erased."""
        return await self._journal.blob(digest)

    # --- common

    async def _heads(self, stream: str) -> AsyncIterator[StreamHead]:
        if stream:
            own = await self._journal.head(stream)
            if own is not None:
                yield own
        async for head in every_head(self._journal, HeadQuery(prefix=f"{stream}/" if stream else "")):
            yield head
