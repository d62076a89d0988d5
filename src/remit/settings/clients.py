"""The clients that the settings name: those of `[[clients]]`, then those of `[[mcp.clients]]`, its old name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.errors import SettingsError
from remit.http.access import Access, Scope
from remit.http.grants import Grant, rivals
from remit.http.guard import Token, digest_of
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
    _check_issuers([client for client in found.values() if client.issuer], settings.sources["clients.entries"])
    old = f"{settings.sources['mcp.clients']}: [[mcp.clients]] is deprecated; write [[clients]], with scopes"
    return Clients(tuple(found.values()), (old,) if settings.mcp.clients else ())


def grant(client: Client) -> Grant:
    """The grant of a client that is known by an issuer's tokens."""
    wanted = {name: tuple(_texts(value)) for name, value in client.claims.items()}
    return Grant(
        issuer=client.issuer,
        audience=tuple(_texts(client.audience)),
        claims=wanted,
        access=_access(client),
        expires=client.expires_at,
    )


def _texts(value: str | bool | list[str]) -> list[str]:
    """The texts that a value stands for; of `true`, as claims are compared."""
    return value if isinstance(value, list) else [str(value).lower() if isinstance(value, bool) else value]


def _access(client: Client) -> Access:
    return Access(
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


def bearer(client: Client, environ: Mapping[str, str]) -> Token:
    """The token of a client, with every reference in it replaced.

    Raises SettingsError, also for a token that is empty then: it would let everyone in.
    """
    access = _access(client)
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


def _check_issuers(found: list[Client], source: str) -> None:
    """Raise SettingsError if one issuer could name the people of another."""
    if (both := rivals(grant(client) for client in found)) is not None:
        raise SettingsError(
            f"{source}: {both[0]} and {both[1]} of two issuers could be the same principal",
            remedy="Begin each with text of its own, such as okta:{sub}.",
        )


def _add(client: Client, where: str, found: dict[str, Client]) -> None:
    key = client.token or client.sha256 or f"issuer {len(found)}"
    if key in found:
        raise SettingsError(
            f"{where}: {client.principal} has the token of {found[key].principal}",
            remedy="Give each client its own token.",
        )
    found[key] = client
