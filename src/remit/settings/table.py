"""The settings as rows: what the loader looks names up in and what the documentation is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

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
    found = get_type_hints(Settings)
    core = {name: hint for name, hint in found.items() if isinstance(hint, type) and issubclass(hint, Section)}
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
    said, default = abouts(section), section()  # each setting has one
    return [
        Setting(name, setting, hint, getattr(default, setting), said[setting])
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
