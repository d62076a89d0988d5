"""ValidateArguments: the arguments against the tool's input schema."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import pytest

from remit import tool
from remit.codes import Code
from remit.journal.kinds import GateRefused, SchemaGateWarned, ToolInvocationStarted
from remit.tools.meta import Level
from remit.tools.provider import ToolResult
from tests.gateway.samples import add
from tests.gateway.world import World, odd, opened

LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP
DEEP: dict[str, Any] = {}
for _ in range(300):
    DEEP = {"in": DEEP}


def echo(**changes: Any) -> Any:
    return odd(lambda args, _ctx: ToolResult(args), **changes)


async def test_arguments_that_satisfy_the_schema_pass_unchanged() -> None:
    async with opened(echo()) as world:
        args = {"b": 1.0, "a": [True, None, "ü"], "": {"z": -0.5}}
        assert (await world.call(args=args)).value == args
        assert list((await world.call(args=args, step="2")).value) == ["b", "a", ""]


async def test_arguments_that_do_not_are_refused_with_what_is_wrong_and_where() -> None:
    async with opened(add) as world:
        outcome = await world.call("math.add", {"a": "one", "c": 3})
        assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_TOOL_ARGS)
        for part in ("/a", "type_mismatch", "/b", "missing", "/c", "unknown_field"):
            assert part in outcome.reason
        assert "remit tools math.add" in outcome.remedy
        refused = await world.last(GateRefused)
        assert (refused.stage, refused.rule_id) == ("validate_arguments", "default:L0")


async def test_what_is_wrong_with_a_value_does_not_quote_it() -> None:
    async with opened(add) as world:
        assert "hunter2" not in (await world.call("math.add", {"a": "hunter2", "b": 1})).reason


async def test_a_warning_gate_reports_and_lets_pass(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with opened(echo(input_schema=schema), schema_gate="warn") as world:
        with caplog.at_level(logging.WARNING, "remit.gateway"):
            assert (await world.call(args={"a": "one"})).value == {"a": "one"}
        assert "schema_gate_warn tool=odd.tool boundary=call_args direction=internal: /a" in caplog.text


async def test_what_a_warning_gate_let_pass_stands_in_the_record_before_the_call() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with opened(echo(input_schema=schema), schema_gate="warn") as world:
        outcome = await world.call(args={"a": "one", "b": 2})
        assert outcome.ok
        assert await world.kinds() == ["schema_gate_warned", "tool_invocation_started", "tool_invocation_finished"]
        warned = await world.last(SchemaGateWarned)
        tool, _ = await world.catalog.resolve("odd.tool", {})
        assert warned == SchemaGateWarned(
            step="1",
            tool_name="odd.tool",
            boundary="call_args",
            warn_codes=("type_mismatch", "unknown_field"),
            problems=warned.problems,
            schema_hash=tool.input.hash,
            invocation_id=outcome.invocation_id or "",
        )
        assert [problem.split()[0] for problem in warned.problems] == ["/a", "/b"]


async def test_a_call_that_waits_for_a_person_is_recorded_as_warned_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with opened(echo(level=Level.L1, input_schema=schema), schema_gate="warn") as world:
        pending = await world.call(args={"a": "one"})
        await world.approve(pending)
        assert (await world.again(pending, "odd.tool", {"a": "one"})).ok
        assert (await world.kinds()).count("schema_gate_warned") == 1
        commit = world.store.commit_of("confirmation_used")
        assert "schema_gate_warned" in [event.kind for append in commit.appends for event in append.events]


async def test_an_open_gate_does_not_look() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with opened(echo(input_schema=schema), schema_gate="off") as world:
        assert (await world.call(args={"a": "one"})).value == {"a": "one"}


@pytest.mark.parametrize(
    "args",
    [
        {"a": float("nan")},
        {"a": 10**4300},
        {"a": b"bytes"},
        {"a": {1: 2}},
        {"a": "\ud800"},
        {"a": datetime(2026, 1, 1)},  # noqa: DTZ001 - any object will do
        {"a": object()},
        {"a": {1, 2}},
        LOOP,
        DEEP,
    ],
    ids=["NaN", "huge", "bytes", "number as key", "surrogate", "datetime", "object", "set", "loop", "deep"],
)
@pytest.mark.parametrize("mode", ["strict", "off"])
async def test_arguments_that_json_cannot_hold_are_refused_in_every_mode(args: dict[str, Any], mode: str) -> None:
    async with opened(echo(), schema_gate=mode) as world:
        outcome = await world.call(args=args)
        assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_TOOL_ARGS)
        assert (await world.last(GateRefused)).arguments_hash == ""


async def test_the_place_of_an_argument_that_json_cannot_hold_is_named() -> None:
    async with opened(echo()) as world:
        outcome = await world.call(args={"rows": [1, float("nan")]})
        assert "$.rows[1] is NaN or infinite" in outcome.reason
        assert outcome.remedy == "Use None or a string."


@pytest.mark.parametrize("number", [2**53, -(2**63), 1234567890123456789, 2**64 - 1, 10**30 + 7])
async def test_arguments_hold_every_integer_that_results_hold(number: int) -> None:
    args = {"chat_id": number, "é": [number, 1.0]}
    async with opened(echo(level=Level.L1)) as world:
        pending = await world.call(args=args)
        await world.approve(pending)
        assert (await world.again(pending, "odd.tool", args)).value == args
        assert (await world.again(pending, "odd.tool", {**args, "chat_id": number + 1})).code is not None


async def test_arguments_beyond_the_limit_are_refused() -> None:
    async with opened(echo(), max_value_bytes=100) as world:
        assert (await world.call(args={"a": "x" * 91})).ok
        outcome = await world.call(args={"a": "x" * 93}, step="2")
        assert outcome.code is Code.INVALID_TOOL_ARGS
        assert "limit is 100" in outcome.reason


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("-inf"), "5", None])
async def test_a_timeout_has_to_be_positive(seconds: Any) -> None:
    async with opened(echo()) as world:
        outcome = await world.call(timeout_s=seconds)
        if seconds is None:
            assert outcome.ok
        else:
            assert (outcome.status, outcome.code) == ("blocked", Code.INVALID_BUDGET)
            assert (await world.last(GateRefused)).stage == "validate_arguments"


async def started_args(world: World) -> Any:
    return await world.value(await world.last(ToolInvocationStarted), "args")


async def test_what_is_checked_recorded_and_sent_is_what_was_asked_whoever_changes_it_meanwhile() -> None:
    seen: list[Any] = []

    def behave(args: dict[str, Any], _ctx: Any) -> ToolResult:
        seen.append({**args})
        args["list"].append("by the tool")
        return ToolResult(None)

    async with opened(odd(behave, Level.L1)) as world:
        args: dict[str, Any] = {"list": [1]}
        pending = await world.call(args=args)
        await world.approve(pending)
        call = world.again(pending, "odd.tool", args)
        outcome = await call
        assert outcome.ok
        assert args == {"list": [1]}
        assert await started_args(world) == {"list": [1]}


async def test_nobody_is_asked_about_arguments_that_do_not_fit() -> None:
    async with opened(echo(level=Level.L1, input_schema={"type": "object", "required": ["a"]})) as world:
        assert (await world.call()).code is Code.INVALID_TOOL_ARGS
        assert await world.confirmations.pending() == []


@tool("made.plain", level="L0")
def plain(a: int = 0) -> int:
    """Give it back."""
    return a


@tool("made.given", level="L0", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
def with_schema(a: int = 0) -> int:
    """Give it back."""
    return a


@pytest.mark.parametrize("mode", ["warn", "off"])
@pytest.mark.parametrize("one", [plain, with_schema], ids=["hints", "schema"])
async def test_an_open_gate_leaves_out_what_a_function_does_not_take(one: Any, mode: Any) -> None:
    async with opened(one, schema_gate=mode) as world:
        outcome = await world.call(one.meta.name, {"a": 3, "b": 4})
        assert (outcome.status, outcome.value) == ("ok", 3)
        mistyped = await world.call("made.plain", {"a": "three"}, step="2") if one is plain else None
        assert mistyped is None or (mistyped.status, mistyped.code) == ("blocked", Code.INVALID_TOOL_ARGS)
