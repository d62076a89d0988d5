"""The real agents end each scene as the table in docs/work.md says.

They are large, so they are installed and run only if that is asked for: `make agents`, REMIT_TEST_AGENTS=1.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.work.executors.agents import BIN, real
from tests.work.executors.outcomes import AGENTS, SCENES, cell, outcome, written

pytestmark = [pytest.mark.slow, real]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("scene", SCENES)
async def test_an_agent_ends_as_the_page_says(
    agent: str, scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.setenv("AGENT_KEY", "k3y")
    result, script = await outcome(agent, scene, tmp_path)
    assert cell(result) == written()[scene, agent], result
    own = {"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "request_user_input"}
    offered = {name for names in script.offered for name in names} - own
    if SCENES[scene].governed:
        assert all("remit" in name for name in offered), offered
    places = {place: os.path.realpath(place) for place in Path("/proc").glob("[0-9]*/cwd")}
    assert not [place for place, folder in places.items() if folder.startswith(str(tmp_path))], "dead means dead"
