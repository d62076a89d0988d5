"""Finding remit.toml and reading it.

The folder that relative paths in settings are relative to, and a raw setting of a part.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.errors import SettingsError
from remit.regex import regex

FILE_NAME: Final = "remit.toml"
MAX_BYTES: Final = 1024 * 1024
"""A larger file is no settings file."""

_PARTS: Final = 32
"""Parts of a dotted key: the time that its reading takes grows with their square."""
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY: Final = regex(rf"(?:^|(?<=[\[{{,\n]))[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_PARTS}}}")
_PLACE: Final = regex(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)


class SettingsFile(msgspec.Struct, frozen=True):
    """A remit.toml as a process has read it."""

    path: str = ""
    """Empty: it has read none."""
    digest: str = ""

    @classmethod
    def of(cls, file: Path | None) -> SettingsFile:
        """The file as it is now."""
        return cls() if file is None else cls(str(file), _digest(file))

    @property
    def differs(self) -> bool:
        """Return whether it says something else by now, or is gone."""
        return bool(self.path) and _digest(Path(self.path)) != self.digest


NO_FILE: Final = SettingsFile()
"""Of a process that has read none."""


def _digest(file: Path) -> str:
    try:
        return sha256(read_plain(file, MAX_BYTES + 1))
    except OSError:
        return ""


def find(folder: Path, home: Path | None) -> Path | None:
    """The remit.toml of the nearest folder from this one up to home or the root.

    Raises SettingsError where one found further up belongs to someone else: it could name modules to import, and
    folders such as /tmp are open to all.
    """
    for candidate in (folder, *folder.parents):
        file = candidate / FILE_NAME
        try:
            owner = file.lstat().st_uid
        except OSError:
            owner = None
        if owner is not None:
            if candidate != folder and owner not in {0, os.getuid()}:
                raise SettingsError(
                    f"{file} belongs to another user (uid {owner})",
                    remedy=f"Set REMIT_CONFIG={file} to use it anyway, or create a {FILE_NAME} in {folder}.",
                )
            return file
        if candidate == home:
            break
    return None


def read(file: Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises SettingsError with file, line and column."""
    text = text_of(file).removeprefix("\ufeff")  # as editors of Windows begin files
    if long := _LONG_KEY.search(text):
        place = ":".join(map(str, _end(text[: long.start()])))
        raise SettingsError(f"{file}:{place}: a key has more than {_PARTS} parts", remedy="Correct the TOML there.")
    import tomllib  # noqa: PLC0415 - 5 ms that a start without a file does without

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        known = _PLACE.fullmatch(str(exc))
        message, line, column = known.groups() if known else (str(exc), *_end(text))
        raise SettingsError(f"{file}:{line}:{column}: {message}", remedy="Correct the TOML there.") from exc
    except (RecursionError, ValueError) as exc:
        raise SettingsError(
            f"{file}: the TOML is nested too deeply or contains too long a number", remedy="Name a settings file."
        ) from exc


def text_of(file: Path, max_bytes: int = MAX_BYTES, what: str = "settings file") -> str:
    """The text of a file. Raises SettingsError with file, line and column."""
    try:
        data = read_plain(file, max_bytes + 1)
    except OSError as exc:
        raise SettingsError(
            f"{file}: cannot be read: {exc.strerror}", remedy="Name a file that exists and is readable."
        ) from exc
    if len(data) > max_bytes:
        raise SettingsError(f"{file}: is larger than {max_bytes} bytes", remedy=f"Name a {what}.")
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        line, column = _end(data[: exc.start].decode())
        raise SettingsError(f"{file}:{line}:{column}: is not UTF-8", remedy="Save the file as UTF-8.") from exc


def read_plain(file: Path, most: int) -> bytes:
    """At most so many bytes of a plain file. Raises OSError, also for a pipe or a device: it might never end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe has no writer to wait for
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(descriptor)


def _end(text: str) -> tuple[int, int]:
    """Line and column just after a text, both counted from 1."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


class Base(NamedTuple):
    """A folder, and the home of the user."""

    folder: Path
    home: Path | None
    """The folder that a leading `~` stands for."""

    def path(self, text: str) -> Path:
        """The absolute path, symbolic links followed. Raises OSError, RuntimeError or ValueError."""
        if self.home is not None and (text == "~" or text.startswith("~/")):
            return Path(self.home, text[2:]).resolve()
        return Path(self.folder, text).resolve()


class PartSetting(msgspec.Struct, frozen=True):
    """A setting of a part, as it was written."""

    key: str
    value: Any
    source: str
    base: Base
    is_text: bool
    """True if it comes from the environment, and has to be read as its type."""
