"""From what was written to a value: text to its type, the check against it, relative paths to absolute ones."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from remit.errors import SettingsError
from remit.settings.shown import PICTURES
from remit.settings.table import Setting, type_text

_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_SEPARATORS: Final = {"app.modules": os.pathsep}
"""Between the items of a list in text; a comma where nothing else is named here."""
_SQLITE: Final = "sqlite:///"
_MEMORY: Final = ":memory:"
SERVERS: Final = frozenset({"postgresql", "postgres"})
"""Schemes of journals on a server."""
_SHOWN: Final = 80


class Base(NamedTuple):
    """What relative paths are relative to."""

    folder: Path
    home: Path | None
    """What a leading `~` stands for."""

    def path(self, text: str) -> Path:
        """The absolute path, symbolic links followed. Raises OSError, RuntimeError or ValueError."""
        if self.home is not None and (text == "~" or text.startswith("~/")):
            return Path(self.home, text[2:]).resolve()
        return Path(self.folder, text).resolve()


class Given(NamedTuple):
    """A value somebody gave."""

    value: Any
    source: str
    base: Base


def checked(setting: Setting, value: Any, source: str) -> Any:
    """The value as the setting's type. Raises SettingsError that names the key and where the value came from."""
    try:
        return msgspec.convert(value, setting.hint)
    except msgspec.ValidationError as exc:
        raise SettingsError(
            f"{source}: {setting.key} {_said(setting, value)}must be {type_text(setting.hint)}",
            remedy=f"Correct {setting.key} or leave it out; its default is {setting.default_text}.",
        ) from exc


def _said(setting: Setting, value: Any) -> str:
    """What was given, where it is no secret."""
    if setting.key in PICTURES:
        return ""
    text = repr(value)
    return f"is {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}, but it "


def from_text(setting: Setting, text: str, source: str) -> Any:
    """The value that a text from the environment or the command line stands for. Raises SettingsError."""
    if not _is_utf8(text):
        raise SettingsError(f"{source}: {setting.key} is not UTF-8", remedy="Write it in UTF-8.")
    return checked(setting, _parsed(setting, text), source)


def _is_utf8(text: str) -> bool:
    """Whether the bytes behind a text were UTF-8: Python reads others as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parsed(setting: Setting, text: str) -> Any:
    """What a text stands for; the text itself where it is nothing of the setting's type."""
    if setting.kind is bool:
        return _TRUTH.get(text.strip().lower(), text)
    if setting.kind is int:
        return _integer(text)
    if setting.kind is tuple:
        return _items(text, _SEPARATORS.get(setting.key, ","))
    return text


def _integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _items(text: str, separator: str) -> Any:
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    return [item.strip() for item in text.split(separator) if item.strip()]


def resolved(key: str, given: Given) -> Any:
    """The value with its paths made absolute and an empty default filled in. Raises SettingsError."""
    resolve = _RESOLVERS.get(key)
    if resolve is None:
        return given.value
    try:
        return resolve(given.value, given.base)
    except (OSError, RuntimeError, ValueError) as exc:
        raise SettingsError(f"{given.source}: {key} holds no usable path: {exc}", remedy=f"Correct {key}.") from exc


def _roots(roots: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(root)) for root in roots)


def _modules(modules: tuple[str, ...], base: Base) -> tuple[str, ...]:
    return tuple(str(base.path(name)) if name.endswith(".py") or os.sep in name else name for name in modules)


def _journal(url: str, base: Base) -> str:
    path = url.removeprefix(_SQLITE)
    if path == _MEMORY:
        return path
    scheme, separator, _ = path.partition("://")  # the rest may hold a password
    if separator and scheme in SERVERS:
        return path
    if path.startswith(tuple(f"{server}:" for server in SERVERS)):
        raise ValueError("// is missing after the first colon; give postgresql://user:password@host/database")
    if separator:
        raise ValueError(f"{scheme}:// is unknown; give a path, {_SQLITE}path, {_MEMORY} or postgresql://…")
    return str(base.path(path or ".remit/journal.db"))


def _principal(name: str, _base: Base) -> str:
    """The name, or that of the OS user: of the account, not of the environment, which anybody can set."""
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under accounts without a name
        return f"uid{os.getuid()}"


_RESOLVERS: Final[dict[str, Callable[[Any, Base], Any]]] = {
    "app.modules": _modules,
    "app.principal": _principal,
    "fs.roots": _roots,
    "journal.url": _journal,
}
