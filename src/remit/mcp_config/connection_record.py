"""The record of what was done to the files of MCP clients, for taking it back: one file for each of theirs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from remit.atomic import replace_file
from remit.errors import UsageError
from remit.mcp_config.connections import ClientFile, FileConnection, ServerChange

_DIGITS: Final = 32


class ConnectionRecord:
    """The changes that were made to one file, on disk."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._file = file
        self._place = folder / f"{hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:_DIGITS]}.json"

    def read(self) -> FileConnection | None:
        """Return what was done, or None. Raises UsageError."""
        try:
            return msgspec.json.decode(self._place.read_bytes(), type=FileConnection)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            remedy = f"Take what is Remit's out of {self._file} yourself, then remove {self._place}."
            raise UsageError(f"{self._place}: cannot be read: {error}", remedy=remedy) from error

    def keep(self, connection: FileConnection) -> None:
        """Keep what is about to be done; durable when this returns. Raises UsageError."""
        try:
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._place, msgspec.json.encode(connection))
        except OSError as error:
            raise UsageError(
                f"{self._place}: cannot be written: {error.strerror}", remedy="Make it writable."
            ) from error

    def forget(self) -> None:
        """Keep nothing of it any more."""
        self._place.unlink(missing_ok=True)


def digest_of(text: str) -> str:
    """Names a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def taken_back(connection: FileConnection, text: str) -> str | None:
    """The text of a file without what was done to it; None: there was no file. Raises SettingsError."""
    if connection.whole and digest_of(text) == connection.digest:
        return connection.original
    if text == (connection.original or ""):
        return connection.original  # it was never written
    file = ClientFile(text, connection.client, connection.file)
    for change in reversed(connection.changes):
        file = file.undone(change)
    return file.text


def put_together(
    earlier: FileConnection | None,
    file: Path,
    client: str,
    text: str | None,
    after: str,
    changes: tuple[ServerChange, ...],
) -> FileConnection:
    """Return what was done to a file in all, earlier and by `changes`, which make `after` of `text` (None: no file)."""
    now = FileConnection(str(file), client, digest_of(after), changes, text)
    if earlier is None or text is None:
        return now
    whole = earlier.whole and digest_of(text) == earlier.digest
    return msgspec.structs.replace(
        now, changes=(*earlier.changes, *changes), original=earlier.original if whole else text, whole=whole
    )
