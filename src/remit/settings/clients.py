"""The clients that the settings name: those of `[[clients]]`, then those of `[[mcp.clients]]`, its old name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.errors import SettingsError
from remit.http.access import Access, Scope
from remit.http.token import Token, digest_of
from remit.settings.client import Client, read_client
from remit.settings.expansion import expand, sendable
from remit.settings.model import Settings

_OLD_KEYS: Final = frozenset({"principal", "token"})
_OLD_SCOPES: Final[tuple[Scope, ...]] = ("read", "call", "decide")
"""The scopes that a client of `[[mcp.clients]]` could do, and still may."""


class Clients(msgspec.Struct, frozen=True):
    """Who may connect over HTTP."""

    clients: tuple[Client, ...]
    """Each token once, as it was written."""
    warnings: tuple[str, ...] = ()


def clients(settings: Settings) -> Clients:
    """The clients, with references in their tokens as written.

    Raises SettingsError that names file, number and key, and never quotes a token.
    """
    found: dict[str, Client] = {}
    for number, table in enumerate(settings.clients.entries, 1):
        where = f"{settings.sources['clients.entries']}: clients number {number}"
        _add(read_client(table, where), where, found)
    for number, table in enumerate(settings.mcp.clients, 1):
        where = f"{settings.sources['mcp.clients']}: mcp.clients number {number}"
        _add(_old(table, where), where, found)
    old = f"{settings.sources['mcp.clients']}: [[mcp.clients]] is deprecated; write [[clients]], with scopes"
    return Clients(tuple(found.values()), (old,) if settings.mcp.clients else ())


def bearer(client: Client, environ: Mapping[str, str]) -> Token:
    """The token of a client, with every reference in it replaced.

    Raises SettingsError, also for a token that is empty then: it would let everyone in.
    """
    access = Access(
        client.principal,
        frozenset(client.scopes),
        client.tools,
        client.dialog,
        ask=client.ask,
        patience=client.patience,
        waiting=client.waiting,
        expose_tools=client.expose_tools,
        always=client.always,
    )
    if client.sha256:
        return Token(bytes.fromhex(client.sha256), access, client.expires_at)
    who = f"client {client.principal}"
    token = sendable(expand(client.token, environ, who), f"{who}: its token")
    if not token.strip():
        raise SettingsError(f"{who}: its token is empty", remedy="Set the variable that it refers to.")
    return Token(digest_of(token), access, client.expires_at)


def _old(table: dict[str, Any], where: str) -> Client:
    for key in table:
        if key not in _OLD_KEYS:
            raise SettingsError(f"{where}: there is no key {key}", remedy="Its keys are principal and token.")
    return msgspec.structs.replace(read_client(table, where), scopes=_OLD_SCOPES, dialog=True)


def _add(client: Client, where: str, found: dict[str, Client]) -> None:
    key = client.token or client.sha256
    if key in found:
        raise SettingsError(
            f"{where}: {client.principal} has the token of {found[key].principal}",
            remedy="Give each client its own token.",
        )
    found[key] = client
