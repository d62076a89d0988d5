from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, assert_type, cast

import pytest

from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError, SchemaError, UsageError
from remit.tools.function import FunctionTool, tool
from remit.tools.meta import DEFAULT_TIMEOUT_MS, Level, Retry, Risk
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult
from remit_testing.providers import call_context
from tests.gateway.world import opened


@tool("notes.count", level="L0", version="3")
def count(path: Path, times: int = 2) -> int:
    """Count
    the notes.

    Slowly.
    """
    return len(path.name) * times


@tool("notes.add")
async def add(text: str, ctx: CallContext) -> dict[str, str]:
    """Add a note."""
    return {"text": text, "step": ctx.step}


async def invoke(used: FunctionTool[..., Any], **args: Any) -> Any:
    return (await used.invoke(args, call_context())).value


def test_a_tool_called_directly_is_its_function_to_callers_and_to_type_checkers() -> None:
    assert_type(count(Path("abc"), times=3), int)
    assert count(Path("abc"), times=3) == 9
    assert inspect.signature(count) == inspect.signature(count.function)
    assert inspect.getdoc(count) == inspect.getdoc(count.function)


async def test_an_async_tool_called_directly_is_awaited() -> None:
    assert await add("x", call_context(step="9")) == {"text": "x", "step": "9"}


def test_what_the_decorator_says_is_in_the_metadata() -> None:
    retry = Retry(attempts=2)

    @tool("a.b", level=Level.L2, idempotent=True, timeout=1.5, version="7", retry=retry, description="Other words.")
    def f() -> None:
        """Words."""

    meta = f.meta
    assert (meta.name, meta.provider_id, meta.version, meta.description) == ("a.b", "local", "7", "Other words.")
    assert (meta.capability_level, meta.idempotent, meta.timeout_ms, meta.retry) == (Level.L2, True, 1500, retry)


def test_the_first_paragraph_of_the_docstring_describes_the_tool() -> None:
    assert count.meta.description == "Count the notes."


def test_a_tool_that_only_reads_neither_has_side_effects_nor_asks() -> None:
    meta = count.meta
    assert (meta.side_effects, meta.requires_confirm, meta.risk_level) == (False, False, Risk.READ_ONLY)


@pytest.mark.parametrize("level", ["L1", "L2"])
def test_above_that_it_has_side_effects_and_asks_unless_said_otherwise(level: str) -> None:
    @tool("a.b", level=level)
    def usual() -> None: ...

    @tool("a.b", level=level, side_effects=False, confirm=False)
    def harmless() -> None: ...

    assert (usual.meta.side_effects, usual.meta.requires_confirm, usual.meta.risk_level) == (True, True, Risk.WRITE)
    assert (harmless.meta.side_effects, harmless.meta.requires_confirm) == (False, False)
    assert harmless.meta.risk_level is Risk.READ_ONLY


def test_the_default_is_a_write_with_thirty_seconds() -> None:
    assert add.meta.capability_level is Level.L1
    assert add.meta.timeout_ms == DEFAULT_TIMEOUT_MS
    assert not add.meta.idempotent
    assert tool("a.b", timeout=0.25)(lambda: None).meta.timeout_ms == 250


def test_what_contradicts_itself_is_refused_where_it_is_written() -> None:
    with pytest.raises(UsageError, match="read-only"):
        tool("a.b", level="L0", side_effects=True)
    with pytest.raises(UsageError, match="not a level"):
        tool("a.b", level="L3")
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="timeout"):
            tool("a.b", timeout=timeout)
    with pytest.raises(NameInvalidError):
        tool("ab")
    with pytest.raises(NameInvalidError, match="has no name"):
        tool(len)  # type: ignore[arg-type]


def test_only_functions_with_one_result_are_tools() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    for refused in (generator, stream, object()):
        with pytest.raises(UsageError):
            tool("a.b")(cast("Callable[[], object]", refused))


def test_a_hint_without_a_schema_is_refused_where_it_is_written() -> None:
    with pytest.raises(SchemaError, match="parameter a"):

        @tool("a.b")
        def f(a: complex) -> None: ...


async def test_arguments_arrive_as_the_hinted_types_and_defaults_are_the_functions_own() -> None:
    assert await invoke(count, path="dir/abc") == 6
    assert await invoke(count, path="abc", times=3.0) == 9


async def test_the_context_is_handed_in() -> None:
    assert await invoke(add, text="x") == {"text": "x", "step": "1"}


@pytest.mark.parametrize("args", [{}, {"path": 1}, {"path": "a", "times": "2"}])
async def test_arguments_that_do_not_fit_are_refused_before_the_function_runs(args: dict[str, Any]) -> None:
    with pytest.raises(ProviderError) as error:
        await count.invoke(args, call_context())
    assert (error.value.cause, error.value.code) == (Code.InvalidInput, Code.INVALID_TOOL_ARGS)


async def test_arguments_that_the_function_does_not_have_are_left_out() -> None:
    assert await invoke(count, path="abc", unknown=1) == 6


