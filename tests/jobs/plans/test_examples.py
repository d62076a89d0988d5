"""The plans in examples/plans, carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.jobs.effects.port import WaitAnswer
from remit.jobs.plans.graph import run_plan
from remit.jobs.plans.plan import Plan
from remit.jobs.plans.source import load_plan
from remit.jobs.recipe import Recipes
from tests.jobs.plans.scripted_world import ScriptedWorld
from tests.opened import OpenRemit, until_waiting

EXAMPLES = Path(__file__).parents[3] / "examples/plans"
WRITES = {"policy.rules": [{"effect": "allow", "tools": ["fs.write"]}]}


def example(name: str) -> Plan:
    return load_plan(EXAMPLES / name)


async def finished(remit: Remit, plan: Plan, inputs: dict[str, Any] | None = None) -> Any:
    job = await remit.start_plan(plan, inputs)
    value = await job
    assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    return value


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# Approvals\n\nA person approves every call that writes.\n")
    (tmp_path / "NOTES.md").write_text("The timeout is ten seconds.\nNothing else.\n")
    return tmp_path


def test_every_example_is_tested_here() -> None:
    code = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.iterdir() if f'"{path.name}"' not in code] == []


@pytest.mark.usefixtures("files")
async def test_digest_reads_the_passages_that_were_found(remit_in: OpenRemit) -> None:
    async with remit_in(always_replay=True) as remit:
        value = await finished(remit, example("digest.yaml"), {"folder": "."})
    assert value["searched"] == 2
    assert "A person approves every call that writes." in value["passages"][0]["text"]


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_publish_writes_once_a_person_approved_the_call(
    remit_in: OpenRemit, files: Path, decision: Literal["approve", "deny"]
) -> None:
    async with remit_in() as remit:
        job = await remit.start_plan(example("publish.yaml"))
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        assert (question.tool, question.args["path"]) == ("fs.write", "published/README.md")
        await remit.service.confirmations.decide(question.confirmation, decision, by="bob", reason="as agreed")
        value = await job
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    approved = decision == "approve"
    assert (files / "published/README.md").exists() is approved
    assert (value["published"], value["code"]) == ((True, None) if approved else (False, "CONFIRMATION_DENIED"))


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_review_files_only_what_a_person_approved(
    remit_in: OpenRemit, files: Path, decision: Literal["approve", "deny"]
) -> None:
    async with remit_in(flags=WRITES) as remit:
        job = await remit.start_plan(example("review.yaml"), {"draft": "NOTES.md", "target": "out.md"})
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        assert question.question == "Is NOTES.md good enough for out.md?"
        assert not (files / "out.md").exists()
        await remit.service.confirmations.decide(question.confirmation, decision, by="bob", reason="as agreed")
        value = await job
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    approved = decision == "approve"
    assert value == {"filed": "out.md" if approved else None, "by": "bob", "reason": "as agreed"}
    assert (files / "out.md").exists() is approved


@pytest.mark.usefixtures("files")
async def test_collect_reads_what_is_there_and_says_what_is_missing(remit_in: OpenRemit) -> None:
    async with remit_in(always_replay=True) as remit:
        value = await finished(remit, example("collect.yaml"))
    assert [one and one["path"] for one in value["files"]] == ["README.md", None, "NOTES.md"]
    assert [(one["index"], one["code"]) for one in value["missing"]] == [(1, "TOOL_EXEC_FAILED")]
    assert "fs.read" in value["missing"][0]["reason"]
    assert {"README.md", "NOTES.md"} <= {one["path"] for one in value["there"]}


@pytest.mark.usefixtures("files")
async def test_collect_looks_no_further_where_nothing_is_missing(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        value = await finished(remit, example("collect.yaml"), {"paths": ["NOTES.md"]})
    assert (value["missing"], value["there"]) == ([], None)


@pytest.mark.usefixtures("files")
async def test_lines_searches_and_lists(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        value = await finished(remit, example("lines.json"))
    assert value["title"] == 'Lines with "timeout"'
    assert [(one["path"], one["line"]) for one in value["lines"]] == [("NOTES.md", 1)]
    assert {"README.md", "NOTES.md"} <= {one["path"] for one in value["all"]}


@pytest.mark.parametrize("came", [True, False])
async def test_weekly_goes_on_without_the_export_after_six_hours(came: bool) -> None:
    @recipe("research_report")
    async def answered(run: Run, query: str, folder: str, max_sources: int) -> str:
        return f"{query} {folder} {max_sources}"

    world = ScriptedWorld(
        answers={"export.done": WaitAnswer(payload={"rows": 7}) if came else WaitAnswer(timed_out=True)}
    )
    value = await world.run(lambda run: run_plan(run, example("weekly.yaml"), {}, Recipes([answered])))
    assert [(effect.kind, effect.timeout_s) for effect in world.effects] == [("signal", 21_600), ("timer", 2)]
    assert value["rows"] == ({"rows": 7} if came else None)
    assert bool(value["late"]) is not came
    assert value["answers"] == ["Who may approve a call? docs 3", "What is recorded of a call? docs 3"]


@pytest.mark.parametrize("car", [True, False])
async def test_trip_cancels_what_it_booked_if_a_part_of_it_fails(remit_in: OpenRemit, *, car: bool) -> None:
    done: list[str] = []

    @tool("trip.book", level="L1")
    async def book(what: str) -> dict[str, str]:
        if what.startswith("car") and not car:
            raise LookupError("no car is left")
        done.append(what)
        return {"booking": what}

    @tool("trip.cancel", level="L1")
    async def cancel(booking: str) -> None:
        done.remove(booking)
        done.append(f"no {booking}")

    allow = {"policy.rules": [{"effect": "allow", "tools": ["trip.*"]}]}
    async with remit_in(tools=[book, cancel], always_replay=True, flags=allow) as remit:
        job = await remit.start_plan(example("trip.yaml"))
        if car:
            await job
            assert done == ["hotel in Rome", "flight to Rome", "car in Rome"]
        else:
            with pytest.raises(JobEndedError, match=r"undone: 1\.1\.flight, 1\.0\.hotel"):
                await job
            assert done == ["no flight to Rome", "no hotel in Rome"]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
