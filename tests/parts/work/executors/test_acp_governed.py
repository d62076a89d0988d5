"""Governed over the Agent Client Protocol: the agent is handed Remit's tools, and that it has no others is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from remit.errors import UsageError
from remit.parts.work.executors.acp import UNGOVERNED, AcpExecutor
from remit.parts.work.executors.rows import CLIS
from remit.parts.work.workflow import ExecutorTable
from tests.parts.work.executors.repository import git
from tests.parts.work.executors.shop import Shop

pytestmark = pytest.mark.slow

PERMIT: Final[dict[str, Any]] = {"id": "asks", "effect": "allow", "tools": ["acp.permit"]}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.mark.parametrize("scene", ["tools", "tools-asks"])
async def test_an_agent_works_with_the_tools_that_it_is_handed_and_each_call_is_recorded(
    shop: Shop, scene: str
) -> None:
    shop.speak(scene)
    result, turn, events = await shop.run("test", PERMIT)
    assert (result.status, [test.result for test in result.tests]) == ("ok", ["pass"]), result
    assert git(shop.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    assert (turn.mode, turn.calls, turn.denied, turn.session) == ("governed", 2, 0, "s-1")
    called = [event.tool_name for event in events if hasattr(event, "arguments_hash")]
    assert called == ["fs.write", "worktree.exec"]
    sessions = [f"session/{name}" for name in (turn.trace, turn.asked) if name]
    assert (list(result.artifacts), len(sessions)) == (sessions, 2 if scene == "tools-asks" else 1)
    assert (await shop.run("test", PERMIT))[0].status == "ok", "it was tried before"


@pytest.mark.parametrize(
    ("scene", "why"),
    [
        ("edit", "cannot be switched off"),
        ("unasked", "cannot be switched off"),
        ("tools-cut", "could not be tried"),
        ("tools-strays", "1 of the calls that it reported did not pass the gate"),
    ],
)
async def test_an_agent_that_has_tools_of_its_own_is_not_called_governed(shop: Shop, scene: str, why: str) -> None:
    shop.speak(scene)
    result, turn, _ = await shop.run("test", PERMIT)
    assert (result.status, turn.mode) == ("fail", "free")
    assert why in result.summary


@pytest.mark.parametrize("agent", UNGOVERNED)
def test_an_agent_that_can_be_governed_by_its_command_line_alone_says_so(agent: str) -> None:
    table = ExecutorTable(agent=agent, mode="governed", key="PATH")
    executor = AcpExecutor(f"acp:{agent}", ("/bin/sh",), table, CLIS[agent])
    with pytest.raises(UsageError, match="cannot be governed") as refused:
        executor.require({"PATH": "/bin"})
    assert f"--executor {agent}" in refused.value.remedy


@pytest.mark.parametrize("tool", ["worktree.exec", "acp.permit"])
async def test_what_policy_denies_fails_the_run(shop: Shop, tool: str) -> None:
    shop.speak("tools-asks")
    rules = [PERMIT, {"id": "no", "effect": "deny", "tools": [tool]}]
    result, turn, _ = await shop.run("test", *rules)
    assert (result.status, result.result_code, turn.denied) == ("fail", "permission_denied", 1), result
