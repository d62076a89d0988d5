"""The settings as rows: what the loader looks names up in and what the documentation is made of.

From what was written to a value: text to its type, the check against it, relative paths to absolute ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from remit.errors import SettingsError
from remit.files.text import is_utf8
from remit.settings.file import Base
from remit.settings.model import Settings
from remit.settings.section import About, Section, abouts, form_of, hints


class Setting(NamedTuple):
    """One setting."""

    section: str
    name: str
    hint: Any
    """Its annotated type, as msgspec takes it."""
    default: Any
    about: About

    @property
    def key(self) -> str:
        """Its place in remit.toml."""
        return f"{self.section}.{self.name}"

    @property
    def env(self) -> tuple[str, ...]:
        """Its names in the environment; an earlier one wins."""
        return (f"REMIT_{self.section}_{self.name}".upper(), *self.about.env)

    @property
    def default_text(self) -> str:
        """Its default as TOML."""
        return msgspec.json.format(msgspec.json.encode(self.default), indent=0).decode()

    @property
    def kind(self) -> Any:
        """Its type without annotations: int, bool, str, tuple or Literal."""
        bare = get_args(self.hint)[0]
        return get_origin(bare) or bare


class SettingDoc(NamedTuple):
    """One setting as the documentation shows it."""

    key: str
    type: str
    default: str
    """As TOML."""
    env: tuple[str, ...]
    meaning: str


_declared: Final[dict[str, str]] = {}


def declare(references: Mapping[str, str]) -> None:
    """Make the sections of parts known, by name the reference of each class: `"module:name"`.

    They are then as the core's own, and imported when settings are first loaded.
    """
    _declared.update(references)
    sections.cache_clear()
    table.cache_clear()


@cache
def sections() -> Mapping[str, type[Section]]:
    """The class of every section, by its name in remit.toml: the core's, then those that parts declared."""
    type_hints = get_type_hints(Settings)
    core = {name: hint for name, hint in type_hints.items() if isinstance(hint, type) and issubclass(hint, Section)}
    return core | {name: imported(reference) for name, reference in _declared.items()}


def imported(reference: str) -> Any:
    """Return the class behind `"module:name"`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@cache
def table() -> Mapping[str, Setting]:
    """Every setting by its key."""
    rows = [row for name, section in sections().items() for row in rows_of(name, section)]
    return {row.key: row for row in rows}


def rows_of(name: str, section: type[Section]) -> list[Setting]:
    """The settings of one section."""
    texts, default = abouts(section), section()  # each setting has one
    return [
        Setting(name, setting, hint, getattr(default, setting), texts[setting])
        for setting, hint in hints(section).items()
    ]


def documented(rows: Iterable[Setting] | None = None) -> list[SettingDoc]:
    """Settings, for people: every one, or these."""
    return [
        SettingDoc(row.key, type_text(row.hint), row.default_text, row.env, row.about.meaning)
        for row in (table().values() if rows is None else rows)
    ]


def type_text(hint: Any) -> str:
    """Return a type in words, such as `an integer from 1 to 100000`."""
    if get_origin(hint) is not Annotated:
        return _bare_text(hint)
    if form := form_of(hint):
        return form
    bare, *notes = get_args(hint)
    limits = [note for note in notes if isinstance(note, msgspec.Meta) and note.ge is not None]
    return _bare_text(bare) + "".join(f" from {limit.ge} to {limit.le}" for limit in limits)


def _bare_text(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(get_args(hint))
    if get_origin(hint) is tuple:
        return "a list of tables" if get_origin(get_args(hint)[0]) is dict else "a list of non-empty texts"
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        if form := form_of(key):
            return f"a table, each key {form}, and each value {type_text(value)}"
        kinds = {dict: "tables by name", list: "a table of lists of texts"}
        return kinds[origin] if (origin := get_origin(value)) in kinds else f"a table, each value {type_text(value)}"
    return {bool: "true or false", int: "an integer", str: "text"}[hint]


_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_SHOWN: Final = 80


class GivenValue(msgspec.Struct, frozen=True):
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


def resolved(setting: Setting, given_value: GivenValue) -> Any:
    """The value with its paths made absolute and an empty default filled in. Raises SettingsError."""
    if setting.about.resolve is None:
        return given_value.value
    try:
        return setting.about.resolve(given_value.value, given_value.base)
    except (OSError, RuntimeError, ValueError) as exc:
        key = setting.key
        raise SettingsError(f"{given_value.source}: {key} cannot be used: {exc}", remedy=f"Correct {key}.") from exc
