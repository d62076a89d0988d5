"""A retry does what is left to do, and nothing that is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import NotFoundError, ProviderError, RemitError, StateError
from remit.service.options import Options


class World:
    """What the tools did, and what fails for now."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken: set[str] = set()
        self.declines = True
        """Whether what fails says that it did nothing."""


WORLD = World()
ALLOWED = {"effect": "allow", "tools": ["w.do"]}


@pytest.fixture(autouse=True)
def world() -> World:
    WORLD.__init__()  # type: ignore[misc] # as new, for recipes and tools that were made once
    return WORLD


@tool("w.do")
def do(what: str) -> str:
    """Do something."""
    if what in WORLD.broken:
        raise ProviderError(what) if WORLD.declines else LookupError(what)
    WORLD.done.append(what)
    return what.upper()


def check(word: str) -> None:
    """Fail for now."""
    if word in WORLD.broken:
        raise KeyError(word)


@recipe("line")
async def line(run: Run) -> str:
    """One call after the other, and code between them."""
    one = await run.call("w.do", {"what": "one"})
    check("code")
    two = await run.call("w.do", {"what": "two"})
    three = await run.call("w.do", {"what": "three"})
    return f"{one.value} {two.value} {three.value}"


@recipe("both")
async def both(run: Run) -> list[Any]:
    """Two branches, the first of which may fail after the second has ended."""
    ready = asyncio.Event()

    async def first() -> Any:
        await ready.wait()
        return (await run.call("w.do", {"what": "left"})).value

    async def second() -> Any:
        value = (await run.call("w.do", {"what": "right"})).value
        ready.set()
        return value

    return list(await run.gather(first(), second()))


@recipe("undoes")
async def undoes(run: Run) -> str:
    """A call that is undone if the next one fails."""
    await run.call("w.do", {"what": "book"}, undo=("w.do", {"what": "unbook"}))
    return str((await run.call("w.do", {"what": "pay"})).value)


@recipe("hears")
async def hears(run: Run) -> list[Any]:
    """Two signals of one name, with code between them."""
    first = await run.wait_signal("go")
    check("code")
    return [first, await run.wait_signal("go")]


@pytest.fixture
async def remit() -> AsyncIterator[Remit]:
    async with Remit(":memory:", tools=[do], recipes=[line, both, undoes, hears], policy=[ALLOWED]) as remit:
        yield remit


async def ended(remit: Remit, name: str, options: Options | None = None) -> str:
    """The id of a job that has ended, however."""
    job = await remit.service.jobs.start_named(name, {}, options)
    await remit.ended(job)
    return job


async def retried(remit: Remit, job: str, step: str = "", *, repeat: bool = False) -> tuple[str, tuple[str, ...]]:
    """The id of a retry that has ended, and what ran again."""
    made = await remit.service.jobs.retry(job, step, repeat=repeat, by="eve", reason="fixed")
    await remit.ended(made.job)
    return made.job, made.again


async def refused(remit: Remit, code: Code, job: str, step: str = "") -> RemitError:
    with pytest.raises(RemitError) as caught:
        await remit.service.jobs.retry(job, step)
    assert caught.value.code is code
    return caught.value


async def test_after_an_error_of_the_code_every_step_is_kept(remit: Remit, world: World) -> None:
    world.broken = {"code"}
    job = await ended(remit, "line")
    assert (await remit.service.jobs.row(job)).state == "failed"
    world.broken = set()
    again, steps = await retried(remit, job)
    assert await remit.service.jobs.result(again) == "ONE TWO THREE"
    assert (world.done, steps) == (["one", "two", "three"], ())
    view = await remit.service.jobs.view(again)
    assert view.retry_of == job
    assert [step.step for step in view.steps] == ["1", "2", "3"]
    assert (await remit.replay(again)).verdict == "same"
    assert (await remit.service.jobs.row(job)).state == "failed"


async def test_the_step_that_failed_runs_again_and_those_before_it_do_not(remit: Remit, world: World) -> None:
    world.broken = {"two"}
    job = await ended(remit, "line")
    world.broken = set()
    again, steps = await retried(remit, job)
    assert await remit.service.jobs.result(again) == "ONE TWO THREE"
    assert (world.done, steps) == (["one", "two", "three"], ("2",))


async def test_a_retry_that_fails_can_be_retried_and_the_first_job_no_more(remit: Remit, world: World) -> None:
    world.broken = {"two", "three"}
    job = await ended(remit, "line")
    world.broken = {"three"}
    second, _ = await retried(remit, job)
    assert f"remit retry {second}" in (await refused(remit, Code.JOB_NOT_RETRYABLE, job)).remedy
    world.broken = set()
    third, steps = await retried(remit, second)
    assert await remit.service.jobs.result(third) == "ONE TWO THREE"
    assert (world.done, steps) == (["one", "two", "three"], ("3",))


