"""What differs between the record of a job and today: found before anything runs, with both sides."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from remit import CallContext, Code, Remit, Run, ToolMeta, ToolResult, recipe, tool
from remit.errors import ProviderError
from remit.jobs.state import JobHistory
from remit.journal import kinds as k
from remit.journal.event import HeadPatch
from remit.tools.meta import Level, Risk
from tests.opened import OpenRemit, until, until_waiting

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["log.*"]}]}
FAIL = {"jobs.mismatch": "fail", **ALLOW}


def version(number: int, *, steps: int = 1) -> Any:
    """One version of a recipe that waits, then says which one it is."""

    @recipe("pinned", version=str(number))
    async def pinned(run: Run) -> int:
        for _ in range(steps):
            await run.call("log.add", {"number": 1})
        await run.wait_signal("go")
        return number

    return pinned


@tool("log.add", level="L0")
async def add(number: int) -> int:
    return number


async def code_of(remit: Remit, job: str) -> str:
    """The code that recorded the last effect of a job."""
    return JobHistory(await remit.service.streams.events(f"job/{job}")).execution


async def recorded(remit: Remit, job: str) -> list[k.Payload]:
    events = [k.decode(one.kind, one.data) for one in await remit.service.streams.events(f"job/{job}")]
    return [one for one in events if isinstance(one, k.VersionMismatchRecorded | k.SchemaDriftRecorded)]


async def announced(remit: Remit, job: str) -> list[str]:
    """The code that was to go on with a job after other code, in order."""
    return [one.current for one in await recorded(remit, job) if isinstance(one, k.VersionMismatchRecorded)]


# --- the job's code


async def test_a_job_that_begins_under_other_code_says_so(
    remit_in: OpenRemit, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = version(1), version(2)
    async with remit_in(tools=[add], recipes=[first], work=False) as remit:
        job = (await remit.start(first())).id
    with caplog.at_level(logging.WARNING, "remit.jobs"):
        async with remit_in(tools=[add], recipes=[second]) as remit:
            await until_waiting(remit, job)
            (mismatch,) = await recorded(remit, job)
    assert isinstance(mismatch, k.VersionMismatchRecorded)
    assert (mismatch.subject, mismatch.recorded[:2], mismatch.current[:2]) == ("execution", "1+", "2+")
    assert "execution was recorded as 1+" in caplog.text
    async with remit_in(tools=[add], recipes=[second], flags=FAIL) as remit:  # version 2 is what it began under
        await remit.job(job).signal("go")
        assert await remit.job(job) == 2


async def test_a_job_does_not_begin_under_other_code_if_policy_says_fail(remit_in: OpenRemit) -> None:
    first = version(1)
    async with remit_in(tools=[add], recipes=[first], work=False) as remit:
        job = (await remit.start(first())).id
    async with remit_in(tools=[add], recipes=[version(2)], flags=FAIL) as remit:
        await until(remit, job, lambda row: row.code == "EXECUTION_VERSION_MISMATCH")
        assert (await remit.service.jobs.view(job)).steps == ()
    async with remit_in(tools=[add], recipes=[first], flags=FAIL) as remit:
        await remit.service.jobs.resume(job)
        await until_waiting(remit, job)
        await remit.job(job).signal("go")
        assert await remit.job(job) == 1


@pytest.mark.parametrize("policy", ["warn", "fail"])
async def test_the_code_that_a_job_began_under_goes_on_after_other_code_did_nothing(
    remit_in: OpenRemit, policy: str
) -> None:
    first = version(1)
    async with remit_in(tools=[add], recipes=[first], work=False) as remit:
        job = (await remit.start(first())).id
        head = await remit.runtime.journal.head(f"job/{job}")
        assert head is not None
        # What a worker leaves that is killed as it begins under other code.
        writer = remit.runtime.journal.writer(head.stream, head.kind, head)
        other = k.VersionMismatchRecorded(
            subject="execution", recorded=first.execution_version, current="2+other", policy="warn"
        )
        await remit.runtime.journal.append(writer, other, synced=True)
    async with remit_in(tools=[add], recipes=[first], flags=FAIL | {"jobs.mismatch": policy}) as remit:
        await until_waiting(remit, job)
        assert await code_of(remit, job) == first.execution_version
        await remit.job(job).signal("go")
        assert await remit.job(job) == 1
        assert await announced(remit, job) == ["2+other", first.execution_version]


async def test_the_record_says_whose_code_each_part_of_a_job_was(remit_in: OpenRemit) -> None:
    def waits(number: int) -> Any:
        @recipe("waits", version=str(number))
        async def waits(run: Run) -> None:
            for each in range(5):
                await run.wait_signal(f"go-{each}")

        return waits

    first, second = waits(1), waits(2)
    async with remit_in(recipes=[first], work=False) as remit:
        job = (await remit.start(first())).id
    for number, here in enumerate([first, second, first, second]):
        async with remit_in(recipes=[here]) as remit:
            await remit.job(job).signal(f"go-{number}")
            awaited = f"go-{number + 1}"
            await until(remit, job, lambda row: awaited in row.waiting_for)  # noqa: B023 - called in this round only
            assert await code_of(remit, job) == here.execution_version
    async with remit_in() as remit:
        versions = [first.execution_version, second.execution_version]
        assert await announced(remit, job) == [versions[1], versions[0], versions[1]]


async def test_a_job_runs_under_the_version_that_recorded_it_beside_a_newer_one(remit_in: OpenRemit) -> None:
    first, second = version(1), version(2)
    async with remit_in(tools=[add], recipes=[first]) as remit:
        job = (await remit.start(first())).id
        await until_waiting(remit, job)
    async with remit_in(tools=[add], recipes=[first, second], flags=FAIL) as remit:
        newer = await remit.service.jobs.start_named("pinned", {})
        for each in (job, newer):
            await remit.job(each).signal("go")
        assert [await remit.job(job), await remit.job(newer)] == [1, 2]
        assert await recorded(remit, job) == []


async def test_the_version_of_a_deployment_stands_in_place_of_the_digest(remit_in: OpenRemit) -> None:
    subject, flags = version(1), {"jobs.code_version": "build-7", **FAIL}
    async with remit_in(tools=[add], recipes=[subject], flags=flags) as remit:
        job = (await remit.start(subject())).id
        await until_waiting(remit, job)
        assert (await remit.service.jobs.view(job)).execution_version == "1+build-7"
    async with remit_in(tools=[add], recipes=[version(1)], flags=flags | {"jobs.code_version": "build-8"}) as remit:
        await remit.job(job).signal("go")
        await until(remit, job, lambda row: row.code == "EXECUTION_VERSION_MISMATCH")


# --- tools


def changed(**changes: Any) -> list[Any]:
    """Tools of today."""
    made: dict[str, Any] = {}

    @tool("log.add", level="L0", version=changes.get("version", ""))
    async def same(number: int) -> int:
        return number

    @tool("log.add", level="L0")
    async def wider(number: int, why: str = "") -> int:
        return number

    @tool("log.add", level="L0")
    async def other(number: str) -> int:
        return 1

    @tool("log.add", level="L0")
    async def says(number: int) -> str:
        return str(number)

    made |= {"same": same, "wider": wider, "other": other, "says": says}
    return [made[changes.get("tool", "same")]]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"tool": "wider"}, ("request", "compatible")),
        ({"tool": "other"}, ("request", "breaking")),
        ({"tool": "says"}, ("response", "breaking")),
    ],
)
async def test_a_changed_schema_is_recorded_with_its_class(
    remit_in: OpenRemit, changes: dict[str, Any], found: tuple[str, str]
) -> None:
    subject = version(1)
    async with remit_in(tools=changed(), recipes=[subject]) as remit:
        job = (await remit.start(subject())).id
        await until_waiting(remit, job)
    async with remit_in(tools=changed(**changes), recipes=[subject], flags=FAIL) as remit:
        await remit.job(job).signal("go")
        if found[1] == "breaking":
            await until(remit, job, lambda row: row.code == "TOOL_SCHEMA_DRIFT")
        else:
            assert await remit.job(job) == 1, "what it was called with, it would still take"
        drifts = [one for one in await recorded(remit, job) if isinstance(one, k.SchemaDriftRecorded)]
        assert [(one.direction, one.drift) for one in drifts] == [found]


@pytest.mark.parametrize("before", ["1", ""])
async def test_another_version_of_a_tool_is_a_mismatch_also_if_it_had_none(remit_in: OpenRemit, before: str) -> None:
    subject = version(1)
    async with remit_in(tools=changed(version=before), recipes=[subject]) as remit:
        job = (await remit.start(subject())).id
        await until_waiting(remit, job)
    async with remit_in(tools=changed(version="2"), recipes=[subject]) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == 1
        found = [one for one in await recorded(remit, job) if isinstance(one, k.VersionMismatchRecorded)]
        assert [(one.subject, one.tool_name, one.recorded, one.current) for one in found] == [
            ("tool", "log.add", before, "2")
        ]


class Service:
    """A provider that may be down."""

    def __init__(self, provider_id: str = "service", *, down: bool = False) -> None:
        self.provider_id = provider_id
        self.down = down

    async def list_tools(self) -> Sequence[ToolMeta]:
        if self.down:
            raise ProviderError("it is down", cause=Code.ConnectionError)
        return [
            ToolMeta(
                name="log.add",
                provider_id=self.provider_id,
                input_schema={"type": "object", "properties": {"number": {}}},
                capability_level=Level.L0,
                risk_level=Risk.READ_ONLY,
            )
        ]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        return ToolResult(1)

    async def close(self) -> None:
        """Nothing to close."""


async def test_a_provider_that_is_down_is_no_drift_and_holds_no_job_back(remit_in: OpenRemit) -> None:
    subject = version(1)
    async with remit_in(providers=[Service()], recipes=[subject], flags=ALLOW) as remit:
        job = (await remit.start(subject())).id
        await until_waiting(remit, job)
    async with remit_in(providers=[Service(down=True)], recipes=[subject], flags=FAIL) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == 1
        assert await recorded(remit, job) == []


async def test_another_provider_of_the_same_tool_is_a_mismatch(remit_in: OpenRemit) -> None:
    subject = version(1)
    async with remit_in(providers=[Service("one"), Service("two")], recipes=[subject], flags=ALLOW) as remit:
        job = (await remit.start(subject())).id
        await until_waiting(remit, job)
    async with remit_in(providers=[Service("two"), Service("one")], recipes=[subject], flags=ALLOW) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == 1
        found = [one for one in await recorded(remit, job) if isinstance(one, k.VersionMismatchRecorded)]
        assert [(one.subject, one.recorded, one.current) for one in found] == [("provider", "one", "two")]


# --- plans


async def test_a_job_without_the_plan_that_it_follows_fails(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:
        created = k.JobCreated(kind="plan", name="lost")
        journal = remit.runtime.journal
        patch = HeadPatch(state="pending", due_at=journal.clock.now())
        await journal.create("job/job_01k0000000000000000000000a", "job", created, patch=patch)
    async with remit_in() as remit:
        view = await remit.ended("job_01k0000000000000000000000a")
        assert view.state == "failed"
