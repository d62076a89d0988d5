"""Whether a project folder is trusted, and what there is to trust.

Where it is kept what someone trusted: a folder of the user's own, outside any project.

One file for each settings file and each journal, named by a digest of its path. An entry counts only if the file and
its folder belong to this user and no one else may write there.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import SettingsError
from remit.settings import Settings
from remit.settings.file import FILE_NAME
from remit.settings.loader import TRUST
from remit.settings.places import data_folder
from remit.trust.claims import SettingsClaim, acts_of, beside_in, claims


class TrustedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file that someone trusted."""

    file: str
    owner: int
    """The uid that it belonged to."""
    digests: dict[str, str]
    """SHA-256 of it and of what it names, by path."""
    edits: bool = False
    """Whether later contents are trusted too."""
    at: int
    """When, in microseconds since 1970."""


class TrustedJournal(msgspec.Struct, frozen=True, kw_only=True):
    """A journal that Remit made here, or that someone trusted."""

    journal: str
    device: int
    inode: int


T = TypeVar("T", TrustedFile, TrustedJournal)


class Register:
    """The trusted files, by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, path: Path) -> TrustedFile | None:
        """Return what is kept of a settings file."""
        file_read = self._read(self._place("file", path), TrustedFile)
        return file_read if file_read is not None and file_read.file == str(path) else None

    def journal(self, path: Path) -> TrustedJournal | None:
        """Return what is kept of a journal."""
        journal_read = self._read(self._place("journal", path), TrustedJournal)
        return journal_read if journal_read is not None and journal_read.journal == str(path) else None

    def files(self) -> list[TrustedFile]:
        """Every settings file that is trusted, by path."""
        files_read = [self._read(place, TrustedFile) for place in sorted(self.folder.glob("file-*.json"))]
        return sorted((file for file in files_read if file is not None), key=lambda file: file.file)

    def keep(self, entry: TrustedFile | TrustedJournal) -> None:
        """Keep an entry, in place of any other for the same path. Raises OSError."""
        kind, path = ("file", entry.file) if isinstance(entry, TrustedFile) else ("journal", entry.journal)
        place = self._place(kind, Path(path))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place, msgspec.json.encode(entry))

    def forget(self, path: Path) -> bool:
        """Drop what is kept of a settings file; whether there was something. Raises OSError."""
        place = self._place("file", path)
        there = place.exists()
        place.unlink(missing_ok=True)
        return there

    def _place(self, kind: str, path: Path) -> Path:
        return self.folder / f"{kind}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}.json"

    def _read(self, place: Path, form: type[T]) -> T | None:
        try:
            if not (_ours(self.folder) and _ours(place)):
                return None
            return msgspec.json.decode(place.read_bytes(), type=form)
        except (OSError, msgspec.DecodeError):
            return None


def _ours(path: Path) -> bool:
    status = path.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


_log: Final = logging.getLogger("remit.trust")


class FolderTrust(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder's settings would do, and whether someone agreed to it."""

    settings: Settings
    claims: tuple[SettingsClaim, ...]
    """The claims of the settings; empty: nothing that needs trust."""
    file: Path
    """The settings file, or the place where the folder's would be: the name under which trust is kept."""
    owner: int
    """The uid that it belongs to."""
    digests: dict[str, str]
    trusted_file: TrustedFile | None
    """The file that someone trusted before, whether it still holds or not."""
    journal: Path | None
    """The journal in the folder that Remit did not make here and that is not trusted."""

    @property
    def changed(self) -> list[str]:
        """The files that are not as they were when they were trusted."""
        if self.trusted_file is None or self.trusted_file.edits:
            return []
        names = sorted({*self.digests, *self.trusted_file.digests})
        return [name for name in names if self.digests.get(name) != self.trusted_file.digests.get(name)]

    @property
    def linked(self) -> bool:
        """Return whether the folder's own journal lies elsewhere, behind a link."""
        return any(claim.key == "journal.url" for claim in self.claims) and (
            self.settings.sources["journal.url"] == "default"
        )

    @property
    def keys(self) -> list[str]:
        """Return the settings, and the files beside theirs, that need trust."""
        return sorted({claim.key for claim in self.claims})

    @property
    def ignored(self) -> str:
        """Return a sentence for who goes on without what needs trust."""
        folder, names = self.settings.folder, ", ".join(self.keys)
        return f"{folder} is not trusted (`remit trust`), so these settings are ignored: {names}"

    @property
    def settings_trusted(self) -> bool:
        """Return whether the settings count."""
        if not self.claims:
            return True
        return self.trusted_file is not None and self.trusted_file.owner == self.owner and not self.changed

    @property
    def trusted(self) -> bool:
        """Return whether nothing is left to ask."""
        return self.settings_trusted and self.journal is None

    def unchanged(self, env: Mapping[str, str]) -> None:
        """Raise SettingsError if a file is not as it was when it was looked at: someone saw another one."""
        if self.claims and digests(self.settings, env) != self.digests:
            reason = f"{self.file} or a file beside it, or that it names, was changed while you looked at it"
            raise SettingsError(reason, code=Code.FOLDER_NOT_TRUSTED, remedy="Review it again.")


def standing(settings: Settings, register: Register, env: Mapping[str, str]) -> FolderTrust:
    """Return how a folder stands. With REMIT_TRUST=1 nothing is left to ask."""
    trusts_all = env.get(TRUST) == "1"
    claimed, file = () if trusts_all else claims(settings, env), kept_as(settings)
    return FolderTrust(
        settings=settings,
        claims=claimed,
        file=file,
        owner=next((path.stat().st_uid for path in (file, *beside_in(settings)) if path.exists()), os.getuid()),
        digests=digests(settings, env) if claimed else {},
        trusted_file=register.file(file),
        journal=None if trusts_all else _foreign_journal(settings, register),
    )


