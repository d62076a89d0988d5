"""What an MCP server on stdio is given: a folder of its own and pipes, not the project and not a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from remit.settings import load
from remit.settings.mcp_servers import mcp_servers
from tests.opened import OpenRemit

LOOKS = """
import json, os, sys
def open_terminal():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
seen = {
    "cwd": os.getcwd(), "terminal": open_terminal(), "ttys": [os.isatty(fd) for fd in (0, 1, 2)],
    "project": os.path.exists("remit.toml") or os.path.exists(".remit"), "leads": os.getsid(0) == os.getpid(),
    "fds": [fd for fd in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{fd}")],
    "token": "GITHUB_TOKEN" in os.environ,
}
open(sys.argv[1], "w").write(json.dumps(seen))
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("said", ["", "."])
async def test_a_server_starts_outside_the_project_and_without_a_terminal(
    remit_in: OpenRemit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    (tmp_path / "looks.py").write_text(LOOKS, encoding="utf-8")
    (tmp_path / "remit.toml").write_text("", encoding="utf-8")
    seen = tmp_path / "seen.json"
    os.mkfifo(seen)
    table = {"name": "looks", "command": [sys.executable, "looks.py", str(seen)], "timeout_ms": 1_000}
    servers = json.dumps([{**table, **({"cwd": said} if said else {})}])
    async with remit_in(flags={"mcp.servers_json": servers}, work=False) as remit:
        (server,) = mcp_servers(remit.settings, {}).servers
        assert (Path(server.cwd) == tmp_path) == bool(said)
        listing = asyncio.create_task(remit.service.tools.views())  # never answered
        found = json.loads(await asyncio.to_thread(seen.read_text, encoding="utf-8"))
        listing.cancel()
    assert found == {
        "cwd": str(tmp_path) if said else found["cwd"],
        "terminal": False,
        "ttys": [False] * 3,
        "project": bool(said),
        "leads": True,
        "fds": [0, 1, 2],
        "token": False,
    }
    if not said:
        own = Path(found["cwd"])
        assert own.parent == tmp_path / "data/remit/mcp-servers"
        assert own.stat().st_mode & 0o777 == 0o700


def test_two_projects_share_no_folder(tmp_path: Path) -> None:
    folders = set()
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "remit.toml").write_text('[[mcp.servers]]\nname = "s"\ncommand = ["x"]\n', encoding="utf-8")
        folders |= {server.cwd for server in mcp_servers(load(cwd=tmp_path / name, env={}), {}).servers}
    assert len(folders) == 2
