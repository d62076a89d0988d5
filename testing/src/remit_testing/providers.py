"""The promises of every tool provider, as checks that any test suite can run.

    @pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(lambda: MyProvider(...), Sample("my.tool", {"x": 1}))

Each check makes its own provider and closes it. The sample is a call that succeeds, however often it is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, Final, NamedTuple

from remit.canonical import canonical
from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError
from remit.tools.meta import Level, ToolMeta
from remit.tools.names import check_name, check_provider_id
from remit.tools.provider import CallContext, MemoryKeeper, ToolProvider, ToolResult
from remit.tools.tool import admit
from remit_testing.suite import checks_in

PATIENCE_S: Final = 10.0
"""Seconds after which a provider that does not come to an end has failed; never waited where it keeps its promises."""

Factory = Callable[[], ToolProvider | Awaitable[ToolProvider]]


class Sample(NamedTuple):
    """A call that the provider under test can serve."""

    name: str
    args: dict[str, Any]


Check = Callable[[Factory, Sample], Awaitable[None]]


def call_context(**changes: Any) -> CallContext:
    """A context as the gateway would give it, the same each time."""
    values: dict[str, Any] = {
        "stream": "session/session_1",
        "step": "1",
        "invocation_id": "inv_1",
        "idempotency_key": "0" * 64,
        "attempt": 1,
        "principal": "tester",
        "trace_id": "0" * 31 + "1",
        "span_id": "0" * 15 + "1",
        "timeout_s": PATIENCE_S,
        "now": 1_700_000_000_000_000,
        "progress": lambda _done, _total, _message: None,
        "keeper": MemoryKeeper(),
    }
    return CallContext(**(values | changes))


async def check_provider_id_is_valid_and_stable(new: Factory, _sample: Sample) -> None:
    """The id follows the naming rules and does not change with use."""
    async with _opened(new) as provider:
        before = check_provider_id(provider.provider_id)
        await provider.list_tools()
        assert provider.provider_id == before


async def check_names_are_unique_and_valid(new: Factory, _sample: Sample) -> None:
    """Each tool has a name of its own, which follows the naming rules."""
    async with _opened(new) as provider:
        names = [meta.name for meta in await provider.list_tools()]
        assert sorted(set(names)) == sorted(names), f"listed twice: {names}"
        for name in names:
            try:
                check_name(name)
            except NameInvalidError as error:
                raise AssertionError(str(error)) from error


async def check_tools_are_admitted(new: Factory, _sample: Sample) -> None:
    """No tool is quarantined: schemas compile within the limits, and metadata names this provider."""
    async with _opened(new) as provider:
        for meta in await provider.list_tools():
            tool = admit(meta, provider, closed=True)
            assert tool.quarantined is None, f"{meta.name}: {tool.quarantined}"
            assert meta.provider_id == provider.provider_id, f"{meta.name} claims to be of {meta.provider_id}"


async def check_metadata_is_consistent(new: Factory, _sample: Sample) -> None:
    """Hold that what reads only says so in every field, and every tool has a description and a deadline."""
    async with _opened(new) as provider:
        for meta in await provider.list_tools():
            assert meta.description.strip(), f"{meta.name} has no description"
            assert meta.timeout_ms > 0, f"{meta.name} has no deadline"
            if meta.capability_level is Level.L0:
                assert not meta.side_effects, f"{meta.name} is L0 and has side effects"


async def check_listing_is_repeatable(new: Factory, sample: Sample) -> None:
    """Listing again, or calling in between, changes nothing: hashes of what is listed are pinned."""
    async with _opened(new) as provider:
        first = list(await provider.list_tools())
        await _invoke(provider, sample)
        assert list(await provider.list_tools()) == first


async def check_sample_is_listed_and_fits_its_schema(new: Factory, sample: Sample) -> None:
    """Hold that what is called is what was listed, under the schema that was listed."""
    async with _opened(new) as provider:
        tool = admit(await _listed(provider, sample), provider, closed=True)
        assert tool.input.problems(sample.args) == []


async def check_result_is_json_and_fits_its_schema(new: Factory, sample: Sample) -> None:
    """A result holds JSON types only, in a form that can be hashed, and keeps the output schema's promise."""
    async with _opened(new) as provider:
        result = await _invoke(provider, sample)
        assert isinstance(result, ToolResult)
        canonical(result.value)
        assert _not_json(result.value) is None, f"the result holds a {_not_json(result.value)}"
        output = admit(await _listed(provider, sample), provider, closed=True).output
        assert output is None or output.problems(result.value) == []


