"""One caller's large or hostile value holds nobody else up: the event loop goes round meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pytest

from remit import tool
from remit.canonical import MAX_DEPTH
from remit.codes import Code
from remit.gateway.result import _too_deep
from remit.large import LARGE, decode, is_large
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult
from remit.tools.stub import StubProvider
from tests.opened import OpenRemit

GET = ToolMeta(name="big.get", provider_id="stub", description="Get something.", input_schema={"type": "object"})
TURNS = 25
"""So often at least the loop goes round while a large value is looked at; on the loop itself a few times at most."""


@cache
def nested() -> list[Any]:
    """Many small values, many levels deep. Made for who asks: every test beside it pays for a million objects."""
    return [{"type": "resource", "resource": {"z": [[[{"a": [1, {"b": number}]}]]]}} for number in range(120_000)]


class Witness(tuple[EvidenceCandidate, ...]):  # noqa: SLOT001 - it carries what to call
    """Evidence that tells when it is looked at, which is when the value has been."""

    looked: Callable[[], None]

    def __iter__(self) -> Iterator[EvidenceCandidate]:
        self.looked()
        return super().__iter__()


class Big(StubProvider):
    """Answers with a large value, and counts how often the loop goes round until that was checked."""

    def __init__(self, value: Any) -> None:
        super().__init__([GET], {"big.get": lambda _args: None})
        self.count, self.before, self.after = 0, 0, 0
        self._value = value

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        evidence = Witness((EvidenceCandidate(kind="tool_output", source=name, retrieved_at=1, text="x"),))
        evidence.looked = self._looked
        self._tick()
        self.before = self.count
        return ToolResult(self._value, evidence)

    def _tick(self) -> None:
        self.count += 1
        if not self.after:
            asyncio.get_running_loop().call_soon(self._tick)

    def _looked(self) -> None:
        self.after = self.after or self.count


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
async def test_the_loop_goes_round_while_a_large_result_is_checked(
    remit_in: OpenRemit, large: bool
) -> None:  # s05/B20, B23
    provider = Big(nested() if large else [1])
    flags = {"tools.max_value_bytes": 64_000_000, "policy.rules": [{"effect": "allow", "tools": ["big.*"]}]}
    async with remit_in(providers=[provider], flags=flags) as remit:
        outcome = await remit.call("big.get", {})
    assert outcome.ok
    assert (provider.after - provider.before > TURNS) == large


class Turns:
    """How often the loop goes round."""

    def __init__(self) -> None:
        self.count = 0
        self._tick()

    def _tick(self) -> None:
        self.count += 1
        self._next = asyncio.get_running_loop().call_soon(self._tick)

    def end(self) -> int:
        """Count no more; how often it was."""
        self._next.cancel()
        return self.count


@dataclass
class Holder:
    """The same, as a dataclass."""

    blocks: list[Any]


class Blocks(msgspec.Struct):
    """What a function of the user's own may return."""

    blocks: list[Any]


@tool("big.blocks", level="L0")
async def blocks() -> Blocks:
    """Return a large value."""
    return Blocks(nested())


@tool("big.few", level="L0")
async def few() -> Blocks:
    """Return a small value."""
    return Blocks([1])


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
async def test_the_loop_goes_round_while_a_function_s_result_becomes_json(large: bool) -> None:
    turns = Turns()
    result = await (blocks if large else few).invoke({})
    assert (turns.end() > 1) == large
    assert result.value == {"blocks": nested() if large else [1]}


@pytest.mark.slow
async def test_the_loop_goes_round_while_large_arguments_are_hashed_and_checked(remit_in: OpenRemit) -> None:
    seen: list[int] = []

    @tool("big.put", level="L0")
    async def put(blocks: list[Any]) -> int:
        """Take a large value."""
        seen.append(turns.count)
        return len(blocks)

    async with remit_in(tools=[put]) as remit:
        for value in ([1], [1], nested()):
            turns = Turns()
            assert (await remit.call("big.put", {"blocks": value})).value == len(value)
            turns.end()
    assert seen[2] > 10 * seen[1], "a small call meets only the waits for the journal"


@pytest.mark.slow
async def test_arguments_that_change_while_they_are_read_are_refused(remit_in: OpenRemit) -> None:
    """Between the hash that is recorded, and approved, and the copy that is sent."""

    @tool("big.put", level="L0")
    async def put(blocks: list[Any]) -> int:
        """Take a large value."""
        return len(blocks)

    changing = list(nested())
    async with remit_in(tools=[put]) as remit:
        call = asyncio.ensure_future(remit.call("big.put", {"blocks": changing}))

        def change() -> None:
            changing.append({"evil": len(changing)})
            if not call.done():
                asyncio.get_running_loop().call_soon(change)

        change()
        outcome = await call
    assert (outcome.ok, outcome.code) == (False, Code.INVALID_TOOL_ARGS)


@pytest.mark.parametrize(
    ("value", "large"),
    [
        (None, False),
        ("x" * LARGE, False),
        ("x" * (LARGE + 1), True),
        (b"x" * (LARGE + 1), True),
        ({"a": ["x" * 1_000] * 300}, True),
        ({"a": ["x" * 1_000] * 200}, False),
        (list(range(5_000)), True),
        ([[[[1]]]] * 5_000, True),
        ({str(number): number for number in range(5_000)}, True),
        (object(), False),
        (Blocks([[1]] * 5_000), True),
        (Blocks([1]), False),
        (Holder([1] * 5_000), True),
        ({*range(5_000)}, True),
    ],
)
def test_what_counts_as_large(value: object, large: bool) -> None:
    assert is_large(value) == large


def test_a_value_that_contains_itself_ends_as_well() -> None:
    value: list[Any] = []
    value.append(value)
    value.append(value)
    assert is_large(value)


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 5_000])
@pytest.mark.parametrize("beside", ["", '"[[[["', '"\\\\"', '"\\\\\\"[["', '"\\"[[{{"', '["]]]]"]', "{}"])
def test_levels_are_counted_outside_of_strings(levels: int, beside: str) -> None:
    text = "[" * levels + beside + "]" * levels
    deeper = 1 if beside.startswith(("[", "{")) else 0
    assert _too_deep(text.encode()) == (levels + deeper > MAX_DEPTH)


@pytest.mark.slow
def test_a_large_message_is_decoded_as_a_small_one_is() -> None:
    data = msgspec.json.encode(nested())
    assert len(data) > LARGE
    assert decode(data) == nested()
    with pytest.raises(msgspec.DecodeError):
        decode(data[:-1])
