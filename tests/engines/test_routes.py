"""A worker without a recipe, a version or a tool leaves the job to those who have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from remit import CallContext, Remit, Run, ToolMeta, ToolResult, recipe, tool
from remit.errors import ProviderError
from remit.jobs.state import stream_of
from remit.journal.event import HeadPatch
from remit.journal.kinds import JobWaiting, decode
from remit.tools.meta import Level, Risk
from tests.engines.unlike import check_unlike_workers
from tests.opened import OpenRemit, until

pytestmark = pytest.mark.slow


@recipe("known")
async def known(run: Run) -> str:
    """A recipe that only some workers have."""
    return "done"


@recipe("shouts")
async def shouts(run: Run) -> str:
    """Call a tool that only some workers have."""
    return str((await run.call("voice.shout", {"text": "hey"})).value)


@tool("voice.shout", level="L0")
async def shout(text: str) -> str:
    """Say it loud."""
    return text.upper()


async def left_alone(remit: Remit, job: str) -> list[JobWaiting]:
    """How often workers have left a job, and why."""
    events = [decode(event.kind, event.data) for event in await remit.service.streams.events(stream_of(job))]
    return [one for one in events if isinstance(one, JobWaiting) and one.correlation_key.startswith("stuck:")]


def is_stuck(code: str) -> Callable[[Any], bool]:
    return lambda row: row.code == code and row.state == "waiting" and row.worker == ""


async def test_a_worker_without_the_recipe_leaves_the_job_to_one_that_has_it(remit_in: OpenRemit) -> None:
    @recipe("other")
    async def other(run: Run) -> str:
        return "other"

    async with remit_in(recipes=[other]) as without, remit_in(recipes=[known, other], work=False) as remit:
        job = await remit.start(known())
        assert await remit.run(other()) == "other", "the worker has looked for work"
        assert (await job.row()).state == "pending"
        assert without.runtime.engine.running == []
        async with remit_in(recipes=[known]):
            assert await job == "done"
        assert await left_alone(remit, job.id) == []


async def test_an_older_job_without_a_route_is_left_once_and_taken_by_the_worker_that_has_its_recipe(
    remit_in: OpenRemit,
) -> None:
    async with remit_in(recipes=[known], work=False) as remit:
        job = await remit.start(known())
        journal = remit.runtime.journal
        head = await journal.head(stream_of(job.id))
        assert head is not None
        await journal.append(journal.writer(head.stream, head.kind, head), synced=True, patch=HeadPatch(route=""))
        async with remit_in():
            await until(remit, job.id, is_stuck("UNKNOWN_RECIPE"))
            (why,) = await left_alone(remit, job.id)
            assert why.reason.startswith("process "), "it says which worker lacks it"
            async with remit_in(recipes=[known]):
                assert await job == "done"
        assert len(await left_alone(remit, job.id)) == 1


async def test_a_worker_without_the_tool_leaves_the_job_to_one_that_has_it(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[shouts]) as remit:
        job = await remit.start(shouts())
        await until(remit, job.id, is_stuck("UNKNOWN_TOOL"))
        async with remit_in(recipes=[shouts], tools=[shout]):
            assert await job == "HEY"
        (why,) = await left_alone(remit, job.id)
        assert "'voice.shout'" in why.reason


async def test_a_job_that_missed_a_tool_waits_and_goes_on_for_those_who_have_its_recipe_alone(
    remit_in: OpenRemit,
) -> None:
    @recipe("shouts_later")
    async def shouts_later(run: Run) -> str:
        said = str((await run.call("voice.shout", {"text": "hey"})).value)
        await run.wait_signal("go")
        return said

    async with remit_in(recipes=[shouts_later]) as remit:
        job = await remit.start(shouts_later())
        await until(remit, job.id, is_stuck("UNKNOWN_TOOL"))
        async with remit_in(recipes=[shouts_later], tools=[shout]):
            await until(remit, job.id, lambda row: row.state == "waiting" and not row.code)
        await job.signal("go")
        assert await job == "HEY", "the tool is needed no more"


class Moody:
    """A provider that cannot be listed until it is fixed."""

    provider_id = "mcp_moody"

    def __init__(self) -> None:
        self.up = False
        self.calls = 0

    async def list_tools(self) -> Sequence[ToolMeta]:
        if not self.up:
            raise ProviderError("it does not answer")
        return [
            ToolMeta(
                name="mcp.moody.say",
                provider_id="mcp_moody",
                input_schema={"type": "object"},
                capability_level=Level.L0,
                risk_level=Risk.READ_ONLY,
                side_effects=False,
                requires_confirm=False,
            )
        ]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.calls += 1
        return ToolResult("hello")

    async def close(self) -> None:
        """Nothing to close."""


@recipe("asks_moody")
async def asks_moody(run: Run) -> str:
    """Call a server's tool."""
    return str((await run.call("mcp.moody.say")).value)


async def test_a_job_whose_server_is_down_goes_on_by_itself_once_it_is_up(remit_in: OpenRemit) -> None:
    moody = Moody()
    async with remit_in(recipes=[asks_moody], providers=[moody], flags={"jobs.lease_seconds": 1}) as remit:
        job = await remit.start(asks_moody())
        await until(remit, job.id, is_stuck("MCP_REQUIRED_UNAVAILABLE"))
        moody.up = True
        assert await job == "hello"
    assert moody.calls == 1


async def test_a_call_whose_outcome_is_asked_for_is_refused_where_its_tool_is_not(remit_in: OpenRemit) -> None:
    @recipe("tries")
    async def tries(run: Run) -> str:
        outcome = await run.attempt("voice.shout", {"text": "hey"})
        return outcome.code.name if outcome.code else ""

    async with remit_in(recipes=[tries]) as remit:
        assert await remit.run(tries()) == "UNKNOWN_TOOL"


@pytest.mark.parametrize("lacks", ["the recipe", "a tool"])
async def test_a_job_that_no_worker_can_take_can_be_cancelled_by_any(remit_in: OpenRemit, lacks: str) -> None:
    async with remit_in(recipes=[known, shouts], work=False) as remit:
        job = await remit.start(known() if lacks == "the recipe" else shouts())
        async with remit_in(recipes=[] if lacks == "the recipe" else [shouts]):
            if lacks == "a tool":
                await until(remit, job.id, is_stuck("UNKNOWN_TOOL"))
            await job.cancel()
            assert (await remit.ended(job.id)).state == "cancelled"


async def test_resuming_a_job_that_was_left_lets_every_worker_look_again(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[shouts]) as remit:
        job = await remit.start(shouts())
        await until(remit, job.id, is_stuck("UNKNOWN_TOOL"))
        await remit.service.jobs.resume(job.id)
        mark = 0
        while len(await left_alone(remit, job.id)) < 2:
            mark = await remit.runtime.journal.changed(mark)


@pytest.mark.slow
async def test_worker_processes_of_different_code_share_a_file_and_survive_kills(tmp_path: Path) -> None:
    await check_unlike_workers(str(tmp_path / "journal.db"), tmp_path, each=6, kills=8)
