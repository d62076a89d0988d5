"""Replay calls nothing, and says where and how code and record part."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from remit import Recipe, Run, recipe, tool
from remit.codes import Code
from remit.errors import ProviderError, VersionError
from remit.journal.event import HeadQuery, StreamHead
from remit.tools.provider import EvidenceCandidate
from tests.opened import OpenRemit, until_waiting

calls: list[int] = []


@tool("log.add", level="L0")
async def add(number: int) -> int:
    """Note a number."""
    calls.append(number)
    return number


def variant(body: Any) -> Recipe[[], Any]:
    """The same recipe, written differently."""
    return recipe("subject")(body)


async def original(run: Run) -> list[int]:
    """Two calls, the second in a branch, and a clock reading."""
    first = (await run.call("log.add", {"number": 1})).value
    second = (await run.gather(run.call("log.add", {"number": 2})))[0].value
    await run.now()
    return [first, second]


async def other_argument(run: Run) -> list[int]:
    first = (await run.call("log.add", {"number": 3})).value
    return [first]


async def other_tool(run: Run) -> list[int]:
    return [(await run.call("log.other", {"number": 1})).value]


async def other_kind(run: Run) -> list[int]:
    await run.now()
    return []


async def other_result(run: Run) -> list[int]:
    await original(run)
    return [0]


async def one_more(run: Run) -> list[int]:
    found = await original(run)
    await run.now()
    return found


async def one_less(run: Run) -> list[int]:
    first = (await run.call("log.add", {"number": 1})).value
    second = (await run.gather(run.call("log.add", {"number": 2})))[0].value
    return [first, second]


async def raises(run: Run) -> list[int]:
    await original(run)
    msg = "changed its mind"
    raise ValueError(msg)


async def swallows(run: Run) -> list[int]:
    try:
        return await other_argument(run)
    except Exception:  # noqa: BLE001 - as careless code does
        return [1, 2]


async def test_the_same_code_agrees_and_calls_nothing(remit_in: OpenRemit) -> None:
    subject = variant(original)
    async with remit_in(tools=[add], recipes=[subject]) as remit:
        job = await remit.start(subject())
        assert await job == [1, 2]
        made, events = len(calls), len(await remit.service.streams.events(f"job/{job.id}"))
        report = await remit.service.jobs.replay(job.id)
        assert (report.verdict, report.steps, report.divergence) == ("same", 3, None)
        assert len(calls) == made
        assert len(await remit.service.streams.events(f"job/{job.id}")) == events


@pytest.mark.parametrize(
    ("body", "step", "recorded", "now"),
    [
        (other_argument, "1", 'log.add {"number":1}', 'log.add {"number":3}'),
        (other_tool, "1", 'log.add {"number":1}', 'log.other {"number":1}'),
        (other_kind, "1", "a tool call", "a clock reading"),
        (other_result, "end", "[1,2]", "[0]"),
        (one_more, "4", "nothing: the job had ended", "time"),
        (one_less, "3", "a clock reading", "nothing there any more"),
        (raises, "end", "a result", "JOB_FAILED: ValueError: changed its mind"),
        (swallows, "1", 'log.add {"number":1}', 'log.add {"number":3}'),
    ],
)
async def test_changed_code_is_found_with_both_sides(
    remit_in: OpenRemit, body: Any, step: str, recorded: str, now: str
) -> None:
    subject, changed = variant(original), variant(body)
    async with remit_in(tools=[add], recipes=[subject]) as remit:
        job = await remit.start(subject())
        await job
    made = len(calls)
    async with remit_in(tools=[add], recipes=[changed]) as remit:
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "diverged"
        assert report.divergence is not None
        assert (report.divergence.step, report.divergence.recorded, report.divergence.now) == (step, recorded, now)
        assert report.drifts[0].subject == "execution"
    assert len(calls) == made


async def test_a_job_that_still_waits_agrees_as_far_as_it_has_come(remit_in: OpenRemit) -> None:
    @recipe("waiting")
    async def waiting(run: Run) -> None:
        await run.now()
        await run.wait_signal("go")

    async with remit_in(recipes=[waiting]) as remit:
        job = await remit.start(waiting())
        await until_waiting(remit, job.id)
        assert (await remit.service.jobs.replay(job.id)).verdict == "incomplete"


async def test_a_changed_tool_is_reported_as_drift(remit_in: OpenRemit) -> None:
    @tool("log.add", level="L0")
    async def wider(number: int, why: str = "") -> int:
        return number

    subject = variant(original)
    async with remit_in(tools=[add], recipes=[subject]) as remit:
        job = await remit.start(subject())
        await job
    async with remit_in(tools=[wider], recipes=[subject]) as remit:
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "same"
        assert [(one.subject, one.about, one.drift) for one in report.drifts] == [
            ("registry", "registry", ""),
            ("log.add", "request", "compatible"),
        ]


async def test_always_replay_runs_the_recipe_again_after_every_step(remit_in: OpenRemit) -> None:
    passes = 0

    @recipe("counted")
    async def counted(run: Run) -> list[int]:
        nonlocal passes
        passes += 1
        return await original(run)

    async with remit_in(tools=[add], recipes=[counted], always_replay=True) as remit:
        made = len(calls)
        assert await remit.run(counted()) == [1, 2]
        assert passes == 4
        assert len(calls) == made + 2


async def test_always_replay_finds_what_is_not_deterministic(remit_in: OpenRemit) -> None:
    number = 0

    @recipe("sloppy")
    async def sloppy(run: Run) -> None:
        nonlocal number
        number += 1
        await run.call("log.add", {"number": number})

    async with remit_in(tools=[add], recipes=[sloppy], always_replay=True) as remit:
        job = await remit.start(sloppy())
        row = await until_waiting(remit, job.id)
        while row.code != "NONDETERMINISTIC":
            row = await until_waiting(remit, job.id)


async def test_a_replay_asks_the_journal_about_today_once_a_tool_not_once_a_call(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def many(run: Run) -> int:
        for number in range(6):
            await run.call("log.add", {"number": number})
        return 6

    queries: list[HeadQuery] = []
    async with remit_in(tools=[add], recipes=[variant(many)]) as remit:
        job = await remit.start(variant(many)())
        await job
        journal = remit.runtime.journal
        heads = journal.heads

        async def counted(query: HeadQuery) -> list[StreamHead]:
            queries.append(query)
            return await heads(query)

        monkeypatch.setattr(journal, "heads", counted)
        assert (await remit.service.jobs.replay(job.id)).today == "same"
    assert [query.labels for query in queries if query.kind == "approval"] == [{"tool": "log.add"}]


@tool("log.add", level="L0")
async def add_digit(number: Annotated[int, msgspec.Meta(le=3)]) -> int:
    """Append a small number."""
    return number


SMALL = {"policy.rules": [{"effect": "deny", "tools": ["log.*"], "when": {"number": {"min": 4}}}]}


@pytest.mark.parametrize(
    ("tools", "flags", "code"), [([add_digit], {}, "INVALID_TOOL_ARGS"), ([add], SMALL, "POLICY_DENIED")]
)
async def test_each_call_of_a_tool_is_judged_by_its_own_arguments(
    remit_in: OpenRemit, tools: list[Any], flags: dict[str, Any], code: str
) -> None:
    async def many(run: Run) -> None:
        for number in range(6):
            await run.call("log.add", {"number": number})

    async with remit_in(tools=[add], recipes=[variant(many)]) as remit:
        job = await remit.start(variant(many)())
        await job
    async with remit_in(tools=tools, recipes=[variant(many)], flags=flags) as remit:
        report = await remit.service.jobs.replay(job.id)
        assert [(call.step, call.code) for call in report.calls] == [("5", code), ("6", code)]


@tool("log.renamed", level="L0", version="1")
async def first_version(number: int) -> int:
    """Add a number."""
    return number


@tool("log.renamed", level="L0", version="2")
async def second_version(number: int, note: str) -> int:
    """Add a number."""
    return number


async def renamed(run: Run) -> Any:
    return (await run.call("log.renamed", {"number": 1})).value


@pytest.mark.parametrize("policy", ["fail", "migrate"])
@pytest.mark.parametrize(
    ("tools", "code"),
    [([first_version], Code.EXECUTION_VERSION_MISMATCH), ([second_version], Code.TOOL_SCHEMA_DRIFT)],
    ids=["code", "tool"],
)
async def test_a_strict_policy_refuses_to_replay_under_other_versions_unless_told_to(
    remit_in: OpenRemit, policy: str, tools: list[Any], code: Code
) -> None:
    subject = variant(renamed)
    async with remit_in(tools=[first_version], recipes=[subject]) as remit:
        job = await remit.start(subject())
        await job
        assert (await remit.replay(job.id)).verdict == "same"
    now = variant(renamed) if code is Code.TOOL_SCHEMA_DRIFT else variant(raises)
    async with remit_in(tools=tools, recipes=[now], flags={"jobs.mismatch": policy}) as remit:
        with pytest.raises(VersionError) as caught:
            await remit.replay(job.id)
        assert caught.value.code is code
        (row,) = [one async for one in remit.service.jobs.replays()]
        assert row.code == code.name
        assert (await remit.replay(job.id, anyway=True)).drifts


@tool("log.fails", level="L0")
def fails() -> None:
    """Fail, and say what was seen."""
    seen = EvidenceCandidate(kind="page", source="log", retrieved_at=1, text="x")
    raise ProviderError("no such entry", cause=None, evidence=(seen,))


async def test_evidence_of_a_failure_is_given_again(remit_in: OpenRemit) -> None:
    async def attempts(run: Run) -> list[str]:
        outcome = await run.attempt("log.fails", {})
        return [outcome.reason, *(item.inline or "" for item in outcome.evidence)]

    async with remit_in(tools=[fails], recipes=[variant(attempts)]) as remit:
        job = await remit.start(variant(attempts)())
        assert await job == ["log.fails: no such entry", "x"]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        assert (await remit.service.streams.verify()).ok
