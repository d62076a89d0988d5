"""Two runs beside each other: by what they did, not by how long it took."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remit import Remit, Run, recipe, tool
from remit.errors import RemitError
from remit.parts.forks.diff import RunDiff


@tool("d.look", level="L0", version="1")
def look(word: str) -> int:
    """Look."""
    return len(word)


@tool("d.look", level="L0", version="2")
def look_now(word: str) -> int:
    """Look."""
    return len(word)


@recipe("looks")
async def looks(run: Run, words: list[str], fails: bool = False) -> int:
    """Look at each word."""
    found = [(await run.call("d.look", {"word": word})).value for word in words]
    if fails:
        raise LookupError("no luck")
    return sum(found)


@pytest.fixture
async def remit() -> AsyncIterator[Remit]:
    async with Remit(":memory:", tools=[look], recipes=[looks]) as remit:
        yield remit


async def compared(remit: Remit, one: list[str], two: list[str], *, fails: bool = False) -> RunDiff:
    jobs = []
    for words, failing in ((one, False), (two, fails)):
        job = await remit.service.jobs.start_named("looks", {"words": words, "fails": failing})
        await remit.ended(job)
        jobs.append(job)
    found: RunDiff = await remit.service.forks.diff(*jobs)
    return found


@pytest.mark.parametrize(
    ("one", "two", "counts", "whole"),
    [
        (["a", "bb"], ["a", "bb"], (2, 0, 0, 0), []),
        (["a", "bb"], ["a", "n", "bb"], (2, 0, 0, 1), ["input", "result"]),
        (["a", "n", "bb"], ["a", "bb"], (2, 0, 1, 0), ["input", "result"]),
        (["a", "bb"], ["a", "ccc"], (1, 1, 0, 0), ["input", "result"]),
    ],
)
async def test_steps_are_counted_by_what_became_of_them(
    remit: Remit, one: list[str], two: list[str], counts: tuple[int, ...], whole: list[str]
) -> None:
    found = await compared(remit, one, two)
    assert (found.same, found.changed, found.removed, found.added) == counts
    assert [each.about for each in found.differences] == whole
    assert (found.a.steps, found.b.steps, found.a.state) == (len(one), len(two), "completed")


async def test_a_changed_step_says_both_sides(remit: Remit) -> None:
    found = await compared(remit, ["a"], ["bb"], fails=True)
    (step,) = found.steps
    assert [(each.about, each.a, each.b) for each in step.differences] == [
        ("input", '{"word":"a"}', '{"word":"bb"}'),
        ("result", "1", "2"),
    ]
    assert {each.about for each in found.differences} == {"input", "result", "error"}


async def test_another_version_of_a_tool_is_a_difference(tmp_path: Path) -> None:
    jobs = []
    for each in (look, look_now):
        async with Remit(tmp_path / "j.db", tools=[each], recipes=[looks]) as remit:
            jobs.append(await remit.service.jobs.start_named("looks", {"words": ["a"]}))
            await remit.ended(jobs[-1])
    async with Remit(tmp_path / "j.db") as remit:
        (step,) = (await remit.service.forks.diff(*jobs)).steps
        assert [each.about for each in step.differences] == ["version"]
        with pytest.raises(RemitError):
            await remit.service.forks.diff(jobs[0], "job_00000000000000000000000000")


async def test_what_a_fork_shares_is_the_same(remit: Remit) -> None:
    job = await remit.service.jobs.start_named("looks", {"words": ["a", "bb", "c"]})
    await remit.ended(job)
    made = await remit.service.forks.make(job, "3", args={"3": {"word": "dddd"}})
    await remit.ended(made.job)
    found = await remit.service.forks.diff(job, made.job, every=True)
    assert [(step.change, step.shared) for step in found.steps] == [("same", True), ("same", True), ("changed", False)]


async def test_sessions_are_compared_too(remit: Remit) -> None:
    await remit.call("d.look", {"word": "a"})
    (session,) = await remit.service.sessions.rows()
    found = await remit.service.forks.diff(session.session, session.session)
    assert (found.same, found.a.state) == (1, "session")
