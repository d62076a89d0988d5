"""The outcome of an announced call whose end was not recorded (rule 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.gateway.outcome import Outcome
from remit.journal.effects import COMMITTED
from remit.journal.kinds import EvidenceAttached, ToolInvocationFinished, ToolInvocationStarted
from remit.tools.meta import Level, ToolMeta
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult
from tests.gateway.samples import ALLOW, write
from tests.gateway.world import Scripted, World, meta, opened


class Recalling(Scripted):
    """A provider that can tell the outcome of its calls."""

    def __init__(self, knows: Any, *metas: ToolMeta) -> None:
        super().__init__(metas or [meta(level=Level.L1)], lambda _args, _ctx: None)
        self.knows = knows
        self.asked: list[tuple[str, dict[str, Any], CallContext]] = []

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        raise asyncio.CancelledError

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> Any:
        self.asked.append((name, args, ctx))
        if isinstance(self.knows, BaseException):
            raise self.knows
        return await self.knows() if callable(self.knows) else self.knows


async def announced(world: World, args: Any = None) -> ToolInvocationStarted:
    """A call that was announced, as another process finds it."""
    await world.call(args=args or {"n": 1}, step="4")
    return await world.last(ToolInvocationStarted)


async def test_a_known_result_is_recorded_as_the_outcome() -> None:
    provider = Recalling(ToolResult({"id": (7,)}))
    async with opened(provider, rules=[ALLOW]) as world:
        started = await announced(world)
        verdict = await world.gateway.reconcile(started, world.writer)
        assert verdict == Outcome(status="ok", value={"id": [7]}, invocation_id=started.invocation_id, effect=COMMITTED)
        finished = await world.last(ToolInvocationFinished)
        assert (finished.outcome, finished.step_outcome, finished.decided_by) == (
            "success",
            "side_effect_committed",
            "odd",
        )
        assert (finished.invocation_id, finished.step) == (started.invocation_id, "4")
        assert await world.value(finished, "result") == {"id": [7]}


async def test_the_provider_is_asked_with_the_key_of_the_call() -> None:
    provider = Recalling(None)
    async with opened(provider, rules=[ALLOW]) as world:
        started = await announced(world, {"text": "x" * 20_000})
        assert await world.gateway.reconcile(started, world.writer) == "never"
        ((name, args, ctx),) = provider.asked
        assert (name, args) == ("odd.tool", {"text": "x" * 20_000})
        assert (ctx.idempotency_key, ctx.invocation_id) == (started.idempotency_key, started.invocation_id)
        assert (ctx.stream, ctx.step, ctx.attempt, ctx.span_id) == (world.stream, "4", 1, started.span_id)


async def test_what_certainly_never_happened_is_not_recorded_as_an_outcome() -> None:
    async with opened(Recalling(None), rules=[ALLOW]) as world:
        started = await announced(world)
        before = await world.kinds()
        assert await world.gateway.reconcile(started, world.writer) == "never"
        assert await world.kinds() == before


@pytest.mark.parametrize(
    "error",
    [ProviderError("no idea"), OSError("gone"), TimeoutError(), KeyError("bug"), SystemError()],
    ids=lambda error: type(error).__name__,
)
async def test_a_provider_that_cannot_tell_leaves_it_unknown(error: Exception) -> None:
    async with opened(Recalling(error), rules=[ALLOW]) as world:
        assert await world.gateway.reconcile(await announced(world), world.writer) == "unknown"


async def test_a_provider_that_does_not_answer_leaves_it_unknown() -> None:
    async def silence() -> None:
        await asyncio.Event().wait()

    async with opened(Recalling(silence, meta(level=Level.L1, timeout_ms=10)), rules=[ALLOW]) as world:
        assert await world.gateway.reconcile(await announced(world), world.writer) == "unknown"


async def test_a_provider_without_a_memory_leaves_it_unknown() -> None:
    async with opened(write, rules=[ALLOW]) as world:
        await world.call("note.write", {"text": "x"})
        started = await world.last(ToolInvocationStarted)
        assert await world.gateway.reconcile(started, world.writer) == "unknown"


async def test_a_process_that_has_not_listed_its_tools_yet_asks_all_the_same() -> None:
    async with opened(Recalling(ToolResult(1)), rules=[ALLOW]) as world:
        started = await announced(world)
        async with opened(Recalling(ToolResult(1)), rules=[ALLOW]) as fresh:
            fresh.writer = fresh.journal.writer(world.stream, "session")
            assert isinstance(await fresh.gateway.reconcile(started, fresh.writer), Outcome)


async def test_a_tool_that_is_gone_or_withheld_leaves_it_unknown() -> None:
    async with opened(Recalling(None), rules=[ALLOW]) as world:
        started = await announced(world)
        async with opened(write) as other:
            assert await other.gateway.reconcile(started, other.writer) == "unknown"
        broken = Recalling(None, meta(level=Level.L1, input_schema={"type": "strnig"}))
        async with opened(broken) as other:
            assert await other.gateway.reconcile(started, other.writer) == "unknown"


async def test_what_another_provider_of_the_name_says_proves_nothing() -> None:
    async with opened(Recalling(None), rules=[ALLOW]) as world:
        started = await announced(world)
    other = Recalling(None, meta(level=Level.L1, provider_id="newcomer"))
    async with opened(other, rules=[ALLOW]) as fresh:
        assert await fresh.gateway.reconcile(started, fresh.writer) == "unknown"
        assert other.asked == []


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (ToolResult(object()), Code.RESULT_NOT_ENCODABLE),
        (ToolResult("x" * 1_000), Code.RESULT_TOO_LARGE),
        (ToolResult("not a number"), Code.RESULT_INVALID),
        ("no result", Code.TOOL_EXEC_FAILED),
    ],
)
async def test_a_result_is_checked_as_any_other(result: Any, code: Code) -> None:
    limited = meta(level=Level.L1, output_schema={"type": "integer"})
    async with opened(Recalling(result, limited), rules=[ALLOW], max_value_bytes=500) as world:
        verdict = await world.gateway.reconcile(await announced(world), world.writer)
        assert isinstance(verdict, Outcome)
        assert (verdict.status, verdict.code) == ("failed", code)
        finished = await world.last(ToolInvocationFinished)
        assert (finished.outcome, finished.step_outcome) == ("failure", "side_effect_committed")


async def test_its_evidence_is_kept_as_any_other() -> None:
    candidates: Sequence[EvidenceCandidate] = (EvidenceCandidate(kind="a", source="b", retrieved_at=1, text="c"),)
    async with opened(Recalling(ToolResult(1, tuple(candidates))), rules=[ALLOW]) as world:
        verdict = await world.gateway.reconcile(await announced(world), world.writer)
        assert isinstance(verdict, Outcome)
        assert [one.inline for one in verdict.evidence] == ["c"]
        assert (await world.last(EvidenceAttached)).items[0]["inline"] == "c"


async def test_cancellation_passes_through() -> None:
    begun = asyncio.Event()

    async def silence() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with opened(Recalling(silence), rules=[ALLOW]) as world:
        started = await announced(world)
        task = asyncio.create_task(world.gateway.reconcile(started, world.writer))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
