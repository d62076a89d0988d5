from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages.steps import StepListRow, lines
from remit.pages.timeline import Scale
from remit.parts.tickets.runner import RunnerConfig
from remit.record.job_story import step_row
from remit.record.step import Attempt, Decided, QuestionRecord, StepNarrative, Waited
from tests.opened import OpenRemit, until_waiting
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow

SECOND = 1_000_000


def drawn(told: StepNarrative, *, queued: tuple[str, int, int] | None = None) -> list[tuple[str, float]]:
    """The segments of a step's bar on a scale of ten seconds, in seconds: kind and length."""
    scale = Scale((), 0, 10 * SECOND, fold=False)
    row = step_row(told)
    (line,) = lines([[row]], {told.step: told}.get, scale, 10 * SECOND, queued)
    assert isinstance(line, StepListRow)
    return [(one.kind, round(one.width / 100, 1)) for one in line.segments]


def call(**more: Any) -> StepNarrative:
    done = Attempt(number=1, started_at=8 * SECOND, ended_at=9 * SECOND, outcome="success")
    return StepNarrative(**{"step": "1", "name": "tool.a", "state": "ok", "started_at": 0, "attempts": (done,), **more})


def test_the_time_from_an_approval_to_the_worker_is_that_of_the_queue() -> None:
    approved = Decided(decision="approve", by="ann", at=5 * SECOND)
    asked = QuestionRecord(confirmation="c", asked_at=SECOND, digest="d", decisions=(approved,))
    wait = Waited(type="human", key="c", since=SECOND, until=8 * SECOND)
    assert drawn(call(waits=(wait,), confirmations=(asked,))) == [("wait", 4), ("queue", 3), ("work", 1)]


def test_a_question_with_too_few_answers_still_waits() -> None:
    approved = Decided(decision="approve", by="ann", at=5 * SECOND)
    asked = QuestionRecord(confirmation="c", asked_at=SECOND, digest="d", approvals=2, decisions=(approved,))
    wait = Waited(type="human", key="c", since=SECOND)
    told = call(attempts=(), waits=(wait,), confirmations=(asked,), state="waiting")
    assert drawn(told) == [("wait", 9)]


def test_a_next_attempt_waits_for_its_time_and_then_for_a_worker() -> None:
    wait = Waited(type="timer", key="retry:2", since=2 * SECOND, due_at=4 * SECOND, until=8 * SECOND)
    assert drawn(call(waits=(wait,))) == [("backoff", 2), ("queue", 4), ("work", 1)]


def test_the_first_step_tells_how_long_the_job_was_queued() -> None:
    assert drawn(call(), queued=("1", 0, 7 * SECOND)) == [("queue", 7), ("work", 1)]
    assert drawn(call(), queued=("2", 0, 7 * SECOND)) == [("work", 1)]


@tool("shop.look", level="L0")
def look(item: str) -> str:
    """Look at an item."""
    return item


@recipe("part")
async def part(run: Run, item: str) -> str:
    """Look twice, with a signal between."""
    await run.call("shop.look", {"item": item})
    await run.wait_signal("on")
    found: str = (await run.call("shop.look", {"item": f"{item} again"})).value
    return found


@recipe("whole")
async def whole(run: Run) -> str:
    """Do a part, then more."""
    found = await run.child(part(item="milk"))
    await run.call("shop.look", {"item": "the rest"})
    return found


async def test_a_child_recipe_spans_its_steps_and_each_step_leads_to_it(served: Served, remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[part, whole]) as opened, served(opened) as browser:
        job = await opened.start(whole())
        await opened.service.jobs.settled([job.id])
        story = await opened.service.streams.story(job.id)
        child = story.told("1")
        assert child is not None
        assert (child.state, child.ended_at) == ("waiting", None)
        assert story.queued is not None
        assert story.queued[0] == "1"
        await job.signal("on")
        assert await job == "milk again"
        story = await opened.service.streams.story(job.id)
        child, last = story.told("1"), story.told("1.0.3")
        assert child is not None
        assert last is not None
        assert child.state == "ok"
        assert (child.ended_at or 0) >= (last.ended_at or 0) > 0
        page = (await browser.get(f"/jobs/{job.id}?step=1.0.3")).text
        assert f'href="/jobs/{job.id}?step=1"' in page.partition("Part of")[2]


async def test_a_job_leads_to_the_ticket_whose_steps_it_runs(served: Served) -> None:
    async with Remit(":memory:", tools=[look]) as opened, served(opened) as browser:
        event = {"type": "message", "thread_id": "t", "content": "Where is it?"}
        steps = [{"tool_name": "shop_look", "args": {"item": "milk"}}]
        ticket = await opened.service.tickets.create(
            {"type": "TOOL", "event": event, "tool_input": {"tool_steps": steps}}
        )
        tickets = opened.service.tickets
        await tickets.runner(RunnerConfig(owner="w"), tickets.executor()).run(asyncio.Event(), once=True)
        (row,) = await opened.service.jobs.rows(labels={"ticket": ticket.id})
        assert f'<dt>Ticket</dt><dd><a href="/tickets/{ticket.id}">' in (await browser.get(f"/jobs/{row.job}")).text


async def test_a_step_whose_tool_changed_its_version_alone_is_found(remit_in: OpenRemit, served: Served) -> None:
    def looks(version: str) -> Any:
        @tool("shop.look", level="L0", version=version)
        def look(item: str) -> str:
            """Look at an item."""
            return item

        return look

    async with remit_in(tools=[looks("1")], recipes=[part]) as remit:
        job = (await remit.start(part(item="milk"))).id
        await until_waiting(remit, job)
    async with remit_in(tools=[looks("2")], recipes=[part]) as remit, served(remit) as browser:
        await remit.job(job).signal("on")
        assert await remit.job(job) == "milk again"
        page = (await browser.get(f"/jobs/{job}?only=drift")).text
        assert "shop.look, version: was" in page
        assert "1" in re.findall(r'<tr id="s-(\d+)"', page)
        assert '<span class="badge bad">drift</span>' in page
        whole = (await browser.get(f"/jobs/{job}?step=1")).text
        assert "<dt>Drift</dt><dd>shop.look, version: was" in whole
