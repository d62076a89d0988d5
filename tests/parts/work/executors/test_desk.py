"""Governed mode: an agent has Remit's tools alone, and each of its calls passes the gate and is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.state import ENDED
from remit.parts.sandbox.scratch import scratch
from remit.parts.work.executors.desk import ToolDesk
from remit.parts.work.executors.rows import CLIS
from remit.settings import load
from tests.parts.work.executors.agents import agent_program
from tests.parts.work.executors.repository import git, site_in
from tests.parts.work.executors.shop import ALLOWED, Shop
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

GOVERNED: Final = "It committed its work. Its calls were governed: each passed the gate."


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("AGENT_KEY", "k3y")
    return Shop(tmp_path)


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
async def test_an_agent_works_with_remits_tools_alone_and_each_call_is_recorded(shop: Shop, agent: str) -> None:
    shop.hand_to(agent, "edit")
    result, turn, events = await shop.run(agent)
    assert (result.status, [test.result for test in result.tests]) == ("ok", ["pass"]), result
    assert git(shop.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    assert (result.summary, result.artifacts) == (GOVERNED, (f"session/{turn.trace}",))
    assert (turn.mode, turn.calls, turn.denied, turn.session) == ("governed", 2, 0, "s-1")
    assert (turn.version, turn.tried) == ("9.8.7", CLIS[agent].version)
    called = [event.tool_name for event in events if hasattr(event, "arguments_hash")]
    assert called == ["fs.write", "worktree.exec"]
    assert {event.principal for event in events if hasattr(event, "principal")} == {"alice"}


async def test_a_call_that_policy_denies_fails_the_run(shop: Shop) -> None:
    shop.hand_to("claude", "denied")
    result, turn, _ = await shop.run("claude", {"id": "no", "effect": "deny", "tools": ["worktree.exec"]})
    assert (result.status, result.result_code, turn.denied) == ("fail", "permission_denied", 1 + 1), result


async def test_a_tool_that_runs_when_its_run_is_stopped_ends_with_it(shop: Shop) -> None:
    shop.hand_to("claude", "tool sleeps")
    async with shop.open() as remit:
        work: Any = remit.service.work
        issue = await work.issue("Mend the clock")
        started = await work.start(issue, "claude")
        async with asyncio.timeout(PATIENCE_S):
            while not (found := [*shop.place.glob("sandbox/work/trees/*/*/survivor.txt")]):
                assert (await remit.job(started.job).row()).state not in ENDED
                await remit.clock.sleep(0.02)
        await work.stop(issue, "enough")
        assert not Path("/proc", found[0].read_text().strip()).exists(), "dead means dead"


async def test_a_client_that_has_not_left_at_the_end_is_let_go(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.place)  # a socket's own name is at most some 100 bytes long
    async with shop.open() as remit:
        desk = ToolDesk(remit.settings, remit.runtime.journal)
        async with desk.open(site_in(shop.folder, shop.folder, shop.place)):
            reading, writing = await asyncio.open_unix_connection("tools.sock")
            writing.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            assert b'"id":1' in await reading.readline()
        async with asyncio.timeout(PATIENCE_S):
            assert await reading.read() == b""
        writing.close()


async def test_the_key_of_the_model_reaches_the_agent_and_no_record(shop: Shop) -> None:
    (shop.folder / ".mcp.json").write_text("{}")
    git(shop.folder, "add", ".mcp.json")
    git(shop.folder, "commit", "--quiet", "--message", "Configure")
    shop.hand_to("claude", "edit", mode="free")
    result, turn, _ = await shop.run("claude")
    assert (result.status, turn.mode) == ("ok", "free")
    assert [start.partition(" ")[2] for start in turn.starts] == [".mcp.json"], "listed; its flags keep it from them"
    found = [path for path in shop.place.rglob("*") if path.is_file() and b"k3y" in path.read_bytes()]
    assert found == []


@pytest.mark.parametrize("path", ["opencode.json", ".opencode/plugin/x.js"])
async def test_files_that_start_programs_need_trust_where_no_flag_keeps_the_agent_from_them(
    shop: Shop, path: str
) -> None:
    place = shop.folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("{}")
    git(shop.folder, "add", ".")
    git(shop.folder, "commit", "--quiet", "--message", "Configure")
    shop.hand_to("opencode", "edit")
    refused, _, _ = await shop.run("opencode")
    assert (refused.status, refused.result_code) == ("fail", "permission_denied")
    trusted = f"sha256:{hashlib.sha256(b'{}').hexdigest()} {path}"
    assert trusted in refused.summary
    shop.hand_to("opencode", "edit", more=f"starts = {json.dumps([trusted])}\n")
    assert (await shop.run("opencode"))[0].status == "ok"


@pytest.mark.parametrize(
    ("workflow", "executor", "env", "code"),
    [
        ("", "claude", {"PATH": "/nowhere", "ANTHROPIC_API_KEY": "k"}, Code.env_unavailable),
        ("", "gemini", {"ANTHROPIC_API_KEY": "k"}, Code.env_unavailable),
        ("", "aider", {}, Code.WORK_INVALID),
        ('[executors.x]\nagent = "nobody"\n', "x", {}, Code.WORK_INVALID),
        ("[executors.x]\nisolation = 'none'\n", "x", {}, Code.WORK_INVALID),
        ('[executors.claude]\nagent = "claude"\nmode = "ask"\n', "claude", {}, Code.WORK_INVALID),
    ],
)
async def test_an_agent_that_cannot_be_had_is_refused_with_what_to_do(
    shop: Shop, workflow: str, executor: str, env: dict[str, str], code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop.folder / "workflow.toml").write_text(workflow)
    path = agent_program(shop.place, "claude", "edit")
    Path(path).rename(shop.place / "gemini")
    for name, value in {"PATH": f"{shop.place}:/usr/bin:/bin", **env}.items():
        monkeypatch.setenv(name, value)
    flags = {"journal.url": ":memory:", "policy.rules": ALLOWED}
    async with Remit(settings=load(env={}, cwd=shop.folder, flags=flags)) as remit:
        work: Any = remit.service.work
        with pytest.raises(UsageError) as refused:
            await work.start("local#1", executor)
    assert refused.value.code is code
    assert refused.value.remedy
    if "PATH" in env:
        assert CLIS["claude"].install in refused.value.remedy


class TestInTheSandbox:
    """The same, where a program can do no harm: it reaches Remit's tools, and nothing else."""

    @pytest.fixture
    def place(self) -> Iterator[Path]:
        with scratch() as folder:
            folder.chmod(0o755)
            yield folder

    @pytest.fixture
    def shop(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
        monkeypatch.setenv("AGENT_KEY", "k3y")
        return Shop(place)

    @pytest.mark.parametrize("scene", ["edit", "orders"])
    async def test_an_agent_works_with_remits_tools_alone(self, shop: Shop, scene: str) -> None:
        head = git(shop.folder, "rev-parse", "HEAD")
        git(shop.folder, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
        git(shop.folder, "commit", "--quiet", "--message", "sub")
        fake = Path(__file__).with_name("fake_agent.py").read_text()
        (shop.place / "fake_agent.py").write_text(fake)
        shop.hand_to("claude", scene, isolation="sandbox", more=f'reads = ["{shop.place}/fake_agent.py"]\n')
        path = shop.place / f"claude-{scene}"
        plays = f'exec /usr/bin/python3 -I -S {shop.place}/fake_agent.py claude {scene} "$@"'
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\n{plays}\n')
        result, turn, _ = await shop.run("claude")
        assert (result.status, turn.mode, turn.calls) == ("ok", "governed", 2 if scene == "edit" else 3), result
        assert not (shop.place / "caught").exists(), "no program of the run's choice ran outside of the sandbox"
