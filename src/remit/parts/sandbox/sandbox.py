"""The sandbox as its callers see it: a policy, one driver, and a workspace for each conversation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.clock import SystemClock
from remit.ids import new_id
from remit.parts.sandbox.artifacts import Collected, SnapshotLostError, TooManyError, collect, shown
from remit.parts.sandbox.commands import Finder
from remit.parts.sandbox.driver import Driver, ProbeReport
from remit.parts.sandbox.policy import SandboxPolicy, merged, narrowed, terms_of
from remit.parts.sandbox.shapes import ChangedFile
from remit.parts.sandbox.snapshots import Snapshots, WorkspaceSnapshot, name_of
from remit.parts.sandbox.workspaces import Workspace, Workspaces, recover
from remit.process.enclosure import INPUTS, FolderMount, Listener, ProgramRun, SandboxUnavailableError, Spec, quiet

_LISTED: Final = 100
_CACHES: Final = {"XDG_CACHE_HOME": "/tmp/cache", "MPLCONFIGDIR": "/tmp/matplotlib"}  # noqa: S108 - the sandbox's own
"""Caches: files that programs keep for the next time would otherwise be artifacts."""
_BUSY_S: Final = 0.01
"""Between two looks at a workspace that is in use."""


class SandboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a caller wants."""

    conversation: str
    key: str
    """The same for every attempt at the same run."""
    command: Sequence[str]
    """The name of an allowed command, and its arguments."""
    stdin: bytes = b""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    skills: tuple[Mapping[str, Any], ...] = ()
    """Layers of the skills of the caller."""
    layers: tuple[Mapping[str, Any], ...] = ()
    """Layers of the call, that make this stricter."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what it did to its workspace."""

    execution: ProgramRun
    before: str
    """Digest of the workspace as the run found it."""
    after: str
    files: tuple[ChangedFile, ...]
    more_files: int
    restored: bool
    """Whether an earlier attempt did not end: the workspace was first made what it was before that."""


class Sandbox:
    """Runs commands for conversations."""

    def __init__(self, driver: Driver, policy: SandboxPolicy, commands: Finder, workspaces: Workspaces) -> None:
        self.driver = driver
        self.policy = policy
        self._commands = commands
        self._workspaces = workspaces
        self._clock = SystemClock()
        self._histories: dict[Path, RunHistory] = {}
        self._report: ProbeReport | None = None

    async def probe(self) -> ProbeReport:
        """Return what the driver can do here."""
        if self._report is None:
            self._report = await self.driver.probe()
        return self._report

    async def require(self, policy: SandboxPolicy) -> ProbeReport:
        """Give what the driver can do here. Raises SandboxUnavailableError if that is less than the policy demands."""
        probe = await self.probe()
        if not probe.usable:
            raise SandboxUnavailableError(f"{probe.driver}: {'; '.join(probe.reasons)}", probe.remedy)
        if probe.level < policy.min_isolation:
            raise SandboxUnavailableError(
                f"{probe.driver} provides {probe.level.name} isolation, but {policy.min_isolation.name} is required",
                "Choose another sandbox.driver; `remit sandbox probe` shows what each can do here.",
            )
        return probe

    async def run(self, request: SandboxRequest, listener: Listener = quiet) -> Ran:
        """Run a command to its end.

        Raises LooserError, CommandMissingError, SandboxUnavailableError, OSError, TooManyError or SnapshotLostError.
        """
        name, *rest = request.command
        policy = terms_of(self.policy, name, request.skills, request.layers)
        command = self._commands.find(name)
        await self.require(policy)
        async with self._held(request.conversation) as workspace:
            spec = Spec(
                id=new_id("run"),
                argv=(command.program, *rest),
                workspace=workspace.work,
                env={**_CACHES, **command.env, **request.env},
                stdin=request.stdin,
                mounts=(*command.mounts, FolderMount(workspace.inputs, INPUTS)),
                limits=policy.limits,
                network=policy.network,
            )
            return await self._run(spec, workspace, request.key, listener)

    async def write(self, conversation: str, files: Sequence[tuple[str, bytes]], *, inputs: bool = False) -> None:
        """Put files into a conversation's workspace, or beside it where its programs only read.

        Raises OSError or ValueError.
        """
        async with self._held(conversation) as workspace:
            for path, data in files:
                workspace.put(path, data, inputs=inputs)

    async def collect(
        self,
        conversation: str,
        patterns: tuple[str, ...],
        *layers: Mapping[str, Any],
        skills: Sequence[Mapping[str, Any]] = (),
    ) -> Collected:
        """Return what lies in a conversation's workspace. Raises LooserError or OSError."""
        limits = merged(narrowed(self.policy, skills), *layers).limits
        async with self._held(conversation) as workspace:
            return await asyncio.to_thread(collect, workspace.work, limits, patterns)

    # --- one run

    async def _run(self, spec: Spec, workspace: Workspace, key: str, listener: Listener) -> Ran:
        history = self._histories.setdefault(workspace.folder, RunHistory(workspace))
        before, restored = await asyncio.to_thread(history.begin, key, _now(workspace))
        execution = await self.driver.exec(spec, listener)
        try:
            after = await asyncio.to_thread(history.end, _now(workspace))
        except TooManyError:  # nothing could run on it any more
            await asyncio.to_thread(history.undo, before)
            after, execution = before, _full(execution)
        files = _changes(before, after)
        return Ran(
            execution=execution,
            before=before.digest,
            after=after.digest,
            files=tuple(files[:_LISTED]),
            more_files=max(0, len(files) - _LISTED),
            restored=restored,
        )

    @asynccontextmanager
    async def _held(self, conversation: str) -> AsyncIterator[Workspace]:
        """The conversation's workspace, for us alone among all processes: one run at a time changes it."""
        while True:
            workspace = self._workspaces.of(conversation)
            with workspace.locked() as ours:
                if ours:
                    recover(workspace.work)
                    yield workspace
                    return
            await self._clock.sleep(_BUSY_S)  # nothing tells of a lock that was freed


