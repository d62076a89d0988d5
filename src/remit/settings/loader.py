"""The one loader: defaults < remit.toml < environment < flags."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from remit.errors import SettingsError
from remit.nearest import did_you_mean
from remit.process.family import MARK
from remit.regex import regex
from remit.settings.file import Base, SettingsFile, find, read
from remit.settings.model import Settings
from remit.settings.parts import in_environment, in_file
from remit.settings.section import Section
from remit.settings.table import GivenValue, Setting, checked, from_text, resolved, sections, table

CONFIG: Final = "REMIT_CONFIG"
"""The environment variable that names the file to load."""
SERVER: Final = "REMIT_SERVER"
"""The environment variable with the URL of a server that commands are sent to."""
TOKEN: Final = "REMIT_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token that they bring."""
TRUST: Final = "REMIT_TRUST"
"""The environment variable that trusts whatever folder a process is started in, if it is `1`."""
_PREFIX: Final = "REMIT_"
_TESTS: Final = "REMIT_TEST_"
# Kubernetes puts these into every container beside a Service called "remit"; they are not meant for us.
_SERVICE_LINK: Final = regex(r"REMIT_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")

UNREAD: Final[Mapping[str, str]] = {
    "TICKETSTORE_PATH": "tickets are in the journal (journal.url)",
}
"""Customary names of the environment that mean nothing here, and why."""


def load(
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    search: bool = True,
    doubted: Collection[str] = (),
    guarded: bool = False,
) -> Settings:
    """Load the settings; a later source wins: defaults, remit.toml, environment, flags.

    The file is `file`, or what REMIT_CONFIG names, or the nearest remit.toml from `cwd` upwards. `flags` has dotted
    keys; one that is `None` was not given, and a text is read as it would be in the environment. There and in flags an
    empty text counts as not given. Relative paths in the file count from its folder, others from `cwd`.

    Without `search` a file counts only if it is named. What the file says of the keys in `doubted` does not count.
    If they are `guarded`, other settings files of the folder count only as someone trusted them.
    Parts that app.capabilities names have tables of their names: they are kept as they are written.

    Raises SettingsError for an unreadable file, an unknown name or a value that does not fit.
    """
    here = _here(cwd, env)
    chosen = _chosen(here, file, env, search=search)
    written = SettingsFile.of(chosen)  # before it is read: a change in between counts as one since
    project = here._replace(folder=chosen.parent) if chosen else here
    by_key = {key: GivenValue(row.default, "default", project) for key, row in table().items()}
    tables = read(chosen) if chosen else {}
    names = _capabilities(tables, chosen, env) - sections().keys()
    of_parts = [*in_file(tables, names, str(chosen), project), *in_environment(env, names, here)]
    of_parts = [row for row in of_parts if row.source != str(chosen) or row.key not in doubted]
    if chosen:
        own = {section: settings for section, settings in tables.items() if section not in names}
        by_key |= {key: value for key, value in _from_file(own, chosen, project).items() if key not in doubted}
    by_key |= _from_environment({name: text for name, text in env.items() if not _is_of(name, names)}, here)
    by_key |= _from_flags(flags or {}, here)
    values: dict[str, dict[str, Any]] = {name: {} for name in sections()}
    for key, row in table().items():
        values[row.section][row.name] = resolved(row, by_key[key])
    by_name: dict[str, Any] = {name: section(**values[name]) for name, section in sections().items()}
    return Settings(
        **{name: section for name, section in by_name.items() if name in Settings.__struct_fields__},
        declared={name: section for name, section in by_name.items() if name not in Settings.__struct_fields__},
        file=chosen,
        folder=project.folder,
        working_folder=here.folder,
        sources={key: value.source for key, value in by_key.items()} | {row.key: row.source for row in of_parts},
        written=written,
        doubted=tuple(doubted),
        guarded=guarded,
        parts={row.key: row for row in of_parts},
    )


