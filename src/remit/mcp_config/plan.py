"""What an import would do: every server that was found, what it becomes here, and what its user has to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.errors import SettingsError
from remit.mcp_config.carried import Carried, carry
from remit.mcp_config.foreign import Foreign
from remit.mcp_config.names import free_name, server_name
from remit.mcp_config.secrets import SecretReplacer
from remit.settings.base import Base
from remit.settings.mcp import McpServer
from remit.settings.mcp_table import read_server

_WHERE: Final = ("command", "cwd", "url", "env", "headers")
"""What makes two servers the same one."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One server that was found."""

    name: str
    """What it is called here."""
    original: str
    """What its file calls it."""
    client: str
    file: str
    status: Literal["new", "known", "skipped"]
    """To be written; there already, the same; or of no use here."""
    transport: str = ""
    where: str = ""
    """The program, or the URL without secrets."""
    notes: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Environment variables to set, with what they stand for."""
    table: dict[str, Any] = {}
    """What to write; not to be shown."""

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"Planned({self.original!r} -> {self.name!r}, {self.status})"


def plan(
    found: Iterable[Foreign], existing: Sequence[McpServer], wanted: Sequence[str], base: Base, *, keep_secrets: bool
) -> list[Planned]:
    """Say for each server what becomes of it; of those found only the `wanted`, by either name, or all without any."""
    cloak = SecretReplacer()
    known = list(existing)
    planned = []
    for foreign in found:
        if not wanted or foreign.name in wanted or server_name(foreign.name) in wanted:
            one, server = _planned(foreign, carry(foreign, base.folder), known, base, None if keep_secrets else cloak)
            planned.append(one)
            known += [server] if server else []
    return planned


def _planned(
    foreign: Foreign, carried: Carried, known: list[McpServer], base: Base, cloak: SecretReplacer | None
) -> tuple[Planned, McpServer | None]:
    name = server_name(foreign.name)
    none = Planned(name=name, original=foreign.name, client=foreign.client, file=str(foreign.file), status="skipped")
    if carried.skipped:
        return replace(none, notes=(carried.skipped,)), None
    table, variables = _cloaked(name, carried, cloak)
    try:
        server = read_server({"name": name, **table}, name, base, str(base.folder))
    except SettingsError as error:
        return replace(none, notes=(error.message.removeprefix(f"{name} ({name}): "),)), None
    reached = replace(none, transport=server.transport, where=server.where)
    same = next((one for one in known if _is_same(one, server)), None)
    if same is not None:
        return replace(reached, name=same.name, status="known", notes=(f"{same.name} already exists",)), None
    server = replace(server, name=free_name(name, {one.name for one in known}))
    planned = replace(
        reached,
        name=server.name,
        status="new",
        notes=(*_renamed(foreign.name, name, server.name), *carried.notes),
        variables=variables,
        table={"name": server.name, **table},
    )
    return planned, server


def _renamed(original: str, name: str, free: str) -> list[str]:
    if free != name:
        return [f"the name {name} is taken: renamed to {free}"]
    if free != original:
        return [f"renamed to {free}: names are lower-case letters, digits and single underscores"]
    return []


def _cloaked(name: str, carried: Carried, cloak: SecretReplacer | None) -> tuple[dict[str, Any], dict[str, str]]:
    if cloak is None:
        return carried.table, carried.variables
    table, replaced = cloak.table(name, carried.table)
    return table, {**carried.variables, **{one.variable: f"the secret in {one.place}" for one in replaced}}


def _is_same(one: McpServer, other: McpServer) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in _WHERE)
