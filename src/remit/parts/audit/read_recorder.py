"""Records who reads what, in a stream of this process, before the answer leaves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from remit.journal.sharded.placement import new_identifier
from remit.parts.audit.kinds import OutputRead
from remit.parts.audit.settings import AuditSettings
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.http.reader import Read, Reader
    from remit.journal.journal import Journal
    from remit.service.parts import Parts

KIND: Final = "reads"
"""The kind of the streams."""


class ReadRecorder:
    """A stream, made with the first read; another one while the journal does not answer for it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stream = ""
        self._turn = asyncio.Lock()

    async def note(self, read: OutputRead) -> None:
        """Record it durably. Raise JournalError."""
        async with self._turn:
            if not self._stream or not await self._journal.answers(self._stream):
                self._stream = f"{KIND}/{await new_identifier('rds', KIND, self._journal.answers)}"
            await self._journal.post(self._stream, KIND, read)


def recorder_of(parts: Parts) -> ReadRecorder | None:
    """Return the recorder of a process; None if nothing is to be recorded."""
    settings = settings_of(parts.settings, "audit", AuditSettings)
    return ReadRecorder(parts.journal) if settings.reads != "off" else None


def open_reader(parts: Parts) -> Reader | None:
    """Return what is told of answers; None if nothing is to be recorded."""
    recorder = recorder_of(parts)
    whole = settings_of(parts.settings, "audit", AuditSettings).reads == "all"
    if recorder is None:
        return None

    async def reader(read: Read) -> None:
        if read.names or whole:
            await recorder.note(
                OutputRead(face=read.face, operation=read.operation, principal=read.principal, names=dict(read.names))
            )

    return reader
