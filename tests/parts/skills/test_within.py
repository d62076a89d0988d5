"""Where skills go from the job that took them up: to recipes within it, nodes of a plan, a conversation's next job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remit import Run, recipe
from remit.errors import RunError, UsageError
from remit.jobs.plans.check import read_plan
from remit.journal.kinds import ChildStarted, ToolInvocationStarted
from remit.models.message import ToolMessage
from remit.parts.agents.recipes import agent
from remit.service.options import Options
from tests.parts.skills.project import call, opened, record, settings, skill
from tests.patience import PATIENCE_S


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with three skills."""
    skill(
        tmp_path / "skills", "notes", "Read notes.", tools="notes.read", files={"references/more.md": "There is more."}
    )
    skill(tmp_path / "skills", "mail", "Send mails.", tools="mail.send")
    skill(tmp_path / "skills", "keys", "Give keys.", tools="secret.key")
    return tmp_path


@pytest.mark.parametrize("reaction", ["catches", "fails"])
async def test_a_recipe_within_a_job_is_looked_at_when_it_begins(folder: Path, reaction: str) -> None:
    @recipe("inner")
    async def inner(run: Run) -> str:
        return str((await run.call("notes.read", {"name": "a"})).value)

    @recipe("outer")
    async def outer(run: Run) -> str:
        try:
            return await run.child(inner())
        except RunError as error:
            if reaction == "fails":
                raise
            await run.call("notes.read", {"name": "b"})
            return f"{error.code.name}: {error.remedy}"

    toml = "[skills]\nfolders = ['skills']\n[skills.keys]\nrun_types = ['inner']\nenabled = false\n"
    async with opened(settings(folder, toml=toml), recipes=[outer, inner]) as remit:
        jobs, job = remit.service.jobs, await remit.start(outer())
        await asyncio.wait_for(remit.settled(job.id), PATIENCE_S)
        view = await jobs.view(job.id)
        payloads, _ = await record(remit, job.id)
        (child,) = [one for one in payloads if isinstance(one, ChildStarted)]
        assert child.refused is not None
        assert child.refused.code == "SKILL_DISABLED"
        called = [one.tool_name for one in payloads if isinstance(one, ToolInvocationStarted)]
        assert called == (["notes.read"] if reaction == "catches" else [])
        if reaction == "catches":
            assert view.result == f"SKILL_DISABLED: {child.refused.remedy}"
        else:
            assert view.error is not None
            assert view.error.code == "SKILL_DISABLED"
        step = view.steps[0]
        assert (step.name, step.state, step.error_code) == ("recipe.inner", "failed", "SKILL_DISABLED")
    allowed = settings(folder, toml=toml.replace("false", "true"))
    async with opened(allowed, recipes=[outer, inner]) as remit:  # what is recorded stays, whatever is allowed now
        jobs = remit.service.jobs
        assert (await jobs.replay(job.id)).verdict == "same"
        if reaction == "fails":
            again = (await jobs.retry(job.id)).job
            await asyncio.wait_for(remit.settled(again), PATIENCE_S)
            assert (await jobs.view(again)).result == "the note a"


async def test_a_model_is_told_that_a_recipe_is_not_allowed(folder: Path) -> None:
    @recipe("inner")
    async def inner(run: Run) -> str:
        """Do the inner part."""
        return run.job_id

    toml = "[skills]\nfolders = ['skills']\n[skills.keys]\nrun_types = ['inner']\nenabled = false\n"
    steps = call(("run__inner", {})), {"say": "Done."}
    async with opened(settings(folder, *steps, toml=toml), recipes=[inner]) as remit:
        job = await remit.start(agent(task="Do it.", recipes=["inner"]))
        assert (await asyncio.wait_for(job.result(), PATIENCE_S)).answer == "Done."
        _, sent = await record(remit, job.id)
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    (told,) = [block.text for message in sent for block in message.blocks if isinstance(block, ToolMessage)]
    assert "SKILL_DISABLED" in told


async def test_what_a_plan_was_created_with_is_not_looked_at_again(folder: Path) -> None:
    @recipe("inner")
    async def inner(run: Run) -> str:
        return run.job_id

    nodes = [{"id": "first", "wait": {"signal": "go"}}, {"id": "then", "recipe": "inner", "after": ["first"]}]
    plan = read_plan({"name": "p", "version": "taskgraph-v1", "nodes": nodes})
    toml = "[skills]\nfolders = ['skills']\n[skills.keys]\nrun_types = ['inner']\n"
    async with opened(settings(folder, toml=toml), recipes=[inner]) as remit:
        job = await remit.service.jobs.start_plan(plan, {})
        await remit.service.skills.disable("keys")
        await remit.service.jobs.signal(job, "go", None)
        await asyncio.wait_for(remit.settled(job), PATIENCE_S)
        assert (await remit.service.jobs.view(job)).state == "completed"


async def test_a_plan_is_held_by_the_run_type_plan_and_not_by_its_name(folder: Path) -> None:
    plan = read_plan({"name": "p", "version": "taskgraph-v1", "nodes": [{"id": "a", "wait": {"signal": "go"}}]})
    toml = (
        "[skills]\nfolders = ['skills']\nrequired = true\nswitched_off = 'park'\n[skills.keys]\nrun_types = ['plan']\n"
    )
    async with opened(settings(folder, toml=toml)) as remit:
        job = await remit.service.jobs.start_plan(plan, {})
        await remit.service.jobs.signal(job, "go", None)
        await asyncio.wait_for(remit.settled(job), PATIENCE_S)
        assert (await remit.service.jobs.view(job)).state == "completed"


async def test_a_conversation_goes_on_under_its_skills_or_fewer_and_no_other(folder: Path) -> None:
    async with opened(settings(folder, {"say": "One."}, {"say": "Two."})) as remit:
        job = await remit.start(agent(task="Do it."), options=Options(skills=("notes", "mail")))
        await asyncio.wait_for(job.result(), PATIENCE_S)
        say = remit.service.conversations.say
        with pytest.raises(UsageError) as caught:
            await say(job.id, "Go on.", Options(skills=("notes", "keys")))
        assert "keys" in caught.value.message
        assert caught.value.remedy
        for named, kept in (((), ["notes", "mail"]), (("mail",), ["mail"])):
            chat = await say(job.id, "Go on.", Options(skills=named))
            assert list((await remit.service.jobs.view(chat)).skills or ()) == kept
        free = await remit.start(agent(task="Do it."), options=Options(delay_s=1e6))
        with pytest.raises(UsageError):  # it is at work, and under none
            await say(free.id, "Go on.", Options(skills=("notes",)))


async def test_drift_names_skills_that_are_no_longer_as_they_were_taken_up(folder: Path) -> None:
    async with opened(settings(folder, {"say": "One."})) as remit:
        job = await remit.start(agent(task="Do it."), options=Options(skills=("notes", "mail", "keys")))
        await asyncio.wait_for(job.result(), PATIENCE_S)
        assert (await remit.service.drift.report(job.id)).skills == ()
    (folder / "skills/notes/references/more.md").write_text("There is less.")
    (folder / "skills/mail/SKILL.md").unlink()
    async with opened(settings(folder)) as remit:
        report = await remit.service.drift.report(job.id)
        assert [(one.name, bool(one.current), one.ended) for one in report.skills] == [
            ("mail", False, 1),
            ("notes", True, 1),
        ]
