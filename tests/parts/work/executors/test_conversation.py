"""A run goes on with the conversation that the same agent had on the issue just before, if that ended well."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.parts.work.executors.cli import carry
from remit.parts.work.executors.port import AgentConversation
from remit.parts.work.executors.rows import CLIS
from tests.parts.work.executors.repository import site_in
from tests.parts.work.executors.shop import Shop
from tests.patience import PATIENCE_S

SESSION = "5e132943-f21a-4d41"
KEPT = {
    "claude": ".claude/projects/{claude}/5e132943-f21a-4d41.jsonl",
    "codex": ".codex/sessions/2026/11/26/rollout-2026-11-26T13-08-5e132943-f21a-4d41.jsonl",
    "gemini": ".gemini/tmp/{gemini}/chats/session-2026-11-26T13-08-5e132943.jsonl",
}


class Homes:
    """The homes and worktrees of two runs; the first has a conversation."""

    def __init__(self, place: Path, agent: str) -> None:
        self.cli = CLIS[agent]
        self.folders = [place / "work-0001", place / "work-0002"]
        self.homes = [place / "1.home", place / "2.home"]
        self.kept = [home / self.named(agent, folder) for home, folder in zip(self.homes, self.folders, strict=True)]
        self.kept[0].parent.mkdir(parents=True)
        self.kept[0].write_text("what was said")

    def named(self, agent: str, folder: Path) -> str:
        return KEPT[agent].format(claude=str(folder).replace("/", "-").replace("_", "-"), gemini=folder.name)

    def carry(self, session: str = SESSION, mode: Any = "governed", version: str = "1.0") -> bool:
        last = AgentConversation("r", session, "governed", "1.0", self.homes[0], self.folders[0], "ended")
        site = site_in(self.folders[1], self.folders[1], self.homes[1])._replace(last=last)
        return carry(self.cli, site, mode, version)


@pytest.mark.parametrize("agent", KEPT)
def test_the_one_file_of_a_conversation_is_taken_along(tmp_path: Path, agent: str) -> None:
    homes = Homes(tmp_path, agent)
    (homes.homes[0] / "settings.json").write_text("starts something")
    assert homes.carry()
    assert [path for path in homes.homes[1].rglob("*") if path.is_file()] == [homes.kept[1]]
    assert homes.kept[1].read_text() == "what was said"


@pytest.mark.parametrize(
    "other", [{"mode": "free"}, {"version": "1.1"}, {"version": ""}, {"session": "../s"}, {"session": "-x"}]
)
def test_another_mode_or_version_or_an_odd_name_begins_anew(tmp_path: Path, other: dict[str, str]) -> None:
    assert not Homes(tmp_path, "claude").carry(**other)


@pytest.mark.parametrize("agent", ["opencode", "aider"])
def test_an_agent_that_would_work_elsewhere_begins_anew(tmp_path: Path, agent: str) -> None:
    homes = Homes(tmp_path, "claude")
    homes.cli = CLIS[agent]
    assert not homes.carry()


def test_a_file_that_is_no_plain_one_of_that_home_stays_there(tmp_path: Path) -> None:
    homes = Homes(tmp_path, "claude")
    (tmp_path / "secret").write_text("secret")
    homes.kept[0].unlink()
    homes.kept[0].symlink_to(tmp_path / "secret")
    assert not homes.carry()
    homes.kept[0].unlink()
    homes.kept[0].mkdir()
    assert not homes.carry()
    homes.kept[0].rmdir()
    homes.kept[0].parent.rename(tmp_path / "moved")
    homes.kept[0].parent.symlink_to(tmp_path / "moved")
    (tmp_path / "moved" / homes.kept[0].name).write_text("elsewhere")
    assert not homes.carry()


async def runs(shop: Shop, *agents: str) -> list[tuple[str, str]]:
    """Run an issue with one agent after another; the status of each, and the run that it went on with."""
    ends = []
    async with shop.open({"id": "asks", "effect": "allow", "tools": ["acp.permit"]}) as remit:
        work: Any = remit.service.work
        issue = await work.issue("Mend the clock", body="It is broken.")
        for agent in agents:
            started = await work.start(issue, agent)
            async with asyncio.timeout(PATIENCE_S):
                await remit.ended(started.job)
            value: Any = await remit.service.jobs.result(started.job)
            ends.append((value["result"]["status"], value["turn"].get("continues", "")[-4:]))
    return ends


@pytest.mark.slow
async def test_the_next_run_of_an_agent_goes_on_with_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "k3y")
    shop = Shop(tmp_path)
    shop.hand_to("claude", "again")
    assert await runs(shop, "claude", "claude") == [("fail", ""), ("ok", "0001")]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "end"), [("1.0", ("ok", "0001")), ("forgets", ("fail", ""))])
async def test_so_does_one_that_speaks_the_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, end: tuple[str, str]
) -> None:
    monkeypatch.setenv("AGENT_KEY", "k3y")
    shop = Shop(tmp_path)
    shop.speak("again", mode="ask", more='agent = "claude"\nkey = "AGENT_KEY"', version=version)
    assert await runs(shop, "test", "test") == [("fail", ""), end]
