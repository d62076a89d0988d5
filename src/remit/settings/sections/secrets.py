"""The section `[secrets]`: where the secrets of tools are read."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec

from remit.errors import SettingsError
from remit.settings.file import Base
from remit.settings.pictures import command, plain, tables
from remit.settings.section import About, Section, Texts, converted

_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("env", "file", "keyring", "tools", "seconds"), plain),
    "command": command,
}


class SecretTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One secret: exactly one of its four sources, and who may have it."""

    env: str = ""
    """The variable that holds it, read at each call."""
    file: str = ""
    """The file that holds it, without the line break at its end, read at each call."""
    keyring: str = ""
    """Its name in the system's keyring."""
    command: Texts = ()
    """A program and its arguments that print it."""
    tools: Texts = ("*",)
    """The tools that may have it, by full name or glob."""
    seconds: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 300
    """Seconds for which what the keyring or the command gave is used."""


def _read(entries: dict[str, dict[str, Any]], base: Base) -> dict[str, dict[str, Any]]:
    """Return the tables with files in full. Raise SettingsError for one that does not fit."""
    secret_tables(entries)
    return {
        name: table | {"file": str(base.path(table["file"]))} if table.get("file") else table
        for name, table in entries.items()
    }


def _shown(value: Any) -> Any:
    return dict(zip(plain(list(value)), tables(list(value.values()), _FIELDS), strict=True))


def _claims(value: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, secret in secret_tables(value).items():
        yield f"give {', '.join(secret.tools)} the secret {name}: {_source(secret)}"


def _source(secret: SecretTable) -> str:
    if secret.command:
        return f"what this prints: {shlex.join(secret.command)}"
    return f"${secret.env} of your environment" if secret.env else secret.file or f"{secret.keyring} of your keyring"


class SecretSettings(Section, frozen=True):
    """Secrets that [tools](tools.md#secrets) of yours declare."""

    tables: ClassVar[str] = "named"

    named: Annotated[
        dict[str, dict[str, Any]],
        About(
            "Written as `[secrets.NAME]`: one of `env`, `file`, `keyring` and `command`, with `tools` and `seconds`.",
            entry="remit.settings.sections.secrets:SecretTable",
            resolve=_read,
            picture=_shown,
            claims=_claims,
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it


def secret_tables(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, SecretTable]:
    """Return the secrets that tables declare, by name. Raises SettingsError."""
    secrets = {name: converted(table, SecretTable, f"secrets.{name}") for name, table in entries.items()}
    for name, secret in secrets.items():
        if sum(map(bool, (secret.env, secret.file, secret.keyring, secret.command))) != 1:
            remedy = "Give it one of env, file, keyring and command."
            raise SettingsError(f"secrets.{name} has no source, or several", remedy=remedy)
    return secrets
