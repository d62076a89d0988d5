"""With `remit record`, a call of an agent has four marks: wanted by the model, decided, reported, seen by the model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.journal.kinds import ToolInvocationFinished, ToolInvocationStarted, decode
from remit.parts.model_gateway.kinds import ModelGatewayAnswered, ModelGatewayAsked
from remit.settings import load
from remit_testing.models import ModelServer
from tests.parts.hooks.agents import ROWS, Home, env_of, real, script_of

pytestmark = [pytest.mark.slow, real, pytest.mark.timeout(300)]


async def payloads(home: Home) -> list[Any]:
    async with Remit(settings=load(env={}, cwd=home.settings), work=False) as remit:
        scanned = await remit.runtime.journal.scan()
        return [decode(placed.event.kind, placed.event.data) for placed in scanned.events]


async def test_the_four_marks_of_a_call_bear_one_id() -> None:
    with tempfile.TemporaryDirectory(prefix="m-", ignore_cleanup_errors=True) as place:
        home = Home(Path(place), mode="narrow")
        await home.connect("claude")
        async with ModelServer(script_of("claude", ["echo hi > b.txt"])).listening() as server:
            home.env |= env_of("claude", server.url)
            status, said = await home.remit("record", "--", "claude", *ROWS["claude"].args)
        assert (status, (home.repository / "b.txt").exists()) == (0, True), said
        home.kill()
        marks = await payloads(home)
        [(wanted, tool)] = [
            each for mark in marks if isinstance(mark, ModelGatewayAnswered) for each in mark.wanted.items()
        ]
        [started] = [mark for mark in marks if isinstance(mark, ToolInvocationStarted) and mark.alias == "agent.shell"]
        [finished] = [mark for mark in marks if isinstance(mark, ToolInvocationFinished) and mark.reported_by]
        seen = [each for mark in marks if isinstance(mark, ModelGatewayAsked) for each in mark.results]
        assert (tool, started.client["call_id"], started.rule_id) == ("Bash", wanted, "rest")
        assert (finished.invocation_id, finished.reported_by) == (started.invocation_id, "claude")
        assert seen == [wanted]
