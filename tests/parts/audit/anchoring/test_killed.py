"""A worker that is killed while it registers: the next one goes on, and ends the run with its own session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remit.journal.journal import Journal
from remit.journal.signing_key import make_key, private_keys
from remit.parts.audit.anchoring.client import ProvenLog
from remit.parts.audit.formats.keys import OperatorSigner
from tests.dates import DATE_ENV
from tests.opened import OpenRemit
from tests.parts.audit.anchoring.log import LOG, log_in
from tests.parts.audit.anchoring.test_registrar import World, think
from tests.patience import PATIENCE_S

SETTINGS = """
[journal]
url = "journal.db"

[audit]
key = "audit.pem"
anchor_url = "{url}"
anchor_key = "{key}"

[recorder]
origin = "log.example/agents"
key = "recorder.pem"
every_events = 1
"""


@contextmanager
def worker(folder: Path, last: signal.Signals) -> Iterator[None]:
    """A worker, ended by a signal."""
    env = {**DATE_ENV, "HOME": str(folder), "PATH": os.environ["PATH"], "REMIT_TRUST": "1"}
    with subprocess.Popen([sys.executable, "-m", "remit", "worker"], cwd=folder, env=env) as process:
        try:
            yield
            process.send_signal(last)
        except BaseException:
            process.kill()
            raise


async def grown(world: World, size: int) -> None:
    """Wait until the log has so many records."""
    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(lambda: world.client.register([], world.by, ProvenLog()).size) < size:
            await world.remit.clock.sleep(0.05)


async def begun(journal: Journal, session: int) -> None:
    """Wait until a session of the recorder is on record."""
    mark = 0
    async with asyncio.timeout(PATIENCE_S):
        while await journal.head(f"recorder/{session}") is None:
            mark = await journal.changed(mark)


@pytest.mark.slow
async def test_what_a_killed_worker_left_is_registered_by_the_next(remit_in: OpenRemit, tmp_path: Path) -> None:
    for name in ("audit", "recorder"):
        make_key(tmp_path / f"{name}.pem")
    by = OperatorSigner(private_keys((tmp_path / "audit.pem").read_bytes(), "key")[0])
    with log_in(tmp_path, by) as client:
        text = SETTINGS.format(url=client.url, key=LOG.key)
        (tmp_path / "remit.toml").write_text(text)
        async with remit_in(tools=[think], work=False) as remit:
            world = World(remit, tmp_path, client, by)
            session = await remit.service.sessions.open("mcp", principal="ann")
            with worker(tmp_path, signal.SIGKILL):
                await begun(remit.runtime.journal, 1)
                await world.call(session, "a")
                await grown(world, 1)
            await world.call(session, "a")  # nobody signs
            with worker(tmp_path, signal.SIGTERM):
                await begun(remit.runtime.journal, 2)
                await world.call(session, "a")
                await grown(world, 2)
            anchors, _ = await world.exported(session, "j")  # of the session that was killed, the run of events
    assert len(anchors["entries"]) == 3  # a checkpoint of each session, and the end of the second
