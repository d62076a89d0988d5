"""`remit doctor` names what switches a connected agent's hooks off."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit import Remit
from remit.capability import Look
from remit.parts.hooks.checks import check_agents
from remit.parts.hooks.daemon import GuardFolder
from remit.settings import load

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "remit guard ask"}]}]}}'


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "d"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = load(env={}, cwd=tmp_path)
    return Look(settings, lambda: Remit(str(tmp_path / "journal.db"), settings=settings, work=False))


def connect(look: Look, tmp_path: Path) -> None:
    folder = GuardFolder(look.settings, {"XDG_DATA_HOME": str(tmp_path / "d")})
    folder.connections.mkdir(parents=True)
    (folder.connections / "a.json").write_text('{"client": "claude", "file": "x"}')
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(HOOKS)


async def test_without_an_agent_it_says_nothing(look: Look) -> None:
    assert not list(await check_agents(look))


async def test_a_connected_agent_is_named(look: Look, tmp_path: Path) -> None:
    connect(look, tmp_path)
    [check] = await check_agents(look)
    assert (check.verdict, "remit guard status claude" in check.detail) == ("ok", True)


async def test_a_line_that_switches_its_hooks_off_is_a_warning(look: Look, tmp_path: Path) -> None:
    connect(look, tmp_path)
    (tmp_path / ".claude/settings.json").write_text(HOOKS.replace("{", '{"disableAllHooks": true, ', 1))
    check = next(iter(await check_agents(look)))
    assert check.verdict == "warn"
    assert ".claude/settings.json:1" in check.detail


async def test_a_session_whose_begin_was_not_seen_is_a_warning(look: Look, tmp_path: Path) -> None:
    connect(look, tmp_path)
    async with look.open() as remit:
        opened = remit.service.sessions.open
        await opened("hook", client="claude", client_session="claude/1")
        session = await opened("hook", client="claude", client_session="claude/2", begin_unseen=True)
        await opened("hook", client="gemini", client_session="gemini/3", begin_unseen=True)
    _, check = await check_agents(look)
    assert (check.verdict, check.detail) == ("warn", f"claude, {session}: begin not seen")


async def test_live_an_agent_that_is_not_here_fails(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(look, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    [check] = await check_agents(look._replace(live=True))
    assert (check.verdict, "not installed" in check.detail) == ("fail", True)
