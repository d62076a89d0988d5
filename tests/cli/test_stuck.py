"""Jobs that the code here cannot go on with, and replays that say what today would do."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Project

CODE = """
from remit import Run, recipe, tool

@tool("shop.refund", level="L1", confirm=False)
def refund(order: str, cents: int) -> str:
    return "done"

@recipe
async def refunds(run: Run) -> str:
    await run.now()
    await run.call("shop.refund", {"order": "o", "cents": 5})
    return str(await run.wait_signal("go"))
"""
ALLOW = """
[app]
modules = ["shop.py"]
[[policy.rules]]
id = "refunds"
effect = "{}"
tools = ["shop.refund"]
"""


def write(project: Project, code: str, effect: str = "allow") -> None:
    (project.folder / "shop.py").write_text(code, encoding="utf-8")
    (project.folder / "remit.toml").write_text(ALLOW.format(effect), encoding="utf-8")


@pytest.fixture
def job(project: Project) -> str:
    """A job that has refunded, and waits for a signal."""
    write(project, CODE)
    found: str = project.here("run", "refunds", "--json").json["job"]
    return found


def test_a_stuck_job_says_what_helps_and_not_what_does_not(project: Project, job: str) -> None:
    write(project, CODE.replace("run.now()", "run.uuid()"))
    done = project.here("resume", job)
    assert done.status == 1
    assert re.search(rf"error: NONDETERMINISTIC: {job} step 1: process \d+ on \S+: the journal holds ", done.err)
    assert "-> Run the code that recorded this job" in done.err
    assert f"-> remit replay {job}" in done.err
    assert f"-> then: remit resume {job}" in done.err
    assert "remit signal" not in done.err
    shown = project.here("show", job)
    assert f"{job} is stuck" in shown.err
    assert "remit signal" not in shown.err
    trace = project.here("trace", job).out
    assert "stuck since" in trace
    assert "NONDETERMINISTIC" in trace
    assert "waits for human" not in trace


def test_a_call_that_a_time_limit_of_the_recipe_gave_up_is_named_as_one(project: Project) -> None:
    hasty = "async with asyncio.timeout(0.001):\n        await run.call"
    slow = "async def refund(order: str, cents: int) -> str:\n    await asyncio.Event().wait()"
    code = CODE.replace("await run.call", hasty).replace("def refund(order: str, cents: int) -> str:", slow)
    write(project, f"import asyncio\n{code}")
    done = project.here("run", "refunds")
    assert done.status == 1
    assert "FOREIGN_TIMEOUT" in done.err
    assert "-> Give a step its own timeout=" in done.err
    assert "Run the code that recorded this job" not in done.err


def test_a_replay_says_that_a_schema_of_today_refuses_a_call(project: Project, job: str) -> None:
    write(project, CODE.replace("cents: int", "euros: int"))
    done = project.here("replay", job)
    assert done.status == 6
    assert (
        "would be refused today  step 2 shop.refund\n    INVALID_TOOL_ARGS: shop.refund: /euros is required" in done.out
    )
    assert "changed since shop.refund: the schema of the arguments (breaking)" in done.out
    report = project.here("replay", job, "--json").json
    assert (report["verdict"], report["today"]) == ("incomplete", "refused")
    assert [(call["step"], call["change"], call["code"]) for call in report["calls"]] == [
        ("2", "refused", "INVALID_TOOL_ARGS")
    ]
    assert "refused" in project.here("replay", "--all").out


@pytest.mark.parametrize(
    ("effect", "today", "words", "status"),
    [
        ("deny", "refused", "would be refused today  step 2 shop.refund\n    POLICY_DENIED: rule refunds", 6),
        ("ask", "asks", "would need approval today  step 2 shop.refund\n    CONFIRMATION_REQUIRED: rule refunds", 0),
        ("allow", "same", "", 0),
    ],
)
def test_a_replay_says_what_policy_of_today_does_with_a_call(
    project: Project, job: str, effect: str, today: str, words: str, status: int
) -> None:
    write(project, CODE, effect)
    done = project.here("replay", job)
    assert (done.status, words in done.out) == (status, True)
    assert project.here("replay", job, "--json").json["today"] == today


def test_a_replay_says_that_a_tool_is_gone(project: Project, job: str) -> None:
    write(project, CODE.replace('@tool("shop.refund"', '@tool("shop.other"'))
    (call,) = project.here("replay", job, "--json").json["calls"]
    assert (call["change"], call["code"]) == ("refused", "UNKNOWN_TOOL")


def test_a_name_that_no_server_has_is_a_mistake_in_the_command(project: Project) -> None:
    done = project.here("mcp", "test", "nosuch")
    assert (done.status, "there is no MCP server 'nosuch'" in done.out) == (2, True)


def test_a_stuck_job_is_called_so_where_it_cannot_be_retried(project: Project, job: str) -> None:
    write(project, CODE.replace("run.now()", "run.uuid()"))
    assert project.here("resume", job).status == 1
    assert "it is stuck" in project.here("retry", job, "--json").error["message"]
