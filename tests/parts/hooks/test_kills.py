"""The guard is killed between the leave and the report, again and again: no call is lost, and none is there twice."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from tests.parts.hooks.agents import Home

KILLS = int(os.environ.get("REMIT_TEST_KILLS", "5"))


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_killed_guard_loses_no_call_and_doubles_none() -> None:
    with tempfile.TemporaryDirectory(prefix="k-") as place:
        home = Home(Path(place))

        async def hook(moment: str, call: str, command: str) -> tuple[int, str]:
            message = {"session_id": "s", "tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": command}}
            return await home.remit("guard", "ask", f"claude.{moment}", stdin=json.dumps(message).encode())

        try:
            for number in range(KILLS):
                status, said = await hook("before", f"c{number}", f"echo {number}")
                assert (status, "allow" in said) == (0, True), said
                home.kill()
                assert await hook("after", f"c{number}", f"echo {number}") == (0, "")
        finally:
            home.kill()
        _, rows = await home.remit("api", "sessions.page")
        [session] = set(re.findall(r"ses_[a-z0-9]{26}", rows))
        _, told = await home.remit("trace", session, "--json")
        steps = json.loads(told[told.index("{") :])["steps"]
        assert [step["state"] for step in steps] == ["ok"] * KILLS
        assert sorted(json.loads(step["args_preview"])["command"] for step in steps) == sorted(
            f"echo {number}" for number in range(KILLS)
        )
        status, said = await home.remit("verify")
        assert status == 0, said
        assert f"{KILLS} ends of calls stand as their clients reported them" in said
