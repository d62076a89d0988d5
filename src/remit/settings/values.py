"""From what was written to a value: text to its type, the check against it, relative paths to absolute ones."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from remit.errors import SettingsError
from remit.files.text import is_utf8
from remit.settings.base import Base
from remit.settings.table import Setting, type_text

_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_SHOWN: Final = 80


class Given(NamedTuple):
    """A value that was given."""

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
    """Return what was given, where it is no secret."""
    if setting.about.picture is not None:
        return ""
    text = repr(value)
    return f"is {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}, but it "


def from_text(setting: Setting, text: str, source: str) -> Any:
    """The value that a text from the environment or the command line stands for. Raises SettingsError."""
    if not is_utf8(text):
        raise SettingsError(f"{source}: {setting.key} is not UTF-8", remedy="Write it in UTF-8.")
    return checked(setting, _parsed(setting, text), source)


def _parsed(setting: Setting, text: str) -> Any:
    """Return what a text stands for; the text itself where it is nothing of the setting's type."""
    if setting.kind is bool:
        return _TRUTH.get(text.strip().lower(), text)
    if setting.kind is int:
        return _integer(text)
    if setting.kind is tuple:
        return _items(text, setting.about.separator)
    if setting.kind is dict:
        return _json(text, "{")
    return text


def _integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _json(text: str, first: str) -> Any:
    """The JSON value in a text that begins so; else the text itself."""
    try:
        return msgspec.json.decode(text) if text.lstrip().startswith(first) else text
    except (msgspec.DecodeError, RecursionError):
        return text


def _items(text: str, separator: str) -> Any:
    if text.lstrip().startswith("["):
        return _json(text, "[")
    return [item.strip() for item in text.split(separator) if item.strip()]


def resolved(setting: Setting, given: Given) -> Any:
    """The value with its paths made absolute and an empty default filled in. Raises SettingsError."""
    if setting.about.resolve is None:
        return given.value
    try:
        return setting.about.resolve(given.value, given.base)
    except (OSError, RuntimeError, ValueError) as exc:
        key = setting.key
        raise SettingsError(f"{given.source}: {key} cannot be used: {exc}", remedy=f"Correct {key}.") from exc
