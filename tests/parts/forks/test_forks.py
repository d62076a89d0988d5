"""A fork shares what was recorded before a step, and lives on from there with something changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import RemitError
from remit.journal.erasure import erase
from remit.journal.lineage import whole
from remit.parts.forks.forks import Forked
from remit.service.options import Options
from tests.opened import until_waiting

ALLOWED = {"effect": "allow", "tools": ["w.pay"]}
DONE: list[int] = []


@pytest.fixture(autouse=True)
def done() -> list[int]:
    DONE.clear()
    return DONE


@tool("w.price", level="L0")
def price(sku: str) -> int:
    """Look a price up."""
    return {"a": 10, "b": 30}[sku]


@tool("w.other", level="L0")
def other(sku: str) -> int:
    """Look a price up elsewhere."""
    return len(sku)


@tool("w.pay")
def pay(amount: int) -> str:
    """Pay."""
    DONE.append(amount)
    return f"paid {amount}"


@recipe("buy")
async def buy(run: Run, skus: list[str], note: str = "") -> str:
    """Look prices up side by side, one more after them, and pay."""
    prices = await run.gather(*(run.call("w.price", {"sku": sku}) for sku in skus))
    extra = await run.call("w.price", {"sku": "a"})
    paid = await run.call("w.pay", {"amount": sum(one.value for one in prices) + extra.value})
    return f"{paid.value}{note}"


@recipe("hears")
async def hears(run: Run) -> list[Any]:
    """Hear a signal twice, with chance in between."""
    return [await run.wait_signal("go"), await run.random(), await run.wait_signal("go")]


@pytest.fixture
async def remit() -> AsyncIterator[Remit]:
    async with Remit(":memory:", tools=[price, other, pay], recipes=[buy, hears], policy=[ALLOWED]) as remit:
        yield remit


async def bought(remit: Remit, **options: Any) -> str:
    job = await remit.service.jobs.start_named("buy", {"skus": ["a", "b"]}, Options(**options))
    await remit.ended(job)
    return job


async def forked(remit: Remit, job: str, at: str = "", **changes: Any) -> tuple[Forked, Any]:
    """A fork that has ended, and its result."""
    made = await remit.service.forks.make(job, at, **{"repeat": True, **changes})
    await remit.ended(made.job)
    assert (await remit.replay(made.job)).verdict == "same"
    return made, await remit.service.jobs.result(made.job)


async def refused(remit: Remit, job: str, at: str = "", **changes: Any) -> Code:
    with pytest.raises(RemitError) as caught:
        await remit.service.forks.make(job, at, **changes)
    return caught.value.code


@pytest.mark.parametrize(
    ("at", "changes", "result"),
    [
        ("2", {}, "paid 50"),
        ("", {}, "paid 50"),
        ("1.1.1", {}, "paid 50"),
        ("2", {"results": {"1.0.1": 500}}, "paid 540"),
        ("", {"results": {"1.0.1": 500}}, "paid 540"),
        ("", {"results": {"1.0.1": 1, "2": 2}}, "paid 33"),
        ("2", {"results": {"2": 7}}, "paid 47"),
        ("", {"args": {"3": {"amount": 1}}}, "paid 1"),
        ("2", {"args": {"3": {"amount": 1}}, "results": {"1.1.1": 0}}, "paid 1"),
        ("2", {"tools": {"w.price": "w.other"}}, "paid 41"),
        ("", {"input": {"skus": ["b"]}}, "paid 40"),
        ("2", {"input": {"note": "!"}}, "paid 50!"),
    ],
)
async def test_a_fork_does_what_was_changed_from_its_step_on(
    remit: Remit, at: str, changes: dict[str, Any], result: str
) -> None:
    job = await bought(remit)
    before = [event.data for event in await remit.runtime.journal.read(f"job/{job}")]
    _, came = await forked(remit, job, at, **changes)
    assert came == result
    assert [event.data for event in await remit.runtime.journal.read(f"job/{job}")] == before


async def test_what_would_take_the_place_of_nothing_is_refused(remit: Remit, done: list[int]) -> None:
    job = await bought(remit)
    for changes in ({"tools": {"w.nope": "w.other"}}, {"models": {"scripted:x.yaml": "scripted:y.yaml"}}):
        assert await refused(remit, job, "2", repeat=True, **changes) is Code.FORK_INVALID
    assert await refused(remit, job, "2", repeat=True, models={"": "scripted:y.yaml"}) is Code.FORK_INVALID
    assert done == [50]


async def test_a_fork_of_a_fork_changes_what_the_code_asks_for(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(f"[{{say: {name}}}]")
    first, *others = (f"scripted:{tmp_path / name}.yaml" for name in "abc")

    @recipe("asks")
    async def asks(run: Run) -> str:
        return str((await run.model("Who?", model=first)).text)

    async with Remit(":memory:", recipes=[asks], policy=[{"effect": "allow", "tools": ["model.*"]}]) as remit:
        job = await remit.service.jobs.start_named("asks", {})
        await remit.ended(job)
        for other, answer in zip(others, "bc", strict=True):
            made, came = await forked(remit, job, "1", models={first: other})
            assert came == answer
            job = made.job


async def test_another_answer_of_a_model_is_what_the_code_hears(tmp_path: Path) -> None:
    (tmp_path / "says.yaml").write_text("[{say: always}]")

    @recipe("asks")
    async def asks(run: Run) -> str:
        return str((await run.model("Is it?", model=f"scripted:{tmp_path / 'says.yaml'}")).text)

    async with Remit(":memory:", recipes=[asks], policy=[{"effect": "allow", "tools": ["model.*"]}]) as remit:
        job = await remit.service.jobs.start_named("asks", {})
        await remit.ended(job)
        assert (await forked(remit, job, results={"1": "never"}))[1] == "never"


async def test_what_is_shared_is_not_copied_and_keeps_its_times(remit: Remit) -> None:
    job = await bought(remit)
    made, _ = await forked(remit, job, "3")
    kinds = [event.kind for event in await remit.runtime.journal.read(f"job/{made.job}")]
    assert kinds[:3] == ["job_created", "job_forked", "tool_invocation_started"]
    told, first = await remit.service.streams.narrative(made.job), await remit.service.streams.narrative(job)
    assert [(one.step, one.taken_from) for one in told.steps] == [("1.0.1", job), ("1.1.1", job), ("2", job), ("3", "")]
    assert [step.started_at for step in told.steps[:3]] == [step.started_at for step in first.steps[:3]]
    assert (told.fork_of, told.retry_of, first.fork_of) == (job, "", msgspec.UNSET)
    assert (await remit.service.jobs.view(made.job)).fork_of == job
    story = await remit.service.jobs.story(made.job)
    assert [row.step for row in story.steps] == ["1.0.1", "1.1.1", "2", "3"]


async def test_side_effects_that_succeeded_are_not_repeated_unasked(remit: Remit, done: list[int]) -> None:
    job = await bought(remit)
    assert await refused(remit, job, "2") is Code.RETRY_REPEATS
    await forked(remit, job, "2")
    assert done == [50, 50]
    cancelled = await remit.service.forks.make(job, "3", results={"3": "paid nothing"})
    await remit.ended(cancelled.job)
    assert done == [50, 50]


async def test_no_approval_of_the_other_job_counts(done: list[int]) -> None:
    async with Remit(":memory:", tools=[price, pay], recipes=[buy]) as remit:
        job = await remit.service.jobs.start_named("buy", {"skus": ["a"]})
        await until_waiting(remit, job)
        (asked,) = await _open(remit)
        await remit.service.confirmations.decide(asked, "approve", by="bob")
        await remit.ended(job)
        made = await remit.service.forks.make(job, "2", repeat=True)
        await until_waiting(remit, made.job)
        assert (await _open(remit)) != [asked]
        assert done == [20]


async def _open(remit: Remit) -> list[str]:
    return [question.confirmation for question in await remit.service.confirmations.pending()]


async def test_forks_of_forks_keep_what_they_changed(remit: Remit) -> None:
    job = await bought(remit)
    first, one = await forked(remit, job, "3", results={"2": 100}, tools={"w.pay": "w.pay"})
    assert one == "paid 140"
    second, two = await forked(remit, first.job, "3", input={"note": "?"})
    assert (two, second.of) == ("paid 140?", first.job)
    third, three = await forked(remit, second.job, "1.1.1")
    assert (three, third.of) == ("paid 50?", job)
    last, four = await forked(remit, second.job, "", args={"3": {"amount": 9}})
    assert four == "paid 9?"
    retried = await remit.service.jobs.retry(last.job, "3", repeat=True)
    await remit.ended(retried.job)
    assert await remit.service.jobs.result(retried.job) == "paid 9?"


async def test_what_was_under_way_is_done_again(remit: Remit) -> None:
    job = await remit.service.jobs.start_named("hears", {})
    await until_waiting(remit, job)
    await remit.service.jobs.signal(job, "go", 1)
    await until_waiting_at(remit, job, "3")
    made = await remit.service.forks.make(job, "3")
    await remit.service.jobs.signal(made.job, "go", 5)
    await remit.ended(made.job)
    first, chance, second = await remit.service.jobs.result(made.job)
    assert (first, second) == (1, 5)
    _, (heard, other_chance, _) = await forked(remit, made.job, "3", results={"1": "else", "2": 0.5, "3": 6})
    assert (heard, other_chance) == ("else", 0.5)
    assert chance != other_chance


async def until_waiting_at(remit: Remit, job: str, step: str) -> None:
    mark = 0
    while step not in (await remit.service.jobs.history(job)).places:
        mark = await remit.runtime.journal.changed(mark)
    await until_waiting(remit, job)


@pytest.mark.parametrize(
    ("at", "changes", "code"),
    [
        ("9", {}, Code.STEP_NOT_FOUND),
        ("1.7.1", {}, Code.STEP_NOT_FOUND),
        ("nothing", {}, Code.STEP_NOT_FOUND),
        ("2", {"results": {"3": "x"}, "repeat": True}, Code.FORK_INVALID),
        ("", {"results": {"9": "x"}}, Code.STEP_NOT_FOUND),
        ("", {"input": {"nope": 1}, "repeat": True}, Code.INVALID_INPUT),
        ("", {"tools": {f"a.{n}": "b.c" for n in range(200)}}, Code.FORK_INVALID),
    ],
)
async def test_a_fork_that_does_not_fit_is_refused(remit: Remit, at: str, changes: dict[str, Any], code: Code) -> None:
    assert await refused(remit, await bought(remit), at, **changes) is code


async def test_of_a_session_or_of_nothing_there_is_no_fork(remit: Remit) -> None:
    assert await refused(remit, "job_00000000000000000000000000", "1") is Code.JOB_NOT_FOUND
    await remit.call("w.price", {"sku": "a"})
    (session,) = await remit.service.sessions.rows()
    assert await refused(remit, session.session, "1") is Code.JOB_NOT_REPLAYABLE


async def test_a_fork_about_a_subject_is_erased_with_it(remit: Remit) -> None:
    job = await bought(remit, subject="ann")
    made, _ = await forked(remit, job, "3")
    await erase(remit.runtime.journal, "ann")
    assert await refused(remit, job, "2", repeat=True) is Code.PAYLOAD_ERASED
    assert await refused(remit, made.job, "3", repeat=True) is Code.PAYLOAD_ERASED
    view = await remit.service.steps.view(made.job, "2")
    assert "erased" in str(view.value)


async def test_a_fork_is_checked_with_the_jobs_whose_events_it_shares(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    given: Any = {"tools": [price, other, pay], "recipes": [buy], "policy": [ALLOWED]}
    async with Remit(str(path), **given) as remit:
        job = await bought(remit)
        made, _ = await forked(remit, job, "3")
        again, _ = await forked(remit, made.job, "3", repeat=True)
        report = await remit.service.streams.verify(again.job)
        assert (report.ok, report.streams) == (True, 3)
    with apsw.Connection(str(path)) as db:
        sql = "UPDATE events SET data = CAST(replace(data, 'w.price', 'w.prize') AS BLOB) WHERE seq = 2 AND kind LIKE ?"
        db.execute(sql, ("tool%",))
        assert db.changes() == 1
    async with Remit(str(path), **given) as remit:
        report = await remit.service.streams.verify(again.job)
        assert (report.codes, job in report.problems[0]) == (("CHAIN_BROKEN",), True)


async def test_shared_events_that_are_not_what_they_were_stop_the_fork(remit: Remit) -> None:
    journal = remit.runtime.journal
    job = await bought(remit)
    made, _ = await forked(remit, job, "3")
    own = await journal.read(f"job/{made.job}")
    lied = own[1].data.replace(b'"hash":"', b'"hash":"00')
    with pytest.raises(RemitError) as caught:
        await whole(journal, [own[0], type(own[1])(own[1].stream, 2, own[1].kind, 0, lied, b""), *own[2:]])
    assert caught.value.code is Code.CHAIN_BROKEN
    looped = own[1].data.replace(job.encode(), made.job.encode())
    with pytest.raises(RemitError):
        await whole(journal, [own[0], type(own[1])(own[1].stream, 2, own[1].kind, 0, looped, b""), *own[2:]])
