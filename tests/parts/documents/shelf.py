"""A folder of documents, and calls of the document tools on it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.replacement import Roots
from remit.parts.documents.provider import DocProvider
from remit.parts.documents.settings import DocumentSettings
from remit_testing.providers import call_context

OLD = 1_600_000_000_000_000_000


class Shelf:
    """A folder, and a provider of it."""

    def __init__(self, folder: Path, provider: DocProvider) -> None:
        self.folder = folder
        self.provider = provider

    async def call(self, tool: str, **args: Any) -> Any:
        return (await self.provider.invoke(f"doc.{tool}", args, call_context())).value

    async def refused(self, tool: str, **args: Any) -> tuple[Code | None, str]:
        """The code and the words of a refusal."""
        with pytest.raises(ProviderError) as caught:
            await self.provider.invoke(f"doc.{tool}", args, call_context())
        return caught.value.code or caught.value.cause, str(caught.value)

    def put(self, name: str, content: bytes | str) -> None:
        """Put a file there that looks as if it were there for long, so that an index believes its time."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, ns=(OLD, OLD))


@asynccontextmanager
async def shelf(tmp_path: Path, **given: int) -> AsyncIterator[Shelf]:
    """A shelf below a temporary folder, with settings."""
    folder = tmp_path / "docs"
    folder.mkdir(exist_ok=True)
    provider = made(folder, tmp_path, **given)
    try:
        yield Shelf(folder, provider)
    finally:
        await provider.close()


def made(folder: Path, beside: Path, **given: int) -> DocProvider:
    """A provider of one folder."""
    settings = DocumentSettings(**{"seconds": 60, **given})
    return DocProvider(Roots([folder]), settings, index_dir=beside / "index", undo_dir=beside / "undo")
