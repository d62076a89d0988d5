"""A job about a subject runs, goes on and replays as any other; once that is erased, its chain is still whole."""

from __future__ import annotations

from typing import Any

import pytest

from remit import EvidenceCandidate, JobEndedError, Options, Run, ToolResult, recipe, tool
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.erasure import erase
from tests.opened import OpenRemit, until_waiting

SUBJECT = "customer-7"


@tool("people.find", level="L0")
def find(name: str) -> ToolResult:
    """Find somebody, with evidence."""
    page = EvidenceCandidate(kind="tool_output", source="people", retrieved_at=1, text=f"{name} is here")
    picture = EvidenceCandidate(
        kind="tool_output", source="people", retrieved_at=1, data=b"picture of " + name.encode()
    )
    return ToolResult({"name": name, "about": "x" * 9_000}, (page, picture))


@tool("people.tell", level="L1")
def tell(name: str) -> str:
    """Tell somebody; asks first."""
    return f"told {name}"


@recipe("greet")
async def greet(run: Run, name: str) -> str:
    """Find, wait for a word, tell."""
    found = await run.call("people.find", {"name": name})
    kinds = [item.kind for item in found.evidence]
    word = await run.wait_signal("word")
    told = await run.call("people.tell", {"name": found.value["name"]})
    return f"{told.value} {word} {len(kinds)}"


GIVEN: dict[str, Any] = {"tools": [find, tell], "recipes": [greet]}


async def test_a_job_about_a_subject_runs_goes_on_replays_and_can_be_erased(remit_in: OpenRemit) -> None:
    async with remit_in(**GIVEN) as remit:
        job = (await remit.start(greet(name="Zaphod"), Options(subject=SUBJECT))).id
        await until_waiting(remit, job)
    async with remit_in(**GIVEN) as remit:  # another process
        await remit.job(job).signal("word", "Zaphod, hello")
        async for question in remit.questions(job):
            assert question.args == {"name": "Zaphod"}
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        assert await remit.job(job) == "told Zaphod Zaphod, hello 2"
        assert (await remit.service.jobs.replay(job)).verdict == "same"
        journal = remit.runtime.journal
        for placed in (await journal.scan()).events:
            assert b"Zaphod" not in placed.event.data, placed.event.kind
        row = await remit.service.jobs.row(job)
        assert "Zaphod" not in row.title
        assert (await remit.service.streams.verify(job)).erased == 0

        erased = await erase(journal, SUBJECT, by="ann")
        assert erased.streams == 3, "the job, its inbox and its question"
        report = await remit.service.streams.verify()
        assert (report.ok, report.erased > 0) == (True, True)
        view = await remit.service.jobs.view(job)
        assert view.input == view.result == {"erased": True}
        assert (await remit.service.streams.narrative(job)).steps
        with pytest.raises(JournalError) as gone:
            await remit.service.jobs.replay(job)
        assert gone.value.code is Code.PAYLOAD_ERASED


async def test_a_job_whose_subject_was_erased_cannot_go_on_and_says_why(remit_in: OpenRemit) -> None:
    async with remit_in(**GIVEN) as remit:
        job = (await remit.start(greet(name="Zaphod"), Options(subject=SUBJECT))).id
        other = (await remit.start(greet(name="Ford"))).id
        await until_waiting(remit, job)
        await until_waiting(remit, other)
    async with remit_in(**GIVEN) as remit:
        await erase(remit.runtime.journal, SUBJECT)
        await remit.job(job).cancel("erased")
        with pytest.raises(JobEndedError, match="cancelled"):
            await remit.job(job)
        await remit.job(other).signal("word", "hello")
        async for question in remit.questions(other):
            assert question.args == {"name": "Ford"}, "nobody else is the worse for it"
            return
