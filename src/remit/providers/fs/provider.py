"""The provider of the fs tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from remit.blocking import Stop, Threads
from remit.capability import Check, Look, Opening
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.replacing import Roots
from remit.providers.fs.reading import Hidden, Reading
from remit.providers.fs.shapes import (
    EditArgs,
    EditResult,
    ListArgs,
    ListResult,
    ReadArgs,
    ReadResult,
    SearchArgs,
    SearchResult,
    WriteArgs,
    WriteResult,
)
from remit.providers.fs.writing import Writing
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

A = TypeVar("A", bound=msgspec.Struct)

_PROVIDER: Final = "builtin"


_tool: Final = partial(declare, provider=_PROVIDER)


TOOLS: Final = (
    _tool("fs.list", "List what a folder holds.", ListArgs, ListResult),
    _tool("fs.read", "Read a text file.", ReadArgs, ReadResult),
    _tool("fs.search", "Find lines in the text files of a folder.", SearchArgs, SearchResult),
    _tool(
        "fs.write",
        "Write a text file, in place of the one that is there, if any. To change part of a file use fs.edit.",
        WriteArgs,
        WriteResult,
        writes=True,
        output_trusted=True,  # it says nothing of what a file held
    ),
    _tool(
        "fs.edit",
        "Change parts of a text file: each edit replaces text that occurs exactly once. All edits are made, or none.",
        EditArgs,
        EditResult,
        writes=True,
        idempotent=False,  # what an edit leaves may well match it again
    ),
)


class FsProvider(Toolset):
    """Reads and writes files below its roots; no path leads out of them, whatever is put on the disk meanwhile."""

    def __init__(
        self,
        roots: Sequence[Path],
        max_read_bytes: int = 2_000_000,
        *,
        decisive: Sequence[Path] = (),
        private: Sequence[Path] = (),
        threads: Threads | None = None,
    ) -> None:
        """Open `roots` to agents; with several, a path begins with the name of its root.

        Files and folders in `decisive` decide what agents may do, or are run by Remit: no tool changes them. What
        is in `private` no tool reads either.
        """
        super().__init__(_PROVIDER, TOOLS)
        found = Roots(roots, decisive, private)
        self._threads = threads or Threads()
        self._reading = Reading(found, max_read_bytes)
        self._writing = Writing(found, max_read_bytes)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require(name)
        work = self._work(name, args, ctx)
        return ToolResult(msgspec.to_builtins(await self._threads.stoppable(work)))

    async def reconcile(
        self,
        name: str,
        args: dict[str, Any],
        ctx: CallContext,  # noqa: ARG002 - the port's; a file says more than who asked
    ) -> ToolResult | None:
        """Compare the file with what the call was to leave. Raises ProviderError where that does not settle it."""
        self._require_open()
        found: WriteResult | EditResult | None
        if name == "fs.write":
            write = arguments(WriteArgs, args)
            found = await self._threads.stoppable(lambda _: self._writing.find_written(write))
        elif name == "fs.edit":
            edit = arguments(EditArgs, args)
            found = await self._threads.stoppable(lambda _: self._writing.find_edited(edit))
        else:
            raise ProviderError(f"{name!r} is not a tool that writes.", cause=Code.ToolNotFound)
        return None if found is None else ToolResult(msgspec.to_builtins(found))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Compare the file with what a write or an edit would leave. Raises ProviderError."""
        self._require_open()
        if name == "fs.write":
            write = arguments(WriteArgs, args)
            return await self._threads.stoppable(lambda _: self._writing.preview_write(write))
        if name == "fs.edit":
            edit = arguments(EditArgs, args)
            return await self._threads.stoppable(lambda _: self._writing.preview_edit(edit))
        return None

    def slots(self, name: str) -> asyncio.Semaphore:  # noqa: ARG002 - all of them read or write
        return self._threads.slots

    def _work(self, name: str, args: dict[str, Any], ctx: CallContext) -> Callable[[Stop], msgspec.Struct]:
        reading, writing, key = self._reading, self._writing, ctx.idempotency_key
        match name:
            case "fs.list":
                return _looker(reading.list, arguments(ListArgs, args), ctx.hidden)
            case "fs.read":
                return _reader(reading.read, arguments(ReadArgs, args))
            case "fs.search":
                return _looker(reading.search, arguments(SearchArgs, args), ctx.hidden)
            case "fs.write":
                return _writer(writing.write, arguments(WriteArgs, args), key)
            case _:  # fs.edit
                return _writer(writing.edit, arguments(EditArgs, args), key)


def _reader(tool: Callable[[A, Stop], msgspec.Struct], asked: A) -> Callable[[Stop], msgspec.Struct]:
    return lambda stop: tool(asked, stop)


def _looker(
    tool: Callable[[A, Stop, Hidden | None], msgspec.Struct], asked: A, hidden: Hidden | None
) -> Callable[[Stop], msgspec.Struct]:
    return lambda stop: tool(asked, stop, hidden)


def _writer(tool: Callable[[A, str, Stop], msgspec.Struct], asked: A, key: str) -> Callable[[Stop], msgspec.Struct]:
    return lambda stop: tool(asked, key, stop)


def open_files(opening: Opening) -> tuple[FsProvider]:
    """The provider of the folders that the settings open."""
    given = opening.settings.fs
    return (
        FsProvider(
            [Path(root) for root in given.roots],
            given.max_read_bytes,
            decisive=opening.decisive,
            private=opening.private,
            threads=opening.threads,
        ),
    )


async def check_folders(look: Look) -> list[Check]:
    """Return whether each root is there, for `remit doctor`."""
    return [_check(root) for root in look.settings.fs.roots]


def _check(root: str) -> Check:
    if not Path(root).is_dir():
        return Check("folder", "fail", f"{root} is not a folder", "Correct fs.roots.")
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", "fail", f"{root} cannot be read", "Give yourself read access, or correct fs.roots.")
    return Check("folder", "ok", root if os.access(root, os.W_OK) else f"{root} (cannot be written to)")
