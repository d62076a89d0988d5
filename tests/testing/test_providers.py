"""Each check of the provider suite catches the provider that breaks just its promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, EvidenceCandidate, ToolProvider, ToolResult
from remit.tools.stub import StubProvider
from remit_testing import providers as suite
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context

SAMPLE = Sample("demo.echo", {"q": [1]})
NAMES = ["demo.echo", "demo.other"]


class Broken:
    """A good provider, except for what it is told to do otherwise."""

    def __init__(self, **instead: Callable[..., Any]) -> None:
        self._good = StubProvider.standing_in(NAMES)
        self._instead = instead
        self.calls = 0

    @property
    def provider_id(self) -> str:
        return str(self._instead["provider_id"](self)) if "provider_id" in self._instead else "stub"

    async def list_tools(self) -> Sequence[ToolMeta]:
        if "list_tools" not in self._instead:
            return await self._good.list_tools()
        return list(self._instead["list_tools"](self, await StubProvider.standing_in(NAMES).list_tools()))

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.calls += 1
        if "invoke" in self._instead:
            result: ToolResult = await self._instead["invoke"](self, name, args, ctx)
            return result
        return await self._good.invoke(name, args, ctx)

    async def close(self) -> None:
        if "close" in self._instead:
            self._instead["close"](self)
        else:
            await self._good.close()


def listing(**changes: Any) -> Callable[..., Any]:
    return lambda _, metas: [msgspec.structs.replace(metas[0], **changes), *metas[1:]]


def answering(value: Any, *evidence: EvidenceCandidate) -> Callable[..., Any]:
    async def invoke(_: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        return ToolResult(value, evidence)

    return invoke


async def changing(_: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
    args.clear()
    return ToolResult({"stub": True, "tool": name, "args_digest": ""})


async def one_at_a_time(provider: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
    if provider.calls > 1:
        raise ProviderError("busy", cause=Code.ConnectionError)
    return ToolResult()


async def deaf(provider: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise RuntimeError("I was cancelled") from None
    return ToolResult()


async def stubborn(provider: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()  # until the test's loop ends
    return ToolResult()


async def spent(provider: Broken, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
    if provider.calls > 1:
        raise ProviderError("the connection died with the call", cause=Code.ConnectionError)
    await asyncio.Event().wait()
    return ToolResult()


def once(provider: Broken) -> None:
    if provider.calls >= 100:
        raise RuntimeError("closed already")
    provider.calls = 100


def once_after_use(provider: Broken) -> None:
    if provider.calls > 1:
        raise RuntimeError("closed already")
    provider.calls *= 2


def renamed(provider: Broken) -> str:
    provider.calls += 1
    return f"stub{provider.calls}"


def growing(provider: Broken, metas: list[ToolMeta]) -> list[ToolMeta]:
    return metas[: 1 + provider.calls]


def item(**changes: Any) -> EvidenceCandidate:
    return msgspec.structs.replace(EvidenceCandidate(kind="trace", source="s", retrieved_at=1), **changes)


ECHO = {"stub": True, "tool": "demo.echo", "args_digest": ""}

BROKEN: list[tuple[Check, dict[str, Callable[..., Any]]]] = [
    (suite.check_provider_id_is_valid_and_stable, {"provider_id": lambda _: "Not An Id"}),
    (suite.check_provider_id_is_valid_and_stable, {"provider_id": renamed}),
    (suite.check_names_are_unique_and_valid, {"list_tools": lambda _, metas: [*metas, metas[0]]}),
    (suite.check_names_are_unique_and_valid, {"list_tools": listing(name="echo")}),
    (suite.check_tools_are_admitted, {"list_tools": listing(input_schema=None)}),
    (suite.check_tools_are_admitted, {"list_tools": listing(output_schema={"type": "nonsense"})}),
    (suite.check_tools_are_admitted, {"list_tools": listing(provider_id="builtin")}),
    (suite.check_metadata_is_consistent, {"list_tools": listing(description=" ")}),
    (suite.check_metadata_is_consistent, {"list_tools": listing(timeout_ms=0)}),
    (suite.check_metadata_is_consistent, {"list_tools": listing(side_effects=True)}),
    (suite.check_listing_is_repeatable, {"list_tools": growing}),
    (suite.check_sample_is_listed_and_fits_its_schema, {"list_tools": lambda _, metas: metas[1:]}),
    (
        suite.check_sample_is_listed_and_fits_its_schema,
        {"list_tools": listing(input_schema={"type": "object", "properties": {}})},
    ),
    (suite.check_result_is_json_and_fits_its_schema, {"invoke": answering(float("nan"))}),
    (suite.check_result_is_json_and_fits_its_schema, {"invoke": answering({**ECHO, "more": (1, 2)})}),
    (suite.check_result_is_json_and_fits_its_schema, {"invoke": answering({**ECHO, "stub": False})}),
    (suite.check_evidence_carries_no_bytes, {"invoke": answering(ECHO, item(kind=""))}),
    (suite.check_evidence_carries_no_bytes, {"invoke": answering(ECHO, item(source=""))}),
    (suite.check_evidence_carries_no_bytes, {"invoke": answering(ECHO, item(retrieved_at=None))}),
    (suite.check_evidence_carries_no_bytes, {"invoke": answering(ECHO, item(text=b"x"))}),
    (suite.check_evidence_carries_no_bytes, {"invoke": answering(ECHO, item(metadata={"base64": "eA=="}))}),
    (suite.check_arguments_are_left_alone, {"invoke": changing}),
    (suite.check_calls_may_overlap, {"invoke": one_at_a_time}),
    (suite.check_unknown_tool_is_refused, {"invoke": answering(ECHO)}),
    (suite.check_cancellation_ends_the_call, {"invoke": deaf}),
    (suite.check_cancellation_ends_the_call, {"invoke": stubborn}),
    (suite.check_cancellation_ends_the_call, {"invoke": spent}),
    (suite.check_close_may_be_repeated, {"close": once}),
    (suite.check_close_may_be_repeated, {"close": once_after_use}),
    (suite.check_closed_provider_refuses, {"close": lambda _: None}),
    (suite.check_closed_provider_refuses, {"invoke": answering(ECHO)}),
    (suite.check_closed_provider_refuses, {"list_tools": lambda _, metas: metas}),
]


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_a_good_provider_passes(check: Check) -> None:
    await check(Broken, Sample(*SAMPLE))


@pytest.mark.parametrize(("check", "instead"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
async def test_a_provider_that_breaks_the_promise_fails(
    check: Check, instead: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if instead.get("invoke") is stubborn:
        monkeypatch.setattr(suite, "PATIENCE_S", 0)
    with pytest.raises((AssertionError, ProviderError, RuntimeError, ValueError, UsageError)):
        await check(lambda: Broken(**instead), Sample("demo.echo", {"q": [1]}))


def test_every_check_has_a_provider_that_it_catches() -> None:
    assert {check for check, _ in BROKEN} == set(PROVIDER_CHECKS)


def test_the_suite_holds_every_check_of_the_module() -> None:
    named = {value for name, value in vars(suite).items() if name.startswith("check_") and callable(value)}
    assert set(PROVIDER_CHECKS) <= named
    assert {check.__name__ for check in named - set(PROVIDER_CHECKS)} == {"check_name", "check_provider_id"}


async def test_a_factory_may_be_async() -> None:
    async def new() -> ToolProvider:
        return Broken()

    for check in PROVIDER_CHECKS:
        await check(new, Sample("demo.echo", {"q": [1]}))


def test_a_context_is_the_same_each_time_but_for_what_is_changed() -> None:
    one, other = call_context(), call_context(step="2")
    assert (one.step, other.step) == ("1", "2")
    assert msgspec.structs.replace(other, step="1", progress=one.progress, keeper=one.keeper) == one
    one.progress(0.5, 1.0, "half")
