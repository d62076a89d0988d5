"""A Remit of before and today's on one journal: both work, and the older one does not start again."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.fleet import Gate, Server, env
from tests.journal.storages import PostgresStorage
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
BEFORE = "bc541f14"
"""The last commit before the journal's schema 10."""
GIT = shutil.which("git")


def _archive() -> bytes:
    """The sources of before; nothing where the history is not there."""
    if GIT is None:
        return b""
    command = [GIT, "archive", BEFORE, "src"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout


SOURCES = _archive()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SOURCES, reason=f"the history of this checkout does not reach back to {BEFORE}"),
]
MODULE = """
import asyncio, os
from remit import Run, recipe, tool

@tool("gate.wait", level="L1", idempotent=True)
async def wait(gate: str) -> str:
    reader, writer = await asyncio.open_unix_connection(gate)
    writer.write(os.environ["WHICH"].encode() + b"\\n")
    await reader.readline()
    writer.close()
    return os.environ["WHICH"]

@recipe("waits")
async def waits(run: Run, gate: str) -> str:
    await run.wait_signal("go")
    return (await run.call("gate.wait", {"gate": gate})).value
"""
SETTINGS = """
[app]
modules = ["versions_module.py"]
[jobs]
concurrency = 1
lease_seconds = 2
[[policy.rules]]
id = "gates"
effect = "allow"
tools = ["gate.*"]
[journal]
url = "{url}"
"""


class Versions:
    """Both versions, with the same settings and the same journal."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        (folder / "versions_module.py").write_text(MODULE)
        (folder / "remit.toml").write_text(SETTINGS.format(url=url))
        with tarfile.open(fileobj=io.BytesIO(SOURCES)) as archive:
            archive.extractall(folder / "before", filter="data")
        self._paths = {"old": str(folder / "before" / "src"), "new": str(ROOT / "src")}

    async def server(self, which: str) -> Server:
        """Start a server that works on one job at a time."""
        more = {"PYTHONPATH": self._paths[which], "WHICH": which}
        return await asyncio.to_thread(lambda: Server(self.folder, **more))

    async def command(self, which: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        given = env(self.folder) | {"PYTHONPATH": self._paths[which], "WHICH": which}
        command = [sys.executable, "-m", "remit", *words]
        return await asyncio.to_thread(
            lambda: subprocess.run(command, cwd=self.folder, env=given, capture_output=True, text=True, check=False)
        )


async def _asked(url: str, method: str, path: str, body: Any = None) -> Any:
    def ask() -> Any:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status < 300, response.read()
            return json.loads(response.read() or b"null")

    return await asyncio.to_thread(ask)


async def test_both_work_on_one_journal_and_the_older_one_does_not_start_again(
    tmp_path: Path, storage: PostgresStorage
) -> None:
    versions = Versions(tmp_path, storage.url)
    servers: dict[str, Server] = {}
    async with Gate(tmp_path / "gate").listening() as gate:
        body = {"recipe": "waits", "input": {"gate": str(gate.path)}}
        try:
            servers["old"] = await versions.server("old")
            urls = {"old": f"http://127.0.0.1:{servers['old'].port}"}
            jobs = [(await _asked(urls["old"], "POST", "/v1/jobs", body))["job"]]
            servers["new"] = await versions.server("new")  # brings the schema up to date, beside the older one
            urls["new"] = f"http://127.0.0.1:{servers['new'].port}"
            jobs += [(await _asked(urls[which], "POST", "/v1/jobs", body))["job"] for which in ("old", "new")]
            for number, job in enumerate(jobs):
                await _asked(urls["old" if number % 2 else "new"], "POST", f"/v1/jobs/{job}/signal", {"name": "go"})
            assert await gate.next(2) == ["new", "old"]

            refusal = await versions.command("old", "jobs")
            assert refusal.returncode != 0
            assert "JOURNAL_NEWER" in refusal.stderr
            assert "the journal has schema" in refusal.stderr

            servers["old"].process.kill()  # what it had under way goes on in the newer one
            servers["old"].process.communicate()
            gate.open.set()
            assert await gate.next(2) == ["new", "new"]
            for job in jobs:
                shown = await _asked(urls["new"], "GET", f"/v1/jobs/{job}?wait={PATIENCE_S:.0f}")
                assert (shown["state"], shown["result"]) == ("completed", "new")
            checked = await versions.command("new", "verify")
            assert checked.returncode == 0, checked.stdout + checked.stderr
        finally:
            for server in servers.values():
                server.process.kill()
                server.process.communicate()
