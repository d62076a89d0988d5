"""The gateway as a whole: the order of the stages, many calls at once, and rule 5 for whatever may come."""

from __future__ import annotations

import asyncio
import inspect
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.canonical import digest
from remit.codes import Code
from remit.errors import JournalError, ProviderError
from remit.gateway.call import Call, GateRequest, Proceed, no_progress
from remit.gateway.outcome import EvidenceItem, Outcome
from remit.gateway.pipeline import MODEL_STAGES, STAGES, _compose
from remit.journal.kinds import (
    EvidenceAttached,
    GateRefused,
    ToolInvocationFinished,
    ToolInvocationStarted,
)
from remit.tools.meta import Level
from remit.tools.provider import EvidenceCandidate, ToolResult
from tests.gateway.samples import ALLOW, add, write
from tests.gateway.stage_names import name_of
from tests.gateway.world import odd, opened

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ANYTHING = JSON | st.recursive(
    st.sampled_from([float("nan"), float("inf")])
    | st.integers()
    | st.binary()
    | st.just(object())
    | st.just("\ud800")
    | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)


def test_the_stages_in_their_order() -> None:
    assert [stage.__name__ for stage in STAGES] == [
        "RecordRefusal",
        "Resolve",
        "LoadConfirmation",
        "Authorize",
        "Ready",
        "ValidateArguments",
        "CheckOrigins",
        "CheckBudget",
        "Confirm",
        "TakeTurn",
        "Queue",
        "TakeSecrets",
        "TakeLimits",
        "Announce",
        "RecordOutcome",
        "Invoke",
    ]


@pytest.mark.parametrize("stage", [*STAGES, *MODEL_STAGES], ids=lambda stage: stage.__name__)
def test_each_stage_tells_the_call_its_own_name(stage: Any) -> None:
    assert f'call.stage = "{name_of(stage)}"' in inspect.getsource(stage.__call__)


async def test_stages_follow_each_other_and_one_of_them_has_to_answer() -> None:
    seen: list[str] = []

    class First:
        async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
            seen.append("first")
            return await proceed(call)

    class Second:
        async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
            seen.append("second")
            return Outcome(status="ok")

    async with opened(add) as world:
        request = GateRequest(tool="x", args={}, step="1", principal="p")
        call = Call(request, world.journal, world.writer, no_progress)
        assert (await _compose([First(), Second()])(call)).ok
        assert seen == ["first", "second"]
        with pytest.raises(AssertionError, match="no stage answered"):
            await _compose([First()])(call)


# --- many at once


@pytest.mark.parametrize("seed", range(5))
async def test_calls_that_interleave_on_one_stream_are_recorded_without_a_gap(seed: int) -> None:
    random = Random(seed)

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)  # noqa: TID251 - gives the others a turn
        if random.random() < 0.3:
            raise ValueError("now and then")
        return ToolResult("x" * random.choice((1, 10_000)))

    denied = {"id": "no", "effect": "deny", "tools": ["note.write"], "when": {"text": {"equals": "no"}}}
    async with opened(odd(behave), write, add, rules=[denied]) as world:

        async def one(number: int) -> Outcome:
            step, leaves = str(number), random.random() < 0.5
            kind = number % 5
            if kind == 0:
                return await world.call("odd.tool", {"n": number}, step=step, leaves=leaves)
            if kind == 1:
                return await world.call("note.write", {"text": "no"}, step=step, leaves=leaves)
            if kind == 2:
                return await world.call("nobody.knows", step=step, leaves=leaves)
            if kind == 3:
                return await world.call("math.add", {"a": number, "b": 1}, step=step, leaves=leaves)
            pending = await world.call("note.write", {"text": step}, step=step)
            await world.approve(pending)
            return await world.again(pending, "note.write", {"text": step}, step=step)

        outcomes = await asyncio.gather(*(one(number) for number in range(100)))
        events = await world.recorded()  # verifies the chain
        ends = {event.step for event in events if isinstance(event, ToolInvocationFinished | GateRefused)}
        assert ends == {str(number) for number in range(100)}
        assert all(outcome.ok for number, outcome in enumerate(outcomes) if number % 5 in {3, 4})
        assert await world.journal.head(world.stream)


async def test_after_a_lost_stream_every_call_says_so_and_nothing_runs(ran: list[object]) -> None:
    async with opened(write, rules=[ALLOW]) as world:
        assert (await world.call("note.write", {"text": "1"})).ok
        other = world.journal.writer(world.stream, "session", await world.journal.head(world.stream))
        await world.journal.append(other, GateRefused(step="x", tool_name="x", code="x"), synced=True)
        for step in ("2", "3"):
            with pytest.raises(JournalError) as raised:
                await world.call("note.write", {"text": step}, step=step)
            assert raised.value.code is Code.APPEND_CONFLICT
        assert ran == [("1", 1)]


# --- rule 5, for whatever may come


