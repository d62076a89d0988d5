"""A Remit of before and today's on one journal: both work, and the older one does not start again."""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.test_fleet import Server, _asked, _env
from tests.journal.postgres.server import PostgresServer
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


class Gate:
    """Where jobs wait until they are let through; it knows by which version each is run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: asyncio.Queue[str] = asyncio.Queue()
        self.open = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.names.put_nowait((await reader.readline()).decode().strip())
        await self.open.wait()
        writer.write(b"through\n")
        writer.close()

    async def next(self, number: int) -> list[str]:
        """Which versions run the next jobs that come here."""
        async with asyncio.timeout(PATIENCE_S):
            return sorted([await self.names.get() for _ in range(number)])

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Gate]:
        """Serve within the block."""
        server = await asyncio.start_unix_server(self._serve, self.path)
        try:
            yield self
        finally:
            self.open.set()
            server.close()


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
        env = {"PYTHONPATH": self._paths[which], "WHICH": which}
        return await asyncio.to_thread(lambda: Server(self.folder, **env))

    async def command(self, which: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        env = _env(self.folder) | {"PYTHONPATH": self._paths[which], "WHICH": which}
        command = [sys.executable, "-m", "remit", *words]
        return await asyncio.to_thread(
            lambda: subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        )


async def test_both_work_on_one_journal_and_the_older_one_does_not_start_again(tmp_path: Path) -> None:
    with PostgresServer.running() as postgres:
        versions = Versions(tmp_path, postgres.url)
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
