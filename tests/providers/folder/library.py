"""A small library of files to search, and searches in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory
from remit.files.index.store import IndexFile
from remit.providers.folder.provider import FolderSearchProvider
from remit_testing.providers import call_context

OLD = 1_600_000_000_000_000_000

TASKS = '''"""Support for tasks."""


class Task:
    """A coroutine that runs beside others."""

    def cancel(self, msg=None):
        """Request that this task cancel itself.

        The coroutine then has a chance to clean up.
        """
        return self._cancel(msg)
'''


def write(folder: Path, name: str, content: str | bytes) -> None:
    """A file that was there for long, so that the index believes its modification time."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(OLD, OLD))


def provider(tmp_path: Path, **given: Any) -> FolderSearchProvider:
    return FolderSearchProvider(tmp_path / "index", **given)


async def search(tmp_path: Path, query: str, **more: Any) -> Any:
    args = {"folder": str(tmp_path / "library"), "query": query, **more}
    return (await provider(tmp_path).invoke("folder.search", args, call_context())).value


async def paths(tmp_path: Path, query: str) -> list[str]:
    return [item["path"] for item in (await search(tmp_path, query))["items"]]


async def refused(one: FolderSearchProvider, **args: Any) -> Code | None:
    with pytest.raises(ProviderError) as error:
        await one.invoke("folder.search", {"query": "x", **args}, call_context())
    return error.value.code


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def index_of(folder: Path) -> Path:
    """The index file that searches of this folder use."""
    return IndexFile(folder.parent / "index", folder.resolve()).path


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read from now on."""
    seen: list[str] = []
    original = ConfinedDirectory.read

    def noted(self: ConfinedDirectory, path: str, cap: int) -> Any:
        seen.append(path)
        return original(self, path, cap)

    monkeypatch.setattr(ConfinedDirectory, "read", noted)
    return seen
