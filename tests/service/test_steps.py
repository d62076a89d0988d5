"""Steps, whole and in the shape of the contract (tools, "Steps")."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit import Run, ToolResult, recipe, tool
from remit.codes import Code
from remit.errors import NotFoundError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext
from tests.opened import OpenRemit, until_waiting

LONG = "x" * 20_000
MAY = {"policy.rules": [{"effect": "allow", "tools": ["pad.*", "door.*"]}]}
STEP = ["name", "ok", "duration_ms", "error_code", "meta"]
META = ["args_preview", "result_preview", "provider_id", "risk_level", "capability_level", "tool_name"]
RESULT = ["version", "ok", "trace_id", "task_type", "result", "artifacts", "steps", "trace_lines", "error"]


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    if not text:
        raise ValueError("nothing to write")
    return text * 20_000


@recipe("pads")
async def pads(run: Run, text: str = "x") -> Any:
    """Write, then wait."""
    outcome = await run.attempt("pad.write", {"text": text})
    await run.attempt("pad.none", {})
    word = await run.wait_signal("go")
    if not outcome.ok:
        await run.call("pad.write", {"text": ""})
    return word


async def test_a_job_is_a_task_result_and_its_steps_are_the_contracts(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[pads], flags=MAY) as remit:
        job = await remit.start(pads())
        await job.signal("go", {"said": "hi"})
        await job
        plain = msgspec.json.decode(msgspec.json.encode(await job.view()))
        assert [key for key in plain if key in RESULT] == RESULT
        assert (plain["ok"], plain["task_type"], plain["result"], plain["error"]) == (
            True,
            "pads",
            {"said": "hi"},
            None,
        )
        assert len(plain["trace_id"]) == 32
        assert plain["trace_lines"][0].startswith("job_created pads")
        called, refused, waited = plain["steps"]
        for step in plain["steps"]:
            assert [key for key in step if key in STEP] == STEP
            assert list(step["meta"]) == META
        assert (called["name"], called["ok"], called["error_code"]) == ("tool.pad.write", True, "")
        assert called["duration_ms"] > 0
        assert called["meta"] == {
            "args_preview": '{"text":"x"}',
            "result_preview": called["meta"]["result_preview"],
            "provider_id": "local",
            "risk_level": "write",
            "capability_level": "L1",
            "tool_name": "pad.write",
        }
        assert len(called["meta"]["result_preview"]) <= 200
        assert (refused["ok"], refused["error_code"], refused["meta"]["tool_name"]) == (
            False,
            "UNKNOWN_TOOL",
            "pad.none",
        )
        assert (waited["name"], waited["ok"]) == ("wait.signal", True)


async def test_a_failed_job_says_whether_it_may_succeed_later(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[pads], flags=MAY) as remit:
        job = await remit.start(pads(text=""))
        await job.signal("go")
        await remit.ended(job.id)
        view = await job.view()
        assert view.error is not None
        assert (view.ok, view.error.code, view.error.retryable, view.error.step) == (
            False,
            "TOOL_EXEC_FAILED",
            False,
            "4",
        )


async def test_a_cancelled_job_says_who_cancelled_it(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[pads], flags=MAY) as remit:
        job = await remit.start(pads())
        await job.cancel("enough")
        await remit.ended(job.id)
        error = (await job.view()).error
        assert error is not None
        assert (error.code, error.message) == ("JOB_CANCELLED", "cancelled by alice: enough")


async def test_a_step_is_given_whole(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[pads], flags=MAY) as remit:
        job = await remit.start(pads())
        await job.signal("go", {"said": "hi"})
        await job
        steps = remit.service.steps
        called, refused, waited = [await steps.view(job.id, step) for step in ("1", "2", "3")]
        assert (called.args, called.value, called.error) == ({"text": "x"}, LONG, None)
        assert (refused.value, refused.error and refused.error.code) == (None, "UNKNOWN_TOOL")
        assert (waited.row.name, waited.value) == ("wait.signal", {"said": "hi"})
        with pytest.raises(NotFoundError) as raised:
            await steps.view(job.id, "9")
        assert raised.value.code is Code.STEP_NOT_FOUND


class Door:
    """A provider whose only tool has an effect and does not come back."""

    provider_id = "door"

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def list_tools(self) -> list[ToolMeta]:
        return [
            ToolMeta(
                name="door.pass",
                provider_id="door",
                description="Pass.",
                input_schema={"type": "object"},
                capability_level=Level.L1,
                risk_level=Risk.WRITE,
                side_effects=True,
            )
        ]

    async def invoke(self, _name: str, _args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        """Nothing is held."""


@recipe("passes")
async def passes(run: Run) -> Any:
    """Pass the door."""
    return (await run.attempt("door.pass", {})).value


async def test_a_step_that_was_decided_is_not_waited_for_any_more(remit_in: OpenRemit) -> None:
    door = Door()
    given: dict[str, Any] = {"providers": [door], "recipes": [passes], "flags": {**MAY, "jobs.drain_seconds": 0}}
    async with remit_in(**given) as remit:
        job = (await remit.start(passes())).id
        await door.began.wait()
    async with remit_in(**given) as remit:
        await until_waiting(remit, job)
        (wait,) = (await remit.service.jobs.view(job)).waits
    async with remit_in(**given, work=False) as remit:
        await remit.service.steps.decide(job, wait.step, "done", 5, attempt=wait.attempt, by="bob")
        assert (await remit.service.jobs.view(job)).waits == ()
