"""The names of executors: each that a run may begin with is a tool, also in a process that has run for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.parts.work.executors.registry import hand_of, hands_of
from remit.parts.work.unit import tool_of
from remit.parts.work.workflow import Workflow
from tests.parts.work.executors.shop import Shop
from tests.patience import PATIENCE_S

WORKFLOW = {
    "executors": {
        "own": {"protocol": "acp", "program": "own-agent"},
        "gemini": {"agent": "gemini", "program": "/bin/sh"},
        "qwen": {"protocol": "acp", "args": ["--acp"], "program": "qwen"},
        "shell": {"program": "sh"},
    }
}


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("own", "executor.own"),
        ("acp:own", "executor.own"),
        ("qwen", "executor.qwen"),
        ("acp:qwen", "executor.qwen"),
        ("gemini", "executor.gemini"),
        ("acp:gemini", "executor.acp.gemini"),
        ("shell", "executor.shell"),
    ],
)
def test_what_a_run_may_begin_with_is_a_tool(name: str, tool: str) -> None:
    workflow = msgspec.convert(WORKFLOW, Workflow)
    hand = hand_of(workflow, name)
    assert tool_of(hand.name) == tool
    tools = [tool_of(each.name) for each in hands_of(workflow)]
    assert tool in tools or name == "acp:gemini", "where it is installed"
    assert len({*tools}) == len(tools)


@pytest.mark.slow
async def test_a_table_that_was_named_since_is_known_by_both_of_its_names(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.speak("edit", mode="ask")
    text = (shop.folder / "workflow.toml").read_text()
    async with shop.open({"id": "asks", "effect": "allow", "tools": ["acp.permit"]}) as remit:
        work: Any = remit.service.work
        assert await remit.runtime.catalog.find("executor.test") is not None
        (shop.folder / "workflow.toml").write_text(text.replace("[executors.test]", "[executors.other]"))
        started = await work.start(await work.issue("Mend the clock"), "acp:other")
        async with asyncio.timeout(PATIENCE_S):
            await remit.ended(started.job)
        view = await work.view("local#1")
    assert view.results[started.run_id].status == "ok"
    assert view.runs[-1].executor == "other"
