"""Checks on what is recorded, and on tools, recipes, rules and sessions."""

from __future__ import annotations

import asyncio
from typing import Final

from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.record.search import JobSearch
from remit_testing.service.world import Check, Reach, refused, world
from remit_testing.suite import checks_in


async def check_events_are_those_of_the_journal_byte_by_byte(reach: Reach) -> None:
    """Places, kinds, times, payloads and hashes; `after` leaves out what was seen."""
    async with world(reach) as place:
        job = await place.ran("looks", at='ä "x" \u2028', times=3)
        stream = place.service.streams.name(job)
        events = await place.service.streams.events(stream)
        assert events == await place.local.streams.events(stream)
        assert len(events) > 3
        assert await place.service.streams.events(stream, events[2].seq) == events[3:]
        with refused(Code.JOB_NOT_FOUND, NotFoundError):
            await place.service.streams.narrative("job_none")


async def check_following_ends_with_the_job(reach: Reach) -> None:
    """Events come as they are recorded; after the last one of a job that has ended, nothing more is waited for."""
    async with world(reach) as place:
        job = await place.ran("waits")
        stream = place.service.streams.name(job)
        arrived = asyncio.Event()

        async def follow() -> list[str]:
            kinds = []
            async for event in place.service.streams.follow(stream):
                kinds.append(event.kind)
                if event.kind == "job_created":
                    arrived.set()
            return kinds

        following = asyncio.create_task(follow())
        await arrived.wait()
        await place.service.jobs.signal(job, "go")
        kinds = await following
        events = await place.local.streams.events(stream)
        assert kinds == [event.kind for event in events]
        assert [event.seq async for event in place.service.streams.follow(stream, 2)] == [e.seq for e in events[2:]]


async def check_jobs_are_found_by_what_is_recorded_and_by_principal(reach: Reach) -> None:
    """Text stands in a title, an input, an argument, a result or an error, in capitals or not."""
    async with world(reach) as place:
        job = await place.ran("looks", at="the old Mill")
        await place.ran("looks", at="the bridge")
        for text, principal, jobs in (("OLD MILL", "", [job]), ("old mill", "nobody", []), ("no such text", "", [])):
            page = await place.service.jobs.search(JobSearch(text=text, principal=principal))
            assert ([row.job for row in page.rows], page.next) == (jobs, None)


async def check_the_story_of_a_job_and_of_a_session_is_told(reach: Reach) -> None:
    """The narrative is the same wherever it is asked for, and the chains hold."""
    async with world(reach) as place:
        job = await place.ran("looks", at="x")
        session = await place.local.sessions.open("python", client="test")
        await place.local.sessions.call(session, "desk.look", {"at": "y"})
        for identifier in (job, session):
            assert await place.service.streams.narrative(identifier) == await place.local.streams.narrative(identifier)
            report = await place.service.streams.verify(identifier)
            assert report.ok
            assert report.events > 0
        assert await place.service.sessions.rows(limit=5) == await place.local.sessions.rows(limit=5)
        assert await place.service.jobs.find(session) == session


async def check_the_catalog_is_shown(reach: Reach) -> None:
    """Every tool with its schemas and what policy does with it; one by name, wire name or key."""
    async with world(reach) as place:
        views = await place.service.tools.views()
        assert views == await place.local.tools.views()
        (desk,) = [view for view in views if view.name == "desk.write"]
        assert desk.policy == "asks"
        assert await place.service.tools.view("desk.write") == desk
        assert await place.service.tools.view(desk.wire_name) == desk
        assert await place.service.tools.failures() == {}
        with refused(Code.UNKNOWN_TOOL, UsageError):
            await place.service.tools.view("desk.none")


async def check_recipes_are_shown_with_their_parameters(reach: Reach) -> None:
    """Hold that what a command line needs to read them."""
    async with world(reach) as place:
        view = await place.service.recipes.view("looks")
        assert view in await place.service.recipes.views()
        assert view.about.startswith("Look at something.")
        at, times = view.parameters
        assert (at.name, at.shown, at.default, at.text) == ("at", "at: str", None, True)
        assert (times.name, times.default, times.text) == ("times", "1", False)
        with refused(Code.UNKNOWN_RECIPE, NotFoundError):
            await place.service.recipes.view("none")


async def check_a_decision_is_explained(reach: Reach) -> None:
    """The rule that decides, and the part of the others."""
    async with world(reach) as place:
        explanation = await place.service.policy.explain(
            "desk.write", {"text": "x"}, principal="ann", kind="job", recipe="w"
        )
        assert (explanation.decision.effect, explanation.decision.rule_id) == ("ask", "must-ask")
        own = await place.local.policy.explain("desk.write", {"text": "x"}, principal="ann", kind="job", recipe="w")
        facts = {"at": "2026-05-01T12:00:00Z", "input": {"a": 1}, "seen": {"desk.look": 1}, "taken": {}}
        assert explanation == own
        later = await place.service.policy.explain("desk.write", {"text": "x"}, principal="ann", given=facts)
        assert later == await place.local.policy.explain("desk.write", {"text": "x"}, principal="ann", given=facts)


async def check_artifacts_are_those_that_the_job_left(reach: Reach) -> None:
    """Listed by step, their bytes by their digests; those of another job are refused."""
    async with world(reach) as place:
        job, other = await place.ran("draws", text="moon"), await place.ran("draws", text="sun")
        [row] = await place.service.artifacts.rows(job)
        assert (row.step, row.path, row.bytes, row.media_type) == ("1", "a/drawing", 4, "image/x-test")
        assert await place.service.artifacts.read(job, row.sha256) == b"moon"
        [theirs] = await place.service.artifacts.rows(other)
        with refused(Code.ARTIFACT_NOT_FOUND, NotFoundError):
            await place.service.artifacts.read(job, theirs.sha256)
        with refused(Code.ARTIFACT_NOT_FOUND, NotFoundError):
            await place.service.artifacts.read(job, "x")
        with refused(Code.JOB_NOT_FOUND, NotFoundError):
            await place.service.artifacts.rows("job_none")


LOOKING_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
