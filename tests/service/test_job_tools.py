"""Recipes as tools of MCP clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from mcp.client import Client

from remit import Outcome, Remit, Run, recipe
from remit.errors import NameInvalidError
from remit.ids import new_id
from remit.jobs.state import JobHistory, stream_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import ToolInvocationStarted
from remit.service import job_tools as exposed
from remit.service.job_tools import JobsProvider
from remit.service.options import Options
from remit_testing.providers import call_context
from tests.mcp_server.links import MODERN, at, facing, lines, person, serving, sessions
from tests.opened import OpenRemit

MAY = [{"effect": "allow", "tools": ["recipe.*", "job.*"]}]


@recipe("sums.add")
async def add(run: Run, a: int, b: int = 2) -> int:
    """Add two numbers.

    Calls nothing.
    """
    return a + b


@recipe("waits")
async def waits(run: Run) -> str:
    """Wait for a signal."""
    return str(await run.wait_signal("go"))


@recipe("asks")
async def asks(run: Run) -> bool:
    """Ask a question."""
    return (await run.confirm("Shall we?")).approved


@recipe("broken")
async def broken(run: Run) -> None:
    """Fail."""
    raise ValueError("no luck")


class Opaque:
    """What no schema describes."""


@recipe("odd")
async def odd(run: Run, what: Opaque) -> None:
    """Take what JSON cannot hold."""


@asynccontextmanager
async def offering(
    remit_in: OpenRemit, *patterns: str, policy: Any = MAY, **given: Any
) -> AsyncIterator[tuple[Remit, Client]]:
    """A client of a Remit that exposes recipes."""
    flags = {"mcp.expose": list(patterns) or ["*"], "policy.rules": policy}
    async with (
        remit_in(recipes=[add, waits, asks, broken, odd], flags=flags) as remit,
        facing(remit) as face,
        Client(lines(face), mode=MODERN, cache=None, **given) as client,
    ):
        yield remit, client


def provided(remit: Remit) -> JobsProvider:
    """The provider of `waits`, as a worker of its own has it."""
    return JobsProvider(remit.service, ["waits"])


async def offered(client: Client) -> set[str]:
    names = {tool.name for tool in (await client.list_tools()).tools}
    return {name for name in names if name.startswith(("recipe__", "job__"))}


HANDLES = {"job__status", "job__result", "job__cancel"}


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["sums.*"], {"recipe__sums_add", *HANDLES}),
        (["waits", "asks"], {"recipe__waits", "recipe__asks", *HANDLES}),
        (["nothing"], set()),
    ],
)
async def test_recipes_that_fit_a_pattern_are_offered(
    remit_in: OpenRemit, patterns: list[str], names: set[str]
) -> None:
    async with offering(remit_in, *patterns) as (_, client):
        assert await offered(client) == names


async def test_none_is_offered_unless_the_operator_says_so(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[add]) as remit, facing(remit) as face, Client(lines(face), mode=MODERN) as client:
        assert await offered(client) == set()


async def test_a_recipe_with_unusable_hints_is_withheld_and_the_rest_offered(remit_in: OpenRemit) -> None:
    async with offering(remit_in) as (_, client):
        names = await offered(client)
        assert "recipe__sums_add" in names
        assert "recipe__odd" not in names
        refused = await client.call_tool("recipe__odd", {"what": 1})
    assert refused.meta is not None
    assert refused.meta["dev.remit/outcome"]["code"] == "TOOL_QUARANTINED"


@pytest.mark.parametrize("name", ["waits", "asks"])
async def test_settings_say_whose_input_is_untrusted(
    remit_in: OpenRemit, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[waits, asks]) as remit:
        monkeypatch.setattr(exposed, "WAIT_S", 0.0)
        provider = JobsProvider(remit.service, ["*"], ["wait*"])
        await provider.invoke(f"recipe.{name}", {}, call_context(principal="ann", invocation_id=new_id("inv")))
        (row,) = await remit.service.jobs.rows()
        history = JobHistory(await remit.service.streams.events(stream_of(row.job)))
        assert history.provenance.task_trusted is (name == "asks")


async def test_a_short_job_gives_its_result(remit_in: OpenRemit) -> None:
    async with offering(remit_in) as (remit, client):
        tool = next(one for one in (await client.list_tools()).tools if one.name == "recipe__sums_add")
        assert tool.description == (
            "Add two numbers. Starts a job; one that takes longer is looked at with job.result."
        )
        assert set(tool.input_schema["properties"]) == {"a", "b"}
        answer = await client.call_tool("recipe__sums_add", {"a": 40})
        assert not answer.is_error
        done = answer.structured_content
        assert {**done, "job": ""} == {"job": "", "state": "completed", "result": 42}
        assert (await remit.service.jobs.view(done["job"])).principal == "tester"


async def test_a_failed_job_says_why(remit_in: OpenRemit) -> None:
    async with offering(remit_in) as (_, client):
        answer = await client.call_tool("recipe__broken", {})
        assert answer.is_error, "a model has to see that it failed"
        done = answer.structured_content
    assert done["state"] == "failed"
    assert "no luck" in done["error"]["message"]


async def test_wrong_arguments_start_no_job(remit_in: OpenRemit) -> None:
    async with offering(remit_in) as (remit, client):
        refused = await client.call_tool("recipe__sums_add", {"a": "x"})
        assert refused.meta is not None
        assert refused.meta["dev.remit/outcome"]["code"] == "INVALID_TOOL_ARGS"
        assert await remit.jobs() == []


async def test_starting_a_job_asks_a_person_unless_policy_says_otherwise(remit_in: OpenRemit) -> None:
    async with offering(remit_in, policy=[]) as (remit, client):
        asked = await client.call_tool("recipe__sums_add", {"a": 1})
        assert asked.meta is not None
        assert asked.meta["dev.remit/outcome"]["code"] == "CONFIRMATION_REQUIRED"
        assert await remit.jobs() == []


async def test_a_long_job_gives_a_handle_that_leads_to_its_result(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposed, "WAIT_S", 0.01)
    async with offering(remit_in) as (remit, client):
        started = (await client.call_tool("recipe__waits", {})).structured_content
        assert started["state"] not in {"completed", "failed"}
        job = {"job": started["job"]}
        assert (await client.call_tool("job__result", job)).structured_content["job"] == started["job"]
        await remit.service.jobs.signal(started["job"], "go", "now")
        await remit.ended(started["job"])
        status = (await client.call_tool("job__status", job)).structured_content
        assert status == {**job, "state": "completed", "result": "now"}
        assert (await client.call_tool("job__result", job)).structured_content == status


async def test_a_job_can_be_cancelled_once(remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposed, "WAIT_S", 0.01)
    async with offering(remit_in) as (remit, client):
        job = {"job": (await client.call_tool("recipe__waits", {})).structured_content["job"]}
        assert not (await client.call_tool("job__cancel", {**job, "reason": "enough"})).is_error
        await remit.ended(job["job"])
        assert (await client.call_tool("job__status", job)).structured_content["state"] == "cancelled"
        again = await client.call_tool("job__cancel", job)
    assert again.is_error


async def test_a_job_that_asks_says_what(remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposed, "WAIT_S", 0.01)
    async with offering(remit_in) as (remit, client):
        job = (await client.call_tool("recipe__asks", {})).structured_content["job"]
        async for _ in remit.questions(job):
            break
        (question,) = (await client.call_tool("job__status", {"job": job})).structured_content["questions"]
        assert question["question"] == "Shall we?"
        await remit.service.confirmations.decide(question["confirmation"], "approve", by="bob")
        await remit.ended(job)
        done = (await client.call_tool("job__result", {"job": job})).structured_content
    assert done["result"] is True


async def test_others_jobs_are_as_if_there_were_none(remit_in: OpenRemit) -> None:
    people = [person(name) for name in ("ann", "ben")]
    flags = {"mcp.expose": ["*"], "policy.rules": MAY}
    async with (
        remit_in(recipes=[add], flags=flags) as remit,
        facing(remit) as face,
        serving(face, clients=people) as url,
        at(url, token="token-of-ann", mode=MODERN) as ann,
        at(url, token="token-of-ben", mode=MODERN) as ben,
    ):
        job = (await ann.call_tool("recipe__sums_add", {"a": 1})).structured_content["job"]
        for tool in sorted(HANDLES):
            refused = await ben.call_tool(tool, {"job": job})
            unknown = await ben.call_tool(tool, {"job": "job_nothing"})
            assert refused.is_error
            assert str(refused.content).replace(job, "J") == str(unknown.content).replace("job_nothing", "J")
        assert not (await ann.call_tool("job__status", {"job": job})).is_error


async def test_an_announced_call_that_started_its_job_is_not_made_again(remit_in: OpenRemit) -> None:
    async with offering(remit_in) as (remit, client):
        done = (await client.call_tool("recipe__sums_add", {"a": 1})).structured_content
        ((stream, events),) = (await sessions(remit)).items()
        (started,) = [event for event in events if isinstance(event, ToolInvocationStarted)]
        journal = remit.runtime.journal
        writer = journal.writer(stream, "session", await journal.head(stream))
        verdict = await remit.runtime.gateway.reconcile(started, writer)
        assert isinstance(verdict, Outcome)
        assert verdict.value == done
        assert len(await remit.jobs()) == 1


async def test_nor_one_that_stopped_a_job(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[waits], flags={"mcp.expose": ["*"]}) as remit:
        job = await remit.start(waits(), Options(principal="tester"))
        jobs, ctx = provided(remit), call_context(principal="tester")
        assert await jobs.reconcile("job.cancel", {"job": job.id}, ctx) is None
        await jobs.invoke("job.cancel", {"job": job.id}, ctx)
        await remit.ended(job.id)
        told = await jobs.reconcile("job.cancel", {"job": job.id}, ctx)
        assert told is not None
        assert told.value == {"job": job.id, "state": "cancelled"}


@pytest.mark.parametrize("attempt", [1, 2])
async def test_a_call_starts_one_job_however_many_make_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    monkeypatch.setattr(exposed, "WAIT_S", 0.0)
    async with remit_in(recipes=[waits], work=False) as frozen, remit_in(recipes=[waits], work=False) as other:
        # A worker announces the call, is frozen on the way, and another worker finds it announced.
        ids = [new_id("inv"), new_id("inv")]
        journal = frozen.runtime.journal
        announced = [
            ToolInvocationStarted(invocation_id=each, step="1", tool_name="recipe.waits", idempotency_key="the key")
            for each in ids
        ]
        await journal.create("job/caller", "job", *announced)
        ctx = call_context(stream="job/caller", idempotency_key="the key", invocation_id=ids[0])
        again = msgspec.structs.replace(ctx, attempt=attempt, invocation_id=ids[attempt - 1])
        began, goes_on = asyncio.Event(), asyncio.Event()
        start = frozen.service.jobs.start

        async def late(*given: Any) -> str:
            began.set()
            await goes_on.wait()
            return await start(*given)

        monkeypatch.setattr(frozen.service.jobs, "start", late)
        first = asyncio.create_task(provided(frozen).invoke("recipe.waits", {}, ctx))
        await began.wait()
        assert await provided(other).reconcile("recipe.waits", {}, ctx) is None
        told = await provided(other).invoke("recipe.waits", {}, again)
        goes_on.set()
        assert await first == told
        assert await provided(other).reconcile("recipe.waits", {}, again) == told
        assert len(await journal.heads(HeadQuery(prefix="job/job_"))) == 1


async def test_two_recipes_that_would_be_one_tool_are_refused(remit_in: OpenRemit) -> None:
    @recipe("sums_add")
    async def other(run: Run) -> None:
        """Looks like sums.add."""

    with pytest.raises(NameInvalidError, match=r"recipe\.sums_add"):
        async with remit_in(recipes=[add, other], flags={"mcp.expose": ["*"]}):
            pass
