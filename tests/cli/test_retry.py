from __future__ import annotations

import json

from tests.cli.conftest import Project

FIXED = """
from remit import Run, recipe, tool

@tool("n.one", level="L0")
def one() -> int:
    \"\"\"Return one.\"\"\"
    return 1

@recipe("fixes")
async def fixes(run: Run) -> int:
    \"\"\"Add.\"\"\"
    found = await run.call("n.one")
    return int(found.value) + 1
"""
BROKEN = FIXED.replace("+ 1", "// 0")


def test_a_failed_job_says_where_and_is_retried_with_the_code_of_today(project: Project) -> None:
    file = project.folder / "fixes.py"
    file.write_text(BROKEN)
    failed = project.here("run", "fixes.py")
    assert failed.status == 3
    assert "  at fixes.py:13 in fixes\n" in failed.err
    assert "remit --module fixes.py retry job_" in failed.err
    assert "at fixes.py:13 in fixes" in project.here("--module", "fixes.py", "trace", "last").out
    file.write_text(FIXED)
    done = project.here("--module", "fixes.py", "retry", "last", "--json")
    assert (done.status, done.json["result"]) == (0, 2)
    assert "retry of" in project.here("show", "last").out
    events = [json.loads(line) for line in project.here("trace", "last", "--events", "--json").out.splitlines()]
    taken = [event for event in events if "taken_from" in event]
    assert [event["kind"] for event in taken] == ["tool_invocation_started", "tool_invocation_finished"]
    assert all(event["recorded_at"] < event["at"] for event in taken)
    assert f"(taken from {taken[0]['taken_from']}, recorded " in project.here("trace", "last", "--events").out


def test_a_completed_job_is_not_retried_without_a_step(project: Project) -> None:
    project.here("run", "greet", "--name", "Ada")
    done = project.here("retry", "last", "--json")
    assert (done.status, done.error["code"]) == (1, "JOB_NOT_RETRYABLE")
