"""The settings of a part. Where they are not declared, the loader keeps them raw and the part's section types them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from remit.errors import SettingsError
from remit.nearest import did_you_mean
from remit.settings.file import Base, PartSetting
from remit.settings.section import Section
from remit.settings.table import GivenValue, checked, from_text, resolved, rows_of

if TYPE_CHECKING:
    from remit.settings.model import Settings

S = TypeVar("S", bound=Section)


def in_file(tables: Mapping[str, Any], names: Collection[str], file: str, base: Base) -> Iterator[PartSetting]:
    """Give what a settings file says of these parts. Raises SettingsError."""
    for part in sorted(names & tables.keys()):
        if not isinstance(tables[part], dict):
            raise SettingsError(f"{file}: {part} must be a table", remedy=f"Write [{part}] on a line of its own.")
        yield from (
            PartSetting(f"{part}.{name}", value, file, base, is_text=False) for name, value in tables[part].items()
        )


def in_environment(env: Mapping[str, str], names: Collection[str], base: Base) -> Iterator[PartSetting]:
    """Give what the environment says of them: `REMIT_<PART>_<NAME>`."""
    for part in sorted(names):
        prefix = f"REMIT_{part}_".upper()
        for name, text in env.items():
            if name.startswith(prefix) and text:
                yield PartSetting(f"{part}.{name.removeprefix(prefix).lower()}", text, name, base, is_text=True)


def settings_of(settings: Settings, part: str, section: type[S]) -> S:
    """The settings of a part as its section types them. Raises SettingsError, as loading does."""
    declared = settings.declared.get(part)
    if isinstance(declared, section):
        return declared
    rows = {row.key: row for row in rows_of(part, section)}
    values = {key: GivenValue(row.default, "default", Base(settings.folder, None)) for key, row in rows.items()}
    for row in settings.parts.values():
        if row.key.startswith(f"{part}."):
            if row.key not in rows:
                remedy = did_you_mean(row.key, rows) or f"The settings of {part} are: {', '.join(rows)}."
                raise SettingsError(f"{row.source}: there is no setting {row.key}", remedy=remedy)
            typed = from_text if row.is_text else checked
            value = typed(rows[row.key], row.value, row.source)
            values[row.key] = GivenValue(value, row.source, row.base)
    return section(**{row.name: resolved(row, values[key]) for key, row in rows.items()})