def trust(folder_trust: FolderTrust, register: Register, *, edits: bool, now: int) -> None:
    """Keep that someone agreed. Raises SettingsError if it cannot be kept."""
    try:
        if folder_trust.claims:
            register.keep(
                TrustedFile(
                    file=str(folder_trust.file),
                    owner=folder_trust.owner,
                    digests=folder_trust.digests,
                    edits=edits,
                    at=now,
                )
            )
        if folder_trust.journal is not None:
            _keep_journal(folder_trust.journal, register)
    except OSError as error:
        reason = f"{register.folder}: {error.strerror or error}"
        raise SettingsError(reason, remedy="Make that folder writable, or set REMIT_TRUST=1.") from error


def require_trusted(settings: Settings, name: str, data: bytes, env: Mapping[str, str]) -> None:
    """Look at what was just read of another settings file of the folder, by its name.

    Raise SettingsError (FOLDER_NOT_TRUSTED) for acts that are not trusted, unless the whole folder is.
    """
    if not settings.guarded or env.get(TRUST) == "1":
        return
    path = settings.folder / name
    file = Register(data_folder(env) / "trust").file(kept_as(settings))
    trusted = file is not None and (file.edits or file.digests.get(str(path)) == hashlib.sha256(data).hexdigest())
    if not trusted and any(acts_of(name, data)):
        raise SettingsError(f"{path} is not trusted as it is now", code=Code.FOLDER_NOT_TRUSTED, remedy=_LOOK)


def kept_as(settings: Settings) -> Path:
    """Return the name under which trust is kept: the settings file, or the place where the folder's would be."""
    return settings.file or settings.folder / FILE_NAME


def missing_journal(settings: Settings, env: Mapping[str, str]) -> Path | None:
    """The folder's own journal if it is not there yet, so that no matter who makes it can say `made_here`."""
    path = own_journal(settings) if env.get(TRUST) != "1" else None
    return path if path is not None and not path.exists() else None


def made_here(path: Path, register: Register) -> None:
    """Record that Remit made this journal here, so that there is no question about it."""
    try:
        _keep_journal(path, register)
    except OSError as error:
        _log.warning("%s: %s; you will be asked about this journal", register.folder, error.strerror or error)


def own_journal(settings: Settings) -> Path | None:
    """The journal that the folder or its settings choose; None for one that the person named, or on a server."""
    chosen = settings.sources["journal.url"] in {"default", str(settings.file)}
    return settings.journal.file if chosen else None


_LOOK: Final = (
    "Review it with `remit trust` (with `--edits`, later edits are trusted too), "
    "or set REMIT_TRUST=1 if this folder is your own."
)


def untrusted(folder_trust: FolderTrust, remedy: str = _LOOK) -> SettingsError:
    """The refusal of what would use an untrusted folder."""
    place = (
        (folder_trust.settings.file or folder_trust.settings.folder)
        if not folder_trust.settings_trusted
        else folder_trust.journal
    )
    if folder_trust.changed:
        names = ", ".join(Path(name).name for name in folder_trust.changed)
        reason = f"{place} was trusted, and has changed since: {names}"
    elif folder_trust.settings_trusted:
        reason = (
            f"{place} is not trusted: it came with the folder, which may have moved, or was created under {TRUST}=1"
        )
    else:
        reason = f"{place} is not trusted: it would run code or loosen what is allowed"
    return SettingsError(reason, code=Code.FOLDER_NOT_TRUSTED, remedy=remedy)


def _foreign_journal(settings: Settings, register: Register) -> Path | None:
    path = own_journal(settings)
    if path is None or not path.exists():
        return None
    recorded, now = register.journal(path), path.stat()
    return None if recorded is not None and (recorded.device, recorded.inode) == (now.st_dev, now.st_ino) else path


def _keep_journal(path: Path, register: Register) -> None:
    now = path.stat()
    register.keep(TrustedJournal(journal=str(path), device=now.st_dev, inode=now.st_ino))


def digests(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the settings files, of the modules they name and of the files that servers' commands name, by path.

    A file that is not there has an empty digest.
    """
    named = [*beside_in(settings)]
    if settings.file is not None:
        named += [settings.file, *_modules(settings), *_programs(settings, env)]
    return {str(path): _digest(path) for path in dict.fromkeys(named)}


def _modules(settings: Settings) -> Iterator[Path]:
    if settings.sources["app.modules"] != str(settings.file):
        return
    for name in settings.app.modules:
        if name.endswith(".py"):
            yield Path(name)
        else:
            place = settings.folder.joinpath(*name.split("."))
            yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def _programs(settings: Settings, env: Mapping[str, str]) -> Iterator[Path]:
    from remit.settings.mcp_servers import configured_servers  # noqa: PLC0415 - every look at a folder would pay for it

    try:
        servers = configured_servers(settings, env)
    except SettingsError:
        return
    for server in servers.enabled:
        for word in server.command:
            path = Path(server.cwd, word)
            try:
                is_file = path.is_file()
            except (OSError, ValueError):  # too long for a name, or not one
                is_file = False
            if is_file and path.resolve().is_relative_to(settings.folder):
                yield path.resolve()


def _digest(path: Path) -> str:
    if not path.is_file():  # a pipe would never end
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