async def test_a_sync_function_runs_in_a_thread_with_the_callers_context_variables() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    @tool("a.b")
    def f() -> list[str]:
        return [threading.current_thread().name, variable.get()]

    variable.set("mine")
    name, seen = await invoke(f)
    assert name != threading.current_thread().name
    assert seen == "mine"


async def test_an_async_function_is_cancelled_with_its_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool("a.b")
    async def f() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.ensure_future(invoke(f))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended.is_set()


async def test_a_cancelled_call_of_a_sync_function_returns_at_once_while_the_thread_goes_on() -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    @tool("a.b")
    def f() -> None:
        begun.set()
        go.wait()
        ended.set()

    call = asyncio.ensure_future(invoke(f))
    await asyncio.to_thread(begun.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not ended.is_set()
    go.set()
    await asyncio.to_thread(ended.wait)


async def test_a_result_comes_back_as_json_with_its_evidence() -> None:
    evidence = (EvidenceCandidate(kind="tool_output", source="here", retrieved_at=1, text="t"),)

    @tool("a.b")
    def f() -> ToolResult:
        return ToolResult((Path("p"), {1: "x"}), evidence)

    result = await f.invoke({}, call_context())
    assert result.value == ["p", {"1": "x"}]
    assert result.evidence == evidence


async def test_a_result_json_cannot_hold_fails_the_call() -> None:
    endless: list[Any] = []
    endless.append(endless)
    results = [object(), {"a": 1j}, endless]

    @tool("a.b")
    def f() -> Any:
        return results.pop()

    while results:
        with pytest.raises(ProviderError) as error:
            await invoke(f)
        assert error.value.code is Code.RESULT_NOT_ENCODABLE


async def test_what_the_function_raises_comes_through() -> None:
    @tool("a.b")
    def f() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await invoke(f)


async def test_a_function_that_raises_stop_iteration_does_not_hang_its_call() -> None:
    @tool("a.b")
    def f() -> int:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await invoke(f)


async def test_a_tool_cannot_end_the_process() -> None:
    @tool("a.sync")
    def leave() -> None:
        raise SystemExit(3)

    @tool("a.async")
    async def leave_async() -> None:
        raise SystemExit(3)

    for used in (leave, leave_async):
        with pytest.raises(RuntimeError, match="asked to exit with 3"):
            await invoke(used)


READY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
    "required": ["city"],
}


async def test_a_ready_schema_stands_in_for_the_type_hints() -> None:
    @tool("weather.ask", level="L0", input_schema=READY, output_schema={"type": "array"})
    async def ask(city, ctx: CallContext, days=1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - no hints
        return [city, days, ctx.step]

    assert (ask.meta.input_schema, ask.meta.output_schema) == (READY, {"type": "array"})
    async with opened(ask) as world:
        assert (await world.call("weather.ask", {"city": "Oslo"})).value == ["Oslo", 1, "1"]
        assert (await world.call("weather.ask", {"city": 5}, step="2")).code is Code.INVALID_TOOL_ARGS


async def test_a_function_may_take_whatever_a_ready_schema_lets_pass() -> None:
    @tool("weather.any", level="L0", input_schema=READY)
    async def anything(**given: Any) -> Any:
        return given

    async with opened(anything) as world:
        assert (await world.call("weather.any", {"city": "Oslo", "days": 3})).value == {"city": "Oslo", "days": 3}


def test_a_ready_schema_that_does_not_fit_the_function_is_an_error() -> None:
    with pytest.raises(SchemaError, match="takes no days"):

        @tool("weather.one", level="L0", input_schema=READY)
        async def one(city: str) -> None: ...

    with pytest.raises(SchemaError, match="demands days"):

        @tool("weather.two", level="L0", input_schema=READY)
        async def two(city: str, days: int) -> None: ...


async def test_exceptions_that_retry_on_names_count_as_failed_connections() -> None:
    class HttpError(Exception):
        pass

    @tool("net.get", level="L0", retry_on=(HttpError,))
    def get(good: bool) -> int:
        raise HttpError("502") if good else KeyError("k")

    with pytest.raises(ProviderError, match="HttpError: 502") as caught:
        await invoke(get, good=True)
    assert (caught.value.cause, caught.value.code) == (Code.NetworkError, Code.TOOL_UNAVAILABLE)
    assert caught.value.frames
    assert "test_function.py" in caught.value.frames[-1]
    with pytest.raises(KeyError):
        await invoke(get, good=False)


def test_a_tool_in_the_sandbox_has_no_retry_on() -> None:
    with pytest.raises(UsageError, match="come out of it as text"):
        tool("net.get", level="L2", sandbox=True, retry_on=(OSError,))(count.function)


def test_a_tool_without_a_call_context_declares_no_secrets() -> None:
    with pytest.raises(UsageError, match="without a CallContext it gets no secrets"):

        @tool("bank.blind", secrets=("BANK",))
        def pay() -> None:
            """Pay."""
