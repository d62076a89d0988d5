"""What was run on a workspace last, and what the workspace was before: what makes it safe to run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from remit.sandbox.snapshots import Snapshot, SnapshotLostError, Snapshots
from remit.sandbox.workspaces import Workspace

_KEPT: Final = 8
"""Runs of a conversation that can be undone: as many may be side by side and unrecorded when a process dies."""


class _Before(msgspec.Struct, frozen=True):
    key: str
    snapshot: Snapshot


class RunHistory:
    """The runs of one workspace; its caller holds the workspace's lock."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file: Path = workspace.state / "history.json"
        self.snapshots = Snapshots(workspace.state / "objects")

    def begin(self, key: str, now_ns: int) -> tuple[Snapshot, bool]:
        """The workspace as the run finds it, kept so that it can be restored.

        A run with the key of an earlier one is that run again: its end was not recorded. The workspace is then restored
        first, and the second value is True. Raises OSError, TooManyError or SnapshotLostError.
        """
        known = self._read()
        for index, before in enumerate(known):
            if before.key == key:
                self.snapshots.restore(before.snapshot, self._workspace.work)
                self._write(known[: index + 1])
                return before.snapshot, True
        snapshot = self.snapshots.take(self._workspace.work, now_ns, keep=True)
        known = [*known, _Before(key, snapshot)][-_KEPT:]
        self._write(known)
        self.snapshots.forget_all_but(before.snapshot for before in known)
        return snapshot, False

    def end(self, now_ns: int) -> Snapshot:
        """The workspace as the run left it. Raises OSError or TooManyError."""
        return self.snapshots.take(self._workspace.work, now_ns, keep=False)

    def undo(self, before: Snapshot) -> None:
        """Make the workspace what it was before the run. Raises SnapshotLostError or OSError."""
        self.snapshots.restore(before, self._workspace.work)

    def _read(self) -> list[_Before]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[_Before])
        except FileNotFoundError:
            return []
        except msgspec.DecodeError as error:
            raise SnapshotLostError(f"{self._file} cannot be read: {error}") from error

    def _write(self, known: list[_Before]) -> None:
        fresh = self._file.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(known))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._file)