def override(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """The settings with other values for some, as `flags` of `load`. Raises SettingsError."""
    home = Path.home() if any(isinstance(value, str) and value.startswith("~") for value in flags.values()) else None
    overrides = _from_flags(flags, Base(settings.working_folder, home))
    changed: dict[str, dict[str, Any]] = {}
    for key, value in overrides.items():
        row = table()[key]
        changed.setdefault(row.section, {})[row.name] = resolved(row, value)
    declared = dict(settings.declared)
    core: dict[str, Section] = {}
    for name, values in changed.items():
        own = declared if name in declared else core
        own[name] = replace(declared[name] if name in declared else getattr(settings, name), **values)
    sources = {**settings.sources, **{key: value.source for key, value in overrides.items()}}
    return replace(settings, **core, declared=declared, sources=sources)


def _here(cwd: Path | None, env: Mapping[str, str]) -> Base:
    """The working folder and home, both free of links and `..`, so that walking up from one can meet the other."""
    try:
        return Base((cwd or Path()).resolve(), Path(env["HOME"]).resolve() if env.get("HOME") else None)
    except (OSError, RuntimeError) as exc:
        raise SettingsError(
            f"the working folder or your home folder does not exist: {exc}", remedy="Change to a folder that exists."
        ) from exc


def _chosen(here: Base, file: Path | None, env: Mapping[str, str], *, search: bool) -> Path | None:
    named = file or env.get(CONFIG)
    if not named:
        return find(here.folder, here.home) if search else None
    path = here.folder / named
    return path.parent.resolve() / path.name  # of a linked file, the folder that holds the link


def _capabilities(tables: Mapping[str, Any], file: Path | None, env: Mapping[str, str]) -> set[str]:
    """The parts that the file or the environment names, whether they count or not."""
    row = table()["app.capabilities"]
    app = tables.get("app")
    names = checked(row, app["capabilities"], str(file)) if isinstance(app, dict) and "capabilities" in app else ()
    texts = [from_text(row, env[name], name) for name in row.env if env.get(name)]
    return {*names, *(name for text in texts for name in text)}


def _is_of(name: str, parts: Collection[str]) -> bool:
    """Return whether a name of the environment is a setting of one of these parts."""
    return any(name.startswith(f"REMIT_{part}_".upper()) for part in parts)


def _from_file(tables: Mapping[str, Any], file: Path, base: Base) -> dict[str, GivenValue]:
    from_file = {}
    for section, settings in tables.items():
        if section not in sections():
            raise _unknown(str(file), section, [*sections(), *table()])
        array = sections()[section].array
        written = {array: settings} if array and isinstance(settings, list) else settings
        if not isinstance(written, dict):
            raise SettingsError(f"{file}: {section} must be a table", remedy=f"Write [{section}] on a line of its own.")
        for name, value in _gathered(section, written).items():
            row = _row(f"{section}.{name}", str(file))
            from_file[row.key] = GivenValue(checked(row, value, str(file)), str(file), base)
    return from_file


def _gathered(section: str, written: dict[str, Any]) -> dict[str, Any]:
    """Return what a table says, with tables of any name in the one field that is for them."""
    field = sections()[section].tables
    named = {
        name: value for name, value in written.items() if isinstance(value, dict) and f"{section}.{name}" not in table()
    }
    if not (field and named):
        return written
    return {name: value for name, value in written.items() if name not in named} | {field: named}


def _from_environment(env: Mapping[str, str], base: Base) -> dict[str, GivenValue]:
    names = {name: row for row in table().values() for name in row.env}
    for name in env:
        if name.startswith(_PREFIX) and name not in names and not _is_foreign(name):
            raise _unknown("environment", name, [*names, CONFIG])
    from_environment: dict[str, GivenValue] = {}
    for name, row in names.items():
        if env.get(name) and row.key not in from_environment:
            from_environment[row.key] = GivenValue(
                from_text(row, row.about.fixed.get(name, env[name]), name), name, base
            )
    return from_environment


def _is_foreign(name: str) -> bool:
    own = name in {CONFIG, SERVER, TOKEN, TRUST, MARK}
    return own or name.startswith(_TESTS) or _SERVICE_LINK.fullmatch(name) is not None


def _from_flags(flags: Mapping[str, Any], base: Base) -> dict[str, GivenValue]:
    source = "command line"
    values = {}
    for key, value in flags.items():
        row = _row(key, source)
        if value not in (None, ""):
            typed = from_text(row, value, source) if isinstance(value, str) else checked(row, value, source)
            values[key] = GivenValue(typed, source, base)
    return values


def _row(key: str, source: str) -> Setting:
    row = table().get(key)
    if row is None:
        raise _unknown(source, key, table())
    return row


def _unknown(source: str, name: str, known: Iterable[str]) -> SettingsError:
    """The error for a name that is not a setting's, with the nearest that is: of another section, or spelt alike."""
    choices = list(known)
    same = [choice for choice in choices if choice.rpartition(".")[2] == name.rpartition(".")[2]]
    near = f"Did you mean {same[0]}?" if same else did_you_mean(name, choices)
    remedy = near or "`remit config` lists every setting."
    return SettingsError(f"{source}: there is no setting {name}", remedy=remedy)
