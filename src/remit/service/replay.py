"""Replay of a job, by its recipe; and of a session, which has none: each of its calls is judged as of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from remit.errors import ChainBrokenError, RunError
from remit.jobs.replay import ReplayReport, calls_of, calls_today, replay, require_allowed, worst
from remit.jobs.routes import LackingError
from remit.jobs.skills import require_on
from remit.jobs.state import ENDED, KIND, JobHistory, stream_of
from remit.jobs.versions import differences
from remit.journal.lineage import whole
from remit.policy.decision import Caller
from remit.record.heads import CALL, SESSION, head_of, stream_named
from remit.record.job_story import story_of
from remit.service.retry import replayable
from remit.service.sessions import CALLERS

if TYPE_CHECKING:
    from remit.jobs.replay import ReplayStop
    from remit.journal.event import StreamHead
    from remit.service.parts import Parts

Resumes = Literal["", "yes", "no", "ended"]
"""Whether a job would go on; empty: it is no job."""
GOING_ON: Final[Mapping[str, tuple[str, str]]] = {
    "yes": ("ok", "it would go on"),
    "no": ("fail", "it would not go on"),
    "ended": ("", "it has ended"),
}
"""By the answer, the style of a terminal and the words."""


async def replay_job(parts: Parts, job: str, policy: str, stop: ReplayStop | None) -> ReplayReport:
    """Replay a job. Raises NotFoundError, StateError for a session, or VersionError."""
    services, head = parts.services, await replayable(parts.journal, job)
    history = JobHistory(await whole(parts.journal, await parts.journal.read(stream_of(job))))
    program = await parts.programs.load(history)
    means = services.catalog, services.migrations, job, policy, parts.skills, services.default_model, stop
    report = await replay(parts.journal, history, program, *means)
    calls = await calls_today(services, history, job, head.labels, program.name)
    return msgspec.structs.replace(report, calls=calls, today=worst(calls))


class GoingOn(NamedTuple):
    """The answer to "would it go on?", which every face gives."""

    resumes: Resumes
    because: tuple[str, ...] = ()
    """Differences that do not stop it, or what would stop it first."""


async def going_on(parts: Parts, job: str) -> GoingOn:
    """Say whether a job would go on under the code, the tools and the models of this process.

    It is replayed under the mismatch policy, which calls nothing: what stops that stops its worker as well. Raises
    NotFoundError, or JournalError where the journal fails.
    """
    head = await head_of(parts.journal, job)
    if head.kind != KIND:
        return GoingOn("")
    if head.state in ENDED:
        return GoingOn("ended")
    services, history = parts.services, JobHistory(await whole(parts.journal, await parts.journal.read(stream_of(job))))
    try:
        program = await parts.programs.load(history)
        await require_on(parts.skills, history.created)
        means = services.catalog, services.migrations, job, services.mismatch, parts.skills, services.default_model
        report = await replay(parts.journal, history, program, *means)
    except (RunError, LackingError, ChainBrokenError) as error:
        return GoingOn("no", (error.message,))
    changed = tuple(drift.words for drift in report.drifts)
    if (divergence := report.divergence) is None:
        return GoingOn("yes", changed)
    words = f"step {divergence.step}: recorded {divergence.recorded}, now {divergence.now}"
    return GoingOn("no", (words, *changed))


async def replay_session(parts: Parts, head: StreamHead, session: str, policy: str) -> ReplayReport:
    """Judge the calls of a session, or one of its calls, by today's tools and rules.

    Raises VersionError for what `policy` refuses.

    What a client's own token forbids is not recorded, and not asked again.
    """
    services = parts.services
    history = (await story_of(parts.journal, session)).history
    within = head if head.kind == SESSION else await head_of(parts.journal, head.labels["session"])
    drifts = tuple(await differences(history, None, services.catalog, parts.journal, services.migrations))
    require_allowed(drifts, policy)
    caller = Caller(
        principal=head.labels.get("principal", ""),
        kind=CALLERS.get(within.labels.get("face", ""), "session"),
        recipe="",
        stream=stream_named(session),
    )
    calls = await calls_of(services, history, caller)
    return ReplayReport(
        job=session, verdict="same", steps=len(history.calls), drifts=drifts, calls=calls, today=worst(calls)
    )


async def session_head(parts: Parts, identifier: str) -> StreamHead | None:
    """The head of a session or of one of its calls; None for a job. Raises NotFoundError."""
    head = await head_of(parts.journal, identifier)
    return head if head.kind in {SESSION, CALL} else None
