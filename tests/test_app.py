"""Remit from Python: the facade over everything."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from remit import CallContext, Code, JobEndedError, Options, Remit, Run, recipe, run_sync, tool
from remit.errors import NotFoundError, StateError, UsageError
from remit.jobs.plans.source import parse_plan
from remit.settings import load
from tests.opened import OpenRemit, until_waiting


@tool("desk.note", level="L1")
async def note(text: str) -> str:
    """Write something down."""
    return text.upper()


@recipe("noting")
async def noting(run: Run, text: str) -> str:
    """Note a text."""
    return str((await run.call("desk.note", {"text": text})).value)


@pytest.mark.parametrize("given", [True, False])
async def test_a_journal_and_a_policy_that_are_named_count_whatever_the_settings_say(
    tmp_path: Path, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    never = [{"id": "never", "effect": "deny", "tools": ["desk.note"]}]
    loose = {"journal.url": "other.db", "policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}]}
    settings = load(cwd=tmp_path, env={}, flags={**loose, "app.principal": "ann"}) if given else None
    async with Remit("wanted.db", policy=never, settings=settings, tools=[note], work=False) as remit:
        outcome = await remit.call("desk.note", {"text": "x"})
        assert outcome.code is Code.POLICY_DENIED
        assert remit.url.endswith("wanted.db")
        assert not given or remit.settings.app.principal == "ann"
    assert (tmp_path / "wanted.db").exists()
    assert not (tmp_path / "other.db").exists()
    async with Remit(":memory:", policy=[], settings=settings, tools=[note], work=False) as remit:
        assert (await remit.call("desk.note", {"text": "x"})).status == "pending"
    with pytest.raises(UsageError):
        Remit("", settings=settings)


async def test_an_exact_approval_from_another_process_releases_the_call(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[note], recipes=[noting]) as first, remit_in(tools=[note], work=False) as second:
        job = await first.start(noting("hello"))
        await until_waiting(second, job.id)
        question = (await second.service.confirmations.pending(job.id))[0]
        assert (question.tool, question.args) == ("desk.note", {"text": "hello"})
        await second.service.confirmations.decide(question.confirmation, "approve", digest=question.digest, by="bob")
        assert await job == "HELLO"


async def test_a_remembered_approval_answers_for_later_calls_until_revoked(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[note], recipes=[noting]) as remit:
        job = await remit.start(noting("one"))
        await until_waiting(remit, job.id)
        question = (await job.questions())[0]
        decided = await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        rule = await remit.service.approvals.remember(
            decided.confirmation, "everything", seconds=60, exact=False, by="bob"
        )
        assert await job == "ONE"
        assert await remit.run(noting("two")) == "TWO"
        assert rule is not None
        await remit.service.approvals.revoke(rule.id)
        third = await remit.start(noting("three"))
        assert (await until_waiting(remit, third.id)).waiting_for.startswith("confirmation")


async def test_where_they_do_not_count_remembered_approvals_answer_nothing(remit_in: OpenRemit) -> None:
    given = {"tools": [note], "recipes": [noting]}
    async with remit_in(**given) as remit:
        job = await remit.start(noting("one"))
        await until_waiting(remit, job.id)
        decided = await remit.service.confirmations.decide((await job.questions())[0].confirmation, "approve", by="bob")
        await remit.service.approvals.remember(decided.confirmation, "everything", seconds=60, exact=False, by="bob")
        await job
    async with remit_in(**given, flags={"policy.remembered": False}) as remit:
        job = await remit.start(noting("two"))
        assert (await until_waiting(remit, job.id)).waiting_for.startswith("confirmation")


async def test_questions_come_one_by_one_until_the_job_ends(remit_in: OpenRemit) -> None:
    @recipe("twice")
    async def twice(run: Run) -> list[str]:
        first = await run.attempt("desk.note", {"text": "a"})
        second = await run.attempt("desk.note", {"text": "b"})
        return [first.value, str(second.code)]

    async with remit_in(tools=[note], recipes=[twice]) as remit:
        job = await remit.start(twice())
        answers = iter(("approve", "deny"))
        async for question in remit.questions(job.id):
            await remit.service.confirmations.decide(question.confirmation, next(answers), by="bob")  # type: ignore[arg-type]
        assert await job == ["A", "CONFIRMATION_DENIED"]


async def test_a_call_outside_a_job_passes_the_same_gate(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[note], work=False) as remit:
        outcome = await remit.call("desk.note", {"text": "hi"})
        assert (outcome.status, outcome.code) == ("pending", Code.CONFIRMATION_REQUIRED)
        outcome = await remit.call("desk.none")
        assert (outcome.status, outcome.code) == ("blocked", Code.UNKNOWN_TOOL)
        report = await remit.service.streams.verify()
        assert report.ok
        assert report.streams == 3  # the session, the call that waits, and its question


async def test_a_plan_is_a_job_like_any_other(remit_in: OpenRemit, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    plan = parse_plan(
        "version: taskgraph-v1\nname: look\ninputs:\n  path: {type: string}\n"
        "nodes:\n  - id: read\n    tool: fs.read\n    args: {path: '${inputs.path}'}\n"
        "output: ${read.value.text}\n",
        "look.yaml",
    )
    async with remit_in() as remit:
        job = await remit.start_plan(plan, {"path": "notes.txt"})
        assert await job == "remember the milk\n"
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_jobs_are_listed_and_found_by_an_ending(remit_in: OpenRemit) -> None:
    @recipe("short")
    async def short(run: Run) -> None:
        """Nothing."""

    async with remit_in(recipes=[short]) as remit:
        first = await remit.start(short(), Options(title="first", labels={"team": "red"}))
        await first
        second = await remit.start(short())
        await second
        assert [row.job for row in await remit.jobs("completed")] == [second.id, first.id]
        assert [row.title for row in await remit.service.jobs.rows(labels={"team": "red"})] == ["first"]
        assert await remit.service.jobs.find(first.id[-12:]) == first.id
        assert await remit.service.jobs.find("last") == second.id
        with pytest.raises(NotFoundError) as raised:
            await remit.service.jobs.find("zzz")
        assert raised.value.code is Code.JOB_NOT_FOUND


async def test_a_job_is_named_by_its_handle_as_by_its_identifier(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[note], recipes=[noting]) as remit:
        job = await remit.start(noting("hello"))
        for named in (job, job.id):
            assert [row.state for row in await remit.settled(named)] == ["waiting"]
        async for question in remit.questions(job):
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        for named in (job, job.id):
            assert (await remit.ended(named)).state == "completed"
            assert (await remit.replay(named)).verdict == "same"


async def test_what_has_ended_takes_no_more_messages(remit_in: OpenRemit) -> None:
    @recipe("short")
    async def short(run: Run) -> None:
        """Nothing."""

    async with remit_in(recipes=[short]) as remit:
        job = await remit.start(short())
        await job
        for attempt in (job.signal("go"), job.cancel(), remit.service.jobs.resume(job.id)):
            with pytest.raises(StateError) as raised:
                await attempt
            assert raised.value.code is Code.JOB_FINISHED


async def test_a_result_has_the_type_the_recipe_declares(remit_in: OpenRemit) -> None:
    @recipe("paths")
    async def paths(run: Run) -> list[Path]:
        return [Path("a"), Path("b")]

    async with remit_in(recipes=[paths]) as remit:
        assert await remit.run(paths()) == [Path("a"), Path("b")]


async def test_many_jobs_at_once_all_end(remit_in: OpenRemit) -> None:
    @recipe("short")
    async def short(run: Run, number: int) -> int:
        await run.now()
        return number

    async with remit_in(recipes=[short]) as remit:
        jobs = await asyncio.gather(*(remit.start(short(number)) for number in range(100)))
        assert await asyncio.gather(*(job.result() for job in jobs)) == list(range(100))


async def test_outside_its_context_remit_is_closed(remit_in: OpenRemit) -> None:
    remit = remit_in()
    with pytest.raises(StateError):
        _ = remit.service
    async with remit:
        assert remit.service is not None


async def test_a_second_failure_of_a_job_is_not_hidden(remit_in: OpenRemit) -> None:
    @recipe("broken")
    async def broken(run: Run) -> None:
        msg = "out of order"
        raise RuntimeError(msg)

    async with remit_in(recipes=[broken]) as remit:
        job = await remit.start(broken())
        for _ in range(2):
            with pytest.raises(JobEndedError, match="RuntimeError: out of order") as raised:
                await job
            assert raised.value.code is Code.JOB_FAILED
        assert isinstance(remit, Remit)


async def test_an_error_with_a_code_that_is_not_remits_ends_the_job_with_it(remit_in: OpenRemit) -> None:
    class Reason(Enum):
        SHELF_FULL = 1

    class FullError(Exception):
        code = Reason.SHELF_FULL

    @recipe("stores")
    async def stores(run: Run) -> None:
        raise FullError("no room")

    async with remit_in(recipes=[stores]) as remit:
        with pytest.raises(JobEndedError, match="no room") as raised:
            await (await remit.start(stores()))
        assert raised.value.code.name == "SHELF_FULL"


def test_a_script_runs_a_recipe_without_an_event_loop_of_its_own(remit_in: OpenRemit) -> None:
    allowed = {"policy.rules": [{"effect": "allow", "tools": ["desk.note"]}]}
    assert run_sync(noting("hi"), remit_in(tools=[note], flags=allowed)) == "HI"
    with pytest.raises(JobEndedError):
        run_sync(noting("hi"), remit_in(tools=[note], flags={"policy.rules": [{"effect": "deny", "tools": ["*"]}]}))


async def test_where_a_loop_runs_a_sync_run_is_refused(remit_in: OpenRemit) -> None:
    with pytest.raises(UsageError, match="event loop"):
        run_sync(noting("hi"), remit_in(tools=[note]))


@pytest.mark.parametrize("given", [noting, "noting", note])
async def test_what_is_no_call_of_a_recipe_is_refused(remit_in: OpenRemit, given: Any) -> None:
    async with remit_in(tools=[note]) as remit:
        with pytest.raises(UsageError) as caught:
            await remit.run(given)
        assert caught.value.code is Code.INVALID_INPUT


async def test_a_replay_reads_no_secret(remit_in: OpenRemit, tmp_path: Path) -> None:
    @tool("bank.key", level="L0", secrets=("BANK",))
    async def key(ctx: CallContext) -> str:
        """Give the key back."""
        return f"key {ctx.secret('BANK')}"

    @recipe("ask_bank")
    async def ask_bank(run: Run) -> str:
        """Ask for the key."""
        return str((await run.call("bank.key")).value)

    source = tmp_path / "bank"
    source.write_text("sk_live_51HxQ9\n")
    named = {"BANK": {"file": str(source)}}
    async with remit_in(tools=[key], recipes=[ask_bank], flags={"secrets.named": named}) as remit:
        job = await remit.start(ask_bank())
        assert await job == "key ********"
        source.unlink()
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        again = await remit.start(ask_bank())
        assert (await remit.ended(again)).code == "SECRET_MISSING"
