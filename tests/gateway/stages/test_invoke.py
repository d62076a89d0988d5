"""Invoke: the provider, within the deadline."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import JournalError, ProviderError
from remit.gateway.stages.invoke import Deadlines
from remit.journal.kinds import ToolInvocationFinished
from remit.tools.meta import Level
from remit.tools.provider import CallContext, ToolResult
from tests.gateway.samples import ALLOW, add
from tests.gateway.world import odd, opened


def raises(error: BaseException) -> Any:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        raise error

    return behave


async def hang(_args: Any, _ctx: Any) -> ToolResult:
    await asyncio.Event().wait()
    return ToolResult("never")


# --- what an exception means


@pytest.mark.parametrize(
    ("error", "code", "cause"),
    [
        (ProviderError("x", cause=Code.Timeout), Code.TOOL_TIMEOUT, "Timeout"),
        (ProviderError("x", cause=Code.ProviderClosed), Code.TOOL_UNAVAILABLE, "ProviderClosed"),
        (ProviderError("x", cause=Code.SpawnFailed), Code.TOOL_UNAVAILABLE, "SpawnFailed"),
        (ProviderError("x", cause=Code.ConnectionError), Code.TOOL_UNAVAILABLE, "ConnectionError"),
        (ProviderError("x", cause=Code.ToolNotFound), Code.TOOL_EXEC_FAILED, "ToolNotFound"),
        (ProviderError("x", cause=Code.InvalidInput), Code.TOOL_EXEC_FAILED, "InvalidInput"),
        (ProviderError("x", cause=Code.AuthError), Code.TOOL_EXEC_FAILED, "AuthError"),
        (ProviderError("x", cause=Code.NetworkError), Code.TOOL_EXEC_FAILED, "NetworkError"),
        (ProviderError("x", cause=Code.BadGateway), Code.TOOL_EXEC_FAILED, "BadGateway"),
        (ProviderError("x", code=Code.PATH_NOT_ALLOWED), Code.TOOL_EXEC_FAILED, "PATH_NOT_ALLOWED"),
        (ProviderError("x", cause=None, code=Code.Timeout), Code.TOOL_TIMEOUT, "Timeout"),
        (
            ProviderError("x", cause=Code.InvalidInput, code=Code.FILE_NOT_FOUND),
            Code.TOOL_EXEC_FAILED,
            "FILE_NOT_FOUND",
        ),
        (TimeoutError("x"), Code.TOOL_TIMEOUT, "Timeout"),
        (ConnectionResetError("x"), Code.TOOL_UNAVAILABLE, "ConnectionError"),
        (OSError("x"), Code.TOOL_EXEC_FAILED, None),
        (JournalError("x"), Code.TOOL_EXEC_FAILED, None),
        (SystemExit("x"), Code.TOOL_EXEC_FAILED, None),
        (asyncio.CancelledError("x"), Code.TOOL_UNAVAILABLE, None),
        (ExceptionGroup("x", [ValueError("y")]), Code.TOOL_EXEC_FAILED, None),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, BaseException) else "",
)
async def test_an_exception_becomes_the_code_of_the_contract(
    error: BaseException, code: Code, cause: str | None
) -> None:
    async with opened(odd(raises(error))) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code, outcome.cause) == ("failed", code, cause)
        assert outcome.reason.startswith("odd.tool: ")
        assert await world.kinds() == ["tool_invocation_started", "tool_invocation_finished"]


@pytest.mark.parametrize(
    ("cause", "lasting"), [(Code.WebProviderError, False), (Code.SpawnFailed, False), (Code.WebParseError, True)]
)
async def test_only_what_lasts_is_said_to_fail_again(cause: Code, lasting: bool) -> None:
    async with opened(odd(raises(ProviderError("x", cause=cause)))) as world:
        assert ((await world.call()).remedy == "See the reason.") is lasting is not cause.retryable


async def test_a_code_of_a_blocked_call_blocks() -> None:
    async with opened(odd(raises(ProviderError("outside", code=Code.POLICY_DENIED)))) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code) == ("blocked", Code.POLICY_DENIED)
        assert await world.kinds() == ["tool_invocation_started", "tool_invocation_finished"]


@pytest.mark.parametrize("code", [Code.CONFIRMATION_REQUIRED, Code.JOB_NOT_FOUND, Code.Timeout, Code.DEP_TIMEOUT, "?"])
async def test_a_code_that_is_no_outcome_of_a_call_is_not_taken_over(code: Any) -> None:
    async with opened(odd(raises(ProviderError("x", cause=Code.AuthError, code=code)))) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code, outcome.cause) == ("failed", Code.TOOL_EXEC_FAILED, "AuthError")


async def test_a_provider_error_that_is_not_made_as_it_should_be_is_a_failure() -> None:
    class StrangeError(ProviderError):
        def __init__(self) -> None:
            self.cause: Any = "no code"

        def __str__(self) -> str:
            raise RuntimeError("not even this")

    async with opened(odd(raises(StrangeError()))) as world:
        outcome = await world.call()
        assert (outcome.code, outcome.cause, outcome.reason) == (Code.TOOL_EXEC_FAILED, None, "odd.tool: StrangeError")


async def test_a_reason_is_one_short_line_without_secrets() -> None:
    error = RuntimeError(f"401\r\nAuthorization: Bearer abcdef0123456789\x1b[2J {'x' * 100_000}\ud800")
    async with opened(odd(raises(error))) as world:
        outcome = await world.call()
        assert outcome.reason.isprintable()
        assert len(outcome.reason) <= 1_000
        assert "abcdef0123456789" not in outcome.reason
        recorded = (await world.last(ToolInvocationFinished)).error
        assert recorded is not None
        assert recorded.message == outcome.reason


async def test_what_a_tool_raised_is_logged_for_developers_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(odd(raises(RuntimeError("password=hunter2hunter2")))) as world:
        with caplog.at_level(logging.DEBUG, "remit.gateway"):
            await world.call()
        assert "Traceback" in caplog.text
        assert "hunter2" not in caplog.text


# --- certain or not (rule 3)


@pytest.mark.parametrize(
    ("error", "uncertain"),
    [
        (ProviderError("x", cause=Code.Timeout), True),
        (ProviderError("x", cause=Code.ConnectionError), True),
        (ProviderError("x", cause=Code.NetworkError), True),
        (ProviderError("x", cause=Code.BadGateway), True),
        (ProviderError("x", cause=Code.BadGateway, code=Code.TOOL_UNAVAILABLE), True),
        (ProviderError("x", cause=Code.ProviderClosed), False),
        (ProviderError("x", cause=Code.SpawnFailed), False),
        (ProviderError("x", cause=Code.ToolNotFound), False),
        (ProviderError("x", cause=Code.InvalidInput), False),
        (ProviderError("x", cause=Code.BadGateway, code=Code.RESULT_NOT_ENCODABLE), False),
        (ProviderError("x", cause=Code.InvalidInput, code=Code.TOOL_UNAVAILABLE), False),
        (ProviderError("x", cause=None, code=Code.OUTCOME_UNKNOWN), True),
        (TimeoutError(), True),
        (ConnectionError(), True),
        (asyncio.CancelledError(), True),
        (ValueError("the tool says no"), False),
    ],
    ids=str,
)
async def test_only_a_tool_that_cannot_be_repeated_is_uncertain_after_an_unknown_outcome(
    error: BaseException, uncertain: bool
) -> None:
    async with opened(odd(raises(error), Level.L1), rules=[ALLOW]) as world:
        outcome = await world.call()
        assert outcome.uncertain is uncertain
        assert ("find out" in outcome.remedy) is uncertain
    async with opened(odd(raises(error), Level.L1, idempotent=True), rules=[ALLOW]) as world:
        # Who says in so many words that nobody knows is not to be asked again unasked.
        assert (await world.call()).uncertain is (getattr(error, "code", None) is Code.OUTCOME_UNKNOWN)
    async with opened(odd(raises(error))) as world:
        assert not (await world.call()).uncertain


# --- the deadline


async def test_the_deadline_reaches_the_provider_as_a_cancellation() -> None:
    ends: list[str] = []

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return ToolResult(None)

    async with opened(odd(behave, timeout_ms=10)) as world:
        outcome = await world.call()
        assert (outcome.code, outcome.cause, ends) == (Code.TOOL_TIMEOUT, "Timeout", ["cancelled"])
        assert outcome.reason == "odd.tool: no answer within 0.01 s"
        assert (await world.last(ToolInvocationFinished)).outcome == "timeout"


@pytest.mark.parametrize(("asked", "told"), [(None, 2.0), (0.5, 0.5), (60, 2.0), (float("inf"), 2.0)])
async def test_a_caller_may_only_shorten_the_deadline(asked: float | None, told: float) -> None:
    seen: list[float] = []

    def behave(_args: Any, ctx: CallContext) -> ToolResult:
        seen.append(ctx.timeout_s)
        return ToolResult(None)

    async with opened(odd(behave, timeout_ms=2_000)) as world:
        assert (await world.call(timeout_s=asked)).ok
        assert seen == [told]


async def test_the_callers_shorter_deadline_is_the_one_that_ends_the_call() -> None:
    async with opened(odd(hang)) as world:
        assert (await world.call(timeout_s=0.01)).reason == "odd.tool: no answer within 0.01 s"


async def test_a_provider_that_fails_while_it_is_cancelled_is_late_all_the_same() -> None:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("could not clean up")

    async with opened(odd(behave, Level.L1, timeout_ms=10), rules=[ALLOW]) as world:
        outcome = await world.call()
        assert (outcome.code, outcome.uncertain) == (Code.TOOL_TIMEOUT, True)


async def test_an_answer_in_the_last_moment_counts() -> None:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolResult("done after all")
        return ToolResult(None)

    async with opened(odd(behave, timeout_ms=10)) as world:
        assert (await world.call()).value == "done after all"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0


@pytest.mark.parametrize(("asked", "again", "most"), [(None, 2.0, 3_600.0), (1.0, 1.0, 1.0)])
async def test_a_tool_at_work_gets_its_time_again_but_not_more_than_the_caller_gives(
    asked: float | None, again: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[float, float]] = []
    monkeypatch.setattr(Deadlines, "extend", lambda _self, _deadline, *times: given.append(times))

    def behave(_args: dict[str, Any], ctx: CallContext) -> ToolResult:
        ctx.moves()
        return ToolResult(1)

    before = asyncio.get_running_loop().time()
    async with opened(odd(behave, timeout_ms=2_000)) as world:
        assert (await world.call(timeout_s=asked)).ok
    ((timeout_s, until),) = given
    assert timeout_s == again
    assert before + most <= until <= asyncio.get_running_loop().time() + most


async def test_a_deadline_too_long_for_the_event_loop_is_no_error() -> None:
    async with opened(odd(lambda _a, _c: ToolResult(1), timeout_ms=10**400)) as world:
        assert (await world.call()).ok


# --- the rest


@pytest.mark.parametrize("answer", [None, {"value": 1}, "text", object()])
async def test_an_answer_of_unclear_shape_is_not_ok(answer: Any) -> None:
    async with opened(odd(lambda _a, _c: answer)) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code, outcome.cause) == ("failed", Code.TOOL_EXEC_FAILED, "BadGateway")


async def test_how_long_it_took_is_measured_by_the_clock() -> None:
    def behave(_args: Any, _ctx: Any) -> ToolResult:
        world.clock.advance(1.5)
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        assert (await world.call()).duration_us == 1_500_000
        assert (await world.last(ToolInvocationFinished)).duration_us == 1_500_000


async def test_a_closed_catalog_is_a_failed_call() -> None:
    async with opened(add) as world:
        await world.catalog.tools()
        await world.catalog.close()
        assert (await world.call("math.add", {"a": 1, "b": 2})).code is Code.TOOL_UNAVAILABLE


async def test_progress_reaches_the_caller_from_any_thread_and_its_errors_stay_there() -> None:
    seen: list[Any] = []

    def report(done: float | None, total: float | None, message: str) -> None:
        seen.append((done, total, message, threading.current_thread() is threading.main_thread()))
        raise RuntimeError("the listener's own")

    async def behave(_args: Any, ctx: CallContext) -> ToolResult:
        ctx.progress(1, 2, "here")
        await asyncio.to_thread(ctx.progress, 2, 2, "there")
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        assert (await world.call(progress=report)).ok
        assert seen == [(1, 2, "here", True), (2, 2, "there", True)]
