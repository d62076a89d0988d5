"""What today's code does with an old journal: opens, checks and shows all of it, then carries on with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from remit import JobEndedError, Remit
from remit.clock import SECOND, SystemClock
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.settings import load
from tests.journal.old.world import CHARGED, RECIPES, RULES, TOOLS
from tests.jumping import JumpingClock
from tests.opened import until, until_waiting

WRITTEN: Final = frozenset(
    [
        "approval_remembered",
        "approval_revoked",
        "cancel_requested",
        "child_started",
        "confirmation_decided",
        "confirmation_requested",
        "confirmation_used",
        "evidence_attached",
        "gate_refused",
        "job_cancelled",
        "job_completed",
        "job_created",
        "job_failed",
        "job_waiting",
        "mcp_tools_pinned",
        "plan_generated",
        "random_recorded",
        "recovery_completed",
        "recovery_started",
        "request_relayed",
        "schema_drift_recorded",
        "session_opened",
        "signal_sent",
        "step_decided",
        "time_recorded",
        "timer_fired",
        "tool_invocation_finished",
        "tool_invocation_started",
        "uuid_recorded",
        "version_mismatch_recorded",
        "wait_completed",
    ]
)
"""The kinds that were written then."""
ENDED: Final = (
    "every",
    "signalled",
    "approved",
    "edited",
    "remembered",
    "as remembered",
    "revoked",
    "planned",
    "drifted",
    "doubt 1",
)
"""Jobs that had completed."""


LEFT_AT: Final = 1_795_393_000 * SECOND
"""When today's code finds it: two minutes after it was left, before the questions expire."""


def opened(url: str, *, work: bool = False) -> Remit:
    """Remit over an old journal, with the code of its author."""
    flags: dict[str, Any] = {"journal.url": url, "policy.rules": [dict(rule) for rule in RULES]}
    settings = load(cwd=Path("/"), file=None, env={"REMIT_PRINCIPAL": "alice"}, flags=flags)
    system = SystemClock()
    then = JumpingClock(system, (LEFT_AT - system.now()) / SECOND)
    return Remit(settings=settings, tools=TOOLS, recipes=RECIPES, work=work, clock=then)


async def titled(remit: Remit) -> dict[str, str]:
    """Every job by its title."""
    return {row.title or row.name: row.job for row in await remit.jobs(limit=100)}


async def is_whole(remit: Remit) -> None:
    """Every stream verifies, every event is of a known kind, every story can be told."""
    journal = remit.runtime.journal
    heads = await journal.heads(HeadQuery(limit=1_000))
    seen = set[str]()
    for head in heads:
        assert await journal.verify(head.stream) == head.seq
        for event in await journal.read(head.stream):
            assert decode(event.kind, event.data) is not None
            seen.add(event.kind)
    assert seen >= WRITTEN, "nothing is lost"
    assert await journal.integrity() == []
    jobs = await titled(remit)
    assert len(jobs) == 22
    for job in jobs.values():
        view = await remit.service.jobs.view(job)
        story = await remit.service.streams.narrative(job)
        assert (story.job, story.name) == (job, view.row.name)
        assert story.segments
    sessions = await remit.service.sessions.rows()
    assert {row.principal for row in sessions} >= {"carol"}
    for row in sessions:
        assert (await remit.service.streams.narrative(row.session)).steps
    rules = await remit.service.approvals.active()
    assert [(rule.tool, rule.made_by) for rule in rules] == [("shop.pay", ("bob",))]


async def replays_as_recorded(remit: Remit, titles: Sequence[str] = ENDED) -> None:
    """Without a single live call."""
    jobs = await titled(remit)
    before = list(CHARGED)
    for title in titles:
        report = await remit.service.jobs.replay(jobs[title])
        assert report.verdict == "same", (title, report)
    assert before == CHARGED


async def goes_on(remit: Remit) -> None:
    """What waited ends once it has what it waited for; what is in doubt, once a person decided."""
    jobs, service = await titled(remit), remit.service
    for title in ("parked", "plan parked", "drift parked"):
        await remit.job(jobs[title]).signal("go", {"n": 2})
    for title in ("question", "asked"):
        (question,) = await remit.job(jobs[title]).questions()
        await service.confirmations.decide(question.confirmation, "approve", by="bob")
    for title in ("stuck", "delayed"):
        await service.jobs.resume(jobs[title])
    await until_waiting(remit, jobs["doubt 3"])
    await service.steps.decide(jobs["doubt 2"], "1", "done", 20, by="bob")
    await service.steps.decide(jobs["doubt 3"], "1", "fail", by="bob")
    titles = ("parked", "plan parked", "drift parked", "question", "asked", "stuck", "delayed", "doubt 2")
    results = dict(zip(titles, await asyncio.gather(*(remit.job(jobs[title]) for title in titles)), strict=True))
    assert results.pop("delayed")["charged"] == 30
    assert results == {
        "parked": {"n": 2},
        "plan parked": {"looked": 2, "charged": 20},
        "drift parked": "1",
        "question": "paid 6",
        "asked": True,
        "stuck": 1,
        "doubt 2": 20,
    }
    try:
        await remit.job(jobs["doubt 3"])
    except JobEndedError:
        pass
    else:
        raise AssertionError("doubt 3 was decided to have failed")
    assert sorted(CHARGED) == [2, 3], "of the jobs in doubt, none charged again"
    await until(remit, jobs["doubt 3"], lambda row: row.state == "failed")


async def tell(url: str) -> None:
    """All of it, in order."""
    CHARGED.clear()
    async with opened(url) as remit:
        await is_whole(remit)
        await replays_as_recorded(remit)
    async with opened(url, work=True) as remit:
        await goes_on(remit)
    async with opened(url) as remit:
        await is_whole(remit)
        await replays_as_recorded(remit, (*ENDED, "parked", "plan parked", "question", "asked", "doubt 2"))
