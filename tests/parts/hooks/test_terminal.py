"""Claude in a terminal asks in its own dialog; what is answered first counts, there or elsewhere."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import tempfile
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from remit_testing.models import ModelServer
from tests.parts.hooks.agents import LIMIT_S, Home, env_of, real, script_of

pytestmark = [pytest.mark.slow, real, pytest.mark.timeout(300)]
_SIGHT: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
"""Words for the terminal itself."""


class Terminal:
    """A terminal in which an agent runs."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self._seen = b""
        self._came = asyncio.Event()
        asyncio.get_running_loop().add_reader(ours, self._read)

    def _read(self) -> None:
        with suppress(OSError):
            self._seen += os.read(self._ours, 65_536)
        self._came.set()

    @property
    def text(self) -> str:
        """Return what it shows, without spaces."""
        return re.sub(r"\s", "", _SIGHT.sub(b"", self._seen).decode("utf-8", "replace"))

    async def until(self, words: str) -> None:
        """Wait until it shows words."""
        async with asyncio.timeout(LIMIT_S):
            while words.replace(" ", "") not in self.text:
                self._came.clear()
                await self._came.wait()

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._ours, keys)


@asynccontextmanager
async def claude(home: Home) -> AsyncIterator[Terminal]:
    key, project = "k" * 20, {str(home.repository): {"hasTrustDialogAccepted": True}}
    settings = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [key]}, "projects": project}
    (home.home / ".claude.json").write_text(json.dumps(settings))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, 150, 0, 0))
    async with ModelServer(script_of("claude", ["./git push"])).listening() as server:
        env = {**home.env, **env_of("claude", server.url), "ANTHROPIC_API_KEY": key, "TERM": "xterm-256color"}
        process = await asyncio.create_subprocess_exec(
            "claude", "go", cwd=home.repository, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        try:
            yield Terminal(ours)
        finally:
            asyncio.get_running_loop().remove_reader(ours)
            process.kill()
            await process.wait()
            os.close(ours)


@pytest.mark.parametrize("where", ["dialog", "elsewhere"])
async def test_the_first_answer_counts(where: str) -> None:
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as place:
        home = Home(Path(place))
        (home.repository / "git").write_text("#!/bin/sh\necho pushed >> pushed.txt\n")
        (home.repository / "git").chmod(0o755)
        await home.connect("claude")
        async with claude(home) as terminal:
            await terminal.until("Remit's rules ask a person")
            _, waiting = await home.remit("api", "confirmations.pending")
            [question] = set(re.findall(r"c_[a-z0-9]{26}", waiting))
            if where == "dialog":
                terminal.press(b"\r")
            else:
                status, said = await home.remit("confirm", question, "--approve")
                assert status == 0, said
            await terminal.until("All is done")
        assert (home.repository / "pushed.txt").read_text() == "pushed\n"
        _, told = await home.remit("api", "confirmations.view", f"confirmation={question}")
        assert ("the dialog of claude" in told) == (where == "dialog"), told
        _, told = await home.remit("verify")
        assert "1 end of calls stand as their clients reported them" in told
        home.kill()
