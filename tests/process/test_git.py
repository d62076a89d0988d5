"""The one git: what it makes beside a repository goes with it, whatever ends its work."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from remit.process import git as module
from remit.process.git import git_on


async def test_a_git_that_is_cancelled_while_it_begins_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, rooms = tmp_path / "repository", tmp_path / "rooms"
    rooms.mkdir()
    (repository / ".git").mkdir(parents=True)
    (repository / ".git/HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.setattr(tempfile, "tempdir", str(rooms))
    begun, go_on, ended, look = threading.Event(), threading.Event(), threading.Event(), module.repository_at

    def slow(folder: Path) -> module.Repository:
        begun.set()
        go_on.wait()
        try:
            return look(folder)
        finally:
            ended.set()

    monkeypatch.setattr(module, "repository_at", slow)

    async def use() -> None:
        async with git_on(repository):
            raise AssertionError("it was cancelled before")

    task = asyncio.create_task(use())
    await asyncio.to_thread(begun.wait)
    task.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert list(rooms.iterdir()) == []