def _now(workspace: Workspace) -> int:
    """The time of the file system's clock, by which files are stamped."""
    stamp = workspace.state / "now"
    stamp.touch()
    return stamp.stat().st_mtime_ns


def _full(execution: ProgramRun) -> ProgramRun:
    """A run that left more files than can be kept."""
    return msgspec.structs.replace(execution, status="FAILED", limit=execution.limit or "workspace_files")


def _changes(before: WorkspaceSnapshot, after: WorkspaceSnapshot) -> list[ChangedFile]:
    """All but folders; a link, a pipe or the like has no bytes."""
    changed = []
    for path, now in after.entries.items():
        was = before.entries.get(path)
        if now.kind != "folder" and (was is None or (was.sha256, was.target) != (now.sha256, now.target)):
            changed.append(ChangedFile(path, "created" if was is None else "changed", now.size))
    known, there = {*before.entries, *before.unkept}, {*after.entries, *after.unkept}
    changed += [
        ChangedFile(path, "changed" if path in before.entries else "created", 0)
        for path in after.unkept
        if path not in before.unkept
    ]
    gone = [path for path in sorted(known - there) if path in before.unkept or before.entries[path].kind != "folder"]
    changed += [ChangedFile(path, "deleted", 0) for path in gone]
    return [msgspec.structs.replace(change, path=shown(name_of(change.path))) for change in changed]


_KEPT: Final = 8
"""Runs of a conversation that can be undone: as many may be side by side and unrecorded when a process dies."""


class _Before(msgspec.Struct, frozen=True):
    key: str
    snapshot: WorkspaceSnapshot


class RunHistory:
    """The runs of one workspace; its caller holds the workspace's lock."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file: Path = workspace.state / "history.json"
        self.snapshots = Snapshots(workspace.state / "objects")

    def begin(self, key: str, now_ns: int) -> tuple[WorkspaceSnapshot, bool]:
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

    def end(self, now_ns: int) -> WorkspaceSnapshot:
        """The workspace as the run left it. Raises OSError or TooManyError."""
        return self.snapshots.take(self._workspace.work, now_ns, keep=False)

    def undo(self, before: WorkspaceSnapshot) -> None:
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
