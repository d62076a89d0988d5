from __future__ import annotations

import asyncio

import pytest

from remit.errors import NameInvalidError
from remit.providers.functions.provider import FunctionProvider
from remit.tools.function import tool
from remit.tools.provider import EvidenceCandidate, ToolResult
from remit_testing.providers import (
    PROVIDER_CHECKS,
    Check,
    Sample,
    call_context,
    check_cancellation_ends_the_call,
)


@tool("math.add", level="L0")
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool("text.shout")
def shout(text: str) -> ToolResult:
    """Make a text loud."""
    evidence = EvidenceCandidate(kind="tool_output", source="text.shout", retrieved_at=1, text=text.upper())
    return ToolResult({"text": text.upper()}, (evidence,))


@tool("wait.once", level="L0")
async def wait_for_others(seen: str) -> str:
    """Give others a turn before answering."""
    await asyncio.to_thread(str)
    return seen


def provider() -> FunctionProvider:
    return FunctionProvider([shout, add, wait_for_others])


SAMPLES = [Sample("math.add", {"a": 1}), Sample("text.shout", {"text": "x"}), Sample("wait.once", {"seen": "x"})]


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
async def test_functions_keep_the_promises_of_a_provider(check: Check, sample: Sample) -> None:
    await check(provider, sample)


async def test_a_function_that_waits_for_ever_is_cancelled() -> None:
    calls = 0

    @tool("wait.ever", level="L0")
    async def wait_for_ever() -> None:
        """Never answer, the first time."""
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.Event().wait()

    await check_cancellation_ends_the_call(lambda: FunctionProvider([wait_for_ever]), Sample("wait.ever", {}))
    assert calls == 2


async def test_tools_are_listed_by_name_under_the_providers_id() -> None:
    metas = await FunctionProvider([shout, add], provider_id="mine").list_tools()
    assert [(meta.name, meta.provider_id) for meta in metas] == [("math.add", "mine"), ("text.shout", "mine")]


async def test_a_tool_given_twice_is_one_tool() -> None:
    assert len(await FunctionProvider([add, add]).list_tools()) == 1


def test_two_functions_of_one_name_are_refused() -> None:
    @tool("math.add")
    def other() -> None: ...

    places = r"test_provider.py:\d+ in add and .*:\d+ in test_two_.*other"
    with pytest.raises(NameInvalidError, match=rf"two functions define the tool math\.add: .*{places}"):
        FunctionProvider([add, other])


async def test_a_call_reaches_its_function() -> None:
    result = await provider().invoke("math.add", {"a": 2, "b": 3}, call_context())
    assert result == ToolResult(5)
