"""Replay of a job, by its recipe; and of a session, which has none: each of its calls is judged as of today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remit.jobs.replay import ReplayReport, replay, require_allowed
from remit.jobs.state import History, stream_of
from remit.jobs.today import calls_of, calls_today, worst
from remit.jobs.versions import differences
from remit.journal.lineage import whole
from remit.policy.decision import Caller
from remit.record.heads import CALL, SESSION, head_of, stream_named
from remit.record.job_story import story_of
from remit.service.retrying import replayable
from remit.service.sessions import CALLERS

if TYPE_CHECKING:
    from remit.jobs.stopping import Stop
    from remit.journal.event import Head
    from remit.service.parts import Parts


async def replay_job(parts: Parts, job: str, policy: str, stop: Stop | None) -> ReplayReport:
    """Replay a job. Raises NotFoundError, StateError for a session, or VersionError."""
    services, head = parts.services, await replayable(parts.journal, job)
    history = History(await whole(parts.journal, await parts.journal.read(stream_of(job))))
    program = await parts.programs.load(history)
    given = services.catalog, services.migrations, job, policy, parts.skills, services.default_model, stop
    report = await replay(parts.journal, history, program, *given)
    calls = await calls_today(services, history, job, head.labels, program.name)
    return msgspec.structs.replace(report, calls=calls, today=worst(calls))


async def replay_session(parts: Parts, head: Head, session: str, policy: str) -> ReplayReport:
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


async def session_head(parts: Parts, identifier: str) -> Head | None:
    """The head of a session or of one of its calls; None for a job. Raises NotFoundError."""
    head = await head_of(parts.journal, identifier)
    return head if head.kind in {SESSION, CALL} else None