async def test_calls_that_ended_well_are_made_again_only_if_that_is_said(remit: Remit, world: World) -> None:
    job = await ended(remit, "line")
    assert "--from" in (await refused(remit, Code.JOB_NOT_RETRYABLE, job)).remedy
    assert "step 2, 3" in (await refused(remit, Code.RETRY_REPEATS, job, "2")).message
    again, steps = await retried(remit, job, "2", repeat=True)
    assert steps == ("2", "3")
    assert world.done == ["one", "two", "three", "two", "three"]
    assert await remit.service.jobs.result(again) == "ONE TWO THREE"


async def test_a_call_that_failed_halfway_is_made_again_only_if_that_is_said(remit: Remit, world: World) -> None:
    world.broken, world.declines = {"two"}, False
    job = await ended(remit, "line")
    world.broken = set()
    assert "step 2" in (await refused(remit, Code.RETRY_REPEATS, job)).message
    again, steps = await retried(remit, job, repeat=True)
    assert (await remit.service.jobs.result(again), steps) == ("ONE TWO THREE", ("2",))


async def test_a_branch_beside_the_one_that_failed_is_kept(remit: Remit, world: World) -> None:
    world.broken = {"left"}
    job = await ended(remit, "both")
    assert world.done == ["right"]
    world.broken = set()
    again, _ = await retried(remit, job)
    assert await remit.service.jobs.result(again) == ["LEFT", "RIGHT"]
    assert world.done == ["right", "left"]


async def test_what_was_undone_runs_again_and_is_undone_again(remit: Remit, world: World) -> None:
    world.broken = {"pay"}
    job = await ended(remit, "undoes")
    assert world.done == ["book", "unbook"]
    second, steps = await retried(remit, job)
    assert (steps, world.done) == (("1", "2"), ["book", "unbook", "book", "unbook"])
    world.broken = set()
    third, _ = await retried(remit, second)
    assert await remit.service.jobs.result(third) == "PAY"
    assert world.done[-2:] == ["book", "pay"]


async def test_a_signal_that_was_heard_is_kept_and_the_next_one_is_not_taken_for_it(remit: Remit, world: World) -> None:
    world.broken = {"code"}
    job = await remit.service.jobs.start_named("hears", {})
    await remit.service.jobs.signal(job, "go", 1)
    await remit.ended(job)
    world.broken = set()
    made = await remit.service.jobs.retry(job)
    await remit.service.jobs.signal(made.job, "go", 2)
    await remit.ended(made.job)
    assert await remit.service.jobs.result(made.job) == [1, 2]


async def test_a_cancelled_job_goes_on_from_where_it_waited(remit: Remit) -> None:
    job = await remit.service.jobs.start_named("hears", {})
    await remit.service.jobs.signal(job, "go", 1)
    await remit.service.jobs.settled([job])
    await remit.service.jobs.cancel(job)
    await remit.ended(job)
    made = await remit.service.jobs.retry(job)
    await remit.service.jobs.signal(made.job, "go", 2)
    await remit.ended(made.job)
    assert await remit.service.jobs.result(made.job) == [1, 2]


async def test_labels_title_and_priority_stay_and_the_record_says_who(remit: Remit, world: World) -> None:
    world.broken = {"code"}
    job = await ended(remit, "line", Options(title="mine", labels={"team": "a"}))
    made, _ = await retried(remit, job)
    row = await remit.service.jobs.row(made)
    assert (row.title, row.labels["team"]) == ("mine", "a")
    second = (await remit.service.streams.events(f"job/{made}"))[1]
    assert second.kind == "job_forked"
    assert b'"by":"eve","reason":"fixed"' in second.data


async def test_what_cannot_be_retried_is_refused(remit: Remit, world: World) -> None:
    waiting = await remit.service.jobs.start_named("hears", {})
    assert "remit resume" in (await refused(remit, Code.JOB_NOT_RETRYABLE, waiting)).remedy
    world.broken = {"code"}
    job = await ended(remit, "line")
    with pytest.raises(NotFoundError):
        await remit.service.jobs.retry(job, "9")
    about = await ended(remit, "line", Options(subject="ada"))
    assert "subject" in (await refused(remit, Code.JOB_NOT_RETRYABLE, about)).message
    with pytest.raises(StateError):
        await remit.service.jobs.signal(job, "go")


async def test_where_an_error_came_from_is_recorded_and_noted(remit: Remit, world: World) -> None:
    world.broken, world.declines = {"code", "two"}, False
    job = await ended(remit, "line")
    view = await remit.service.jobs.view(job)
    assert view.error is not None
    assert [frame.rpartition(" in ")[2] for frame in view.error.frames] == ["line", "check"]
    world.broken = {"two"}
    again, _ = await retried(remit, job)
    step = await remit.service.steps.view(again, "2")
    assert step.error is not None
    assert [frame.rpartition(" in ")[2] for frame in step.error.frames] == ["do"]
    failed = (await remit.service.jobs.view(again)).error
    assert failed is not None
    assert [frame.rpartition(" in ")[2] for frame in failed.frames] == ["line", "do"]
