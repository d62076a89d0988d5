"""Folders of conversations: `projects/<conversation>/{inputs,work,artifacts/<run>}` (contract: tools, "Sandbox")."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from remit.parts.sandbox.artifacts import DEPTH
from remit.parts.sandbox.identity import UserIdentity, identity
from remit.parts.sandbox.leftovers import delete
from remit.regex import regex

_NAME: Final = regex(r"[A-Za-z0-9_-]{1,100}")
_LONGEST: Final = 255
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def take_place(fresh: Path, work: Path) -> None:
    """Have the empty folder `fresh` hold what `work` does, and be it. Raises OSError.

    A process that dies in the middle leaves it to `recover`.
    """
    beside = _beside(work)
    fresh.rename(beside)
    for name in os.listdir(work):
        (work / name).rename(beside / name)
    beside.rename(work)  # a folder that is empty gives way


def recover(work: Path) -> None:
    """Undo a `take_place` that did not end. Raises OSError."""
    beside = _beside(work)
    with suppress(FileNotFoundError):
        for name in os.listdir(beside):
            (beside / name).rename(work / name)
        beside.rmdir()


def _beside(work: Path) -> Path:
    return work.with_name("work.new")


def empty(folder: Path) -> None:
    """Delete everything in a folder whose program is dead."""
    for name in os.listdir(folder):
        place = folder / name
        if place.is_dir() and not place.is_symlink():
            delete(place)
        else:
            place.unlink()


class Workspace:
    """The folders of one conversation; no other's program ever sees them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.inputs = folder / "inputs"
        self.artifacts = folder / "artifacts"
        self.state = folder / "state"
        """The folder that a program never sees: snapshots."""

    def make(self) -> None:
        """Make the folders that are missing. Raises OSError."""
        who = identity()
        who.make(self.folder)
        for place, mode in ((self.work, 0o700), (self.inputs, 0o755), (self.artifacts, 0o700), (self.state, 0o700)):
            if not place.exists():
                place.mkdir(mode)
        if self.work.stat().st_uid != (who.uid or os.getuid()):
            who.own(self.work)

    @property
    def conversation(self) -> str:
        """The stream whose calls use it, as far as it names the folder; empty if an older Remit made the folder."""
        try:
            return (self.state / "conversation").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    @property
    def used_ns(self) -> int:
        """Return when it was last used."""
        return max(place.stat().st_mtime_ns for place in (self.work, self.state, self.inputs))

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold it against every other process, within the block; False if another holds it, or it is gone."""
        file = self.state / "lock"
        try:
            fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # deleted after it was found
            yield False
            return
        try:
            yield _flocked(fd) and _is(fd, file)
        finally:
            os.close(fd)

    def put(self, path: str, data: bytes, *, inputs: bool) -> None:
        """Write a file below `work` or `inputs`, with the folders above it. Raises OSError or ValueError.

        A program may have put links into `work`: none is followed.
        """
        parts = _parts(path)
        top = self.inputs if inputs else self.work
        fd = os.open(top, _FOLDER)
        try:
            for name in parts[:-1]:
                above, fd = fd, _entered(fd, name, _owner(inputs=inputs))
                os.close(above)
            _written(fd, parts[-1], data, _owner(inputs=inputs))
        finally:
            os.close(fd)


class Workspaces:
    """All conversations below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, conversation: str) -> Workspace:
        """The workspace of a conversation: of a job or session."""
        parts = conversation.split("/")[:2]
        name = "_".join(parts)
        if not _NAME.fullmatch(name):
            name = hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        workspace = Workspace(self.folder / "projects" / name)
        workspace.make()
        if not workspace.conversation:
            (workspace.state / "conversation").write_text("/".join(parts), encoding="utf-8", errors="replace")
        return workspace

    def all(self) -> list[Workspace]:
        """Every workspace that is there, the one that was used last first."""
        try:
            folders = [place for place in (self.folder / "projects").iterdir() if (place / "state").is_dir()]
        except FileNotFoundError:
            return []
        return sorted(map(Workspace, folders), key=lambda workspace: -workspace.used_ns)


def _flocked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is(fd: int, file: Path) -> bool:
    """Return whether a file that is open is still the one of that name."""
    try:
        now = file.stat()
    except FileNotFoundError:
        return False
    return os.fstat(fd).st_ino == now.st_ino


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not path or any(part in {"", ".", ".."} or "\0" in part or len(part.encode()) > _LONGEST for part in parts):
        raise ValueError(f"{path!r} is not a plain relative path")
    if len(parts) > DEPTH:
        raise ValueError(f"{path!r} is more than {DEPTH} folders deep")
    return parts


def _owner(*, inputs: bool) -> UserIdentity:
    return UserIdentity() if inputs else identity()


def _entered(fd: int, name: str, owner: UserIdentity) -> int:
    """The folder `name` below `fd`, made if it is missing. Raises OSError for a link or a file."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=fd)
        if owner.uid is not None:
            os.chown(name, owner.uid, owner.gid or 0, dir_fd=fd, follow_symlinks=False)
    return os.open(name, _FOLDER, dir_fd=fd)


def _written(fd: int, name: str, data: bytes, owner: UserIdentity) -> None:
    fresh = f".remit-{os.getpid()}"
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=fd)
    with open(file, "wb") as stream:
        stream.write(data)
        if owner.uid is not None:
            os.fchown(stream.fileno(), owner.uid, owner.gid or 0)
    os.rename(fresh, name, src_dir_fd=fd, dst_dir_fd=fd)