@pytest.mark.slow
@given(args=st.dictionaries(st.text(), JSON, max_size=4), value=JSON)
@settings(max_examples=30, deadline=None)
def test_arguments_and_result_are_recorded_as_they_were(args: dict[str, Any], value: Any) -> None:
    async def scenario() -> None:
        seen: list[Any] = []

        def behave(given_args: Any, _ctx: Any) -> ToolResult:
            seen.append(given_args)
            return ToolResult(value)

        async with opened(odd(behave), schema_gate="off") as world:
            outcome = await world.call(args=args)
            started, finished = await world.recorded()
            assert isinstance(started, ToolInvocationStarted)
            assert isinstance(finished, ToolInvocationFinished)
            assert outcome.ok
            assert await world.value(started, "args") == seen[0] == args
            assert started.arguments_hash == digest(args) == digest(seen[0])
            assert repr(await world.value(finished, "result")) == repr(outcome.value)
            assert digest(outcome.value) == digest(value)

    asyncio.run(scenario())


@pytest.mark.slow
@given(
    name=st.sampled_from(["odd.tool", "odd_tool", "odd"]) | st.text(st.characters()),
    args=st.dictionaries(st.text() | st.integers(), ANYTHING, max_size=3) | ANYTHING,
    timeout=st.none() | st.floats() | st.integers(-5, 5) | st.text(max_size=3),
    confirmation=st.none() | st.text(max_size=5),
    gate=st.sampled_from(["strict", "warn", "off"]),
)
@settings(max_examples=50, deadline=None)
def test_nothing_a_caller_asks_for_makes_the_gateway_raise(
    name: str, args: Any, timeout: Any, confirmation: str | None, gate: str
) -> None:
    async def scenario() -> None:
        async with opened(odd(lambda _a, _c: ToolResult(None)), schema_gate=gate) as world:
            outcome = await world.call(name, args, timeout_s=timeout, confirmation=confirmation)
            kinds = await world.kinds()
            assert kinds == (
                ["gate_refused"]
                if outcome.status == "blocked"
                else ["tool_invocation_started", "tool_invocation_finished"]
            )

    asyncio.run(scenario())


class _Odd(Exception):  # noqa: N818 - whatever somebody may have written
    def __init__(self, text: Any) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return self.text  # type: ignore[no-any-return] # on purpose: it may be anything


ERRORS = st.one_of(
    ANYTHING.map(_Odd),
    st.builds(
        ProviderError, st.text(st.characters()), cause=st.sampled_from(Code) | st.just("?"), code=st.sampled_from(Code)
    ),
    st.sampled_from(
        [TimeoutError, ConnectionError, MemoryError, RecursionError, SystemExit, asyncio.CancelledError]
    ).map(lambda kind: kind()),
    st.builds(lambda text: ExceptionGroup("group", [ValueError(text)]), st.text(st.characters())),
)
CANDIDATES = st.builds(
    EvidenceCandidate,
    kind=ANYTHING | st.just("tool_output"),
    source=ANYTHING | st.just("s"),
    retrieved_at=ANYTHING | st.just(1),
    text=ANYTHING | st.text(st.characters()),
    metadata=ANYTHING | st.dictionaries(st.text(), ANYTHING, max_size=2),
)


@pytest.mark.slow
@given(error=ERRORS, level=st.sampled_from([Level.L0, Level.L1]))
@settings(max_examples=50, deadline=None)
def test_nothing_a_provider_raises_makes_the_gateway_raise(error: BaseException, level: Level) -> None:
    async def scenario() -> None:
        def behave(_args: Any, _ctx: Any) -> ToolResult:
            raise error

        async with opened(odd(behave, level), rules=[ALLOW]) as world:
            outcome = await world.call()
            assert outcome.status in {"failed", "blocked"}
            assert outcome.code is not None
            assert outcome.reason.isprintable()
            finished = (await world.recorded())[1]
            assert isinstance(finished, ToolInvocationFinished)
            assert finished.error is not None
            assert finished.error.message == outcome.reason

    asyncio.run(scenario())


@pytest.mark.slow
@given(
    answer=ANYTHING
    | st.builds(ToolResult, ANYTHING)
    | st.builds(ToolResult, JSON, ANYTHING | st.tuples(CANDIDATES) | st.lists(ANYTHING | CANDIDATES, max_size=3))
)
@settings(max_examples=60, deadline=None)
def test_nothing_a_provider_answers_makes_the_gateway_raise(answer: Any) -> None:
    async def scenario() -> None:
        async with opened(odd(lambda _a, _c: answer)) as world:
            outcome = await world.call()
            events = await world.recorded()
            assert isinstance(events[-1], ToolInvocationFinished)
            items = [item for event in events if isinstance(event, EvidenceAttached) for item in event.items]
            assert tuple(msgspec.convert(item, EvidenceItem) for item in items) == outcome.evidence

    asyncio.run(scenario())
