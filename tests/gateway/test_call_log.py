"""Lines that a tool logs beside its call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.errors import ProviderError
from remit.gateway.context import LENGTH, LINES
from remit.journal.erasure import erase
from remit.journal.event import Commit, HeadPatch
from remit.journal.kinds import CallLogged, LogLine, TimeRecorded, ToolInvocationFinished
from remit.record.step import lines_of
from remit.tools.provider import CallContext, ToolResult
from tests.gateway.world import World, odd, opened
from tests.patience import PATIENCE_S


@tool("odd.count", level="L0")
def count(ctx: CallContext, lines: int = 3) -> int:
    """Log lines from a thread."""
    for number in range(lines):
        ctx.log(f"row {number}", "debug")
    return lines


async def logged(world: World) -> list[LogLine]:
    """Return all that is recorded of logs."""
    payloads = [payload for payload in await world.recorded() if isinstance(payload, CallLogged)]
    recorded = [await world.journal.value(payload.lines, payload.lines_blob) for payload in payloads]
    return [each for data in recorded for each in lines_of(data or b"[]")]


class Broken:
    """A value that has no text."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("412 rows", ["412 rows"]),
        (Broken(), ["<Broken>"]),
        ("a\nb\r\nc", ["a", "b", "c"]),
        ("", []),
        ("\x1b[31m \u202e", ["\\u001b[31m \\u202e"]),
        ("password=hunter2hunter2", ["password=********"]),
        ("x" * 900, ["x" * (LENGTH - 1) + "…"]),
        (412, ["412"]),
    ],
)
async def test_a_line_is_recorded_masked_printable_and_cut(text: Any, recorded: list[str]) -> None:
    def behave(_args: dict[str, Any], ctx: CallContext) -> ToolResult:
        level: Any = "loud"
        ctx.log(text, level)
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        assert (await world.call()).ok
        lines = await logged(world)
        assert [each.text for each in lines] == recorded
        assert {each.level for each in lines} <= {"info"}


async def test_lines_from_a_thread_stand_before_the_end_of_the_call_in_their_order() -> None:
    async with opened(count) as world:
        await world.call("odd.count", {"lines": 40})
        assert [each.text for each in await logged(world)] == [f"row {number}" for number in range(40)]
        assert (await world.kinds())[-1] == ToolInvocationFinished.KIND


async def test_a_call_keeps_its_first_lines_and_counts_the_others() -> None:
    async with opened(count) as world:
        await world.call("odd.count", {"lines": LINES + 7})
        assert len(await logged(world)) == LINES
        assert (await world.last(CallLogged)).left_out == 7


async def test_lines_are_recorded_while_the_tool_is_at_work_and_of_one_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, written = asyncio.Event(), asyncio.Event()

    async def behave(_args: dict[str, Any], ctx: CallContext) -> ToolResult:
        ctx.log("begun", "warning")
        await go_on.wait()
        raise ProviderError("no")

    async with opened(odd(behave)) as world:
        submit = world.store.submit

        def watch(commit: Commit) -> None:
            submit(commit)
            if any(event.kind == CallLogged.KIND for append in commit.appends for event in append.events):
                written.set()

        monkeypatch.setattr(world.store, "submit", watch)
        running = asyncio.create_task(world.call())
        async with asyncio.timeout(PATIENCE_S):
            await written.wait()
        go_on.set()
        assert not (await running).ok
        assert [each.level for each in await logged(world)] == ["warning"]


async def test_lines_after_the_call_are_not_taken() -> None:
    contexts: list[CallContext] = []

    def behave(_args: dict[str, Any], ctx: CallContext) -> ToolResult:
        contexts.append(ctx)
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        await world.call()
        contexts[0].log("late")
        await world.call()
        assert await logged(world) == []


async def test_lines_about_a_subject_end_with_it() -> None:
    async with opened(count) as world:
        opening = TimeRecorded(step="0", value=1)
        await world.journal.append(world.writer, opening, synced=True, patch=HeadPatch(subject="customer-7"))
        await world.call("odd.count")
        event = await world.last(CallLogged)
        assert b"row 2" in (await world.journal.value(event.lines, event.lines_blob) or b"")
        await erase(world.journal, "customer-7")
        assert b"row" not in b"".join(each.data for each in await world.journal.read(world.stream))


@recipe("counts")
async def counts(run: Run) -> Any:
    """Count twice."""
    return [(await run.call("odd.count", {"lines": 2})).value for _ in range(2)]


@pytest.mark.parametrize("subject", ["", "customer-7"])
async def test_a_step_has_its_log_and_a_replay_does_not_need_it(subject: str) -> None:
    async with Remit(":memory:", tools=[count], recipes=[counts]) as remit:
        job = await remit.start(counts(), Options(subject=subject))
        await remit.service.jobs.settled([job.id])
        view = await remit.service.steps.view(job.id, "2")
        assert view.narrative is not None
        assert view.narrative.log is not None
        assert [each.text for each in view.narrative.log.lines] == ["row 0", "row 1"]
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "same"
