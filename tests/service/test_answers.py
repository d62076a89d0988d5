"""What a face needs to show and answer questions, in a process that is not the one that asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.errors import UsageError
from remit.jobs.state import stream_of
from remit.journal.event import Head
from tests.opened import OpenRemit, until, until_waiting


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    return text


@tool("pad.write")
def rewrite(text: str, loudly: bool = False) -> str:
    """Write, in a later version."""
    return text.upper() if loudly else text


@recipe("pads")
async def pads(run: Run) -> Any:
    """Write, then ask, then wait."""
    await run.attempt("pad.write", {"text": "x"})
    await run.confirm("well?")
    return await run.wait_signal("go", timeout=3_600)


@recipe("gives_up")
async def gives_up(run: Run) -> None:
    """Wait, then fail."""
    await run.wait_signal("go")
    raise ValueError("enough")


async def asked(remit_in: OpenRemit) -> tuple[str, str]:
    """A job that waits for the approval of a call, and the question."""
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        job = await remit.start(pads())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        return job.id, question.confirmation


async def test_a_remembered_approval_is_of_the_contract_that_was_shown(remit_in: OpenRemit) -> None:
    job, question = await asked(remit_in)
    async with remit_in(tools=[rewrite], work=False) as remit:
        decided = await remit.commands.decide(question, "approve", by="bob")
        kept = await remit.commands.remember(decided, "everything", seconds=60, exact=False)
        today = await remit.queries.tool("pad.write")
        assert kept.contract_hash == decided.request.contract_hash != today.contract_hash
        assert (await remit.queries.job(job)).principal == kept.principal == "alice"


async def test_arguments_can_be_edited_by_a_process_that_has_listed_no_tools_yet(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(tools=[write], work=False) as remit:
        edited = await remit.commands.edit(question, {"text": "y"}, by="bob")
        assert (edited.args, edited.request.edited_from) == ({"text": "y"}, question)
    async with remit_in(work=False) as remit:
        with pytest.raises(UsageError, match="no tool's arguments"):
            await remit.commands.edit(edited.id, {"text": "z"}, by="bob")


async def test_what_a_job_waits_for_is_open_until_it_came(remit_in: OpenRemit) -> None:
    job, question = await asked(remit_in)
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        assert [(one.type, one.key) for one in (await remit.queries.job(job)).waits] == [("human", question)]
        await remit.commands.decide(question, "approve", by="bob")
        await until(remit, job, lambda row: row.state == "waiting" and question not in row.waiting_for)
        (wait,) = (await remit.queries.job(job)).waits
        assert (wait.step, wait.type, wait.reason) == ("2", "human", "well?")
        (asks,) = await remit.queries.confirmations(job)
        await remit.commands.decide(asks.confirmation, "deny", by="bob")
        row = await until(remit, job, lambda row: row.state == "waiting" and row.waiting_for == "signal go")
        (wait,) = (await remit.queries.job(job)).waits
        assert (wait.type, wait.key, wait.due_at) == ("signal", "go", row.due_at)
        await remit.commands.signal(job, "go")
        await remit.ended(job)
        assert (await remit.queries.job(job)).waits == ()


async def test_a_job_that_ends_while_it_is_looked_at_is_told_as_it_was_at_one_moment(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[gives_up]) as remit:
        job = await remit.start(gives_up())
        await until_waiting(remit, job.id)
        journal, head = remit.runtime.journal, remit.runtime.journal.head

        async def fails_meanwhile(stream: str) -> Head | None:
            found = await head(stream)
            monkeypatch.setattr(journal, "head", head)
            await job.signal("go")
            await remit.ended(job.id)
            return found

        monkeypatch.setattr(journal, "head", fails_meanwhile)
        view = await job.view()
        assert (view.row.state, view.error, [wait.key for wait in view.waits]) == ("waiting", None, ["go"])
        view = await job.view()
        assert (view.row.state, (view.error or {}).get("message"), view.waits) == ("failed", "ValueError: enough", ())


async def test_a_job_has_no_result_before_it_has_completed(remit_in: OpenRemit) -> None:
    gate = asyncio.Event()

    @recipe("late")
    async def late(run: Run) -> str:
        """Wait, then think."""
        word = str(await run.wait_signal("go"))
        await gate.wait()
        return word

    async with remit_in(recipes=[late]) as remit:
        job = await remit.start(late())
        await job.signal("go", "done")
        results = []
        async for _ in remit.queries.follow(stream_of(job.id)):
            results.append(await remit.queries.result(job.id))
            if len(results) == 3:  # its making, the wait and its end
                gate.set()
        assert results == [None, None, None, "done"]


async def test_policy_explains_a_call_by_name_or_key(remit_in: OpenRemit) -> None:
    rules = [{"id": "no-pads", "effect": "deny", "tools": ["pad.write"], "callers": ["job:pads"]}]
    async with remit_in(tools=[write], flags={"policy.rules": rules}) as remit:

        async def effect(name: str, **caller: Any) -> str:
            return (await remit.queries.explain(name, {"text": "x"}, principal="bob", **caller)).decision.effect

        assert await effect("pad.write") == await effect("pad_write") == "ask"
        assert await effect("pad.write", kind="job", recipe="pads") == "deny"
        assert await effect("pad.erase") == "deny"
