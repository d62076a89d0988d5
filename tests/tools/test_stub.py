from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError
from remit.tools.catalog import Catalog
from remit.tools.meta import ToolMeta
from remit.tools.provider import EvidenceCandidate
from remit.tools.schema import compile_schema
from remit.tools.stub import StubAnswer, StubProvider
from remit_testing.providers import (
    PROVIDER_CHECKS,
    Check,
    Sample,
    call_context,
    check_cancellation_ends_the_call,
)

TOOL = ToolMeta(name="web.search", provider_id="stub", description="Search.", input_schema={"type": "object"})


async def invoke(provider: StubProvider, **args: Any) -> Any:
    return (await provider.invoke("web.search", args, call_context())).value


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_an_unscripted_stub_keeps_the_promises_of_a_provider(check: Check) -> None:
    await check(lambda: StubProvider.standing_in(["web.search", "mcp.github.list"]), Sample("web.search", {"q": "x"}))


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_a_scripted_stub_keeps_the_promises_of_a_provider(check: Check) -> None:
    answers = [StubAnswer(value=index) for index in range(20)]
    await check(lambda: StubProvider([TOOL], {"web.search": answers}), Sample("web.search", {}))


async def test_a_scripted_wait_is_cancelled_with_its_call() -> None:
    script = [StubAnswer(after=asyncio.Event()), StubAnswer(value=1)]
    await check_cancellation_ends_the_call(
        lambda: StubProvider([TOOL], {"web.search": script}), Sample("web.search", {})
    )


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=5), st.none()), max_size=4))
async def test_without_a_script_the_same_arguments_give_the_same_value_everywhere(args: dict[str, Any]) -> None:
    one, other = StubProvider([TOOL]), StubProvider.standing_in(["web.search"])
    expected = {"stub": True, "tool": "web.search", "args_digest": digest(args)}
    assert await invoke(one, **args) == await invoke(other, **dict(reversed(args.items()))) == expected


async def test_other_arguments_give_another_value() -> None:
    provider = StubProvider([TOOL])
    assert await invoke(provider, q=1) != await invoke(provider, q=2)


async def test_a_tool_without_a_script_promises_what_it_answers() -> None:
    provider = StubProvider(
        [ToolMeta(name="web.search", provider_id="x", input_schema={}, output_schema={"type": "null"})]
    )
    (meta,) = await provider.list_tools()
    assert compile_schema(meta.output_schema, closed=True).problems(await invoke(provider)) == []


async def test_a_scripted_tool_promises_what_its_owner_wrote() -> None:
    meta = ToolMeta(name="web.search", provider_id="x", input_schema={}, output_schema={"type": "integer"})
    (listed,) = await StubProvider([meta], {"web.search": [StubAnswer(value=1)]}).list_tools()
    assert listed.output_schema == {"type": "integer"}


async def test_answers_come_in_their_order_and_then_no_more() -> None:
    evidence = (EvidenceCandidate(kind="trace", source="s", retrieved_at=1),)
    error = ProviderError("down", cause=Code.ConnectionError)
    provider = StubProvider(
        [TOOL], {"web.search": [StubAnswer(value=1), StubAnswer(error=error), StubAnswer(evidence=evidence)]}
    )
    assert await invoke(provider) == 1
    with pytest.raises(ProviderError, match="down"):
        await invoke(provider)
    assert (await provider.invoke("web.search", {}, call_context())).evidence == evidence
    with pytest.raises(RuntimeError, match="no answer left"):
        await invoke(provider)


async def test_an_answer_waits_for_its_event_and_says_that_it_was_asked() -> None:
    begun, after = asyncio.Event(), asyncio.Event()
    provider = StubProvider([TOOL], {"web.search": [StubAnswer(value="late", begun=begun, after=after)]})
    call = asyncio.ensure_future(invoke(provider))
    await begun.wait()
    assert not call.done()
    after.set()
    assert await call == "late"


async def test_a_function_may_answer_from_the_arguments() -> None:
    provider = StubProvider([TOOL], {"web.search": lambda args: {"items": [args["q"]]}})
    assert await invoke(provider, q="x") == {"items": ["x"]}
    with pytest.raises(KeyError):
        await invoke(provider)


async def test_every_call_is_kept_as_it_arrived() -> None:
    provider = StubProvider([TOOL])
    await provider.invoke("web.search", {"q": 1}, call_context(attempt=2))
    (received,) = provider.received
    assert (received.name, received.args, received.ctx.attempt) == ("web.search", {"q": 1}, 2)


def test_a_script_for_a_tool_that_is_not_offered_is_refused() -> None:
    with pytest.raises(NameInvalidError, match=r"web\.fetch"):
        StubProvider([TOOL], {"web.fetch": [StubAnswer()]})
    with pytest.raises(NameInvalidError):
        StubProvider.standing_in(["not a name"])


async def test_a_stand_in_takes_any_arguments_and_touches_nothing() -> None:
    catalog = Catalog([StubProvider.standing_in(["mcp.github.create_issue"])])
    tool, args = await catalog.resolve("github", {"title": "x"})
    assert tool.input.problems(args) == []
    assert not tool.meta.side_effects
    assert not tool.meta.requires_confirm


async def test_arguments_without_a_canonical_form_are_refused() -> None:
    with pytest.raises(ProviderError) as error:
        await invoke(StubProvider([TOOL]), q=float("nan"))
    assert error.value.cause is Code.InvalidInput