async def check_evidence_carries_no_bytes(new: Factory, sample: Sample) -> None:
    """Evidence names its kind, source and time; its content is text (rule 10)."""
    async with _opened(new) as provider:
        for item in (await _invoke(provider, sample)).evidence:
            assert item.kind, "evidence without a kind"
            assert item.source, "evidence without a source"
            assert isinstance(item.retrieved_at, int)
            assert item.text is None or isinstance(item.text, str)
            forbidden = {"bytes", "raw_bytes", "blob", "base64", "buffer"} & set(item.metadata)
            assert not forbidden, f"evidence carries {forbidden}"
            canonical(item.metadata)


async def check_arguments_are_left_alone(new: Factory, sample: Sample) -> None:
    """A call does not change its arguments: they were hashed and recorded."""
    async with _opened(new) as provider:
        before = canonical(sample.args)
        await _invoke(provider, sample)
        assert canonical(sample.args) == before


async def check_calls_may_overlap(new: Factory, sample: Sample) -> None:
    """Several calls at once all come to an end."""
    async with _opened(new) as provider, asyncio.timeout(PATIENCE_S):
        results = await asyncio.gather(*(_invoke(provider, sample) for _ in range(8)))
        assert all(isinstance(result, ToolResult) for result in results)


async def check_unknown_tool_is_refused(new: Factory, sample: Sample) -> None:
    """A name that was never listed is `ToolNotFound`."""
    async with _opened(new) as provider:
        error = await _refused(provider, Sample(f"{sample.name.rpartition('.')[0]}.no_such_tool", {}))
        assert error.cause is Code.ToolNotFound


async def check_cancellation_ends_the_call(new: Factory, sample: Sample) -> None:
    """A cancelled call ends soon, as cancelled or with its result, and the provider goes on serving."""
    async with _opened(new) as provider:
        call = asyncio.ensure_future(_invoke(provider, sample))
        await _until_it_waits(call)
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=PATIENCE_S)
        assert done, "the call goes on after its cancellation"
        assert call.cancelled() or call.exception() is None, f"the cancellation came back as {call.exception()!r}"
        assert isinstance(await _invoke(provider, sample), ToolResult)


async def check_close_may_be_repeated(new: Factory, sample: Sample) -> None:
    """Closing ends, before and after the first use, and a second time."""
    async with asyncio.timeout(PATIENCE_S):
        unused = await _made(new)
        await unused.close()
        await unused.close()
        used = await _made(new)
        await _invoke(used, sample)
        await used.close()
        await used.close()


async def check_closed_provider_refuses(new: Factory, sample: Sample) -> None:
    """After close, listing and calling are `ProviderClosed`."""
    provider = await _made(new)
    await _invoke(provider, sample)
    await provider.close()
    error = await _refused(provider, sample)
    assert error.cause is Code.ProviderClosed
    try:
        await provider.list_tools()
    except ProviderError as listing:
        assert listing.cause is Code.ProviderClosed  # noqa: PT017 - the suite does without pytest
    else:
        raise AssertionError("a closed provider lists tools")


PROVIDER_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every check, each for one promise of the port."""


async def _made(new: Factory) -> ToolProvider:
    provider = new()
    return await provider if isawaitable(provider) else provider


@asynccontextmanager
async def _opened(new: Factory) -> AsyncIterator[ToolProvider]:
    provider = await _made(new)
    try:
        yield provider
    finally:
        await provider.close()


async def _invoke(provider: ToolProvider, sample: Sample) -> ToolResult:
    return await provider.invoke(sample.name, sample.args, call_context())


async def _listed(provider: ToolProvider, sample: Sample) -> ToolMeta:
    listed = [meta for meta in await provider.list_tools() if meta.name == sample.name]
    assert listed, f"{sample.name} is not listed"
    return listed[0]


async def _refused(provider: ToolProvider, sample: Sample) -> ProviderError:
    try:
        result = await _invoke(provider, sample)
    except ProviderError as error:
        return error
    raise AssertionError(f"{sample.name} answered {result!r}")


async def _until_it_waits(call: asyncio.Future[Any]) -> None:
    """Let a call run up to the first point where it waits for something, or to its end."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await asyncio.wait([call, turn], return_when=asyncio.FIRST_COMPLETED)


def _not_json(value: Any) -> str | None:
    """The type of the first thing within a value that is not exactly a JSON type."""
    if type(value) is dict:
        return next((kind for item in (*value, *value.values()) if (kind := _not_json(item))), None)
    if type(value) is list:
        return next((kind for item in value if (kind := _not_json(item))), None)
    return None if value is None or type(value) in {str, int, float, bool} else type(value).__name__
